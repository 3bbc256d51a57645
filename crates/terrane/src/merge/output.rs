//! Tables that a merge writes, and where they are cut.
//!
//! A table ends when it has reached its size, or when it overlaps so much of the level below the
//! output that moving it there would be a large compaction (LevelDB's grandparent limit); never
//! between two versions of a key. Range tombstones are cut where tables are.

use std::path::PathBuf;
use std::sync::Arc;

use terrane_memtable::Fragment;
use terrane_policy::TableInfo;

use crate::error::Result;
use crate::storage::Storage;
use crate::table::{FinishedTable, TableConfig, TableFileId, TableWriter, Warmer};
use crate::types::{EntryKind, SeqNo};

/// How much of the level below one table may overlap, in tables of its own size.
const GRANDPARENTS_MAX: u64 = 10;

/// Where and how tables are written.
pub(crate) struct OutputConfig<'a> {
    pub(crate) storage: &'a dyn Storage,
    pub(crate) table: TableConfig,
    /// Puts blocks of the tables into the cache.
    pub(crate) warmer: Option<Warmer>,
    pub(crate) table_bytes: u64,
    /// The tables of the level below the output, in key order.
    pub(crate) grandparents: Vec<Arc<TableInfo>>,
    /// Names the next table: its number, and the path of its file.
    pub(crate) next_table: &'a mut dyn FnMut() -> (TableFileId, PathBuf),
    /// When the tables are made, in microseconds since the Unix epoch.
    pub(crate) now_micros: u64,
    /// When the oldest tombstone among the inputs was flushed.
    pub(crate) oldest_tombstone_micros: Option<u64>,
}

/// Tables that are being written.
pub(crate) struct Output<'a> {
    config: OutputConfig<'a>,
    writer: Option<TableWriter>,
    /// Range tombstones that are not written yet, in key order.
    fragments: std::collections::VecDeque<Fragment>,
    finished: Vec<FinishedTable>,
    paths: Vec<PathBuf>,
    /// Bytes of the tables that are finished.
    finished_bytes: u64,
    /// The first grandparent that ends after the last key.
    grandparent: usize,
    grandparent_bytes: u64,
}

impl<'a> Output<'a> {
    pub(crate) fn new(config: OutputConfig<'a>) -> Self {
        Self {
            config,
            writer: None,
            fragments: std::collections::VecDeque::new(),
            finished: Vec::new(),
            paths: Vec::new(),
            finished_bytes: 0,
            grandparent: 0,
            grandparent_bytes: 0,
        }
    }

    /// The files that were begun, finished or not.
    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Bytes of all tables so far, about.
    pub(super) fn written_bytes(&self) -> u64 {
        self.finished_bytes + self.writer.as_ref().map_or(0, TableWriter::size_bytes)
    }

    pub(super) fn begin(&mut self, fragments: Vec<Fragment>) {
        self.fragments = fragments.into();
    }

    pub(super) fn add(
        &mut self,
        key: &[u8],
        seq: SeqNo,
        kind: EntryKind,
        value: &[u8],
    ) -> Result<()> {
        if self.is_full(key) {
            self.finish_table(Some(key))?;
        }
        self.writer()?.add(key, seq, kind, value)
    }

    /// Whether the table that is being written should end before `key`.
    fn is_full(&mut self, key: &[u8]) -> bool {
        let Some(writer) = &self.writer else { return false };
        if writer.last_key() == key {
            return false;
        }
        let ends_before =
            |table: &&Arc<TableInfo>| table.range.end.as_ref().is_some_and(|end| **end <= *key);
        while let Some(passed) = self.config.grandparents.get(self.grandparent).filter(ends_before)
        {
            self.grandparent_bytes += passed.size_bytes;
            self.grandparent += 1;
        }
        let limit = self.config.table_bytes.saturating_mul(GRANDPARENTS_MAX);
        writer.size_bytes() >= self.config.table_bytes || self.grandparent_bytes > limit
    }

    fn writer(&mut self) -> Result<&mut TableWriter> {
        if self.writer.is_none() {
            let (id, path) = (self.config.next_table)();
            self.paths.push(path.clone());
            let writer = TableWriter::create(self.config.storage, &path, id, self.config.table)?;
            self.writer = Some(writer.warming(self.config.warmer.clone()));
            self.grandparent_bytes = 0;
        }
        self.writer.as_mut().ok_or_else(|| crate::error::Error::internal("a table writer vanished"))
    }

    /// Ends the current table; the next one begins at `cut`, or there is none.
    fn finish_table(&mut self, cut: Option<&[u8]>) -> Result<()> {
        let before_cut = |fragment: &Fragment| cut.is_none_or(|cut| *fragment.start < *cut);
        while self.fragments.front().is_some_and(before_cut) {
            let Some(fragment) = self.fragments.pop_front() else { break };
            let (now, later) = split(fragment, cut);
            if let Some(later) = later {
                self.fragments.push_front(later);
            }
            self.writer()?.add_range_tombstone(now);
        }
        if let Some(writer) = self.writer.take() {
            let config = &self.config;
            let table = writer.finish(config.now_micros, config.oldest_tombstone_micros)?;
            self.finished_bytes += table.info.size_bytes;
            self.finished.push(table);
        }
        Ok(())
    }

    pub(super) fn finish(&mut self) -> Result<Vec<FinishedTable>> {
        self.finish_table(None)?;
        Ok(std::mem::take(&mut self.finished))
    }
}

/// The parts of a fragment before and from `cut` on.
fn split(fragment: Fragment, cut: Option<&[u8]>) -> (Fragment, Option<Fragment>) {
    let crosses = |cut: &&[u8]| fragment.end.as_ref().is_none_or(|end| **end > **cut);
    let Some(cut) = cut.filter(crosses) else { return (fragment, None) };
    let later = Fragment { start: cut.into(), ..fragment.clone() };
    (Fragment { end: Some(cut.into()), ..fragment }, Some(later))
}
