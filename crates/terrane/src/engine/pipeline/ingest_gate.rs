//! Excludes ingests for a moment: see [`super::checkpoint_log`].

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Any number of ingests hold it concurrently, each from before it takes its numbers until it is
/// visible.
#[derive(Debug, Default)]
pub(crate) struct IngestGate(RwLock<()>);

impl IngestGate {
    /// Waits while the gate is closed. Must be called without the lock of the pipeline.
    pub(crate) fn pass(&self) -> RwLockReadGuard<'_, ()> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the ingests that have passed, and blocks further ones until the result is dropped.
    /// Must be called without the lock of the pipeline.
    pub(crate) fn close(&self) -> RwLockWriteGuard<'_, ()> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
