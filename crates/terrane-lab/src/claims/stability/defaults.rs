//! The scheduler and the limit of the default design, held against all others.
//!
//! All play the same arrivals at the same time, several times. One beats another if each of its rounds
//! is better than every round of the other, by more than a tenth: what is less is noise.

use std::path::Path;

use anyhow::Result;
use indicatif::ProgressBar;
use terrane::Design;
use terrane_workload::stability::Schedule;

use super::rows::{said, seconds};
use super::setting::Setting;
use super::stage::{Id, Played, Stage};
use super::trial::{Phase, Trial};
use crate::claims::report::Report;
use crate::human;

/// Of a phase of the others.
const PHASE_SHARE: f64 = 0.3;
const UTILIZATION: f64 = 0.95;
/// The paper's bursts (§5.2.3), as shares of the greatest rate; four cycles.
const BURST: [(f64, f64); 2] = [(0.43, 5.0 / 24.0), (1.7, 1.0 / 24.0)];

const SCHEDULERS: [&str; 4] = ["single", "fair", "greedy", "gear"];
const LIMITS: [&str; 3] = ["level0", "local(2x)", "global(2x)"];
const VIOLATIONS: [&str; 2] = ["slow-down", "stop"];

/// Better by less than this is noise: a share, and seconds of a latency.
const NOISE_SHARE: f64 = 0.1;
const NOISE_SECONDS: f64 = 0.02;

/// The default design, with the sizes of the others: a table is half of a memtable, level 1 four.
fn design(setting: &Setting) -> String {
    let buffer = setting.buffer_bytes();
    format!("balanced; base={}; buffer={buffer}; table={}", buffer * 4, buffer / 2)
}

/// The testing phase.
pub(super) struct Testing(Id);

pub(super) fn testing(setting: &Setting, stage: &mut Stage<'_>) -> Testing {
    let trial = Trial::testing(setting, &design(setting));
    let design = format!("{}; intake=exact", trial.design);
    Testing(stage.add(Trial { design, ..trial }))
}

/// One way to schedule and to limit, with what came out of its rounds.
struct Candidate {
    name: String,
    design: String,
    is_default: bool,
    /// Under constant arrivals, and in bursts.
    rounds: [Vec<Figures>; 2],
}

/// What is asked of a phase.
#[derive(Debug, Clone, Copy)]
struct Figures {
    p99: f64,
    p99_9: f64,
    slowest: f64,
    written: f64,
    runs: f64,
}

impl Figures {
    fn of(phase: &Phase) -> Self {
        Self {
            p99: phase.p99(),
            p99_9: phase.write(99.9),
            slowest: phase.report.slowest_second_share().unwrap_or(0.0),
            written: phase.report.write_amplification().unwrap_or(0.0),
            runs: phase.runs(),
        }
    }
}

fn candidates(setting: &Setting) -> Result<Vec<Candidate>> {
    let base = design(setting);
    let default: Design = base.parse()?;
    let mut all = Vec::new();
    for scheduler in SCHEDULERS {
        for limit in LIMITS {
            for violation in VIOLATIONS {
                let design =
                    format!("{base}; scheduler={scheduler}; limit={limit}; violation={violation}");
                let is_default = design.parse::<Design>()? == default;
                let name = format!("{scheduler}, {limit}, {violation}");
                all.push(Candidate { name, design, is_default, rounds: Default::default() });
            }
        }
    }
    Ok(all)
}

impl Testing {
    /// Plays the rounds; answers how many phases they had.
    pub(super) fn measure(
        &self,
        setting: &Setting,
        dir: &Path,
        maxima: &Played,
        spinner: &ProgressBar,
        report: &mut Report,
    ) -> Result<usize> {
        let maximum = maxima[self.0].rate();
        let seconds = setting.seconds() * PHASE_SHARE;
        let [(low, low_share), (high, high_share)] = BURST;
        let bursts = Schedule::burst(
            low * maximum,
            low_share * seconds,
            high * maximum,
            high_share * seconds,
        );
        let arrivals = [Schedule::constant((UTILIZATION * maximum).max(1.0)), bursts];
        let mut all = candidates(setting)?;
        let mut phases = 0;
        for round in 0..setting.rounds {
            let mut stage = Stage::new(setting, dir);
            let ids: Vec<[Id; 2]> = all
                .iter()
                .map(|candidate| {
                    arrivals.map(|schedule| {
                        let trial = Trial::scheduled(setting, candidate.design.clone(), schedule);
                        stage.add(Trial { seconds, round, ..trial })
                    })
                })
                .collect();
            spinner.set_message(format!("the default design, round {}", round + 1));
            let played = stage.play()?;
            phases += played.len();
            for (candidate, ids) in all.iter_mut().zip(ids) {
                for (figures, id) in candidate.rounds.iter_mut().zip(ids) {
                    figures.push(Figures::of(&played[id]));
                }
            }
        }
        judge(&all, report);
        Ok(phases)
    }
}

