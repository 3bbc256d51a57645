//! Group commit: one sync makes the records of many writers durable.
//!
//! A writer that needs durability waits until the log is durable up to the writer's position. One of
//! the waiting writers syncs all records written so far. Writers that arrive during that sync wait
//! for the next one, which may wait a little for more writers ([`Gathering`]). A sync of many segments
//! takes long, so it also syncs the headers for which other threads wait.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::gather::Gathering;
use super::requests::HeaderSync;
use crate::base::error::{Error, Result};
use crate::base::stats::{Counter, Counters, Timed};
use crate::base::types::Lsn;
use crate::files::storage::Syncer;

/// The durable position of the log, and the segments with unsynced records.
#[derive(Debug)]
pub(crate) struct LogSync {
    state: Mutex<State>,
    /// A copy of [`State::synced`].
    synced: AtomicU64,
    /// Waiters for the sync in progress and for the next one: those of a sync with an even number
    /// wait at the first, the others at the second, so that its end wakes no others.
    ended: [Condvar; 2],
    /// All records before this position are written, but not necessarily durable.
    written: AtomicU64,
    counters: Arc<Counters>,
}

#[derive(Debug, Default)]
struct State {
    /// All records before this position are durable, in the log or in tables.
    synced: Lsn,
    is_syncing: bool,
    /// The number of syncs that have begun.
    begun: usize,
    /// The number of threads that wait for each of [`LogSync::ended`]. If there are none, notifying
    /// would waste a system call.
    waiting: [usize; 2],
    gathering: Gathering,
    /// The highest position for which a thread has waited. It may be higher than the position written so
    /// far, which does not count the records in an open slice.
    wanted: Lsn,
    /// The number of the sync for which a thread waits with a time limit; 0 if there is none.
    timed: usize,
    /// The headers whose threads wait for the sync in progress. A sync of records syncs them before its first
    /// segment and between two segments.
    headers: Vec<Arc<HeaderSync>>,
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
        let what = "a sync of the log panicked".into();
        state.failed = Some(Error::Internal { what });
        self.of.end(state);
    }
}

