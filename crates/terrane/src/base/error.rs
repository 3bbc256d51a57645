//! Errors as plain data.
//!
//! An error about a file names the file and, if known, the offset; its [`kind`](Error::kind) says
//! what the caller can do. Errors are cheap to clone, because many callers may receive the failure
//! of one background job.

mod facts;
mod log_loss;
mod other_design;
mod sentence;
mod wrong_file_type;

use std::io;
use std::path::Path;
use std::sync::Arc;

pub use facts::{ChangesGone, Corruption, Invalid, IoFailure};
pub(crate) use log_loss::LostPage;
pub use other_design::OtherDesign;
pub use wrong_file_type::WrongFileType;

/// The result of a fallible operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What the caller should do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum ErrorKind {
    /// Fix the call: an argument, an option or the directory is invalid.
    Invalid,
    /// Restore from a backup, or repair: the contents of a file are damaged.
    Corruption,
    /// Use a newer version of this library: this one cannot read the file format.
    Unsupported,
    /// Retry, perhaps later: the operating system refused an operation. Includes a full disk.
    Io,
    /// Close the other user of the database, or open it read-only.
    Locked,
    /// Try again, or read a checkpoint: a writer changed the database during the call.
    Busy,
    /// Run the transaction again: another write changed what it depends on.
    Conflict,
    /// Open the database again: it was closed, or a forked process uses a handle of its parent.
    Closed,
    /// Begin the operation again if it is still wanted: another thread cancelled it.
    Cancelled,
    /// Close the database and open it again: a failed sync, or another process that took the
    /// directory, may have lost writes.
    Poisoned,
    /// Report a bug in this library.
    Internal,
}

