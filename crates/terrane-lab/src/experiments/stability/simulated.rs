//! Stability at the paper's scale, in virtual time.

mod sizes;

use std::collections::BTreeMap;

use anyhow::Result;
use terrane_sim::{Arrival, Simulation, SimulationOutcome, Skew};

use super::figures;
use super::phase::{self, PhaseMeasurement};
use super::plan::{Arrivals, PhasePlan, PhasePlayer, PlayedPhases, ResolvedPhase, Stage, play};
use super::scale::StabilityScale;
use crate::experiment::{Experiment, ExperimentCost, ExperimentOptions};
use crate::results::{Metric, Results};
use figures::POLICIES;
use sizes::SimulatedSizes;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "stability-simulated",
    paper: "On Performance Stability in LSM-based Storage Systems (VLDB 2019)",
    about: "write stalls and merge schedulers at the paper's sizes, in the simulator",
    cost: ExperimentCost { minutes: 1, disk_mib: 0 },
    default_scale: 1.0,
    scale_of: "the paper's sizes and times; --hours and --records change them",
    figures: &["Fig. 1", "Fig. 6 to 12", "Fig. 13, 14", "Fig. 15 to 18"],
    metrics: &[&phase::METRICS, &figures::METRICS, METRICS],
    timed: &[],
    claims: include_str!("../../../claims/stability-simulated.toml"),
    run,
};

const METRICS: &[Metric] = &[
    Metric { name: "hours", about: "length of a phase in virtual time" },
    Metric { name: "records", about: "records of the tree" },
];

/// A filter passes one missing key of a hundred (§3.1).
const FALSE_POSITIVES: f64 = 0.01;

fn run(options: &ExperimentOptions, results: &mut Results) -> Result<()> {
    let sizes = SimulatedSizes { hours: options.phase_hours, records: options.records as f64 };
    results.record("hours", &[], sizes.hours);
    results.record("records", &[], sizes.records);
    let mut plan = figures::plan(&sizes);
    plan.extend(six_runs(&sizes));
    let played = play(&plan, &mut Player { sizes: &sizes })?;
    figures::record(&sizes, &played, results)?;
    let rows = ["fair", "greedy"]
        .map(|scheduler| (scheduler.to_owned(), format!("leveling six {scheduler}"), "running"));
    played.table("Fig. 9: the same with six runs at most", "", &rows, results)?;
    queries_table(&played, results)
}

/// Returns phases with the paper's limit of twice the number of levels, not counting flushed runs
/// as a level (§5.1.1).
fn six_runs(sizes: &SimulatedSizes) -> Vec<PhasePlan> {
    let [_, leveling] = figures::full_merges(sizes);
    let design = |scheduler| format!("{leveling}; limit=global(6); scheduler={scheduler}");
    let mut plan = vec![PhasePlan::testing("leveling six", design("fair"))];
    plan.extend(["fair", "greedy"].map(|scheduler| {
        PhasePlan::running(format!("leveling six {scheduler}"), design(scheduler), "leveling six")
    }));
    plan
}

/// Adds the table of Fig. 13 and 14: what queries read, computed from the mean shape of the tree. A
/// point lookup reads one block, plus the blocks that filters fail to exclude; a short scan reads
/// one block for each run; a long scan reads all tables.
fn queries_table(played: &PlayedPhases, results: &mut Results) -> Result<()> {
    let mut rows = Vec::new();
    for policy in POLICIES {
        let costs = |scheduler: &str| -> Result<[f64; 3]> {
            let PhaseMeasurement { runs, tree_bytes, .. } =
                *played.get(&format!("{policy} {scheduler}"), "running")?;
            Ok([1.0 + FALSE_POSITIVES * (runs - 1.0), runs, tree_bytes])
        };
        let (fair, greedy) = (costs("fair")?, costs("greedy")?);
        let gains = [0, 1, 2].map(|kind| format!("{:.3}×", fair[kind] / greedy[kind]));
        rows.push(std::iter::once(policy.to_owned()).chain(gains).collect());
    }
    let title = "Fig. 13, 14: queries under greedy over those under fair, by what they read";
    results.table(title, &["", "point", "short scan", "long scan"], rows);
    Ok(())
}

/// Runs phases in the simulator, one after the other.
struct Player<'a> {
    sizes: &'a SimulatedSizes,
}

impl PhasePlayer for Player<'_> {
    fn play(&mut self, _: Stage, phases: &[ResolvedPhase]) -> Result<Vec<PhaseMeasurement>> {
        let mut trees = BTreeMap::new();
        phases
            .iter()
            .map(|phase| {
                let mut setup = self.sizes.setup(&phase.design)?;
                if phase.is_skewed {
                    setup.workload.skew = Skew::Zipf(0.99);
                }
                setup.workload.writers = phase.writers;
                let key = (phase.design.clone(), phase.is_skewed);
                let tree = trees.entry(key).or_insert_with(|| self.sizes.loaded(&setup)).clone();
                let seconds = self.sizes.seconds() * phase.length;
                setup.workload.arrival = match phase.arrivals {
                    Arrivals::Closed => Arrival::Closed,
                    Arrivals::Constant(rate) => Arrival::Constant(rate),
                    Arrivals::Burst { low, low_length, high, high_length } => Arrival::Burst {
                        low,
                        low_seconds: low_length * self.sizes.seconds(),
                        high,
                        high_seconds: high_length * self.sizes.seconds(),
                    },
                };
                let outcome = Simulation::new(&setup, tree).run(seconds).0;
                let warm_up = if phase.has_warm_up { self.sizes.warm_up() } else { 0.0 };
                Ok(measurement(&outcome, warm_up))
            })
            .collect()
    }
}

fn measurement(outcome: &SimulationOutcome, warm_up: f64) -> PhaseMeasurement {
    let windows = &outcome.windows;
    let window_seconds = outcome.seconds / windows.len().max(1) as f64;
    let curve: Vec<f64> = windows.iter().map(|window| window.rate).collect();
    let half = &windows[windows.len() / 2..];
    let levels = half.iter().map(|window| window.level_bytes.len()).max().unwrap_or(0);
    let level_bytes = (0..levels).map(|level| {
        let bytes = half.iter().map(|window| window.level_bytes.get(level).copied().unwrap_or(0));
        bytes.sum::<u64>() as f64 / half.len().max(1) as f64
    });
    let bytes: u64 = windows.iter().flat_map(|window| &window.level_bytes).sum();
    let stalls = &outcome.stalls;
    PhaseMeasurement {
        rate: outcome.rate_from(warm_up),
        p50: outcome.latencies.quantile(0.5),
        p99: outcome.latencies.quantile(0.99),
        p99_9: outcome.latencies.quantile(0.999),
        processing_p99: outcome.processing.quantile(0.99),
        stopped: outcome.stalled_seconds(None),
        stopped_by_runs: outcome.stalled_seconds(None),
        longest_stall: outcome.longest_stall(),
        first_stall: stalls.iter().find(|one| one.until - one.from > 1.0).map(|one| one.from),
        runs: outcome.mean_runs(),
        most_runs: outcome.totals.most_runs as u64,
        variation: PhaseMeasurement::variation_of(&curve, window_seconds, warm_up),
        curve,
        window_seconds,
        level_bytes: level_bytes.collect(),
        tree_bytes: bytes as f64 / windows.len().max(1) as f64,
        ..PhaseMeasurement::default()
    }
}
