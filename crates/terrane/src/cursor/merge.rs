//! The merge of several sources.
//!
//! Sources that are positioned on an entry are kept in an array sorted by that entry. After a step
//! only the first source may have to move, and usually it does not: most entries of a tree are in
//! its last level, so the next entry of the first source is usually the next entry overall. A step
//! then costs one comparison of heads, and at most a binary search in the array.

use std::cmp::Ordering;

use terrane_memtable::head_of;

use super::source::Source;
use crate::error::Result;
use crate::types::{EntryKind, MAX_SEQ, SeqNo};
use crate::value::Value;

/// The direction in which a cursor was positioned and therefore steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

/// A cursor over all entries of its sources.
#[derive(Debug)]
pub(crate) struct MergeCursor {
    sources: Vec<Source>,
    /// The sources that are on an entry, in the order of their entries.
    order: Vec<Ranked>,
    direction: Direction,
}

/// A source with the head of its current key.
#[derive(Debug, Clone, Copy)]
struct Ranked {
    head: u64,
    source: usize,
}

impl MergeCursor {
    pub(crate) fn new(sources: Vec<Source>) -> Self {
        let order = Vec::with_capacity(sources.len());
        Self { sources, order, direction: Direction::Forward }
    }

    /// Creates a cursor over sources that are already positioned in `direction`.
    pub(crate) fn positioned(sources: Vec<Source>, direction: Direction) -> Self {
        let mut merge = Self { direction, ..Self::new(sources) };
        merge.rank();
        merge
    }

