//! Compares the scheduler and the limit of the default design with all others.
//!
//! All candidates run concurrently under the same arrivals, in several rounds. A candidate beats
//! another if each of its rounds is better than every round of the other by more than a tenth;
//! smaller differences are noise.

use anyhow::{Context, Result};
use terrane::Design;

use super::sizes::StabilitySizes;
use crate::experiments::stability::phase::PhaseMeasurement;
use crate::experiments::stability::plan::{
    PhasePlan, PlannedArrival, PlayedPhases, Stage, UTILIZATION,
};
use crate::human;
use crate::results::Results;

/// The length of a round as a share of a full phase.
const LENGTH: f64 = 0.3;
/// The paper's bursts (§5.2.3), in four cycles: each pair is a share of the maximum rate and a
/// share of a round.
const BURST: [(f64, f64); 2] = [(0.43, 5.0 / 24.0), (1.7, 1.0 / 24.0)];

const SCHEDULERS: [&str; 4] = ["single", "fair", "greedy", "gear"];
const LIMITS: [&str; 3] = ["level0", "local(2x)", "global(2x)"];
const VIOLATIONS: [&str; 2] = ["slow-down", "stop"];

/// The subject of the testing phase.
const SUBJECT: &str = "default";
/// Phases of a round by their arrivals.
const ARRIVALS: [&str; 2] = ["constant", "bursts"];

/// Smaller differences are noise: a share, and seconds of a latency.
const NOISE_SHARE: f64 = 0.1;
const NOISE_SECONDS: f64 = 0.02;

/// Returns the default design with the sizes of the other designs: a table is half a memtable, and
/// level 1 holds four memtables.
fn design(sizes: &StabilitySizes) -> String {
    let buffer = sizes.buffer_bytes();
    format!("balanced; base={}; buffer={buffer}; table={}", buffer * 4, buffer / 2)
}

/// A scheduler, a limit, and what happens to writers beyond it.
struct Candidate {
    name: String,
    design: String,
    is_default: bool,
}

fn candidates(sizes: &StabilitySizes) -> Result<Vec<Candidate>> {
    let base = design(sizes);
    let default: Design = base.parse()?;
    let mut all = Vec::new();
    for scheduler in SCHEDULERS {
        for limit in LIMITS {
            for violation in VIOLATIONS {
                let design =
                    format!("{base}; scheduler={scheduler}; limit={limit}; violation={violation}");
                let is_default = design.parse::<Design>()? == default;
                let name = format!("{scheduler}, {limit}, {violation}");
                all.push(Candidate { name, design, is_default });
            }
        }
    }
    Ok(all)
}

fn phase_name(arrivals: &str, round: usize) -> String {
    format!("{arrivals} {round}")
}

/// Returns the testing phase of the default design, and the rounds of all candidates.
pub(super) fn plan(sizes: &StabilitySizes) -> Result<Vec<PhasePlan>> {
    let testing = format!("{}; scheduler=fair; intake=exact", design(sizes));
    let mut plan = vec![PhasePlan::testing(SUBJECT, testing)];
    let [(low, low_length), (high, high_length)] = BURST;
    let of = || SUBJECT.to_owned();
    let arrivals = [
        PlannedArrival::Share { of: of(), share: UTILIZATION },
        PlannedArrival::Burst {
            of: of(),
            low,
            low_length: low_length * LENGTH,
            high,
            high_length: high_length * LENGTH,
        },
    ];
    for round in 0..sizes.rounds {
        for candidate in candidates(sizes)? {
            for (name, arrival) in ARRIVALS.iter().zip(&arrivals) {
                plan.push(PhasePlan {
                    phase: phase_name(name, round),
                    stage: Stage::Round(round),
                    arrival: arrival.clone(),
                    length: LENGTH,
                    ..PhasePlan::running(&candidate.name, &candidate.design, SUBJECT)
                });
            }
        }
    }
    Ok(plan)
}

/// A candidate with the measurements of its rounds, by [`ARRIVALS`].
struct PlayedCandidate<'a> {
    candidate: Candidate,
    rounds: [Vec<&'a PhaseMeasurement>; 2],
}

/// A measurement of a round; lower is better.
type Metric = fn(&PhaseMeasurement) -> f64;

