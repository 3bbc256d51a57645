//! Whether a database takes writes, and why not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::event::{BackgroundWork, Event, EventLog};

/// The state of a database.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// Something is wrong: the slow path tells what.
    is_impaired: AtomicBool,
    state: Mutex<State>,
    events: Arc<EventLog>,
}

#[derive(Debug, Default)]
struct State {
    is_closed: bool,
    is_read_only: bool,
    /// Final: a failed sync, or background work that cannot go on.
    failure: Option<Error>,
    /// Passes: background work that is tried again, by kind.
    troubles: [Option<Trouble>; JobKind::COUNT],
    /// How often background work has failed.
    failures: u64,
}

/// What background work can fail without the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobKind {
    Flush,
    Drop,
    Compaction,
}

impl JobKind {
    const COUNT: usize = Self::Compaction as usize + 1;

    fn work(self) -> BackgroundWork {
        match self {
            Self::Flush => BackgroundWork::Flush,
            Self::Drop => BackgroundWork::Drop,
            Self::Compaction => BackgroundWork::Compaction,
        }
    }
}

/// Background work that failed, and is tried again.
#[derive(Debug, Clone)]
pub(crate) struct Trouble {
    pub(crate) error: Error,
    /// How many failures there were, with this one.
    pub(crate) number: u64,
}

impl Health {
    pub(crate) fn new(events: Arc<EventLog>) -> Self {
        Self { events, ..Self::default() }
    }

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

    /// Refuses if a sync has failed: what was written before may not be there, although the write
    /// itself went well.
    #[inline]
    pub(crate) fn check_synced(&self) -> Result<()> {
        if !self.is_impaired.load(Ordering::Acquire) { Ok(()) } else { self.refuse_unsynced() }
    }

    #[cold]
    fn refuse_unsynced(&self) -> Result<()> {
        match &self.lock().failure {
            Some(error @ Error::Poisoned(_)) => Err(error.clone()),
            _ => Ok(()),
        }
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
        let event = Event::Failed { kind: error.kind(), error: error.to_string() };
        let mut is_first = false;
        self.update(|state| {
            is_first = state.failure.is_none();
            state.failure.get_or_insert(error);
        });
        if is_first {
            self.events.emit(event);
        }
    }

    /// What is wrong: a failure that is final, or else one that may pass.
    pub(crate) fn problem(&self) -> Option<Error> {
        let state = self.lock();
        let trouble =
            || state.troubles.iter().flatten().next().map(|trouble| trouble.error.clone());
        state.failure.clone().or_else(trouble)
    }

    /// Background work of this kind failed, and is tried again.
    pub(crate) fn set_trouble(&self, kind: JobKind, error: Error) {
        let work = kind.work();
        let event = Event::WorkFailed { work, kind: error.kind(), error: error.to_string() };
        let mut state = self.lock();
        state.failures += 1;
        let number = state.failures;
        let before = state.troubles[kind as usize].replace(Trouble { error, number });
        drop(state);
        if before.is_none() {
            self.events.emit(event);
        }
    }

    /// Background work of this kind has succeeded, or there is none left to be tried again.
    pub(crate) fn end_trouble(&self, kind: JobKind) {
        let ended = self.lock().troubles[kind as usize].take();
        if ended.is_some() {
            self.events.emit(Event::WorkRecovered { work: kind.work() });
        }
    }

    /// The last failure of background work of this kind, if it has not succeeded since.
    pub(crate) fn trouble(&self, kind: JobKind) -> Option<Trouble> {
        self.lock().troubles[kind as usize].clone()
    }

    /// How often background work has failed.
    pub(crate) fn failures(&self) -> u64 {
        self.lock().failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_a_compaction_is_not_told_of_flushes() {
        let health = Health::default();
        let full = std::io::ErrorKind::StorageFull;
        let error = Error::io("append to", std::path::Path::new("7.sst"), full.into());
        health.set_trouble(JobKind::Compaction, error);
        assert!(health.trouble(JobKind::Flush).is_none());
        health.end_trouble(JobKind::Flush);
        assert_eq!(health.trouble(JobKind::Compaction).unwrap().number, health.failures());
        assert!(matches!(health.problem(), Some(Error::DiskFull(_))));
        health.end_trouble(JobKind::Compaction);
        assert!(health.problem().is_none());
    }

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
