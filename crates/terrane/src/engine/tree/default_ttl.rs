//! The default time to live of a keyspace, for puts that state none.

use std::sync::atomic::{AtomicU64, Ordering};

/// A time in microseconds, or none.
#[derive(Debug, Default)]
pub(crate) struct DefaultTtl {
    /// 0 for none.
    micros: AtomicU64,
}

impl DefaultTtl {
    /// Returns the time in microseconds.
    #[inline]
    pub(crate) fn get(&self) -> Option<u64> {
        // Relaxed: it orders nothing, and a put that runs concurrently with a change may use either time.
        Some(self.micros.load(Ordering::Relaxed)).filter(|&micros| micros > 0)
    }

    /// Sets the time in microseconds; 0 for none.
    pub(crate) fn set(&self, micros: u64) {
        self.micros.store(micros, Ordering::Relaxed);
    }
}
