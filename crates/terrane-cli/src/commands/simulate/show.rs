//! Prints the results of a simulation.

use std::io::Write;

use anyhow::Result;

use crate::terminal::picture_columns;
use terrane_lab::output::human::{self, seconds};
use terrane_lab::output::json::write_line;
use terrane_lab::output::sparkline::{sparkline, squeezed};
use terrane_lab::simulation::report::{JsonSimulation, QUANTILES, SimulatedDesign, causes};
use terrane_sim::{
    Latencies, RateVerdict, SimulatedTree, SimulationOutcome, SimulationSetup, SimulationWindow,
    TwoPhases, unplayed,
};

/// The columns that a line needs besides its curve.
const AROUND_CURVE: usize = 30;

/// The most columns of a curve.
const CURVE_MAX: usize = 100;

/// The number of times at which levels are printed.
const TREES_PRINTED: usize = 6;

/// Returns the columns of a curve.
fn curve_columns() -> usize {
    picture_columns().saturating_sub(AROUND_CURVE).clamp(10, CURVE_MAX)
}

/// Prints one phase.
pub(super) fn one(
    out: &mut dyn Write,
    simulated: &SimulatedDesign<'_>,
    outcome: &SimulationOutcome,
    rate_from: f64,
    as_json: bool,
) -> Result<()> {
    if as_json {
        return Ok(write_line(out, &JsonSimulation::one(simulated, outcome))?);
    }
    head(out, simulated)?;
    phase(out, simulated.setup, outcome, rate_from)?;
    for (number, (name, totals)) in simulated.names.iter().zip(&outcome.trees).enumerate() {
        let stalled = seconds(outcome.seconds_stalled_by(number));
        writeln!(
            out,
            "{name:<14} {} flushes, {} merges, {} written; {:.1} runs on average, {} at most; \
             stopped writers for {stalled}",
            human::count(totals.flushes),
            human::count(totals.merges),
            human::bytes(totals.written_bytes as u64),
            totals.run_seconds / outcome.seconds.max(1e-9),
            totals.most_runs,
        )?;
    }
    Ok(())
}

/// Prints both phases and the verdict.
pub(super) fn two_phases(
    out: &mut dyn Write,
    simulated: &SimulatedDesign<'_>,
    phases: &TwoPhases,
    as_json: bool,
) -> Result<()> {
    let is_sustainable = phases.verdict == RateVerdict::Sustainable;
    if as_json {
        return Ok(write_line(out, &JsonSimulation::two_phases(simulated, phases))?);
    }
    head(out, simulated)?;
    writeln!(
        out,
        "\ntesting phase: closed loop, {} writes/s",
        human::number(phases.greatest_rate)
    )?;
    phase(out, simulated.setup, &phases.testing, 0.0)?;
    writeln!(out, "\nrunning phase: {} writes/s arrive", human::number(phases.arrival_rate))?;
    phase(out, simulated.setup, &phases.running, 0.0)?;
    let p99 = quantile(&phases.running.latencies, 0.99);
    let verdict = if is_sustainable { "sustainable" } else { "not sustainable" };
    writeln!(out, "\n{verdict}: {} writes/s, p99 {p99}", human::number(phases.arrival_rate))?;
    if !is_sustainable
        && let Some((cause, time)) = causes(&phases.running).max_by(|a, b| a.1.total_cmp(&b.1))
    {
        writeln!(out, "writers waited {} for {cause}", seconds(time))?;
    }
    Ok(())
}

/// Formats a quantile; `-` without writes.
fn quantile(latencies: &Latencies, part: f64) -> String {
    latencies.quantile(part).map_or("-".to_owned(), seconds)
}

fn head(out: &mut dyn Write, simulated: &SimulatedDesign<'_>) -> Result<()> {
    let SimulatedDesign { setup, trees, names, start } = simulated;
    let workload = &setup.workload;
    if names.is_empty() {
        writeln!(out, "{}", setup.design)?;
    }
    for ((name, alone), share) in names.iter().zip(setup.alone()).zip(setup.shares()) {
        writeln!(out, "{name}, {:.0} % of the writes: {}", share * 100.0, alone.design)?;
    }
    let budget = setup
        .machine
        .budget
        .map_or("no budget".into(), |rate| format!("budget {}/s", human::bytes(rate as u64)));
    writeln!(
        out,
        "{}{} records of {}, {}, {budget}; start {start}: {}",
        if names.is_empty() { "" } else { "each " },
        human::count(workload.records as u64),
        human::bytes(workload.record_bytes as u64),
        workload.skew,
        trees.iter().map(start_levels).collect::<Vec<_>>().join(" | "),
    )?;
    for (tree, alone) in trees.iter().zip(setup.alone()) {
        let requested = alone.design.table_bytes;
        if let Some(bytes) = tree.table_bytes().filter(|bytes| *bytes > requested) {
            let (used, requested) = (human::bytes(bytes), human::bytes(requested));
            writeln!(
                out,
                "tables are simulated at {used} instead of {requested}; see --tables-max"
            )?;
        }
    }
    for note in unplayed(setup) {
        writeln!(out, "not simulated: {note}")?;
    }
    Ok(())
}