/// Why an operation failed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Error {
    /// An argument or an option is invalid.
    Invalid(Box<Invalid>),
    /// A keyspace has a different design from the one it was opened with.
    OtherDesign(Box<OtherDesign>),
    /// An ingest was given a key that does not follow its last key. The key was not added.
    #[non_exhaustive]
    NotAscending {
        /// The key.
        key: Arc<[u8]>,
        /// The previous key.
        last: Arc<[u8]>,
    },
    /// The directory does not contain a database.
    NoDatabase {
        /// The directory.
        path: Arc<Path>,
    },
    /// The directory contains a database already.
    DatabaseExists {
        /// The directory.
        path: Arc<Path>,
    },
    /// The directory contains files, none of which belongs to a database, so no database is created in
    /// it; see [`Options::among_other_files`](crate::Options::among_other_files).
    #[non_exhaustive]
    OtherFiles {
        /// The directory.
        path: Arc<Path>,
        /// One of the files.
        name: Arc<str>,
    },
    /// The directory contains a checkpoint that was interrupted or is still being written.
    #[non_exhaustive]
    UnfinishedCheckpoint {
        /// The directory.
        path: Arc<Path>,
    },
    /// The log of the database is not in the directory that the database names.
    #[non_exhaustive]
    NoLogDirectory {
        /// The database.
        database: Arc<Path>,
        /// The directory in which its log should be.
        path: Arc<Path>,
    },
    /// A directory cannot be the directory of the log, because it has files of another database.
    #[non_exhaustive]
    LogDirectoryTaken {
        /// The directory.
        path: Arc<Path>,
    },
    /// The contents of a file are damaged.
    Corruption(Box<Corruption>),
    /// A file has a format version that this library cannot read.
    #[non_exhaustive]
    Unsupported {
        /// The file.
        path: Arc<Path>,
        /// The version found.
        found: u32,
        /// The newest version that can be read.
        supported: u32,
    },
    /// A file contains an item that this library does not know and must not skip; a newer version
    /// wrote it.
    #[non_exhaustive]
    Unknown {
        /// The file.
        path: Arc<Path>,
        /// The kind of item, for example `manifest change`.
        what: &'static str,
        /// The tag of the item.
        tag: u32,
    },
    /// A file in the directory is a segment of another database's log. Opening for writing would remove it.
    #[non_exhaustive]
    ForeignLog {
        /// The file.
        path: Arc<Path>,
    },
    /// Something other than a regular file has the name of a file of the database. It was not changed.
    #[non_exhaustive]
    WrongFileType {
        /// The name.
        path: Arc<Path>,
        /// What has this name.
        found: WrongFileType,
    },
    /// The operating system refused an operation on a file.
    Io(Box<IoFailure>),
    /// The disk is full. Reads continue, and writes resume automatically once there is space.
    DiskFull(Box<IoFailure>),
    /// Another process, or another handle in this process, has the database open.
    Locked {
        /// The database.
        path: Arc<Path>,
        /// The process that holds the lock, if known.
        holder: Arc<str>,
    },
    /// A writer replaced files of the database during every attempt to read them.
    #[non_exhaustive]
    Changed {
        /// The database.
        path: Arc<Path>,
        /// The number of attempts.
        tries: u32,
    },
    /// Another write changed what a transaction depends on. Nothing was written.
    #[non_exhaustive]
    Conflict {
        /// How often the transaction was run.
        attempts: u32,
    },
    /// The log no longer has the changes after a position; see [`Db::changes`](crate::Db::changes).
    ChangesGone(Box<ChangesGone>),
    /// The database was closed.
    Closed,
    /// A process that was forked uses a handle of its parent. It did nothing; the parent's database is
    /// unchanged. Open the database again in this process, if the parent has closed it or has ended.
    Forked,
    /// [`Maintenance::cancel`](crate::Maintenance::cancel) ended the operation. The work that it had
    /// finished is kept.
    Cancelled,
    /// The database was opened read-only.
    ReadOnly,
    /// A sync of the log or the manifest failed, so earlier writes may not be on disk.
    ///
    /// The database refuses writes until it is opened again, which recovers the durable writes.
    Poisoned(Box<Error>),
    /// The lock file was removed or replaced while the database was open, so another process can have
    /// opened the directory for writing.
    ///
    /// The database refuses writes. Writes since the lock was lost may be lost.
    #[non_exhaustive]
    LockLost {
        /// The lock file.
        path: Arc<Path>,
    },
    /// The directory of the database, or that of its log, was removed while the database was open.
    ///
    /// The database refuses writes. Writes since the removal are lost.
    #[non_exhaustive]
    DirectoryRemoved {
        /// The directory, by the path by which it was opened.
        path: Arc<Path>,
    },
    /// A log file in use was shortened by another program, or the device cannot read a part of it.
    ///
    /// The database refuses writes. Writes since the last sync may be lost, even if they were
    /// acknowledged, because their records were in the lost part of the file.
    #[non_exhaustive]
    LogLost {
        /// The log file.
        path: Arc<Path>,
        /// The offset of the first part that was found to be lost.
        offset: u64,
    },
    /// A background job failed with an error that a retry cannot fix. The database refuses writes.
    Background(Box<Error>),
    /// A bug in this library. Builds with debug assertions panic instead, unless another thread's panic
    /// is the cause.
    #[non_exhaustive]
    Internal {
        /// The violated expectation.
        what: Arc<str>,
    },
}

