//! Sequence numbers that someone still reads at.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::commit::CommitQueue;
use crate::types::SeqNo;

/// All snapshots of a database.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    /// How many hold each sequence number.
    held: Mutex<BTreeMap<SeqNo, usize>>,
}

impl Snapshots {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<SeqNo, usize>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds the newest visible sequence number.
    ///
    /// Taken under the lock that compactions take to list what is held: a snapshot that they do
    /// not list is of what is visible later, and so sees the newest of all versions that they
    /// merge, for these were visible before.
    pub(crate) fn hold(&self, commits: &CommitQueue) -> SeqNo {
        let mut held = self.lock();
        let seq = commits.visible();
        *held.entry(seq).or_default() += 1;
        seq
    }

    /// Lets go of a sequence number that was held.
    pub(crate) fn release(&self, seq: SeqNo) {
        let mut held = self.lock();
        if let Some(count) = held.get_mut(&seq) {
            *count -= 1;
            if *count == 0 {
                held.remove(&seq);
            }
        }
    }

    /// What is held, rising.
    pub(crate) fn list(&self) -> Vec<SeqNo> {
        self.lock().keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_are_held_until_the_last_of_them_is_released() {
        let commits = CommitQueue::new(7);
        let snapshots = Snapshots::default();
        let (a, b) = (snapshots.hold(&commits), snapshots.hold(&commits));
        assert_eq!((a, b, snapshots.list()), (7, 7, vec![7]));
        snapshots.release(a);
        assert_eq!(snapshots.list(), [7]);
        snapshots.release(b);
        snapshots.release(b);
        assert!(snapshots.list().is_empty());
    }
}
