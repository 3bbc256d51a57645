//! Threads for commands that take long, such as compactions, so that the worker serves its other connections
//! meanwhile.
//!
//! The connection of such a command waits for its [`Pending`] reply. If the connection ends first, the command
//! is cancelled.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use mio::Waker;
use terrane::{Db, Maintenance};

/// How many commands of a kind may run in their own threads.
const THREADS: usize = 4;

/// What happens to a command when its client ends its side of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtEnd {
    /// The command goes on, because the client may still read the reply.
    GoesOn,
    /// The command is cancelled.
    IsCancelled,
}

/// The threads.
#[derive(Debug, Default)]
pub(crate) struct Helpers(Mutex<Vec<JoinHandle<()>>>);

/// A reply that another thread writes.
#[derive(Debug)]
pub(crate) struct Pending {
    reply: Arc<Mutex<Option<Vec<u8>>>>,
    maintenance: Maintenance,
    at_end: AtEnd,
}

impl Pending {
    /// Returns whether the command is cancelled when the client ends its side of the connection.
    pub(crate) fn ends_with_client(&self) -> bool {
        self.at_end == AtEnd::IsCancelled
    }

    /// Returns the reply once it is complete.
    pub(crate) fn take(&self) -> Option<Vec<u8>> {
        self.reply.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The reply of a command whose thread panicked.
const PANICKED: &[u8] = b"-ERR the command panicked; please report it\r\n";

/// Completes a reply when it is dropped, even after a panic.
struct Completion {
    reply: Arc<Mutex<Option<Vec<u8>>>>,
    waker: Arc<Waker>,
    done: Vec<u8>,
}

impl Drop for Completion {
    fn drop(&mut self) {
        let done = std::mem::take(&mut self.done);
        *self.reply.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
        // A worker that cannot be woken notices the reply after its next event.
        let _ = self.waker.wake();
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.maintenance.cancel();
    }
}

impl Helpers {
    /// Runs `work` in a thread, and wakes the worker of its connection when the reply is complete. Returns
    /// `None` if too many threads are running or the system has no resources for one.
    pub(crate) fn start(
        &self,
        db: &Db,
        waker: Arc<Waker>,
        at_end: AtEnd,
        work: impl FnOnce(&Maintenance) -> Vec<u8> + Send + 'static,
    ) -> Option<Pending> {
        let mut threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|thread| !thread.is_finished());
        if threads.len() >= THREADS {
            return None;
        }
        let pending = Pending { reply: Arc::default(), maintenance: Maintenance::of(db), at_end };
        let (reply, maintenance) = (Arc::clone(&pending.reply), pending.maintenance.clone());
        let thread = std::thread::Builder::new().name("terrane-serve-long".to_owned());
        let thread = thread.spawn(move || {
            let mut completion = Completion { reply, waker, done: PANICKED.to_vec() };
            completion.done = work(&maintenance);
        });
        threads.push(thread.ok()?);
        Some(pending)
    }

    /// Waits for all threads. Their connections have ended, so they end soon.
    pub(crate) fn join(&self) {
        let threads = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        // A panic is already the reply of its connection.
        threads.into_iter().for_each(|thread| drop(thread.join()));
    }
}
