//! Reads a table from front to back for a job that reads all of it once.
//!
//! It reads many blocks at a time and bypasses the buffer manager: the inputs of a compaction are
//! about to be replaced, and must not evict blocks that readers use. It verifies the checksum of
//! every block, because the new table gets new checksums, which would hide damage.

use std::sync::Arc;

use super::index::Index;
use super::open_table::OpenTable;
use super::reader::Table;
use super::sequential_file::SequentialFile;
use super::stored::{self, TRAILER_BYTES};
use super::warming::Heat;
use crate::base::error::Result;
use crate::base::stats::Counter;
use crate::files::buffer::BlockRef;

/// A position in a table with a window of read-ahead bytes.
#[derive(Debug)]
pub(super) struct ReadAhead {
    chunk_bytes: usize,
    /// The file, once the first block was read.
    file: Option<SequentialFile>,
    /// The index, which bypasses the buffer manager as well.
    index: Vec<u8>,
    /// Bytes of the file from `window_start` on.
    window: Vec<u8>,
    window_start: u64,
    /// Counts the blocks that are in memory.
    heat: Option<Arc<Heat>>,
}

impl ReadAhead {
    /// Reads about `chunk_bytes` at a time.
    pub(super) fn new(chunk_bytes: usize, heat: Option<Arc<Heat>>) -> Self {
        let (file, index, window) = (None, Vec::new(), Vec::new());
        Self { chunk_bytes, file, index, window, window_start: 0, heat }
    }

    /// Returns a data block, verified and decompressed. Reading blocks in ascending order is cheap.
    pub(super) fn block(&mut self, table: &Table, number: usize) -> Result<BlockRef> {
        let opened = table.opened()?;
        if self.index.is_empty() {
            self.index = read_index(table, opened)?;
        }
        let index = Index::new(&self.index, &opened.index);
        let place = index.block(number);
        if let Some(heat) = &self.heat {
            heat.note(table, number);
        }
        let data_end = index.block(opened.index.len().saturating_sub(1)).end;
        self.fill(table, opened, place.clone(), data_end)?;
        let start = (place.start - self.window_start) as usize;
        let len = place.end.saturating_sub(place.start) as usize;
        let stored = self.window.get(start..start + len).unwrap_or_default();
        let verified = stored::verify(stored, table.id(), place.start, table.path(), "data block");
        let (bytes, packing) = table.file.environment.noting_damage(verified)?;
        table.standalone_block(bytes, packing, place.start)
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
        table.file.check_place(place.start, len)?;
        if len > 2 * self.chunk_bytes || self.window.capacity() > 2 * self.chunk_bytes {
            // A block larger than a chunk gets memory of its own. The old window is released first, so
            // that there are never two windows in memory.
            self.window = Vec::new();
        }
        self.window.resize(len, 0);
        self.window_start = place.start;
        let file = self.file.get_or_insert_with(|| SequentialFile::open(&table.file));
        let read = file.read_into(&table.file, opened, place.start, &mut self.window);
        if let Err(error) = read {
            self.window.clear();
            return Err(error);
        }
        table.counters().add(Counter::CompactionBytesRead, len as u64);
        Ok(())
    }
}

/// Returns the index as stored in the file. Its layout was checked when the table was opened.
fn read_index(table: &Table, opened: &OpenTable) -> Result<Vec<u8>> {
    let handle = opened.footer.index;
    let len = handle.len as usize + TRAILER_BYTES;
    let mut stored = table.file.read(&opened.reader, handle.offset, len)?;
    table.counters().add(Counter::CompactionBytesRead, len as u64);
    let (bytes, _) = stored::verify(&stored, table.id(), handle.offset, table.path(), "index")?;
    let len = bytes.len();
    stored.truncate(len);
    Ok(stored)
}
