//! How many operations of futures run concurrently.

/// How many operations of an [`AsyncDb`](crate::AsyncDb) run concurrently, each on a thread of its own.
///
/// Further operations wait in the order in which their futures were first polled. Threads start when
/// they are needed and end after ten idle seconds.
///
/// ```
/// # use terrane::AsyncLimits;
/// let limits = AsyncLimits::new().reads(16).writes(128);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsyncLimits {
    pub(super) reads: usize,
    pub(super) writes: usize,
}

impl Default for AsyncLimits {
    fn default() -> Self {
        Self::new()
    }
}

impl AsyncLimits {
    /// Returns the defaults: 32 reads and 64 writes.
    pub fn new() -> Self {
        Self { reads: 32, writes: 64 }
    }

    /// Sets the number of reads that run concurrently, at least 1; choose the number that the device
    /// serves well. Lookups that need only memory do not count, because they need no thread.
    #[must_use]
    pub fn reads(mut self, count: usize) -> Self {
        self.reads = count.max(1);
        self
    }

    /// Sets the number of writes, transactions and calls of [`AsyncDb::run`](crate::AsyncDb::run) that
    /// run concurrently, at least 1. Synced writes that run concurrently share a sync, so a larger number
    /// costs fewer syncs.
    #[must_use]
    pub fn writes(mut self, count: usize) -> Self {
        self.writes = count.max(1);
        self
    }
}
