//! Who does what next in the background.
//!
//! One thread flushes, so that no flush waits for a compaction; others compact. Each looks for
//! something to do, does it, and sleeps when there is nothing until it is woken by a change. With
//! inline background work there are no threads, and whoever waits does the work.
//!
//! | module | one line |
//! |---|---|
//! | `threads` | starts and ends them |
//! | `flushing` | the thread that flushes, and does what is quickly done |
//! | `log_thread` | the thread of the log |
//! | `compacting` | the threads that compact |
//! | `outcome` | what the end of a job means for the database |
//! | `waiting` | for jobs to be done, and doing them where there are no threads |
//!
//! Here is what they share, and how they are woken.

mod compacting;
mod flushing;
mod log_thread;
mod outcome;
mod priority;
mod threads;
mod waiting;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::engine::write::slow_down::Delays;
use crate::wal::{HeaderSync, SegmentRequests, WantedClean, WantedPages, WantedSpare};

/// How long work that failed rests before it is tried again.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// What threads of a database share.
#[derive(Debug, Default)]
pub(crate) struct Work {
    state: Mutex<WorkState>,
    /// Something may have come up.
    came_up: Condvar,
    /// Something may have come up for the thread of the log.
    log_came_up: Condvar,
    /// Something may have come up for a compacting thread beyond those that have places.
    spare_came_up: Condvar,
    /// Something was done.
    done: Condvar,
    /// Threads that are at a compaction.
    compacting: AtomicUsize,
    is_stopping: AtomicBool,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// How many callers are at work for the database, in threads of their own.
    helpers: Mutex<usize>,
    /// Told when there is none left.
    no_helpers: Condvar,
    /// By how much writers should have been slowed down, and were not yet.
    pub(crate) delays: Delays,
    /// A sync of the log is due at some time.
    is_sync_due: AtomicBool,
    /// Tables may be kept for a snapshot only, and can go when it does.
    pub(crate) wants_fewer_snapshots: AtomicBool,
}

#[derive(Debug, Default)]
struct WorkState {
    /// Rises whenever something may have come up.
    changes: u64,
    spare: Option<WantedSpare>,
    /// What of the log will be written to soon.
    pages: Option<WantedPages>,
    /// The header of the segment that is written.
    header: Option<Arc<HeaderSync>>,
    /// Segments of the log that are to be written again.
    unclean: Vec<WantedClean>,
    /// When the log must be synced next.
    sync_due: Option<Instant>,
    /// Files that nothing needs.
    unneeded: Vec<PathBuf>,
}

impl Work {
    fn lock(&self) -> MutexGuard<'_, WorkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_helpers(&self) -> MutexGuard<'_, usize> {
        self.helpers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The caller is at work until it lets go of the answer. Whether the database is still open is
    /// asked afterwards.
    pub(crate) fn help(&self) -> Helping<'_> {
        *self.lock_helpers() += 1;
        Helping { work: self }
    }

    /// Returns once no caller is at work.
    pub(crate) fn wait_for_helpers(&self) {
        let mut helpers = self.lock_helpers();
        while *helpers > 0 {
            helpers = self.no_helpers.wait(helpers).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// Jobs may be done again, by whoever asks for them.
    pub(crate) fn resume(&self) {
        self.is_stopping.store(false, Ordering::Release);
    }

    /// Something may have come up.
    pub(crate) fn wake(&self) {
        self.lock().changes += 1;
        self.came_up.notify_all();
        if self.compacting.load(Ordering::Relaxed) > 0 {
            self.spare_came_up.notify_all();
        }
    }

    /// Has the flushing thread make a spare segment of the log.
    pub(crate) fn make_spare(&self, spare: WantedSpare) {
        self.lock().spare = Some(spare);
        self.wake();
    }

    /// Has the thread of the log do what is to be done before a segment is written further. Where
    /// there is none, the writer does it when it has to.
    pub(crate) fn make_ready(&self, ahead: SegmentRequests) {
        let mut state = self.lock();
        state.pages = ahead.pages;
        if ahead.header.is_some() {
            state.header = ahead.header;
        }
        drop(state);
        self.log_came_up.notify_all();
    }

    /// Has the thread of the log clean segments.
    pub(crate) fn clean_later(&self, segments: Vec<WantedClean>) {
        if !segments.is_empty() {
            self.lock().unclean.extend(segments);
            self.log_came_up.notify_all();
        }
    }

    /// Has the flushing thread remove files.
    pub(crate) fn remove_later(&self, paths: Vec<PathBuf>) {
        self.lock().unneeded.extend(paths);
        self.wake();
    }

    fn next_unneeded(&self) -> Option<PathBuf> {
        self.lock().unneeded.pop()
    }

    /// Has the log synced within `interval`.
    #[inline]
    pub(crate) fn sync_within(&self, interval: Duration) {
        // Acquire pairs with the release of the thread that syncs: who finds it due was written
        // before that sync.
        if !self.is_sync_due.swap(true, Ordering::AcqRel) {
            self.lock().sync_due = Some(Instant::now() + interval);
            self.log_came_up.notify_all();
        }
    }

    fn tell_done(&self) {
        drop(self.lock());
        self.done.notify_all();
        self.wake();
    }

    /// Sleeps until something comes up that was not there at `seen`, or for `most`.
    fn sleep_at_most(&self, seen: u64, most: Option<Duration>) {
        self.sleep_on(&self.came_up, seen, most);
    }

    fn sleep_on(&self, came_up: &Condvar, seen: u64, most: Option<Duration>) {
        let guard = self.lock();
        if guard.changes != seen || self.is_stopping() {
            return;
        }
        match most {
            None => drop(came_up.wait(guard).unwrap_or_else(PoisonError::into_inner)),
            Some(most) => {
                let waited = came_up.wait_timeout(guard, most);
                drop(waited.unwrap_or_else(PoisonError::into_inner));
            }
        }
    }

    /// Rests, unless told to stop.
    pub(crate) fn rest(&self) {
        let guard = self.lock();
        if !self.is_stopping() {
            drop(
                self.done.wait_timeout(guard, RETRY_AFTER).unwrap_or_else(PoisonError::into_inner),
            );
        }
    }
}

/// A caller that does work of the database itself. Closing waits for it: it may be making or
/// removing files, which may be those of the next opening afterwards.
pub(crate) struct Helping<'a> {
    work: &'a Work,
}

impl Drop for Helping<'_> {
    fn drop(&mut self) {
        *self.work.lock_helpers() -= 1;
        self.work.no_helpers.notify_all();
    }
}
