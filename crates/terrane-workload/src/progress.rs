//! Says how far a run is.

use std::time::Duration;

/// Told how far a run is, about ten times a second, by the thread that called
/// [`run`](crate::run), while the clients work on others.
pub trait Progress {
    /// `done` of `total` operations were done after `elapsed`. `done` may end below `total` where
    /// a scan finds fewer entries than were loaded.
    fn update(&self, done: u64, total: u64, elapsed: Duration);
}

/// A [`Progress`] that says nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn update(&self, _done: u64, _total: u64, _elapsed: Duration) {}
}
