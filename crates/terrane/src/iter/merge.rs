//! Many sources as one.
//!
//! Sources that have an entry are kept in an array, the one whose entry comes first in front. After
//! a step only that one may have to move, and usually does not: most entries of a tree are in its
//! last level, and the next entry of a source is often the next of all. So a step costs one
//! comparison of heads there, and at most a binary search in the array.

use std::cmp::Ordering;

use terrane_memtable::head_of;

use super::source::Source;
use crate::error::Result;
use crate::types::{EntryKind, MAX_SEQ, SeqNo};
use crate::value::Value;

/// Which way a cursor was sought, and so steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

/// A cursor over all entries of its sources.
#[derive(Debug)]
pub(crate) struct MergeCursor {
    sources: Vec<Source>,
    /// The sources that are on an entry, in the order in which their entries come.
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

    /// A cursor over sources that were sought in `direction` already.
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

    /// The first entry at or after `(key, seq)`; steps go forward from there.
    pub(crate) fn seek(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        // What one source waits for from memory, it need not wait for after the others.
        self.order.clear();
        let mut sources = self.sources.iter_mut();
        let sought = sources
            .try_for_each(|source| source.approach(key))
            .and_then(|()| self.each(Direction::Forward, |source| source.seek(key, seq)));
        if sought.is_err() {
            // Those that were not sought any more.
            self.sources.iter_mut().for_each(Source::forget_approach);
        }
        sought
    }

    /// The last entry of the keys before `key`; steps go backward from there.
    pub(crate) fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.each(Direction::Backward, |source| source.seek_before(key))
    }

    /// Steps over a deleted range that ends before `end`, or has no end: sources without an entry
    /// newer than `deleted` jump there, for all that they hold in between is deleted; others stay,
    /// and are stepped through.
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

    /// Goes forward to the first entry at or after `end`, or past the last one.
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
        // After an error the cursor is on no entry.
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

    /// Puts a source, if it is on an entry, at its place among those from `from` on.
    fn insert(&mut self, source: usize, from: usize) {
        let Some(cursor) = self.sources.get(source).filter(|cursor| cursor.is_valid()) else {
            return;
        };
        let ranked = Ranked { head: head_of(cursor.key()), source };
        let rest = self.order.get(from..).unwrap_or_default();
        let at = from + rest.partition_point(|other| self.compare(other, &ranked).is_lt());
        self.order.insert(at, ranked);
    }

    /// The order in which the entries of two sources come, in the current direction.
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

    /// The next entry; the cursor must have been sought forward.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<()> {
        debug_assert!(self.direction == Direction::Forward, "a step against the direction");
        self.step(Source::next)
    }

    /// The first entry of the next key; the cursor must have been sought forward.
    #[inline]
    pub(crate) fn next_key(&mut self) -> Result<()> {
        debug_assert!(self.direction == Direction::Forward, "a step against the direction");
        while let Some(second) = self.second_of_key() {
            // It holds an older version.
            self.order.remove(1);
            if let Some(Err(error)) = self.sources.get_mut(second).map(Source::next_key) {
                self.order.clear();
                return Err(error);
            }
            self.insert(second, 1);
        }
        self.step(Source::next_key)
    }

    /// The source after the first, if its entry has the same key.
    #[inline]
    fn second_of_key(&self) -> Option<usize> {
        let (first, second) = (self.order.first()?, self.order.get(1)?);
        let is_same = first.head == second.head
            && self.sources.get(first.source)?.key() == self.sources.get(second.source)?.key();
        is_same.then_some(second.source)
    }

    /// The entry before; the cursor must have been sought backward.
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
            // Usually it stays in front.
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
