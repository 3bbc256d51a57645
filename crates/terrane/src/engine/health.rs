//! Whether a database takes writes, and why not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};

/// The state of a database.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// Something is wrong: the slow path tells what.
    is_impaired: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    is_closed: bool,
    is_read_only: bool,
    /// Final: a failed sync, or background work that cannot go on.
    failure: Option<Error>,
    /// Passes: background work that is tried again.
    trouble: Option<Error>,
}

impl Health {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        let impaired = state.is_closed || state.is_read_only || state.failure.is_some();
        self.is_impaired.store(impaired, Ordering::Release);
    }

    /// Refuses if writes are not taken at all.
    #[inline]
    pub(crate) fn check_writable(&self) -> Result<()> {
        if !self.is_impaired.load(Ordering::Acquire) { Ok(()) } else { self.refuse_write() }
    }

    #[cold]
    fn refuse_write(&self) -> Result<()> {
        let state = self.lock();
        if state.is_closed {
            return Err(Error::Closed);
        }
        if state.is_read_only {
            return Err(Error::ReadOnly);
        }
        state.failure.clone().map_or(Ok(()), Err)
    }

    /// Refuses if the database was closed.
    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        let closed = self.is_impaired.load(Ordering::Acquire) && self.lock().is_closed;
        if closed { Err(Error::Closed) } else { Ok(()) }
    }

    pub(crate) fn close(&self) {
        self.update(|state| state.is_closed = true);
    }

    pub(crate) fn make_read_only(&self) {
        self.update(|state| state.is_read_only = true);
    }

    /// A failure that is final. The first one is kept.
    pub(crate) fn fail(&self, error: Error) {
        let error = match error {
            Error::Poisoned(_) | Error::Background(_) => error,
            other => Error::Background(Box::new(other)),
        };
        self.update(|state| {
            state.failure.get_or_insert(error);
        });
    }

    pub(crate) fn failure(&self) -> Option<Error> {
        self.lock().failure.clone()
    }

    /// Background work failed and is tried again; `None` when it has succeeded.
    pub(crate) fn set_trouble(&self, trouble: Option<Error>) {
        self.lock().trouble = trouble;
    }

    pub(crate) fn trouble(&self) -> Option<Error> {
        self.lock().trouble.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_stays_and_reads_go_on() {
        let health = Health::default();
        assert!(health.check_writable().is_ok());
        let invalid = |what| Error::invalid(what, "bad", "good");
        health.fail(invalid("first"));
        health.fail(invalid("second"));
        let error = health.check_writable().unwrap_err();
        assert!(error.to_string().contains("first"), "{error}");
        assert!(health.check_open().is_ok());
        health.close();
        assert!(matches!(health.check_writable(), Err(Error::Closed)));
        assert!(health.check_open().is_err());
    }
}
