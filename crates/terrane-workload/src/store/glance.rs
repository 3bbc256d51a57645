//! What an engine can tell of itself while it is measured.

/// An engine as it is now; cheap to take, unlike [`StoreCounters`](crate::StoreCounters).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Glance {
    /// Sorted runs on disk, what the stability paper calls disk components.
    pub components: Option<u64>,
    /// Bytes written to files since the engine was opened, logs included.
    pub storage_bytes_written: Option<u64>,
    /// How long writers waited since the engine was opened.
    pub stall_micros: Option<u64>,
}
