//! The measured run, replayed in the simulator and continued for hours and days.
//!
//! A measurement covers only what happened in it: merges of the last levels outlast most of
//! them. The simulator uses the engine's policy and the constants of this very run ([`fit`]), so it
//! can predict later merges and stalls. It first replays the run. If the replay differs from the
//! measurement by more than the stated limit, it makes no prediction.
//!
//! [`fit`]: super::fit

use terrane_sim::{
    Simulation, SimulationOutcome, SimulationSetup, StallPeriod, tree_like, unplayed,
};
use terrane_workload::stability::Criteria;

use super::counted::CountedRun;
use super::fit::{fitted, replayed};
use super::residual::Residual;

/// The simulated times in seconds, with their names.
const HORIZONS: [(&str, f64); 3] =
    [("2 hours", 7200.0), ("24 hours", 86_400.0), ("30 days", 30.0 * 86_400.0)];

/// The maximum time, in seconds, for which a sustainable rate must hold.
const SUSTAINED: f64 = HORIZONS[1].1;

/// The maximum number of memtables in one simulation, for designs that move single tables and for
/// designs that move whole runs; a simulated flush takes some 30 µs. Longer times are left out.
const FLUSHES_MAX: f64 = 1e5;
const FLUSHES_MAX_OF_WHOLE_RUNS: f64 = 2e5;

/// The share of this maximum that each step of the search may simulate.
const SEARCH_SHARE: f64 = 0.1;

/// The steps of the search for a sustainable rate.
const STEPS: u32 = 9;

/// The simulator's prediction.
#[derive(Debug, Clone)]
pub enum Outlook {
    /// The run was replayed and continued.
    Played(Box<Prediction>),
    /// The simulator makes no prediction, for this reason.
    Withheld(String),
}

/// The verdict of the measurement and of the simulator together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conclusion {
    /// Both hold.
    Sustainable,
    /// One of them does not hold.
    Unsustainable,
    /// The measurement holds, and the simulator makes no prediction.
    Unknown,
}

/// The run replayed and continued.
#[derive(Debug, Clone)]
pub struct Prediction {
    /// The fitted machine and the workload.
    pub setup: SimulationSetup,
    /// The replay against the run.
    pub residual: Residual,
    /// The run continued for each time, up to the first one for which it does not hold.
    pub horizons: Vec<Horizon>,
    /// The highest rate that holds for `sustained_seconds`, in writes per second.
    pub sustainable: f64,
    /// A day, or less if a day takes too long to simulate.
    pub sustained_seconds: f64,
    /// Parts of the design or the workload that the simulation left out.
    pub notes: Vec<String>,
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
    /// The 99th percentile of the write latency, in seconds; `None` if no write was completed.
    pub p99: Option<f64>,
    /// The longest stall, in seconds.
    pub longest_stall: f64,
    /// The first stall that does not meet the criteria, or the first of all.
    pub first_stall: Option<StallPeriod>,
    /// The mean number of runs of each window, with the time of its end.
    pub runs: Vec<(f64, f64)>,
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
    pub(super) fn of(run: &CountedRun, readers: u32, criteria: &Criteria) -> Self {
        let (setup, shape) = match fitted(run) {
            Ok(fitted) => fitted,
            Err(reason) => return Self::Withheld(reason),
        };
        let residual = Residual::of(run, &replayed(&setup, &shape, run.seconds));
        let differences = residual.differences();
        if !differences.is_empty() {
            let list = differences.join(", ");
            return Self::Withheld(format!("the simulator does not replay the run: {list}"));
        }
        let mut notes = unplayed(&setup);
        if readers > 0 {
            notes.push("readers share the processor and the device only as in the run".to_owned());
        }
        let played = |seconds: f64, factor: f64| {
            let mut setup = setup.clone();
            setup.workload.arrival = setup.workload.arrival.scaled(factor);
            setup.window_seconds = seconds / 240.0;
            Simulation::new(&setup, tree_like(&setup, &shape)).run(seconds).0
        };
        let flushes = run.running.flushes / run.seconds.max(1e-9);
        let is_whole = tree_like(&setup, &shape).table_bytes().is_none();
        let flushes_max = if is_whole { FLUSHES_MAX_OF_WHOLE_RUNS } else { FLUSHES_MAX };
        let mut horizons = Vec::new();
        for (name, seconds) in HORIZONS {
            if flushes * seconds > flushes_max {
                notes.push(format!("{name} would take too long to simulate"));
                break;
            }
            let horizon = Horizon::of(name, &played(seconds, 1.0), criteria);
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
        let holds = |factor| meets(&played(sustained_seconds, factor), criteria);
        let rate = setup.workload.arrival.mean().unwrap_or(0.0);
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
        && outcome.latencies.quantile(0.99).is_some_and(|p99| p99 <= criteria.p99.as_secs_f64())
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

    /// Returns the recorded runs with their names: the field `counted` of `--json`.
    fn recorded() -> Vec<(String, CountedRun)> {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/stability");
        let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = files.collect();
        files.sort();
        let name =
            |path: &std::path::Path| path.file_stem().unwrap().to_string_lossy().into_owned();
        let read = |path: &std::path::Path| {
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
        };
        files.iter().map(|path| (name(path), read(path))).collect()
    }

    /// Returns the differences of the closest replay.
    fn differences(run: &CountedRun) -> Vec<String> {
        let (setup, shape) = fitted(run).unwrap();
        Residual::of(run, &replayed(&setup, &shape, run.seconds)).differences()
    }

    #[test]
    fn recorded_runs_are_replayed_within_the_tolerances() {
        let runs = recorded();
        assert!(runs.len() >= 5);
        for (name, run) in runs {
            assert_eq!(differences(&run), [""; 0], "{name}");
        }
    }

    #[test]
    fn a_run_that_wrote_more_or_stalled_is_not_replayed_by_any_bandwidth() {
        for (name, run) in recorded() {
            let wrote_more =
                CountedRun { write_amplification: run.write_amplification * 1.5, ..run.clone() };
            assert!(!differences(&wrote_more).is_empty(), "{name}");
            let mut stalled = run.clone();
            stalled.running.held_seconds += run.seconds * 0.3;
            assert!(!differences(&stalled).is_empty(), "{name}");
        }
    }

    #[test]
    fn a_run_without_merges_or_flushes_is_no_basis() {
        let (_, run) = recorded().remove(0);
        let of = |run: &CountedRun| match Outlook::of(run, 0, &Criteria::default()) {
            Outlook::Withheld(reason) => reason,
            Outlook::Played(_) => String::new(),
        };
        let mut idle = run.clone();
        idle.all.merges = 0.0;
        assert!(of(&idle).contains("nothing was merged"), "{}", of(&idle));
        idle = run;
        idle.running.flushes = 1.0;
        assert!(of(&idle).contains("fewer than two memtables"), "{}", of(&idle));
    }
}
