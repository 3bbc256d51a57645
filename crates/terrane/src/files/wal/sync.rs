//! Group commit: one sync makes the records of many writers durable.
//!
//! A writer that needs durability waits until the log is durable up to the writer's position. The
//! first waiter syncs all records written so far. Writers that arrive during that sync wait for the
//! next sync, which one of them performs. Writers thus share syncs, and each writer waits for at
//! most two syncs.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::requests::HeaderSync;
use crate::base::error::{Error, Result};
use crate::base::stats::{Counter, Counters, Timed};
use crate::base::types::Lsn;
use crate::files::storage::Syncer;

/// The durable position of the log, and the segments with unsynced records.
#[derive(Debug)]
pub(crate) struct LogSync {
    state: Mutex<State>,
    done: Condvar,
    /// All records before this position are written, but not necessarily durable.
    written: AtomicU64,
    counters: Arc<Counters>,
}

#[derive(Debug, Default)]
struct State {
    /// All records before this position are durable, in the log or in tables.
    synced: Lsn,
    is_syncing: bool,
    /// The number of writers that wait for a sync. If there are none, notifying would waste a
    /// system call.
    waiting: usize,
    /// The segments with unsynced records, oldest first; the last one is the current segment.
    segments: VecDeque<Unsynced>,
    failed: Option<Error>,
}

impl State {
    fn poisoned(&self) -> Option<Error> {
        self.failed.as_ref().map(|error| match error {
            Error::LogLost { .. } => error.clone(),
            error => Error::Poisoned(Box::new(error.clone())),
        })
    }
}

#[derive(Debug, Clone)]
struct Unsynced {
    path: Arc<PathBuf>,
    syncer: Arc<dyn Syncer>,
    /// The end of the segment; `None` for the current one.
    end: Option<Lsn>,
}

/// Guards a sync in progress. If the sync panics, it counts as failed, so that waiters get an error
/// instead of waiting forever.
struct SyncGuard<'a> {
    of: &'a LogSync,
    is_over: bool,
}

impl Drop for SyncGuard<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut state = self.of.lock();
        state.is_syncing = false;
        let what = "a sync of the log panicked".into();
        state.failed = Some(Error::Internal { what });
        self.of.done.notify_all();
    }
}

impl LogSync {
    pub(crate) fn new(counters: Arc<Counters>) -> Self {
        let written = AtomicU64::new(0);
        Self { state: Mutex::default(), done: Condvar::new(), written, counters }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a segment that begins at `base` the current one; the previous segment ends there.
    pub(super) fn begin_segment(&self, path: PathBuf, syncer: Arc<dyn Syncer>, base: Lsn) {
        let mut state = self.lock();
        if let Some(last) = state.segments.back_mut() {
            last.end = Some(base);
        }
        if state.segments.is_empty() {
            state.synced = base;
        }
        state.segments.push_back(Unsynced { path: Arc::new(path), syncer, end: None });
    }

    /// Drops the segments that end at or before `lsn`: their records are in durable tables and need
    /// no sync.
    pub(super) fn forget(&self, lsn: Lsn) {
        let mut state = self.lock();
        while state.segments.front().is_some_and(|front| front.end.is_some_and(|end| end <= lsn)) {
            if let Some(end) = state.segments.pop_front().and_then(|segment| segment.end) {
                state.synced = state.synced.max(end);
            }
        }
    }

    /// Returns the error of the first failed sync, if a sync has failed. All later calls get this
    /// error.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.lock().poisoned()
    }

    /// Returns once the header of a segment is durable. Syncs are serialized, because the kernel may
    /// report a failed write to only one of two concurrent syncs.
    ///
    /// # Errors
    /// This sync or an earlier one failed, so no record can be promised to be durable anymore.
    pub(crate) fn sync_header(&self, header: &HeaderSync) -> Result<()> {
        let mut state = self.lock();
        loop {
            if let Some(error) = state.poisoned() {
                return Err(error);
            }
            if header.is_durable() {
                return Ok(());
            }
            if !state.is_syncing {
                break;
            }
            state = self.wait(state);
        }
        state.is_syncing = true;
        let mut syncing = SyncGuard { of: self, is_over: false };
        drop(state);
        let result = header.sync();
        syncing.is_over = true;
        state = self.lock();
        state.is_syncing = false;
        if let Err(error) = result {
            state.failed = Some(error);
        }
        if state.waiting > 0 {
            self.done.notify_all();
        }
        state.poisoned().map_or(Ok(()), Err)
    }

    fn wait<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.waiting += 1;
        state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        state
    }

    /// Records that all records before `lsn` are complete.
    #[inline]
    pub(super) fn set_written(&self, lsn: Lsn) {
        // Release: pairs with the load in `written`. A thread that reads this position and then
        // syncs the segment also syncs the bytes before the position.
        self.written.store(lsn.0, Ordering::Release);
    }

    /// Returns the position before which all records are written.
    #[inline]
    pub(crate) fn written(&self) -> Lsn {
        // Acquire: pairs with the store in `set_written`.
        Lsn(self.written.load(Ordering::Acquire))
    }

    /// Returns the position before which all records are durable, in the log or in tables.
    pub(crate) fn synced(&self) -> Lsn {
        self.lock().synced
    }

    /// Returns once all records before `upto` are durable. They must have been written.
    ///
    /// # Errors
    /// This sync or an earlier one failed, so no record can be promised to be durable anymore.
    pub(crate) fn sync(&self, upto: Lsn) -> Result<()> {
        let mut state = self.lock();
        loop {
            if let Some(error) = state.poisoned() {
                return Err(error);
            }
            if state.synced >= upto {
                return Ok(());
            }
            if state.is_syncing {
                state = self.wait(state);
                continue;
            }
            state.is_syncing = true;
            let mut syncing = SyncGuard { of: self, is_over: false };
            // The sync covers all records written so far, including records of writers that have not
            // begun to wait.
            let target = self.written().max(upto);
            let segments: Vec<Unsynced> = state.segments.iter().cloned().collect();
            drop(state);
            let result = self.sync_segments(&segments);
            syncing.is_over = true;
            state = self.lock();
            state.is_syncing = false;
            match result {
                Ok(()) => state.synced = state.synced.max(target),
                Err(error) => state.failed = Some(error),
            }
            let synced = state.synced;
            while state
                .segments
                .front()
                .is_some_and(|front| front.end.is_some_and(|end| end <= synced))
            {
                state.segments.pop_front();
            }
            if state.waiting > 0 {
                self.done.notify_all();
            }
        }
    }

    /// Syncs the oldest segment first. If the machine crashes between two syncs, a prefix of the
    /// log is durable.
    fn sync_segments(&self, segments: &[Unsynced]) -> Result<()> {
        for segment in segments {
            let start = Instant::now();
            let synced = segment.syncer.sync();
            self.counters.add(Counter::LogSyncs, 1);
            synced.map_err(|error| Error::io("sync", &segment.path, error))?;
            self.counters.durations.note(Timed::LogSync, start.elapsed());
        }
        Ok(())
    }
}
