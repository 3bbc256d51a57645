//! A schedule of arrivals that is independent of the engine (paper §3.2, Fig. 5b).
//!
//! The time of an arrival is computed from its index, so a backlog needs no queue in memory: the
//! waiting writes are the range of indexes that are due and not yet taken.

const NANOS_PER_SECOND: f64 = 1e9;

/// A constant rate for some time.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RateSegment {
    /// Arrivals per nanosecond.
    rate: f64,
    nanos: f64,
    arrivals: f64,
}

impl RateSegment {
    fn new(per_second: f64, seconds: f64) -> Self {
        let rate = per_second / NANOS_PER_SECOND;
        let nanos = seconds * NANOS_PER_SECOND;
        Self { rate, nanos, arrivals: rate * nanos }
    }
}

/// Arrival times of writes, in nanoseconds since the start of the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    low: RateSegment,
    high: RateSegment,
}

impl Schedule {
    /// Returns a schedule of evenly spaced arrivals, `per_second` of them each second; `per_second`
    /// is above zero.
    pub fn constant(per_second: f64) -> Self {
        // One segment that is longer than any run.
        Self {
            low: RateSegment::new(per_second, f64::MAX / 1e30),
            high: RateSegment::new(0.0, 0.0),
        }
    }

    /// Returns a schedule that alternates between `low_per_second` for `low_seconds` and
    /// `high_per_second` for `high_seconds`. A cycle has at least one arrival.
    pub fn burst(
        low_per_second: f64,
        low_seconds: f64,
        high_per_second: f64,
        high_seconds: f64,
    ) -> Self {
        Self {
            low: RateSegment::new(low_per_second, low_seconds),
            high: RateSegment::new(high_per_second, high_seconds),
        }
    }

    /// Returns the time of arrival number `index`.
    #[inline]
    pub fn time_of(&self, index: u64) -> u64 {
        let index = index as f64;
        if index < self.low.arrivals {
            return (index / self.low.rate).round() as u64;
        }
        self.time_in_cycle(index)
    }

    fn time_in_cycle(&self, index: f64) -> u64 {
        let (low, high) = (self.low, self.high);
        let cycle = (index / (low.arrivals + high.arrivals)).floor();
        // Rounding may carry the remainder slightly past either end of its segment.
        let rest = (index - cycle * (low.arrivals + high.arrivals)).max(0.0);
        let begin = cycle * (low.nanos + high.nanos);
        let within = if rest < low.arrivals || high.rate == 0.0 {
            rest / low.rate
        } else {
            low.nanos + (rest - low.arrivals) / high.rate
        };
        (begin + within).round() as u64
    }

    /// Returns the number of arrivals before `nanos`, which is also the index of the first arrival
    /// at or after `nanos`.
    pub fn arrivals_before(&self, nanos: u64) -> u64 {
        let (low, high, time) = (self.low, self.high, nanos as f64);
        let cycle = (time / (low.nanos + high.nanos)).floor();
        let rest = time - cycle * (low.nanos + high.nanos);
        let within = if rest < low.nanos {
            rest * low.rate
        } else {
            low.arrivals + (rest - low.nanos) * high.rate
        };
        let mut index = (cycle * (low.arrivals + high.arrivals) + within) as u64;
        // Correct for rounding, so that this function and `time_of` agree.
        while index > 0 && self.time_of(index - 1) >= nanos {
            index -= 1;
        }
        while self.time_of(index) < nanos {
            index += 1;
        }
        index
    }

    /// Returns the maximum rate, in arrivals per second.
    pub fn highest_per_second(&self) -> f64 {
        self.low.rate.max(self.high.rate) * NANOS_PER_SECOND
    }

    /// Returns the mean rate over a cycle, in arrivals per second.
    pub fn mean_per_second(&self) -> f64 {
        let (low, high) = (self.low, self.high);
        (low.arrivals + high.arrivals) / (low.nanos + high.nanos) * NANOS_PER_SECOND
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn constant_arrivals_are_evenly_spaced() {
        let schedule = Schedule::constant(4.0);
        let times: Vec<_> = (0..5).map(|index| schedule.time_of(index) * 4 / SECOND).collect();
        assert_eq!(times, [0, 1, 2, 3, 4]);
        assert_eq!(schedule.arrivals_before(0), 0);
        assert_eq!(schedule.arrivals_before(1), 1);
        assert_eq!(schedule.arrivals_before(SECOND), 4);
        assert!((schedule.mean_per_second() - 4.0).abs() < 1e-9);
    }

    #[test]
    fn bursts_alternate_between_two_rates() {
        let schedule = Schedule::burst(2.0, 25.0, 8.0, 5.0);
        assert_eq!(schedule.arrivals_before(25 * SECOND), 50);
        assert_eq!(schedule.arrivals_before(30 * SECOND), 90);
        assert_eq!(schedule.arrivals_before(55 * SECOND), 140);
        assert_eq!(schedule.time_of(51), 25 * SECOND + SECOND / 8);
        assert_eq!(schedule.time_of(90), 30 * SECOND);
        assert!((schedule.mean_per_second() - 3.0).abs() < 1e-9);
        assert!((schedule.highest_per_second() - 8.0).abs() < 1e-9);
        let silent = Schedule::burst(0.0, 10.0, 5.0, 1.0);
        assert_eq!(silent.time_of(0), 10 * SECOND);
        assert_eq!(silent.time_of(5), 21 * SECOND);
    }

    #[test]
    fn counts_and_times_never_contradict_each_other() {
        for schedule in [
            Schedule::constant(333_333.3),
            Schedule::constant(0.7),
            Schedule::burst(1.7, 0.3, 12_345.6, 0.11),
            Schedule::burst(9.0, 2.0, 0.0, 3.0),
        ] {
            let mut last = 0;
            for index in (0..3000).chain((1..50).map(|n| 10_000_019 * n)) {
                let time = schedule.time_of(index);
                assert!(schedule.arrivals_before(time) <= index, "{schedule:?} {index}");
                assert!(schedule.arrivals_before(time + 1) > index, "{schedule:?} {index}");
                if index < 3000 {
                    assert!(time >= last);
                    last = time;
                }
            }
        }
    }
}
