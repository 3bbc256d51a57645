//! Sequence numbers that someone still reads at.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Mutex, PoisonError};

use crate::engine::Engine;
use crate::engine::pipeline::commit_queue::CommitQueue;
use crate::types::SeqNo;

/// All snapshots of a database.
#[derive(Debug)]
pub(crate) struct Snapshots {
    /// How many hold each sequence number.
    held: Mutex<BTreeMap<SeqNo, usize>>,
    /// None that is held is below this, nor will any be that is being taken.
    oldest: AtomicU64,
}

impl Default for Snapshots {
    fn default() -> Self {
        Self { held: Mutex::default(), oldest: AtomicU64::new(SeqNo::MAX) }
    }
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
        // Said before it is taken: see `horizon`.
        let before = oldest_of(&held).min(commits.visible());
        self.oldest.store(before, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let seq = commits.visible();
        *held.entry(seq).or_default() += 1;
        self.oldest.store(oldest_of(&held), Ordering::Release);
        seq
    }

    /// A sequence number that is visible, and not above any that is held now or later.
    ///
    /// A snapshot that is being taken has either said by now that it will not be below what was
    /// visible then, or it will see as visible what is visible here.
    #[inline]
    pub(crate) fn horizon(&self, commits: &CommitQueue) -> SeqNo {
        // Both sequentially consistent, in this order, as is the fence in `hold`: where the second
        // does not see what was said there, what is visible was taken after the first.
        let visible = commits.visible_in_order();
        // Acquire is in it, and pairs with the release of `release`: who let go has read.
        visible.min(self.oldest.load(Ordering::SeqCst))
    }

    /// Lets go of a sequence number that was held.
    pub(crate) fn release(&self, seq: SeqNo) {
        let mut held = self.lock();
        if let Some(count) = held.get_mut(&seq) {
            *count -= 1;
            if *count == 0 {
                held.remove(&seq);
                self.oldest.store(oldest_of(&held), Ordering::Release);
            }
        }
    }

    /// What is held, rising.
    pub(crate) fn list(&self) -> Vec<SeqNo> {
        self.lock().keys().copied().collect()
    }
}

/// A sequence number that is held for as long as this exists.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    engine: &'a Engine,
    pub(crate) seq: SeqNo,
}

impl Engine {
    /// Holds the newest visible sequence number.
    pub(crate) fn hold(&self) -> Held<'_> {
        Held { engine: self, seq: self.hold_snapshot() }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.engine.release_snapshot(self.seq);
    }
}

fn oldest_of(held: &BTreeMap<SeqNo, usize>) -> SeqNo {
    held.keys().next().copied().unwrap_or(SeqNo::MAX)
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
        commits.set_visible(9);
        assert_eq!(snapshots.horizon(&commits), 7);
        snapshots.release(a);
        assert_eq!(snapshots.list(), [7]);
        snapshots.release(b);
        snapshots.release(b);
        assert!(snapshots.list().is_empty());
        assert_eq!(snapshots.horizon(&commits), 9);
    }
}
