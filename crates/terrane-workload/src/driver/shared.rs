//! What the threads of a run share.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use super::recorder::Done;
use crate::options::RunOptions;
use crate::workload::Workload;

/// What the threads of a run share.
pub(super) struct Shared {
    /// Passed by all clients, the writer and the caller at once.
    pub(super) start: Barrier,
    /// Set on the first error, and for the writer when the clients have finished.
    stopped: AtomicBool,
    /// Operations of each client, then of the writer.
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
        // Relaxed: it orders nothing, and whoever sees it late does a few operations more.
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}
