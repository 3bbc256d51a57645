//! Stability on this engine, with files.
//!
//! Everything is smaller than in the paper by one factor, including the I/O budget of flushes and
//! merges, which is the only scarce resource. Therefore many databases run in parallel, each in its
//! own phase, without slowing each other down, and other load on the machine has little effect.
//!
//! | module | one line |
//! |---|---|
//! | [`sizes`] | sizes, times and designs |
//! | [`database`] | a database before, during and after its phase |
//! | [`stage`] | phases that run concurrently |
//! | [`simulator`] | the same sizes in the simulator |
//! | [`queries`] | queries of a reader next to the writers (Fig. 13, 14) |
//! | [`forces`] | syncs of tables while they are written, and queries |
//! | [`indexes`] | secondary indexes, of the extended version |
//! | [`contest`] | which of several candidates is best, by paired rounds |
//! | [`defaults`] | the scheduler and the limit of the default design |

mod contest;
mod database;
mod defaults;
mod forces;
mod indexes;
mod queries;
mod simulator;
mod sizes;
mod stage;

use anyhow::Result;
use sizes::{PAPER_MEMTABLES, StabilitySizes};
use stage::ParallelPlayer;
use terrane_lab::host::progress;
use terrane_lab::host::scratch::Scratch;

use super::figures;
use super::phase;
use super::plan::{PlanPart, play_parts};
use super::scale::StabilityScale;
use crate::experiment::{Experiment, ExperimentCost, ExperimentOptions};
use crate::results::{Metric, Results};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "stability",
    paper: "On Performance Stability in LSM-based Storage Systems (VLDB 2019)",
    about: "write stalls and merge schedulers: two-phase evaluation on files",
    cost: ExperimentCost { minutes: 17, disk_mib: 8500 },
    default_scale: DEFAULT_SCALE,
    scale_of: "the paper's phase of two hours; the document lists sizes and budget",
    figures: &["Fig. 1", "Fig. 6 to 18"],
    metrics: &[&phase::METRICS, &figures::METRICS, METRICS],
    timed: &[
        "rate",
        "p50",
        "p99",
        "p99_9",
        "processing_p99",
        "stopped",
        "stopped_by_runs",
        "longest_stall",
        "first_stall",
        "runs",
        "most_runs",
        "variation",
        "level_1_bytes",
        "upper_share",
        "tree_bytes",
        "query_rate",
        "query_p99",
        "longest",
        "limit_share",
        "early_rate",
        "slow_share",
        "collapses",
        "force_rate",
        "force_p99",
    ],
    claims: include_str!("../../../claims/stability.toml"),
    run,
};

/// The sizes of the constants in [`sizes`]: phases of four minutes instead of two hours.
const DEFAULT_SCALE: f64 = 1.0 / 30.0;

const METRICS: &[Metric] = &[
    Metric { name: "scale", about: "length of a phase as a share of the paper's" },
    Metric { name: "rounds", about: "rounds of the default design" },
    Metric { name: "budget", about: "bytes a second of flushes and merges" },
    Metric { name: "buffer_bytes", about: "bytes of a memtable" },
    Metric { name: "records", about: "records of a tree" },
    Metric { name: "seconds", about: "length of a phase" },
    Metric { name: "memtables", about: "memtables that the budget can write in a phase" },
    Metric { name: "paper_memtables", about: "the same, of the paper" },
    Metric {
        name: "speed_up",
        about: "how many times faster than in the paper a memtable is written",
    },
    Metric { name: "short", about: "latencies above this come from stalls, seconds" },
    Metric { name: "phases", about: "phases that ran" },
    Metric { name: "eager_cause", about: "the longest stall cause with eager indexes, as text" },
    Metric { name: "lazy_cause", about: "the longest stall cause with lazy indexes, as text" },
    Metric {
        name: "force_rate",
        about: "queries a second next to merges, by whether tables are synced as they are written",
    },
    Metric { name: "force_p99", about: "99th percentile of their latencies, seconds" },
    Metric { name: "default_p99", about: "p99 of the default design, seconds, by arrivals" },
    Metric { name: "default_p99_9", about: "p99.9 of the default design, seconds, by arrivals" },
    Metric {
        name: "default_longest",
        about: "longest latency of the default design, seconds, by arrivals",
    },
    Metric {
        name: "default_name",
        about: "scheduler, limit and violation of the default design, as text",
    },
    Metric { name: "default_rank", about: "rank of the default design in the contest for it" },
    Metric { name: "default_beats", about: "candidates that it beats" },
    Metric { name: "candidates", about: "candidates of the contest" },
    Metric { name: "winner_names", about: "the winners of the contest, as text" },
];

