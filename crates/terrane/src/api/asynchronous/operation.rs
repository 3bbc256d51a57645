//! The future of an operation that runs on a thread of a lane.
//!
//! 1. The first poll queues the operation; later polls look for the result. No poll waits.
//! 2. Dropping the future before a thread has begun the operation cancels it. An operation that has begun
//!    runs to its end, and the thread drops the result.
//! 3. A panic of the operation is resumed where the future is awaited.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use super::lane::Lane;
use crate::base::error::{Error, Result};
use crate::base::fork;

/// The future of an operation that runs in a lane.
pub(super) struct Operation<T> {
    lane: Arc<Lane>,
    state: State<T>,
}

enum State<T> {
    New(Box<dyn FnOnce() -> Result<T> + Send>),
    Queued(u64, Arc<Slot<T>>),
    Done,
}

/// Where the thread leaves the result.
struct Slot<T>(Mutex<Progress<T>>);

enum Progress<T> {
    Pending(Waker),
    Done(thread::Result<Result<T>>),
    Taken,
}

impl<T> Slot<T> {
    fn lock(&self) -> MutexGuard<'_, Progress<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finish(&self, result: thread::Result<Result<T>>) {
        let before = std::mem::replace(&mut *self.lock(), Progress::Done(result));
        if let Progress::Pending(waker) = before {
            waker.wake();
        }
    }
}

impl<T: Send + 'static> Operation<T> {
    /// Returns an operation that the first poll will queue.
    pub(super) fn new(lane: &Arc<Lane>, run: impl FnOnce() -> Result<T> + Send + 'static) -> Self {
        Self { lane: Arc::clone(lane), state: State::New(Box::new(run)) }
    }

    fn queue(&mut self, run: Box<dyn FnOnce() -> Result<T> + Send>, waker: &Waker) -> Result<()> {
        let slot = Arc::new(Slot(Mutex::new(Progress::Pending(waker.clone()))));
        let done = Arc::clone(&slot);
        let job = move || done.finish(catch_unwind(AssertUnwindSafe(run)));
        let ticket = self.lane.submit(Box::new(job)).map_err(|error| {
            Error::io("start a thread for an operation on", Path::new("the database"), error)
        })?;
        self.state = State::Queued(ticket, slot);
        Ok(())
    }
}

// The closure is never pinned.
impl<T> Unpin for Operation<T> {}

impl<T: Send + 'static> Future for Operation<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        if !self.lane.is_of_this_process() {
            fork::leak(std::mem::replace(&mut self.state, State::Done));
            return Poll::Ready(Err(Error::Forked));
        }
        let slot = match std::mem::replace(&mut self.state, State::Done) {
            State::New(run) => {
                return match self.queue(run, context.waker()) {
                    Ok(()) => Poll::Pending,
                    Err(error) => Poll::Ready(Err(error)),
                };
            }
            State::Queued(ticket, slot) => (ticket, slot),
            State::Done => {
                return Poll::Ready(Err(Error::internal("a finished operation was polled")));
            }
        };
        let (ticket, slot) = slot;
        let mut progress = slot.lock();
        match std::mem::replace(&mut *progress, Progress::Taken) {
            Progress::Done(Ok(result)) => Poll::Ready(result),
            Progress::Done(Err(panic)) => {
                drop(progress);
                resume_unwind(panic)
            }
            Progress::Pending(_) | Progress::Taken => {
                *progress = Progress::Pending(context.waker().clone());
                drop(progress);
                self.state = State::Queued(ticket, slot);
                Poll::Pending
            }
        }
    }
}

impl<T> Drop for Operation<T> {
    fn drop(&mut self) {
        if let State::Queued(ticket, _) = &self.state
            && self.lane.is_of_this_process()
        {
            self.lane.cancel(*ticket);
        }
    }
}

impl<T> std::fmt::Debug for Operation<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = match self.state {
            State::New(_) => "new",
            State::Queued(..) => "queued",
            State::Done => "done",
        };
        write!(f, "Operation({state})")
    }
}
