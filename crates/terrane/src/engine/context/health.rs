//! Whether a database accepts writes, and why not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::event::{BackgroundWork, Event, EventLog};
use crate::base::fork::Owner;

/// The health of a database.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// The process that opened the database. In a child, every check fails without a lock, because
    /// another thread may have held it when the process forked.
    owner: Owner,
    /// Whether the database is closed, read-only, failed, or without its disk reserve; only then do checks
    /// lock `state`.
    /// Acquire loads pair with the release store in `update`, so a thread that sees the flag also
    /// sees `state` as it was at the store.
    is_impaired: AtomicBool,
    /// Whether the last write that was logged under the writer lock was refused by the storage.
    is_log_refusing: AtomicBool,
    state: Mutex<State>,
    events: Arc<EventLog>,
}

#[derive(Debug, Default)]
struct State {
    is_closed: bool,
    is_read_only: bool,
    /// The disk reserve is released.
    is_short: bool,
    /// The final failure: a failed sync, a lost lock or log, or background work that cannot continue.
    failure: Option<Error>,
    /// Failures of background work that is retried, by kind.
    retried: [Option<BackgroundFailure>; JobKind::COUNT],
    /// The number of failures of background work.
    failures: u64,
    /// The event about `failure`, until it is emitted.
    unreported: Option<Event>,
}

/// A kind of background work, which can fail without the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobKind {
    Flush,
    Drop,
    Compaction,
    /// Not a job: callers append to the log themselves.
    Log,
}

impl JobKind {
    const COUNT: usize = Self::Log as usize + 1;

    fn work(self) -> BackgroundWork {
        match self {
            Self::Flush => BackgroundWork::Flush,
            Self::Drop => BackgroundWork::Drop,
            Self::Compaction => BackgroundWork::Compaction,
            Self::Log => BackgroundWork::Log,
        }
    }
}

