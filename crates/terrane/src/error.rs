//! What can go wrong, as plain data.
//!
//! Each error says which file it is about, where in it, and what was expected; its
//! [`kind`](Error::kind) says what the caller can do. Errors are cheap to clone, because one
//! failure of a background job may have to be told to many callers.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The result of everything that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What the caller should do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Correct the call: a key, a value, an option or a name is not acceptable.
    Invalid,
    /// Restore from a backup, or repair: a file does not hold what was written to it.
    Corruption,
    /// Use another version of this library: the files are of a format that this one cannot read.
    Unsupported,
    /// Try again, perhaps later: the operating system refused. A full disk is of this kind.
    Io,
    /// Close the other user of the database, or open it read-only.
    Locked,
    /// The database was closed; open it again.
    Closed,
    /// A write may have been lost after a failed sync; close the database and open it again.
    Poisoned,
    /// Report it: this library contradicts itself.
    Internal,
}

/// Why an operation failed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Error {
    /// An argument or an option is not acceptable.
    Invalid(Box<Invalid>),
    /// A file does not hold what was written to it.
    Corruption(Box<Corruption>),
    /// A file is of a format version that this library cannot read.
    Unsupported {
        /// The file.
        path: Arc<Path>,
        /// The version found.
        found: u32,
        /// The newest version that can be read.
        supported: u32,
    },
    /// A file holds something that this library does not know and must not pass over: a newer one
    /// wrote it.
    Unknown {
        /// The file.
        path: Arc<Path>,
        /// What it is, for example `change of the manifest`.
        what: &'static str,
        /// Its tag.
        tag: u32,
    },
    /// The operating system refused an operation on a file.
    Io(Box<IoFailure>),
    /// There is no room on the disk. Reads go on, and writes resume by themselves when there is
    /// room again.
    DiskFull(Box<IoFailure>),
    /// Another process, or another handle of this one, has the database open.
    Locked {
        /// The database.
        path: Arc<Path>,
        /// Which process holds it, as far as it can be told.
        holder: Arc<str>,
    },
    /// The database was closed.
    Closed,
    /// The database was opened read-only.
    ReadOnly,
    /// A sync of the log or the manifest failed, so that earlier writes may not be on disk.
    ///
    /// Writes are refused until the database is opened again, which recovers what is there.
    Poisoned(Box<Error>),
    /// A background job failed in a way that a retry cannot mend; writes are refused.
    Background(Box<Error>),
    /// A contradiction inside this library.
    Internal {
        /// What was found.
        what: Arc<str>,
    },
}

/// An argument or option that is not acceptable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// The argument or option.
    pub what: &'static str,
    /// What was given.
    pub found: String,
    /// What is acceptable.
    pub expected: String,
}

/// A place in a file that does not hold what was written there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corruption {
    /// The file.
    pub path: PathBuf,
    /// The place in bytes from its start, where it is known.
    pub offset: Option<u64>,
    /// What is there, for example `data block`.
    pub what: &'static str,
    /// What is wrong with it.
    pub detail: String,
}

/// An operation that the operating system refused.
#[derive(Debug, Clone)]
pub struct IoFailure {
    /// The operation, for example `sync`.
    pub operation: &'static str,
    /// The file or directory.
    pub path: PathBuf,
    /// What the operating system said.
    pub source: Arc<io::Error>,
}

