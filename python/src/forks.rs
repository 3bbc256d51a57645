//! Handles that refuse to work in a forked process.
//!
//! A fork copies the memory of a database but not its threads, and both processes share the files and the lock.
//! A child that wrote would corrupt the log, and one that waited for a thread would wait for ever. So the child
//! counts the fork, every handle of the parent raises `ForkedError` in it, and the child drops none of them:
//! closing in the child would release the parent's lock.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;

use crate::errors;

/// The number of forks between the first process with this module and this one.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Counts a fork; `os.register_at_fork` calls this in each child.
#[pyfunction]
pub(crate) fn note_fork() {
    // Relaxed, because a child has only the thread that forked.
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// A handle of the engine that only the process that made it may use.
#[derive(Debug)]
pub(crate) struct OfProcess<T> {
    /// `None` only while the handle is dropped.
    handle: Option<T>,
    forks: u64,
}

impl<T> OfProcess<T> {
    /// Wraps a handle that belongs to this process.
    pub(crate) fn new(handle: T) -> Self {
        Self { handle: Some(handle), forks: FORKS.load(Ordering::Relaxed) }
    }

    /// Returns the handle.
    ///
    /// # Errors
    /// `ForkedError` in a process that inherited it.
    #[inline]
    pub(crate) fn get(&self) -> PyResult<&T> {
        match &self.handle {
            Some(handle) if self.forks == FORKS.load(Ordering::Relaxed) => Ok(handle),
            _ => Err(errors::forked()),
        }
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        if self.forks != FORKS.load(Ordering::Relaxed) {
            #[allow(clippy::disallowed_methods, reason = "the parent owns the files and the lock")]
            std::mem::forget(self.handle.take());
        }
    }
}
