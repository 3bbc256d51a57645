//! Shared locks of a [`MemoryStorage`]. They have no files.

use std::io;
use std::path::{Path, PathBuf};

use super::MemoryStorage;
use crate::storage::{Lock, LockProbe};

/// A shared lock within the process.
#[derive(Debug)]
pub(super) struct SharedLock {
    storage: MemoryStorage,
    path: PathBuf,
}

impl SharedLock {
    pub(super) fn new(storage: MemoryStorage, path: &Path) -> Self {
        *storage.lock_state().shared_locks.entry(path.to_owned()).or_default() += 1;
        Self { storage, path: path.to_owned() }
    }
}

impl Lock for SharedLock {}

impl Drop for SharedLock {
    fn drop(&mut self) {
        let mut state = self.storage.lock_state();
        if let Some(count) = state.shared_locks.get_mut(&self.path) {
            *count -= 1;
        }
    }
}

/// Finds out whether a path is locked.
#[derive(Debug)]
pub(super) struct MemoryProbe {
    storage: MemoryStorage,
    path: PathBuf,
}

impl MemoryProbe {
    pub(super) fn new(storage: MemoryStorage, path: &Path) -> Self {
        Self { storage, path: path.to_owned() }
    }
}

impl LockProbe for MemoryProbe {
    fn is_locked(&self) -> io::Result<bool> {
        let state = self.storage.lock_state();
        Ok(state.shared_locks.get(&self.path).is_some_and(|count| *count > 0))
    }
}
