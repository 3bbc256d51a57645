//! How a backup is created.

use std::path::PathBuf;

use crate::watch::{Pace, impl_pace};

/// How much of a backup is read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ReadBack {
    /// Nothing.
    #[default]
    Nothing,
    /// The objects that this backup stored.
    New,
    /// All objects of the backup. Damaged ones are stored again.
    All,
}

/// How a backup is created.
#[derive(Debug, Clone, Default)]
pub struct CreateOptions {
    pub(super) pace: Pace,
    pub(super) read_back: ReadBack,
    pub(super) reread: bool,
    pub(super) temporary: Option<PathBuf>,
    pub(super) time_micros: Option<u64>,
}

impl CreateOptions {
    /// Returns the default options: as fast as possible, without reading back.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads objects back, and compares them with the files.
    #[must_use]
    pub fn read_back(mut self, read_back: ReadBack) -> Self {
        self.read_back = read_back;
        self
    }

    /// Reads all files of the database, even those that an earlier backup has, to find damage in them.
    #[must_use]
    pub fn reread(mut self) -> Self {
        self.reread = true;
        self
    }

    /// Makes the checkpoint in a temporary directory below this one, which must exist and should be on the
    /// file system of the database, because otherwise all tables are copied. A database on a read-only file
    /// system needs one elsewhere. The default is the parent directory of the database.
    #[must_use]
    pub fn temporary(mut self, dir: impl Into<PathBuf>) -> Self {
        self.temporary = Some(dir.into());
        self
    }

    /// States the time of the backup, in microseconds since 1970, instead of the clock of the machine. The
    /// order of backups does not depend on it.
    #[must_use]
    pub fn time_micros(mut self, micros: u64) -> Self {
        self.time_micros = Some(micros);
        self
    }
}

impl_pace!(
    CreateOptions,
    "Stores at most this many bytes per second. New files are read twice, the second time usually from \
     the page cache.",
    "Calls `callback` with the progress, often. [`ControlFlow::Break`](std::ops::ControlFlow::Break) \
     cancels the backup."
);
