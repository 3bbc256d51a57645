//! The sentences of the report, shared by the terminal and the HTML page.

use std::time::Duration;

use terrane_workload::Latency;
use terrane_workload::stability::{
    Arrival, PERCENTILES, PhaseReport, ReaderReport, Stall, TwoPhaseOptions,
};

use super::evaluation::{DesignEvaluation, MapCalibration};
use crate::human;

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
        let text = format!(
            "{} including the log, for {} of user data: {} ×",
            human::bytes(written),
            human::bytes(running.user_bytes_written),
            human::number(running.write_amplification().unwrap_or(0.0))
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
        return "no stall that the engine counted".to_owned();
    }
    let each = stalls.iter().map(|(cause, micros)| {
        format!("{cause} {}", human::duration(Duration::from_micros(*micros)))
    });
    each.collect::<Vec<_>>().join(", ")
}

/// Returns the verdict as a sentence.
pub fn headline(evaluation: &DesignEvaluation) -> String {
    let running = &evaluation.report.running;
    let rate = human::number(running.offered_per_second());
    let p99_9 = micros(running.write.percentile_micros(99.9));
    if evaluation.verdict.is_sustainable() {
        format!("sustainable: {rate} writes/s, 99.9 % of them within {p99_9}")
    } else {
        format!("NOT sustainable: {rate} writes/s, 99.9 % of them within {p99_9}")
    }
}
