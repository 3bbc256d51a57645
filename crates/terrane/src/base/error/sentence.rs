//! Errors as sentences.

use std::fmt;
use std::path::Path;

use super::Error;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(invalid) => invalid.fmt(f),
            Self::OtherDesign(difference) => difference.fmt(f),
            Self::NotAscending { key, last } => not_ascending(f, key, last),
            Self::NoDatabase { path } => write!(f, "no database in '{}'", path.display()),
            Self::DatabaseExists { path } => {
                write!(f, "'{}' already contains a database", path.display())
            }
            Self::OtherFiles { path, name } => other_files(f, path, name),
            Self::UnfinishedCheckpoint { path } => unfinished_checkpoint(f, path),
            Self::NoLogDirectory { database, path } => no_log_directory(f, database, path),
            Self::LogDirectoryTaken { path } => write!(
                f,
                "'{}' has files of another database; set `log_dir` to a directory of its own",
                path.display()
            ),
            Self::Corruption(place) => place.fmt(f),
            Self::Unsupported { path, found, supported } => unsupported(f, path, *found, *supported),
            Self::Unknown { path, what, tag } => unknown(f, path, what, *tag),
            Self::Io(failure) => write!(f, "cannot {failure}"),
            Self::DiskFull(failure) => write!(
                f,
                "disk full: cannot {failure}; writes resume automatically once there is space"
            ),
            Self::Locked { path, holder } => write!(
                f,
                "{} is in use by {holder}; close it there, or open the database read-only",
                path.display()
            ),
            Self::Changed { path, tries } => changed(f, path, *tries),
            Self::Conflict { attempts } => conflict(f, *attempts),
            Self::ChangesGone(gone) => gone.fmt(f),
            Self::Closed => f.write_str("the database is closed; open it again"),
            Self::Forked => f.write_str(
                "this handle belongs to the parent process; open the database again in this process",
            ),
            Self::Cancelled => f.write_str("cancelled; the work finished before is kept"),
            Self::ReadOnly => f.write_str("the database is open read-only; open it for writing"),
            Self::Poisoned(cause) => write!(
                f,
                "writes are refused after a failed sync ({cause}); close the database and open it again"
            ),
            Self::LockLost { path } => lock_lost(f, path),
            Self::LogLost { path, offset } => super::log_loss::explain(f, path, *offset),
            Self::DirectoryRemoved { path } => write!(
                f,
                "writes are refused because the directory {} was removed while the database was open",
                path.display()
            ),
            Self::ForeignLog { path } => foreign_log(f, path),
            Self::WrongFileType { path, found } => write!(
                f,
                "{} is {found}, but must be a regular file; move it elsewhere",
                path.display()
            ),
            Self::Background(cause) => write!(
                f,
                "writes are refused after a background error ({cause}); close the database and open \
                 it again"
            ),
            Self::Internal { what } => write!(f, "internal error, please report it: {what}"),
        }
    }
}

fn not_ascending(f: &mut fmt::Formatter<'_>, key: &[u8], last: &[u8]) -> fmt::Result {
    let (key, last) = (key.escape_ascii(), last.escape_ascii());
    let rule = "an ingest takes keys in ascending order, each once";
    write!(f, "the key '{key}' does not follow '{last}'; {rule}")
}

fn unknown(f: &mut fmt::Formatter<'_>, path: &Path, what: &str, tag: u32) -> fmt::Result {
    write!(
        f,
        "{} contains a {what} with the unknown tag {tag}; use a newer version of the library",
        path.display()
    )
}

fn other_files(f: &mut fmt::Formatter<'_>, path: &Path, name: &str) -> fmt::Result {
    write!(
        f,
        "'{}' has other files, such as '{name}', and no database; choose a directory of its own",
        path.display()
    )
}

fn conflict(f: &mut fmt::Formatter<'_>, attempts: u32) -> fmt::Result {
    if attempts <= 1 {
        return f.write_str("another write changed what the transaction depends on; run it again");
    }
    write!(
        f,
        "other writes changed what the transaction depends on in each of {attempts} attempts; make it \
         shorter, or run it again when fewer writers are active"
    )
}

fn no_log_directory(f: &mut fmt::Formatter<'_>, database: &Path, path: &Path) -> fmt::Result {
    write!(
        f,
        "the log of '{}' should be in '{}', but is not there; mount that directory, or open the \
         database with `log_dir` set to where the log is now",
        database.display(),
        path.display()
    )
}

fn unfinished_checkpoint(f: &mut fmt::Formatter<'_>, path: &Path) -> fmt::Result {
    write!(
        f,
        "'{}' contains an unfinished checkpoint, or an unfinished restore of a backup; run that \
         again, or remove the directory",
        path.display()
    )
}

fn unsupported(f: &mut fmt::Formatter<'_>, path: &Path, found: u32, supported: u32) -> fmt::Result {
    write!(
        f,
        "{} has format version {found}, but this library reads versions up to {supported}; use a \
         newer version of the library",
        path.display()
    )
}

fn changed(f: &mut fmt::Formatter<'_>, path: &Path, tries: u32) -> fmt::Result {
    write!(
        f,
        "a writer replaced files of {} during each of {tries} attempts to read them; try again, or \
         read a checkpoint",
        path.display()
    )
}

fn lock_lost(f: &mut fmt::Formatter<'_>, path: &Path) -> fmt::Result {
    write!(
        f,
        "writes are refused because {} was removed or replaced, and another process may have taken the \
         database; close the database and open it again",
        path.display()
    )
}

fn foreign_log(f: &mut fmt::Formatter<'_>, path: &Path) -> fmt::Result {
    write!(
        f,
        "{} belongs to the log of another database; move it back to the directory of that database",
        path.display()
    )
}
