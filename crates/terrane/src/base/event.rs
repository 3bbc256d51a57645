//! Events of a database as plain data: passed to a listener when they happen, and kept in memory for
//! later queries.
//!
//! | module | one line |
//! |---|---|
//! | `log` | numbers events, keeps the last ones, calls the listener |
//! | `sentence` | an event as a sentence |
//! | `trace` | events and jobs for the crate `tracing` |
//!
//! Events report background activity, a few per second at most. Operations of callers are counted
//! instead, see [`Stats`](crate::Stats). Work that fails repeatedly emits one event until it
//! succeeds.

mod log;
mod sentence;
mod trace;

use terrane_policy::{Forecast, StallCause};

use crate::base::error::ErrorKind;
pub(crate) use log::{EventLog, Listener};
pub(crate) use trace::enter_job;

/// An event with its number and time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct LoggedEvent {
    /// The number, counted from 1 since the database was opened, without gaps.
    pub number: u64,
    /// The time of the event, in microseconds since the Unix epoch.
    pub at_micros: u64,
    /// The event.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub event: Event,
}

/// Background activity of a database. Prints as a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(tag = "event", rename_all = "kebab-case"))]
pub enum Event {
    /// A flush of an immutable memtable began.
    #[non_exhaustive]
    FlushBegun {
        /// The keyspace.
        keyspace: String,
        /// The reason for the flush.
        reason: FlushReason,
        /// Entries of the memtable.
        entries: u64,
        /// Bytes of data and metadata in the memtable, and of the values in the log to which it refers.
        bytes: u64,
    },
    /// A flush ended.
    #[non_exhaustive]
    FlushEnded {
        /// The number of the matching [`Event::FlushBegun`].
        begun: Option<u64>,
        /// The keyspace.
        keyspace: String,
        /// Tables written.
        tables: u64,
        /// Bytes of the written tables.
        written_bytes: u64,
        /// Tables of level 0 that were merged into the written tables.
        merged_tables: u64,
        /// Bytes read from the merged tables.
        read_bytes: u64,
        /// Why the tables are a new run although the design merges flushes with level 0.
        new_run_reason: Option<String>,
        /// The duration in microseconds.
        took_micros: u64,
        /// The error, if the flush failed.
        failure: Option<String>,
    },
    /// A compaction began.
    #[non_exhaustive]
    JobBegun {
        /// The keyspace.
        keyspace: String,
        /// The inputs and the output level of the compaction.
        what: String,
        /// The trigger with its measured value and threshold, and how the tables were chosen.
        why: String,
        /// The prediction: bytes to read plus the maximum number of bytes to write.
        predicted_bytes: u64,
    },
    /// A compaction ended.
    #[non_exhaustive]
    JobEnded {
        /// The number of the matching [`Event::JobBegun`].
        begun: Option<u64>,
        /// The keyspace.
        keyspace: String,
        /// The inputs and the output level of the compaction.
        what: String,
        /// The reason for the compaction.
        why: String,
        /// Tables merged or dropped.
        tables_rewritten: u64,
        /// Tables moved without being rewritten.
        tables_moved: u64,
        /// The prediction: bytes to read plus the maximum number of bytes to write.
        predicted_bytes: u64,
        /// Bytes of the tables read.
        read_bytes: u64,
        /// Bytes of the tables written.
        written_bytes: u64,
        /// The duration in microseconds.
        took_micros: u64,
        /// The error, if the compaction failed.
        failure: Option<String>,
    },
    /// With `memtable=auto`, a keyspace switched to another kind of memtable at a rotation.
    #[non_exhaustive]
    MemtableChosen {
        /// The keyspace.
        keyspace: String,
        /// The new kind.
        kind: String,
        /// The observed operations and the predicted cost of each kind.
        reason: String,
    },
    /// Tables were dropped unread because a range tombstone covers all their entries, or because all their
    /// values have expired.
    #[non_exhaustive]
    TablesDropped {
        /// The keyspace.
        keyspace: String,
        /// The number of tables.
        tables: u64,
    },
    /// An ingest was committed: its tables are part of the keyspace.
    #[non_exhaustive]
    TablesIngested {
        /// The keyspace.
        keyspace: String,
        /// Entries of the ingest.
        entries: u64,
        /// Tables of the ingest.
        tables: u64,
        /// Value files of the ingest.
        value_files: u64,
        /// Bytes of the tables and value files.
        written_bytes: u64,
        /// The first level that received tables.
        top_level: u64,
        /// The last level that received tables.
        bottom_level: u64,
        /// The duration of the commit in microseconds.
        took_micros: u64,
    },
    /// The design of a keyspace changed.
    #[non_exhaustive]
    DesignChanged {
        /// The keyspace.
        keyspace: String,
        /// The previous design.
        before: String,
        /// The new design.
        after: String,
        /// The predicted work, if [`Options::design_or_change`](crate::Options::design_or_change) or
        /// its counterpart for keyspaces made the change.
        forecast: Option<PredictedChange>,
    },
    /// An opening changed a stored option.
    #[non_exhaustive]
    OptionChanged {
        /// The name of the option.
        option: &'static str,
        /// The previous value.
        before: String,
        /// The new value.
        after: String,
    },
    /// The file system of a directory does not sync directories. After a power failure, files that were
    /// created or removed shortly before may be missing or may return. Reported once per opening.
    #[non_exhaustive]
    DirectoryNotSynced {
        /// The directory.
        path: String,
        /// The answer of the operating system.
        error: String,
    },
    /// The operating system refused to map the log, which is written with system calls instead: a limited
    /// address space (`ulimit -v`), a sandbox or a file system without maps. Writes take longer. Reported
    /// once per opening.
    #[non_exhaustive]
    LogNotMapped {
        /// The directory of the log.
        path: String,
        /// The answer of the operating system.
        error: String,
    },
    /// The memory budget does not fit into the memory that the operating system allows the process, so the
    /// process may be ended or its allocations may fail.
    #[non_exhaustive]
    MemoryBudgetTooLarge {
        /// The memory budget in bytes.
        budget_bytes: u64,
        /// The limit in bytes.
        limit_bytes: u64,
        /// The source of the limit: a file of a control group, a resource limit, or the machine.
        limit: String,
    },
    /// So little memory is free that the block cache gives some back, and takes less than the budget grants
    /// it. Reads may find fewer blocks in memory.
    #[non_exhaustive]
    MemoryShort {
        /// What the cache may take, in bytes.
        cache_bytes: u64,
        /// What is free, in bytes.
        free_bytes: u64,
        /// The limit in bytes.
        limit_bytes: u64,
        /// The source of the limit: a file of a control group, a resource limit, or the machine.
        limit: String,
    },
    /// Enough memory is free again for all that the budget grants the block cache.
    #[non_exhaustive]
    MemoryRecovered {},
    /// Compactions of a keyspace keep all values, although it has a compaction filter.
    #[non_exhaustive]
    CompactionFilterInactive {
        /// The keyspace.
        keyspace: String,
        /// The name of the filter.
        filter: String,
        /// Why the filter does nothing.
        reason: &'static str,
    },
    /// Writers are delayed or stopped.
    WritesStalled(WriteStall),
    /// A stall ended; writers proceed at full speed.
    #[non_exhaustive]
    WritesResumed {
        /// The keyspace that stalled the writers.
        keyspace: String,
        /// The cause of the stall.
        cause: StallCause,
        /// The duration of the stall, in microseconds.
        lasted_micros: u64,
    },
    /// Background work failed and is retried.
    #[non_exhaustive]
    WorkFailed {
        /// The work.
        work: BackgroundWork,
        /// What the user can do about the error.
        kind: ErrorKind,
        /// The error.
        error: String,
    },
    /// Background work succeeded after a failure, or is no longer needed.
    #[non_exhaustive]
    WorkRecovered {
        /// The work.
        work: BackgroundWork,
    },
    /// The database refuses writes until it is opened again.
    #[non_exhaustive]
    Failed {
        /// What the user can do about the error.
        kind: ErrorKind,
        /// The error.
        error: String,
    },
    /// A table has a tombstone older than the delete persistence time.
    #[non_exhaustive]
    DeletesLate {
        /// The keyspace.
        keyspace: String,
        /// The number of the table.
        table: u64,
        /// The age of its oldest tombstone, in microseconds.
        age_micros: u64,
        /// The delete persistence time, in microseconds.
        threshold_micros: u64,
    },
    /// A value file has contained a deleted or overwritten value for longer than the delete
    /// persistence time.
    #[non_exhaustive]
    DeadValuesLate {
        /// The keyspace.
        keyspace: String,
        /// The number of the value file.
        file: u64,
        /// The age of the oldest delete that may affect one of its values, in microseconds.
        age_micros: u64,
        /// The delete persistence time, in microseconds.
        threshold_micros: u64,
    },
}

