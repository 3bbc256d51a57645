//! Problems found by an inspection, and its progress.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::base::error::Error;

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
    pub(super) fn new(path: &Path, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), offset: None, what: what.into() }
    }

    pub(super) fn of(error: &Error, path: &Path) -> Self {
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
