//! Reads the intact blocks of a damaged table.

use std::sync::Arc;

use super::block::BlockCursor;
use super::reader::Table;
use super::sequential_file::SequentialFile;
use crate::base::error::{Error, Result};
use crate::base::types::{EntryKind, SeqNo};

/// A forward cursor over a table that skips unreadable blocks.
#[derive(Debug)]
pub(crate) struct SalvageCursor {
    table: Arc<Table>,
    next_block: usize,
    entries: BlockCursor,
    file: SequentialFile,
}

impl SalvageCursor {
    /// Creates a cursor before the first entry.
    pub(crate) fn new(table: Arc<Table>) -> Self {
        let file = SequentialFile::open(&table.file);
        Self { table, next_block: 0, entries: BlockCursor::default(), file }
    }

    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.entries.is_valid()
    }

    pub(crate) fn key(&self) -> &[u8] {
        self.entries.key()
    }

    pub(crate) fn seq(&self) -> SeqNo {
        self.entries.seq()
    }

    pub(crate) fn kind(&self) -> EntryKind {
        self.entries.kind()
    }

    pub(crate) fn value(&self) -> &[u8] {
        self.entries.value()
    }

    /// Moves to the next readable entry. Passes the error of each skipped block to `skipped`.
    pub(crate) fn step(&mut self, mut skipped: impl FnMut(Error)) {
        if let Err(error) = self.entries.next() {
            skipped(self.corrupt(error));
            self.entries.clear();
        }
        let count = match self.table.block_count() {
            Ok(count) => count,
            Err(error) => {
                skipped(error);
                0
            }
        };
        while !self.entries.is_valid() && self.next_block < count {
            self.next_block += 1;
            if let Err(error) = self.load() {
                skipped(error);
                self.entries.clear();
            }
        }
    }

    fn load(&mut self) -> Result<()> {
        let block = self.table.raw_block(&self.file, self.next_block - 1)?;
        let first = self.entries.set(block).and_then(|()| self.entries.seek_first());
        first.map_err(|error| self.corrupt(error))
    }

    fn corrupt(&self, error: crate::base::codec::DecodeError) -> Error {
        let block = self.next_block.saturating_sub(1);
        let offset = self.table.block_offset(block).ok();
        Error::corruption(self.table.path(), offset, "data block", error.to_string())
    }
}
