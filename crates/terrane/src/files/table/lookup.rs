//! Lookups in a table: the filter, the index, one data block.
//!
//! The `prefetch` methods request memory for a later lookup, so that the cache misses of several
//! lookups overlap. They read nothing from storage that the lookup would not read.

use std::convert::identity;

use super::block::{Block, Layout, VersionAt, find_usual};
use super::blocks::BLOCK_HEAD_LINES;
use super::filter::{self, Filter};
use super::index::{Index, Narrowed};
use super::open_table::OpenTable;
use super::reader::Table;
use super::slots::{FILTER_SLOT, INDEX_SLOT, data_slot};
use crate::base::codec::{DecodeError, Decoded};
use crate::base::error::{Error, Result};
use crate::base::expiry::expires_at_micros;
use crate::base::stats::{BlockKind, Counter};
use crate::base::types::{EntryKind, SeqNo};
use crate::files::buffer::{BlockView, pin};
use crate::files::value::Value;

/// A version of a key found in a table.
#[derive(Debug, Clone)]
pub(crate) struct FoundVersion {
    pub(crate) seq: SeqNo,
    pub(crate) kind: EntryKind,
    pub(crate) value: Value,
}

impl FoundVersion {
    /// Returns when the value expires, in microseconds since the Unix epoch. A value with an infinite time
    /// to live has the largest time, and does not expire.
    #[inline]
    pub(crate) fn expires_at_micros(&self) -> Option<u64> {
        let expires_at = (self.kind == EntryKind::Expiring).then(|| expires_at_micros(&self.value));
        expires_at.filter(|expires_at| *expires_at < u64::MAX)
    }
}

impl Table {
    /// Returns true if the table may have a version of `key` at or below `seq`, judging by its
    /// range and its filter.
    #[inline]
    pub(crate) fn may_have(&self, key: &[u8], hash: u64, seq: SeqNo) -> Result<bool> {
        let info = self.info();
        Ok(seq >= info.smallest_seq && *key >= *info.range.start && self.may_contain(hash)?)
    }

    /// Returns the number of the first data block that may have versions of `key`, if the index is in memory.
    pub(crate) fn indexed_block_of(&self, key: &[u8]) -> Result<Option<usize>> {
        if self.opened_already().is_none() || !self.is_resident(INDEX_SLOT) {
            return Ok(None);
        }
        self.block_of(key).map(Some)
    }

    /// Returns true if the filter passes the key with this hash. Without a filter every key passes.
    #[inline]
    pub(crate) fn may_contain(&self, hash: u64) -> Result<bool> {
        let opened = self.opened()?;
        if opened.footer.filter.is_none() {
            return Ok(true);
        }
        self.counters().add(Counter::FilterProbes, 1);
        let may = self.with_filter(opened, |filter| filter.may_contain(hash))?;
        if !may {
            self.counters().add(Counter::FilterNegatives, 1);
        }
        Ok(may)
    }

