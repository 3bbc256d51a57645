//! Key ranges in which a scan has found only deleted keys.
//!
//! Deleting a queue from its front, or a day of data key by key, leaves a long sequence of
//! tombstones before the first live key. The scan that steps through it records the range here, and
//! later scans skip it, until a compaction drops the tombstones.
//!
//! A range is valid as of a sequence number: a reader at that number or later finds no live key in
//! it unless one has been put since. A put into a range therefore removes the range. This is a
//! cache: it is not persistent, and dropping any range is always correct.
//!
//! Invariant: if a visible sequence number is at or above the number of a range, a reader at that
//! number finds no live key in the range. This holds because of the order of operations on both
//! sides, all sequentially consistent. A writer first stores the last sequence number of the tree,
//! then removes the ranges that contain its key, then makes the write visible. A scan first adds a
//! range, then checks whether the tree has been written since the scan's snapshot, and removes the
//! range if so. At least one of the two sees what the other has stored.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use terrane_memtable::Padded;

use crate::stats::stripe_of_thread;
use crate::types::SeqNo;

const STRIPES: usize = 8;

/// The maximum number of ranges; more are rarely useful. Beyond it, the oldest range is dropped.
const RANGES_MAX: usize = 32;

/// The maximum length of a key; ranges with longer keys are not worth their memory.
const KEY_BYTES_MAX: usize = 4 << 10;

/// The keys from `start` to the exclusive `end`; unbounded if `end` is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeadRange {
    pub(crate) start: Vec<u8>,
    pub(crate) end: Option<Vec<u8>>,
    seq: SeqNo,
}

/// The dead ranges of a tree, and the tree's last sequence number.
#[derive(Debug, Default)]
pub(crate) struct DeadRanges {
    /// The largest sequence numbers assigned to writes of the tree. Each thread stores to one of
    /// them, because every write does.
    last_seqs: [Padded<AtomicU64>; STRIPES],
    /// The number of ranges, so that a writer takes the lock only if there are any.
    count: AtomicUsize,
    ranges: Mutex<Vec<DeadRange>>,
}

impl DeadRange {
    fn contains(&self, key: &[u8]) -> bool {
        *self.start <= *key && self.end.as_ref().is_none_or(|end| key < &end[..])
    }

    fn covers(&self, other: &Self) -> bool {
        let is_end_covered = match (&self.end, &other.end) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(end), Some(other)) => end >= other,
        };
        self.start <= other.start && is_end_covered
    }
}

impl DeadRanges {
    /// Records that sequence numbers up to `seq` have been assigned to writes of the tree.
    #[inline]
    pub(crate) fn set_last_seq(&self, seq: SeqNo) {
        // SeqCst: pairs with the store to `count` and the loads of `last_seq` in `enter`; see the
        // invariant. Threads may share a stripe, so the number must not decrease.
        self.last_seqs[stripe_of_thread() % STRIPES].fetch_max(seq, Ordering::SeqCst);
    }

    /// Returns the largest sequence number assigned to a write of the tree.
    pub(crate) fn last_seq(&self) -> SeqNo {
        let last_seqs = self.last_seqs.iter().map(|last| last.load(Ordering::SeqCst));
        last_seqs.max().unwrap_or(0)
    }

    /// Removes the ranges that contain `key`, which is about to be put. The write's sequence number
    /// must have been passed to [`DeadRanges::set_last_seq`].
    #[inline]
    pub(crate) fn before_put(&self, key: &[u8]) {
        // SeqCst: follows the store in `set_last_seq`, and pairs with the store to `count` in `enter`;
        // see the invariant.
        if self.count.load(Ordering::SeqCst) > 0 {
            self.forget(|range| range.contains(key));
        }
    }

    /// Returns the range around `key` in which a reader at `seq` finds no live key.
    pub(crate) fn around(&self, key: &[u8], seq: SeqNo) -> Option<DeadRange> {
        // Relaxed: a stale zero only misses a range; the lock orders reads of the ranges.
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let ranges = self.lock();
        ranges.iter().find(|range| range.seq <= seq && range.contains(key)).cloned()
    }

