//! A bounded group of threads, and the operations that wait for one of them.
//!
//! 1. A waiting operation belongs to a future that awaits it: dropping the future removes the operation.
//!    So the queue is never longer than the number of futures that the program awaits.
//! 2. A thread starts when there are more waiting operations than idle threads, up to a maximum, and exits
//!    after some idle time. If no thread runs and none can start, the operation is refused, so it never
//!    waits in vain.
//! 3. The lock is held for a few instructions only, never while an operation runs or is dropped, so a
//!    poll does not block.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::base::fork::Owner;

/// The time after which an idle thread ends: longer than the pauses of a busy program, and short for a
/// program that has become quiet.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// An operation that waits for a thread.
pub(super) type Job = Box<dyn FnOnce() + Send>;

/// The threads for operations of one kind.
pub(super) struct Lane {
    /// The process that has the threads.
    owner: Owner,
    name: &'static str,
    threads_max: usize,
    state: Mutex<LaneState>,
    /// An operation waits, or the lane was closed.
    changed: Condvar,
}

#[derive(Default)]
struct LaneState {
    /// The waiting operations by their tickets, which are in order of arrival.
    waiting: BTreeMap<u64, Job>,
    next_ticket: u64,
    threads: usize,
    idle: usize,
    is_closed: bool,
}

impl Lane {
    /// Returns a lane without threads. It starts at most `threads_max`, or one if that is 0.
    pub(super) fn new(name: &'static str, threads_max: usize) -> Arc<Self> {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Arc::new(Self {
            owner: Owner::this_process(),
            name,
            threads_max: threads_max.max(1),
            state,
            changed,
        })
    }

    /// Returns false in a process that was forked from the one that has the threads. The lane must not
    /// be used there: no thread serves it, and its lock may be held for ever.
    pub(super) fn is_of_this_process(&self) -> bool {
        self.owner.is_this_process()
    }

    /// Queues an operation, and returns its ticket.
    pub(super) fn submit(self: &Arc<Self>, job: Job) -> io::Result<u64> {
        let mut state = self.lock();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.waiting.insert(ticket, job);
        if state.waiting.len() > state.idle && state.threads < self.threads_max {
            match self.start_thread() {
                Ok(()) => state.threads += 1,
                Err(error) if state.threads == 0 => {
                    let refused = state.waiting.remove(&ticket);
                    drop(state);
                    drop(refused);
                    return Err(error);
                }
                // The running threads serve the operation later.
                Err(_) => {}
            }
        }
        drop(state);
        self.changed.notify_one();
        Ok(ticket)
    }

    fn start_thread(self: &Arc<Self>) -> io::Result<()> {
        let lane = Arc::clone(self);
        let thread = std::thread::Builder::new().name(self.name.into());
        #[allow(clippy::disallowed_methods, reason = "a place that starts threads")]
        thread.spawn(move || lane.serve()).map(drop)
    }

    /// Removes an operation that no thread has begun. Returns false if one has.
    pub(super) fn cancel(&self, ticket: u64) -> bool {
        let cancelled = self.lock().waiting.remove(&ticket);
        // Dropped without the lock, because the operation may own the last handle.
        cancelled.is_some()
    }

    /// Ends the threads once no operation waits.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    fn serve(&self) {
        while let Some(job) = self.next() {
            // The job passes on a panic of the operation, so only a panic of a waker is ignored.
            let _ = catch_unwind(AssertUnwindSafe(job));
        }
    }

    /// Waits for an operation; `None` ends the thread.
    fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if let Some((_, job)) = state.waiting.pop_first() {
                return Some(job);
            }
            if state.is_closed {
                state.threads -= 1;
                return None;
            }
            state.idle += 1;
            let waited = self.changed.wait_timeout(state, IDLE_MAX);
            let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if timeout.timed_out() && state.waiting.is_empty() {
                state.threads -= 1;
                return None;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, LaneState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        write!(f, "Lane({} waiting, {} threads)", state.waiting.len(), state.threads)
    }
}
