//! What happens in a database, as plain data: told to a listener as it happens, and kept in memory
//! for who asks later.
//!
//! | module | one line |
//! |---|---|
//! | `log` | numbers events, keeps the last ones, calls the listener |
//! | `sentence` | an event for people |
//!
//! Events say what the engine does by itself, a few a second at most; what callers do is counted,
//! see [`Stats`](crate::Stats). Work that fails and is tried again tells of its trouble once.

mod log;
mod sentence;

use terrane_policy::StallCause;

use crate::error::ErrorKind;
pub(crate) use log::{EventLog, Listener};

/// An event with its place among the others.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoggedEvent {
    /// Counted from 1 when the database was opened, without gaps.
    pub number: u64,
    /// When it happened, in microseconds since the Unix epoch.
    pub at_micros: u64,
    /// What happened.
    pub event: Event,
}

/// Something that happened. Printed, it is a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A full memtable is being written into tables.
    #[non_exhaustive]
    FlushBegun {
        /// The keyspace.
        keyspace: String,
        /// What had the memtable flushed.
        reason: FlushReason,
        /// Entries of the memtable.
        entries: u64,
        /// Bytes of data and metadata in it.
        bytes: u64,
    },
    /// A flush has come to its end.
    #[non_exhaustive]
    FlushEnded {
        /// The number of the event that told of its beginning.
        begun: Option<u64>,
        /// The keyspace.
        keyspace: String,
        /// Tables that were made.
        tables: u64,
        /// Their bytes.
        written_bytes: u64,
        /// Tables of level 0 that were merged into them.
        merged_tables: u64,
        /// Bytes of those that were read.
        read_bytes: u64,
        /// Why they are a new run, where the design has flushes merge with level 0.
        apart: Option<String>,
        /// How long it took, in microseconds.
        took_micros: u64,
        /// Why it came to nothing, if it did.
        failure: Option<String>,
    },
    /// A compaction has begun.
    #[non_exhaustive]
    JobBegun {
        /// The keyspace.
        keyspace: String,
        /// What it takes and where that goes.
        what: String,
        /// Why: the trigger with what was measured and its threshold, and how tables were chosen.
        why: String,
        /// Bytes that it is going to read, and at most to write.
        predicted_bytes: u64,
    },
    /// A compaction has come to its end.
    #[non_exhaustive]
    JobEnded {
        /// The number of the event that told of its beginning.
        begun: Option<u64>,
        /// The keyspace.
        keyspace: String,
        /// What it took and where that went.
        what: String,
        /// Why it was done.
        why: String,
        /// Tables that were merged into others, or dropped.
        tables_rewritten: u64,
        /// Tables that only changed place.
        tables_moved: u64,
        /// Bytes that it was going to read, and at most to write.
        predicted_bytes: u64,
        /// Bytes of the tables that it read.
        read_bytes: u64,
        /// Bytes of the tables that it wrote.
        written_bytes: u64,
        /// How long it took, in microseconds.
        took_micros: u64,
        /// Why it came to nothing, if it did.
        failure: Option<String>,
    },
    /// A keyspace whose design leaves its memtable open has one of another kind, from the last
    /// rotation on.
    #[non_exhaustive]
    MemtableChosen {
        /// The keyspace.
        keyspace: String,
        /// The kind.
        kind: String,
        /// What it was asked for, and what each kind is expected to cost.
        reason: String,
    },
    /// Tables went unread, as a range tombstone covers all of their entries.
    #[non_exhaustive]
    TablesDropped {
        /// The keyspace.
        keyspace: String,
        /// How many.
        tables: u64,
    },
    /// A keyspace was given another design.
    #[non_exhaustive]
    DesignChanged {
        /// The keyspace.
        keyspace: String,
        /// The design that it had.
        before: String,
        /// The design that it has.
        after: String,
    },
    /// Writers are slowed down, or wait.
    WritesStalled(WriteStall),
    /// Writers go on as fast as they can.
    #[non_exhaustive]
    WritesResumed {
        /// The keyspace that held them up.
        keyspace: String,
        /// What held them up.
        cause: StallCause,
        /// How long it did, in microseconds.
        lasted_micros: u64,
    },
    /// Background work failed, and is tried again.
    #[non_exhaustive]
    TroubleBegun {
        /// What failed.
        work: BackgroundWork,
        /// What can be done about it.
        kind: ErrorKind,
        /// What is wrong.
        error: String,
    },
    /// Background work that failed has succeeded, or there is none left to be tried again.
    #[non_exhaustive]
    TroubleEnded {
        /// What had failed.
        work: BackgroundWork,
    },
    /// The database refuses writes until it is opened again.
    #[non_exhaustive]
    Failed {
        /// What can be done about it.
        kind: ErrorKind,
        /// What is wrong.
        error: String,
    },
    /// A tombstone is in a table for longer than the time within which deletes are persistent.
    #[non_exhaustive]
    DeletesLate {
        /// The keyspace.
        keyspace: String,
        /// The number of the table.
        table: u64,
        /// The age of its oldest tombstone, in microseconds.
        age_micros: u64,
        /// The time within which deletes are to be persistent, in microseconds.
        threshold_micros: u64,
    },
}

/// What holds writers up, and what would end that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteStall {
    /// The keyspace that is behind.
    pub keyspace: String,
    /// What it means for writers.
    pub effect: StallEffect,
    /// What is behind.
    pub cause: StallCause,
    /// What was found: runs, memtables, or the level that is out of shape.
    pub measured: u64,
    /// The number from which on writers are held up.
    pub threshold: u64,
    /// When it began, in microseconds since the Unix epoch.
    pub since_micros: u64,
    /// What ends it, in words: `level 0 holds fewer than 12 runs`.
    pub until: String,
}

/// What a stall means for writers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StallEffect {
    /// They are slowed down.
    Delayed,
    /// They wait.
    Stopped,
}

/// Why a memtable was flushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FlushReason {
    /// It was as large as the design has it.
    Full,
    /// Memtables of all keyspaces together took too much of the memory.
    Memory,
    /// It held on to a log that had become too long.
    LogLength,
    /// Deletes in it were old.
    DeleteAge,
    /// A caller asked for it.
    Requested,
    /// It was read back from the log.
    Recovery,
    /// The database is closed.
    Closing,
}

/// What a database does in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BackgroundWork {
    /// Memtables into tables.
    Flush,
    /// Dropping tables that range tombstones cover.
    Drop,
    /// Tables into others.
    Compaction,
}
