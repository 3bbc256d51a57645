//! The shape of a tree: levels, runs and tables without their data.
//!
//! One structure covers leveling, tiering and everything in between: `levels[i].runs[j].tables[k]`. The
//! engine passes shapes to policy and applies [`ShapeEdit`]s to them; the simulator and the tests do the
//! same without files.
//!
//! Invariants, checked by [`TreeShape::check`]:
//! 1. Runs of a level are ordered by descending [`RunId`]; a higher number is newer.
//! 2. Tables of a run are in key order and do not overlap.
//! 3. A table occurs once, and its range is not empty.
//! 4. There are no empty runs, and no empty levels after the last one in use.
//! 5. Value files are in ascending order, and so are each table's references to them. Every value file
//!    that a table refers to is in the shape.
//!
//! Recency decreases from level to level, and from run to run within a level: for any key, an entry in
//! an earlier run is newer than an entry in a later one. [`crate::soundness`] preserves this order.

mod edit;
mod text;
mod values;

pub use edit::{AddedTable, ShapeEdit, ShapeError};
pub(crate) use text::unescape;
pub use values::{
    SettledValues, ValueFileId, ValueFileInfo, ValueFileState, ValueFileUsage, ValueRef,
};

use std::fmt;
use std::sync::Arc;

use crate::key_range::KeyRange;

/// A position in the total order of writes; higher is newer.
pub type SeqNo = u64;

/// The number of a table; never reused within a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u64);

/// The number of a sorted run. Within a level, a higher number is newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub u64);

impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What policy knows about a table (SST), an immutable sorted file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableInfo {
    /// The table's number.
    pub id: TableId,
    /// The keys for which the table may hold entries or range tombstones.
    pub range: KeyRange,
    /// File size in bytes.
    pub size_bytes: u64,
    /// Point entries, tombstones included.
    pub entries: u64,
    /// Point tombstones.
    pub tombstones: u64,
    /// Range tombstones (fragments).
    pub range_tombstones: u64,
    /// The smallest sequence number of any entry or range tombstone.
    pub smallest_seq: SeqNo,
    /// The largest sequence number of any entry or range tombstone.
    pub largest_seq: SeqNo,
    /// When the file was created, in microseconds since the Unix epoch.
    pub created_micros: u64,
    /// When the oldest tombstone in it was written or flushed, in microseconds since the Unix
    /// epoch; inherited through compactions.
    pub oldest_tombstone_micros: Option<u64>,
    /// The entries that expire; `None` if none does.
    pub expiry: Option<Expiry>,
    /// The table's references to values in value files: one element for each file, in ascending order of
    /// files.
    pub value_refs: Box<[ValueRef]>,
}

/// The entries of a table whose values expire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry {
    /// The number of these entries.
    pub entries: u64,
    /// When the first of them expires, in microseconds since the Unix epoch.
    pub first_micros: u64,
    /// When the last of them expires, in microseconds since the Unix epoch.
    pub last_micros: u64,
}

impl Expiry {
    /// Returns the expiry of one entry, at this time.
    pub fn of(micros: u64) -> Self {
        Self { entries: 1, first_micros: micros, last_micros: micros }
    }

    /// Returns the combination of both; `None` if both are `None`.
    pub fn combined(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        let (Some(a), Some(b)) = (one, other) else { return one.or(other) };
        Some(Self {
            entries: a.entries.saturating_add(b.entries),
            first_micros: a.first_micros.min(b.first_micros),
            last_micros: a.last_micros.max(b.last_micros),
        })
    }
}

impl TableInfo {
    /// Returns a table with the given number, range and size; all other fields are zero.
    pub fn new(id: u64, range: KeyRange, size_bytes: u64) -> Self {
        Self {
            id: TableId(id),
            range,
            size_bytes,
            entries: 0,
            tombstones: 0,
            range_tombstones: 0,
            smallest_seq: 0,
            largest_seq: 0,
            created_micros: 0,
            oldest_tombstone_micros: None,
            expiry: None,
            value_refs: Box::default(),
        }
    }

    /// Returns true if the table holds any tombstone, point or range.
    pub fn has_tombstones(&self) -> bool {
        self.tombstones > 0 || self.range_tombstones > 0
    }

    /// Returns the time since which the table has had a tombstone or an expired entry, or at which its
    /// first entry will expire, in microseconds since the Unix epoch. An entry that expires after the
    /// oldest snapshot, taken at `oldest_snapshot_micros`, does not count, because the snapshot sees it.
    pub fn dead_since(&self, oldest_snapshot_micros: Option<u64>) -> Option<u64> {
        let deleted = self.oldest_tombstone_micros.filter(|_| self.has_tombstones());
        let expired = self.expiry.map(|expiry| expiry.first_micros);
        let expired = expired.filter(|first| oldest_snapshot_micros.is_none_or(|at| *first <= at));
        deleted.into_iter().chain(expired).min()
    }

    /// Returns the time from which no entry of the table has a value, in microseconds since the Unix
    /// epoch; `None` if some value never expires.
    pub fn last_value_micros(&self) -> Option<u64> {
        let is_all =
            |expiry: &Expiry| expiry.entries.checked_add(self.tombstones) == Some(self.entries);
        let expiry = self.expiry.filter(is_all);
        expiry.map(|expiry| expiry.last_micros)
    }

    /// Returns the bytes of the table's values in value files.
    pub fn value_bytes(&self) -> u64 {
        self.value_refs.iter().map(|used| used.bytes).sum()
    }

    /// Returns true if the table refers to one of `files`, which are in ascending order.
    pub fn refers_to(&self, files: &[ValueFileId]) -> bool {
        self.value_refs.iter().any(|used| files.binary_search(&used.file).is_ok())
    }

