//! Inspects the files of a database without opening it.
//!
//! All functions except [`repair()`] only read and take no lock. They work on damaged databases as
//! far as those are readable, and report the damage.

mod history;
mod key;
mod log;
mod manifest;
mod repair;
mod salvage;
mod table;
mod verify;

pub use history::{
    DeletesReport, JobReport, KeyspaceDeletes, LogFile, compaction_rate, deletes, jobs,
};
pub use key::{KeyVersion, key};
pub use log::{LogRecord, LogReport, RecordOperation, SegmentReport, log};
pub use manifest::{ManifestEdit, manifest};
pub use repair::{RepairReport, repair};
pub use table::{DeletedRange, TableEntry, TableReport, table};
pub use verify::{Verification, verify};

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// A problem found in a database.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Problem {
    /// The file.
    pub path: PathBuf,
    /// The byte offset in the file, if known.
    pub offset: Option<u64>,
    /// A description of the problem.
    pub what: String,
}

impl Problem {
    fn new(path: &Path, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), offset: None, what: what.into() }
    }

    fn of(error: &Error, path: &Path) -> Self {
        match error {
            Error::Corruption(place) => Self {
                path: place.path.clone(),
                offset: place.offset,
                what: format!("corrupt {}: {}", place.what, place.detail),
            },
            // Display prints the path before the description.
            Error::Io(failure) => Self::new(
                &failure.path,
                format!("cannot {} the file: {}", failure.operation, failure.source),
            ),
            other => Self::new(path, other.to_string()),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(offset) = self.offset {
            write!(f, " at byte {offset}")?;
        }
        write!(f, ": {}", self.what)
    }
}

/// The progress of a long inspection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes read so far.
    pub done_bytes: u64,
    /// Total bytes to read.
    pub total_bytes: u64,
}
