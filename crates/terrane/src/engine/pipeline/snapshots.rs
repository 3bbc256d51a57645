//! The sequence numbers that readers hold.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Mutex, PoisonError};

use terrane_memtable::{Readers, SeqBounds};

use super::commit_queue::CommitQueue;
use crate::base::types::{KeyspaceId, SeqNo};

/// All snapshots of a database.
#[derive(Debug)]
pub(super) struct Snapshots {
    /// The number of readers that hold each sequence number.
    held: Mutex<BTreeMap<SeqNo, usize>>,
    /// A lower bound on all sequence numbers that are held, or that a concurrent `hold` is about to
    /// hold.
    oldest: AtomicU64,
    /// An upper bound on all sequence numbers that are held; `SeqNo::MAX` while a `hold` is
    /// running, 0 if none is held.
    newest: AtomicU64,
    /// The sequence number held for each tree until its memtable is replaced, so that scans may
    /// reuse it.
    kept: Mutex<BTreeMap<KeyspaceId, SeqNo>>,
}

/// The sequence numbers that readers of a database hold or may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeldSeqs<'a> {
    snapshots: &'a Snapshots,
    commits: &'a CommitQueue,
}

impl Readers for HeldSeqs<'_> {
    #[inline]
    fn bounds(&self) -> SeqBounds {
        self.snapshots.bounds(self.commits)
    }

    fn hold_any(&self, seqs: Range<SeqNo>) -> bool {
        self.snapshots.hold_any(seqs)
    }
}

impl Default for Snapshots {
    fn default() -> Self {
        Self {
            held: Mutex::default(),
            oldest: AtomicU64::new(SeqNo::MAX),
            newest: AtomicU64::new(0),
            kept: Mutex::default(),
        }
    }
}

impl Snapshots {
    /// Returns what memtables ask about readers.
    pub(super) fn readers<'a>(&'a self, commits: &'a CommitQueue) -> HeldSeqs<'a> {
        HeldSeqs { snapshots: self, commits }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<SeqNo, usize>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds the newest visible sequence number.
    ///
    /// It is read under the lock under which compactions list the snapshots. A snapshot that a
    /// compaction does not list is therefore taken later, at a sequence number that is not below
    /// any version that the compaction merges, because all of these were already visible. So the
    /// snapshot needs only the newest version of each key.
    pub(super) fn hold(&self, commits: &CommitQueue) -> SeqNo {
        let mut held = self.lock();
        // The bounds are widened before the sequence number is read: see `bounds`. Relaxed, because
        // the fence orders the stores.
        let before = oldest_of(&held).min(commits.visible());
        self.oldest.store(before, Ordering::Relaxed);
        self.newest.store(SeqNo::MAX, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let seq = commits.visible();
        *held.entry(seq).or_default() += 1;
        self.set_bounds(&held);
        seq
    }

    /// Holds a sequence number once more. Returns false unless it is already held.
    pub(super) fn hold_again(&self, seq: SeqNo) -> bool {
        let mut held = self.lock();
        let count = held.get_mut(&seq);
        let is_held = count.is_some();
        count.into_iter().for_each(|count| *count += 1);
        is_held
    }

    /// Replaces the sequence number that is kept for a tree, and returns the previous one. The
    /// caller holds the new one and releases the previous one.
    pub(super) fn replace_kept(&self, tree: KeyspaceId, seq: Option<SeqNo>) -> Option<SeqNo> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match seq {
            Some(seq) => kept.insert(tree, seq),
            None => kept.remove(&tree),
        }
    }

    fn set_bounds(&self, held: &BTreeMap<SeqNo, usize>) {
        // Release pairs with the loads in `bounds`: if a writer loads these bounds, all reads by
        // snapshots released before, under the lock of `held`, happen before the load.
        self.oldest.store(oldest_of(held), Ordering::Release);
        let newest = held.keys().next_back().copied().unwrap_or(0);
        self.newest.store(newest, Ordering::Release);
    }

    /// Returns bounds on the sequence numbers that are held now or later.
    ///
    /// For a concurrent `hold`, either this call sees a bound that `hold` has widened, or `hold`
    /// sees a visible sequence number at or above the one read here.
    #[inline]
    pub(super) fn bounds(&self, commits: &CommitQueue) -> SeqBounds {
        // All loads are sequentially consistent, in this order, and so is the fence in `hold`
        // between the stores of the bounds and the load of the visible number. If the load of a
        // bound below misses its store, the load precedes the fence, and `hold` reads a visible
        // number at least as new as `visible`.
        let visible = commits.visible_in_order();
        let oldest = self.oldest.load(Ordering::SeqCst);
        SeqBounds { visible, oldest, newest: self.newest.load(Ordering::SeqCst) }
    }

    /// Returns whether a sequence number in `seqs` is held.
    pub(super) fn hold_any(&self, seqs: Range<SeqNo>) -> bool {
        self.lock().range(seqs).next().is_some()
    }

    /// Releases a sequence number.
    pub(super) fn release(&self, seq: SeqNo) {
        let mut held = self.lock();
        if let Some(count) = held.get_mut(&seq) {
            *count -= 1;
            if *count == 0 {
                held.remove(&seq);
                self.set_bounds(&held);
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
        let bounds = || {
            let SeqBounds { visible, oldest, newest } = snapshots.bounds(&commits);
            (visible, oldest, newest)
        };
        assert_eq!(bounds(), (7, SeqNo::MAX, 0));
        let (a, b) = (snapshots.hold(&commits), snapshots.hold(&commits));
        assert_eq!((a, b, snapshots.list()), (7, 7, vec![7]));
        commits.set_visible(9);
        assert_eq!(bounds(), (9, 7, 7));
        let later = snapshots.hold(&commits);
        assert_eq!(bounds(), (9, 7, 9));
        assert!(snapshots.hold_any(7..8) && !snapshots.hold_any(8..9) && snapshots.hold_any(8..10));
        snapshots.release(later);
        snapshots.release(a);
        assert_eq!(snapshots.list(), [7]);
        assert!(snapshots.hold_again(7) && !snapshots.hold_again(8));
        snapshots.release(b);
        assert_eq!(bounds(), (9, 7, 7));
        snapshots.release(b);
        assert!(snapshots.list().is_empty());
        assert_eq!(bounds(), (9, SeqNo::MAX, 0));
    }
}