    /// Returns tombstones, range tombstones included, as a percentage of all entries.
    pub fn tombstone_percent(&self) -> u64 {
        let tombstones = self.tombstones.saturating_add(self.range_tombstones);
        let all = self.entries.max(self.tombstones).saturating_add(self.range_tombstones);
        u64::try_from(u128::from(tombstones) * 100 / u128::from(all.max(1))).unwrap_or(100)
    }
}

/// A sorted run: tables with disjoint ranges, in key order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The run's number, which also orders it within its level.
    pub id: RunId,
    /// The tables in key order.
    pub tables: Vec<Arc<TableInfo>>,
}

impl Run {
    /// Bytes of all tables.
    pub fn size_bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.size_bytes).sum()
    }

    /// Returns the smallest range that covers all tables; `None` for an empty run.
    pub fn range(&self) -> Option<KeyRange> {
        let (first, last) = (self.tables.first()?, self.tables.last()?);
        Some(first.range.hull(&last.range))
    }

    /// Returns the tables that share keys with `range`, a contiguous slice of the run.
    pub fn overlapping(&self, range: &KeyRange) -> &[Arc<TableInfo>] {
        let from = self.tables.partition_point(|table| !range.starts_before_end_of(&table.range));
        let count = self.tables[from..]
            .iter()
            .take_while(|table| table.range.starts_before_end_of(range))
            .count();
        &self.tables[from..from + count]
    }
}

/// A level: a list of runs, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Level {
    /// The runs, newest first.
    pub runs: Vec<Run>,
}

impl Level {
    /// Bytes of all runs.
    pub fn size_bytes(&self) -> u64 {
        self.runs.iter().map(Run::size_bytes).sum()
    }

    /// The number of tables in all runs.
    pub fn table_count(&self) -> usize {
        self.runs.iter().map(|run| run.tables.len()).sum()
    }
}

/// The levels of a tree, beginning with level 0, which receives flushes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeShape {
    /// The levels, newest data first.
    pub levels: Vec<Level>,
    /// The value files, in ascending order.
    pub value_files: Vec<Arc<ValueFileInfo>>,
}

/// The position of a table in a shape.
#[derive(Debug, Clone)]
pub struct TablePosition<'a> {
    /// Index of the level.
    pub level: usize,
    /// The run the table is part of.
    pub run: RunId,
    /// The table.
    pub table: &'a Arc<TableInfo>,
}

impl TreeShape {
    /// Returns level `index`, or an empty level if `index` is past the end.
    pub fn level(&self, index: usize) -> &Level {
        static EMPTY: Level = Level { runs: Vec::new() };
        self.levels.get(index).unwrap_or(&EMPTY)
    }

    /// Returns the deepest level that holds a table; 0 for an empty tree.
    pub fn last_level(&self) -> usize {
        self.levels.iter().rposition(|level| !level.runs.is_empty()).unwrap_or(0)
    }

    /// Returns all tables with their positions, newest data first.
    pub fn places(&self) -> impl Iterator<Item = TablePosition<'_>> {
        self.levels.iter().enumerate().flat_map(|(index, level)| {
            level.runs.iter().flat_map(move |run| {
                run.tables.iter().map(move |table| TablePosition {
                    level: index,
                    run: run.id,
                    table,
                })
            })
        })
    }

    /// Returns all tables, newest data first.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableInfo>> {
        self.places().map(|place| place.table)
    }

    /// Returns the number of sorted runs in all levels.
    pub fn run_count(&self) -> usize {
        self.levels.iter().map(|level| level.runs.len()).sum()
    }

    /// Returns the number of tables in all levels.
    pub fn table_count(&self) -> usize {
        self.levels.iter().map(Level::table_count).sum()
    }

    /// Returns the bytes of all tables.
    pub fn size_bytes(&self) -> u64 {
        self.levels.iter().map(Level::size_bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_counts_its_tables_runs_and_values() {
        let mut shape: TreeShape = "L0 r2: 1=a..=c:1,range-tombstones=1\n\
                                    L1 r1: 2=a..=c:1,tombstones=1 3=x..=z:1,values=4:7/2\n\
                                    V 4: 9"
            .parse()
            .unwrap();
        let has: Vec<bool> = shape.tables().map(|table| table.has_tombstones()).collect();
        assert_eq!(has, [true, true, false]);
        assert_eq!((shape.table_count(), shape.run_count(), shape.live_value_bytes()), (3, 2, 7));
        let range = shape.level(1).runs[0].range().unwrap();
        assert_eq!(range, KeyRange::inclusive(b"a", b"z"));
        shape.levels.push(Level::default());
        assert_eq!(shape.last_level(), 1, "an empty level is not in use");
    }

    #[test]
    fn settled_files_with_live_values_count_for_the_space_of_values() {
        let shape: TreeShape = "L0 r2: 1=a..=c:1,values=4:50/5+6:7/1\n\
                                L1 r1: 2=a..=c:1,values=4:10/3\n\
                                V 4: 90\nV 5: 900\nV 6: 99,state=open"
            .parse()
            .unwrap();
        let settled = shape.settled_values();
        assert_eq!(settled, SettledValues { bytes: 90, live_bytes: 60 });
        assert_eq!(settled.percent(), 150);
        assert_eq!(SettledValues { bytes: 1, live_bytes: 0 }.percent(), 100);
        assert_eq!(SettledValues { bytes: 0, live_bytes: 0 }.percent(), 100);
        assert_eq!(SettledValues { bytes: 3, live_bytes: 1 }.percent(), 300);
        let values: Vec<u64> = shape.value_usage().iter().map(|one| one.live_values).collect();
        assert_eq!(values, [8, 0, 1]);
    }
}
