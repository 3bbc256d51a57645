//! Reads a table from front to back for a job that will read all of it once.
//!
//! Blocks come in pieces of many at a time and past the block cache: what a compaction reads is
//! about to be replaced, and must not drive out what readers come back to. Of a mapped table the
//! pieces are asked for before they are needed, and compressed blocks are not cached either. The
//! checksum of every block is verified, also of those that readers have verified before: what a
//! compaction writes has checksums of its own, which must not hide damage.

use std::sync::Arc;

use super::index::Index;
use super::reader::{Contents, Opened, Table};
use super::stored::{self, TRAILER_BYTES};
use super::warming::Heat;
use crate::block_ref::{BlockRef, HeapBlock};
use crate::error::Result;
use crate::stats::Counter;

/// A position in a table, and what lies ahead of it.
#[derive(Debug)]
pub(super) struct ReadAhead {
    piece_bytes: usize,
    /// The index, which stays out of the cache as well; empty for a mapped table.
    index: Vec<u8>,
    /// Bytes of the file from `window_start` on.
    window: Vec<u8>,
    window_start: u64,
    /// Up to here a mapped table was asked for.
    asked_to: u64,
    /// Is told of blocks that the cache has.
    heat: Option<Arc<Heat>>,
}

impl ReadAhead {
    /// Reads about `piece_bytes` at a time.
    pub(super) fn new(piece_bytes: usize, heat: Option<Arc<Heat>>) -> Self {
        let (index, window) = (Vec::new(), Vec::new());
        Self { piece_bytes, index, window, window_start: 0, asked_to: 0, heat }
    }

    /// A data block, verified and decompressed. Blocks are cheap in rising order.
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
            Contents::File(_) => {
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

    /// Has the window hold all of `place`, and what follows up to a piece.
    fn fill(
        &mut self,
        table: &Table,
        opened: &Opened,
        place: std::ops::Range<u64>,
        data_end: u64,
    ) -> Result<()> {
        let window_end = self.window_start + self.window.len() as u64;
        if place.start >= self.window_start && place.end <= window_end {
            return Ok(());
        }
        let piece_end = place.start.saturating_add(self.piece_bytes as u64).min(data_end);
        let len = piece_end.max(place.end).saturating_sub(place.start) as usize;
        // Given back first: there are never two pieces.
        self.window = Vec::new();
        self.window_start = place.start;
        self.window = table.read(&opened.contents, place.start, len)?.into_owned();
        table.counters().add(Counter::CompactionBytesRead, len as u64);
        Ok(())
    }

    /// Asks the operating system for the piece after the one that `offset` is in.
    fn ask(&mut self, map: &crate::storage::Mapping, offset: u64) {
        let piece = self.piece_bytes as u64;
        if offset + piece / 2 < self.asked_to {
            return;
        }
        let from = self.asked_to.max(offset);
        self.asked_to = from + piece;
        map.will_need(from as usize, self.piece_bytes);
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

/// The index as it is in the file; its layout was checked when the table was opened.
fn read_index(table: &Table, opened: &Opened) -> Result<Vec<u8>> {
    let handle = opened.footer.index;
    let len = handle.len as usize + TRAILER_BYTES;
    let mut stored = table.read(&opened.contents, handle.offset, len)?.into_owned();
    table.counters().add(Counter::CompactionBytesRead, len as u64);
    let (bytes, _) = stored::verify(&stored, table.id(), handle.offset, table.path(), "index")?;
    let len = bytes.len();
    stored.truncate(len);
    Ok(stored)
}
