//! The sequence numbers that readers hold.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Mutex, PoisonError};

use super::commit_queue::CommitQueue;
use crate::types::{KeyspaceId, SeqNo};

/// All snapshots of a database.
#[derive(Debug)]
pub(super) struct Snapshots {
    /// For each sequence number that is held, how many readers hold it.
    held: Mutex<BTreeMap<SeqNo, usize>>,
    /// A lower bound of all sequence numbers that are held, or that a running `hold` is about to
    /// hold.
    oldest: AtomicU64,
    /// The sequence number that is held for a tree until its memtable is replaced, so that scans may
    /// reuse it.
    kept: Mutex<BTreeMap<KeyspaceId, SeqNo>>,
}

impl Default for Snapshots {
    fn default() -> Self {
        Self { held: Mutex::default(), oldest: AtomicU64::new(SeqNo::MAX), kept: Mutex::default() }
    }
}

impl Snapshots {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<SeqNo, usize>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds the newest visible sequence number.
    ///
    /// It is read under the lock under which compactions list the snapshots. A snapshot that a
    /// compaction does not list is therefore taken later, at a sequence number that is not below
    /// any version that the compaction merges, because all of these were visible before. So the
    /// snapshot needs only the newest version of each key.
    pub(super) fn hold(&self, commits: &CommitQueue) -> SeqNo {
        let mut held = self.lock();
        // The bound is lowered before the sequence number is read: see `horizon`. Relaxed, because the
        // fence orders the store.
        let before = oldest_of(&held).min(commits.visible());
        self.oldest.store(before, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let seq = commits.visible();
        *held.entry(seq).or_default() += 1;
        // Raises the bound. Release pairs with the load in `horizon`: a horizon that reads this bound
        // also follows the reads of every snapshot released before, under this lock.
        self.oldest.store(oldest_of(&held), Ordering::Release);
        seq
    }

    /// Holds a sequence number once more. Returns false if nobody holds it.
    pub(super) fn hold_again(&self, seq: SeqNo) -> bool {
        let mut held = self.lock();
        let count = held.get_mut(&seq);
        let is_held = count.is_some();
        count.into_iter().for_each(|count| *count += 1);
        is_held
    }

    /// Replaces the sequence number that is kept for a tree, and returns the one before. The caller
    /// holds the new one and releases the old one.
    pub(super) fn replace_kept(&self, tree: KeyspaceId, seq: Option<SeqNo>) -> Option<SeqNo> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match seq {
            Some(seq) => kept.insert(tree, seq),
            None => kept.remove(&tree),
        }
    }

    /// Returns a visible sequence number that is not above any snapshot held now or later.
    ///
    /// For a concurrent `hold`, either this sees the bound that it has lowered, or `hold` sees a visible
    /// sequence number at or above the one read here.
    #[inline]
    pub(super) fn horizon(&self, commits: &CommitQueue) -> SeqNo {
        // Both loads are sequentially consistent, in this order, and so is the fence in `hold` between
        // the store of the bound and the load of the visible number. If the load of the
        // bound below misses that store, then that load precedes the fence, and `hold` reads a visible
        // number at least as new as `visible`.
        let visible = commits.visible_in_order();
        // The load includes an acquire, which pairs with the release store in `release`: a reader that
        // released its snapshot has finished reading.
        visible.min(self.oldest.load(Ordering::SeqCst))
    }

    /// Releases a sequence number.
    pub(super) fn release(&self, seq: SeqNo) {
        let mut held = self.lock();
        if let Some(count) = held.get_mut(&seq) {
            *count -= 1;
            if *count == 0 {
                held.remove(&seq);
                // Release pairs with the load in `horizon`: the reader has finished reading.
                self.oldest.store(oldest_of(&held), Ordering::Release);
            }
        }
    }

    /// Returns the sequence numbers that are held, in ascending order.
    pub(super) fn list(&self) -> Vec<SeqNo> {
        self.lock().keys().copied().collect()
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
        assert!(snapshots.hold_again(7) && !snapshots.hold_again(8));
        snapshots.release(b);
        assert_eq!(snapshots.horizon(&commits), 7);
        snapshots.release(b);
        assert!(snapshots.list().is_empty());
        assert_eq!(snapshots.horizon(&commits), 9);
    }
}
