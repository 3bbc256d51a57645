//! When writes arrive: a schedule that does not wait for the engine (paper §3.2, Fig. 5b).
//!
//! A schedule is arithmetic. The moment of every arrival follows from its index, so a run that
//! falls behind needs no queue in memory: what waits is the range of indexes that were due and not
//! taken.

const NANOS_PER_SECOND: f64 = 1e9;

/// A rate that holds for a while.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Piece {
    /// Arrivals per nanosecond.
    rate: f64,
    nanos: f64,
    arrivals: f64,
}

impl Piece {
    fn new(per_second: f64, seconds: f64) -> Self {
        let rate = per_second / NANOS_PER_SECOND;
        let nanos = seconds * NANOS_PER_SECOND;
        Self { rate, nanos, arrivals: rate * nanos }
    }
}

/// Moments at which writes arrive, in nanoseconds since the start of the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    low: Piece,
    high: Piece,
}

impl Schedule {
    /// `per_second` arrivals a second, evenly; more than none.
    pub fn constant(per_second: f64) -> Self {
        // One piece that no run reaches the end of.
        Self { low: Piece::new(per_second, f64::MAX / 1e30), high: Piece::new(0.0, 0.0) }
    }

    /// `low_per_second` for `low_seconds`, then `high_per_second` for `high_seconds`, over and
    /// over. There is at least one arrival in it all.
    pub fn burst(
        low_per_second: f64,
        low_seconds: f64,
        high_per_second: f64,
        high_seconds: f64,
    ) -> Self {
        Self {
            low: Piece::new(low_per_second, low_seconds),
            high: Piece::new(high_per_second, high_seconds),
        }
    }

    /// When the arrival of `index` comes.
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
        // Rounding may leave a little less than nothing, or a little more than there is.
        let rest = (index - cycle * (low.arrivals + high.arrivals)).max(0.0);
        let begin = cycle * (low.nanos + high.nanos);
        let within = if rest < low.arrivals || high.rate == 0.0 {
            rest / low.rate
        } else {
            low.nanos + (rest - low.arrivals) / high.rate
        };
        (begin + within).round() as u64
    }

    /// The number of arrivals before `nanos`, which is the index of the first that is not.
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
        // What rounding did to either of the two must not make them contradict each other.
        while index > 0 && self.time_of(index - 1) >= nanos {
            index -= 1;
        }
        while self.time_of(index) < nanos {
            index += 1;
        }
        index
    }

    /// Arrivals a second while they are most frequent.
    pub fn highest_per_second(&self) -> f64 {
        self.low.rate.max(self.high.rate) * NANOS_PER_SECOND
    }

    /// Arrivals a second, over a whole cycle.
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