impl Error {
    /// Returns the kind, which says what the caller should do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid(_)
            | Self::OtherDesign(_)
            | Self::NotAscending { .. }
            | Self::NoDatabase { .. }
            | Self::DatabaseExists { .. }
            | Self::OtherFiles { .. }
            | Self::UnfinishedCheckpoint { .. }
            | Self::NoLogDirectory { .. }
            | Self::LogDirectoryTaken { .. }
            | Self::ForeignLog { .. }
            | Self::WrongFileType { .. }
            | Self::ChangesGone(_)
            | Self::ReadOnly => ErrorKind::Invalid,
            Self::Corruption(_) => ErrorKind::Corruption,
            Self::Unsupported { .. } | Self::Unknown { .. } => ErrorKind::Unsupported,
            Self::Io(_) | Self::DiskFull(_) => ErrorKind::Io,
            Self::Locked { .. } => ErrorKind::Locked,
            Self::Changed { .. } => ErrorKind::Busy,
            Self::Conflict { .. } => ErrorKind::Conflict,
            Self::Closed | Self::Forked => ErrorKind::Closed,
            Self::Cancelled => ErrorKind::Cancelled,
            Self::Poisoned(_)
            | Self::LockLost { .. }
            | Self::DirectoryRemoved { .. }
            | Self::LogLost { .. } => ErrorKind::Poisoned,
            Self::Background(cause) => cause.kind(),
            Self::Internal { .. } => ErrorKind::Internal,
        }
    }

    /// Returns true if a directory of the database is no longer its own: it was removed, or another
    /// process can have locked it.
    pub(crate) fn is_directory_lost(&self) -> bool {
        matches!(self, Self::LockLost { .. } | Self::DirectoryRemoved { .. })
    }

    /// Returns true if a disk or a quota has no space. False for the limit of the process for the size of
    /// a file, which is [`Error::DiskFull`] as well: no free space makes room for such a file.
    pub(crate) fn is_out_of_space(&self) -> bool {
        let kinds = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
        matches!(self, Self::DiskFull(failure) if kinds.contains(&failure.source.kind()))
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

    /// Returns the error for an item that has an unknown tag and must not be skipped.
    pub(crate) fn unknown(path: &Path, what: &'static str, tag: u64) -> Self {
        Self::Unknown { path: path.into(), what, tag: u32::try_from(tag).unwrap_or(u32::MAX) }
    }

    /// Returns the error for a failure of the operating system. A full disk, a file that is not regular, and
    /// a lost part of the log have variants of their own.
    pub(crate) fn io(operation: &'static str, path: &Path, source: io::Error) -> Self {
        if let Some(found) = WrongFileType::of(&source) {
            return Self::WrongFileType { path: path.into(), found };
        }
        if let Some(LostPage { offset }) = LostPage::of(&source) {
            return Self::LogLost { path: path.into(), offset: *offset };
        }
        let full = matches!(
            source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
        );
        let failure = IoFailure { operation, path: path.into(), source: Arc::new(source) };
        if full { Self::DiskFull(Box::new(failure)) } else { Self::Io(Box::new(failure)) }
    }

    /// Returns the error for a violated expectation of this library. Panics if debug assertions are
    /// enabled, so that no test passes over a bug.
    pub(crate) fn internal(what: impl Into<Arc<str>>) -> Self {
        let what = what.into();
        debug_assert!(is_expected(), "internal error: {what}");
        Self::Internal { what }
    }
}

/// Whether a test on this thread causes an internal error on purpose.
fn is_expected() -> bool {
    #[cfg(test)]
    return tests::INTERNAL_EXPECTED.get();
    #[cfg(not(test))]
    return false;
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
pub(crate) mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        pub(super) static INTERNAL_EXPECTED: Cell<bool> = const { Cell::new(false) };
    }

    /// Runs code that causes an internal error on purpose, on this thread.
    pub(crate) fn expecting_internal<T>(run: impl FnOnce() -> T) -> T {
        INTERNAL_EXPECTED.set(true);
        let outcome = run();
        INTERNAL_EXPECTED.set(false);
        outcome
    }

    #[test]
    fn errors_are_small_and_name_place_and_remedy() {
        assert!(size_of::<Error>() <= 40);
        let corrupt = Error::corruption(Path::new("db/7.sst"), Some(42), "data block", "bad sum");
        let text = corrupt.to_string();
        assert!(text.contains("db/7.sst at byte 42") && text.contains("repair"), "{text}");
        let full = Error::io("append to", Path::new("x"), io::ErrorKind::StorageFull.into());
        assert!(matches!(full, Error::DiskFull(_)));
        assert_eq!(full.kind(), ErrorKind::Io);
        assert!(full.is_out_of_space());
        let too_large = Error::io("append to", Path::new("x"), io::ErrorKind::FileTooLarge.into());
        assert!(matches!(too_large, Error::DiskFull(_)) && !too_large.is_out_of_space());
        let poisoned = Error::Poisoned(Box::new(full));
        assert_eq!(poisoned.kind(), ErrorKind::Poisoned);
    }
}
