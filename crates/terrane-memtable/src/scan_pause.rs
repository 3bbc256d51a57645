//! The pause of writers during a scan of FloDB (paper, §4.4): the flag `pauseWriters` of Algorithms 2
//! and 3, and the drain that paused writers help with.
//!
//! 1. Only one pause exists at a time, because it holds `pausing`.
//! 2. A paused writer waits for the pause to end by taking `pausing`. It holds no lock meanwhile, and
//!    the pausing thread does not wait for writers, so the pause ends.

use std::fmt;

use crate::entry::SeqNo;
use crate::sync::{AtomicU64, Guard, Mutex, Ordering, lock};

/// Not paused.
const RUNNING: u64 = 0;

/// Paused, and nothing to help with.
const PAUSED: u64 = 1;

/// Whether writers are paused, and up to which sequence number they help to drain.
pub(crate) struct ScanPause {
    /// [`RUNNING`], [`PAUSED`], or the sequence number that is drained, plus [`PAUSED`].
    state: AtomicU64,
    pausing: Mutex<()>,
}

impl ScanPause {
    pub(crate) fn new() -> Self {
        Self { state: AtomicU64::new(RUNNING), pausing: Mutex::new(()) }
    }

    /// Pauses until the result is dropped.
    pub(crate) fn begin(&self) -> FrontPause<'_> {
        let pausing = lock(&self.pausing);
        // SeqCst: a writer that does not see the pause took its sequence number before the caller
        // takes the one of its scan, or its version is newer than the scan, which then restarts.
        self.state.store(PAUSED, Ordering::SeqCst);
        FrontPause { pause: self, _pausing: pausing }
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.state.load(Ordering::SeqCst) != RUNNING
    }

    /// Asks paused writers to help with a drain, if they are paused.
    pub(crate) fn ask_for_help(&self, seq: SeqNo) {
        // Relaxed: without help the drain only takes longer.
        let (paused, order) = (seq + PAUSED, Ordering::Relaxed);
        let _ = self.state.compare_exchange(PAUSED, paused, order, order);
    }

    /// Calls `help` with the sequence number of the drain, then waits for the pause to end. Does
    /// not wait for every later pause, so that back-to-back scans do not block a writer; a scan
    /// that meets the writer's version restarts.
    #[cold]
    pub(crate) fn wait(&self, help: impl Fn(SeqNo)) {
        match self.state.load(Ordering::SeqCst) {
            RUNNING => return,
            PAUSED => {}
            seq => help(seq - PAUSED),
        }
        drop(lock(&self.pausing));
    }
}

/// Pauses the writers of a lower level; see [`crate::FrontLevel::pause`].
pub struct FrontPause<'a> {
    pause: &'a ScanPause,
    _pausing: Guard<'a, ()>,
}

impl Drop for FrontPause<'_> {
    fn drop(&mut self) {
        self.pause.state.store(RUNNING, Ordering::SeqCst);
    }
}

impl fmt::Debug for FrontPause<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FrontPause")
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use terrane_testkit::wait_until;

    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test gives the writer time")]
    fn a_paused_writer_helps_with_the_drain_and_waits_for_the_end_of_the_pause() {
        let pause = ScanPause::new();
        let (helped, ended) = (AtomicU64::new(0), AtomicBool::new(false));
        let begun = pause.begin();
        assert!(pause.is_paused());
        pause.ask_for_help(7);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                pause.wait(|seq| helped.store(seq, Ordering::SeqCst));
                ended.store(true, Ordering::SeqCst);
            });
            let state = || "the writer does not help".to_owned();
            wait_until(|| helped.load(Ordering::SeqCst) == 7, state);
            // Looks many times, so that a writer that does not wait can run on a busy machine.
            for _ in 0..20 {
                std::thread::sleep(Duration::from_millis(10));
                assert!(!ended.load(Ordering::SeqCst));
            }
            drop(begun);
        });
        assert!(ended.load(Ordering::SeqCst) && !pause.is_paused());
        // Without a pause nobody waits, and nothing asks for help.
        pause.ask_for_help(8);
        pause.wait(|seq| helped.store(seq, Ordering::SeqCst));
        assert_eq!(helped.load(Ordering::SeqCst), 7);
    }
}
