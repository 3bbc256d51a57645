//! Reads a table from front to back for a job that reads all of it once.
//!
//! It reads many blocks at a time and bypasses the block cache: the inputs of a compaction are about
//! to be replaced, and must not evict blocks that readers use. For a mapped table it requests pages
//! ahead from the operating system, and does not cache decompressed blocks either. It verifies the
//! checksum of every block, even if a reader has verified it before, because the new table gets new
//! checksums, which would otherwise hide damage.

use std::sync::Arc;

use super::index::Index;
use super::open_table::{Contents, OpenTable};
use super::reader::Table;
use super::stored::{self, TRAILER_BYTES};
use super::warming::Heat;
use crate::block_ref::{BlockRef, HeapBlock};
use crate::error::Result;
use crate::stats::Counter;

/// A position in a table with a window of read-ahead bytes.
#[derive(Debug)]
pub(super) struct ReadAhead {
    chunk_bytes: usize,
    /// The index, which bypasses the cache as well; empty for a mapped table.
    index: Vec<u8>,
    /// Bytes of the file from `window_start` on.
    window: Vec<u8>,
    window_start: u64,
    /// The end of the part of a mapped table that was requested.
    requested_to: u64,
    /// Counts the blocks that are in the cache.
    heat: Option<Arc<Heat>>,
}

impl ReadAhead {
    /// Reads about `chunk_bytes` at a time.
    pub(super) fn new(chunk_bytes: usize, heat: Option<Arc<Heat>>) -> Self {
        let (index, window) = (Vec::new(), Vec::new());
        Self { chunk_bytes, index, window, window_start: 0, requested_to: 0, heat }
    }

    /// Returns a data block, verified and decompressed. Reading blocks in ascending order is cheap.
    pub(super) fn block(&mut self, table: &Table, number: usize) -> Result<BlockRef> {
        let opened = table.opened()?;
        match &opened.contents {
            Contents::Mapped { map, .. } => {
                let place = table.block_place(number)?;
                self.ask(map, place.start);
                let len = place.end.saturating_sub(place.start);
                table.counters().add(Counter::CompactionBytesRead, len);
                let stored = map.get(place.start as usize..place.end as usize).unwrap_or_default();
                let (bytes, is_packed) = verify(table, stored, place.start)?;
                if is_packed {
                    return heap_block(table, bytes, is_packed, place.start);
                }
                let start = place.start as usize;
                Ok(BlockRef::Mapped(map.clone(), start..start + bytes.len()))
            }
            Contents::File(..) => {
                if self.index.is_empty() {
                    self.index = read_index(table, opened)?;
                }
                let index = Index::new(&self.index, &opened.index);
                let place = index.block(number);
                if let Some(heat) = &self.heat {
                    heat.note(table, place.start);
                }
                let data_end = index.block(opened.index.len().saturating_sub(1)).end;
                self.fill(table, opened, place.clone(), data_end)?;
                let start = (place.start - self.window_start) as usize;
                let len = place.end.saturating_sub(place.start) as usize;
                let stored = self.window.get(start..start + len).unwrap_or_default();
                let (bytes, is_packed) = verify(table, stored, place.start)?;
                heap_block(table, bytes, is_packed, place.start)
            }
        }
    }

    /// Fills the window with the bytes at `place` and with the bytes after them, up to one chunk.
    fn fill(
        &mut self,
        table: &Table,
        opened: &OpenTable,
        place: std::ops::Range<u64>,
        data_end: u64,
    ) -> Result<()> {
        let window_end = self.window_start + self.window.len() as u64;
        if place.start >= self.window_start && place.end <= window_end {
            return Ok(());
        }
        let chunk_end = place.start.saturating_add(self.chunk_bytes as u64).min(data_end);
        let len = chunk_end.max(place.end).saturating_sub(place.start) as usize;
        // The old window is released first, so that there are never two windows in memory.
        self.window = Vec::new();
        self.window_start = place.start;
        self.window = table.file.read(&opened.contents, place.start, len)?.into_owned();
        table.counters().add(Counter::CompactionBytesRead, len as u64);
        Ok(())
    }

    /// Requests the chunk after the one that contains `offset` from the operating system.
    fn ask(&mut self, map: &crate::storage::Mapping, offset: u64) {
        let chunk = self.chunk_bytes as u64;
        if offset + chunk / 2 < self.requested_to {
            return;
        }
        let from = self.requested_to.max(offset);
        self.requested_to = from + chunk;
        map.will_need(from as usize, self.chunk_bytes);
    }
}

fn verify<'a>(table: &Table, stored: &'a [u8], offset: u64) -> Result<(&'a [u8], bool)> {
    stored::verify(stored, table.id(), offset, table.path(), "data block")
}

fn heap_block(table: &Table, bytes: &[u8], is_packed: bool, offset: u64) -> Result<BlockRef> {
    let bytes = if is_packed {
        stored::decompress(bytes, table.path(), offset, "data block")?
    } else {
        bytes.to_vec()
    };
    Ok(BlockRef::Heap(HeapBlock::new(bytes, table.ledger())))
}

/// Returns the index as stored in the file. Its layout was checked when the table was opened.
fn read_index(table: &Table, opened: &OpenTable) -> Result<Vec<u8>> {
    let handle = opened.footer.index;
    let len = handle.len as usize + TRAILER_BYTES;
    let mut stored = table.file.read(&opened.contents, handle.offset, len)?.into_owned();
    table.counters().add(Counter::CompactionBytesRead, len as u64);
    let (bytes, _) = stored::verify(&stored, table.id(), handle.offset, table.path(), "index")?;
    let len = bytes.len();
    stored.truncate(len);
    Ok(stored)
}
