//! Errors as plain data.

use std::fmt;
use std::io;
use std::path::Path;

use crate::cancelled::is_cancelled;

/// The result of a fallible operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation on backups failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The engine refused an operation on the database or on a copy of it.
    Engine(terrane::Error),
    /// The source could not make a checkpoint.
    Checkpoint(Box<dyn std::error::Error + Send + Sync>),
    /// An operation on a file or an object failed.
    #[non_exhaustive]
    Io {
        /// The failed operation, such as `read`.
        operation: &'static str,
        /// The file, or the repository and the object.
        location: String,
        /// The reason.
        source: io::Error,
    },
    /// The location is neither empty nor a repository.
    #[non_exhaustive]
    NotRepository {
        /// The location.
        location: String,
    },
    /// An argument is invalid: the problem, and a remedy.
    Invalid(String),
    /// No backup matches.
    #[non_exhaustive]
    NoBackup {
        /// The wanted backup.
        wanted: String,
        /// The repository.
        location: String,
    },
    /// The contents of a file or an object are damaged.
    #[non_exhaustive]
    Damaged {
        /// The file, or the repository and the object.
        location: String,
        /// The damage.
        what: String,
    },
    /// A newer version wrote the repository or the backup.
    #[non_exhaustive]
    Unsupported {
        /// The object.
        location: String,
        /// The version of its format.
        found: u32,
        /// The newest version that can be read.
        supported: u32,
    },
    /// Another process uses the repository in a way that excludes the operation.
    #[non_exhaustive]
    InUse {
        /// The repository.
        location: String,
        /// The other process.
        holder: String,
        /// The remedy if that process no longer exists: the end of the sentence, or an empty string.
        advice: &'static str,
    },
    /// The progress callback asked to stop.
    Cancelled,
}

impl Error {
    /// Wraps an error of an operation; a cancellation becomes [`Error::Cancelled`].
    pub(crate) fn io(
        operation: &'static str,
        location: impl Into<String>,
        source: io::Error,
    ) -> Self {
        if is_cancelled(&source) {
            return Self::Cancelled;
        }
        Self::Io { operation, location: location.into(), source }
    }

    /// Wraps an error of an operation on a local file.
    pub(crate) fn file(operation: &'static str, path: &Path, source: io::Error) -> Self {
        Self::io(operation, path.display().to_string(), source)
    }

    /// Reports damage.
    pub(crate) fn damaged(location: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Damaged { location: location.into(), what: what.into() }
    }

    /// Returns true if the contents of a file or an object are damaged.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Damaged { .. } => true,
            Self::Engine(error) => error.kind() == terrane::ErrorKind::Corruption,
            _ => false,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(error) => error.fmt(f),
            Self::Checkpoint(error) => write!(f, "cannot make a checkpoint: {error}"),
            Self::Io { operation, location, source } => {
                write!(f, "cannot {operation} {location}: {source}")
            }
            Self::NotRepository { location } => write!(
                f,
                "{location} has other files and is not a backup repository; use a new or empty location"
            ),
            Self::Invalid(what) => f.write_str(what),
            Self::NoBackup { wanted, location } => {
                write!(f, "no {wanted} in {location}; 'terrane backup list' shows its backups")
            }
            Self::Damaged { location, what } => write!(f, "{location} is damaged: {what}"),
            Self::Unsupported { location, found, supported } => write!(
                f,
                "{location} has format {found}, and this version reads up to {supported}; use the \
                 version that wrote it"
            ),
            Self::InUse { location, holder, advice } => {
                write!(f, "{location} is in use by {holder}; try again when that has ended{advice}")
            }
            Self::Cancelled => f.write_str("the operation was cancelled"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Engine(error) => Some(error),
            Self::Checkpoint(error) => Some(&**error),
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<terrane::Error> for Error {
    fn from(error: terrane::Error) -> Self {
        Self::Engine(error)
    }
}
