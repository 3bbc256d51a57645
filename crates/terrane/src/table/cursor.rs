//! A position in a table.

use std::sync::Arc;

use super::block::BlockCursor;
use super::read_ahead::ReadAhead;
use super::reader::Table;
use super::warming::Heat;
use crate::error::{Error, Result};
use crate::types::{EntryKind, SeqNo};
use crate::value::Value;

/// Walks the entries of a table, both ways.
#[derive(Debug)]
pub(crate) struct TableCursor {
    table: Arc<Table>,
    /// The number of the block that `entries` walks.
    block: usize,
    entries: BlockCursor,
    /// The block of the key that is sought next.
    approached: Option<usize>,
    /// Reads blocks, where all of the table will be read once.
    ahead: Option<Box<ReadAhead>>,
}

impl TableCursor {
    pub(crate) fn new(table: Arc<Table>) -> Self {
        Self { table, block: 0, entries: BlockCursor::default(), approached: None, ahead: None }
    }

    /// A cursor that goes through the table once, from front to back: it reads about `piece_bytes`
    /// at a time, past the cache, and tells `heat` what the cache has of it.
    pub(crate) fn read_ahead(
        table: Arc<Table>,
        piece_bytes: usize,
        heat: Option<Arc<Heat>>,
    ) -> Self {
        let ahead = Some(Box::new(ReadAhead::new(piece_bytes, heat)));
        Self { ahead, ..Self::new(table) }
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

    pub(crate) fn seek_first(&mut self) -> Result<()> {
        self.approached = None;
        if self.load(0)? {
            self.step(BlockCursor::seek_first)?;
        }
        Ok(())
    }

    pub(crate) fn seek_last(&mut self) -> Result<()> {
        self.approached = None;
        let count = self.table.block_count()?;
        if count > 0 && self.load(count - 1)? {
            self.step(BlockCursor::seek_last)?;
        }
        Ok(())
    }

    /// Asks for the memory that a seek of `key` will need, and remembers where it is.
    pub(crate) fn approach(&mut self, key: &[u8]) -> Result<()> {
        // If it fails, the place of an earlier key is not that of this one.
        self.approached = None;
        self.approached = Some(self.table.approach(key)?);
        Ok(())
    }

    /// The next seek is of another key than the one that was approached.
    pub(crate) fn forget_approach(&mut self) {
        self.approached = None;
    }

    /// The first entry at or after `(key, seq)`.
    pub(crate) fn seek(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        if self.ahead.is_none() {
            self.table.note_read();
        }
        let mut block = match self.approached.take() {
            Some(block) => block,
            None => self.table.block_of(key)?,
        };
        // Versions of the key may go on in the blocks after the first one.
        while self.load(block)? {
            self.step(|entries| entries.seek(key, seq))?;
            if self.is_valid() {
                break;
            }
            block += 1;
        }
        Ok(())
    }

    /// The last entry before `(key, seq)`.
    pub(crate) fn seek_before(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        self.approached = None;
        // Versions of a key may fill more blocks than the first: look from the first entry after.
        self.seek(key, seq)?;
        if self.is_valid() { self.previous() } else { self.seek_last() }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Result<()> {
        self.step(BlockCursor::next)?;
        if self.entries.is_valid() { Ok(()) } else { self.skip_forward() }
    }

    /// The first entry of the next key.
    #[inline]
    pub(crate) fn next_key(&mut self) -> Result<()> {
        self.step(BlockCursor::next_key)?;
        if self.entries.is_valid() { Ok(()) } else { self.skip_key() }
    }

    /// From past the end of a block, to the first entry that is not of the last key of it.
    fn skip_key(&mut self) -> Result<()> {
        // The key that the cursor was on last; a block that goes on with it begins with it.
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

    /// From past the end of a block, to the first entry of the next one.
    fn skip_forward(&mut self) -> Result<()> {
        if !self.entries.is_valid() && self.load(self.block + 1)? {
            self.step(BlockCursor::seek_first)?;
        }
        Ok(())
    }

    /// Takes the block of this number, if there is one; the cursor is on no entry then.
    fn load(&mut self, number: usize) -> Result<bool> {
        if number >= self.table.block_count()? {
            self.entries.clear();
            return Ok(false);
        }
        let block = match &mut self.ahead {
            Some(ahead) => ahead.block(&self.table, number)?,
            None => self.table.block(number)?,
        };
        self.block = number;
        self.step(|entries| entries.set(block))?;
        Ok(true)
    }

    #[inline]
    fn step(
        &mut self,
        step: impl FnOnce(&mut BlockCursor) -> crate::codec::Decoded<()>,
    ) -> Result<()> {
        step(&mut self.entries).or_else(|error| {
            let offset = self.table.block_offset(self.block)?;
            let detail = error.to_string();
            Err(Error::corruption(self.table.path(), Some(offset), "data block", detail))
        })
    }
}
