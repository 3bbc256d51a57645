//! The two phases: the greatest rate, and what latencies are like just below it
//! (performance-stability §3.2).

use terrane_policy::{Intake, Scheduler};

use crate::outcome::Outcome;
use crate::simulation::{Setup, Simulation};
use crate::tree::Tree;
use crate::workload::Arrival;

/// The longest p99 of a rate that can be sustained, in seconds: writes that wait for merges wait
/// far longer, others far shorter.
pub const P99_MAX_SECONDS: f64 = 1.0;

/// The part of what was offered that has to be made by the end.
pub const MADE_MIN: f64 = 0.995;

/// Both phases.
#[derive(Debug, Clone)]
pub struct TwoPhases {
    /// Writers that do not wait, the fair scheduler, exact merges at level 0.
    pub testing: Outcome,
    /// Writes a second in that phase, once it has warmed up.
    pub greatest_rate: f64,
    /// Writes at a part of that rate, and the design as it is.
    pub running: Outcome,
    /// Writes a second that came.
    pub arrival_rate: f64,
    /// Whether that can be sustained.
    pub verdict: Verdict,
}

/// Whether a rate can be sustained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Yes: p99 is at most [`P99_MAX_SECONDS`], and all but a few of the writes were made.
    Sustainable,
    /// No.
    Unsustainable,
}

impl Verdict {
    /// The verdict on a running phase.
    pub fn of(running: &Outcome) -> Self {
        let made = running.totals.writes / (running.totals.writes + running.queued).max(1.0);
        let is_fast = running.latencies.quantile(0.99) <= P99_MAX_SECONDS;
        if is_fast && made >= MADE_MIN && running.stuck.is_none() {
            Self::Sustainable
        } else {
            Self::Unsustainable
        }
    }
}

/// Both phases on a tree, each as long as given, in seconds.
pub fn two_phases(
    setup: &Setup,
    tree: &Tree,
    (seconds, warm_up): (f64, f64),
    utilization: f64,
) -> TwoPhases {
    let testing = greatest(setup, tree, seconds);
    let greatest_rate = testing.rate_from(warm_up);
    let arrival_rate = utilization * greatest_rate;
    let mut setup = setup.clone();
    setup.workload.arrival = Arrival::Constant(arrival_rate.max(1e-9));
    let running = Simulation::new(&setup, tree.clone()).run(seconds).0;
    let verdict = Verdict::of(&running);
    TwoPhases { testing, greatest_rate, running, arrival_rate, verdict }
}

/// The testing phase.
pub fn greatest(setup: &Setup, tree: &Tree, seconds: f64) -> Outcome {
    let mut setup = setup.clone();
    setup.workload.arrival = Arrival::Closed;
    setup.design.scheduler = Scheduler::Fair;
    setup.design.strategy.intake = Intake::Exact;
    setup.design.constraint.max_rate = None;
    Simulation::new(&setup, tree.clone()).run(seconds).0
}
