//! Wakes the threads of a database, and stops them.
//!
//! A worker reads [`Signals::changes`], looks for work, and sleeps if it finds none. A change that
//! occurs after the worker has looked and before it sleeps is not lost: [`Signals::wake`] counts
//! the change under a lock, and a worker compares the count under the same lock before it sleeps.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a thread rests after a failure before it retries.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// A sleeping drain thread wakes and looks for work at least this often.
const DRAIN_WAIT_MAX: Duration = Duration::from_millis(500);

/// The condition variables and flags that the parts of the engine share.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    changes: Mutex<Changes>,
    /// There may be work for the flush thread and the first `compaction_threads` compaction threads.
    work: Condvar,
    /// There may be work for the compaction threads above `compaction_threads`.
    spare_work: Condvar,
    /// A job has ended.
    done: Condvar,
    /// Threads that are running a compaction.
    compacting: AtomicUsize,
    is_stopping: AtomicBool,
    /// Jobs that were registered, and jobs that have ended, in any thread.
    jobs_begun: AtomicU64,
    jobs_ended: AtomicU64,
    /// Callers that do background work in their own threads.
    callers: Mutex<usize>,
    /// `callers` has reached zero.
    no_callers: Condvar,
    /// Wakes the drain threads of FloDB memtables.
    pub(crate) drains: DrainSignal,
}

/// What has changed since the database was opened.
#[derive(Debug, Default)]
struct Changes {
    /// Incremented whenever there may be new work.
    work: u64,
    /// Incremented whenever a job has ended.
    done: u64,
}

