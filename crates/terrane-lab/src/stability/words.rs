//! The sentences of the report, shared by the terminal and the HTML page.

use std::time::Duration;

use terrane_workload::Latency;
use terrane_workload::stability::{
    Arrival, KindLatency, PERCENTILES, PhaseReport, ReaderReport, Stall, TwoPhaseOptions,
};

use super::evaluation::{DesignEvaluation, MapCalibration};
use super::outlook::{Conclusion, Horizon, Outlook, Prediction};
use super::residual::Residual;
use crate::output::human;

/// The maximum number of stalls to list individually.
const STALLS_LISTED_MAX: usize = 5;

/// Describes how writes arrive.
pub fn arrivals(phases: &TwoPhaseOptions) -> String {
    match phases.arrival {
        Arrival::Constant => {
            format!("constant at {} % of the maximum", human::number(phases.utilization * 100.0))
        }
        bursts => bursts.to_string(),
    }
}

/// Describes the arriving operations.
pub fn operations(phases: &TwoPhaseOptions) -> String {
    match &phases.mix {
        None => "updates".to_owned(),
        Some(mix) => format!("operations {mix}, each counted as a write"),
    }
}

/// Returns the name of a percentile.
pub fn percentile_name(percent: f64) -> String {
    format!("{percent} %")
}

/// Returns all percentiles and the maximum, in microseconds.
pub fn all_micros(latency: &Latency) -> Vec<(String, f64)> {
    let percentiles = PERCENTILES.into_iter();
    let mut all: Vec<_> = percentiles
        .map(|percent| (percentile_name(percent), latency.percentile_micros(percent)))
        .collect();
    all.push(("max".to_owned(), latency.max_micros()));
    all
}

/// Returns the latencies of the operations of a mix.
fn kinds(running: &PhaseReport) -> String {
    let of_kind = |kind: &KindLatency| {
        if kind.latency.samples() == 0 {
            return format!("{} none", kind.part.kind);
        }
        let at = |percent| micros(kind.latency.percentile_micros(percent));
        format!(
            "{} p50 {}, p99 {}, max {}",
            kind.part.kind,
            at(50.0),
            at(99.0),
            micros(kind.latency.max_micros())
        )
    };
    running.kinds.iter().map(of_kind).collect::<Vec<_>>().join("; ")
}

/// Formats a time in microseconds.
pub fn micros(micros: f64) -> String {
    human::duration(Duration::from_secs_f64(micros / 1e6))
}

fn queries(readers: &ReaderReport) -> String {
    let latency = &readers.latency;
    format!(
        "{} {} queries/s by {}: p50 {}, p99 {}, max {}",
        human::number(readers.per_second()),
        readers.query,
        human::counted(readers.threads.into(), "reader"),
        micros(latency.percentile_micros(50.0)),
        micros(latency.percentile_micros(99.0)),
        micros(latency.max_micros())
    )
}

/// Returns further facts about the running phase, each with its label.
pub fn facts(
    evaluation: &DesignEvaluation,
    calibration: Option<&MapCalibration>,
) -> Vec<(&'static str, String)> {
    let running = &evaluation.report.running;
    let mut facts = Vec::new();
    if let Some(readers) = &running.readers {
        facts.push(("readers", queries(readers)));
    }
    if !running.kinds.is_empty() {
        facts.push(("operations", kinds(running)));
    }
    facts.push(("stalls", stalls(&running.stalls())));
    facts.push(("waited for", causes(&evaluation.stalls)));
    if let Some(share) = running.slowest_second_share() {
        let mem = calibration.and_then(|one| one.report.running.slowest_second_share());
        let mem = mem.map(|share| format!(" (mem {:.0} %)", share * 100.0)).unwrap_or_default();
        let text =
            format!("the slowest second completed {:.0} % of its arrivals{mem}", share * 100.0);
        facts.push(("slowest", text));
    }
    if let Some(written) = running.counters.storage_bytes_written {
        let times = running.write_amplification();
        let text = format!(
            "{} including the log, for {} of user data{}",
            human::bytes(written),
            human::bytes(running.user_bytes_written),
            times.map_or(String::new(), |times| format!(": {} ×", human::number(times)))
        );
        facts.push(("written", text));
    }
    let seen = [("testing", &evaluation.report.testing), ("running", running)];
    let seen = seen.map(|(phase, report)| format!("{phase}: {}", work(report)));
    facts.push(("seen", seen.join("; ")));
    if running.late.samples() > 0 {
        let text = format!(
            "idle clients started writes late by p50 {}, p99 {}, max {}",
            micros(running.late.percentile_micros(50.0)),
            micros(running.late.percentile_micros(99.0)),
            micros(running.late.max_micros())
        );
        facts.push(("driver", text));
    }
    if let Some(calibration) = calibration {
        let text = format!(
            "an in-memory map: at most {} writes/s, {} offered",
            human::number(calibration.report.testing.per_second()),
            human::number(calibration.report.running.offered_per_second())
        );
        facts.push(("mem", text));
    }
    facts
}

/// Describes the flushes of a phase, and its merges by source level.
pub fn work(phase: &PhaseReport) -> String {
    let counters = &phase.counters;
    let flushes = human::counted(counters.flushes.unwrap_or(0), "flush");
    let levels = counters.compactions_by_level.iter().enumerate();
    let merges: Vec<_> = levels
        .filter(|(_, count)| **count > 0)
        .map(|(level, count)| format!("{} from level {level}", human::count(*count)))
        .collect();
    if merges.is_empty() {
        let merges = human::counted(counters.compactions.unwrap_or(0), "merge");
        return format!("{flushes}, {merges}");
    }
    format!("{flushes}, merges: {}", merges.join(", "))
}

