//! The tables of all trees, as changes from one time to the next.

use serde::{Deserialize, Serialize};

use crate::bytes::Bytes;

/// Bytes of a key in a message. Longer keys are cut, since a picture needs only their places; those of paths and
/// addresses may have a long beginning in common.
pub(crate) const KEY_BYTES_MAX: usize = 256;

/// The tables of all trees that came and went, and the tables that jobs take.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TableChanges {
    /// The time, in microseconds since the Unix epoch.
    pub at_micros: u64,
    /// True if `added` holds all tables, and not only changes.
    pub is_whole: bool,
    /// The trees with changes.
    pub trees: Vec<TreeChanges>,
    /// The jobs that have begun.
    pub jobs: Vec<JobTables>,
}

impl TableChanges {
    /// Returns all tables at a time, in microseconds since the Unix epoch.
    pub fn whole(at_micros: u64, trees: Vec<TreeChanges>) -> Self {
        Self { at_micros, is_whole: true, trees, jobs: Vec::new() }
    }
}

/// The tables of a tree that came and went.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TreeChanges {
    /// The keyspace.
    pub keyspace: String,
    /// The numbers of the tables that have left the tree, or their place in it. They come before `added`.
    pub removed: Vec<u64>,
    /// The tables that are new in the tree, or at a new place.
    pub added: Vec<PlacedTable>,
}

impl TreeChanges {
    /// Returns all tables of a tree.
    pub fn whole(keyspace: String, tables: Vec<PlacedTable>) -> Self {
        Self { keyspace, removed: Vec::new(), added: tables }
    }
}

/// A table at its place in the tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlacedTable {
    /// The number of the table.
    pub table: u64,
    /// The number of its run; within a level, a higher one is newer.
    pub run: u64,
    /// The level.
    pub level: u64,
    /// The first key, cut to 256 bytes.
    pub start: Bytes,
    /// The first key after the table, cut to 256 bytes; `None` if its range has no end.
    pub end: Option<Bytes>,
    /// The size of the file.
    pub bytes: u64,
    /// Its entries, tombstones included.
    pub entries: u64,
    /// Its point tombstones.
    pub tombstones: u64,
}

/// The tables that a job takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct JobTables {
    /// The number of the job, as in a sample.
    pub id: u64,
    /// The numbers of the tables.
    pub inputs: Vec<u64>,
    /// The level of its result.
    pub output_level: u64,
}
