//! Gauges of an engine that are cheap enough to read during a measurement.

/// The present gauges of an engine, which are cheap to read, unlike
/// [`StoreCounters`](crate::StoreCounters).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Glance {
    /// Sorted runs on disk; the stability paper's disk components.
    pub components: Option<u64>,
    /// Bytes written to files since the engine was opened, logs included.
    pub storage_bytes_written: Option<u64>,
    /// Bytes of tables and value files that ended flushes and merges wrote since the engine was opened.
    pub table_bytes_written: Option<u64>,
    /// Bytes of keys and values that users wrote since the engine was opened.
    pub user_bytes_written: Option<u64>,
    /// The time that writers were stalled since the engine was opened.
    pub stall_micros: Option<u64>,
}
