//! A cursor over a table.

mod planned;

use std::sync::Arc;

use super::block::{BlockCursor, Stretch};
use super::index::Narrowed;
use super::read_ahead::ReadAhead;
use super::reader::Table;
use super::scan_window::{ScanPace, ScanWindow, Toward, Upcoming};
use super::warming::Heat;
use crate::base::codec::{DecodeError, Decoded};
use crate::base::error::{Error, Result};
use crate::base::types::{EntryKind, SeqNo};
use crate::files::buffer::BlockRef;
use crate::files::value::Value;

/// The number of entries before the end of a block at which a cursor prefetches the next block.
const BEFORE_NEXT_BLOCK: usize = 6;

/// A cursor over the entries of a table, in both directions.
#[derive(Debug)]
pub(crate) struct TableCursor {
    table: Arc<Table>,
    /// The number of the block of `entries`.
    block: usize,
    entries: BlockCursor,
    prefetched: Prefetched,
    /// The block whose read was begun for the next seek.
    loading: Option<(usize, Upcoming<BlockRef>)>,
    /// Reads blocks ahead, for a scan.
    window: Option<Box<ScanWindow>>,
    /// The direction of the scan.
    toward: Toward,
    /// Reads blocks ahead, for a cursor that reads the whole table once.
    ahead: Option<Box<ReadAhead>>,
}

/// The prefetched state for the next seek.
#[derive(Debug, Clone, Copy, Default)]
enum Prefetched {
    #[default]
    Nothing,
    /// The part of the index to which the search was narrowed.
    Index(Narrowed),
    /// The start of the block with this number.
    Block(usize),
    /// The entry at which the search in the block of `entries` begins.
    Entry(usize),
}

impl TableCursor {
    pub(crate) fn new(table: Arc<Table>) -> Self {
        let (entries, prefetched) = (BlockCursor::default(), Prefetched::Nothing);
        let (loading, window, ahead) = (None, None, None);
        Self { table, block: 0, entries, prefetched, loading, window, toward: Toward::End, ahead }
    }

    /// Switches to reading the table once from front to back, about `chunk_bytes` at a time, bypassing
    /// the cache. Reports to `heat` which blocks are cached.
    pub(crate) fn read_ahead(&mut self, chunk_bytes: usize, heat: Option<Arc<Heat>>) {
        self.ahead = Some(Box::new(ReadAhead::new(chunk_bytes, heat)));
    }

    /// Returns the pace of read-ahead at the end of this table, for the next one.
    pub(crate) fn take_scan_pace(&mut self) -> Option<ScanPace> {
        let window = self.window.as_mut()?;
        window.take_pace(self.table.block_count().ok()?)
    }

