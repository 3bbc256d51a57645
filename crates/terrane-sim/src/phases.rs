//! The two-phase test: measure the maximum rate, then latencies at a rate just below it
//! (performance-stability §3.2).

use terrane_policy::{Intake, Scheduler};

use crate::latency::SlowWrites;
use crate::outcome::SimulationOutcome;
use crate::simulation::{Simulation, SimulationSetup};
use crate::tree::SimulatedTree;
use crate::workload::Arrival;

/// The maximum p99 latency at a sustainable rate, in seconds. Writes that wait for merges far
/// exceed it, and all other writes stay far below it.
pub const P99_MAX_SECONDS: f64 = 1.0;

/// The minimum fraction of arrived writes that a sustainable rate completes.
pub const MADE_MIN: f64 = 0.995;

/// The results of both phases.
#[derive(Debug, Clone)]
pub struct TwoPhases {
    /// The testing phase: a closed loop, the fair scheduler, exact merges at level 0.
    pub testing: SimulationOutcome,
    /// The rate of the testing phase after its warm-up, in writes per second.
    pub greatest_rate: f64,
    /// The running phase: arrivals at a fraction of that rate, and the design unchanged.
    pub running: SimulationOutcome,
    /// The arrival rate of the running phase, in writes per second.
    pub arrival_rate: f64,
    /// Whether the arrival rate is sustainable.
    pub verdict: RateVerdict,
}

/// Whether an arrival rate is sustainable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateVerdict {
    /// p99 is at most [`P99_MAX_SECONDS`], and at least [`MADE_MIN`] of the writes were completed.
    Sustainable,
    /// One of these bounds is exceeded, or the simulation ended early.
    Unsustainable,
}

impl RateVerdict {
    /// Returns the verdict on a running phase.
    pub fn of(running: &SimulationOutcome) -> Self {
        let made = running.totals.writes / (running.totals.writes + running.queued).max(1.0);
        // Without a completed write there is no latency, and too few writes are completed.
        let p99 = running.latencies.quantile(0.99);
        let is_fast = p99.is_some_and(|p99| p99 <= P99_MAX_SECONDS);
        if is_fast && made >= MADE_MIN && running.stuck.is_none() {
            Self::Sustainable
        } else {
            Self::Unsustainable
        }
    }
}

/// Runs both phases on a tree, each for `seconds`, of which the first `warm_up` seconds of the
/// testing phase do not count.
pub fn two_phases(
    setup: &SimulationSetup,
    tree: &SimulatedTree,
    (seconds, warm_up): (f64, f64),
    utilization: f64,
) -> TwoPhases {
    let testing = greatest(setup, tree, seconds);
    let greatest_rate = testing.rate_from(warm_up);
    let arrival_rate = utilization * greatest_rate;
    let mut setup = setup.clone();
    setup.workload.arrival = Arrival::Constant(arrival_rate.max(1e-9));
    let running = Simulation::new(&setup, tree.clone()).run(seconds).0;
    let verdict = RateVerdict::of(&running);
    TwoPhases { testing, greatest_rate, running, arrival_rate, verdict }
}

/// Runs the testing phase.
pub fn greatest(setup: &SimulationSetup, tree: &SimulatedTree, seconds: f64) -> SimulationOutcome {
    let mut setup = setup.clone();
    setup.workload.arrival = Arrival::Closed;
    setup.design.scheduler = Scheduler::Fair;
    setup.design.strategy.intake = Intake::Exact;
    setup.design.constraint.max_rate = None;
    Simulation::new(&setup, tree.clone()).run(seconds).0
}

/// The number of times at which a run checks whether its verdicts are settled.
const CHECKS: u32 = 64;

/// Runs the running phase once, at the arrival rate of `setup`, and returns the verdicts on phases of
/// these lengths, in seconds, that start together.
///
/// The run ends early once the number of slow writes exceeds what the quantile tolerates for all
/// arrivals of the longest phase, because no unfinished phase can be sustainable then.
pub fn verdicts(setup: &SimulationSetup, tree: SimulatedTree, phases: &[f64]) -> Vec<RateVerdict> {
    let longest = phases.iter().copied().fold(0.0, f64::max);
    let rate = setup.workload.arrival.mean().unwrap_or(f64::INFINITY);
    let slow_max = (1.0 - 0.99) * rate * longest;
    let mut times: Vec<f64> =
        (1..=CHECKS).map(|at| longest * f64::from(at) / f64::from(CHECKS)).collect();
    times.extend(phases);
    times.sort_by(f64::total_cmp);
    let mut verdicts = vec![RateVerdict::Unsustainable; phases.len()];
    let mut simulation = Simulation::new(setup, tree);
    let mut slow = SlowWrites::default();
    for time in times {
        let outcome = simulation.run_until(time);
        for (verdict, _) in verdicts.iter_mut().zip(phases).filter(|(_, end)| **end == time) {
            *verdict = RateVerdict::of(outcome);
        }
        let is_settled = slow.update(&outcome.latencies, P99_MAX_SECONDS) > slow_max;
        if is_settled || outcome.stuck.is_some() {
            break;
        }
    }
    verdicts
}
