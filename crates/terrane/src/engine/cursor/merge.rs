//! The merge of several sources.
//!
//! Sources that are positioned on an entry are kept in an array sorted by that entry. After a step
//! only the first source may have to move, and usually it does not: most entries of a tree are in
//! its last level, so the next entry of the first source is usually the next entry overall. A step
//! then costs one comparison of heads; otherwise it also costs one for each source that now comes
//! before the moved one.

use std::cell::Cell;
use std::cmp::Ordering;

use super::source::Source;
use crate::base::error::Result;
use crate::base::types::{EntryKind, MAX_SEQ, SeqNo};
use crate::files::table::{Stretch, read_for_seek};
use crate::files::value::Value;

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
    /// Whether the last step left a run the first source: its next entries probably come before those of the
    /// other sources. A seek leaves it as it is.
    is_in_stretch: bool,
}

/// A source with the head of its current key.
#[derive(Debug, Clone, Copy)]
struct Ranked {
    head: u64,
    source: usize,
}

/// The maximum number of sources whose memory a thread keeps for its next cursor.
const SPARE_SOURCES_MAX: usize = 16;

thread_local! {
    /// The memory of a dropped cursor, kept because short scans would otherwise spend much of their
    /// time on allocation.
    static SPARE: Cell<(Vec<Source>, Vec<Ranked>)> = const { Cell::new((Vec::new(), Vec::new())) };
}

impl MergeCursor {
    pub(crate) fn new(sources: impl IntoIterator<Item = Source>) -> Self {
        let mut merge = Self::empty();
        sources.into_iter().for_each(|source| merge.add(source));
        merge
    }

    /// Creates a cursor without sources.
    pub(crate) fn empty() -> Self {
        let (sources, order) = SPARE.try_with(Cell::take).unwrap_or_default();
        Self { sources, order, direction: Direction::Forward, is_in_stretch: false }
    }

    /// Adds a source. The cursor must not be positioned yet.
    // Inlined, so that the large source is built in place.
    #[inline(always)]
    pub(crate) fn add(&mut self, source: Source) {
        self.sources.push(source);
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
        if let Some(source) = self.current() { source.key() } else { &[] }
    }

    /// Returns true if the cursor is on a value that was written at or before `seq` and does not
    /// expire.
    #[inline(always)]
    pub(crate) fn is_lasting_at(&self, seq: SeqNo) -> bool {
        self.current().is_some_and(|source| source.is_lasting_at(seq))
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
        if let Some(source) = self.current() { source.value() } else { &[] }
    }

    pub(crate) fn pin_value(&self) -> Value {
        self.current().map_or_else(Value::empty, Source::pin_value)
    }

    /// Calls `visit` with the pointers of separated values among the `count` entries after the current one in its block,
    /// if it comes from a table. Entries of other sources may be between them.
    pub(crate) fn separated_after(&self, count: usize, visit: impl FnMut(Value)) {
        if let Some(Source::Run(cursor)) = self.current()
            && let Some(entries) = cursor.entries()
        {
            entries.separated_after(count, visit);
        }
    }

    pub(crate) fn seek_first(&mut self) -> Result<()> {
        self.each(Direction::Forward, Source::seek_first)
    }

    pub(crate) fn seek_last(&mut self) -> Result<()> {
        self.each(Direction::Backward, Source::seek_last)
    }

    /// Moves to the first entry at or after `(key, seq)`; subsequent steps go forward.
    pub(crate) fn seek(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        self.order.clear();
        let sought = self
            .prefetch(key)
            .and_then(|()| self.each(Direction::Forward, |source| source.seek(key, seq)));
        if sought.is_err() {
            // Clear the prefetched positions of sources that were not reached.
            self.sources.iter_mut().for_each(Source::forget_prefetch);
        }
        sought
    }

    /// Prefetches for all sources before the first of them is positioned, so that their cache
    /// misses overlap: first index parts, then block starts, then entries.
    fn prefetch(&mut self, key: &[u8]) -> Result<()> {
        if self.sources.len() < 2 {
            return Ok(());
        }
        self.sources.iter_mut().try_for_each(|source| source.prefetch_index(key))?;
        self.sources.iter_mut().try_for_each(|source| source.prefetch_block(key))?;
        read_for_seek(self.sources.iter_mut().filter_map(Source::table_cursor));
        self.sources.iter_mut().try_for_each(|source| source.prefetch_entry(key))
    }

