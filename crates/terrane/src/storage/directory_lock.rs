//! The lock of an open database, shared by the parts that must not write without it.

use std::path::Path;
use std::sync::Arc;

use super::Lock;
use crate::error::{Error, Result};

/// The lock of a directory. It is released when the last clone is dropped.
#[derive(Debug, Clone)]
pub(crate) struct DirectoryLock {
    path: Arc<Path>,
    lock: Arc<dyn Lock>,
}

impl DirectoryLock {
    /// Shares `lock`, whose file is `path`.
    pub(crate) fn new(lock: Box<dyn Lock>, path: &Path) -> Self {
        Self { path: path.into(), lock: lock.into() }
    }

    /// Fails with [`Error::LockLost`] if another process can have taken the directory.
    pub(crate) fn check(&self) -> Result<()> {
        match self.lock.is_held() {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.lost()),
            Err(error) => Err(Error::io("check", &self.path, error)),
        }
    }

    /// Returns the error of a database whose directory another process has taken.
    pub(crate) fn lost(&self) -> Error {
        Error::LockLost { path: Arc::clone(&self.path) }
    }
}
