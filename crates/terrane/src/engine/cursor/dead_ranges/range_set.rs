//! The dead ranges of a tree, ordered by key.
//!
//! A keyspace may hold many queues, each with dead keys at its front, so a tree remembers a range
//! for each of very many places. Ranges that overlap or touch are joined. The ranges are therefore
//! disjoint, and one search finds the range of a key.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};

use super::{DeadRange, Sight};

/// The maximum size of the keys of all ranges, and an estimate of the memory that a range needs in
/// addition. Beyond it, the oldest range is dropped.
const BYTES_MAX: usize = 512 << 10;
const RANGE_BYTES: usize = 128;

/// Disjoint ranges.
#[derive(Debug, Default)]
pub(super) struct RangeSet {
    by_start: BTreeMap<Vec<u8>, Tail>,
    /// The starts of the ranges, in the order in which these were added.
    by_age: BTreeMap<u64, Vec<u8>>,
    bytes: usize,
    added: u64,
}

/// A range without its start.
#[derive(Debug)]
struct Tail {
    end: Option<Vec<u8>>,
    since: Sight,
    age: u64,
}

fn bytes_of(start: &[u8], end: Option<&Vec<u8>>) -> usize {
    // The start is stored twice.
    RANGE_BYTES + 2 * start.len() + end.map_or(0, Vec::len)
}

impl RangeSet {
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.by_start.len()
    }

    /// Returns the first start, and the end of the last range.
    pub(super) fn hull(&self) -> Option<(&[u8], Option<&[u8]>)> {
        let (start, _) = self.by_start.first_key_value()?;
        let (_, last) = self.by_start.last_key_value()?;
        Some((start, last.end.as_deref()))
    }

    /// Returns the range that contains a key.
    pub(super) fn around(&self, key: &[u8]) -> Option<DeadRange> {
        let (start, tail) = self.before_or_at(key)?;
        let contains = tail.end.as_ref().is_none_or(|end| key < &end[..]);
        let range = || DeadRange { start: start.clone(), end: tail.end.clone(), since: tail.since };
        contains.then(range)
    }

    /// Returns the last range that starts at or before a key.
    fn before_or_at(&self, key: &[u8]) -> Option<(&Vec<u8>, &Tail)> {
        self.by_start.range::<[u8], _>((Unbounded, Included(key))).next_back()
    }

    /// Adds a range, joined with the ranges that it overlaps or touches. The result is valid as of
    /// the largest sequence number and the latest state of all of them.
    pub(super) fn add(&mut self, mut range: DeadRange) {
        let reaches =
            |tail: &Tail, start: &[u8]| tail.end.as_ref().is_none_or(|end| &end[..] >= start);
        if let Some((start, tail)) = self.before_or_at(&range.start)
            && reaches(tail, &range.start)
        {
            let start = start.clone();
            self.join(&mut range, &start);
        }
        while let Some((start, _)) = self
            .by_start
            .range::<[u8], _>((Excluded(&range.start[..]), Unbounded))
            .next()
            .filter(|(start, _)| range.end.as_ref().is_none_or(|end| *start <= end))
        {
            let start = start.clone();
            self.join(&mut range, &start);
        }
        self.bytes += bytes_of(&range.start, range.end.as_ref());
        self.added += 1;
        self.by_age.insert(self.added, range.start.clone());
        let tail = Tail { end: range.end, since: range.since, age: self.added };
        self.by_start.insert(range.start, tail);
        while self.bytes > BYTES_MAX
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.remove(&oldest);
        }
    }

    /// Removes the range that starts at `start`, and extends `range` by it.
    fn join(&mut self, range: &mut DeadRange, start: &[u8]) {
        let Some(tail) = self.remove(start) else { return };
        if start < &range.start[..] {
            range.start = start.to_vec();
        }
        range.end = match (range.end.take(), tail.end) {
            (Some(a), Some(b)) => Some(a.max(b)),
            _ => None,
        };
        range.since.seq = range.since.seq.max(tail.since.seq);
        range.since.state = range.since.state.max(tail.since.state);
    }

    fn remove(&mut self, start: &[u8]) -> Option<Tail> {
        let tail = self.by_start.remove(start)?;
        self.by_age.remove(&tail.age);
        self.bytes -= bytes_of(start, tail.end.as_ref());
        Some(tail)
    }

    /// Removes the range that contains a key.
    pub(super) fn remove_around(&mut self, key: &[u8]) {
        if let Some(range) = self.around(key) {
            self.remove(&range.start);
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: &str, end: &str, seq: u64) -> DeadRange {
        let end = (!end.is_empty()).then(|| end.as_bytes().to_vec());
        DeadRange { start: start.as_bytes().to_vec(), end, since: Sight { seq, state: seq } }
    }

    #[test]
    fn ranges_that_touch_or_overlap_become_one() {
        let mut set = RangeSet::default();
        for (start, end, seq) in [("b", "d", 1), ("f", "h", 5), ("k", "m", 2), ("d", "e", 3)] {
            set.add(range(start, end, seq));
        }
        assert_eq!(set.around(b"b"), Some(range("b", "e", 3)));
        assert_eq!(set.around(b"e"), None);
        set.add(range("e", "g", 4));
        assert_eq!((set.around(b"c"), set.len()), (Some(range("b", "h", 5)), 2));
        assert_eq!(set.hull(), Some((&b"b"[..], Some(&b"m"[..]))));
        set.add(range("j", "", 1));
        assert_eq!((set.around(b"z"), set.len()), (Some(range("j", "", 2)), 2));
        set.remove_around(b"l");
        assert_eq!((set.around(b"z"), set.around(b"b")), (None, Some(range("b", "h", 5))));
    }

    /// Thirty-two ranges were kept, so that each pop of a hundred queues stepped over all tombstones
    /// at the front of its queue.
    #[test]
    fn thousands_of_ranges_are_kept_within_a_bound_and_the_oldest_are_dropped() {
        let mut set = RangeSet::default();
        let key = |number: u32| format!("{number:06}");
        (0..10_000).for_each(|number| set.add(range(&key(number), &(key(number) + "x"), 1)));
        assert!(set.len() > 2_000 && set.bytes <= BYTES_MAX, "{} ranges", set.len());
        assert_eq!(set.len(), set.by_age.len());
        let kept = |number| set.around(key(number).as_bytes()).is_some();
        assert!(kept(9_999) && !kept(0));
    }
}
