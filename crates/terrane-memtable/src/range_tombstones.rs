//! Deleted ranges, cut into fragments that do not overlap.
//!
//! A range tombstone `[start, end)` at sequence number `s` deletes every version of every key in
//! it that is older than `s`. Tombstones overlap freely; to answer "what deletes this key?" with
//! one search they are kept as fragments: disjoint ranges, each with the sequence numbers of all
//! tombstones that cover it, newest first.
//!
//! ```text
//! [a, m) @3  +  [f, z) @7   =   [a, f) @3   [f, m) @7,3   [m, z) @7
//! ```
//!
//! Readers see all of a batch or nothing of it. So of the tombstones of one batch that cover a key
//! only the newest is ever asked for, by whoever sees the batch, and only that one is kept; and
//! neighbours with the same numbers become one fragment. A batch of n ranges, nested in whatever
//! way, so adds a few times n fragments, and one number to each. Those of n batches that nest are n
//! fragments with up to n numbers, and more than that is not done about it: all of it counts as
//! memory, so that the one who owns the set ends it when it has grown too large.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::entry::SeqNo;
use crate::sync::{AtomicUsize, Ordering};

/// A range, and the sequence numbers at which all of it was deleted.
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
    /// Whether `key` lies in the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        *self.start <= *key && self.end.as_ref().is_none_or(|end| *key < **end)
    }

    /// The newest tombstone here that is not newer than `seq`.
    pub fn newest_visible(&self, seq: SeqNo) -> Option<SeqNo> {
        newest_visible(&self.seqs, seq)
    }
}

/// The newest of `seqs`, which fall, that is not newer than `seq`.
fn newest_visible(seqs: &[SeqNo], seq: SeqNo) -> Option<SeqNo> {
    seqs.get(seqs.partition_point(|&deleted| deleted > seq)).copied()
}

/// A growing set of range tombstones; safe for many threads.
#[derive(Debug, Default)]
pub struct RangeTombstones {
    fragments: RwLock<BTreeMap<Box<[u8]>, FragmentBody>>,
    /// Number of fragments, so that reads of a set without any cost one load.
    count: AtomicUsize,
    /// Estimated bytes of all fragments.
    bytes: AtomicUsize,
}

/// All of a fragment but its start, which is its key in the map.
#[derive(Debug, Clone)]
struct FragmentBody {
    end: Option<Box<[u8]>>,
    /// Oldest first: the next one comes to the end, and moves none of the others.
    rising: Vec<SeqNo>,
}

/// What a map entry costs beyond its keys and numbers: node share, lengths, heads of allocations.
const FRAGMENT_OVERHEAD_BYTES: usize = 96;

impl RangeTombstones {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of fragments.
    pub fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Whether nothing was deleted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Estimated bytes of memory.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Deletes `[start, end)` at `seq`. A range that holds no key is ignored.
    ///
    /// It is part of a batch that began at `first`: no one reads at a number from `first` to before
    /// the end of the batch, and what of it was inserted before has smaller numbers. Alone, it is a
    /// batch that began at `seq`.
    pub fn insert(&self, start: &[u8], end: Option<&[u8]>, seq: SeqNo, first: SeqNo) {
        if end.is_some_and(|end| end <= start) {
            return;
        }
        let mut map = self.write();
        // Only what lies around the range changes.
        let before = map.range::<[u8], _>((Unbounded, Included(start))).next_back();
        let from: Box<[u8]> = before.map_or(start, |(start, _)| start).into();
        let bytes_before = bytes_between(&map, &from, end);
        split_at(&mut map, start);
        if let Some(end) = end {
            split_at(&mut map, end);
        }
        cover(&mut map, start, end, seq, first);
        let bytes_after = bytes_between(&map, &from, end);
        // Only changed with the map locked.
        let bytes = self.bytes.load(Ordering::Relaxed) + bytes_after - bytes_before;
        self.bytes.store(bytes, Ordering::Relaxed);
        // Release pairs with the acquire in `len`.
        self.count.store(map.len(), Ordering::Release);
    }

    /// Deletes a range as another set has it.
    pub fn add(&self, fragment: &Fragment) {
        for &seq in fragment.seqs.iter().rev() {
            self.insert(&fragment.start, fragment.end.as_deref(), seq, seq);
        }
    }

    /// The newest tombstone that deletes `key` and is not newer than `seq`.
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

    /// Up to where the range goes that is deleted from `key` on, at whatever numbers `key` is, and
    /// perhaps further; `None` inside for a range without end. `None` if nothing deletes `key`.
    pub fn end_of(&self, key: &[u8]) -> Option<Option<Box<[u8]>>> {
        if self.is_empty() {
            return None;
        }
        let map = self.read();
        let (_, covered) = map.range::<[u8], _>((Unbounded, Included(key))).next_back()?;
        (!covered.ends_by(key)).then(|| covered.end.clone())
    }

    /// All fragments in key order.
    pub fn fragments(&self) -> Vec<Fragment> {
        self.fragments_of(<[SeqNo]>::to_vec)
    }

    /// All fragments in key order, with those of their numbers, newest first, that `choose` takes.
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

    /// The newest number that is not newer than `seq`.
    fn newest_visible(&self, seq: SeqNo) -> Option<SeqNo> {
        let after = self.rising.partition_point(|&deleted| deleted <= seq);
        after.checked_sub(1).and_then(|place| self.rising.get(place)).copied()
    }

    /// Adds a number of the batch that began at `first`, in the place of an older one of it.
    fn add(&mut self, seq: SeqNo, first: SeqNo) {
        let place = self.rising.partition_point(|&older| older <= seq);
        let before = place.checked_sub(1).and_then(|before| self.rising.get_mut(before));
        match before.filter(|older| **older >= first) {
            Some(older) => *older = seq,
            None => self.rising.insert(place, seq),
        }
    }
}

