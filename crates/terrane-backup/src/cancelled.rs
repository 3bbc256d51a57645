//! A cancellation as an error of a reader, so that it passes through a [`Repository`](crate::Repository).

use std::{fmt, io};

#[derive(Debug)]
struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cancelled")
    }
}

impl std::error::Error for Cancelled {}

/// Returns the error that stands for a cancellation. Its kind is not `Interrupted`, after which readers
/// are called again.
pub(crate) fn cancelled() -> io::Error {
    io::Error::other(Cancelled)
}

/// Returns true for the error of [`cancelled`], even if a repository wrapped it.
pub(crate) fn is_cancelled(error: &io::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> =
        error.get_ref().map(|inner| inner as _);
    while let Some(error) = cause {
        if error.is::<Cancelled>() {
            return true;
        }
        cause = match error.downcast_ref::<io::Error>() {
            Some(error) => error.get_ref().map(|inner| inner as _),
            None => error.source(),
        };
    }
    false
}
