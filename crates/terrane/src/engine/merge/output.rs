//! Writes the output tables of a merge and decides where to cut them.
//!
//! A table ends when it has reached its target size, when its index and filter would take more memory
//! than the job was granted, or when it overlaps so much of the level below the output level that
//! compacting it into that level would be expensive (LevelDB's grandparent limit). All versions of a key
//! stay in one table. Range tombstones are split at the cuts.

use std::path::PathBuf;
use std::sync::Arc;

use terrane_memtable::Fragment;
use terrane_policy::TableInfo;

use super::value_output::{DamagedValues, Placed, ValueOutput, ValueOutputConfig};
use crate::base::compaction_filter::FilterCounts;
use crate::base::error::{Error, Result};
use crate::base::types::{EntryKind, SeqNo};
use crate::files::storage::Storage;
use crate::files::table::{
    FinishedTable, TableConfig, TableFileId, TableWriter, UnsyncedFile, Warmer,
};
use crate::files::value_file::FinishedValueFile;

/// Limit on the bytes of the level below that one table may overlap, in multiples of the table size.
const GRANDPARENTS_MAX: u64 = 10;

/// A version of the current key of a merge.
#[derive(Clone, Copy)]
pub(super) struct Version<'a> {
    pub(super) seq: SeqNo,
    pub(super) kind: EntryKind,
    pub(super) value: &'a [u8],
}

/// Returns the id and the path of the next table.
pub(crate) type NextTable<'a> = Box<dyn FnMut() -> (TableFileId, PathBuf) + Send + 'a>;

/// Parameters of an [`Output`].
pub(crate) struct OutputConfig<'a> {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) table: TableConfig,
    /// Inserts blocks of the new tables into the block cache.
    pub(crate) warmer: Option<Warmer>,
    /// Target size of a table.
    pub(crate) table_bytes: u64,
    /// The limit in bytes for the parts that a table writer keeps in memory until the table ends. A
    /// table ends when it is reached.
    pub(crate) parts_bytes_max: usize,
    /// The tables of the level below the output level, in key order.
    pub(crate) grandparents: Vec<Arc<TableInfo>>,
    /// Returns the id and the path of the next table.
    pub(crate) next_table: NextTable<'a>,
    /// Creation time of the tables, in microseconds since the Unix epoch.
    pub(crate) now_micros: u64,
    /// Flush time of the oldest tombstone among the inputs, in microseconds since the Unix epoch.
    pub(crate) oldest_tombstone_micros: Option<u64>,
}

/// The sequence of tables that a merge writes.
pub(crate) struct Output<'a> {
    config: OutputConfig<'a>,
    values: ValueOutput<'a>,
    writer: Option<TableWriter>,
    /// Range tombstones that have not been written yet, in key order.
    fragments: std::collections::VecDeque<Fragment>,
    finished: Vec<FinishedTable>,
    /// The files of the finished tables, if the caller syncs them.
    unsynced: Option<Vec<UnsyncedFile>>,
    paths: Vec<PathBuf>,
    filtered: FilterCounts,
    /// Total size of the finished tables.
    finished_bytes: u64,
    /// The first grandparent that ends after the last key.
    grandparent: usize,
    grandparent_bytes: u64,
}

impl<'a> Output<'a> {
    pub(crate) fn new(config: OutputConfig<'a>, values: ValueOutputConfig<'a>) -> Self {
        Self {
            config,
            values: ValueOutput::new(values),
            writer: None,
            fragments: std::collections::VecDeque::new(),
            finished: Vec::new(),
            unsynced: None,
            paths: Vec::new(),
            filtered: FilterCounts::default(),
            finished_bytes: 0,
            grandparent: 0,
            grandparent_bytes: 0,
        }
    }

    /// Leaves the syncs of the tables to the caller, who takes the files.
    pub(crate) fn leaving_unsynced(self) -> Self {
        Self { unsynced: Some(Vec::new()), ..self }
    }

    /// Returns the files that the caller must sync.
    pub(crate) fn take_unsynced(&mut self) -> Vec<UnsyncedFile> {
        self.unsynced.take().unwrap_or_default()
    }

