//! Limits on waiting. A busy machine must not fail a test, so a wait ends when its condition holds,
//! and its time limit is so long that only a hang reaches it.

use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The maximum time that a test waits for anything. Every wait in the workspace takes seconds on an
/// idle machine.
pub const HANG_LIMIT: Duration = Duration::from_secs(300);

const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Fails a loop that runs for longer than [`HANG_LIMIT`].
#[derive(Debug)]
pub struct HangGuard {
    start: Instant,
}

impl HangGuard {
    /// Starts the time limit.
    #[allow(clippy::new_without_default, reason = "a guard starts at a time, it has no default")]
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }

    /// Checks that the limit has not passed.
    ///
    /// # Panics
    /// With the text of `state` when the limit has passed.
    pub fn check(&self, state: impl FnOnce() -> String) {
        assert!(self.start.elapsed() < HANG_LIMIT, "hangs: {}", state());
    }
}

/// Polls `is_met` until it returns true.
///
/// # Panics
/// With the text of `state` after [`HANG_LIMIT`].
pub fn wait_until(mut is_met: impl FnMut() -> bool, mut state: impl FnMut() -> String) {
    let guard = HangGuard::new();
    while !is_met() {
        guard.check(&mut state);
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Runs `work` on its own thread and returns its result.
///
/// # Panics
/// When `work` panics or takes longer than [`HANG_LIMIT`].
#[allow(clippy::expect_used, reason = "a failed test is a panic")]
pub fn run_guarded<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(HANG_LIMIT).expect("the call panicked or hangs")
}