/// Returns true if `one` is better in every round, by more than noise.
fn beats(
    one: &[&PhaseMeasurement],
    other: &[&PhaseMeasurement],
    metric: Metric,
    least: f64,
) -> bool {
    let worst = one.iter().copied().map(metric).fold(f64::NEG_INFINITY, f64::max);
    let best = other.iter().copied().map(metric).fold(f64::INFINITY, f64::min);
    !one.is_empty() && worst < best - (best.abs() * NOISE_SHARE).max(least)
}

/// Latencies and the slowest second, and the costs of improving them, each with its noise.
const GOALS: [(Metric, f64); 3] = [
    (|measured| measured.p99, NOISE_SECONDS),
    (|measured| measured.p99_9, NOISE_SECONDS),
    (|measured| -measured.slowest_second, 0.0),
];
const COSTS: [(Metric, f64); 2] =
    [(|measured| measured.write_amplification, 0.0), (|measured| measured.runs, 0.1)];

/// Returns true if `one` is better in a goal, and worse in no goal and no cost.
fn wins(one: &PlayedCandidate<'_>, other: &PlayedCandidate<'_>) -> bool {
    let any =
        |one: &PlayedCandidate<'_>, other: &PlayedCandidate<'_>, metrics: &[(Metric, f64)]| {
            let pairs = one.rounds.iter().zip(&other.rounds);
            pairs.into_iter().any(|(one, other)| {
                metrics.iter().any(|(metric, least)| beats(one, other, *metric, *least))
            })
        };
    any(one, other, &GOALS) && !any(other, one, &GOALS) && !any(other, one, &COSTS)
}

fn median(rounds: &[&PhaseMeasurement], metric: Metric) -> f64 {
    let mut values: Vec<f64> = rounds.iter().copied().map(metric).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Records the default design and the candidates that beat it, and adds the table of all.
pub(super) fn record(
    sizes: &StabilitySizes,
    played: &PlayedPhases,
    results: &mut Results,
) -> Result<()> {
    let mut all = Vec::new();
    for candidate in candidates(sizes)? {
        let of = |arrivals: &str| -> Result<Vec<_>> {
            let phase = |round| played.get(&candidate.name, &phase_name(arrivals, round));
            (0..sizes.rounds).map(phase).collect()
        };
        let rounds = [of(ARRIVALS[0])?, of(ARRIVALS[1])?];
        all.push(PlayedCandidate { candidate, rounds });
    }
    let default = all.iter().find(|one| one.candidate.is_default);
    let default = default.context("the default design is not among the candidates")?;
    let winners: Vec<&str> = all
        .iter()
        .filter(|one| wins(one, default))
        .map(|one| one.candidate.name.as_str())
        .collect();
    results.record("winners", &[], winners.len() as f64);
    let names = if winners.is_empty() { "none".to_owned() } else { winners.join(", ") };
    results.record_text("winner_names", names);
    results.record_text("default_name", default.candidate.name.as_str());
    for (arrivals, rounds) in ARRIVALS.iter().zip(&default.rounds) {
        results.record("default_p99", &[arrivals], median(rounds, |one| one.p99));
        results.record("default_p99_9", &[arrivals], median(rounds, |one| one.p99_9));
        results.record("default_slowest", &[arrivals], median(rounds, |one| one.slowest_second));
    }
    let headers = [
        "scheduler, limit, violation",
        "p99",
        "p99.9",
        "slowest second",
        "p99, bursts",
        "p99.9, bursts",
        "slowest second, bursts",
        "write amp",
        "runs",
    ];
    let title = "The default design with other schedulers and limits, at 95 % and in bursts";
    results.table(title, &headers, all.iter().map(row).collect());
    Ok(())
}

fn row(one: &PlayedCandidate<'_>) -> Vec<String> {
    let [constant, bursts] = &one.rounds;
    let time = |rounds: &[&PhaseMeasurement], metric| human::seconds(median(rounds, metric));
    let share = |rounds: &[&PhaseMeasurement]| {
        format!("{:.0} %", median(rounds, |one| one.slowest_second) * 100.0)
    };
    let mark = if one.candidate.is_default { " (default)" } else { "" };
    vec![
        format!("{}{mark}", one.candidate.name),
        time(constant, |one| one.p99),
        time(constant, |one| one.p99_9),
        share(constant),
        time(bursts, |one| one.p99),
        time(bursts, |one| one.p99_9),
        share(bursts),
        human::number(median(constant, |one| one.write_amplification)),
        format!("{:.1}", median(constant, |one| one.runs)),
    ]
}
