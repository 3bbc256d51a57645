//! The sleep that delayed writers owe. It accumulates over writes, because the sleep of a single
//! write is shorter than the system can sleep, and every sleep takes longer than requested.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Sleeps shorter than this take far longer than requested, so they are accumulated.
pub(super) const SHORTEST_SLEEP: Duration = Duration::from_micros(100);

/// The maximum oversleep for which writers may make up. A longer oversleep means that processors
/// are scarce, which already slows writers down.
const OVERSLEPT_MAX: Duration = Duration::from_millis(10);

/// The owed sleep, in nanoseconds; negative after an oversleep.
#[derive(Debug, Default)]
pub(super) struct Delays {
    owed_nanos: AtomicI64,
}

impl Delays {
    /// Adds the sleep that a write owes. Returns the time to sleep now; zero while it is too short.
    // Relaxed: the number publishes no other memory.
    pub(super) fn owe(&self, nanos: f64) -> Duration {
        let nanos = nanos as i64;
        let owed = self.owed_nanos.fetch_add(nanos, Ordering::Relaxed).saturating_add(nanos);
        let owed = Duration::from_nanos(u64::try_from(owed).unwrap_or(0));
        if owed < SHORTEST_SLEEP {
            return Duration::ZERO;
        }
        self.take(owed);
        owed
    }

    /// Notes that a sleep of `owed` took `took`.
    pub(super) fn slept(&self, owed: Duration, took: Duration) {
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
    fn short_sleeps_accumulate() {
        let delays = Delays::default();
        assert_eq!([40.0, 40.0].map(|time| delays.owe(time * MICRO)), [Duration::ZERO; 2]);
        assert_eq!(delays.owe(40.0 * MICRO), micros(120));
        assert_eq!(delays.owe(40.0 * MICRO), Duration::ZERO);
    }

    /// A sleep of 100 microseconds takes 155, so writes took half as long again as the design
    /// specifies.
    #[test]
    fn oversleeps_are_made_up_for() {
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