/// The bytes of the fragments that begin from `from` on and not after `end`.
fn bytes_between(
    map: &BTreeMap<Box<[u8]>, FragmentBody>,
    from: &[u8],
    end: Option<&[u8]>,
) -> usize {
    let upper = end.map_or(Unbounded, Included);
    let fragments = map.range::<[u8], _>((Included(from), upper));
    fragments.map(|(start, covered)| covered.bytes(start)).sum()
}

/// Cuts the fragment that holds `key` into one before it and one from it on.
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

/// Adds `seq` to all fragments of `[start, end)`, fills its gaps with new ones, and makes one of
/// neighbours that have become the same.
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
        // Without gaps, each begins where the one before it ends.
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

/// The parts of `[start, end)` that no fragment covers.
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use terrane_testkit::Rng;

    fn text(tombstones: &RangeTombstones) -> String {
        let show = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let fragments = tombstones.fragments();
        let words = fragments.iter().map(|fragment| {
            let end = fragment.end.as_deref().map_or("∞".into(), show);
            format!("[{},{end})@{:?}", show(&fragment.start), fragment.seqs)
        });
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn overlapping_ranges_become_fragments() {
        let tombstones = RangeTombstones::new();
        tombstones.insert(b"a", Some(b"m"), 3, 3);
        tombstones.insert(b"f", Some(b"z"), 7, 7);
        assert_eq!(text(&tombstones), "[a,f)@[3] [f,m)@[7, 3] [m,z)@[7]");
        tombstones.insert(b"y", None, 9, 9);
        tombstones.insert(b"b", Some(b"b"), 10, 10);
        tombstones.insert(b"c", Some(b"b"), 11, 11);
        assert_eq!(text(&tombstones), "[a,f)@[3] [f,m)@[7, 3] [m,y)@[7] [y,z)@[9, 7] [z,∞)@[9]");
        assert_eq!(tombstones.newest_covering(b"g", 8), Some(7));
        assert_eq!(tombstones.newest_covering(b"g", 6), Some(3));
        assert_eq!(tombstones.newest_covering(b"g", 2), None);
        assert_eq!(tombstones.newest_covering(b"0", 99), None);
        assert_eq!(tombstones.newest_covering(b"zzz", 99), Some(9));
    }

    #[test]
    fn random_ranges_answer_as_a_list_of_ranges() {
        for seed in 0..if cfg!(miri) { 3 } else { 300 } {
            let mut rng = Rng::new(seed);
            let tombstones = RangeTombstones::new();
            let mut oracle: Vec<(u8, Option<u8>, u64)> = Vec::new();
            // A third of them has no batches, a third is one.
            let (mut first, mut readers) = (1, vec![0, 20, 21]);
            for seq in 1..20 {
                if seed % 3 == 0 || seed % 3 == 1 && rng.percent(30) {
                    first = seq;
                    readers.push(seq - 1);
                }
                let start = rng.below(20) as u8;
                let end = (!rng.percent(10)).then(|| rng.below(24) as u8);
                tombstones.insert(&[start], end.as_ref().map(std::slice::from_ref), seq, first);
                let counted: usize =
                    tombstones.read().iter().map(|(start, covered)| covered.bytes(start)).sum();
                assert_eq!(tombstones.bytes(), counted, "seed {seed}");
                oracle.push((start, end, seq));
            }
            for key in 0..24u8 {
                for &seq in &readers {
                    let covers = |&&(start, end, at): &&(u8, Option<u8>, u64)| {
                        start <= key && end.is_none_or(|end| key < end) && at <= seq
                    };
                    let expected = oracle.iter().filter(covers).map(|range| range.2).max();
                    assert_eq!(tombstones.newest_covering(&[key], seq), expected, "seed {seed}");
                    // All up to the end that is told is deleted by the same.
                    if let (Some(deleted), Some(end)) = (expected, tombstones.end_of(&[key])) {
                        let end = end.map_or(24, |end| end[0]);
                        assert!(end > key, "seed {seed}");
                        for other in key..end.min(24) {
                            let newest = tombstones.newest_covering(&[other], seq);
                            assert!(newest.is_some_and(|newest| newest >= deleted), "seed {seed}");
                        }
                    }
                }
            }
            let fragments = tombstones.fragments();
            for pair in fragments.windows(2) {
                assert!(pair[0].end.as_ref().is_some_and(|end| *end <= pair[1].start));
            }
        }
    }

    /// Ranges of one batch, each within the one before, or around it, or across many.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn a_batch_takes_memory_by_its_ranges_however_they_lie() {
        const COUNT: u64 = 6000;
        let key = |number: u64| number.to_be_bytes();
        type Shape = fn(u64) -> (u64, u64);
        let inward: Shape = |number| (number, 2 * COUNT - number);
        let outward: Shape = |number| (COUNT - number, COUNT + 1 + number);
        let across: Shape = |number| match number {
            0..3000 => (number * 2, number * 2 + 1),
            _ => (number - 3000, 6000 + number),
        };
        let random: Shape = |number| {
            let mut rng = Rng::new(number);
            (rng.below(COUNT), rng.below(2 * COUNT))
        };
        for shape in [inward, outward, across, random] {
            let tombstones = RangeTombstones::new();
            for number in 0..COUNT {
                let (start, end) = shape(number);
                tombstones.insert(&key(start), Some(&key(end)), 1 + number, 1);
            }
            assert!(tombstones.len() as u64 <= 2 * COUNT + 1, "{}", tombstones.len());
            assert!(tombstones.bytes() < 3 << 20, "{} bytes", tombstones.bytes());
            assert!(tombstones.fragments().iter().all(|fragment| fragment.seqs.len() == 1));
        }
    }
}
