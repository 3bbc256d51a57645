//! The simulator's constants, from what the engine counted in the two phases of an evaluation.
//!
//! | constant | from |
//! |---|---|
//! | bytes of an entry in a table | bytes over entries of all tables |
//! | bytes of an entry in a memtable | entries of the flushes of the running phase |
//! | time of an entry in a flush | wall time of flushes over writes |
//! | time of an entry in a merge | processor time of merges over their input entries |
//! | time of a write | the median processing latency |
//! | bandwidth | the factor with which simulated merges take as long per byte as the real ones |

use terrane::{Design, IoBudget, Stats};
use terrane_policy::TreeShape;
use terrane_sim::{
    Arrival, Device, MachineCosts, MachineModel, Population, ReadLoad, Simulation,
    SimulationOutcome, SimulationSetup, WriteLoad, WriteMix, tree_like,
};
use terrane_workload::stability::{Arrival as DrivenArrival, Rate, TwoPhaseReport};

use super::plan::StabilityPlan;
use crate::simulation::mix::skew_of;

/// The maximum number of simulated tables, so that a month takes seconds.
const TABLES_MAX: usize = 800;

/// Bytes of a pointer to a value apart in a table, and of a value's record besides key and value.
const POINTER_BYTES: f64 = 19.0;
const VALUE_RECORD_BYTES: f64 = 32.0;

/// The factors of the bandwidth that are tried: of a budget, of which a busy machine loses a part,
/// and of the speed of merges without one.
const OF_BUDGET: (f64, f64) = (0.3, 1.05);
const OF_SPEED: (f64, f64) = (0.02, 1.5);

/// What the engine counted.
#[derive(Debug, Clone)]
pub(super) struct CountedRun {
    pub(super) before_testing: Stats,
    pub(super) before_running: Stats,
    pub(super) after: Stats,
    /// The tree when the running phase started.
    pub(super) shape: TreeShape,
    /// The limit on bytes written during the phases.
    pub(super) budget: IoBudget,
}

impl CountedRun {
    /// Returns the growth of a counter in both phases.
    fn in_all(&self, of: fn(&Stats) -> u64) -> f64 {
        of(&self.after).saturating_sub(of(&self.before_testing)) as f64
    }

    /// Returns the growth of a counter in the running phase.
    pub(super) fn in_running(&self, of: fn(&Stats) -> u64) -> f64 {
        of(&self.after).saturating_sub(of(&self.before_running)) as f64
    }
}

/// Returns the setup of a simulation that replays the running phase.
///
/// # Errors
///
/// A sentence if the run does not determine the constants, or cannot be simulated.
pub(super) fn fitted(
    plan: &StabilityPlan,
    design: &Design,
    report: &TwoPhaseReport,
    counted: &CountedRun,
) -> Result<SimulationSetup, String> {
    if plan.indexes.is_some() {
        return Err("the simulator plays one tree, and indexes are trees of their own".to_owned());
    }
    let run = &plan.phases.run;
    let distribution = run.distribution.unwrap_or(terrane_workload::Distribution::Uniform);
    let skew = skew_of(distribution)
        .ok_or_else(|| format!("the simulator has no keys distributed as {distribution}"))?;
    if counted.in_all(|stats| stats.compactions) < 1.0 {
        return Err("nothing was merged, so the cost of merges is unknown; use longer phases, or \
                    a smaller buffer"
            .to_owned());
    }
    if counted.in_running(|stats| stats.flushes) < 2.0 {
        return Err("fewer than two memtables were flushed in the running phase; use a longer \
                    --running, or a smaller buffer"
            .to_owned());
    }
    let record_bytes = plan.bytes_per_write();
    let key_bytes = run.key_size_bytes as f64;
    let workload = WriteLoad {
        records: run.num as f64,
        key_bytes,
        record_bytes,
        skew,
        arrival: arrival(plan, report.testing.per_second()),
        writers: plan.phases.writers,
        mix: WriteMix::default(),
        reads: ReadLoad::default(),
    };
    let mut machine = MachineModel {
        budget: match counted.budget {
            IoBudget::Unlimited => None,
            IoBudget::Total(bytes) | IoBudget::Leftover(bytes) => Some(bytes as f64),
        },
        device: Device {
            bytes_per_second: 1e15,
            request_seconds: 0.0,
            request_bytes: 1e6,
            concurrency: 1,
        },
        slots: plan.merge_threads,
        ..MachineModel::default()
    };
    machine.costs = costs(&workload, design, report, counted);
    let mut setup = SimulationSetup::new(design.clone(), workload, machine);
    setup.tables_max = TABLES_MAX;
    setup.window_seconds = (report.running.seconds / 60.0).max(0.1);
    fit_bandwidth(&mut setup, report, counted);
    Ok(setup)
}

