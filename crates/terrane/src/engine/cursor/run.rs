//! A cursor over a sorted run.

use std::sync::Arc;

use crate::base::error::Result;
use crate::base::types::{EntryKind, MAX_SEQ, SeqNo};
use crate::engine::version::OpenRun;
use crate::files::table::{Heat, ScanPace, Stretch, TableCursor};
use crate::files::value::Value;

/// Iterates over the entries of a run, table by table, in both directions.
#[derive(Debug)]
pub(crate) struct RunCursor {
    run: Arc<OpenRun>,
    /// The index of the table that `entries` iterates over.
    index: usize,
    entries: Option<TableCursor>,
    /// The size of reads in a single pass that bypasses the block cache; `None` for other cursors.
    read_bytes: Option<usize>,
    /// Notes which blocks are in the block cache.
    heat: Option<Arc<Heat>>,
}

impl RunCursor {
    pub(crate) fn new(run: Arc<OpenRun>) -> Self {
        Self { run, index: 0, entries: None, read_bytes: None, heat: None }
    }

    /// Creates a cursor for a single forward pass over the run. It reads about `read_bytes` at a
    /// time, bypasses the block cache, and notes in `heat` which blocks the cache contains.
    pub(crate) fn read_ahead(
        run: Arc<OpenRun>,
        read_bytes: usize,
        heat: Option<Arc<Heat>>,
    ) -> Self {
        Self { read_bytes: Some(read_bytes), heat, ..Self::new(run) }
    }

