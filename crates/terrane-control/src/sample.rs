//! Samples: the activity of a database in an interval, and its state at the end.

use serde::{Deserialize, Serialize};
use terrane::{JobView, OperationCounts};

/// The version of the JSON of a sample. A version may gain fields.
pub(crate) const SCHEMA: u32 = 1;

/// The activity of a database in an interval, and its state at the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Sample {
    /// The version of the schema.
    pub schema: u32,
    /// The end of the interval, in microseconds since the Unix epoch.
    pub at_micros: u64,
    /// The length of the interval in microseconds.
    pub interval_micros: u64,
    /// `ok`, `delayed`, `stopped`, `failed` or `read-only`.
    pub health: String,
    /// The error of the database, or the reason why it accepts no writes.
    pub error: Option<String>,
    /// Operations since the database was opened.
    pub operations: OperationCounts,
    /// Operations per second in the interval.
    pub per_second: Rates,
    /// Latencies of the operations measured in the interval, one in 32.
    pub latencies: Vec<Latency>,
    /// The present stalls.
    pub stalls: Vec<Stall>,
    /// The time that writers lost to stalls per unit of time, summed over writers.
    pub stalled_share: f64,
    /// The running jobs, then the waiting ones.
    pub jobs: Vec<Job>,
    /// Memory by holder.
    pub memory: Memory,
    /// Bytes per second in the interval.
    pub io: Io,
    /// The bytes written to tables per byte of user data since the database was opened; `None` if none was
    /// written.
    pub write_amplification: Option<f64>,
    /// The share of block lookups that the cache answered in the interval, from 0 to 1; `None`
    /// without lookups.
    pub cache_hits: Option<f64>,
    /// The number of open snapshots.
    pub snapshots: u64,
    /// The trees.
    pub trees: Vec<Tree>,
}

/// Operations per second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Rates {
    /// Puts and deletes.
    pub writes: f64,
    /// Deletes.
    pub deletes: f64,
    /// Point lookups.
    pub gets: f64,
    /// Iterators.
    pub scans: f64,
    /// Entries that iterators read.
    pub scan_entries: f64,
    /// Bytes of keys and values that were written.
    pub written_bytes: f64,
}

/// The latencies of a kind of operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Latency {
    /// The kind: `get`, `write`, `seek` and so on.
    pub name: String,
    /// The operations that were measured.
    pub count: u64,
    /// The median in microseconds.
    pub p50_micros: f64,
    /// The 99th percentile in microseconds.
    pub p99_micros: f64,
    /// The 99.9th percentile in microseconds.
    pub p999_micros: f64,
    /// The maximum in microseconds.
    pub max_micros: f64,
}

/// A stall of writers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Stall {
    /// The keyspace.
    pub keyspace: String,
    /// True if writers stop, false if they are delayed.
    pub stops: bool,
    /// The cause.
    pub cause: String,
    /// The number that was measured.
    pub measured: u64,
    /// The number at which writers are delayed.
    pub delay_at: u64,
    /// The number at which writers stop.
    pub stop_at: u64,
    /// The condition that ends the stall.
    pub until: String,
    /// How long it has lasted, in microseconds.
    pub micros: u64,
    /// All of this in a sentence.
    pub text: String,
}

/// A job, with its speed in the interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Job {
    /// The job.
    #[serde(flatten)]
    pub view: JobView,
    /// Bytes that it read per second since the previous sample, or since it began.
    pub bytes_per_second: Option<f64>,
    /// The remaining time at this speed, in seconds.
    pub seconds_left: Option<f64>,
}

/// Memory by holder, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Memory {
    /// The budget.
    pub budget: u64,
    /// Memtables, including those that only readers use.
    pub memtables: u64,
    /// Cached blocks that may be evicted.
    pub cache: u64,
    /// Blocks in use, and the writes of open transactions.
    pub pinned: u64,
    /// The memory of open tables besides blocks.
    pub open_tables: u64,
    /// Buffers of flushes, compactions and ingests.
    pub jobs: u64,
}

/// Bytes per second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Io {
    /// Written to the log.
    pub log_written: f64,
    /// Written by flushes.
    pub flush_written: f64,
    /// Read by compactions.
    pub compaction_read: f64,
    /// Written by compactions.
    pub compaction_written: f64,
    /// Read by lookups and scans.
    pub table_read: f64,
}

/// The tree of a keyspace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Tree {
    /// The keyspace.
    pub keyspace: String,
    /// The design.
    pub design: String,
    /// Bytes in the active memtable.
    pub memtable_bytes: u64,
    /// The size at which it is flushed.
    pub memtable_capacity: u64,
    /// Memtables that wait for their flush.
    pub immutable_memtables: u64,
    /// The levels.
    pub levels: Vec<Level>,
}

/// A level of a tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Level {
    /// Its sorted runs.
    pub runs: u64,
    /// Its tables.
    pub tables: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The bytes that the design allows; `None` if it has no levels.
    pub capacity: Option<u64>,
}
