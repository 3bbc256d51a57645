//! The choice of the next suite and its seed.

use std::time::Duration;

use super::suite::Suite;

/// The distance between the seeds of successive runs of a suite: more than a suite tries in a run.
const SEEDS_PER_RUN: u64 = 1_000_000;

/// The assumed duration of a run until the first run of its suite has ended.
const FIRST_GUESS: Duration = Duration::from_secs(5);

/// A run of a suite.
pub(super) struct Run {
    /// The index of the suite.
    pub(super) suite: usize,
    pub(super) seed: u64,
    /// The assumed duration of the run when it started.
    expected: Duration,
}

/// The runs of a suite so far.
struct Progress {
    percent: u32,
    started: u64,
    /// The time of the runs that have ended, and the expected time of those still running.
    used: Duration,
    last: Duration,
}

/// Shares the time of the workers between the suites.
pub(super) struct Plan {
    first_seed: u64,
    suites: Vec<Progress>,
}

impl Plan {
    pub(super) fn new(suites: &[Suite], first_seed: u64) -> Self {
        let suites = suites
            .iter()
            .map(|suite| Progress {
                percent: suite.percent,
                started: 0,
                used: Duration::ZERO,
                last: FIRST_GUESS,
            })
            .collect();
        Self { first_seed, suites }
    }

    /// Starts a run of the suite that has used the smallest part of its share.
    pub(super) fn next(&mut self) -> Run {
        let used = |suite: &Progress| suite.used.as_secs_f64() / f64::from(suite.percent);
        let next = (0..self.suites.len())
            .min_by(|&a, &b| used(&self.suites[a]).total_cmp(&used(&self.suites[b])));
        self.start(next.unwrap_or(0))
    }

    /// Starts a run of a suite that has not run yet.
    pub(super) fn next_unused(&mut self) -> Option<Run> {
        let next = self.suites.iter().position(|suite| suite.started == 0)?;
        Some(self.start(next))
    }

    fn start(&mut self, suite: usize) -> Run {
        let progress = &mut self.suites[suite];
        let seed = self.first_seed.wrapping_add(progress.started * SEEDS_PER_RUN);
        progress.started += 1;
        progress.used += progress.last;
        Run { suite, seed, expected: progress.last }
    }

    pub(super) fn end(&mut self, run: &Run, time: Duration) {
        let progress = &mut self.suites[run.suite];
        progress.used = (progress.used + time).saturating_sub(run.expected);
        progress.last = time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUITES: &[Suite] = &[
        Suite { name: "slow", seeds: 1, percent: 60 },
        Suite { name: "quick", seeds: 1, percent: 40 },
    ];

    #[test]
    fn suites_get_their_shares_however_long_they_take() {
        let mut plan = Plan::new(SUITES, 7);
        let mut seconds = [0, 0];
        let mut running = std::collections::VecDeque::from([plan.next(), plan.next()]);
        for _ in 0..1000 {
            running.push_back(plan.next());
            let Some(run) = running.pop_front() else { break };
            let time = [30, 1][run.suite];
            seconds[run.suite] += time;
            plan.end(&run, Duration::from_secs(time));
        }
        let share = 100 * seconds[0] / (seconds[0] + seconds[1]);
        assert!((55..=65).contains(&share), "{share} % for the slow suite");
    }

    #[test]
    fn every_suite_runs_once_though_the_time_is_over_and_seeds_differ() {
        let mut plan = Plan::new(SUITES, 7);
        let (a, b) = (plan.next(), plan.next_unused());
        assert_eq!((a.suite, b.map(|run| run.suite)), (0, Some(1)));
        assert!(plan.next_unused().is_none());
        plan.end(&a, Duration::ZERO);
        let c = plan.next();
        assert_eq!((c.suite, a.seed, c.seed), (0, 7, 7 + SEEDS_PER_RUN));
    }
}
