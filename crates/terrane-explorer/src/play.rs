//! A simulation, with its trace and its results.

use std::collections::BTreeMap;

use libm::expm1;
use serde::Serialize;
use terrane_policy::Design;
use terrane_sim::{Simulation, SimulationOutcome, SimulationSetup, SimulationWindow};

use crate::events::events;
use crate::levels;
use crate::request::SimulationRequest;

/// A simulation that ended.
#[derive(Debug, Serialize)]
pub(crate) struct Played {
    /// The shortest text of the design.
    design: String,
    /// The simulated time.
    seconds: f64,
    /// The trace, in the format of [`crate::events`].
    events: Vec<serde_json::Value>,
    /// When the trace became full.
    trace_ended: Option<f64>,
    windows: Windows,
    results: Results,
}

/// Averages over intervals of equal length, by column.
#[derive(Debug, Default, Serialize)]
struct Windows {
    /// The ends of the windows, in seconds.
    at: Vec<f64>,
    /// Completed writes a second.
    rate: Vec<f64>,
    /// Arriving writes a second; `null` in a closed loop.
    offered: Vec<Option<f64>>,
    /// Writes that had arrived and were not completed.
    queued: Vec<f64>,
    /// The part of the window in which writers were stopped.
    stalled: Vec<f64>,
    /// Sorted runs, on average.
    runs: Vec<f64>,
    /// Latencies of writes, in seconds.
    p50: Vec<Option<f64>>,
    p99: Vec<Option<f64>>,
    longest: Vec<Option<f64>>,
    /// Bytes a second written by flushes and merges.
    written: Vec<f64>,
    /// Bytes written per byte of the user, from the start.
    write_amplification: Vec<Option<f64>>,
    /// Bytes of tables and value files per byte of the records.
    space_amplification: Vec<f64>,
    /// Blocks that lookups of existing and of missing keys read.
    found: Vec<f64>,
    missing: Vec<f64>,
    /// The bytes of each level.
    levels: Vec<Vec<u64>>,
    value_bytes: Vec<u64>,
}

/// The results of a simulation.
#[derive(Debug, Serialize)]
struct Results {
    writes: f64,
    /// Writes a second.
    rate: f64,
    /// Arriving writes a second; `null` in a closed loop.
    offered: Option<f64>,
    queued: f64,
    write_amplification: Option<f64>,
    /// `null` without windows, as are the next two.
    space_amplification: Option<f64>,
    /// Blocks that lookups read, averaged over time.
    found: Option<f64>,
    missing: Option<f64>,
    runs: f64,
    most_runs: usize,
    p50: Option<f64>,
    p99: Option<f64>,
    p999: Option<f64>,
    longest: Option<f64>,
    stalls: usize,
    stalled_seconds: f64,
    longest_stall: f64,
    /// The cause of most of it, and its seconds.
    stalled_by: Option<(String, f64)>,
    delayed_seconds: f64,
    flushes: u64,
    merges: u64,
    moves: u64,
    drops: u64,
    /// The size of all tables and value files at the end.
    bytes: u64,
    /// Why the simulation ended early.
    stuck: Option<String>,
}

/// Runs a simulation.
pub(crate) fn play(request: &SimulationRequest) -> Result<Played, String> {
    let setup = request.setup()?;
    let (tree, is_empty) = request.tree(&setup)?;
    let (outcome, _) = Simulation::new(&setup, tree).run(request.seconds);
    let windows = Windows::of(&setup, is_empty, &outcome);
    Ok(Played {
        design: setup.design.to_string(),
        seconds: outcome.seconds,
        events: events(&outcome.trace),
        trace_ended: outcome.trace_ended,
        results: Results::of(&setup, &outcome, &windows),
        windows,
    })
}

/// Returns the bytes of the records that exist after `writes` writes, of which `recent` were made within a time to
/// live.
fn live_bytes(setup: &SimulationSetup, is_empty: bool, writes: f64, recent: f64) -> f64 {
    let (load, mix) = (&setup.workload, &setup.workload.mix);
    let updates = (1.0 - mix.inserts - mix.deletes).max(0.0);
    // The share of the keys that this many uniform writes hit.
    let hit = |writes: f64| -expm1(-writes * updates / load.records);
    let loaded = if is_empty { 0.0 } else { load.records };
    let records = if mix.expiring > 0.0 {
        // Loaded records never expire, until an update replaces them.
        loaded * (1.0 - hit(writes)) + load.records * hit(recent) + recent * mix.inserts
    } else {
        let written = if is_empty { load.records * hit(writes) } else { loaded };
        written + writes * (mix.inserts - mix.deletes)
    };
    (records * load.record_bytes).max(load.record_bytes)
}

