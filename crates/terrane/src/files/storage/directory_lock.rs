//! The lock of an open database, shared by all parts that must not write without it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Lock;
use crate::base::error::{Error, Result};

/// The locks of the directories of a database. They are released when the last clone is dropped.
#[derive(Debug, Clone)]
pub(crate) struct DirectoryLock {
    /// The lock files; the lock of the table directory comes first.
    locks: Arc<[(PathBuf, Box<dyn Lock>)]>,
}

impl DirectoryLock {
    /// Shares locks, each given with its file. There is at least one.
    pub(crate) fn new(locks: Vec<(PathBuf, Box<dyn Lock>)>) -> Self {
        Self { locks: locks.into() }
    }

    /// Fails with [`Error::LockLost`] if another process may have taken a directory, and with
    /// [`Error::DirectoryRemoved`] if a directory was removed.
    pub(crate) fn check(&self) -> Result<()> {
        for (path, lock) in &*self.locks {
            match lock.is_held() {
                Ok(true) => {}
                Ok(false) => return Err(Error::LockLost { path: path.as_path().into() }),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    let dir = path.parent().unwrap_or(path);
                    return Err(Error::DirectoryRemoved { path: dir.into() });
                }
                Err(error) => return Err(Error::io("check", path, error)),
            }
        }
        Ok(())
    }

    /// Returns the error for a database whose directory another process has taken.
    pub(crate) fn lost(&self) -> Error {
        let path = self.locks.first().map_or(Path::new(""), |(path, _)| path);
        Error::LockLost { path: path.into() }
    }
}