/// The predicted work of a change of design; see [`Forecast`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PredictedChange {
    /// The minimum number of compactions until the tree satisfies the new design.
    pub compactions: u64,
    /// The bytes that they read, which is also the maximum that they rewrite.
    pub bytes_rewritten: u64,
    /// The number of sorted runs before.
    pub runs_before: u64,
    /// The number of sorted runs after the compactions.
    pub runs_after: u64,
}

impl PredictedChange {
    pub(crate) fn of(forecast: &Forecast) -> Self {
        Self {
            compactions: forecast.jobs,
            bytes_rewritten: forecast.bytes_rewritten,
            runs_before: forecast.before.runs,
            runs_after: forecast.after.runs,
        }
    }
}

/// A write stall, and the condition that ends it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct WriteStall {
    /// The keyspace that causes the stall.
    pub keyspace: String,
    /// Whether writers are delayed or stopped.
    pub effect: StallEffect,
    /// The cause.
    pub cause: StallCause,
    /// The measured number of runs or memtables, or the level that is out of shape.
    pub measured: u64,
    /// The number at which writers stall.
    pub threshold: u64,
    /// The time at which the stall began, in microseconds since the Unix epoch.
    pub since_micros: u64,
    /// The condition that ends the stall, in words: `level 0 holds fewer than 12 runs`.
    pub until: String,
}

/// The effect of a stall on writers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum StallEffect {
    /// Writers are delayed.
    Delayed,
    /// Writers are stopped.
    Stopped,
}

/// Why a memtable was flushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum FlushReason {
    /// The memtable reached the buffer size of the design.
    Full,
    /// The memtables of all keyspaces exceeded their share of the memory budget.
    Memory,
    /// The memtable pinned a log that exceeded `log_bytes_max`.
    LogLength,
    /// The memtable contained deletes that were due to become persistent.
    DeleteAge,
    /// With `memtable=auto`, the kind of the memtable did not suit the operations.
    MemtableKind,
    /// A caller requested the flush.
    Requested,
    /// The memtable was replayed from the log.
    Recovery,
    /// The database is closing.
    Closing,
}

/// The kinds of background work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum BackgroundWork {
    /// Writing memtables into tables.
    Flush,
    /// Dropping tables that range tombstones cover.
    Drop,
    /// Merging tables.
    Compaction,
    /// Appending writes to the log, which callers do. Every write is refused until one succeeds.
    Log,
}
