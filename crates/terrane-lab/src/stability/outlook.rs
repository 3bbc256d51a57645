//! The measured run, replayed in the simulator and continued for hours and days.
//!
//! A measurement covers only what happened in it: merges of the last levels take longer than most
//! runs. The simulator uses the engine's policy and the constants of this very run ([`fit`]), so it
//! can say what follows. It first replays the run. If the replay differs from the measurement by
//! more than stated, it says nothing.
//!
//! [`fit`]: super::fit

use terrane::Design;
use terrane_sim::{
    Simulation, SimulationOutcome, SimulationSetup, StallPeriod, tree_like, unplayed,
};
use terrane_workload::stability::{Criteria, TwoPhaseReport};

use super::fit::{CountedRun, fitted, replayed};
use super::plan::StabilityPlan;

/// The simulated times in seconds, with their names.
const HORIZONS: [(&str, f64); 3] =
    [("2 hours", 7200.0), ("24 hours", 86_400.0), ("30 days", 30.0 * 86_400.0)];

/// The time in seconds for which a sustainable rate is searched for, at most.
const SUSTAINED: f64 = HORIZONS[1].1;

/// The most memtables that one simulation may take, of designs that move single tables and of those
/// that move whole runs; a flush takes some 30 µs. A longer time is left out.
const FLUSHES_MAX: f64 = 1e5;
const FLUSHES_MAX_OF_WHOLE_RUNS: f64 = 2e5;

/// The share of these memtables in each step of the search.
const SEARCH_SHARE: f64 = 0.1;

/// The differences between replay and run that are tolerated: of write amplification and runs as
/// shares, of runs also this many, of the time for which writers were held as a share of the run,
/// of the rate as a share.
const AMPLIFICATION_WITHIN: f64 = 0.15;
const RUNS_WITHIN: f64 = 0.2;
const RUNS_APART: f64 = 1.5;
const HELD_WITHIN: f64 = 0.1;
const RATE_WITHIN: f64 = 0.05;

/// The steps of the search for a sustainable rate.
const STEPS: u32 = 9;

/// What the simulator says.
#[derive(Debug, Clone)]
pub enum Outlook {
    /// The run was replayed and continued.
    Played(Box<Prediction>),
    /// The simulator knows nothing, for this reason.
    Withheld(String),
}

/// The verdict of the measurement and of the simulator together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conclusion {
    /// Both halves hold.
    Sustainable,
    /// One of them does not.
    Unsustainable,
    /// The measurement holds, and the simulator knows nothing.
    Unknown,
}

/// The run replayed and continued.
#[derive(Debug, Clone)]
pub struct Prediction {
    /// The fitted machine and the workload.
    pub setup: SimulationSetup,
    /// The replay against the run.
    pub residual: Residual,
    /// The run continued, until a time at which it does not hold.
    pub horizons: Vec<Horizon>,
    /// The highest rate that holds for `sustained_seconds`, in writes per second.
    pub sustainable: f64,
    /// A day, or less if a day takes too long to simulate.
    pub sustained_seconds: f64,
    /// Parts of the design or the workload that the simulation left out.
    pub notes: Vec<String>,
}

/// Figures of the run and of its replay.
#[derive(Debug, Clone, Copy)]
pub struct Residual {
    /// Bytes written to tables per byte of user data, measured and replayed.
    pub write_amplification: (f64, f64),
    /// The mean number of runs.
    pub runs: (f64, f64),
    /// The share of the time for which writers were stopped or delayed.
    pub held: (f64, f64),
    /// Completed writes per second.
    pub rate: (f64, f64),
}

/// The run continued for some time.
#[derive(Debug, Clone)]
pub struct Horizon {
    /// The time in words.
    pub name: &'static str,
    /// Its length in seconds.
    pub seconds: f64,
    /// True if it meets the criteria of the verdict.
    pub holds: bool,
    /// The 99th percentile of the write latency, in seconds.
    pub p99: f64,
    /// The longest stall, in seconds.
    pub longest_stall: f64,
    /// The first stall that does not meet the criteria, or the first of all.
    pub first_stall: Option<StallPeriod>,
    /// The mean number of runs of each window, with the time of its end.
    pub runs: Vec<(f64, f64)>,
}

impl Residual {
    fn of(counted: &CountedRun, report: &TwoPhaseReport, replay: &SimulationOutcome) -> Self {
        let running = &report.running;
        let written = counted.in_running(|stats| stats.flush_bytes_written)
            + counted.in_running(|stats| stats.compaction_bytes_written);
        let user = counted.in_running(|stats| stats.user_bytes_written);
        let held = counted.in_running(|stats| stats.stalls.total_micros()) / 1e6;
        let seconds = running.seconds.max(1e-9);
        let replayed = replay.stalled_seconds(None)
            + replay.totals.delayed_seconds / f64::from(running.writers.max(1));
        Self {
            write_amplification: (written / user.max(1.0), replay.totals.write_amplification()),
            runs: (running.mean_components(0.0, 1.0).unwrap_or(0.0), replay.mean_runs()),
            held: (
                held / f64::from(running.writers.max(1)) / seconds,
                replayed / replay.seconds.max(1e-9),
            ),
            rate: (running.per_second(), replay.totals.writes / replay.seconds.max(1e-9)),
        }
    }

