//! The clock, passed in so that tests control time.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time of day, for creation times and ages. The engine only compares times and does not rely
/// on the clock being monotonic.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Returns microseconds since the Unix epoch.
    fn now_micros(&self) -> u64;

    /// Returns the simulated time in which flushes and merges wait for bandwidth and for each
    /// other, if this clock has one; by default they wait in real time.
    fn job_time(&self) -> Option<&dyn JobTime> {
        None
    }
}

/// Simulated time of flushes and merges. A program that simulates it also runs the jobs, with
/// [`Background::Inline`](crate::Background::Inline) and a thread for each job, so that it sees
/// when all of them wait and time may advance.
pub trait JobTime: Send + Sync + fmt::Debug {
    /// Returns the time since some origin. It never decreases.
    fn elapsed(&self) -> Duration;

    /// Returns the number of changes so far.
    fn changes(&self) -> u64;

    /// Counts a change that may end the wait of other jobs, and wakes them.
    fn note_change(&self);

    /// Blocks the calling job for at most this long, or until there are more than `seen` changes.
    fn wait(&self, seen: u64, at_most: Duration);
}

/// The clock of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "the one place that asks the system")]
    fn now_micros(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }
}

/// Returns the processor time of the calling thread, if the operating system reports it.
pub(crate) fn thread_cpu_time() -> Option<Duration> {
    // The interpreter Miri does not have this clock.
    #[cfg(all(unix, not(miri)))]
    {
        use rustix::time::{ClockId, clock_gettime};
        Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).ok()
    }
    #[cfg(not(all(unix, not(miri))))]
    None
}

/// Divides the processor time of the calling thread into laps.
#[derive(Debug)]
pub(crate) struct CpuLaps {
    lap_began: Option<Duration>,
}

impl CpuLaps {
    /// Begins the first lap.
    pub(crate) fn begin() -> Self {
        Self { lap_began: thread_cpu_time() }
    }

    /// Ends a lap and begins the next; returns 0 if the operating system does not report the time.
    pub(crate) fn lap(&mut self) -> Duration {
        let now = thread_cpu_time();
        let lap = now.zip(self.lap_began).map(|(now, began)| now.saturating_sub(began));
        self.lap_began = now;
        lap.unwrap_or_default()
    }
}

/// A clock that moves only when the caller advances it, for tests and simulation.
#[derive(Debug, Default)]
pub struct ManualClock {
    micros: AtomicU64,
}

impl ManualClock {
    /// Creates a clock at `micros` microseconds since the Unix epoch.
    pub fn new(micros: u64) -> Self {
        Self { micros: AtomicU64::new(micros) }
    }

    /// Moves the clock forward, at most to the end of its range.
    pub fn advance(&self, by: Duration) {
        let micros = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
        let next = |now: u64| Some(now.saturating_add(micros));
        // Relaxed: the number publishes no other memory. The update never fails.
        let _ = self.micros.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    }
}

impl Clock for ManualClock {
    fn now_micros(&self) -> u64 {
        self.micros.load(Ordering::Relaxed)
    }
}
