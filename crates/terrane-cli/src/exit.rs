//! Exit codes, and their mapping from errors.

use std::io::{self, Write};
use std::process::ExitCode;

use terrane::{Error, ErrorKind, Options};
use terrane_control::Failure;

use crate::terminal::{Paint, error_columns};
use crate::wrap::wrapped;
use terrane_lab::error::UsageError;
pub(crate) use terrane_lab::error::{is_broken_pipe, usage};

/// The result of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success.
    Done,
    /// A failure.
    Failed,
    /// An invalid command line.
    Usage,
    /// A file is corrupt.
    CorruptionFound,
    /// Another process has the database open, or is changing it too quickly to be read.
    Locked,
    /// The user interrupted the command.
    Interrupted,
}

impl Exit {
    /// Returns the exit code.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::CorruptionFound => 4,
            Self::Locked => 5,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Prints an error to standard error, ignoring failures to print.
pub(crate) fn print_error(error: &anyhow::Error) {
    let text = match exit_of(error) {
        // The user knows why.
        Exit::Interrupted => sentence(error),
        _ => format!("{} {}", Paint::stderr().red("error:"), sentence(error)),
    };
    let text = match error_columns() {
        Some(columns) => wrapped(&text, columns),
        None => text,
    };
    let _ = writeln!(io::stderr(), "{text}");
}

/// Formats an error with its causes, except causes that its message already contains.
pub(crate) fn sentence(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    if let Some(hint) = hint(error) {
        text.push_str("; ");
        text.push_str(hint);
    }
    text
}

/// Returns the exit for an error.
pub(crate) fn exit_of(error: &anyhow::Error) -> Exit {
    if is_broken_pipe(error) {
        return Exit::Done;
    }
    if error.chain().any(<dyn std::error::Error>::is::<UsageError>) {
        return Exit::Usage;
    }
    if let Some(exit) = error.chain().find_map(|cause| exit_of_backup(cause.downcast_ref()?)) {
        return exit;
    }
    if let Some(failure) = error.chain().find_map(|cause| cause.downcast_ref::<Failure>()) {
        return match failure.kind() {
            _ if failure.option.is_some() => Exit::Usage,
            Some(kind) => exit_of_kind(kind),
            None => Exit::Failed,
        };
    }
    error
        .chain()
        .find_map(|cause| cause.downcast_ref::<Error>())
        .map_or(Exit::Failed, exit_of_engine)
}

/// Returns the exit status of a script after one more failed command; corruption takes precedence.
pub(crate) fn worse(before: Option<Exit>, error: &anyhow::Error) -> Exit {
    match (before, exit_of(error)) {
        (Some(Exit::CorruptionFound), _) | (_, Exit::CorruptionFound) => Exit::CorruptionFound,
        _ => Exit::Failed,
    }
}

/// Returns advice for errors of the operating system that do not suggest any themselves.
fn hint(error: &anyhow::Error) -> Option<&'static str> {
    let engine = error.chain().find_map(|cause| cause.downcast_ref::<Error>())?;
    let Error::Io(failure) = engine else { return None };
    let is_table = failure.path.extension().is_some_and(|extension| extension == "sst");
    match (failure.source.kind(), failure.operation) {
        (io::ErrorKind::NotFound | io::ErrorKind::NotADirectory, "list")
        | (io::ErrorKind::NotADirectory, "read" | "open")
        | (io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory, "create") => {
            Some("a database is a directory")
        }
        (io::ErrorKind::NotFound, _) if is_table => Some(
            "the table is missing; `terrane verify` lists all damage, and `terrane repair` salvages \
             the rest",
        ),
        (io::ErrorKind::PermissionDenied, "lock") => Some(
            "without write permission, use `terrane shell --read-only`, `dump`, `inspect` or `verify`",
        ),
        _ => None,
    }
}

/// Returns the exit for an error of a backup; `None` if an engine error decides.
fn exit_of_backup(error: &terrane_backup::Error) -> Option<Exit> {
    match error {
        terrane_backup::Error::Damaged { .. } => Some(Exit::CorruptionFound),
        terrane_backup::Error::InUse { .. } => Some(Exit::Locked),
        terrane_backup::Error::Cancelled => Some(Exit::Interrupted),
        terrane_backup::Error::Checkpoint(failed) => {
            let failure = failed.downcast_ref::<Failure>()?;
            match failure.kind()? {
                ErrorKind::Cancelled => Some(Exit::Interrupted),
                ErrorKind::Locked | ErrorKind::Busy => Some(Exit::Locked),
                _ => None,
            }
        }
        _ => None,
    }
}

fn exit_of_engine(error: &Error) -> Exit {
    match error {
        // The option was given as a flag.
        Error::Invalid(invalid)
            if Options::table().iter().any(|info| info.name == invalid.what) =>
        {
            Exit::Usage
        }
        _ => exit_of_kind(error.kind()),
    }
}

fn exit_of_kind(kind: ErrorKind) -> Exit {
    match kind {
        ErrorKind::Corruption => Exit::CorruptionFound,
        ErrorKind::Locked | ErrorKind::Busy => Exit::Locked,
        ErrorKind::Cancelled => Exit::Interrupted,
        _ => Exit::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_printed_once() {
        let cause = || anyhow::anyhow!("no such file");
        assert_eq!(sentence(&cause().context("cannot open x")), "cannot open x: no such file");
        let error = cause().context("cannot open x: no such file").context("line 3");
        assert_eq!(sentence(&error), "line 3: cannot open x: no such file");
    }

    #[test]
    fn errors_say_that_a_database_is_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "text").unwrap();
        let error = terrane::Db::open_read_only(&file).unwrap_err().into();
        assert!(sentence(&error).ends_with("; a database is a directory"));
        let error = Options::new().open(&file).unwrap_err().into();
        assert!(sentence(&error).ends_with("; a database is a directory"));
    }

    #[test]
    fn corruption_takes_precedence_in_the_exit_of_a_script() {
        let (other, damage) = (anyhow::anyhow!("no"), Error::Closed);
        assert_eq!(worse(None, &other), Exit::Failed);
        assert_eq!(worse(Some(Exit::CorruptionFound), &damage.into()), Exit::CorruptionFound);
        assert_eq!(worse(None, &usage("no")), Exit::Failed);
    }

    #[test]
    fn errors_become_the_exit_codes_that_scripts_rely_on() {
        assert_eq!(exit_of(&anyhow::anyhow!("no")), Exit::Failed);
        assert_eq!(exit_of(&usage("no").context("while reading")), Exit::Usage);
        let locked = Error::Locked { path: std::path::Path::new("db").into(), holder: "x".into() };
        assert_eq!(exit_of(&anyhow::Error::from(locked).context("cannot open")), Exit::Locked);
        let gone = io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(exit_of(&anyhow::Error::from(gone)), Exit::Done);
        let mut options = Options::new();
        options.set("memory_budget", "7").unwrap();
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(exit_of(&options.open(dir.path()).unwrap_err().into()), Exit::Usage);
    }
}
