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
        self.seqs.iter().copied().find(|&deleted| deleted <= seq)
    }
}

/// A growing set of range tombstones; safe for many threads.
#[derive(Debug, Default)]
pub struct RangeTombstones {
    fragments: RwLock<BTreeMap<Box<[u8]>, Covered>>,
    /// Number of fragments, so that reads of a set without any cost one load.
    count: AtomicUsize,
    /// Estimated bytes of all fragments.
    bytes: AtomicUsize,
}

/// All of a fragment but its start, which is its key in the map.
#[derive(Debug, Clone)]
struct Covered {
    end: Option<Box<[u8]>>,
    seqs: Vec<SeqNo>,
}

/// What a map entry costs beyond its keys: node share, lengths, capacity of the list.
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
    pub fn insert(&self, start: &[u8], end: Option<&[u8]>, seq: SeqNo) {
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
        cover(&mut map, start, end, seq);
        let added = bytes_between(&map, &from, end).saturating_sub(bytes_before);
        self.bytes.fetch_add(added, Ordering::Relaxed);
        // Release pairs with the acquire in `len`.
        self.count.store(map.len(), Ordering::Release);
    }

    /// The newest tombstone that deletes `key` and is not newer than `seq`.
    pub fn newest_covering(&self, key: &[u8], seq: SeqNo) -> Option<SeqNo> {
        if self.is_empty() {
            return None;
        }
        let map = self.read();
        let (_, covered) = map.range::<[u8], _>((Unbounded, Included(key))).next_back()?;
        if covered.end.as_ref().is_some_and(|end| **end <= *key) {
            return None;
        }
        covered.seqs.iter().copied().find(|&deleted| deleted <= seq)
    }

    /// The fragment that holds `key`.
    pub fn at(&self, key: &[u8]) -> Option<Fragment> {
        if self.is_empty() {
            return None;
        }
        let map = self.read();
        let (start, covered) = map.range::<[u8], _>((Unbounded, Included(key))).next_back()?;
        let fragment = covered.with(start);
        fragment.contains(key).then_some(fragment)
    }

    /// All fragments in key order.
    pub fn fragments(&self) -> Vec<Fragment> {
        if self.is_empty() {
            return Vec::new();
        }
        self.read().iter().map(|(start, covered)| covered.with(start)).collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<Box<[u8]>, Covered>> {
        self.fragments.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<Box<[u8]>, Covered>> {
        self.fragments.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Covered {
    fn with(&self, start: &[u8]) -> Fragment {
        Fragment { start: start.into(), end: self.end.clone(), seqs: self.seqs.clone() }
    }

    fn bytes(&self, start: &[u8]) -> usize {
        let end = self.end.as_ref().map_or(0, |end| end.len());
        start.len() + end + self.seqs.len() * size_of::<SeqNo>() + FRAGMENT_OVERHEAD_BYTES
    }
}

/// The bytes of the fragments that begin from `from` on and not after `end`.
fn bytes_between(map: &BTreeMap<Box<[u8]>, Covered>, from: &[u8], end: Option<&[u8]>) -> usize {
    let upper = end.map_or(Unbounded, Included);
    let fragments = map.range::<[u8], _>((Included(from), upper));
    fragments.map(|(start, covered)| covered.bytes(start)).sum()
}

/// Cuts the fragment that holds `key` into one before it and one from it on.
fn split_at(map: &mut BTreeMap<Box<[u8]>, Covered>, key: &[u8]) {
    let Some((_, covered)) = map.range_mut::<[u8], _>((Unbounded, Excluded(key))).next_back()
    else {
        return;
    };
    if covered.end.as_ref().is_some_and(|end| **end <= *key) {
        return;
    }
    let upper = Covered { end: covered.end.take(), seqs: covered.seqs.clone() };
    covered.end = Some(key.into());
    map.insert(key.into(), upper);
}

/// The start and the end of a range that no fragment covers.
type Gap = (Box<[u8]>, Option<Box<[u8]>>);

/// Adds `seq` to all fragments of `[start, end)`, and fills its gaps with new ones.
///
/// No fragment reaches across `start` or `end`.
fn cover(map: &mut BTreeMap<Box<[u8]>, Covered>, start: &[u8], end: Option<&[u8]>, seq: SeqNo) {
    let mut gaps: Vec<Gap> = Vec::new();
    let mut at: Option<Box<[u8]>> = Some(start.into());
    let upper = end.map_or(Unbounded, Excluded);
    for (from, covered) in map.range_mut::<[u8], _>((Included(start), upper)) {
        if let Some(gap) = at.take().filter(|gap| gap < from) {
            gaps.push((gap, Some(from.clone())));
        }
        let place = covered.seqs.partition_point(|&newer| newer > seq);
        covered.seqs.insert(place, seq);
        at.clone_from(&covered.end);
    }
    if let Some(gap) = at.filter(|gap| end.is_none_or(|end| **gap < *end)) {
        gaps.push((gap, end.map(Into::into)));
    }
    for (start, end) in gaps {
        map.insert(start, Covered { end, seqs: vec![seq] });
    }
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
        tombstones.insert(b"a", Some(b"m"), 3);
        tombstones.insert(b"f", Some(b"z"), 7);
        assert_eq!(text(&tombstones), "[a,f)@[3] [f,m)@[7, 3] [m,z)@[7]");
        tombstones.insert(b"y", None, 9);
        tombstones.insert(b"b", Some(b"b"), 10);
        tombstones.insert(b"c", Some(b"b"), 11);
        assert_eq!(text(&tombstones), "[a,f)@[3] [f,m)@[7, 3] [m,y)@[7] [y,z)@[9, 7] [z,∞)@[9]");
        assert_eq!(tombstones.newest_covering(b"g", 8), Some(7));
        assert_eq!(tombstones.newest_covering(b"g", 6), Some(3));
        assert_eq!(tombstones.newest_covering(b"g", 2), None);
        assert_eq!(tombstones.newest_covering(b"0", 99), None);
        assert_eq!(tombstones.newest_covering(b"zzz", 99), Some(9));
    }

    #[test]
    fn random_ranges_answer_as_a_list_of_ranges() {
        for seed in 0..if cfg!(miri) { 3 } else { 200 } {
            let mut rng = Rng::new(seed);
            let tombstones = RangeTombstones::new();
            let mut oracle: Vec<(u8, Option<u8>, u64)> = Vec::new();
            for seq in 1..20 {
                let start = rng.below(20) as u8;
                let end = (!rng.percent(10)).then(|| rng.below(24) as u8);
                tombstones.insert(&[start], end.as_ref().map(std::slice::from_ref), seq);
                let counted: usize =
                    tombstones.read().iter().map(|(start, covered)| covered.bytes(start)).sum();
                assert_eq!(tombstones.bytes(), counted, "seed {seed}");
                oracle.push((start, end, seq));
            }
            for key in 0..24u8 {
                for seq in 0..21 {
                    let covers = |&&(start, end, at): &&(u8, Option<u8>, u64)| {
                        start <= key && end.is_none_or(|end| key < end) && at <= seq
                    };
                    let expected = oracle.iter().filter(covers).map(|range| range.2).max();
                    assert_eq!(tombstones.newest_covering(&[key], seq), expected, "seed {seed}");
                }
            }
            let fragments = tombstones.fragments();
            for pair in fragments.windows(2) {
                assert!(pair[0].end.as_ref().is_some_and(|end| *end <= pair[1].start));
            }
        }
    }
}
