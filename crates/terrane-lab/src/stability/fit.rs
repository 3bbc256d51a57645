//! The simulator's constants, from what the engine counted in the two phases of an evaluation.
//!
//! | constant | from |
//! |---|---|
//! | bytes of an entry in a table | bytes over entries of all tables |
//! | bytes of an entry in a memtable | entries and number of the flushes of the running phase |
//! | time of an entry in a flush | wall time of flushes over writes; with a budget, during the load, which has none |
//! | time of an entry in a merge | processor time of merges over their input entries |
//! | time of a write | the median processing latency |
//! | bandwidth | the factor of the budget, or of the speed of merges, whose replay is closest to the run |

use terrane_policy::cost::{POINTER_BYTES, VALUE_RECORD_BYTES};
use terrane_policy::{Design, ParseError, TreeShape};
use terrane_sim::{
    Device, MachineCosts, MachineModel, Population, ReadLoad, Simulation, SimulationOutcome,
    SimulationSetup, WriteLoad, WriteMix, tree_like,
};

use super::counted::{CountedRun, PhaseCounts};
use super::residual::Residual;

/// The maximum number of simulated tables, so that a month takes seconds.
const TABLES_MAX: usize = 800;

/// The ranges of factors to try. A budget is multiplied, because a busy machine loses part of it;
/// otherwise the merge speed by processor time, because merges share processors with writers.
const OF_BUDGET: (f64, f64) = (0.6, 1.02);
const OF_SPEED: (f64, f64) = (0.1, 2.0);

/// The number of factors to try, and the number of refinements around the best.
const FACTORS: i32 = 28;
const REFINEMENTS: u32 = 4;

/// Returns the setup of a simulation that replays the running phase, and the tree at its start.
///
/// # Errors
///
/// A sentence if the run does not determine the constants, or cannot be simulated.
pub(super) fn fitted(run: &CountedRun) -> Result<(SimulationSetup, TreeShape), String> {
    if run.all.merges < 1.0 {
        return Err("nothing was merged, so the cost of merges is unknown; use longer phases, or \
                    a smaller buffer"
            .to_owned());
    }
    if run.running.flushes < 2.0 {
        return Err("fewer than two memtables were flushed in the running phase; use a longer \
                    --running, or a smaller buffer"
            .to_owned());
    }
    let unread = |error: ParseError| format!("the run cannot be read: {error}");
    let design: Design = run.design.parse().map_err(unread)?;
    let workload = WriteLoad {
        records: run.records,
        key_bytes: run.key_bytes,
        record_bytes: run.record_bytes,
        skew: run.skew.parse().map_err(unread)?,
        arrival: run.arrival.parse().map_err(unread)?,
        writers: run.writers,
        mix: WriteMix::default(),
        reads: ReadLoad::default(),
    };
    let mut machine = MachineModel {
        budget: run.budget,
        device: Device {
            bytes_per_second: 1e15,
            request_seconds: 0.0,
            request_bytes: 1e6,
            concurrency: 1,
        },
        slots: run.merge_threads,
        ..MachineModel::default()
    };
    machine.costs = costs(&workload, &design, run);
    let mut setup = SimulationSetup::new(design, workload, machine);
    setup.tables_max = TABLES_MAX;
    setup.window_seconds = (run.seconds / 60.0).max(0.1);
    let shape: TreeShape = run.shape.parse().map_err(unread)?;
    fit_bandwidth(&mut setup, run, &shape);
    Ok((setup, shape))
}

fn costs(workload: &WriteLoad, design: &Design, run: &CountedRun) -> MachineCosts {
    let WriteLoad { key_bytes, record_bytes, .. } = *workload;
    let is_separated = design.values.is_separated((record_bytes - key_bytes).max(0.0) as u64);
    let in_table = if is_separated { key_bytes + POINTER_BYTES } else { record_bytes };
    let entry_bytes = run.entry_bytes;
    let flushed_bytes =
        if is_separated { entry_bytes + record_bytes + VALUE_RECORD_BYTES } else { entry_bytes };
    let entries = run.running.flush_bytes / run.running.flushes.max(1.0) / flushed_bytes.max(1.0);
    let writes = writes_of_memtable(workload, entries, run, design);
    let merged = run.all.read_bytes / entry_bytes.max(1.0);
    let processor = run.all.merge_cpu_seconds;
    let merge_seconds = if processor > 0.0 { processor } else { run.all.merge_seconds };
    let defaults = MachineModel::default().costs;
    MachineCosts {
        write_seconds: run.write_seconds.max(1e-8),
        flush_seconds: run.flush_seconds,
        merge_seconds: merge_seconds / merged.max(1.0),
        memtable_entry_bytes: (design.buffer_bytes as f64 / writes - record_bytes).max(0.0),
        table_entry_bytes: entry_bytes - in_table,
        ..defaults
    }
}

/// Returns the number of updates in a memtable whose flush wrote this many entries.
///
/// If every memtable contains most keys of the workload, the number of entries says little about the
/// updates. Therefore the result is at most the writes divided by the flushes, and at least the writes
/// divided by the flushes plus the memtables unflushed at the end.
fn writes_of_memtable(
    workload: &WriteLoad,
    entries: f64,
    run: &CountedRun,
    design: &Design,
) -> f64 {
    let keys = Population::new(workload.records, workload.skew);
    let PhaseCounts { writes, flushes, .. } = run.running;
    let unflushed = f64::from(design.constraint.stop_buffers) + 1.0;
    let (mut below, mut above) = (writes / (flushes + unflushed), writes / flushes.max(1.0));
    for _ in 0..60 {
        let middle = f64::midpoint(below, above);
        let distinct = keys.entries(&keys.after_updates(middle), 1.0);
        if distinct < entries { below = middle } else { above = middle }
    }
    above.max(1.0)
}

/// Replays the running phase from a tree of this shape.
pub(super) fn replayed(
    setup: &SimulationSetup,
    shape: &TreeShape,
    seconds: f64,
) -> SimulationOutcome {
    Simulation::new(setup, tree_like(setup, shape)).run(seconds).0
}

/// Fits the budget, or the merge speed if there is no budget, so that the replay is as close to the run
/// as possible. This single factor must fit all four figures of a [`Residual`].
fn fit_bandwidth(setup: &mut SimulationSetup, run: &CountedRun, shape: &TreeShape) {
    let machine = setup.machine;
    let with = |factor: f64| {
        let mut machine = machine;
        match &mut machine.budget {
            Some(budget) => *budget *= factor,
            None => machine.costs.merge_seconds /= factor,
        }
        machine
    };
    let (low, high) = if machine.budget.is_some() { OF_BUDGET } else { OF_SPEED };
    let growth = (high / low).powf(1.0 / f64::from(FACTORS - 1));
    let mut best = (f64::INFINITY, high);
    let mut consider = |factor: f64, best: &mut (f64, f64)| {
        setup.machine = with(factor);
        let found = Residual::of(run, &replayed(setup, shape, run.seconds)).misfit();
        // Few merges end during a run, so many factors give the same misfit; the first one wins.
        if found < best.0 {
            *best = (found, factor);
        }
    };
    for number in 0..FACTORS {
        consider(high / growth.powi(number), &mut best);
    }
    let mut width = growth.sqrt();
    for _ in 0..REFINEMENTS {
        let middle = best.1;
        consider((middle * width).min(high), &mut best);
        consider(middle / width, &mut best);
        width = width.sqrt();
    }
    setup.machine = with(best.1);
}
