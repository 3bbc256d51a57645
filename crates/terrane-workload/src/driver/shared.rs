//! State shared by the threads of a run.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use super::recorder::Done;
use crate::options::RunOptions;
use crate::workload::Workload;

/// State shared by the threads of a run.
pub(super) struct Shared {
    /// Lets all threads continue once all clients, the writer and the caller have arrived.
    pub(super) start: Barrier,
    /// Set when the first error occurs; also set when the clients have finished, to stop the
    /// writer.
    stopped: AtomicBool,
    /// The number of operations that each client has completed, then the number for the writer.
    pub(super) done: Vec<Done>,
}

impl Shared {
    pub(super) fn new(workload: Workload, options: &RunOptions) -> Self {
        let writers = usize::from(workload == Workload::ReadWhileWriting);
        let threads = options.threads as usize + writers;
        Self {
            start: Barrier::new(threads + 1),
            stopped: AtomicBool::new(false),
            done: (0..threads).map(|_| Done::default()).collect(),
        }
    }

    pub(super) fn done_by(&self, clients: u32) -> u64 {
        self.done.iter().take(clients as usize).map(Done::get).sum()
    }

    pub(super) fn stop(&self) {
        // Relaxed: the flag orders no other memory access, and a client that sees it late only
        // executes a few more operations.
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}