/// Describes the stalls.
fn stalls(stalls: &[Stall]) -> String {
    let longest = stalls.iter().map(|stall| stall.seconds).fold(0.0, f64::max);
    let total: f64 = stalls.iter().map(|stall| stall.seconds).sum();
    if stalls.is_empty() {
        return "none of 0.1 s or more".to_owned();
    }
    let count = human::counted(stalls.len() as u64, "stall");
    let listed = if stalls.len() <= STALLS_LISTED_MAX {
        let each =
            stalls.iter().map(|one| format!("{:.1} s at {:.1}", one.seconds, one.begin_seconds));
        format!(": {}", each.collect::<Vec<_>>().join(", "))
    } else {
        String::new()
    };
    format!("{count}, {total:.1} s in total, longest {longest:.1} s{listed}")
}

/// Describes the causes of stalls.
pub fn causes(stalls: &[(String, u64)]) -> String {
    if stalls.is_empty() {
        return "the engine counted no stall".to_owned();
    }
    let each = stalls.iter().map(|(cause, micros)| {
        format!("{cause} {}", human::duration(Duration::from_micros(*micros)))
    });
    each.collect::<Vec<_>>().join(", ")
}

/// Returns the joint verdict of the measurement and the simulator as a sentence.
pub fn headline(evaluation: &DesignEvaluation) -> String {
    let running = &evaluation.report.running;
    let rate = human::number(running.offered_per_second());
    let p99_9 = micros(running.write.percentile_micros(99.9));
    let time = human::duration(Duration::from_secs_f64(running.seconds.max(0.0)));
    let held = if evaluation.verdict.is_sustainable() { "held" } else { "did not hold" };
    let measured = format!("{rate} writes/s {held} for {time} as measured, 99.9 % within {p99_9}");
    let word = match evaluation.conclusion() {
        Conclusion::Sustainable => "sustainable",
        Conclusion::Unsustainable => "NOT sustainable",
        Conclusion::Unknown => "no verdict",
    };
    if evaluation.is_sustained().is_none() {
        return format!(
            "{word}: {measured}; no merge ran in the testing phase, so its maximum is that of \
             flushes and the test says nothing about merges"
        );
    }
    match &evaluation.outlook {
        Outlook::Withheld(reason) => format!("{word}: {measured}; {reason}"),
        Outlook::Played(played) => format!("{word}: {measured}; {}", foretold(played)),
    }
}

/// Describes the simulator's prediction.
fn foretold(played: &Prediction) -> String {
    let sustainable = human::number(played.sustainable);
    let sustained = human::duration(Duration::from_secs_f64(played.sustained_seconds));
    // A design that stops writers during every large merge has no sustainable rate.
    let rate = match played.sustainable {
        none if none < 1.0 => "no rate is sustainable".to_owned(),
        _ => format!("{sustainable} writes/s is sustainable for {sustained}"),
    };
    match (played.failing(), played.horizons.last()) {
        (Some(Horizon { first_stall: Some(stall), .. }), _) => {
            let merging = stall.merging.map_or_else(String::new, |(from, to)| {
                format!(" when level {from} merges into {to}")
            });
            format!("simulated, it stalls {}{merging}; {rate}", moment(stall.from))
        }
        (Some(failing), _) => {
            format!("simulated, p99 is {} in {}; {rate}", p99(failing), failing.name)
        }
        (None, Some(last)) => format!("simulated, it holds for {}, and {rate}", last.name),
        (None, None) => "too long to simulate".to_owned(),
    }
}

/// Formats the 99th percentile of the write latency of a simulation.
fn p99(horizon: &Horizon) -> String {
    horizon.p99.map_or("unknown, because no write was completed".to_owned(), human::seconds)
}

/// Formats a time in a run, in the largest unit that still distinguishes such times.
fn moment(seconds: f64) -> String {
    let (unit, length) = match seconds {
        _ if seconds < 120.0 => ("second", 1.0),
        _ if seconds < 3.0 * 3600.0 => ("minute", 60.0),
        _ if seconds < 72.0 * 3600.0 => ("hour", 3600.0),
        _ => ("day", 86_400.0),
    };
    format!("at {unit} {:.0}", (seconds / length).floor())
}

/// Returns the findings of the simulator, each with its label.
pub fn outlook(evaluation: &DesignEvaluation) -> Vec<(&'static str, String)> {
    let Outlook::Played(played) = &evaluation.outlook else { return Vec::new() };
    let Residual { write_amplification, runs, held, rate } = played.residual;
    let pair = |(measured, replayed): (f64, f64)| format!("{measured:.2} / {replayed:.2}");
    let percent = |(measured, replayed): (f64, f64)| {
        format!("{:.1} % / {:.1} %", measured * 100.0, replayed * 100.0)
    };
    let rates = format!("{} / {}", human::number(rate.0), human::number(rate.1));
    let mut lines = vec![(
        "replayed",
        format!(
            "measured / simulated: write amplification of tables {}, runs {}, writers waited {}, \
             writes/s {rates}",
            pair(write_amplification),
            pair(runs),
            percent(held)
        ),
    )];
    lines.extend(played.horizons.iter().map(|horizon| {
        let holds = if horizon.holds { "holds" } else { "does NOT hold" };
        let longest = human::duration(Duration::from_secs_f64(horizon.longest_stall));
        let text =
            format!("{}: {holds}, p99 {}, longest stall {longest}", horizon.name, p99(horizon));
        ("simulated", text)
    }));
    lines.extend(played.notes.iter().map(|note| ("simulated", note.clone())));
    lines
}