    pub(crate) fn run(&self) -> &Arc<OpenRun> {
        &self.run
    }

    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        self.entries.as_ref().is_some_and(TableCursor::is_valid)
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        if let Some(entries) = &self.entries { entries.key() } else { &[] }
    }

    /// Returns the first eight bytes of the key, as in [`terrane_memtable::head_of`].
    #[inline]
    pub(crate) fn head(&self) -> u64 {
        self.entries.as_ref().map_or(0, TableCursor::head)
    }

    #[inline]
    pub(crate) fn seq(&self) -> SeqNo {
        self.entries.as_ref().map_or(0, TableCursor::seq)
    }

    #[inline]
    pub(crate) fn kind(&self) -> EntryKind {
        self.entries.as_ref().map_or(EntryKind::Tombstone, TableCursor::kind)
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        if let Some(entries) = &self.entries { entries.value() } else { &[] }
    }

    pub(crate) fn pin_value(&self) -> Value {
        self.entries.as_ref().map_or_else(Value::empty, TableCursor::pin_value)
    }

    pub(crate) fn seek_first(&mut self) -> Result<()> {
        self.first_from(0, None)
    }

    pub(crate) fn seek_last(&mut self) -> Result<()> {
        self.last_until(self.run.tables().len())
    }

    /// Prefetches the part of an index that a seek to `key` reads.
    pub(crate) fn prefetch_index(&mut self, key: &[u8]) -> Result<()> {
        let Some(index) = self.run.index_at_or_before(key) else {
            self.forget_prefetch();
            return Ok(());
        };
        self.open(index).map_or(Ok(()), |entries| entries.prefetch_index(key))
    }

    /// Prefetches the start of the block that a seek to `key` reads. [`RunCursor::prefetch_index`]
    /// was called with the same key.
    pub(crate) fn prefetch_block(&mut self, key: &[u8]) -> Result<()> {
        self.entries.as_mut().map_or(Ok(()), |entries| entries.prefetch_block(key))
    }

    /// The cursor over the table that was prefetched from.
    pub(crate) fn entries_mut(&mut self) -> Option<&mut TableCursor> {
        self.entries.as_mut()
    }

    pub(crate) fn entries(&self) -> Option<&TableCursor> {
        self.entries.as_ref()
    }

    /// Prefetches the first entry at or after `key`. [`RunCursor::prefetch_block`] was called with
    /// the same key.
    pub(crate) fn prefetch_entry(&mut self, key: &[u8]) -> Result<()> {
        self.entries.as_mut().map_or(Ok(()), |entries| entries.prefetch_entry(key))
    }

    /// Discards the prefetched position.
    pub(crate) fn forget_prefetch(&mut self) {
        if let Some(entries) = &mut self.entries {
            entries.forget_prefetch();
        }
    }

    /// Moves to the first entry at or after `(key, seq)`.
    pub(crate) fn seek(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        let is_prefetched = self.entries.as_ref().is_some_and(TableCursor::is_prefetched);
        let found = match is_prefetched {
            true => Some(self.index),
            false => self.run.index_at_or_before(key),
        };
        let Some(index) = found else { return self.seek_first() };
        if let Some(entries) = self.open(index) {
            entries.seek(key, seq)?;
            if entries.is_valid() {
                return Ok(());
            }
        }
        self.first_from(index + 1, None)
    }

    /// Moves to the last entry whose key is before `key`.
    pub(crate) fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        let Some(index) = self.run.index_at_or_before(key) else {
            self.entries = None;
            return Ok(());
        };
        if let Some(entries) = self.open(index) {
            entries.seek_before(key, MAX_SEQ)?;
            if entries.is_valid() {
                return Ok(());
            }
        }
        self.last_until(index)
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Result<()> {
        let Some(entries) = &mut self.entries else { return Ok(()) };
        entries.next()?;
        if entries.is_valid() { Ok(()) } else { self.next_table() }
    }

    /// Moves to the first entry of the next key.
    #[inline(always)]
    pub(crate) fn next_key(&mut self) -> Result<()> {
        let Some(entries) = &mut self.entries else { return Ok(()) };
        entries.next_key()?;
        // The next table starts with a different key, because tables of a run share no keys.
        if entries.is_valid() { Ok(()) } else { self.next_table() }
    }

    /// See [`TableCursor::stretch`].
    #[inline]
    pub(crate) fn stretch(&mut self, stretch: &mut Stretch, below: u64, seq: SeqNo) -> bool {
        self.entries.as_mut().is_some_and(|entries| entries.stretch(stretch, below, seq))
    }

    /// Moves `count` entries back after [`RunCursor::stretch`].
    pub(crate) fn step_back(&mut self, count: usize) -> Result<()> {
        self.entries.as_mut().map_or(Ok(()), |entries| entries.step_back(count))
    }

    pub(crate) fn previous(&mut self) -> Result<()> {
        let Some(entries) = &mut self.entries else { return Ok(()) };
        entries.previous()?;
        if entries.is_valid() { Ok(()) } else { self.last_until(self.index) }
    }

    /// Moves from the end of a table to the next one, where its read-ahead continues.
    #[cold]
    fn next_table(&mut self) -> Result<()> {
        let pace = self.entries.as_mut().and_then(TableCursor::take_scan_pace);
        self.first_from(self.index + 1, pace)
    }

    /// Moves to the first entry of the tables from `index` on. It skips tables that contain only
    /// range tombstones.
    #[inline(never)]
    fn first_from(&mut self, index: usize, mut pace: Option<ScanPace>) -> Result<()> {
        for index in index..self.run.tables().len() {
            if let Some(entries) = self.open(index) {
                entries.continue_scan(&mut pace);
                entries.seek_first()?;
                if entries.is_valid() {
                    return Ok(());
                }
            }
        }
        self.entries = None;
        Ok(())
    }

    /// Moves to the last entry of the tables before `index`.
    fn last_until(&mut self, index: usize) -> Result<()> {
        for index in (0..index).rev() {
            if let Some(entries) = self.open(index) {
                entries.seek_last()?;
                if entries.is_valid() {
                    return Ok(());
                }
            }
        }
        self.entries = None;
        Ok(())
    }

    /// Opens a cursor over the table at `index`, or reuses the current cursor if it is over this
    /// table.
    fn open(&mut self, index: usize) -> Option<&mut TableCursor> {
        let table = self.run.tables().get(index)?;
        if self.index != index || self.entries.is_none() {
            let entries = self.entries.insert(TableCursor::new(Arc::clone(table)));
            if let Some(bytes) = self.read_bytes {
                entries.read_ahead(bytes, self.heat.clone());
            }
            self.index = index;
        }
        self.entries.as_mut()
    }
}