fn phase(
    out: &mut dyn Write,
    setup: &SimulationSetup,
    outcome: &SimulationOutcome,
    rate_from: f64,
) -> Result<()> {
    let totals = &outcome.totals;
    let hours = outcome.seconds / 3600.0;
    let rates: Vec<f64> = outcome.windows.iter().map(|window| window.rate).collect();
    let runs: Vec<f64> = outcome.windows.iter().map(|window| window.runs).collect();
    let highest = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let curve = |values: &[f64]| sparkline(&squeezed(values, curve_columns()), highest(values));
    writeln!(
        out,
        "throughput     {} writes/s over {hours:.2} h{}",
        human::number(outcome.rate_from(rate_from)),
        if rate_from > 0.0 { ", warm-up excluded" } else { "" }
    )?;
    writeln!(out, "               {} up to {}", curve(&rates), human::number(highest(&rates)))?;
    writeln!(
        out,
        "amplification  {} written; {} flushes, {} merges, {} moves",
        totals.write_amplification().map_or("-".to_owned(), |written| format!("{written:.2}")),
        human::count(totals.flushes),
        human::count(totals.merges),
        human::count(totals.moves)
    )?;
    if setup.workload.mix.expiring > 0.0 {
        writeln!(
            out,
            "dropped        {} tables, because all of their values had expired",
            human::count(totals.drops)
        )?;
    }
    if let Some(window) = outcome.windows.last().filter(|window| window.value_bytes > 0) {
        let live = window.live_value_bytes;
        let times = (live > 0).then(|| window.value_bytes as f64 / live as f64);
        writeln!(
            out,
            "values         {} in value files, {} times the live values; {} moved by merges, {} collections",
            human::bytes(window.value_bytes),
            times.map_or("-".to_owned(), |times| format!("{times:.2}")),
            human::bytes(totals.collected_bytes as u64),
            human::count(totals.collections)
        )?;
    }
    writeln!(
        out,
        "runs           {:.1} on average, {} at most",
        outcome.mean_runs(),
        totals.most_runs
    )?;
    writeln!(out, "               {} up to {:.1}", curve(&runs), highest(&runs))?;
    space(out, setup, outcome)?;
    stalls(out, outcome)?;
    for (name, latencies) in [("latency", &outcome.latencies), ("processing", &outcome.processing)]
    {
        let quantiles =
            QUANTILES.iter().map(|(name, part)| format!("{name} {}", quantile(latencies, *part)));
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

/// Prints the space on disk at the end, and warns if it grows without bound.
fn space(out: &mut dyn Write, setup: &SimulationSetup, outcome: &SimulationOutcome) -> Result<()> {
    let stored =
        |window: &SimulationWindow| window.level_bytes.iter().sum::<u64>() + window.value_bytes;
    let sizes: Vec<u64> = outcome.windows.iter().map(stored).collect();
    let Some(last) = sizes.last() else { return Ok(()) };
    writeln!(out, "space          {} on disk at the end", human::bytes(*last))?;
    let trees = 1.0_f64.max(outcome.trees.len() as f64);
    let data = setup.workload.records * setup.workload.record_bytes * trees;
    if grows_without_bound(&sizes, data) {
        writeln!(
            out,
            "warning: the tree grows without bound, to {:.1} times the data; merges do not keep up with \
             these writes",
            *last as f64 / data
        )?;
    }
    Ok(())
}

/// Returns true if the sizes of a tree exceed the size of its data and still grow: by more than half of
/// the data in the second half of the time.
fn grows_without_bound(sizes: &[u64], data_bytes: f64) -> bool {
    let (Some(last), Some(middle)) = (sizes.last(), sizes.get(sizes.len() / 2)) else {
        return false;
    };
    *last as f64 > 2.0 * data_bytes && last.saturating_sub(*middle) as f64 > 0.5 * data_bytes
}

fn stalls(out: &mut dyn Write, outcome: &SimulationOutcome) -> Result<()> {
    let stalled: Vec<String> =
        causes(outcome).map(|(cause, time)| format!("{cause} {}", seconds(time))).collect();
    let longest = outcome.longest_stall();
    if stalled.is_empty() {
        writeln!(out, "stalls         none")?;
    } else {
        writeln!(out, "stalls         {}; the longest {}", stalled.join(", "), seconds(longest))?;
    }
    if outcome.totals.delayed_seconds > 0.0 {
        writeln!(out, "slowed down    {}", seconds(outcome.totals.delayed_seconds))?;
    }
    Ok(())
}

fn tree(out: &mut dyn Write, setup: &SimulationSetup, outcome: &SimulationOutcome) -> Result<()> {
    let windows = &outcome.windows;
    let count = TREES_PRINTED.min(windows.len());
    for number in 1..=count {
        let at = windows.len() * number / count - 1;
        let window = &windows[at];
        let minutes = (at + 1) as f64 * setup.window_seconds / 60.0;
        let sizes = window.level_bytes.iter().copied().zip(window.level_runs.iter().copied());
        writeln!(out, "tree {minutes:>5.0} min  {}", levels(sizes))?;
    }
    Ok(())
}

fn start_levels(tree: &SimulatedTree) -> String {
    levels(tree.shape().levels.iter().map(|level| (level.size_bytes(), level.runs.len())))
}

/// Formats the sizes and runs of levels.
fn levels(sizes: impl Iterator<Item = (u64, usize)>) -> String {
    let words =
        sizes.enumerate().filter(|(_, (_, runs))| *runs > 0).map(|(level, (bytes, runs))| {
            let runs = if runs == 1 { String::new() } else { format!(" in {runs}") };
            format!("L{level} {}{runs}", human::bytes(bytes))
        });
    let text = words.collect::<Vec<_>>().join(", ");
    if text.is_empty() { "empty".into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_tree_that_exceeds_its_data_and_still_grows_is_warned_of() {
        assert!(grows_without_bound(&[100, 200, 300, 400], 100.0));
        // It grew, and has settled.
        assert!(!grows_without_bound(&[100, 250, 310, 310], 100.0));
        // A tree that is being loaded.
        assert!(!grows_without_bound(&[0, 30, 60, 100], 100.0));
        assert!(!grows_without_bound(&[], 100.0));
    }
}