    /// Moves to the last entry whose key is before `key`; subsequent steps go backward.
    pub(crate) fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.each(Direction::Backward, |source| source.seek_before(key))
    }

    /// Skips a deleted range up to the exclusive `end`, or up to the last key if `end` is `None`. A
    /// source with no entry newer than `deleted` seeks to `end` because all of its entries in
    /// between are deleted. The caller steps through the other sources, which stay where they are.
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
        let ranked = Ranked { head: cursor.head(), source };
        let rest = self.order.get(from..).unwrap_or_default();
        let at = from + rest.partition_point(|other| self.compare(other, &ranked).is_lt());
        self.order.insert(at, ranked);
    }

    /// Returns true if the entry of `a` comes before that of `b` in the current direction.
    #[inline]
    fn is_before(&self, a: &Ranked, b: &Ranked) -> bool {
        match self.direction {
            Direction::Forward if a.head != b.head => a.head < b.head,
            _ => self.compare(a, b).is_lt(),
        }
    }

    /// Compares the entries of two sources in the current direction.
    #[inline(never)]
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
    #[inline(always)]
    pub(crate) fn next_key(&mut self) -> Result<()> {
        debug_assert!(self.direction == Direction::Forward, "a step against the direction");
        if let [first, second, ..] = self.order[..]
            && first.head == second.head
        {
            self.skip_older_versions()?;
        }
        // Written out, because the compiler would not inline `step` here, in the inner loop of scans of several
        // sources.
        let Some(source) = self.first_source() else { return Ok(()) };
        if let Err(error) = source.next_key() {
            self.order.clear();
            return Err(error);
        }
        self.reorder();
        Ok(())
    }

    /// Returns true if [`MergeCursor::stretch`] will probably succeed.
    #[inline]
    pub(crate) fn is_in_stretch(&self) -> bool {
        self.is_in_stretch
    }

    /// Decodes the next entries of the block of the first source as a stretch: below `below` and before the entries
    /// of all other sources, by the first eight bytes of the keys, and values that were written at or before `seq`
    /// and do not expire. Returns false, and stays where it is, if the next entry is not one.
    ///
    /// The head of the first source in `order` is then that of an earlier entry, but still below the others.
    #[inline]
    pub(crate) fn stretch(&mut self, stretch: &mut Stretch, below: u64, seq: SeqNo) -> bool {
        let Some(first) = self.order.first() else { return false };
        let below = self.order.get(1).map_or(below, |second| below.min(second.head));
        match self.sources.get_mut(first.source) {
            Some(Source::Run(run)) => run.stretch(stretch, below, seq),
            _ => false,
        }
    }

    /// Moves `count` entries back after [`MergeCursor::stretch`].
    pub(crate) fn step_back(&mut self, count: usize) -> Result<()> {
        let moved = match self.first_source() {
            Some(Source::Run(run)) => run.step_back(count),
            _ => Ok(()),
        };
        if moved.is_err() {
            self.order.clear();
        }
        moved
    }

    #[inline]
    fn first_source(&mut self) -> Option<&mut Source> {
        self.sources.get_mut(self.order.first()?.source)
    }

    /// Moves the sources other than the first to the next key.
    #[inline(never)]
    fn skip_older_versions(&mut self) -> Result<()> {
        while let Some(second) = self.second_of_key() {
            // The second source is on an older version of the key.
            self.order.remove(1);
            if let Some(Err(error)) = self.sources.get_mut(second).map(Source::next_key) {
                self.order.clear();
                return Err(error);
            }
            self.insert(second, 1);
        }
        Ok(())
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

    fn step(&mut self, step: impl FnOnce(&mut Source) -> Result<()>) -> Result<()> {
        let Some(source) = self.first_source() else { return Ok(()) };
        if let Err(error) = step(source) {
            self.order.clear();
            return Err(error);
        }
        self.reorder();
        Ok(())
    }

    /// Moves the first source, which has made a step, to its place in the order, or removes it if
    /// it is exhausted. The search is linear, because the source usually stays among the first.
    #[inline(always)]
    fn reorder(&mut self) {
        let Some(&first) = self.order.first() else { return };
        let source = self.sources.get(first.source).filter(|source| source.is_valid());
        let Some(source) = source else {
            self.order.remove(0);
            return;
        };
        let is_run = matches!(source, Source::Run(_));
        let moved = Ranked { head: source.head(), ..first };
        let mut at = 0;
        while let Some(&next) = self.order.get(at + 1)
            && !self.is_before(&moved, &next)
        {
            self.order[at] = next;
            at += 1;
        }
        self.order[at] = moved;
        self.is_in_stretch = at == 0 && is_run;
    }
}

impl Drop for MergeCursor {
    /// Keeps the memory for the next cursor of this thread.
    fn drop(&mut self) {
        if self.sources.capacity() <= SPARE_SOURCES_MAX {
            self.sources.clear();
            self.order.clear();
            let spare = (std::mem::take(&mut self.sources), std::mem::take(&mut self.order));
            // If the thread is exiting, the memory is freed instead.
            let _ = SPARE.try_with(|cell| cell.set(spare));
        }
    }
}