fn run(options: &ExperimentOptions, results: &mut Results) -> Result<()> {
    let scale = options.scale / DEFAULT_SCALE;
    let sizes = StabilitySizes { scale, rounds: options.rounds, seed: options.seed };
    let scratch = Scratch::temporary("terrane-claims-")?;
    let buffer_bytes = sizes.buffer_bytes() as f64;
    for (metric, value) in [
        ("scale", options.scale),
        ("rounds", sizes.rounds as f64),
        ("budget", sizes.budget() as f64),
        ("buffer_bytes", buffer_bytes),
        ("records", sizes.records() as f64),
        ("seconds", sizes.seconds()),
        ("memtables", sizes.seconds() * sizes.budget() as f64 / buffer_bytes),
        ("paper_memtables", PAPER_MEMTABLES),
        ("speed_up", sizes.speed_up()),
        ("short", sizes.short()),
    ] {
        results.record(metric, &[], value);
    }
    let parts = parts(&sizes)?;
    let spinner = progress::spinner("stability claims");
    let mut player = ParallelPlayer::new(&sizes, scratch.path(), &spinner);
    let phases = play_parts(options, &parts, &mut player, results)?;
    results.record("phases", &[], phases as f64);
    spinner.finish_and_clear();
    Ok(())
}

/// Returns the parts of the experiment: the figures, and parts without a figure in the paper.
fn parts(sizes: &StabilitySizes) -> Result<Vec<PlanPart<'_>>> {
    let mut parts = figures::parts(sizes);
    parts.push(PlanPart::new("Fig. 13, 14", queries::plan(sizes), queries::table));
    parts.push(PlanPart::new("", indexes::plan(sizes), indexes::record));
    parts.push(PlanPart::new("", forces::plan(sizes), |played, results| {
        forces::record(sizes, played, results)
    }));
    parts.push(PlanPart::new("", defaults::plan(sizes)?, |played, results| {
        defaults::record(sizes, played, results)
    }));
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::stability::phase::PhaseMeasurement;
    use crate::experiments::stability::plan::{PhasePlayer, ResolvedPhase, Stage};
    use crate::judge::{ClaimOutcome, ClaimVerdict};

    /// A player whose phases complete all writes immediately.
    struct Idle;

    impl PhasePlayer for Idle {
        fn play(&mut self, _: Stage, phases: &[ResolvedPhase]) -> Result<Vec<PhaseMeasurement>> {
            let measured = PhaseMeasurement {
                rate: 100.0,
                runs: 4.0,
                curve: vec![100.0; 10],
                window_seconds: 1.0,
                level_bytes: vec![1.0; 4],
                merges: vec![2, 1],
                main_cause: "memory".to_owned(),
                query_rate: Some(10.0),
                query_p50: Some(0.1),
                query_p99: Some(0.2),
                ..PhaseMeasurement::default()
            };
            phases
                .iter()
                .try_for_each(|phase| phase.design.parse::<terrane::Design>().map(drop))?;
            Ok(vec![measured; phases.len()])
        }
    }

    /// Plays everything without a database: every design is valid, all claims have their metrics, and
    /// every table has its rows.
    #[test]
    fn all_phases_are_recorded_and_every_claim_is_judged() {
        let sizes = StabilitySizes { scale: 0.004, rounds: 3, seed: 1 };
        let parts = parts(&sizes).unwrap();
        let mut results = Results::new("stability", EXPERIMENT.metrics);
        let options = ExperimentOptions::default();
        let phases = play_parts(&options, &parts, &mut Idle, &mut results).unwrap();
        assert!(phases > 200, "{phases}");
        results.record("rounds", &[], 3.0);
        for (metric, value) in [("seconds", 1.0), ("short", 1.0)] {
            results.record(metric, &[], value);
        }
        for verdict in EXPERIMENT.claims().unwrap().judge(&results) {
            let ClaimVerdict { says, outcome, measured, .. } = &verdict;
            assert!(*outcome != ClaimOutcome::NotMeasured, "{says}: {measured}");
        }
    }
}
