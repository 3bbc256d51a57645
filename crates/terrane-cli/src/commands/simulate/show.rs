//! What came out, for people and for programs.

use std::io::Write;

use anyhow::Result;
use serde::Serialize;
use terrane::policy::StallCause;
use terrane_sim::{Arrival, Latencies, Outcome, Setup, Start, Tree, TwoPhases, Verdict, Window};

use crate::human::{self, seconds};
use crate::json::{SCHEMA, write_line};
use crate::sparkline::{sparkline, squeezed};

/// Columns of a curve.
const COLUMNS: usize = 60;

/// Times at which levels are told.
const MOMENTS: usize = 6;

const QUANTILES: [(&str, f64); 7] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
    ("max", 1.0),
];

/// What was played.
pub(super) struct Playing<'a> {
    pub(super) setup: &'a Setup,
    pub(super) tree: &'a Tree,
    pub(super) start: Start,
}

#[derive(Serialize)]
struct JsonOutcome {
    phase: &'static str,
    arrival: String,
    seconds: f64,
    writes: f64,
    writes_per_second: f64,
    write_amplification: f64,
    flushes: u64,
    merges: u64,
    moves: u64,
    flush_bytes: f64,
    merge_bytes_read: f64,
    merge_bytes_written: f64,
    mean_runs: f64,
    most_runs: usize,
    queued_writes: f64,
    stalled_seconds: f64,
    delayed_seconds: f64,
    longest_stall_seconds: f64,
    stalled_seconds_by_cause: Vec<(String, f64)>,
    latency_micros: Vec<(&'static str, f64)>,
    processing_micros: Vec<(&'static str, f64)>,
    stuck: Option<String>,
    windows: Vec<JsonWindow>,
}

#[derive(Serialize)]
struct JsonWindow {
    writes_per_second: f64,
    stalled_seconds: f64,
    mean_runs: f64,
    most_runs: usize,
    level_bytes: Vec<u64>,
    level_runs: Vec<usize>,
    write_amplification: f64,
}

#[derive(Serialize)]
struct JsonSimulation {
    schema: u32,
    design: String,
    records: f64,
    record_bytes: f64,
    keys: String,
    budget_bytes_per_second: Option<f64>,
    start: String,
    window_seconds: f64,
    greatest_writes_per_second: Option<f64>,
    arrival_writes_per_second: Option<f64>,
    is_sustainable: Option<bool>,
    phases: Vec<JsonOutcome>,
}

fn json_window(window: &Window) -> JsonWindow {
    JsonWindow {
        writes_per_second: window.rate,
        stalled_seconds: window.stalled_seconds,
        mean_runs: window.runs,
        most_runs: window.most_runs,
        level_bytes: window.level_bytes.clone(),
        level_runs: window.level_runs.clone(),
        write_amplification: window.write_amplification,
    }
}

fn json_outcome(phase: &'static str, arrival: Arrival, outcome: &Outcome) -> JsonOutcome {
    let totals = &outcome.totals;
    let micros = |latencies: &Latencies| {
        QUANTILES.iter().map(|(name, part)| (*name, latencies.quantile(*part) * 1e6)).collect()
    };
    JsonOutcome {
        phase,
        arrival: arrival.to_string(),
        seconds: outcome.seconds,
        writes: totals.writes,
        writes_per_second: totals.writes / outcome.seconds.max(1e-9),
        write_amplification: totals.write_amplification(),
        flushes: totals.flushes,
        merges: totals.merges,
        moves: totals.moves,
        flush_bytes: totals.flush_bytes,
        merge_bytes_read: totals.read_bytes,
        merge_bytes_written: totals.merge_bytes,
        mean_runs: outcome.mean_runs(),
        most_runs: totals.most_runs,
        queued_writes: outcome.queued,
        stalled_seconds: outcome.stalled_seconds(None),
        delayed_seconds: totals.delayed_seconds,
        longest_stall_seconds: outcome.longest_stall(),
        stalled_seconds_by_cause: causes(outcome)
            .map(|(cause, seconds)| (cause.to_string(), seconds))
            .collect(),
        latency_micros: micros(&outcome.latencies),
        processing_micros: micros(&outcome.processing),
        stuck: outcome.stuck.clone(),
        windows: outcome.windows.iter().map(json_window).collect(),
    }
}

fn json(playing: &Playing<'_>, phases: Vec<JsonOutcome>) -> JsonSimulation {
    let Setup { design, workload, machine, window_seconds, .. } = playing.setup;
    JsonSimulation {
        schema: SCHEMA,
        design: design.to_string(),
        records: workload.records,
        record_bytes: workload.record_bytes,
        keys: workload.skew.to_string(),
        budget_bytes_per_second: machine.budget,
        start: playing.start.to_string(),
        window_seconds: *window_seconds,
        greatest_writes_per_second: None,
        arrival_writes_per_second: None,
        is_sustainable: None,
        phases,
    }
}

fn causes(outcome: &Outcome) -> impl Iterator<Item = (StallCause, f64)> {
    let all = StallCause::ALL.into_iter();
    all.map(|cause| (cause, outcome.stalled_seconds(Some(cause)))).filter(|(_, time)| *time > 0.0)
}

/// Tells one phase.
pub(super) fn one(
    out: &mut dyn Write,
    playing: &Playing<'_>,
    outcome: &Outcome,
    rate_from: f64,
    as_json: bool,
) -> Result<()> {
    if as_json {
        let arrival = playing.setup.workload.arrival;
        return Ok(write_line(out, &json(playing, vec![json_outcome("only", arrival, outcome)]))?);
    }
    head(out, playing)?;
    phase(out, playing.setup, outcome, rate_from)
}

/// Tells both phases, and the verdict.
pub(super) fn two_phases(
    out: &mut dyn Write,
    playing: &Playing<'_>,
    phases: &TwoPhases,
    as_json: bool,
) -> Result<()> {
    let is_sustainable = phases.verdict == Verdict::Sustainable;
    if as_json {
        let running = Arrival::Constant(phases.arrival_rate);
        let both = vec![
            json_outcome("testing", Arrival::Closed, &phases.testing),
            json_outcome("running", running, &phases.running),
        ];
        let simulation = JsonSimulation {
            greatest_writes_per_second: Some(phases.greatest_rate),
            arrival_writes_per_second: Some(phases.arrival_rate),
            is_sustainable: Some(is_sustainable),
            ..json(playing, both)
        };
        return Ok(write_line(out, &simulation)?);
    }
    head(out, playing)?;
    writeln!(
        out,
        "\ntesting phase: as fast as the tree takes them, {} writes/s",
        human::number(phases.greatest_rate)
    )?;
    phase(out, playing.setup, &phases.testing, 0.0)?;
    writeln!(out, "\nrunning phase: {} writes/s come", human::number(phases.arrival_rate))?;
    phase(out, playing.setup, &phases.running, 0.0)?;
    let p99 = seconds(phases.running.latencies.quantile(0.99));
    let verdict = if is_sustainable { "sustainable" } else { "not sustainable" };
    writeln!(out, "\n{verdict}: {} writes/s, p99 {p99}", human::number(phases.arrival_rate))?;
    if !is_sustainable
        && let Some((cause, time)) = causes(&phases.running).max_by(|a, b| a.1.total_cmp(&b.1))
    {
        writeln!(out, "writers waited {} for {cause}", seconds(time))?;
    }
    Ok(())
}

fn head(out: &mut dyn Write, playing: &Playing<'_>) -> Result<()> {
    let Playing { setup, tree, start } = playing;
    let workload = &setup.workload;
    writeln!(out, "{}", setup.design)?;
    let budget = setup
        .machine
        .budget
        .map_or("no budget".into(), |rate| format!("budget {}/s", human::bytes(rate as u64)));
    writeln!(
        out,
        "{} records of {}, {}, {budget}; start {start}: {}",
        human::count(workload.records as u64),
        human::bytes(workload.record_bytes as u64),
        workload.skew,
        levels(tree.shape().levels.iter().map(|level| (level.size_bytes(), level.runs.len()))),
    )?;
    if let Some(bytes) = tree.table_bytes().filter(|bytes| *bytes > setup.design.table_bytes) {
        let (played, told) = (human::bytes(bytes), human::bytes(setup.design.table_bytes));
        writeln!(out, "tables are played at {played}, not at {told}: see --tables-max")?;
    }
    Ok(())
}

fn phase(out: &mut dyn Write, setup: &Setup, outcome: &Outcome, rate_from: f64) -> Result<()> {
    let totals = &outcome.totals;
    let hours = outcome.seconds / 3600.0;
    let rates: Vec<f64> = outcome.windows.iter().map(|window| window.rate).collect();
    let runs: Vec<f64> = outcome.windows.iter().map(|window| window.runs).collect();
    let highest = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let curve = |values: &[f64]| sparkline(&squeezed(values, COLUMNS), highest(values));
    writeln!(
        out,
        "throughput     {} writes/s over {hours:.2} h{}",
        human::number(outcome.rate_from(rate_from)),
        if rate_from > 0.0 { ", its warm-up left out" } else { "" }
    )?;
    writeln!(out, "               {} up to {}", curve(&rates), human::number(highest(&rates)))?;
    writeln!(
        out,
        "amplification  {:.2} written; {} flushes, {} merges, {} moves",
        totals.write_amplification(),
        human::count(totals.flushes),
        human::count(totals.merges),
        human::count(totals.moves)
    )?;
    writeln!(
        out,
        "runs           {:.1} on average, {} at most",
        outcome.mean_runs(),
        totals.most_runs
    )?;
    writeln!(out, "               {} up to {:.1}", curve(&runs), highest(&runs))?;
    let stalled: Vec<String> =
        causes(outcome).map(|(cause, time)| format!("{cause} {}", seconds(time))).collect();
    let longest = outcome.longest_stall();
    if stalled.is_empty() {
        writeln!(out, "stalls         none")?;
    } else {
        writeln!(out, "stalls         {}; the longest {}", stalled.join(", "), seconds(longest))?;
    }
    if totals.delayed_seconds > 0.0 {
        writeln!(out, "slowed down    {}", seconds(totals.delayed_seconds))?;
    }
    for (name, latencies) in [("latency", &outcome.latencies), ("processing", &outcome.processing)]
    {
        let quantiles = QUANTILES
            .iter()
            .map(|(name, part)| format!("{name} {}", seconds(latencies.quantile(*part))));
        writeln!(out, "{name:<14} {}", quantiles.collect::<Vec<_>>().join(", "))?;
    }
    if outcome.queued >= 1.0 {
        writeln!(out, "queue          {} writes at the end", human::count(outcome.queued as u64))?;
    }
    tree(out, setup, outcome)?;
    if let Some(why) = &outcome.stuck {
        writeln!(out, "ended early: {why}")?;
    }
    Ok(())
}

fn tree(out: &mut dyn Write, setup: &Setup, outcome: &Outcome) -> Result<()> {
    let windows = &outcome.windows;
    for moment in 1..=MOMENTS.min(windows.len()) {
        let at = windows.len() * moment / MOMENTS.min(windows.len()) - 1;
        let window = &windows[at];
        let minutes = (at + 1) as f64 * setup.window_seconds / 60.0;
        let sizes = window.level_bytes.iter().copied().zip(window.level_runs.iter().copied());
        writeln!(out, "tree {minutes:>5.0} min  {}", levels(sizes))?;
    }
    Ok(())
}

/// Sizes and runs of levels in a line.
fn levels(sizes: impl Iterator<Item = (u64, usize)>) -> String {
    let words =
        sizes.enumerate().filter(|(_, (_, runs))| *runs > 0).map(|(level, (bytes, runs))| {
            let runs = if runs == 1 { String::new() } else { format!(" in {runs}") };
            format!("L{level} {}{runs}", human::bytes(bytes))
        });
    let text = words.collect::<Vec<_>>().join(", ");
    if text.is_empty() { "empty".into() } else { text }
}
