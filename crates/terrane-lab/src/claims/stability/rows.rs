//! Phases in tables.

use std::time::Duration;

use terrane_workload::stability::Window;

use super::trial::Phase;
use crate::claims::report::{Claim, Report};
use crate::human;
use crate::sparkline::{sparkline, squeezed};

/// Characters of a curve.
const COLUMNS: usize = 40;
/// Windows of a curve.
const WINDOWS: f64 = 60.0;

pub(super) const HEADERS: [&str; 10] = [
    "",
    "writes/s",
    "over time",
    "stopped",
    "longest stall",
    "runs",
    "p50",
    "p99",
    "flushes",
    "merges",
];

/// A time as people read it.
pub(super) fn seconds(seconds: f64) -> String {
    human::duration(Duration::from_secs_f64(seconds.clamp(0.0, 1e9)))
}

/// Two times.
pub(super) fn pair(first: f64, second: f64) -> String {
    format!("{} and {}", seconds(first), seconds(second))
}

fn windows(phase: &Phase) -> Vec<Window> {
    let report = &phase.report;
    let length = (report.seconds + report.warm_up_seconds) / WINDOWS;
    report.timeline.windows(length)
}

/// A phase as a row of a table with [`HEADERS`].
pub(super) fn row(name: impl Into<String>, phase: &Phase) -> Vec<String> {
    let rates: Vec<f64> = windows(phase).iter().map(Window::per_second).collect();
    let highest = rates.iter().copied().fold(0.0, f64::max);
    let counters = &phase.report.counters;
    let merges: Vec<String> = counters.compactions_by_level.iter().map(u64::to_string).collect();
    vec![
        name.into(),
        human::number(phase.rate()),
        format!("`{}`", sparkline(&squeezed(&rates, COLUMNS), highest)),
        seconds(phase.stopped()),
        seconds(phase.longest_stall()),
        format!("{:.1}", phase.runs()),
        seconds(phase.write(50.0)),
        seconds(phase.p99()),
        human::count(counters.flushes.unwrap_or(0)),
        merges.join(" "),
    ]
}

/// How much rates of windows differ after the warm-up: standard deviation over mean.
pub(super) fn variation(phase: &Phase) -> f64 {
    let from = phase.report.warm_up_seconds;
    let measured = windows(phase).into_iter().filter(|window| window.begin_seconds >= from);
    let rates: Vec<f64> = measured.map(|window| window.per_second()).collect();
    let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
    let square = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>();
    (square / rates.len().max(1) as f64).sqrt() / mean.max(1e-9)
}

/// The most over the least.
pub(super) fn spread(values: &[f64]) -> f64 {
    let most = values.iter().copied().fold(0.0, f64::max);
    most / values.iter().copied().fold(f64::INFINITY, f64::min).max(1e-9)
}

/// Numbers with commas between.
pub(super) fn listed(values: &[f64]) -> String {
    values.iter().map(|value| human::number(*value)).collect::<Vec<_>>().join(", ")
}

/// A claim of the paper, and what came out.
pub(super) fn said(
    report: &mut Report,
    figure: &'static str,
    says: &'static str,
    (measured, holds): (String, bool),
    why: &'static str,
) {
    let why = if holds { "" } else { why };
    report.claim(Claim { figure, says, mode: None, measured, holds, why: why.into() });
}
