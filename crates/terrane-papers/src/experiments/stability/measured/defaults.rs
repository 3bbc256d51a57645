//! A contest for the scheduler, the limit and the violation of the default design.
//!
//! All candidates run concurrently under the same arrivals, in several rounds; see
//! [`super::contest`] for how the winner is found.

use anyhow::{Context, Result};
use terrane::Design;
use terrane_lab::output::human;

use super::contest::{Contestant, Standing, standings};
use super::sizes::StabilitySizes;
use crate::experiments::stability::phase::PhaseMeasurement;
use crate::experiments::stability::plan::{
    PhasePlan, PlannedArrival, PlayedPhases, Stage, UTILIZATION,
};
use crate::results::Results;

/// The length of a round as a share of a full phase.
const LENGTH: f64 = 0.3;
/// The paper's bursts (§5.2.3), in four cycles: each pair is a share of the maximum rate and a
/// share of a round.
const BURST: [(f64, f64); 2] = [(0.43, 5.0 / 24.0), (1.7, 1.0 / 24.0)];

const SCHEDULERS: [&str; 4] = ["single", "fair", "greedy", "gear"];
const LIMITS: [&str; 3] = ["level0", "local(2x)", "global(2x)"];
const VIOLATIONS: [&str; 3] = ["slow-down", "spread", "stop"];

/// The maximum number of winners to name.
const NAMES_MAX: usize = 4;

/// The subject of the testing phase.
const SUBJECT: &str = "default";
/// Phases of a round by their arrivals.
const ARRIVALS: [&str; 2] = ["constant", "bursts"];

/// Returns the default design with the sizes of the other designs: a table is half a memtable, and
/// level 1 holds four memtables.
fn design(sizes: &StabilitySizes) -> String {
    let buffer = sizes.buffer_bytes();
    format!("balanced; base={}; buffer={buffer}; table={}", buffer * 4, buffer / 2)
}

/// A scheduler, a limit, and the effect on writers beyond the limit.
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

/// The criteria: tail latencies, the write rate, the runs that reads search, and the cost of writes.
const METRICS: [Metric; 6] = [
    |measured| measured.p99,
    |measured| measured.p99_9,
    |measured| measured.longest,
    |measured| -measured.rate,
    |measured| measured.runs,
    |measured| measured.write_amplification,
];

impl PlayedCandidate<'_> {
    fn contestant(&self) -> Contestant {
        let of = |metric: &Metric| self.rounds.iter().flatten().map(|one| metric(one)).collect();
        let observations = METRICS.iter().map(of).collect();
        Contestant { name: self.candidate.name.clone(), observations }
    }
}

fn median(rounds: &[&PhaseMeasurement], metric: Metric) -> f64 {
    let mut values: Vec<f64> = rounds.iter().copied().map(metric).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Records the winner and the rank of the default design, and adds the table of all candidates.
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
    let contestants: Vec<Contestant> = all.iter().map(PlayedCandidate::contestant).collect();
    let standings = standings(&contestants);
    let default = all.iter().position(|one| one.candidate.is_default);
    let default = default.context("the default design is not among the candidates")?;
    let best = standings.iter().map(Standing::score).max().unwrap_or(0);
    let own = standings[default].score();
    let is_best = |standing: &Standing| standing.score() == best;
    let winners = contestants.iter().zip(&standings).filter(|(_, standing)| is_best(standing));
    let names: Vec<&str> = winners.map(|(one, _)| one.name.as_str()).collect();
    let rank = 1 + standings.iter().filter(|standing| standing.score() > own).count();
    results.record("default_rank", &[], rank as f64);
    results.record("candidates", &[], all.len() as f64);
    let winners = if names.len() > NAMES_MAX {
        format!("{} candidates that do not differ", names.len())
    } else {
        names.join("; ")
    };
    results.record_text("winner_names", winners);
    results.record("default_beats", &[], standings[default].beats as f64);
    results.record_text("default_name", all[default].candidate.name.as_str());
    for (arrivals, rounds) in ARRIVALS.iter().zip(&all[default].rounds) {
        results.record("default_p99", &[arrivals], median(rounds, |one| one.p99));
        results.record("default_p99_9", &[arrivals], median(rounds, |one| one.p99_9));
        results.record("default_longest", &[arrivals], median(rounds, |one| one.longest));
    }
    let headers = [
        "scheduler, limit, violation",
        "beats, beaten by",
        "p99",
        "p99.9",
        "max",
        "p99, bursts",
        "p99.9, bursts",
        "max, bursts",
        "writes/s",
        "write amp",
        "runs",
    ];
    let title = "The contest for the default design, at 95 % and in bursts";
    let mut rows: Vec<(i64, Vec<String>)> = all
        .iter()
        .zip(&standings)
        .map(|(one, standing)| (-standing.score(), row(one, standing)))
        .collect();
    rows.sort_by_key(|(score, _)| *score);
    results.table(title, &headers, rows.into_iter().map(|(_, row)| row).collect());
    Ok(())
}

fn row(one: &PlayedCandidate<'_>, standing: &Standing) -> Vec<String> {
    let [constant, bursts] = &one.rounds;
    let time = |rounds: &[&PhaseMeasurement], metric| human::seconds(median(rounds, metric));
    let mark = if one.candidate.is_default { " (default)" } else { "" };
    vec![
        format!("{}{mark}", one.candidate.name),
        format!("{}, {}", standing.beats, standing.beaten_by),
        time(constant, |one| one.p99),
        time(constant, |one| one.p99_9),
        time(constant, |one| one.longest),
        time(bursts, |one| one.p99),
        time(bursts, |one| one.p99_9),
        time(bursts, |one| one.longest),
        human::number(median(constant, |one| one.rate)),
        human::number(median(constant, |one| one.write_amplification)),
        format!("{:.1}", median(constant, |one| one.runs)),
    ]
}