    /// Returns the figures that differ by more than is tolerated, in words.
    pub fn differences(&self) -> Vec<String> {
        let share = |(measured, replayed): (f64, f64)| (replayed / measured.max(1e-9) - 1.0).abs();
        let mut found = Vec::new();
        let mut say = |name: &str, (measured, replayed): (f64, f64)| {
            found.push(format!("{name} {measured:.2} measured, {replayed:.2} replayed"));
        };
        if share(self.write_amplification) > AMPLIFICATION_WITHIN {
            say("write amplification", self.write_amplification);
        }
        if share(self.runs) > RUNS_WITHIN && (self.runs.0 - self.runs.1).abs() > RUNS_APART {
            say("runs", self.runs);
        }
        if (self.held.0 - self.held.1).abs() > HELD_WITHIN {
            say("share of the time in which writers waited", self.held);
        }
        if share(self.rate) > RATE_WITHIN {
            say("writes/s", self.rate);
        }
        found
    }
}

impl Prediction {
    /// Returns true if the rate of the run holds for all simulated times.
    pub fn holds(&self) -> bool {
        self.horizons.iter().all(|horizon| horizon.holds)
    }

    /// Returns the first time that does not hold.
    pub fn failing(&self) -> Option<&Horizon> {
        self.horizons.iter().find(|horizon| !horizon.holds)
    }
}

impl Outlook {
    /// Replays a run and continues it.
    pub(super) fn of(
        plan: &StabilityPlan,
        design: &Design,
        report: &TwoPhaseReport,
        counted: &CountedRun,
    ) -> Self {
        let setup = match fitted(plan, design, report, counted) {
            Ok(setup) => setup,
            Err(reason) => return Self::Withheld(reason),
        };
        let replay = replayed(&setup, counted, report.running.seconds);
        let residual = Residual::of(counted, report, &replay);
        let differences = residual.differences();
        if !differences.is_empty() {
            let list = differences.join(", ");
            return Self::Withheld(format!("the simulator does not replay the run: {list}"));
        }
        let mut notes = unplayed(&setup);
        if plan.phases.readers > 0 {
            notes.push("readers share the processor and the device only as in the run".to_owned());
        }
        let played = |seconds: f64, factor: f64| {
            let mut setup = setup.clone();
            setup.workload.arrival = setup.workload.arrival.scaled(factor);
            setup.window_seconds = seconds / 240.0;
            Simulation::new(&setup, tree_like(&setup, &counted.shape)).run(seconds).0
        };
        let flushes = counted.in_running(|stats| stats.flushes) / report.running.seconds.max(1e-9);
        let is_whole = tree_like(&setup, &counted.shape).table_bytes().is_none();
        let flushes_max = if is_whole { FLUSHES_MAX_OF_WHOLE_RUNS } else { FLUSHES_MAX };
        let mut horizons = Vec::new();
        for (name, seconds) in HORIZONS {
            if flushes * seconds > flushes_max {
                notes.push(format!("{name} would take too long to simulate"));
                break;
            }
            let horizon = Horizon::of(name, &played(seconds, 1.0), &plan.criteria);
            let holds = horizon.holds;
            horizons.push(horizon);
            if !holds {
                break;
            }
        }
        if horizons.is_empty() {
            return Self::Withheld(
                "two hours of memtables this small take too long to simulate".to_owned(),
            );
        }
        let sustained_seconds = SUSTAINED.min(flushes_max * SEARCH_SHARE / flushes);
        let holds = |factor| meets(&played(sustained_seconds, factor), &plan.criteria);
        let rate = report.running.offered_per_second();
        let all_hold = horizons.iter().all(|horizon| horizon.holds);
        let (mut below, mut above) = if all_hold { (1.0, 2.0) } else { (0.0, 1.0) };
        for _ in 0..STEPS {
            let middle = f64::midpoint(below, above);
            if holds(middle) { below = middle } else { above = middle }
        }
        let sustainable = below * rate;
        Self::Played(Box::new(Prediction {
            setup,
            residual,
            horizons,
            sustainable,
            sustained_seconds,
            notes,
        }))
    }
}

/// Returns true if a simulation meets the criteria.
fn meets(outcome: &SimulationOutcome, criteria: &Criteria) -> bool {
    let rate = outcome.totals.writes / outcome.seconds.max(1e-9);
    outcome.stuck.is_none()
        && outcome.latencies.quantile(0.99) <= criteria.p99.as_secs_f64()
        && outcome.longest_stall() <= criteria.stall.as_secs_f64()
        && outcome.queued / rate.max(1e-9) <= criteria.backlog.as_secs_f64()
}

impl Horizon {
    fn of(name: &'static str, outcome: &SimulationOutcome, criteria: &Criteria) -> Self {
        let length = |stall: &&StallPeriod| stall.until - stall.from;
        let long = |stall: &&StallPeriod| length(stall) > criteria.stall.as_secs_f64();
        let mut stalls = outcome.stalls.iter();
        let first_stall = stalls.clone().find(long).or_else(|| stalls.next()).copied();
        let each = outcome.seconds / outcome.windows.len().max(1) as f64;
        let windows = outcome.windows.iter().enumerate();
        Self {
            name,
            seconds: outcome.seconds,
            holds: meets(outcome, criteria),
            p99: outcome.latencies.quantile(0.99),
            longest_stall: outcome.longest_stall(),
            first_stall,
            runs: windows.map(|(at, window)| ((at + 1) as f64 * each, window.runs)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_that_differs_is_no_basis() {
        let close = Residual {
            write_amplification: (4.0, 4.2),
            runs: (8.0, 8.5),
            held: (0.02, 0.0),
            rate: (1000.0, 1001.0),
        };
        assert_eq!(close.differences(), [""; 0]);
        let few = Residual { runs: (1.0, 2.0), ..close };
        assert_eq!(few.differences(), [""; 0]);
        let far = Residual { write_amplification: (4.0, 2.0), held: (0.5, 0.0), ..close };
        let found = far.differences();
        assert!(found.len() == 2 && found[0].contains("4.00 measured, 2.00"), "{found:?}");
    }
}
