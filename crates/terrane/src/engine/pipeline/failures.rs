//! The errors of writes that never become visible.

use crate::base::error::Error;
use crate::engine::context::Context;

/// Returns the error for writes that wait for a write that panicked.
pub(crate) fn write_panicked() -> Error {
    // Built directly, without `Error::internal`, because this is also called during a panic.
    Error::Internal { what: "a write panicked before it was done; see the panic".into() }
}

/// Returns the error for a write that waits for one that will never become visible.
#[cold]
pub(crate) fn broken(context: &Context) -> Error {
    // The failure was noted before the queue was broken.
    context.health.check_writable().err().unwrap_or_else(write_panicked)
}
