//! What happened in a simulation, in the order of virtual time.
//!
//! From a trace a reader can rebuild the tree at any time: which tables it had, which jobs were running
//! and why, and whether writers were delayed or stopped. It does not contain value files, nor the limits
//! of writers that spread a stop over time.

use terrane_policy::{Admission, RunId, StallCause, TableId};

/// Something that happened in a simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceEvent {
    /// The time, in seconds.
    pub at: f64,
    /// The number of the tree, in the order of the setup.
    pub tree: usize,
    /// What happened.
    pub what: TraceKind,
}

/// The kinds of events.
#[derive(Debug, Clone, PartialEq)]
pub enum TraceKind {
    /// The tree has these tables at the start.
    Start(Vec<TracedTable>),
    /// A memtable is full and becomes immutable; so many now wait for their flush.
    MemtableFull(usize),
    /// The oldest immutable memtable is being flushed.
    FlushBegan {
        /// The merge with level 0 that the flush carries out, if any.
        merge: Option<TracedMerge>,
        /// The bytes that it writes.
        written_bytes: f64,
    },
    /// The flush has ended.
    FlushEnded(Vec<TableChange>),
    /// A compaction has begun.
    MergeBegan {
        /// Its number, which is unique in the simulation.
        job: u64,
        /// Its levels, inputs and reason.
        merge: TracedMerge,
        /// The bytes that it reads.
        read_bytes: f64,
        /// The bytes that it writes.
        written_bytes: f64,
    },
    /// The scheduler gives a compaction another share of the bandwidth; 0 pauses it. At the end of a simulation,
    /// every running compaction has such an event.
    MergeShare {
        /// The number of the compaction.
        job: u64,
        /// The part of it that is done.
        done: f64,
        /// Its new share.
        share: f64,
    },
    /// A compaction has ended.
    MergeEnded {
        /// Its number.
        job: u64,
        /// The tables that it replaced and created.
        changes: Vec<TableChange>,
    },
    /// A compaction that only moved tables.
    Moved {
        /// Its levels, inputs and reason.
        merge: TracedMerge,
        /// The tables, removed from one level and added to another.
        changes: Vec<TableChange>,
    },
    /// All values of these tables have expired, and the tables were dropped.
    Dropped(Vec<TableChange>),
    /// Policy decides differently from before whether writers proceed.
    Admission(Admission),
    /// Writers stop, for this cause at this number of runs or memtables. Another cause, or another tree, begins
    /// another stop.
    Blocked(StallCause, u32),
    /// Writers continue.
    Unblocked,
}

/// A compaction.
#[derive(Debug, Clone, PartialEq)]
pub struct TracedMerge {
    /// The reason, as the engine logs it.
    pub reason: String,
    /// The source level.
    pub from: usize,
    /// The target level.
    pub into: usize,
    /// The input tables.
    pub inputs: Vec<TableId>,
}

/// A table that entered or left a tree.
#[derive(Debug, Clone, PartialEq)]
pub enum TableChange {
    /// This table entered.
    Added(TracedTable),
    /// This table left.
    Removed(TableId),
}

/// A table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TracedTable {
    /// The table; an identifier is not reused.
    pub table: TableId,
    /// The run that contains it.
    pub run: RunId,
    /// The level of the run.
    pub level: usize,
    /// Where its keys begin, as a share of the key space.
    pub start: f64,
    /// Where its keys end.
    pub end: f64,
    /// Its size, in bytes.
    pub bytes: u64,
    /// Its entries.
    pub entries: u64,
}

impl TraceKind {
    /// Returns the number of tables that an event names, plus one.
    pub(crate) fn size(&self) -> usize {
        let merge = |merge: &TracedMerge| merge.inputs.len();
        1 + match self {
            Self::Start(tables) => tables.len(),
            Self::FlushBegan { merge: into, .. } => into.as_ref().map_or(0, merge),
            Self::MergeBegan { merge: one, .. } => merge(one),
            Self::Moved { merge: one, changes } => merge(one) + changes.len(),
            Self::FlushEnded(changes)
            | Self::MergeEnded { changes, .. }
            | Self::Dropped(changes) => changes.len(),
            Self::MemtableFull(_)
            | Self::MergeShare { .. }
            | Self::Admission(_)
            | Self::Blocked(..)
            | Self::Unblocked => 0,
        }
    }
}
