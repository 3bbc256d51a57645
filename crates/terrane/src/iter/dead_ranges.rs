//! Ranges in which a walk has found nothing but tombstones.
//!
//! A queue that is emptied from its front, or a day of data that was deleted key by key, leaves a
//! long run of tombstones before the first key that is there. The walk that goes through it says
//! so here, and later ones jump over it, until compactions have taken the tombstones away.
//!
//! A range is known as of a sequence number: a reader of that or a later one finds nothing in it,
//! unless something was put into it since. So a put into a known range ends what is known of it.
//! Nothing here is written to storage, and nothing is lost if all of it is forgotten.
//!
//! Invariant: at any time, no reader whose sequence number is visible by then and not below that
//! of a range finds a key in the range. Two things see to it: who puts a key first says up to where
//! the tree is written, then looks for ranges, then makes the write visible; and who enters a range
//! first enters it, then looks whether the tree was written since its sequence number.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use terrane_memtable::Padded;

use crate::types::SeqNo;

/// More ranges than this are hardly ever of use; the oldest is forgotten.
const RANGES_MAX: usize = 32;

/// Longer keys are not worth the memory.
const KEY_BYTES_MAX: usize = 4 << 10;

/// The keys from `start` to before `end`, or to the last of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeadRange {
    pub(crate) start: Vec<u8>,
    pub(crate) end: Option<Vec<u8>>,
    seq: SeqNo,
}

/// The dead ranges of a tree, and up to where the tree is written.
#[derive(Debug, Default)]
pub(crate) struct DeadRanges {
    /// The largest sequence number that was given to a write of the tree. Each of them changes it.
    last_seq: Padded<AtomicU64>,
    /// The number of ranges, for writers that have better things to do than to lock.
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
    /// A write of the tree is given sequence numbers up to `seq`; under the writer's lock.
    #[inline]
    pub(crate) fn set_last_seq(&self, seq: SeqNo) {
        // Sequentially consistent with `count`: see the invariant.
        self.last_seq.store(seq, Ordering::SeqCst);
    }

    /// The largest sequence number that was given to a write of the tree.
    pub(crate) fn last_seq(&self) -> SeqNo {
        self.last_seq.load(Ordering::SeqCst)
    }

    /// `key` is about to be put; its sequence number is known to [`DeadRanges::set_last_seq`].
    #[inline]
    pub(crate) fn before_put(&self, key: &[u8]) {
        if self.count.load(Ordering::SeqCst) > 0 {
            self.forget(|range| range.contains(key));
        }
    }

    /// The range around `key` in which a reader at `seq` finds nothing.
    pub(crate) fn around(&self, key: &[u8], seq: SeqNo) -> Option<DeadRange> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let ranges = self.lock();
        ranges.iter().find(|range| range.seq <= seq && range.contains(key)).cloned()
    }

    /// A reader at `seq`, which is visible, has found nothing from `start` to before `end`, in
    /// places that hold all that was written up to `known`. A memtable that took the place of one
    /// of those meanwhile may hold more.
    pub(crate) fn enter(&self, start: &[u8], end: Option<&[u8]>, known: SeqNo, seq: SeqNo) {
        if start.len().max(end.map_or(0, <[u8]>::len)) > KEY_BYTES_MAX || self.last_seq() > known {
            return;
        }
        let mut range = DeadRange { start: start.to_vec(), end: end.map(<[u8]>::to_vec), seq };
        let mut ranges = self.lock();
        // What goes on where another one ends is one with it, as of the later of the two.
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
            // Whoever writes now may have looked for ranges before this one was there.
            ranges.pop();
            self.count.store(ranges.len(), Ordering::SeqCst);
        }
    }

    /// Forgets all ranges: compactions have taken tombstones away.
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
        assert_eq!(around(&ranges, "c", 10), None, "the whole is known as of the later one");
        ranges.before_put(b"g");
        assert_eq!(around(&ranges, "c", 20), grown);
        ranges.before_put(b"e");
        assert_eq!(around(&ranges, "c", 20), None);
        ranges.enter(b"x", None, 11, 11);
        ranges.clear();
        assert_eq!(around(&ranges, "y", 20), None);
    }

    #[test]
    fn what_was_written_since_is_not_known() {
        let ranges = DeadRanges::default();
        ranges.set_last_seq(12);
        ranges.enter(b"a", None, 11, 11);
        ranges.enter(b"a", None, 11, 12);
        assert_eq!(around(&ranges, "b", 20), None);
    }

    #[test]
    fn ranges_are_few() {
        let ranges = DeadRanges::default();
        for number in 0..200u8 {
            ranges.enter(&[number, 0], Some(&[number, 1]), 5, 5);
        }
        assert_eq!(ranges.lock().len(), RANGES_MAX);
        assert!(ranges.around(&[199, 0], 5).is_some());
    }
}