/// Returns the arrivals of the running phase.
fn arrival(plan: &StabilityPlan, maximum: f64) -> Arrival {
    let of = |rate: Rate| match rate {
        Rate::PerSecond(rate) => rate,
        Rate::OfMaximum(percent) => percent / 100.0 * maximum,
    };
    match plan.phases.arrival {
        DrivenArrival::Constant => Arrival::Constant(plan.phases.utilization * maximum),
        DrivenArrival::Burst { low, high } => Arrival::Burst {
            low: of(low.0).max(1e-9),
            low_seconds: low.1,
            high: of(high.0).max(1e-9),
            high_seconds: high.1,
        },
    }
}

fn costs(
    workload: &WriteLoad,
    design: &Design,
    report: &TwoPhaseReport,
    counted: &CountedRun,
) -> MachineCosts {
    let WriteLoad { key_bytes, record_bytes, .. } = *workload;
    let is_apart = design.values.is_apart((record_bytes - key_bytes).max(0.0) as u64);
    let in_table = if is_apart { key_bytes + POINTER_BYTES } else { record_bytes };
    let after = &counted.after;
    let entry_bytes = after.table_bytes as f64 / (after.table_entries as f64).max(1.0);
    let flushed_bytes =
        if is_apart { entry_bytes + record_bytes + VALUE_RECORD_BYTES } else { entry_bytes };
    let entries = counted.in_running(|stats| stats.flush_bytes_written)
        / counted.in_running(|stats| stats.flushes).max(1.0)
        / flushed_bytes.max(1.0);
    let writes = writes_of_memtable(workload, entries);
    let merged = counted.in_all(|stats| stats.compaction_bytes_read) / entry_bytes.max(1.0);
    let processor = counted.in_all(|stats| stats.compaction_cpu_micros);
    let wall = counted.in_all(|stats| stats.compaction_times.sum_micros());
    let merge_micros = if processor > 0.0 { processor } else { wall };
    let defaults = MachineModel::default().costs;
    MachineCosts {
        write_seconds: (report.running.processing.percentile_micros(50.0) / 1e6).max(1e-8),
        flush_seconds: counted.in_all(|stats| stats.flush_micros)
            / 1e6
            / counted.in_all(|stats| stats.writes).max(1.0),
        merge_seconds: merge_micros / 1e6 / merged.max(1.0),
        memtable_entry_bytes: (design.buffer_bytes as f64 / writes - record_bytes).max(0.0),
        table_entry_bytes: entry_bytes - in_table,
        ..defaults
    }
}

/// Returns how many updates a memtable with this many distinct keys took.
fn writes_of_memtable(workload: &WriteLoad, entries: f64) -> f64 {
    let keys = Population::new(workload.records, workload.skew);
    let (mut below, mut above) = (entries, entries * 100.0);
    for _ in 0..60 {
        let middle = f64::midpoint(below, above);
        let distinct = keys.entries(&keys.after_updates(middle), 1.0);
        if distinct < entries { below = middle } else { above = middle }
    }
    above.max(1.0)
}

/// Replays the running phase of `seconds`.
pub(super) fn replayed(
    setup: &SimulationSetup,
    counted: &CountedRun,
    seconds: f64,
) -> SimulationOutcome {
    Simulation::new(setup, tree_like(setup, &counted.shape)).run(seconds).0
}

/// Fits the budget, or without one the speed of merges, so that merges take as long per byte read as
/// in the run.
fn fit_bandwidth(setup: &mut SimulationSetup, report: &TwoPhaseReport, counted: &CountedRun) {
    let read = counted.in_running(|stats| stats.compaction_bytes_read);
    let wall = counted.in_running(|stats| stats.compaction_times.sum_micros()) / 1e6;
    if read <= 0.0 || wall <= 0.0 {
        return;
    }
    let machine = setup.machine;
    let with = |factor: f64| {
        let mut machine = machine;
        match &mut machine.budget {
            Some(budget) => *budget *= factor,
            None => machine.costs.merge_seconds /= factor,
        }
        machine
    };
    let (mut below, mut above) = if machine.budget.is_some() { OF_BUDGET } else { OF_SPEED };
    for _ in 0..12 {
        let middle = f64::midpoint(below, above);
        setup.machine = with(middle);
        let totals = replayed(setup, counted, report.running.seconds).totals;
        let is_slow = totals.merge_seconds / totals.read_bytes.max(1.0) > wall / read;
        if is_slow { below = middle } else { above = middle }
    }
    setup.machine = with(f64::midpoint(below, above));
}
