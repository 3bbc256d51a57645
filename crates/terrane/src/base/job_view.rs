//! A flush or compaction that runs or waits, for people and programs.

/// The work of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum JobType {
    /// It writes a memtable into tables.
    Flush,
    /// It merges or moves tables, or collects value files.
    Compaction,
}

/// Whether a job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum JobState {
    /// It runs, or waits for its share of the bandwidth.
    Running,
    /// It has begun, and the scheduler lets other compactions run first.
    Paused,
    /// It is due, and has not begun.
    Queued,
}

/// A flush or compaction that runs or is due; see [`Maintenance::jobs`](crate::Maintenance::jobs).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct JobView {
    /// The number of a compaction that has begun, counted from 1 since the database was opened.
    pub id: Option<u64>,
    /// The keyspace.
    pub keyspace: String,
    /// The work of the job.
    pub job: JobType,
    /// Whether it runs.
    pub state: JobState,
    /// The inputs and the output of the job.
    pub what: String,
    /// The reason for the job.
    pub why: String,
    /// Bytes to read: the memtables of a flush, the tables of a compaction that are rewritten.
    pub total_bytes: u64,
    /// Bytes that are still to be read; `None` for a flush.
    pub remaining_bytes: Option<u64>,
    /// Bytes written so far; `None` for a flush.
    pub written_bytes: Option<u64>,
    /// The share of the bandwidth that the scheduler gives to a compaction, from 0 to 1.
    pub share: Option<f64>,
    /// The time since a compaction began, in microseconds.
    pub running_micros: Option<u64>,
    /// The numbers of the tables that a compaction or a merging flush takes. Not part of the JSON.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub inputs: Vec<u64>,
    /// The level of its result. Not part of the JSON.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub output_level: Option<usize>,
}