    #[inline]
    fn with_filter<T>(&self, opened: &OpenTable, read: impl FnOnce(Filter<'_>) -> T) -> Result<T> {
        let (handle, kind) = (opened.footer.filter, BlockKind::Filter);
        self.file
            .with_part(opened, FILTER_SLOT, handle, kind, |bytes| Filter::parse(bytes).map(read))?
            .map_err(|error| self.file.corrupt(handle.offset, "filter", &error.to_string()))
    }

    /// Returns the newest version of `key` at or below `seq`. Does not consult the filter or range
    /// tombstones.
    #[inline(always)]
    pub(crate) fn get(&self, key: &[u8], seq: SeqNo) -> Result<Option<FoundVersion>> {
        let opened = self.opened()?;
        if opened.index.len() == 0 {
            return Ok(None);
        }
        let number = self.with_index_of(opened, |index| search(opened, index, key))?;
        self.get_in(opened, (number, None), key, seq)
    }

    /// Does the same as [`Table::get`], but starts at the result of an earlier [`Table::block_of`], and at
    /// that of [`Table::prefetch_entry`] if it was called.
    pub(crate) fn get_from(
        &self,
        place: (usize, Option<usize>),
        key: &[u8],
        seq: SeqNo,
    ) -> Result<Option<FoundVersion>> {
        let opened = self.opened()?;
        if opened.index.len() == 0 { Ok(None) } else { self.get_in(opened, place, key, seq) }
    }

    #[inline]
    fn get_in(
        &self,
        opened: &OpenTable,
        (mut number, mut low): (usize, Option<usize>),
        key: &[u8],
        seq: SeqNo,
    ) -> Result<Option<FoundVersion>> {
        self.note_read();
        loop {
            // Also counts the use of the index that led to the block.
            self.counters().add_get_block(self.file.level());
            let mut found = None;
            // The version is not returned through the closure, because it would be copied at each level.
            let resident = self.with_resident(opened, number, |block| {
                find(block, low, key, seq).map(|version| found = version)
            });
            let searched = match resident {
                Some(searched) => searched,
                None => self.find_missing(opened, number, key, seq)?.map(|version| found = version),
            };
            if let Err(error) = searched {
                return Err(self.damaged_block(number, &error));
            }
            // Versions of one key may continue in the next block.
            if found.is_some() || !self.continues_in(number + 1, key)? {
                return Ok(found);
            }
            (number, low) = (number + 1, None);
        }
    }

    #[cold]
    fn damaged_block(&self, number: usize, error: &DecodeError) -> Error {
        let offset = self.block_offset(number);
        offset.map_or_else(identity, |at| self.file.corrupt(at, "data block", &error.to_string()))
    }

    /// Returns the number of the first data block that may have versions of `key`.
    pub(crate) fn block_of(&self, key: &[u8]) -> Result<usize> {
        self.with_index(|opened, index| search(opened, index, key))
    }

    /// Returns the fraction of the table's data between two keys, accurate to a block at each end.
    pub(crate) fn share_of(&self, (start, end): (&[u8], Option<&[u8]>)) -> Result<f64> {
        let own = &self.info().range;
        let after = |key: &[u8]| own.end.as_deref().is_some_and(|end| end <= key);
        if after(start) || end.is_some_and(|end| end <= start || end <= &*own.start) {
            return Ok(0.0);
        }
        let (starts, ends) = (start <= &*own.start, end.is_none_or(after));
        if starts && ends {
            return Ok(1.0);
        }
        self.with_index(|opened, index| {
            let blocks = opened.index.len();
            let offset = |block: usize| index.block(block).start as f64;
            let all = blocks.checked_sub(1).map_or(0.0, |last| index.block(last).end as f64);
            let from = if starts { 0.0 } else { offset(search(opened, index, start)) };
            let to = end.filter(|_| !ends).map_or(all, |end| offset(search(opened, index, end)));
            (to - from).max(0.0) / all.max(1.0)
        })
    }

    /// Returns a key that is above all keys of the blocks before block `number` and not above the
    /// first key of that block. If the block begins with versions of the previous block's last key,
    /// returns that key.
    pub(crate) fn separator(&self, number: usize) -> Result<Vec<u8>> {
        self.with_index(|opened, index| {
            if number < opened.index.len() { index.separator(number) } else { Vec::new() }
        })
    }

    /// Returns true if block `number` exists and may begin with versions of `key`, which is the
    /// last key of the previous block.
    pub(crate) fn continues_in(&self, number: usize, key: &[u8]) -> Result<bool> {
        let opened = self.opened()?;
        if !opened.index.continues(number) {
            return Ok(false);
        }
        self.with_index_of(opened, |index| index.continues_in(number, key))
    }

    /// Prefetches the part of the index that a search for `key` reads.
    pub(super) fn prefetch_index(&self, key: &[u8]) -> Result<Narrowed> {
        self.with_index(|opened, index| {
            index.narrow(key, |first, count| opened.slots.prefetch(data_slot(first), count))
        })
    }

    /// Does the same as [`Table::block_of`], and prefetches the start of that block if it is in
    /// memory.
    pub(crate) fn prefetch_block(&self, key: &[u8]) -> Result<usize> {
        let number = self.block_of(key)?;
        self.prefetch_start(number);
        Ok(number)
    }

    /// Does the same as [`Table::prefetch_block`], after [`Table::prefetch_index`] for the same key.
    pub(super) fn prefetch_narrowed(&self, key: &[u8], narrowed: Narrowed) -> Result<usize> {
        self.with_index(|opened, index| {
            let number = index.search_narrowed(key, narrowed);
            opened.slots.prefetch_block(data_slot(number), BLOCK_HEAD_LINES);
            number
        })
    }

    /// Prefetches the start of data block `number`, if it is in memory.
    #[inline]
    pub(crate) fn prefetch_start(&self, number: usize) {
        // Errors are left to the later read of the block.
        if let Some(opened) = self.opened_already() {
            opened.slots.prefetch_block(data_slot(number), BLOCK_HEAD_LINES);
        }
    }

    /// Prefetches the line of the filter for the key of this hash, if the filter is in memory.
    pub(crate) fn prefetch_filter(&self, hash: u64) {
        let Some(opened) = self.opened_already() else { return };
        let line = filter::line_within(opened.footer.filter.len as usize, hash);
        opened.slots.prefetch_bytes(FILTER_SLOT, line);
    }

    /// Prefetches the first entry at or after `key` in block `number`, if the block is in memory. Returns its
    /// place for [`Table::get_from`].
    pub(crate) fn prefetch_entry(&self, number: usize, key: &[u8]) -> Result<Option<usize>> {
        let opened = self.opened()?;
        let guard = pin();
        let Some(block) = opened.slots.peek(data_slot(number), &guard) else { return Ok(None) };
        // The following lookup reports damage.
        let layout = Layout::parse(&block).ok();
        Ok(layout.map(|layout| Block::new(&block, &layout).prefetch(key)))
    }
}

/// Returns the first block that may have versions of `key`, and prefetches its slot.
#[inline]
pub(super) fn search(opened: &OpenTable, index: &Index<'_>, key: &[u8]) -> usize {
    index.search_with(key, |first, count| opened.slots.prefetch(data_slot(first), count))
}

/// Returns the newest version of `key` in a block at or below `seq`. `low` is as in [`Block::find`].
#[inline]
pub(super) fn find(
    block: BlockView<'_>,
    low: Option<usize>,
    key: &[u8],
    seq: SeqNo,
) -> Decoded<Option<FoundVersion>> {
    let found = match find_usual(&block, low, key, seq) {
        Some(found) => found,
        None => find_any(block, low, key, seq)?,
    };
    Ok(found.map(|VersionAt { seq, kind, value }| FoundVersion {
        seq,
        kind,
        value: Value::of_block(block, value),
    }))
}

/// Does the same for any block.
#[inline(never)]
fn find_any(
    block: BlockView<'_>,
    low: Option<usize>,
    key: &[u8],
    seq: SeqNo,
) -> Decoded<Option<VersionAt>> {
    let layout = Layout::parse(&block)?;
    let entry = Block::new(&block, &layout).find(low, key, seq)?;
    Ok(entry.map(|entry| {
        let value = entry.value_start..entry.value_start + entry.value.len();
        VersionAt { seq: entry.seq, kind: entry.kind, value }
    }))
}
