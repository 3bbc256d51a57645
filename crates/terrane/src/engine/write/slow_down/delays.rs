//! What writers are to sleep because trees fall behind, kept to on the whole: single sleeps are too
//! short to be slept, and those that are slept take longer than they should.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Sleeps shorter than this take far longer than they say; they are saved up.
pub(crate) const SHORTEST_SLEEP: Duration = Duration::from_micros(100);

/// By how much writers that slept longer than they should may be faster afterwards. Who waits for
/// a processor for longer than that is slowed down by this already.
const OVERSLEPT_MAX: Duration = Duration::from_millis(10);

/// What is owed, in nanoseconds; below zero after writers have slept longer.
#[derive(Debug, Default)]
pub(crate) struct Delays {
    owed_nanos: AtomicI64,
}

impl Delays {
    /// Adds what a write owes. Answers what to sleep now, if that is long enough.
    // Relaxed: the number stands for itself.
    pub(crate) fn owe(&self, nanos: f64) -> Duration {
        let nanos = nanos as i64;
        let owed = self.owed_nanos.fetch_add(nanos, Ordering::Relaxed).saturating_add(nanos);
        let owed = Duration::from_nanos(u64::try_from(owed).unwrap_or(0));
        if owed < SHORTEST_SLEEP {
            return Duration::ZERO;
        }
        self.take(owed);
        owed
    }

    /// Instead of what was to be slept, so much was.
    pub(crate) fn slept(&self, owed: Duration, took: Duration) {
        let overslept = took.saturating_sub(owed).min(OVERSLEPT_MAX);
        self.take(overslept);
    }

    fn take(&self, time: Duration) {
        let nanos = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        self.owed_nanos.fetch_sub(nanos, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MICRO: f64 = 1e3;

    fn micros(number: u64) -> Duration {
        Duration::from_micros(number)
    }

    #[test]
    fn short_sleeps_are_saved_up() {
        let delays = Delays::default();
        assert_eq!([40.0, 40.0].map(|time| delays.owe(time * MICRO)), [Duration::ZERO; 2]);
        assert_eq!(delays.owe(40.0 * MICRO), micros(120));
        assert_eq!(delays.owe(40.0 * MICRO), Duration::ZERO);
    }

    /// Sleeps of 100 microseconds take 155: writers were slower by half than a design says.
    #[test]
    fn what_was_overslept_is_made_up_for() {
        let delays = Delays::default();
        let mut slept = Duration::ZERO;
        for _ in 0..1000 {
            let owed = delays.owe(30.0 * MICRO);
            if owed > Duration::ZERO {
                let took = owed + micros(55);
                delays.slept(owed, took);
                slept += took;
            }
        }
        assert!((micros(29_800)..micros(30_200)).contains(&slept), "{slept:?}");
    }

    #[test]
    fn a_long_wait_for_a_processor_is_not_made_up_for() {
        let delays = Delays::default();
        let owed = delays.owe(100.0 * MICRO);
        delays.slept(owed, Duration::from_secs(1));
        assert_eq!(delays.owe(10_000.0 * MICRO), Duration::ZERO);
        assert_eq!(delays.owe(100.0 * MICRO), micros(100));
    }
}