impl LogSync {
    pub(crate) fn new(counters: Arc<Counters>) -> Self {
        let written = AtomicU64::new(0);
        Self {
            state: Mutex::default(),
            synced: AtomicU64::new(0),
            ended: Default::default(),
            written,
            counters,
        }
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
            self.set_synced(&mut state, base);
        }
        state.segments.push_back(Unsynced { path: Arc::new(path), syncer, end: None });
    }

    fn set_synced(&self, state: &mut State, synced: Lsn) {
        state.synced = synced;
        self.synced.store(synced.0, Ordering::Release);
    }

    /// Drops the segments that end at or before `lsn`: their records are in durable tables and need
    /// no sync.
    pub(super) fn forget(&self, lsn: Lsn) {
        let mut state = self.lock();
        while state.segments.front().is_some_and(|front| front.end.is_some_and(|end| end <= lsn)) {
            if let Some(end) = state.segments.pop_front().and_then(|segment| segment.end) {
                let synced = state.synced.max(end);
                self.set_synced(&mut state, synced);
            }
        }
    }

    /// Returns the error of the first failed sync, if a sync has failed. All later calls get this
    /// error.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.lock().poisoned()
    }

    /// Returns once the header of a segment is durable. Syncs are serialized, because the kernel may
    /// report a failed write to only one of two concurrent syncs. A sync in progress that has several segments to
    /// write to the device, which takes long, syncs the header after the one that it is at.
    ///
    /// # Errors
    /// This sync or an earlier one failed, so no record can be promised to be durable anymore.
    pub(crate) fn sync_header(&self, header: &Arc<HeaderSync>) -> Result<()> {
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
            if !state.headers.iter().any(|waiting| Arc::ptr_eq(waiting, header)) {
                state.headers.push(Arc::clone(header));
            }
            let current = state.begun;
            state = self.wait(state, current, None);
        }
        state.is_syncing = true;
        let mut syncing = SyncGuard { of: self, is_over: false };
        drop(state);
        let result = header.sync();
        syncing.is_over = true;
        let mut state = self.lock();
        if let Err(error) = result {
            state.failed = Some(error);
        }
        let result = state.poisoned().map_or(Ok(()), Err);
        self.end(state);
        result
    }

    /// Waits for the end of a sync, or until a time.
    fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        number: usize,
        until: Option<Instant>,
    ) -> MutexGuard<'a, State> {
        let ended = &self.ended[number % 2];
        state.waiting[number % 2] += 1;
        state = match until {
            None => ended.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(until) => {
                let longest = until.saturating_duration_since(Instant::now());
                ended.wait_timeout(state, longest).unwrap_or_else(PoisonError::into_inner).0
            }
        };
        state.waiting[number % 2] -= 1;
        state
    }

    /// Notes that no sync is in progress anymore. Wakes those who waited for its end, and one thread
    /// that waits for the next sync.
    fn end(&self, mut state: MutexGuard<'_, State>) {
        state.is_syncing = false;
        if !state.headers.is_empty() {
            // The threads of the others wake and sync them, unless another sync begins before.
            let State { headers, failed, .. } = &mut *state;
            headers.retain(|header| failed.is_none() && !header.is_durable());
        }
        let (current, next) = (state.begun % 2, (state.begun + 1) % 2);
        let (waiting, has_failed) = (state.waiting, state.failed.is_some());
        // Released first, because the woken threads need it.
        drop(state);
        if waiting[current] > 0 {
            self.ended[current].notify_all();
        }
        match waiting[next] {
            0 => {}
            _ if has_failed => self.ended[next].notify_all(),
            _ => self.ended[next].notify_one(),
        }
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
        // Acquire: pairs with the release in `set_synced`.
        Lsn(self.synced.load(Ordering::Acquire))
    }

    /// Returns once all records before `upto` are durable. They must have been written. The thread that
    /// syncs calls `on_synced` with the durable position before it wakes the others.
    ///
    /// # Errors
    /// A sync failed before the records were durable, so they cannot be promised to be durable anymore.
    pub(crate) fn sync(&self, upto: Lsn, on_synced: impl Fn(Lsn)) -> Result<()> {
        let mut state = self.lock();
        if state.synced < upto {
            state.gathering.arrive();
            state.wanted = state.wanted.max(upto);
        }
        // The next sync covers the records, even if a sync is in progress that does not.
        let number = state.begun + 1;
        loop {
            // First, because a later sync may have failed.
            if state.synced >= upto {
                // If the records are in durable tables meanwhile, this thread may have been woken to begin
                // the sync for which it waited. Another one of those that wait must begin it.
                if state.begun < number && !state.is_syncing && state.waiting[number % 2] > 0 {
                    self.ended[number % 2].notify_one();
                }
                return Ok(());
            }
            if let Some(error) = state.poisoned() {
                return Err(error);
            }
            if state.is_syncing {
                state = self.wait(state, number, None);
                continue;
            }
            let Some(until) = state.gathering.waits_until(Instant::now) else {
                return self.lead(state, on_synced);
            };
            // One thread begins the sync when the time is over. The others sleep until its end.
            if state.timed == number {
                state = self.wait(state, number, None);
            } else {
                state.timed = number;
                state = self.wait(state, number, Some(until));
                if state.timed == number {
                    state.timed = 0;
                }
            }
        }
    }

    /// Syncs all records written so far, including records of writers that have not begun to wait.
    fn lead(&self, mut state: MutexGuard<'_, State>, on_synced: impl Fn(Lsn)) -> Result<()> {
        state.is_syncing = true;
        state.begun += 1;
        state.gathering.begin();
        let mut syncing = SyncGuard { of: self, is_over: false };
        let target = self.written().max(state.wanted);
        let segments: Vec<Unsynced> = state.segments.iter().cloned().collect();
        let has_headers = !state.headers.is_empty();
        drop(state);
        let began = Instant::now();
        let mut ended = began;
        let result = self.sync_segments(&segments, has_headers, &mut ended);
        if result.is_ok() {
            on_synced(target);
        }
        syncing.is_over = true;
        let mut state = self.lock();
        state.gathering.end(began, ended);
        match result {
            Ok(()) => {
                let synced = state.synced.max(target);
                self.set_synced(&mut state, synced);
            }
            Err(error) => state.failed = Some(error),
        }
        let synced = state.synced;
        let is_synced = |segment: &Unsynced| segment.end.is_some_and(|end| end <= synced);
        while state.segments.front().is_some_and(is_synced) {
            state.segments.pop_front();
        }
        let result = state.poisoned().map_or(Ok(()), Err);
        self.end(state);
        result
    }

    /// Syncs the oldest segment first. If the machine crashes between two syncs, a prefix of the
    /// log is durable. Moves `now` on to the end of the last sync of a segment.
    fn sync_segments(
        &self,
        segments: &[Unsynced],
        has_headers: bool,
        now: &mut Instant,
    ) -> Result<()> {
        for (number, segment) in segments.iter().enumerate() {
            if (number > 0 || has_headers) && self.sync_headers()? {
                *now = Instant::now();
            }
            let synced = segment.syncer.sync();
            let ended = Instant::now();
            let took = ended - std::mem::replace(now, ended);
            self.counters.add(Counter::LogSyncs, 1);
            synced.map_err(|error| Error::io("sync", &segment.path, error))?;
            self.counters.durations.note(Timed::LogSync, took);
        }
        Ok(())
    }

    /// Syncs the headers whose threads wait for the sync in progress, and wakes the threads. Returns true if there
    /// were any.
    #[cold]
    fn sync_headers(&self) -> Result<bool> {
        let headers = std::mem::take(&mut self.lock().headers);
        if headers.is_empty() {
            return Ok(false);
        }
        // A header is listed again if its thread woke early.
        for header in headers.iter().filter(|header| !header.is_durable()) {
            header.sync()?;
        }
        // The lock is taken after the headers are durable, so no thread is about to wait that saw that one is not.
        // The notification also wakes writers that wait for this sync.
        let current = self.lock().begun;
        self.ended[current % 2].notify_all();
        Ok(true)
    }

    #[cfg(test)]
    pub(super) fn is_syncing(&self) -> bool {
        self.lock().is_syncing
    }

    /// Lists a header as [`LogSync::sync_header`] does while a sync is in progress.
    #[cfg(test)]
    pub(super) fn list_header(&self, header: &Arc<HeaderSync>) {
        self.lock().headers.push(Arc::clone(header));
    }

    #[cfg(test)]
    pub(super) fn waiting_headers(&self) -> usize {
        self.lock().headers.len()
    }
}
