//! Deleted ranges, cut into fragments that do not overlap.
//!
//! A range tombstone `[start, end)` at sequence number `s` deletes every version of every key in it
//! that is older than `s`. Tombstones may overlap. To find the tombstones of a key with one search,
//! they are kept as fragments: disjoint ranges, each with the sequence numbers of all tombstones
//! that cover it, newest first.
//!
//! ```text
//! [a, m) @3  +  [f, z) @7   =   [a, f) @3   [f, m) @7,3   [m, z) @7
//! ```
//!
//! Readers see a batch as a whole or not at all. So of the tombstones of one batch that cover a
//! key, only the newest matters to any reader, and only that one is kept; neighbours with equal
//! numbers become one fragment. A batch of n ranges, however nested, adds O(n) fragments and at
//! most one number to each. Nested ranges from n batches become n fragments with up to n numbers.
//! The set does not reduce that further; it counts the memory, so that its owner replaces the
//! memtable when it has grown too large.

#[cfg(all(test, not(any(loom, miri))))] // No unsafe code, and much arithmetic.
mod tests;

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::entry::SeqNo;
use crate::sync::{AtomicUsize, Ordering};

/// A range, and the sequence numbers at which the whole range was deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fragment {
    /// The first key of the range.
    pub start: Box<[u8]>,
    /// The first key after the range; `None` for a range without end.
    pub end: Option<Box<[u8]>>,
    /// Sequence numbers of the tombstones that cover the range, newest first; never empty.
    pub seqs: Vec<SeqNo>,
}

impl Fragment {
    /// Returns true if `key` lies in the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        *self.start <= *key && self.end.as_ref().is_none_or(|end| *key < **end)
    }

    /// Returns the newest tombstone of the fragment at or below `seq`.
    pub fn newest_visible(&self, seq: SeqNo) -> Option<SeqNo> {
        newest_visible(&self.seqs, seq)
    }
}

/// Returns the newest of `seqs`, which descend, at or below `seq`.
fn newest_visible(seqs: &[SeqNo], seq: SeqNo) -> Option<SeqNo> {
    seqs.get(seqs.partition_point(|&deleted| deleted > seq)).copied()
}

/// A growing set of range tombstones that threads may share.
#[derive(Debug, Default)]
pub struct RangeTombstones {
    fragments: RwLock<BTreeMap<Box<[u8]>, FragmentBody>>,
    /// The number of fragments, so that a read of an empty set costs one load.
    count: AtomicUsize,
    /// Estimated bytes of all fragments.
    bytes: AtomicUsize,
}

/// A fragment without its start, which is its key in the map.
#[derive(Debug, Clone)]
struct FragmentBody {
    end: Option<Box<[u8]>>,
    /// Sequence numbers, oldest first, so that the next one is appended.
    rising: Vec<SeqNo>,
}

/// Estimated bytes of a map entry beyond its keys and numbers: its share of a node, lengths,
/// allocation headers.
const FRAGMENT_OVERHEAD_BYTES: usize = 96;

impl RangeTombstones {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of fragments.
    pub fn len(&self) -> usize {
        // Acquire pairs with the release in `insert`: a batch whose writes are visible has its
        // fragments counted.
        self.count.load(Ordering::Acquire)
    }

    /// Returns whether no range was deleted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the estimated bytes of memory.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Deletes `[start, end)` at `seq`. A range that holds no key is ignored.
    ///
    /// The tombstone belongs to a batch whose first sequence number is `first`. No reader reads at
    /// a number at or above `first` but before the end of the batch, and tombstones of the batch
    /// are inserted in ascending order. A tombstone that is not in a batch passes `seq`.
    pub fn insert(&self, start: &[u8], end: Option<&[u8]>, seq: SeqNo, first: SeqNo) {
        if end.is_some_and(|end| end <= start) {
            return;
        }
        let mut map = self.write();
        // Only fragments around the range change.
        let before = map.range::<[u8], _>((Unbounded, Included(start))).next_back();
        let from: Box<[u8]> = before.map_or(start, |(start, _)| start).into();
        let bytes_before = bytes_between(&map, &from, end);
        split_at(&mut map, start);
        if let Some(end) = end {
            split_at(&mut map, end);
        }
        cover(&mut map, start, end, seq, first);
        let bytes_after = bytes_between(&map, &from, end);
        // Relaxed: stored only under the lock of the map, and read as an estimate.
        let bytes = self.bytes.load(Ordering::Relaxed) + bytes_after - bytes_before;
        self.bytes.store(bytes, Ordering::Relaxed);
        // Release pairs with the acquire in `len`.
        self.count.store(map.len(), Ordering::Release);
    }

