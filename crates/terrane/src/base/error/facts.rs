//! The facts in errors about invalid arguments, damaged files, refused operations and lost changes.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// An invalid argument or option.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Invalid {
    /// The argument or option.
    pub what: &'static str,
    /// The given value.
    pub found: String,
    /// The accepted values.
    pub expected: String,
}

/// A damaged part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Corruption {
    /// The file.
    pub path: PathBuf,
    /// The offset in bytes, if known.
    pub offset: Option<u64>,
    /// The damaged part, for example `data block`.
    pub what: &'static str,
    /// The damage.
    pub detail: String,
}

/// An operation that the operating system refused.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct IoFailure {
    /// The operation, for example `sync`.
    pub operation: &'static str,
    /// The file or directory.
    pub path: PathBuf,
    /// The error of the operating system.
    pub source: Arc<io::Error>,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, found, expected } = self;
        write!(f, "{what} is {found}, but must be {expected}")
    }
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "corrupt {} in {}", self.what, self.path.display())?;
        if let Some(offset) = self.offset {
            write!(f, " at byte {offset}")?;
        }
        write!(f, ": {}; restore the file from a backup, or run `terrane repair`", self.detail)
    }
}

impl fmt::Display for IoFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.operation, self.path.display(), self.source)
    }
}

/// Changes that the log no longer has.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangesGone {
    /// The position after which changes were requested.
    pub position: u64,
    /// The oldest position after which the log has all changes.
    pub oldest: u64,
}

impl fmt::Display for ChangesGone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { position, oldest } = self;
        write!(
            f,
            "the log no longer has the changes after position {position}, only those after {oldest}; \
             copy the database anew, and raise `keep_changes` for followers that fall behind"
        )
    }
}