    /// Continues a scan that read the table before to its end, unless this table has no blocks.
    pub(crate) fn continue_scan(&mut self, pace: &mut Option<ScanPace>) {
        if self.table.block_count().is_ok_and(|count| count > 0)
            && let Some(pace) = pace.take()
        {
            // If this fails, the scan begins to read ahead anew.
            self.window = ScanWindow::continuing(&self.table, pace).ok().map(Box::new);
        }
    }

    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        self.entries.is_valid()
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        self.entries.key()
    }

    #[inline]
    pub(crate) fn seq(&self) -> SeqNo {
        self.entries.seq()
    }

    #[inline]
    pub(crate) fn kind(&self) -> EntryKind {
        self.entries.kind()
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        self.entries.value()
    }

    #[inline]
    pub(crate) fn pin_value(&self) -> Value {
        self.entries.pin_value()
    }

    /// Returns the first eight bytes of the key, as in [`terrane_memtable::head_of`].
    #[inline]
    pub(crate) fn head(&self) -> u64 {
        self.entries.head()
    }

    pub(crate) fn seek_first(&mut self) -> Result<()> {
        self.forget_prefetch();
        self.toward = Toward::End;
        if self.load(0)? {
            self.step(BlockCursor::seek_first)?;
        }
        Ok(())
    }

    pub(crate) fn seek_last(&mut self) -> Result<()> {
        self.forget_prefetch();
        self.toward = Toward::Start;
        let count = self.table.block_count()?;
        if count > 0 && self.load(count - 1)? {
            self.step(BlockCursor::seek_last)?;
        }
        Ok(())
    }

    /// Prefetches the part of the index that a seek to `key` reads.
    pub(crate) fn prefetch_index(&mut self, key: &[u8]) -> Result<()> {
        // Cleared first: after an error the block of an earlier key must not remain.
        self.forget_prefetch();
        self.prefetched = Prefetched::Index(self.table.prefetch_index(key)?);
        Ok(())
    }

    /// Prefetches the start of the block of `key`, if [`TableCursor::prefetch_index`] was called with
    /// the same key, and records the block for the next seek.
    pub(crate) fn prefetch_block(&mut self, key: &[u8]) -> Result<()> {
        if let Prefetched::Index(narrowed) = std::mem::take(&mut self.prefetched) {
            let block = self.table.prefetch_narrowed(key, narrowed)?;
            self.prefetched = Prefetched::Block(block);
        }
        Ok(())
    }

    /// Prefetches the first entry at or after `key`, and records it for the next seek, if
    /// [`TableCursor::prefetch_block`] was called with the same key.
    pub(crate) fn prefetch_entry(&mut self, key: &[u8]) -> Result<()> {
        if let Prefetched::Block(block) = std::mem::take(&mut self.prefetched)
            && self.load(block)?
        {
            self.prefetched = Prefetched::Entry(self.entries.narrow(key));
        }
        Ok(())
    }

    /// Returns true if something was prefetched for the next seek.
    pub(crate) fn is_prefetched(&self) -> bool {
        !matches!(self.prefetched, Prefetched::Nothing)
    }

    /// Discards a prefetched position: the next seek is for another key.
    pub(crate) fn forget_prefetch(&mut self) {
        self.prefetched = Prefetched::Nothing;
        self.loading = None;
        if let Some(window) = &mut self.window {
            window.forget_start();
        }
    }

    /// Moves to the first entry at or after `(key, seq)`.
    pub(crate) fn seek(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        self.toward = Toward::End;
        self.find(key, seq)
    }

    fn find(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        if self.ahead.is_none() {
            self.table.note_read();
        }
        let mut block = match std::mem::take(&mut self.prefetched) {
            Prefetched::Block(block) => block,
            Prefetched::Nothing | Prefetched::Index(_) => self.table.block_of(key)?,
            Prefetched::Entry(low) => {
                self.step(|entries| entries.seek_from(low, key, seq))?;
                if self.is_valid() {
                    self.prefetch_next_block();
                    return Ok(());
                }
                self.block + 1
            }
        };
        // Versions of the key may continue in the following blocks.
        while self.load(block)? {
            self.step(|entries| entries.seek(key, seq))?;
            if self.is_valid() {
                self.prefetch_next_block();
                break;
            }
            block += 1;
        }
        Ok(())
    }

    /// After a jump to an entry near the end of its block, prefetches the next block.
    #[inline(never)]
    fn prefetch_next_block(&self) {
        if self.entries.remaining() <= BEFORE_NEXT_BLOCK {
            self.table.prefetch_start(self.block + 1);
        }
    }

    /// Does the same after a step to the entry that is [`BEFORE_NEXT_BLOCK`] entries before the end
    /// of its block.
    #[inline]
    fn prefetch_coming_block(&self) {
        if self.entries.remaining() == BEFORE_NEXT_BLOCK {
            self.prefetch_next_block();
        }
    }

    /// Moves to the last entry before `(key, seq)`.
    pub(crate) fn seek_before(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        self.forget_prefetch();
        self.toward = Toward::Start;
        // Versions of a key may span several blocks, so search from the first entry after it.
        self.find(key, seq)?;
        if self.is_valid() { self.previous() } else { self.seek_last() }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Result<()> {
        self.step(BlockCursor::next)?;
        self.prefetch_coming_block();
        if self.entries.is_valid() { Ok(()) } else { self.skip_forward() }
    }

    /// Moves to the first entry of the next key.
    #[inline(always)]
    pub(crate) fn next_key(&mut self) -> Result<()> {
        self.step(BlockCursor::next_key)?;
        self.prefetch_coming_block();
        if self.entries.is_valid() { Ok(()) } else { self.skip_key() }
    }

    /// Decodes the next entries of the block as a stretch, as [`BlockCursor::stretch`] does.
    #[inline]
    pub(crate) fn stretch(&mut self, stretch: &mut Stretch, below: u64, seq: SeqNo) -> bool {
        let before = self.entries.remaining();
        let seq = (!self.table.is_visible(seq)).then_some(seq);
        let moved = self.entries.stretch(stretch, below, seq);
        if before > BEFORE_NEXT_BLOCK {
            self.prefetch_next_block();
        }
        moved
    }

    /// Moves `count` entries back after [`TableCursor::stretch`].
    pub(crate) fn step_back(&mut self, count: usize) -> Result<()> {
        self.step(|entries| entries.step_back(count))
    }

    /// Moves from past the end of a block to the first entry whose key is not the last key of that
    /// block.
    #[inline(never)]
    fn skip_key(&mut self) -> Result<()> {
        // The cursor still has the last key of the block. A block that continues this key begins
        // with it.
        while self.table.continues_in(self.block + 1, self.entries.key())? {
            self.skip_forward()?;
            self.step(BlockCursor::next_key)?;
            if self.entries.is_valid() {
                return Ok(());
            }
        }
        self.skip_forward()
    }

    pub(crate) fn previous(&mut self) -> Result<()> {
        self.step(BlockCursor::previous)?;
        if !self.entries.is_valid() && self.block > 0 && self.load(self.block - 1)? {
            self.step(BlockCursor::seek_last)?;
        }
        Ok(())
    }

    /// Moves from past the end of a block to the first entry of the next one.
    fn skip_forward(&mut self) -> Result<()> {
        if !self.entries.is_valid() && self.load(self.block + 1)? {
            self.step(BlockCursor::seek_first)?;
            self.prefetch_next_block();
        }
        Ok(())
    }

    /// Selects a block by number, if it exists; the cursor is then not on an entry.
    fn load(&mut self, number: usize) -> Result<bool> {
        if number >= self.table.block_count()? {
            self.entries.clear();
            return Ok(false);
        }
        let block = match &mut self.ahead {
            Some(ahead) => ahead.block(&self.table, number)?,
            None => self.scanned_block(number)?,
        };
        self.block = number;
        self.step(|entries| entries.set(block))?;
        Ok(true)
    }

    /// Returns a block from memory, or else from the file, with read-ahead.
    #[inline]
    fn scanned_block(&mut self, number: usize) -> Result<BlockRef> {
        if let Some((loading, read)) = self.loading.take()
            && loading == number
            && let Some(block) = read.wait()
        {
            self.window.get_or_insert_default().note(&self.table, number, self.toward)?;
            return Ok(block);
        }
        if let Some(block) = self.table.resident_block(number)? {
            return Ok(block);
        }
        self.window.get_or_insert_default().block(&self.table, number, self.toward)
    }

    #[inline(always)]
    fn step(&mut self, step: impl FnOnce(&mut BlockCursor) -> Decoded<()>) -> Result<()> {
        match step(&mut self.entries) {
            Ok(()) => Ok(()),
            Err(error) => self.damaged(&error),
        }
    }

    /// Returns the error for a damaged block.
    #[cold]
    fn damaged<T>(&self, error: &DecodeError) -> Result<T> {
        let offset = self.table.block_offset(self.block)?;
        let detail = error.to_string();
        Err(Error::corruption(self.table.path(), Some(offset), "data block", detail))
    }
}