    /// Adds a fragment of another set.
    pub fn add(&self, fragment: &Fragment) {
        for &seq in fragment.seqs.iter().rev() {
            self.insert(&fragment.start, fragment.end.as_deref(), seq, seq);
        }
    }

    /// Returns the newest tombstone at or below `seq` that covers `key`.
    pub fn newest_covering(&self, key: &[u8], seq: SeqNo) -> Option<SeqNo> {
        if self.is_empty() {
            return None;
        }
        let map = self.read();
        let (_, covered) = map.range::<[u8], _>((Unbounded, Included(key))).next_back()?;
        if covered.ends_by(key) {
            return None;
        }
        covered.newest_visible(seq)
    }

    /// Returns the newest tombstone that deletes a key from `start` to the exclusive `end`; without
    /// `end`, from `start` on.
    pub fn newest_overlapping(&self, start: &[u8], end: Option<&[u8]>) -> Option<SeqNo> {
        if self.is_empty() || end.is_some_and(|end| end <= start) {
            return None;
        }
        let map = self.read();
        let first = map.range::<[u8], _>((Unbounded, Included(start))).next_back();
        let first = first.filter(|(_, covered)| !covered.ends_by(start));
        let later = (Excluded(start), end.map_or(Unbounded, Excluded));
        let all = first.into_iter().chain(map.range::<[u8], _>(later));
        all.filter_map(|(_, covered)| covered.rising.last().copied()).max()
    }

    /// Returns the end of the fragment that covers `key`, or `None` if no fragment does. The same
    /// tombstones delete all keys up to that end, and the deleted range may extend further. The
    /// inner `None` is a range without end.
    pub fn end_of(&self, key: &[u8]) -> Option<Option<Box<[u8]>>> {
        if self.is_empty() {
            return None;
        }
        let map = self.read();
        let (_, covered) = map.range::<[u8], _>((Unbounded, Included(key))).next_back()?;
        (!covered.ends_by(key)).then(|| covered.end.clone())
    }

    /// Returns all fragments in key order.
    pub fn fragments(&self) -> Vec<Fragment> {
        self.fragments_of(<[SeqNo]>::to_vec)
    }