impl Windows {
    fn of(setup: &SimulationSetup, is_empty: bool, outcome: &SimulationOutcome) -> Self {
        let mut columns = Self::default();
        let (mut writes, mut user, mut written) = (0.0, 0.0, 0.0);
        let lifetime = setup.workload.mix.ttl_seconds / setup.window_seconds;
        let mut made = Vec::new();
        for (number, window) in outcome.windows.iter().enumerate() {
            let from = number as f64 * setup.window_seconds;
            writes += window.writes;
            made.push(writes);
            let older = (number as f64 - lifetime).round();
            let older = if older >= 0.0 { made.get(older as usize).copied() } else { None };
            let recent = writes - older.unwrap_or(0.0);
            user += window.user_bytes;
            written += window.written_bytes;
            columns.at.push(from + setup.window_seconds);
            columns.write_amplification.push((writes >= 1.0).then(|| written / user));
            columns.offered.push(offered(setup, from));
            columns.push(&setup.design, window, setup.window_seconds);
            let bytes = window.level_bytes.iter().sum::<u64>() + window.value_bytes;
            columns
                .space_amplification
                .push(bytes as f64 / live_bytes(setup, is_empty, writes, recent));
        }
        columns
    }

    /// Adds what a window alone determines.
    fn push(&mut self, design: &Design, window: &SimulationWindow, seconds: f64) {
        self.rate.push(window.rate);
        self.queued.push(window.queued);
        self.stalled.push(window.stalled_seconds / seconds);
        self.runs.push(window.runs);
        self.p50.push(window.latencies.map(|latencies| latencies.p50));
        self.p99.push(window.latencies.map(|latencies| latencies.p99));
        self.longest.push(window.latencies.map(|latencies| latencies.longest));
        self.written.push(window.written_bytes / seconds);
        let levels = window.level_runs.iter().zip(&window.level_bytes);
        let levels: Vec<(f64, f64)> =
            levels.map(|(runs, bytes)| (*runs as f64, *bytes as f64)).collect();
        let lookups = levels::of(design, &levels);
        self.found.push(lookups.found);
        self.missing.push(lookups.missing);
        self.levels.push(window.level_bytes.clone());
        self.value_bytes.push(window.value_bytes);
    }
}

/// Returns the mean rate of arrivals in the window that begins at a time; `None` in a closed loop.
fn offered(setup: &SimulationSetup, from: f64) -> Option<f64> {
    const SAMPLES: u32 = 64;
    let arrival = &setup.workload.arrival;
    let at =
        |sample: u32| from + (f64::from(sample) + 0.5) / f64::from(SAMPLES) * setup.window_seconds;
    let rates: Option<Vec<f64>> = (0..SAMPLES).map(|sample| arrival.rate_at(at(sample))).collect();
    mean(&rates?)
}

/// Returns the mean of a column; `None` if it is empty.
fn mean(column: &[f64]) -> Option<f64> {
    (!column.is_empty()).then(|| column.iter().sum::<f64>() / column.len() as f64)
}

impl Results {
    fn of(setup: &SimulationSetup, outcome: &SimulationOutcome, windows: &Windows) -> Self {
        let totals = &outcome.totals;
        let mut causes: BTreeMap<String, f64> = BTreeMap::new();
        for stall in &outcome.stalls {
            *causes.entry(stall.cause.to_string()).or_default() += stall.until - stall.from;
        }
        let stalled_by = causes.into_iter().max_by(|one, other| one.1.total_cmp(&other.1));
        let quantile = |part| outcome.latencies.quantile(part);
        Self {
            writes: totals.writes,
            rate: totals.writes / outcome.seconds.max(1e-9),
            offered: setup.workload.arrival.mean(),
            queued: outcome.queued,
            write_amplification: totals.write_amplification(),
            space_amplification: mean(&windows.space_amplification),
            found: mean(&windows.found),
            missing: mean(&windows.missing),
            runs: totals.run_seconds / outcome.seconds.max(1e-9),
            most_runs: totals.most_runs,
            p50: quantile(0.5),
            p99: quantile(0.99),
            p999: quantile(0.999),
            longest: quantile(1.0),
            stalls: outcome.stalls.len(),
            stalled_seconds: outcome
                .stalls
                .iter()
                .fold(0.0, |sum, stall| sum + (stall.until - stall.from)),
            longest_stall: outcome.longest_stall(),
            stalled_by,
            delayed_seconds: totals.delayed_seconds,
            flushes: totals.flushes,
            merges: totals.merges,
            moves: totals.moves,
            drops: totals.drops,
            bytes: windows.levels.last().map_or(0, |levels| levels.iter().sum())
                + windows.value_bytes.last().copied().unwrap_or(0),
            stuck: outcome.stuck.clone(),
        }
    }
}
