//! A schedule of writers: of those whose design has a maximum rate, and of those that spread the room left
//! before a stop.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use terrane_policy::Design;

/// Writers that have stayed below the maximum rate may later catch up by at most the operations
/// that the rate allows in this time.
const CATCH_UP_NANOS: u64 = 1_000_000;

/// The time up to which the schedule is filled.
#[derive(Debug)]
pub(super) struct Pace {
    begun_at: Instant,
    /// The end of the last scheduled operation, in nanoseconds since `begun_at`.
    until_nanos: AtomicU64,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self { begun_at: Instant::now(), until_nanos: AtomicU64::new(0) }
    }

    /// Adds operations that together take `nanos` at the maximum rate. Returns how far writers are
    /// ahead of the schedule.
    pub(super) fn add(&self, nanos: u64) -> Duration {
        let now = u64::try_from(self.begun_at.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let earliest = now.saturating_sub(CATCH_UP_NANOS);
        let next = |until: u64| Some(until.max(earliest).saturating_add(nanos));
        // Relaxed: the number publishes no other memory.
        let before = self.until_nanos.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        let until = before.unwrap_or(0).max(earliest).saturating_add(nanos);
        Duration::from_nanos(until.saturating_sub(now))
    }

    /// Forgets how far writers are ahead of the schedule.
    pub(super) fn clear(&self) {
        self.until_nanos.store(0, Ordering::Relaxed);
    }

    /// Returns how far writers are ahead of the schedule.
    pub(super) fn ahead(&self) -> Duration {
        let until = Duration::from_nanos(self.until_nanos.load(Ordering::Relaxed));
        until.saturating_sub(self.begun_at.elapsed())
    }
}

/// Returns the time per operation at the maximum rate of a design, or 0 if the design has no
/// maximum rate.
pub(super) fn nanos_per_write(design: &Design) -> u64 {
    design.constraint.max_rate.map_or(0, |rate| 1_000_000_000 / u64::from(rate.max(1)))
}