    /// Returns all fragments in key order, each with the numbers that `choose` selects from its
    /// numbers, newest first.
    pub fn fragments_of(&self, choose: impl Fn(&[SeqNo]) -> Vec<SeqNo>) -> Vec<Fragment> {
        if self.is_empty() {
            return Vec::new();
        }
        let map = self.read();
        let chosen = map.iter().map(|(start, covered)| {
            let falling: Vec<SeqNo> = covered.rising.iter().rev().copied().collect();
            let seqs = choose(&falling);
            Fragment { start: start.clone(), end: covered.end.clone(), seqs }
        });
        chosen.filter(|fragment| !fragment.seqs.is_empty()).collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<Box<[u8]>, FragmentBody>> {
        self.fragments.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<Box<[u8]>, FragmentBody>> {
        self.fragments.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FragmentBody {
    fn ends_by(&self, key: &[u8]) -> bool {
        self.end.as_ref().is_some_and(|end| **end <= *key)
    }

    fn bytes(&self, start: &[u8]) -> usize {
        let end = self.end.as_ref().map_or(0, |end| end.len());
        start.len() + end + self.rising.capacity() * size_of::<SeqNo>() + FRAGMENT_OVERHEAD_BYTES
    }

    /// Returns the newest number at or below `seq`.
    fn newest_visible(&self, seq: SeqNo) -> Option<SeqNo> {
        let after = self.rising.partition_point(|&deleted| deleted <= seq);
        after.checked_sub(1).and_then(|place| self.rising.get(place)).copied()
    }

    /// Adds a number of the batch that starts at `first`, replacing an older one of the same batch.
    fn add(&mut self, seq: SeqNo, first: SeqNo) {
        let place = self.rising.partition_point(|&older| older <= seq);
        let before = place.checked_sub(1).and_then(|before| self.rising.get_mut(before));
        match before.filter(|older| **older >= first) {
            Some(older) => *older = seq,
            None => self.rising.insert(place, seq),
        }
    }
}

/// Returns the bytes of the fragments whose start lies between `from` and `end`.
fn bytes_between(
    map: &BTreeMap<Box<[u8]>, FragmentBody>,
    from: &[u8],
    end: Option<&[u8]>,
) -> usize {
    let upper = end.map_or(Unbounded, Included);
    let fragments = map.range::<[u8], _>((Included(from), upper));
    fragments.map(|(start, covered)| covered.bytes(start)).sum()
}

/// Splits the fragment that holds `key` at `key`.
fn split_at(map: &mut BTreeMap<Box<[u8]>, FragmentBody>, key: &[u8]) {
    let Some((_, covered)) = map.range_mut::<[u8], _>((Unbounded, Excluded(key))).next_back()
    else {
        return;
    };
    if covered.ends_by(key) {
        return;
    }
    let upper = FragmentBody { end: covered.end.take(), rising: covered.rising.clone() };
    covered.end = Some(key.into());
    map.insert(key.into(), upper);
}

/// The start and the end of a range that no fragment covers.
type UncoveredRange = (Box<[u8]>, Option<Box<[u8]>>);

/// Adds `seq` to all fragments of `[start, end)`, fills gaps with new ones, and joins neighbours
/// that have become equal.
///
/// No fragment reaches across `start` or `end`.
fn cover(
    map: &mut BTreeMap<Box<[u8]>, FragmentBody>,
    start: &[u8],
    end: Option<&[u8]>,
    seq: SeqNo,
    first: SeqNo,
) {
    for (start, end) in gaps(map, start, end) {
        map.insert(start, FragmentBody { end, rising: Vec::with_capacity(1) });
    }
    let mut joined: Vec<Box<[u8]>> = Vec::new();
    let mut before: Option<&mut FragmentBody> = None;
    let upper = end.map_or(Unbounded, Excluded);
    for (from, covered) in map.range_mut::<[u8], _>((Included(start), upper)) {
        covered.add(seq, first);
        // Without gaps, each fragment starts where the one before ends.
        match &mut before {
            Some(before) if before.rising == covered.rising => {
                before.end = covered.end.take();
                joined.push(from.clone());
            }
            _ => before = Some(covered),
        }
    }
    for start in joined {
        map.remove(&start);
    }
}

/// Returns the parts of `[start, end)` that no fragment covers.
fn gaps(
    map: &BTreeMap<Box<[u8]>, FragmentBody>,
    start: &[u8],
    end: Option<&[u8]>,
) -> Vec<UncoveredRange> {
    let mut gaps: Vec<UncoveredRange> = Vec::new();
    let mut at: Option<&[u8]> = Some(start);
    let upper = end.map_or(Unbounded, Excluded);
    for (from, covered) in map.range::<[u8], _>((Included(start), upper)) {
        if let Some(gap) = at.filter(|gap| *gap < &**from) {
            gaps.push((gap.into(), Some(from.clone())));
        }
        at = covered.end.as_deref();
    }
    if let Some(gap) = at.filter(|gap| end.is_none_or(|end| *gap < end)) {
        gaps.push((gap.into(), end.map(Into::into)));
    }
    gaps
}
