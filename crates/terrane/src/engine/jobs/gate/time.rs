//! The time on which jobs wait: real time, or the simulated time of a clock.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::base::clock::{Clock, JobTime};

/// Counts changes, and lets jobs wait for one.
#[derive(Debug)]
pub(super) struct GateTime {
    clock: Arc<dyn Clock>,
    begun: Instant,
    changes: Mutex<u64>,
    changed: Condvar,
}

impl GateTime {
    pub(super) fn new(clock: &Arc<dyn Clock>) -> Self {
        let (clock, begun) = (Arc::clone(clock), Instant::now());
        Self { clock, begun, changes: Mutex::default(), changed: Condvar::new() }
    }

    fn simulated(&self) -> Option<&dyn JobTime> {
        self.clock.job_time()
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time since a fixed origin.
    pub(super) fn elapsed(&self) -> Duration {
        self.simulated().map_or_else(|| self.begun.elapsed(), JobTime::elapsed)
    }

    pub(super) fn changes(&self) -> u64 {
        self.simulated().map_or_else(|| *self.lock(), JobTime::changes)
    }

    pub(super) fn note_change(&self) {
        if let Some(time) = self.simulated() {
            return time.note_change();
        }
        *self.lock() += 1;
        self.changed.notify_all();
    }

    /// Waits for at most this long, or until there are more than `seen` changes.
    pub(super) fn wait(&self, seen: u64, at_most: Duration) {
        if let Some(time) = self.simulated() {
            return time.wait(seen, at_most);
        }
        let is_unchanged = |changes: &mut u64| *changes <= seen;
        let waited = self.changed.wait_timeout_while(self.lock(), at_most, is_unchanged);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}
