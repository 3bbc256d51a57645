//! A set of keys, as disjoint half-open ranges.

use std::collections::BTreeMap;
use std::ops::Bound::{Included, Unbounded};

/// Disjoint ranges of keys.
#[derive(Debug, Clone, Default)]
pub(super) struct KeyRanges(
    /// The exclusive end of each range by its start; `None` is a range without end.
    BTreeMap<Box<[u8]>, Option<Box<[u8]>>>,
);

impl KeyRanges {
    /// Adds the keys from `start` to the exclusive `end`; without `end`, from `start` on.
    pub(super) fn add(&mut self, start: &[u8], end: Option<&[u8]>) {
        if end.is_some_and(|end| end <= start) {
            return;
        }
        let mut merged: (Box<[u8]>, Option<Box<[u8]>>) = (start.into(), end.map(Into::into));
        // Merges the ranges that touch the new one into it, starting with the last range that
        // begins at or before its end.
        loop {
            let before = match &merged.1 {
                Some(end) => self.0.range::<[u8], _>((Unbounded, Included(&**end))),
                None => self.0.range::<[u8], _>(..),
            };
            let last = before.map(|(start, _)| start).next_back().cloned();
            let touches = |found: &[u8]| {
                let end = self.0.get(found).and_then(Option::as_ref);
                self.0.contains_key(found) && end.is_none_or(|end| *end >= merged.0)
            };
            let Some(found) = last.filter(|found| touches(found)) else { break };
            let after = self.0.remove(&found).flatten();
            let is_endless = after.is_none() || merged.1.is_none();
            merged.1 = if is_endless { None } else { merged.1.max(after) };
            merged.0 = merged.0.min(found);
        }
        self.0.insert(merged.0, merged.1);
    }

    /// Returns whether the set has a key.
    pub(super) fn contains(&self, key: &[u8]) -> bool {
        self.end_around(key).is_some()
    }

    /// Returns the end of the range that contains a key; the inner `None` is a range without end.
    pub(super) fn end_around(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        let (_, end) = self.0.range::<[u8], _>((Unbounded, Included(key))).next_back()?;
        let has_key = end.as_ref().is_none_or(|end| *key < **end);
        has_key.then_some(end.as_deref())
    }

    /// Returns whether the set has a key from `start` to the exclusive `end`.
    pub(super) fn overlaps(&self, start: &[u8], end: Option<&[u8]>) -> bool {
        if end.is_some_and(|end| end <= start) {
            return false;
        }
        self.contains(start)
            || self
                .0
                .range::<[u8], _>((Included(start), Unbounded))
                .next()
                .is_some_and(|(first, _)| end.is_none_or(|end| **first < *end))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the ranges in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.0.iter().map(|(start, end)| (&**start, end.as_deref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use terrane_testkit::Rng;

    #[test]
    fn ranges_have_the_keys_that_were_added() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let (mut ranges, mut model) = (KeyRanges::default(), [false; 40]);
            for _ in 0..rng.below(12) {
                let (start, end) = (rng.below(32), rng.below(32));
                let end = (!rng.percent(5)).then_some(end);
                ranges.add(&[start as u8], end.map(|end| [end as u8]).as_ref().map(|end| &end[..]));
                let end = end.unwrap_or(40).max(start);
                model[start as usize..end as usize].fill(true);
            }
            for key in 0..40_u8 {
                assert_eq!(ranges.contains(&[key]), model[usize::from(key)], "seed {seed}, {key}");
                for end in key + 1..40 {
                    let expected = model[usize::from(key)..usize::from(end)].contains(&true);
                    assert_eq!(ranges.overlaps(&[key], Some(&[end])), expected, "seed {seed}");
                }
            }
            let all: Vec<_> = ranges.iter().collect();
            let apart =
                |pair: &[(&[u8], Option<&[u8]>)]| pair[0].1.is_some_and(|end| end < pair[1].0);
            assert!(all.windows(2).all(apart), "seed {seed}: {all:?}");
        }
    }
}