    /// Paths of all files created so far, whether finished or not.
    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Approximate total size of the tables and value files so far, in bytes.
    pub(crate) fn written_bytes(&self) -> u64 {
        let table_bytes = self.writer.as_ref().map_or(0, TableWriter::size_bytes);
        self.finished_bytes + table_bytes + self.values.written_bytes()
    }

    /// Returns the value files of a merge that has succeeded.
    pub(crate) fn take_value_files(&mut self) -> Vec<FinishedValueFile> {
        self.values.take_files()
    }

    /// Returns the value files with values that could not be read; the entries keep their pointers.
    pub(crate) fn take_damaged(&mut self) -> DamagedValues {
        self.values.take_damaged()
    }

    /// The counts of values that a filter removed or replaced.
    pub(super) fn filtered(&mut self) -> &mut FilterCounts {
        &mut self.filtered
    }

    /// Returns how many values a filter removed or replaced.
    pub(crate) fn filter_counts(&self) -> FilterCounts {
        self.filtered
    }

    pub(super) fn begin(&mut self, fragments: Vec<Fragment>) {
        self.fragments = fragments.into();
    }

    /// Adds an entry. If its value was read from a value file, returns the value's length.
    pub(crate) fn add(
        &mut self,
        key: &[u8],
        seq: SeqNo,
        kind: EntryKind,
        value: &[u8],
    ) -> Result<usize> {
        if self.is_full(key) {
            self.finish_table(Some(key))?;
        }
        // The table is created first, so that tables have the same numbers with and without
        // separated values.
        self.open_writer()?;
        let Self { values, writer, config, paths, .. } = self;
        let writer = writer.as_mut().ok_or_else(no_writer)?;
        match values.place(&*config.storage, paths, (key, seq, kind), value)? {
            Placed::Unchanged => writer.add(key, seq, kind, value).map(|()| 0),
            Placed::Pointer { pointer, read } => {
                writer.add(key, seq, EntryKind::Separated, pointer).map(|()| read)
            }
            Placed::Inline(value) => {
                writer.add(key, seq, EntryKind::Value, &value).map(|()| value.len())
            }
        }
    }

    /// Returns true if the current table should end before `key`.
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
        writer.size_bytes() >= self.config.table_bytes
            || self.grandparent_bytes > limit
            || writer.parts_bytes() >= self.config.parts_bytes_max
    }

    fn open_writer(&mut self) -> Result<()> {
        if self.writer.is_none() {
            let (id, path) = (self.config.next_table)();
            self.paths.push(path.clone());
            let writer = TableWriter::create(&*self.config.storage, &path, id, self.config.table)?;
            self.writer = Some(writer.warming(self.config.warmer.clone()));
            self.grandparent_bytes = 0;
        }
        Ok(())
    }

    fn writer(&mut self) -> Result<&mut TableWriter> {
        self.open_writer()?;
        self.writer.as_mut().ok_or_else(no_writer)
    }

    /// Finishes the current table. The next one starts at `cut`; `None` means that this is the last.
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
            let (now, oldest) = (config.now_micros, config.oldest_tombstone_micros);
            let table = match &mut self.unsynced {
                None => writer.finish(now, oldest)?,
                Some(unsynced) => {
                    let (table, file) = writer.finish_unsynced(now, oldest)?;
                    unsynced.push(file);
                    table
                }
            };
            self.finished_bytes += table.info.size_bytes;
            self.finished.push(table);
        }
        Ok(())
    }

    pub(crate) fn finish(&mut self) -> Result<Vec<FinishedTable>> {
        self.values.finish()?;
        self.finish_table(None)?;
        Ok(std::mem::take(&mut self.finished))
    }
}

fn no_writer() -> Error {
    Error::internal("a table writer vanished")
}

/// Splits a fragment at `cut`; the second part is `None` if the fragment ends before it.
fn split(fragment: Fragment, cut: Option<&[u8]>) -> (Fragment, Option<Fragment>) {
    let crosses = |cut: &&[u8]| fragment.end.as_ref().is_none_or(|end| **end > **cut);
    let Some(cut) = cut.filter(crosses) else { return (fragment, None) };
    let later = Fragment { start: cut.into(), ..fragment.clone() };
    (Fragment { end: Some(cut.into()), ..fragment }, Some(later))
}