/// What is better if it is less, of a round.
type Metric = fn(&Figures) -> f64;

/// Whether one is better in every round, by more than noise.
fn beats(one: &[Figures], other: &[Figures], metric: Metric, least: f64) -> bool {
    let worst = one.iter().map(metric).fold(f64::NEG_INFINITY, f64::max);
    let best = other.iter().map(metric).fold(f64::INFINITY, f64::min);
    !one.is_empty() && worst < best - (best.abs() * NOISE_SHARE).max(least)
}

/// By latencies and the slowest second, which are what is looked for, and by what they cost.
const WANTED: [(Metric, f64); 3] = [
    (|figures| figures.p99, NOISE_SECONDS),
    (|figures| figures.p99_9, NOISE_SECONDS),
    (|figures| -figures.slowest, 0.0),
];
const COSTS: [(Metric, f64); 2] = [(|figures| figures.written, 0.0), (|figures| figures.runs, 0.1)];

/// Whether one wins over another: better in something that is wanted, and worse in nothing.
fn wins(one: &Candidate, other: &Candidate) -> bool {
    let any = |one: &Candidate, other: &Candidate, metrics: &[(Metric, f64)]| {
        let pairs = one.rounds.iter().zip(&other.rounds);
        pairs.into_iter().any(|(one, other)| {
            metrics.iter().any(|(metric, least)| beats(one, other, *metric, *least))
        })
    };
    any(one, other, &WANTED) && !any(other, one, &WANTED) && !any(other, one, &COSTS)
}

fn median(rounds: &[Figures], metric: Metric) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(metric).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn judge(all: &[Candidate], report: &mut Report) {
    let Some(default) = all.iter().find(|candidate| candidate.is_default) else { return };
    let winners: Vec<&str> = all
        .iter()
        .filter(|candidate| wins(candidate, default))
        .map(|candidate| candidate.name.as_str())
        .collect();
    let of = |arrival: usize| {
        let rounds = &default.rounds[arrival];
        format!(
            "p99 {}, p99.9 {}, slowest second {:.0} %",
            seconds(median(rounds, |one| one.p99)),
            seconds(median(rounds, |one| one.p99_9)),
            median(rounds, |one| one.slowest) * 100.0
        )
    };
    let measured = format!(
        "`{}`: {} under constant arrivals; {} in bursts{}{}",
        default.name,
        of(0),
        of(1),
        if winners.is_empty() { "" } else { "; beaten by " },
        winners.join("; ")
    );
    said(
        report,
        "default",
        "no other scheduler or limit is better than the default's by more than noise, and as good in \
         everything else",
        (measured, winners.is_empty()),
        "",
    );
    let rows = all.iter().map(|candidate| {
        let [constant, bursts] = &candidate.rounds;
        let time = |rounds: &[Figures], metric| seconds(median(rounds, metric));
        let share =
            |rounds: &[Figures]| format!("{:.0} %", median(rounds, |one| one.slowest) * 100.0);
        let mark = if candidate.is_default { " (default)" } else { "" };
        vec![
            format!("{}{mark}", candidate.name),
            time(constant, |one| one.p99),
            time(constant, |one| one.p99_9),
            share(constant),
            time(bursts, |one| one.p99),
            time(bursts, |one| one.p99_9),
            share(bursts),
            human::number(median(constant, |one| one.written)),
            format!("{:.1}", median(constant, |one| one.runs)),
        ]
    });
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
    report.table(
        "The default design with other schedulers and limits, at 95 % and in bursts",
        &headers,
        rows.collect(),
    );
}
