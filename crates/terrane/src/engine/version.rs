//! An immutable tree of open tables.
//!
//! An edit creates a new version. A reader pins the version that it began with, and thereby its
//! tables.

use std::sync::{Arc, OnceLock};

use terrane_memtable::{RangeTombstones, head_of};
use terrane_policy::{Run, TableId, TreeShape};

use crate::base::error::Result;
use crate::base::shared_map::SharedMap;
use crate::base::types::SeqNo;
use crate::files::table::{ScanLengths, Table};
use crate::files::value_file::ValueFiles;

/// Levels, runs and tables, ready for reads.
#[derive(Debug, Default)]
pub(crate) struct Version {
    shape: TreeShape,
    /// All runs, newest data first.
    runs: Vec<Arc<OpenRun>>,
    tables: SharedMap<TableId, Arc<Table>>,
    /// The value files of the tables.
    values: Arc<ValueFiles>,
    /// The same for all versions of a tree.
    scan_lengths: Arc<ScanLengths>,
    /// The range tombstones of all tables, merged when first needed.
    range_tombstones: OnceLock<RangeTombstones>,
    has_range_tombstones: bool,
    has_expiry: bool,
}

/// A sorted run of open tables.
#[derive(Debug)]
pub(crate) struct OpenRun {
    tables: Vec<Arc<Table>>,
    /// The heads of the first keys of all tables.
    heads: Vec<u64>,
    largest_seq: SeqNo,
}

impl OpenRun {
    fn new(run: &Run, tables: &SharedMap<TableId, Arc<Table>>) -> Self {
        let tables = run.tables.iter().filter_map(|info| tables.get(&info.id)).cloned();
        Self::of_tables(tables.collect())
    }

    /// Returns a run of `tables`, which must be in key order and not overlap.
    pub(crate) fn of_tables(tables: Vec<Arc<Table>>) -> Self {
        let infos = || tables.iter().map(|table| table.info());
        Self {
            heads: infos().map(|info| head_of(&info.range.start)).collect(),
            largest_seq: infos().map(|info| info.largest_seq).max().unwrap_or(0),
            tables,
        }
    }

    pub(crate) fn tables(&self) -> &[Arc<Table>] {
        &self.tables
    }

    pub(crate) fn largest_seq(&self) -> SeqNo {
        self.largest_seq
    }

    /// Returns the last table that begins at or before `key`.
    #[inline]
    pub(crate) fn index_at_or_before(&self, key: &[u8]) -> Option<usize> {
        let head = head_of(key);
        let mut after = self.heads.partition_point(|&other| other <= head);
        // Tables whose first keys have the same head are compared by key.
        while after > 0 && self.heads.get(after - 1) == Some(&head) {
            let begins_after =
                self.tables.get(after - 1).is_some_and(|table| *table.info().range.start > *key);
            if !begins_after {
                break;
            }
            after -= 1;
        }
        after.checked_sub(1)
    }

    /// Returns the table that may contain `key`.
    #[inline]
    pub(crate) fn table_for(&self, key: &[u8]) -> Option<&Arc<Table>> {
        let table = self.tables.get(self.index_at_or_before(key)?)?;
        table.info().range.end.as_ref().is_none_or(|end| *key < **end).then_some(table)
    }
}

impl Version {
    /// Returns a version of `shape`, with the tables and the value files of the shape.
    pub(crate) fn new(
        shape: TreeShape,
        tables: SharedMap<TableId, Arc<Table>>,
        values: ValueFiles,
    ) -> Self {
        Self::after(&Self::default(), shape, tables, values)
    }

    /// Returns the next version of the tree.
    pub(crate) fn after(
        before: &Self,
        shape: TreeShape,
        tables: SharedMap<TableId, Arc<Table>>,
        values: ValueFiles,
    ) -> Self {
        let scan_lengths = Arc::clone(&before.scan_lengths);
        let mut runs = Vec::with_capacity(shape.run_count());
        for (number, level) in shape.levels.iter().enumerate() {
            runs.extend(level.runs.iter().map(|run| Arc::new(OpenRun::new(run, &tables))));
            let infos = level.runs.iter().flat_map(|run| &run.tables);
            let tables = infos.filter_map(|info| tables.get(&info.id));
            tables.for_each(|table| table.enter(number, &scan_lengths));
        }
        let has_range_tombstones = shape.tables().any(|info| info.range_tombstones > 0);
        let has_expiry = shape.tables().any(|info| info.expiry.is_some());
        let range_tombstones = OnceLock::new();
        let values = Arc::new(values);
        Self {
            shape,
            runs,
            tables,
            values,
            scan_lengths,
            range_tombstones,
            has_range_tombstones,
            has_expiry,
        }
    }

    pub(crate) fn shape(&self) -> &TreeShape {
        &self.shape
    }

    /// All runs, newest data first.
    pub(crate) fn runs(&self) -> &[Arc<OpenRun>] {
        &self.runs
    }

    pub(crate) fn tables(&self) -> &SharedMap<TableId, Arc<Table>> {
        &self.tables
    }

    /// The value files of the tables.
    pub(crate) fn values(&self) -> &Arc<ValueFiles> {
        &self.values
    }

    pub(crate) fn has_range_tombstones(&self) -> bool {
        self.has_range_tombstones
    }

    /// Returns true if any table has an entry that expires.
    pub(crate) fn has_expiry(&self) -> bool {
        self.has_expiry
    }

    /// The range tombstones of all tables; `None` if there are none.
    pub(crate) fn range_tombstones(&self) -> Result<Option<&RangeTombstones>> {
        if !self.has_range_tombstones {
            return Ok(None);
        }
        if let Some(tombstones) = self.range_tombstones.get() {
            return Ok(Some(tombstones));
        }
        let all = RangeTombstones::new();
        for table in self.tables.values().filter(|table| table.info().range_tombstones > 0) {
            table.fragments()?.iter().for_each(|fragment| all.add(fragment));
        }
        Ok(Some(self.range_tombstones.get_or_init(|| all)))
    }
}
