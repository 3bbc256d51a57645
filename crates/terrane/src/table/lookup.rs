//! Lookups in a table: the filter, the index, one data block.
//!
//! The `prefetch` methods request memory for a later lookup, so that the cache misses of several
//! lookups overlap. They read nothing from storage that the lookup would not read.

use terrane_memtable::prefetch_lines;

use super::block::{Block, Layout};
use super::blocks::BLOCK_HEAD_LINES;
use super::index::Index;
use super::open_table::Contents;
use super::reader::Table;
use crate::codec::DecodeError;
use crate::error::Result;
use crate::stats::{BlockKind, Counter};
use crate::types::{EntryKind, SeqNo};
use crate::value::Value;

/// A version of a key found in a table.
#[derive(Debug, Clone)]
pub(crate) struct FoundVersion {
    pub(crate) seq: SeqNo,
    pub(crate) kind: EntryKind,
    pub(crate) value: Value,
}

impl Table {
    /// Returns true if the filter passes the key with this hash. Without a filter every key passes.
    #[inline]
    pub(crate) fn may_contain(&self, hash: u64) -> Result<bool> {
        let opened = self.opened()?;
        if opened.footer.filter.is_none() {
            return Ok(true);
        }
        self.counters().add(Counter::FilterProbes, 1);
        let filter = self.file.part(opened, opened.footer.filter, BlockKind::Filter)?;
        let may = self.file.parse_filter(&filter, opened.footer.filter)?.may_contain(hash);
        if !may {
            self.counters().add(Counter::FilterNegatives, 1);
        }
        Ok(may)
    }

    /// Returns the newest version of `key` at or below `seq`. Does not consult the filter or range
    /// tombstones.
    #[inline]
    pub(crate) fn get(&self, key: &[u8], seq: SeqNo) -> Result<Option<FoundVersion>> {
        self.get_from(None, key, seq)
    }

    /// Does the same as [`Table::get`], but starts at the result of an earlier [`Table::block_of`],
    /// if there is one.
    pub(crate) fn get_from(
        &self,
        block: Option<usize>,
        key: &[u8],
        seq: SeqNo,
    ) -> Result<Option<FoundVersion>> {
        let opened = self.opened()?;
        if opened.index.len() == 0 {
            return Ok(None);
        }
        self.record_read();
        let index_bytes = self.file.part(opened, opened.footer.index, BlockKind::Index)?;
        let index = Index::new(&index_bytes, &opened.index);
        let mut number = block.unwrap_or_else(|| index.search(key));
        loop {
            self.counters().add_get_block(self.file.level());
            let block = self.file.data_block(opened, &index, number)?;
            let place = index.block(number);
            let corrupt = |error: DecodeError| {
                self.file.corrupt(place.start, "data block", &error.to_string())
            };
            let layout = Layout::parse(&block).map_err(corrupt)?;
            if let Some(entry) = Block::new(&block, &layout).find(key, seq).map_err(corrupt)? {
                let value = entry.value_start..entry.value_start + entry.value.len();
                let value = Value::of_block(&block, value);
                return Ok(Some(FoundVersion { seq: entry.seq, kind: entry.kind, value }));
            }
            // Versions of one key may continue in the next block.
            if !index.continues_in(number + 1, key) {
                return Ok(None);
            }
            number += 1;
        }
    }

    /// Returns the number of the first data block that may have versions of `key`.
    pub(crate) fn block_of(&self, key: &[u8]) -> Result<usize> {
        self.with_index(|_, index| Ok(index.search(key)))
    }

    /// Returns a key that is above all keys of the blocks before block `number` and not above the
    /// first key of that block. If the block begins with versions of the previous block's last key,
    /// returns that key.
    pub(crate) fn separator(&self, number: usize) -> Result<Vec<u8>> {
        self.with_index(|opened, index| {
            Ok(if number < opened.index.len() { index.separator(number) } else { Vec::new() })
        })
    }

    /// Returns true if block `number` exists and may begin with versions of `key`, which is the
    /// last key of the previous block.
    pub(crate) fn continues_in(&self, number: usize, key: &[u8]) -> Result<bool> {
        self.with_index(|_, index| Ok(index.continues_in(number, key)))
    }

    /// Does the same as [`Table::block_of`], and prefetches the start of that block.
    pub(crate) fn prefetch_block(&self, key: &[u8]) -> Result<usize> {
        self.with_index(|opened, index| {
            let number = index.search(key);
            if let Contents::Mapped { map, .. } = &opened.contents {
                let start = index.block(number).start as usize;
                prefetch_lines(map.get(start..).unwrap_or_default(), BLOCK_HEAD_LINES);
            }
            Ok(number)
        })
    }

    /// Prefetches the start of data block `number`, if it exists.
    #[inline(never)]
    pub(crate) fn prefetch_start(&self, number: usize) {
        // An error is left to the read of the block.
        let Ok(opened) = self.opened() else { return };
        if let (Contents::Mapped { map, .. }, true) =
            (&opened.contents, number < opened.index.len())
            && let Ok(start) = self.block_offset(number)
        {
            prefetch_lines(map.get(start as usize..).unwrap_or_default(), BLOCK_HEAD_LINES);
        }
    }

    /// Prefetches the line of the filter for the key of this hash.
    pub(crate) fn prefetch_filter(&self, hash: u64) -> Result<()> {
        let opened = self.opened()?;
        if let (Contents::Mapped { .. }, false) = (&opened.contents, opened.footer.filter.is_none())
        {
            let filter = self.file.part(opened, opened.footer.filter, BlockKind::Filter)?;
            self.file.parse_filter(&filter, opened.footer.filter)?.prefetch(hash);
        }
        Ok(())
    }

    /// Prefetches the first entry at or after `(key, seq)` in block `number`. Does so only for
    /// mapped tables.
    pub(crate) fn prefetch_entry(&self, number: usize, key: &[u8], seq: SeqNo) -> Result<()> {
        let opened = self.opened()?;
        // A table may have only range tombstones, and then it has no blocks.
        if let (Contents::Mapped { .. }, true) = (&opened.contents, number < opened.index.len()) {
            let block = self.block(number)?;
            // The lookup that follows reports damage.
            if let Ok(layout) = Layout::parse(&block) {
                Block::new(&block, &layout).prefetch(key, seq);
            }
        }
        Ok(())
    }
}