/// A failure of background work that is retried.
#[derive(Debug, Clone)]
pub(crate) struct BackgroundFailure {
    pub(crate) error: Error,
    /// The number of failures so far, including this one.
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
        let impaired =
            state.is_closed || state.is_read_only || state.is_short || state.failure.is_some();
        self.is_impaired.store(impaired, Ordering::Release);
    }

    /// Returns true if this process opened the database.
    #[inline]
    pub(crate) fn is_of_this_process(&self) -> bool {
        self.owner.is_this_process()
    }

    /// Returns an error in a process that was forked from the one that opened the database.
    #[inline]
    pub(crate) fn check_process(&self) -> Result<()> {
        if self.is_of_this_process() { Ok(()) } else { Err(Error::Forked) }
    }

    /// Returns true if the database accepts all writes.
    #[inline]
    pub(crate) fn is_sound(&self) -> bool {
        !self.is_impaired.load(Ordering::Acquire) && self.is_of_this_process()
    }

    /// Sets whether the disk reserve is released.
    pub(super) fn set_short(&self, is_short: bool) {
        self.update(|state| state.is_short = is_short);
    }

    /// Returns an error if the database accepts no writes.
    #[inline]
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.is_sound() { Ok(()) } else { self.refuse_write() }
    }

    #[cold]
    fn refuse_write(&self) -> Result<()> {
        self.check_process()?;
        let state = self.lock();
        if state.is_closed {
            return Err(Error::Closed);
        }
        if state.is_read_only {
            return Err(Error::ReadOnly);
        }
        state.failure.clone().map_or(Ok(()), Err)
    }

    /// Returns an error if a sync has failed or the lock was lost, because earlier successful
    /// writes may be lost.
    #[inline]
    pub(crate) fn check_synced(&self) -> Result<()> {
        if self.is_sound() { Ok(()) } else { self.refuse_unsynced() }
    }

    #[cold]
    fn refuse_unsynced(&self) -> Result<()> {
        self.check_process()?;
        match &self.lock().failure {
            Some(error) if error.kind() == ErrorKind::Poisoned => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Returns an error if the database was closed.
    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.is_sound() { Ok(()) } else { self.refuse_read() }
    }

    #[cold]
    fn refuse_read(&self) -> Result<()> {
        self.check_process()?;
        if self.lock().is_closed { Err(Error::Closed) } else { Ok(()) }
    }

    pub(crate) fn close(&self) {
        self.update(|state| state.is_closed = true);
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.lock().is_read_only
    }

    pub(crate) fn make_read_only(&self) {
        self.update(|state| state.is_read_only = true);
    }

    /// Notes a final failure. If several are noted, the first is kept.
    pub(crate) fn fail(&self, error: Error) {
        self.note_failure(error);
        self.report_failure();
    }

    /// Does the same as [`Self::fail`] for a caller that holds a lock. The caller calls
    /// [`Self::report_failure`] without the lock, because a listener may use the database.
    pub(crate) fn note_failure(&self, error: Error) {
        let error = match error {
            Error::Poisoned(_) | Error::LogLost { .. } | Error::Background(_) => error,
            lost if lost.is_directory_lost() => lost,
            other => Error::Background(Box::new(other)),
        };
        let event = Event::Failed { kind: error.kind(), error: error.to_string() };
        self.update(|state| {
            if state.failure.is_none() {
                state.failure = Some(error);
                state.unreported = Some(event);
            }
        });
    }

    /// Emits the event about the final failure, if there is one that was not reported yet. Must be
    /// called without locks.
    pub(crate) fn report_failure(&self) {
        if self.is_impaired.load(Ordering::Acquire) {
            let unreported = self.lock().unreported.take();
            if let Some(event) = unreported {
                self.events.emit(event);
            }
        }
    }

    /// Returns the final failure, or else a failure that is retried.
    pub(crate) fn problem(&self) -> Option<Error> {
        self.problems().into_iter().next()
    }

    /// Returns the final failure, and the failures that are retried.
    pub(crate) fn problems(&self) -> Vec<Error> {
        let state = self.lock();
        let retried = state.retried.iter().flatten().map(|failure| failure.error.clone());
        state.failure.iter().cloned().chain(retried).collect()
    }

    /// Notes a failure of background work of this kind, which is retried.
    pub(crate) fn set_failure(&self, kind: JobKind, error: Error) {
        let work = kind.work();
        let event = Event::WorkFailed { work, kind: error.kind(), error: error.to_string() };
        let mut state = self.lock();
        state.failures += 1;
        let number = state.failures;
        let before = state.retried[kind as usize].replace(BackgroundFailure { error, number });
        drop(state);
        if before.is_none() {
            self.events.emit(event);
        }
    }

    /// Notes whether the storage refused to log a write, so that reports show it before a job of the
    /// background fails as well. Must be called without locks.
    #[inline]
    pub(crate) fn note_logged(&self, refusal: Option<&Error>) {
        // Relaxed: the flag guards no other memory, and the next write corrects a stale value.
        if refusal.is_some() || self.is_log_refusing.load(Ordering::Relaxed) {
            self.change_log_refusal(refusal);
        }
    }

    #[cold]
    fn change_log_refusal(&self, refusal: Option<&Error>) {
        match refusal {
            Some(error @ (Error::DiskFull(_) | Error::Io(_))) => {
                self.is_log_refusing.store(true, Ordering::Relaxed);
                self.set_failure(JobKind::Log, error.clone());
            }
            Some(_) => {}
            None => {
                self.is_log_refusing.store(false, Ordering::Relaxed);
                self.clear_failure(JobKind::Log);
            }
        }
    }

    /// Notes that background work of this kind has succeeded, or that no work is left to retry.
    pub(crate) fn clear_failure(&self, kind: JobKind) {
        let ended = self.lock().retried[kind as usize].take();
        if ended.is_some() {
            self.events.emit(Event::WorkRecovered { work: kind.work() });
        }
    }

    /// Returns the last failure of background work of this kind, unless the work has since
    /// succeeded.
    pub(crate) fn failure_of(&self, kind: JobKind) -> Option<BackgroundFailure> {
        self.lock().retried[kind as usize].clone()
    }

    /// Returns the number of failures of background work.
    pub(crate) fn failures(&self) -> u64 {
        self.lock().failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_compaction_is_not_reported_for_flushes() {
        let health = Health::default();
        let full = std::io::ErrorKind::StorageFull;
        let error = Error::io("append to", std::path::Path::new("7.sst"), full.into());
        health.set_failure(JobKind::Compaction, error);
        assert!(health.failure_of(JobKind::Flush).is_none());
        health.clear_failure(JobKind::Flush);
        assert_eq!(health.failure_of(JobKind::Compaction).unwrap().number, health.failures());
        assert!(matches!(health.problem(), Some(Error::DiskFull(_))));
        health.clear_failure(JobKind::Compaction);
        assert!(health.problem().is_none());
    }

    /// A write that was refused by a full disk was in no report until a flush failed as well.
    #[test]
    fn a_refused_write_is_a_problem_until_one_succeeds() {
        let health = Health::default();
        let full = std::io::ErrorKind::StorageFull;
        let error = Error::io("create", std::path::Path::new("7.log"), full.into());
        health.note_logged(Some(&Error::ReadOnly));
        assert!(health.problem().is_none());
        health.note_logged(Some(&error));
        assert!(matches!(health.problem(), Some(Error::DiskFull(_))));
        assert!(health.check_writable().is_ok());
        health.note_logged(Some(&error));
        health.note_logged(None);
        assert!(health.problem().is_none());
        let events: Vec<String> =
            health.events.after(0).iter().map(|event| event.event.to_string()).collect();
        assert_eq!(events.len(), 2, "{events:?}");
        assert_eq!(events[1], "log append recovered");
    }

    #[test]
    fn the_first_failure_stays_and_reads_continue() {
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
