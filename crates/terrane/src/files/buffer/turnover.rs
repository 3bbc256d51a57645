//! Counts blocks that were evicted too early.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Evictions, and blocks that were read again after them.
#[derive(Debug, Default)]
pub(super) struct Turnover {
    has_evicted: AtomicBool,
    /// The number of blocks that a slightly larger pool would not have read again.
    read_again: AtomicUsize,
}

impl Turnover {
    /// Notes that a data block was read. `is_recent` says whether a slightly larger pool would have kept it.
    pub(super) fn note_read(&self, has_evicted: bool, is_recent: bool) {
        // Relaxed, here and below: the numbers guard no other memory.
        if has_evicted && !self.has_evicted() {
            self.has_evicted.store(true, Ordering::Relaxed);
        }
        if is_recent {
            self.read_again.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns true if the pool has evicted blocks.
    #[inline]
    pub(super) fn has_evicted(&self) -> bool {
        self.has_evicted.load(Ordering::Relaxed)
    }

    /// Returns the number of blocks read again, and resets it.
    pub(super) fn take_read_again(&self) -> usize {
        match self.read_again.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.read_again.swap(0, Ordering::Relaxed),
        }
    }
}
