//! Reads the files of a database while a writer may change them.
//!
//! A reader may find a file that a writer has just removed, or two files, one of which the writer
//! has replaced. Nothing is damaged then, and another attempt finds the writer's new files. Three
//! rules distinguish damage from a change:
//!
//! 1. An attempt holds the lock that keeps writers from removing files, if there is a file to lock.
//! 2. An attempt reads the notes in the log first, then the manifest, then the tables, then the log.
//!    Everything that one of them states about the next was still true when the next was read.
//! 3. If two attempts in a row fail in the same way at the same place, the failure is real: if a
//!    writer had changed the files, the second attempt would have found something else. Otherwise the
//!    writer moved on, and after some attempts the reader reports that.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use crate::base::error::{Error, Result};
use crate::files::storage::Storage;

/// The name of the file that readers lock.
pub(crate) const READERS: &str = "READERS";

/// The number of attempts. With the lock, the second attempt is rarely needed.
const TRIES: u32 = 10;

/// The longest pause between two attempts.
const PAUSE_MAX: Duration = Duration::from_millis(64);

/// Calls `read` until it succeeds or fails for a reason that is not a change by a writer.
///
/// # Errors
/// The last error of `read`, or [`Error::Changed`] if a writer changed the files during every attempt.
pub(crate) fn read_shared<T>(
    storage: &dyn Storage,
    dir: &Path,
    mut read: impl FnMut() -> Result<T>,
) -> Result<T> {
    // Without the lock, for example in a directory that no writer has opened, reading may only take
    // more attempts.
    let _lock = storage.lock_shared(&dir.join(READERS));
    let mut before: Option<Error> = None;
    for attempt in 0..TRIES {
        let error = match read() {
            Err(error) if may_be_change(&error) => error,
            other => return other,
        };
        if before.is_some_and(|before| is_same(&before, &error)) {
            return Err(error);
        }
        before = Some(error);
        std::thread::sleep(PAUSE_MAX.min(Duration::from_millis(1 << attempt)));
    }
    Err(Error::Changed { path: dir.into(), tries: TRIES })
}

/// Returns true if a writer's change to a file can cause this error.
pub(crate) fn may_be_change(error: &Error) -> bool {
    match error {
        Error::Corruption(_) | Error::Changed { .. } => true,
        Error::Io(failure) => {
            matches!(failure.source.kind(), ErrorKind::NotFound | ErrorKind::UnexpectedEof)
        }
        _ => false,
    }
}

/// Returns true if two errors are about the same place. Details at an offset may differ, because they
/// may count records that the writer keeps appending.
fn is_same(one: &Error, other: &Error) -> bool {
    match (one, other) {
        (Error::Corruption(one), Error::Corruption(other)) => {
            (&one.path, one.what, one.offset) == (&other.path, other.what, other.offset)
                && (one.offset.is_some() || one.detail == other.detail)
        }
        (Error::Io(one), Error::Io(other)) => {
            (&one.path, one.operation, one.source.kind())
                == (&other.path, other.operation, other.source.kind())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;
    use crate::files::storage::MemoryStorage;

    fn read_with(errors: impl Fn(u32) -> Option<Error>) -> (Result<u32>, u32) {
        let mut calls = 0;
        let result = read_shared(&MemoryStorage::new(1), Path::new("db"), || {
            calls += 1;
            errors(calls).map_or(Ok(calls), Err)
        });
        (result, calls)
    }

    fn damage(offset: Option<u64>, detail: &str) -> Error {
        Error::corruption(Path::new("db/1.log"), offset, "log", detail)
    }

    #[test]
    fn changes_are_retried_and_damage_is_reported() {
        let missing = |number: u32| {
            Error::io(
                "open",
                Path::new(&format!("{number}.sst")),
                std::io::ErrorKind::NotFound.into(),
            )
        };
        let (result, _) = read_with(|call| (call < 4).then(|| missing(call)));
        assert_eq!(result.unwrap(), 4);
        let (result, calls) = read_with(|call| Some(missing(call)));
        let error = result.unwrap_err();
        assert_eq!((error.kind(), calls), (ErrorKind::Busy, TRIES));
        let text = error.to_string();
        assert!(text.contains("10 attempts") && text.contains("checkpoint"), "{text}");
        // A file that stays missing is missing.
        let (result, calls) = read_with(|call| Some(missing(call.min(2))));
        assert_eq!((result.unwrap_err().kind(), calls), (ErrorKind::Io, 3));
        // The writer appends to a damaged log.
        let (result, calls) = read_with(|call| Some(damage(Some(7), &format!("{call} records"))));
        assert_eq!((result.unwrap_err().kind(), calls), (ErrorKind::Corruption, 2));
        // The writer frees segments before the reader opens them.
        let (result, _) =
            read_with(|call| Some(damage(None, &format!("segment {call} is missing"))));
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Busy);
        // Other errors are not due to a writer.
        let (result, calls) = read_with(|_| Some(Error::Closed));
        assert_eq!((result.unwrap_err().kind(), calls), (ErrorKind::Closed, 1));
    }
}
