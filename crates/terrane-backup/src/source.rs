//! The sources of backups.

use std::path::{Path, PathBuf};

/// A failure to make a checkpoint, of any kind.
pub type CheckpointError = Box<dyn std::error::Error + Send + Sync>;

/// A database from which a checkpoint can be made: one that this process has open, or one that another
/// process has open and copies on request ([`CheckpointWith`]).
pub trait Source {
    /// Returns the directory of the database. Temporary copies are made next to it.
    fn path(&self) -> &Path;

    /// Makes a checkpoint, like [`terrane::Db::checkpoint`], in a directory that does not exist and whose
    /// path is absolute.
    ///
    /// # Errors
    /// It could not be made.
    fn checkpoint(&self, dir: &Path) -> Result<(), CheckpointError>;
}

impl Source for terrane::Db {
    fn path(&self) -> &Path {
        Self::path(self)
    }

    fn checkpoint(&self, dir: &Path) -> Result<(), CheckpointError> {
        Ok(Self::checkpoint(self, dir)?)
    }
}

/// A database whose checkpoints a function makes, for example by a request to the process that has it
/// open.
pub struct CheckpointWith<F> {
    path: PathBuf,
    checkpoint: F,
}

impl<F: Fn(&Path) -> Result<(), CheckpointError>> CheckpointWith<F> {
    /// Returns the database in `path`, whose checkpoints `checkpoint` makes in the given directory.
    pub fn new(path: impl Into<PathBuf>, checkpoint: F) -> Self {
        Self { path: path.into(), checkpoint }
    }
}

impl<F: Fn(&Path) -> Result<(), CheckpointError>> Source for CheckpointWith<F> {
    fn path(&self) -> &Path {
        &self.path
    }

    fn checkpoint(&self, dir: &Path) -> Result<(), CheckpointError> {
        (self.checkpoint)(dir)
    }
}
