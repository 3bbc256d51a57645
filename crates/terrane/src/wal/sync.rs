//! Makes the log durable for many writers at once.
//!
//! A writer that needs durability waits for its position. The first one to wait syncs for all that
//! have written so far; those that come meanwhile wait for the next sync, which one of them does.
//! So n writers share a sync, and each waits for two at most.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::ahead::HeaderSync;
use crate::error::{Error, Result};
use crate::stats::{Counter, Counters};
use crate::storage::Syncer;
use crate::types::Lsn;

/// Segments that hold unsynced records, and who syncs them.
#[derive(Debug)]
pub(crate) struct LogSync {
    state: Mutex<State>,
    done: Condvar,
    /// Everything before this position was written.
    written: AtomicU64,
    counters: Arc<Counters>,
}

#[derive(Debug, Default)]
struct State {
    /// Everything before this is durable.
    synced: Lsn,
    is_syncing: bool,
    /// Writers that wait for a sync: without any, telling them would be a system call for nothing.
    waiting: usize,
    /// Oldest first; the last one is being written.
    segments: VecDeque<Unsynced>,
    failed: Option<Error>,
}

impl State {
    fn poisoned(&self) -> Option<Error> {
        self.failed.as_ref().map(|error| Error::Poisoned(Box::new(error.clone())))
    }
}

#[derive(Debug, Clone)]
struct Unsynced {
    path: Arc<PathBuf>,
    syncer: Arc<dyn Syncer>,
    /// Where the segment ends; `None` while it is being written.
    end: Option<Lsn>,
}

/// Who syncs for all, as long as it does. A panic meanwhile is a failed sync for those that wait.
struct Syncing<'a> {
    of: &'a LogSync,
    is_over: bool,
}

impl Drop for Syncing<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut state = self.of.lock();
        state.is_syncing = false;
        let what = "a sync panicked; see the panic".into();
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

    /// A segment that begins at `base` takes over; the one before ends there.
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

    /// Everything before `lsn` need never be synced: it is in tables.
    pub(super) fn forget(&self, lsn: Lsn) {
        let mut state = self.lock();
        while state.segments.front().is_some_and(|front| front.end.is_some_and(|end| end <= lsn)) {
            if let Some(end) = state.segments.pop_front().and_then(|segment| segment.end) {
                state.synced = state.synced.max(end);
            }
        }
    }

    /// The sync that failed first, if any did, as those are told that come later.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.lock().poisoned()
    }

    /// Returns once the header of a segment is durable. One sync is done at a time: of two that are
    /// done together only one would learn that the system could not write something.
    ///
    /// # Errors
    /// A sync failed, now or ever before: nothing can be promised any more.
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
        let mut syncing = Syncing { of: self, is_over: false };
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

    /// Everything before `lsn` was written.
    #[inline]
    pub(super) fn set_written(&self, lsn: Lsn) {
        // Release: who sees the position and syncs, syncs the bytes before it.
        self.written.store(lsn.0, Ordering::Release);
    }

    /// What was written.
    #[inline]
    pub(crate) fn written(&self) -> Lsn {
        Lsn(self.written.load(Ordering::Acquire))
    }

    /// What is durable.
    pub(crate) fn synced(&self) -> Lsn {
        self.lock().synced
    }

    /// Returns once everything before `upto`, which has been written, is durable.
    ///
    /// # Errors
    /// A sync failed, now or ever before: nothing can be promised any more.
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
            let mut syncing = Syncing { of: self, is_over: false };
            // For all that were written, also by those that do not wait yet.
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

    /// Oldest first, so that what is durable is a prefix also after a crash in between.
    fn sync_segments(&self, segments: &[Unsynced]) -> Result<()> {
        for segment in segments {
            let synced = segment.syncer.sync();
            self.counters.add(Counter::LogSyncs, 1);
            synced.map_err(|error| Error::io("sync", &segment.path, error))?;
        }
        Ok(())
    }
}