impl Error {
    /// What the caller should do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid(_) | Self::ReadOnly => ErrorKind::Invalid,
            Self::Corruption(_) => ErrorKind::Corruption,
            Self::Unsupported { .. } | Self::Unknown { .. } => ErrorKind::Unsupported,
            Self::Io(_) | Self::DiskFull(_) => ErrorKind::Io,
            Self::Locked { .. } => ErrorKind::Locked,
            Self::Closed => ErrorKind::Closed,
            Self::Poisoned(_) => ErrorKind::Poisoned,
            Self::Background(cause) => cause.kind(),
            Self::Internal { .. } => ErrorKind::Internal,
        }
    }

    pub(crate) fn invalid(
        what: &'static str,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        Self::Invalid(Box::new(Invalid { what, found: found.into(), expected: expected.into() }))
    }

    pub(crate) fn corruption(
        path: &Path,
        offset: Option<u64>,
        what: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        let detail = detail.into();
        Self::Corruption(Box::new(Corruption { path: path.into(), offset, what, detail }))
    }

    /// Something with a tag that this library does not know, and must.
    pub(crate) fn unknown(path: &Path, what: &'static str, tag: u64) -> Self {
        Self::Unknown { path: path.into(), what, tag: u32::try_from(tag).unwrap_or(u32::MAX) }
    }

    /// An error of the operating system, told apart by whether the disk is full.
    pub(crate) fn io(operation: &'static str, path: &Path, source: io::Error) -> Self {
        let full = matches!(
            source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
        );
        let failure = IoFailure { operation, path: path.into(), source: Arc::new(source) };
        if full { Self::DiskFull(Box::new(failure)) } else { Self::Io(Box::new(failure)) }
    }

    pub(crate) fn internal(what: impl Into<Arc<str>>) -> Self {
        let what = what.into();
        #[cfg(invariants)]
        #[allow(clippy::panic, reason = "under `cfg(invariants)` a contradiction stops the test")]
        {
            panic!("internal error: {what}");
        }
        #[cfg(not(invariants))]
        Self::Internal { what }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(invalid) => {
                let Invalid { what, found, expected } = &**invalid;
                write!(f, "{what} is {found}, but must be {expected}")
            }
            Self::Corruption(place) => {
                write!(f, "corrupt {} in {}", place.what, place.path.display())?;
                if let Some(offset) = place.offset {
                    write!(f, " at byte {offset}")?;
                }
                write!(
                    f,
                    ": {}; restore the file from a backup, or run `terrane repair`",
                    place.detail
                )
            }
            Self::Unsupported { path, found, supported } => write!(
                f,
                "{} has format version {found}, and this library reads up to {supported}; use a newer one",
                path.display()
            ),
            Self::Unknown { path, what, tag } => write!(
                f,
                "{} holds a {what} with tag {tag}, which this library does not know; use a newer one",
                path.display()
            ),
            Self::Io(failure) => write!(f, "cannot {failure}"),
            Self::DiskFull(failure) => write!(
                f,
                "the disk is full: cannot {failure}; free some space, and writes resume by themselves"
            ),
            Self::Locked { path, holder } => write!(
                f,
                "{} is in use by {holder}; close it there, or open the database read-only",
                path.display()
            ),
            Self::Closed => f.write_str("the database is closed; open it again"),
            Self::ReadOnly => f.write_str("the database was opened read-only; open it for writing"),
            Self::Poisoned(cause) => write!(
                f,
                "writes are refused since a sync failed ({cause}); close the database and open it again"
            ),
            Self::Background(cause) => write!(
                f,
                "writes are refused since background work failed ({cause}); close the database and open it again"
            ),
            Self::Internal { what } => write!(f, "internal error, please report it: {what}"),
        }
    }
}

impl fmt::Display for IoFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.operation, self.path.display(), self.source)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(failure) | Self::DiskFull(failure) => Some(&*failure.source),
            Self::Poisoned(cause) | Self::Background(cause) => Some(cause),
            _ => None,
        }
    }
}

impl From<terrane_policy::ParseError> for Error {
    fn from(error: terrane_policy::ParseError) -> Self {
        Self::invalid(error.what, format!("'{}'", error.found), error.expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_small_and_name_place_and_remedy() {
        assert!(size_of::<Error>() <= 40);
        let corrupt = Error::corruption(Path::new("db/7.sst"), Some(42), "data block", "bad sum");
        let text = corrupt.to_string();
        assert!(text.contains("db/7.sst at byte 42") && text.contains("repair"), "{text}");
        let full = Error::io("append to", Path::new("x"), io::ErrorKind::StorageFull.into());
        assert!(matches!(full, Error::DiskFull(_)));
        assert_eq!(full.kind(), ErrorKind::Io);
        let poisoned = Error::Poisoned(Box::new(full));
        assert_eq!(poisoned.kind(), ErrorKind::Poisoned);
    }
}
