//! Gauges of an engine that are cheap enough to read during a measurement.

/// The largest number of causes of stalls of an engine.
pub const STALL_CAUSES_MAX: usize = 8;

/// The current gauges of an engine, which are cheap to read, unlike
/// [`StoreCounters`](crate::StoreCounters).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Glance {
    /// Sorted runs on disk; the stability paper's disk components.
    pub components: Option<u64>,
    /// Bytes written to files since the engine was opened, logs included.
    pub storage_bytes_written: Option<u64>,
    /// Bytes of tables and value files that completed flushes and merges wrote since the engine was
    /// opened.
    pub table_bytes_written: Option<u64>,
    /// Bytes of keys and values that users wrote since the engine was opened.
    pub user_bytes_written: Option<u64>,
    /// The time that writers were stalled since the engine was opened.
    pub stall_micros: Option<u64>,
    /// The part of that time for each cause, in the order of
    /// [`StoreCounters::stalls`](crate::StoreCounters::stalls).
    pub stalls_micros: [u64; STALL_CAUSES_MAX],
    /// Levels that have runs.
    pub levels: Option<u64>,
    /// The runs that the engine limits.
    pub limit: Option<RunLimit>,
    /// Merges in progress.
    pub running_merges: Option<u64>,
}

/// A limit on runs, such as those of level 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunLimit {
    /// The runs that it counts.
    pub runs: u32,
    /// The number at which writers are delayed; `None` if they never are.
    pub delay: Option<u32>,
    /// The number at which writers stop.
    pub stop: u32,
}