impl Signals {
    fn lock(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_callers(&self) -> MutexGuard<'_, usize> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of changes so far. A worker must read this number before it looks for
    /// work.
    pub(crate) fn changes(&self) -> u64 {
        self.lock().work
    }

    /// Wakes the workers, because there may be new work.
    pub(crate) fn wake(&self) {
        self.lock().work += 1;
        self.work.notify_all();
        // Relaxed: the count is only a hint. If it is stale, the next job that begins or ends wakes
        // the spare threads.
        if self.compacting.load(Ordering::Relaxed) > 0 {
            self.spare_work.notify_all();
        }
    }

    /// Wakes the workers and all threads that wait for a job, because a job has ended.
    pub(crate) fn notify_done(&self) {
        self.lock().done += 1;
        self.done.notify_all();
        self.wake();
    }

    /// Returns the number of calls of [`Self::notify_done`]. A caller that waits for a job must read
    /// this number before it looks for the job.
    pub(crate) fn done(&self) -> u64 {
        self.lock().done
    }

    /// Counts a job that begins. Called with the lock of the jobs of its tree, under which the job
    /// is registered: a thread that finds a job registered also finds it counted.
    pub(crate) fn begin_job(&self) {
        // Relaxed: the lock orders the increment before the reads that depend on it.
        self.jobs_begun.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a job that has ended and is no longer registered.
    pub(crate) fn end_job(&self) {
        // Release pairs with the acquire in `quiet_at`, which sees the effects of the job.
        self.jobs_ended.fetch_add(1, Ordering::Release);
    }

    /// Returns the number of jobs that have begun if all of them have ended.
    pub(crate) fn quiet_at(&self) -> Option<u64> {
        // Loaded in this order: if the numbers are equal, no job was running at the first load.
        let ended = self.jobs_ended.load(Ordering::Acquire);
        (self.jobs_begun() == ended).then_some(ended)
    }

    /// Returns the number of jobs that have begun.
    pub(crate) fn jobs_begun(&self) -> u64 {
        self.jobs_begun.load(Ordering::Acquire)
    }

    /// Sleeps until a change after `seen` occurs, but at most for `timeout`.
    pub(crate) fn wait_for_work(&self, seen: u64, timeout: Option<Duration>) {
        self.wait_on(&self.work, seen, timeout);
    }

    /// Sleeps until a spare compaction thread may have work.
    pub(crate) fn wait_for_spare_work(&self, seen: u64) {
        self.wait_on(&self.spare_work, seen, None);
    }

    fn wait_on(&self, condition: &Condvar, seen: u64, timeout: Option<Duration>) {
        let guard = self.lock();
        if guard.work != seen || self.is_stopping() {
            return;
        }
        match timeout {
            None => drop(condition.wait(guard).unwrap_or_else(PoisonError::into_inner)),
            Some(timeout) => {
                let waited = condition.wait_timeout(guard, timeout);
                drop(waited.unwrap_or_else(PoisonError::into_inner));
            }
        }
    }

    /// Waits until a job ends, or until a failed job is to be retried. Returns at once if the
    /// database is stopping.
    pub(crate) fn rest(&self) {
        self.wait_for_done(self.done());
    }

    /// Waits like [`Self::rest`], unless a job has ended since `seen` was read.
    pub(crate) fn wait_for_done(&self, seen: u64) {
        let guard = self.lock();
        if guard.done == seen && !self.is_stopping() {
            let waited = self.done.wait_timeout(guard, RETRY_AFTER);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Returns the number of threads that are running a compaction.
    pub(crate) fn compacting(&self) -> usize {
        self.compacting.load(Ordering::Relaxed)
    }

    /// Counts a thread that begins a compaction, and wakes the spare threads: another compaction may
    /// run concurrently.
    pub(crate) fn begin_compaction(&self) {
        self.compacting.fetch_add(1, Ordering::Relaxed);
        self.spare_work.notify_all();
    }

    /// Counts a thread that has ended its compaction.
    pub(crate) fn end_compaction(&self) {
        self.compacting.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        // Acquire pairs with the release in `stop` and `resume`.
        self.is_stopping.load(Ordering::Acquire)
    }

    /// Makes threads and jobs stop as soon as they check [`Self::is_stopping`].
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
        self.wake();
        self.notify_done();
        self.spare_work.notify_all();
    }

    /// Allows jobs again, in threads of callers.
    pub(crate) fn resume(&self) {
        self.is_stopping.store(false, Ordering::Release);
    }

    /// Registers the caller as working on the files of the database until it drops the guard. The
    /// caller checks afterwards whether the database is still open.
    pub(crate) fn enter_caller(&self) -> CallerGuard<'_> {
        *self.lock_callers() += 1;
        CallerGuard { signals: self }
    }

    /// Waits until no caller is registered.
    pub(crate) fn wait_for_callers(&self) {
        let mut callers = self.lock_callers();
        while *callers > 0 {
            callers = self.no_callers.wait(callers).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A caller that runs background work in its own thread. Closing waits for it, because once the
/// directory is released, the files that it creates or removes may belong to another opening.
pub(crate) struct CallerGuard<'a> {
    signals: &'a Signals,
}

impl Drop for CallerGuard<'_> {
    fn drop(&mut self) {
        *self.signals.lock_callers() -= 1;
        self.signals.no_callers.notify_all();
    }
}

/// Wakes the threads that drain FloDB memtables.
#[derive(Debug, Default)]
pub(crate) struct DrainSignal {
    /// The threads that sleep and have not been notified.
    asleep: AtomicUsize,
    /// The threads that have been notified and have not woken yet.
    notified: Mutex<usize>,
    work: Condvar,
}

impl DrainSignal {
    /// Wakes a thread to drain a memtable. Called by every write that finds that a memtable needs
    /// to be drained.
    #[inline]
    pub(crate) fn wake(&self) {
        // SeqCst, like the increment in `wait`: either this thread sees the sleeper, or the sleeper
        // sees the memtable that needs to be drained.
        if self.asleep.load(Ordering::SeqCst) > 0 {
            self.notify_one();
        }
    }

    /// Notifies a thread that has not been notified yet. Until it wakes, other writers see that it
    /// was notified, and make no system call.
    #[cold]
    fn notify_one(&self) {
        let mut notified = self.lock();
        // Relaxed: only changed with the lock.
        if self.asleep.load(Ordering::Relaxed) > 0 {
            self.asleep.fetch_sub(1, Ordering::Relaxed);
            *notified += 1;
            drop(notified);
            self.work.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        self.notified.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes all threads.
    pub(crate) fn wake_all(&self) {
        let mut notified = self.lock();
        *notified += self.asleep.swap(0, Ordering::Relaxed);
        drop(notified);
        self.work.notify_all();
    }

    /// Sleeps until there may be work, unless `has_work` holds.
    pub(crate) fn wait(&self, has_work: impl Fn() -> bool) {
        let mut notified = self.lock();
        self.asleep.fetch_add(1, Ordering::SeqCst);
        if !has_work() {
            let waited = self.work.wait_timeout(notified, DRAIN_WAIT_MAX);
            notified = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        // After a timeout, this thread may take another thread's notification. That thread then
        // decrements the other count, so the sum of both is the number of threads in this function.
        if *notified > 0 {
            *notified -= 1;
        } else {
            self.asleep.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
