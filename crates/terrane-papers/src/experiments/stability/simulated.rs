//! Stability at the paper's scale, in virtual time.

mod ablations;
mod sizes;

use std::collections::BTreeMap;

use anyhow::Result;
use terrane_policy::share_of_limit;
use terrane_sim::{Arrival, Latencies, Simulation, SimulationOutcome, Skew};

use super::figures;
use super::phase::{self, PhaseMeasurement};
use super::plan::{Arrivals, PhasePlayer, ResolvedPhase, Stage, play_parts};
use super::scale::StabilityScale;
use crate::experiment::{Experiment, ExperimentCost, ExperimentOptions};
use crate::results::{Metric, Results};
use sizes::SimulatedSizes;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "stability-simulated",
    paper: "On Performance Stability in LSM-based Storage Systems (VLDB 2019)",
    about: "write stalls and merge schedulers at the paper's sizes, in the simulator",
    cost: ExperimentCost { minutes: 1, disk_mib: 0 },
    default_scale: 1.0,
    scale_of: "the paper's sizes and times; --hours and --records change them",
    figures: &["Fig. 1", "Fig. 6 to 12", "Fig. 15 to 18"],
    metrics: &[&phase::METRICS, &figures::METRICS, METRICS],
    timed: &[],
    claims: include_str!("../../../claims/stability-simulated.toml"),
    run,
};

const METRICS: &[Metric] = &[
    Metric { name: "hours", about: "length of a phase in virtual time" },
    Metric { name: "records", about: "records of the tree" },
];

fn run(options: &ExperimentOptions, results: &mut Results) -> Result<()> {
    let sizes = SimulatedSizes { hours: options.phase_hours, records: options.records as f64 };
    results.record("hours", &[], sizes.hours);
    results.record("records", &[], sizes.records);
    let mut parts = figures::parts(&sizes);
    parts.extend(ablations::parts(&sizes));
    play_parts(options, &parts, &mut Player { sizes: &sizes }, results)?;
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
                let (outcome, tree) = Simulation::new(&setup, tree).run(seconds);
                let warm_up = if phase.has_warm_up { self.sizes.warm_up() } else { 0.0 };
                // The limit depends on the number of levels only, which a phase does not change.
                let now = share_of_limit(tree.shape(), &setup.design);
                let runs = tree.shape().run_count().max(1) as f64;
                let limit_share = outcome.totals.most_runs as f64 * now / runs;
                Ok(PhaseMeasurement { limit_share, ..measurement(&outcome, warm_up) })
            })
            .collect()
    }
}

/// Returns a quantile; NaN, which is not recorded, if no write was completed.
fn quantile(latencies: &Latencies, part: f64) -> f64 {
    latencies.quantile(part).unwrap_or(f64::NAN)
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
        p50: quantile(&outcome.latencies, 0.5),
        p99: quantile(&outcome.latencies, 0.99),
        p99_9: quantile(&outcome.latencies, 0.999),
        longest: quantile(&outcome.latencies, 1.0),
        processing_p99: quantile(&outcome.processing, 0.99),
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
