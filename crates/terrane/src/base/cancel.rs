//! The cancellation of a long operation by another thread, and its progress.
//!
//! The operation checks the flag wherever it checks whether the database is being closed, which is at
//! least every 100 ms and after each chunk of a merge.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::base::error::{Error, Result};

/// Cancels an operation, and counts the bytes that it has processed.
#[derive(Debug, Default)]
pub(crate) struct Cancel {
    is_cancelled: AtomicBool,
    done_bytes: AtomicU64,
    total_bytes: AtomicU64,
}

impl Cancel {
    /// The operation ends at its next check.
    pub(crate) fn cancel(&self) {
        // Relaxed, as everywhere here: the flag and the counts guard no other memory.
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    /// Resets the progress for another operation.
    pub(crate) fn begin(&self, total_bytes: u64) {
        self.done_bytes.store(0, Ordering::Relaxed);
        self.total_bytes.store(total_bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_done(&self, bytes: u64) {
        self.done_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the number of processed bytes, and the total number of bytes.
    pub(crate) fn progress(&self) -> (u64, u64) {
        let total = self.total_bytes.load(Ordering::Relaxed);
        (self.done_bytes.load(Ordering::Relaxed).min(total), total)
    }
}

/// Fails if the operation was cancelled. An operation without a [`Cancel`] never is.
pub(crate) fn check(cancel: Option<&Cancel>) -> Result<()> {
    if is_cancelled(cancel) { Err(Error::Cancelled) } else { Ok(()) }
}

pub(crate) fn is_cancelled(cancel: Option<&Cancel>) -> bool {
    cancel.is_some_and(Cancel::is_cancelled)
}
