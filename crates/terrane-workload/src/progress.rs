//! Progress of a run.

use std::time::Duration;

/// Receives the progress of a run. The thread that called [`run`](crate::run) reports it about ten
/// times a second, while clients run on other threads.
pub trait Progress {
    /// Reports `done` of `total` operations after `elapsed`. The last `done` is below `total` if a scan
    /// finds fewer entries than were loaded.
    fn update(&self, done: u64, total: u64, elapsed: Duration);
}

/// A [`Progress`] that ignores all reports.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn update(&self, _done: u64, _total: u64, _elapsed: Duration) {}
}
