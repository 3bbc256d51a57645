//! Judges the differences between engine and simulator in write rates and stall times.
//!
//! Single comparisons may differ because a merge begins a little earlier or later: just above its limit, a
//! tree stalls either hardly ever or most of the time. A small share of the comparisons may therefore
//! exceed their limits. An error in the speed of flushes and merges moves all rates in one direction, so
//! the mean difference has a narrower limit.

/// The throughput and the stall time of a writer.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct WriterStalls {
    /// Completed writes per second.
    pub(super) rate: f64,
    /// The share of the time in which the writer was stopped.
    pub(super) stalled: f64,
}

/// The arrival rate of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Offered {
    /// A closed loop.
    Closed,
    /// A share of the limit, and the writes per second that it amounts to.
    Share(f64, f64),
}

impl Offered {
    /// Returns true if more writes arrive than the tree can take, so that flushes and merges decide the
    /// rate.
    pub(super) fn saturates(self) -> bool {
        match self {
            Self::Closed => true,
            Self::Share(share, _) => share > 1.0,
        }
    }
}

/// The engine and the simulator with the same writes.
#[derive(Debug, Clone, Copy)]
pub(super) struct RateComparison {
    pub(super) offered: Offered,
    pub(super) engine: WriterStalls,
    pub(super) simulated: WriterStalls,
}

/// The largest tolerated differences.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Of the shares of time in which writers are stopped.
    pub(super) stalled: f64,
    /// Of the rates, relative to the engine's.
    pub(super) rate: f64,
    /// Of the share of comparisons that exceed one of the limits above.
    pub(super) outliers: f64,
    /// Of the mean of the rates of saturated trees, relative to the engine's.
    pub(super) mean_rate: f64,
}

/// The differences of some comparisons.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Judgement {
    pub(super) comparisons: usize,
    /// Comparisons that exceed a limit.
    pub(super) failed: usize,
    /// The largest differences.
    pub(super) stalled: f64,
    pub(super) rate: f64,
    /// The mean relative difference of the rates of saturated trees; positive if simulated rates are
    /// higher.
    pub(super) mean_rate: f64,
    are_outliers_few: bool,
    is_mean_within: bool,
}

impl RateComparison {
    pub(super) fn stalled_difference(&self) -> f64 {
        self.simulated.stalled - self.engine.stalled
    }

    pub(super) fn rate_difference(&self) -> f64 {
        self.simulated.rate / self.engine.rate.max(f64::MIN_POSITIVE) - 1.0
    }

    pub(super) fn is_within(&self, limits: &Limits) -> bool {
        self.stalled_difference().abs() <= limits.stalled
            && self.rate_difference().abs() <= limits.rate
    }
}

impl Judgement {
    pub(super) fn of(all: &[RateComparison], limits: &Limits) -> Self {
        let greatest = |of: fn(&RateComparison) -> f64| {
            all.iter().map(|one| of(one).abs()).fold(0.0, f64::max)
        };
        let saturated = all.iter().filter(|one| one.offered.saturates());
        let logs: Vec<f64> = saturated.map(|one| one.rate_difference().ln_1p()).collect();
        let mean_rate = (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp_m1();
        let failed = all.iter().filter(|one| !one.is_within(limits)).count();
        Self {
            comparisons: all.len(),
            failed,
            are_outliers_few: failed as f64 <= limits.outliers * all.len() as f64,
            stalled: greatest(RateComparison::stalled_difference),
            rate: greatest(RateComparison::rate_difference),
            mean_rate,
            is_mean_within: mean_rate.abs() <= limits.mean_rate,
        }
    }

    pub(super) fn agrees(&self) -> bool {
        self.are_outliers_few && self.is_mean_within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { stalled: 0.05, rate: 0.1, outliers: 0.1, mean_rate: 0.03 };

    fn compared(offered: Offered, engine: (f64, f64), simulated: (f64, f64)) -> RateComparison {
        let stalls = |(rate, stalled)| WriterStalls { rate, stalled };
        RateComparison { offered, engine: stalls(engine), simulated: stalls(simulated) }
    }

    #[test]
    fn equal_rates_agree_and_a_rate_or_a_stall_outside_its_limit_fails() {
        let judge = |simulated| {
            let offered = Offered::Share(0.95, 1000.0);
            Judgement::of(&[compared(offered, (1000.0, 0.02), simulated)], &LIMITS)
        };
        assert!(judge((1000.0, 0.02)).agrees());
        assert!(judge((1090.0, 0.065)).agrees());
        let late = judge((1000.0, 0.08));
        assert!(!late.agrees() && late.failed == 1 && late.stalled > 0.05);
        for rate in [890.0, 1110.0, 0.0, f64::NAN] {
            let wrong = judge((rate, 0.02));
            assert!(!wrong.agrees() && wrong.failed == 1, "{rate}");
        }
    }

    #[test]
    fn a_tenth_of_the_comparisons_may_exceed_the_limits() {
        let judge = |wrong: usize| {
            let of = |at| if at < wrong { 1200.0 } else { 1000.0 };
            let offered = Offered::Share(0.95, 1000.0);
            let all: Vec<_> =
                (0..20).map(|at| compared(offered, (1000.0, 0.0), (of(at), 0.0))).collect();
            Judgement::of(&all, &LIMITS)
        };
        assert!(judge(2).agrees());
        assert!(!judge(3).agrees());
    }

    #[test]
    fn rates_that_all_err_to_one_side_fail_although_each_is_within_its_limit() {
        let all = |factors: [f64; 4]| {
            let of = |factor| compared(Offered::Closed, (1000.0, 0.9), (1000.0 * factor, 0.9));
            Judgement::of(&factors.map(of), &LIMITS)
        };
        assert!(all([1.08, 0.93, 1.05, 0.95]).agrees());
        let slow = all([0.95, 0.94, 0.96, 0.97]);
        assert!(!slow.agrees() && slow.failed == 0, "{slow:?}");
        assert!((slow.mean_rate + 0.045).abs() < 0.001, "{}", slow.mean_rate);
        // Below the limit, the rate is the arrival rate and says nothing about flushes and merges.
        let offered = Offered::Share(0.6, 1000.0);
        let below = compared(offered, (1000.0, 0.0), (960.0, 0.0));
        assert!(Judgement::of(&[below], &LIMITS).agrees());
    }
}