    pub(super) fn direction(&self) -> Direction {
        self.direction
    }

    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        !self.order.is_empty()
    }

    #[inline]
    fn current(&self) -> Option<&Source> {
        self.sources.get(self.order.first()?.source)
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        self.current().map_or(&[], Source::key)
    }

    #[inline]
    pub(crate) fn seq(&self) -> SeqNo {
        self.current().map_or(0, Source::seq)
    }

    #[inline]
    pub(crate) fn kind(&self) -> EntryKind {
        self.current().map_or(EntryKind::Tombstone, Source::kind)
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        self.current().map_or(&[], Source::value)
    }

    pub(crate) fn pin_value(&self) -> Value {
        self.current().map_or_else(Value::empty, Source::pin_value)
    }

    pub(crate) fn seek_first(&mut self) -> Result<()> {
        self.each(Direction::Forward, Source::seek_first)
    }

    pub(crate) fn seek_last(&mut self) -> Result<()> {
        self.each(Direction::Backward, Source::seek_last)
    }

    /// Moves to the first entry at or after `(key, seq)`; subsequent steps go forward.
    pub(crate) fn seek(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        // Prefetch for all sources first, so that their cache misses overlap.
        self.order.clear();
        let mut sources = self.sources.iter_mut();
        let sought = sources
            .try_for_each(|source| source.prefetch(key))
            .and_then(|()| self.each(Direction::Forward, |source| source.seek(key, seq)));
        if sought.is_err() {
            // Clear the prefetched positions of sources that were not reached.
            self.sources.iter_mut().for_each(Source::forget_prefetch);
        }
        sought
    }

    /// Moves to the last entry of the keys before `key`; subsequent steps go backward.
    pub(crate) fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.each(Direction::Backward, |source| source.seek_before(key))
    }

    /// Skips a deleted range that ends before `end`, or is unbounded. A source with no entry newer
    /// than `deleted` seeks to `end` because all of its entries in between are deleted. The other
    /// sources stay, and the caller steps through them.
    pub(crate) fn skip_deleted(&mut self, end: Option<&[u8]>, deleted: SeqNo) -> Result<()> {
        for source in &mut self.sources {
            if !source.is_valid() || source.largest_seq() >= deleted {
                continue;
            }
            match end {
                Some(end) if source.key() < end => source.seek(end, MAX_SEQ)?,
                Some(_) => {}
                None => {
                    source.seek_last()?;
                    source.next()?;
                }
            }
        }
        self.rank();
        Ok(())
    }

    /// Moves forward to the first entry at or after `end`, or past the last one.
    pub(crate) fn skip_to(&mut self, end: Option<&[u8]>) -> Result<()> {
        match end {
            Some(end) => self.seek(end, MAX_SEQ),
            None => {
                self.order.clear();
                Ok(())
            }
        }
    }

    fn each(
        &mut self,
        direction: Direction,
        mut step: impl FnMut(&mut Source) -> Result<()>,
    ) -> Result<()> {
        self.direction = direction;
        // After an error the cursor is invalid.
        self.order.clear();
        for source in &mut self.sources {
            step(source)?;
        }
        self.rank();
        Ok(())
    }

    fn rank(&mut self) {
        self.order.clear();
        for source in 0..self.sources.len() {
            self.insert(source, 0);
        }
    }

    /// Inserts a source into `order` at or after index `from`, unless it is exhausted.
    fn insert(&mut self, source: usize, from: usize) {
        let Some(cursor) = self.sources.get(source).filter(|cursor| cursor.is_valid()) else {
            return;
        };
        let ranked = Ranked { head: head_of(cursor.key()), source };
        let rest = self.order.get(from..).unwrap_or_default();
        let at = from + rest.partition_point(|other| self.compare(other, &ranked).is_lt());
        self.order.insert(at, ranked);
    }

    /// Compares the entries of two sources in the current direction.
    #[inline]
    fn compare(&self, a: &Ranked, b: &Ranked) -> Ordering {
        let forward = a.head.cmp(&b.head).then_with(|| {
            let (Some(a), Some(b)) = (self.sources.get(a.source), self.sources.get(b.source))
            else {
                return Ordering::Equal;
            };
            a.key().cmp(b.key()).then_with(|| b.seq().cmp(&a.seq()))
        });
        match self.direction {
            Direction::Forward => forward,
            Direction::Backward => forward.reverse(),
        }
    }

    /// Moves to the next entry; the cursor must have been positioned forward.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<()> {
        debug_assert!(self.direction == Direction::Forward, "a step against the direction");
        self.step(Source::next)
    }

    /// Moves to the first entry of the next key; the cursor must have been positioned forward.
    #[inline]
    pub(crate) fn next_key(&mut self) -> Result<()> {
        debug_assert!(self.direction == Direction::Forward, "a step against the direction");
        while let Some(second) = self.second_of_key() {
            // The second source is on an older version of the key.
            self.order.remove(1);
            if let Some(Err(error)) = self.sources.get_mut(second).map(Source::next_key) {
                self.order.clear();
                return Err(error);
            }
            self.insert(second, 1);
        }
        self.step(Source::next_key)
    }

    /// Returns the second source in order if its entry has the same key as the first.
    #[inline]
    fn second_of_key(&self) -> Option<usize> {
        let (first, second) = (self.order.first()?, self.order.get(1)?);
        let is_same = first.head == second.head
            && self.sources.get(first.source)?.key() == self.sources.get(second.source)?.key();
        is_same.then_some(second.source)
    }

    /// Moves to the previous entry; the cursor must have been positioned backward.
    pub(crate) fn previous(&mut self) -> Result<()> {
        debug_assert!(self.direction == Direction::Backward, "a step against the direction");
        self.step(Source::previous)
    }

    #[inline]
    fn step(&mut self, step: impl FnOnce(&mut Source) -> Result<()>) -> Result<()> {
        let Some(first) = self.order.first_mut() else { return Ok(()) };
        let index = first.source;
        let Some(source) = self.sources.get_mut(index) else { return Ok(()) };
        if let Err(error) = step(source) {
            self.order.clear();
            return Err(error);
        }
        if source.is_valid() {
            first.head = head_of(source.key());
            let first = *first;
            // Usually the source stays first.
            let stays = self.order.get(1).is_none_or(|next| self.compare(&first, next).is_lt());
            if stays {
                return Ok(());
            }
        }
        self.order.remove(0);
        self.insert(index, 0);
        Ok(())
    }
}