    /// Adds a range: a reader at `seq`, which is visible, found no live key from `start` to the
    /// exclusive `end`, in sources that contain all writes up to `known`. Later writes may be in a
    /// newer memtable that the reader does not see.
    pub(crate) fn enter(&self, start: &[u8], end: Option<&[u8]>, known: SeqNo, seq: SeqNo) {
        if start.len().max(end.map_or(0, <[u8]>::len)) > KEY_BYTES_MAX || self.last_seq() > known {
            return;
        }
        let mut range = DeadRange { start: start.to_vec(), end: end.map(<[u8]>::to_vec), seq };
        let mut ranges = self.lock();
        // Join the range with one that reaches its start. The result is valid as of the larger of the
        // two sequence numbers.
        let before = ranges.iter().find(|before| {
            before.start <= range.start && before.end.as_ref().is_none_or(|end| *end >= range.start)
        });
        if let Some(before) = before {
            range.start.clone_from(&before.start);
            range.seq = range.seq.max(before.seq);
            if before.end.is_none() {
                range.end = None;
            }
        }
        ranges.retain(|other| !range.covers(other));
        if ranges.len() >= RANGES_MAX {
            ranges.remove(0);
        }
        ranges.push(range);
        self.count.store(ranges.len(), Ordering::SeqCst);
        if self.last_seq() > known {
            // A concurrent writer may have looked for ranges before this one was added.
            ranges.pop();
            self.count.store(ranges.len(), Ordering::SeqCst);
        }
    }

    /// Removes all ranges, after a compaction has dropped tombstones.
    pub(crate) fn clear(&self) {
        if self.count.load(Ordering::Relaxed) > 0 {
            self.forget(|_| true);
        }
    }

    #[cold]
    fn forget(&self, is_over: impl Fn(&DeadRange) -> bool) {
        let mut ranges = self.lock();
        ranges.retain(|range| !is_over(range));
        self.count.store(ranges.len(), Ordering::SeqCst);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<DeadRange>> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(ranges: &DeadRanges, key: &str, seq: SeqNo) -> Option<(String, Option<String>)> {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        ranges.around(key.as_bytes(), seq).map(|range| (text(range.start), range.end.map(text)))
    }

    #[test]
    fn ranges_grow_and_end_with_a_put() {
        let ranges = DeadRanges::default();
        ranges.set_last_seq(10);
        ranges.enter(b"b", Some(b"d"), 10, 10);
        assert_eq!(around(&ranges, "b", 9), None, "an older reader");
        assert_eq!(around(&ranges, "d", 10), None);
        ranges.set_last_seq(11);
        ranges.enter(b"d", Some(b"f"), 11, 11);
        let grown = Some(("b".into(), Some("f".into())));
        assert_eq!(around(&ranges, "c", 11), grown);
        assert_eq!(around(&ranges, "c", 10), None, "a joined range is valid as of the later one");
        ranges.before_put(b"g");
        assert_eq!(around(&ranges, "c", 20), grown);
        ranges.before_put(b"e");
        assert_eq!(around(&ranges, "c", 20), None);
        ranges.enter(b"x", None, 11, 11);
        ranges.clear();
        assert_eq!(around(&ranges, "y", 20), None);
    }

    #[test]
    fn a_range_is_rejected_if_the_tree_was_written_since() {
        let ranges = DeadRanges::default();
        ranges.set_last_seq(12);
        ranges.enter(b"a", None, 11, 11);
        ranges.enter(b"a", None, 11, 12);
        assert_eq!(around(&ranges, "b", 20), None);
    }

    #[test]
    fn the_number_of_ranges_is_bounded() {
        let ranges = DeadRanges::default();
        for number in 0..200u8 {
            ranges.enter(&[number, 0], Some(&[number, 1]), 5, 5);
        }
        assert_eq!(ranges.lock().len(), RANGES_MAX);
        assert!(ranges.around(&[199, 0], 5).is_some());
    }
}
