//! Predicts the costs of a design with the simulator, which uses the engine's policy.
//!
//! Amplification, runs and space are simulated without time: all due work completes before the next
//! memtable is full. Stalls are simulated on the machine, at a rate. The prediction is deterministic.

use terrane::Design;
use terrane_policy::advice::DesignCosts;
use terrane_sim::{
    Arrival, Device, InitialTree, MachineModel, Population, ReadLoad, SimulatedTree, Simulation,
    SimulationOutcome, SimulationSetup, SimulationWindow, Skew, WriteLoad, WriteMix, initial_tree,
};

/// Bounds on the number of buffers to simulate. Designs that gather runs or move whole levels have merges that occur once in a
/// thousand buffers. Partial compaction reaches a steady state sooner, and takes longer to
/// simulate.
const BUFFERS_MIN: f64 = 60.0;
const BUFFERS_MAX: f64 = 1200.0;
const BUFFERS_MAX_OF_RARE_MERGES: f64 = 20_000.0;

/// The number of flushes in a simulation of stalls.
const STALL_BUFFERS: f64 = 120.0;

/// The mean number of writes per key, within the bounds above. It is larger with deletes, because the
/// share of deleted keys takes longer to reach its long-run value.
const ROUNDS: f64 = 2.0;
const ROUNDS_OF_DELETES: f64 = 5.0;

/// Writes per second in a simulation without time; few decisions depend on time alone.
const CALM: f64 = 1000.0;

/// The maximum number of tables to simulate; more tables take longer and lead to the same
/// decisions.
const TABLES_MAX: usize = 800;

/// The maximum share of deletes among updates and deletes. Above it, hardly any record would be left.
const DELETES_MAX: f64 = 0.9;

/// The number of time windows in a simulation.
const WINDOWS: f64 = 96.0;

/// A workload and a machine.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// The number of keys.
    pub records: f64,
    /// Bytes of a key.
    pub key_bytes: f64,
    /// Bytes of a key and its value.
    pub record_bytes: f64,
    /// The skew of updated keys.
    pub skew: Skew,
    /// The share of writes that insert a new key.
    pub inserts: f64,
    /// The share of writes that delete a key. Updates write deleted keys again, so that the number of
    /// keys stays the same.
    pub deletes: f64,
    /// True if the workload writes; without writes the tree is settled.
    pub writes: bool,
    /// The costs of operations.
    pub machine: MachineModel,
    /// The seed of the simulator.
    pub seed: u64,
}

/// A simulated design.
#[derive(Debug, Clone)]
pub struct PlayedDesign {
    /// The costs of the design.
    pub costs: DesignCosts,
    /// The final tree.
    tree: SimulatedTree,
}

impl Scenario {
    fn setup(&self, design: &Design, machine: MachineModel, arrival: Arrival) -> SimulationSetup {
        let workload = WriteLoad {
            records: self.written_keys(),
            key_bytes: self.key_bytes,
            record_bytes: self.record_bytes,
            skew: self.skew,
            arrival,
            writers: 1,
            mix: WriteMix { deletes: self.deletes_of_updates(), ..WriteMix::default() },
            reads: ReadLoad::default(),
        };
        SimulationSetup {
            tables_max: TABLES_MAX,
            ..SimulationSetup::new(design.clone(), workload, machine)
        }
    }

    /// Returns the share of writes that increase the number of keys. The other inserts compensate
    /// for deletes, and count as updates of deleted keys.
    fn growth(&self) -> f64 {
        (self.inserts - self.deletes).max(0.0)
    }

    /// Returns the share of deletes among the writes that do not add keys.
    fn deletes_of_updates(&self) -> f64 {
        let others = (1.0 - self.growth()).max(1e-9);
        (self.deletes / others).clamp(0.0, DELETES_MAX)
    }

    /// Returns the number of keys that writes choose from: the records, and deleted keys that will be
    /// written again.
    fn written_keys(&self) -> f64 {
        self.records / (1.0 - self.deletes_of_updates())
    }

    /// Returns a machine on which merges take no time.
    fn at_once(&self) -> MachineModel {
        let mut machine = MachineModel { budget: None, ..self.machine };
        (machine.costs.flush_seconds, machine.costs.merge_seconds) = (0.0, 0.0);
        machine.device = Device {
            bytes_per_second: 1e15,
            request_seconds: 0.0,
            request_bytes: 1e6,
            concurrency: 1,
        };
        machine
    }

    fn buffer_writes(&self, design: &Design) -> f64 {
        let entry = self.record_bytes + self.machine.costs.memtable_entry_bytes;
        (design.buffer_bytes as f64 / entry).max(1.0)
    }

    /// Returns the bytes of tables that hold each record once.
    fn valid_bytes(&self) -> f64 {
        self.records * (self.record_bytes + self.machine.costs.table_entry_bytes)
    }

    /// Returns how many value files the lookup of an existing key reads.
    fn value_reads(&self, design: &Design) -> f64 {
        let value = (self.record_bytes - self.key_bytes).max(0.0);
        if design.values.is_separated(value as u64) { 1.0 } else { 0.0 }
    }
}

fn buffers_max(design: &Design) -> f64 {
    let strategy = &design.strategy;
    let mut granularities = strategy.granularity.values().iter();
    let moves_tables = granularities.any(|granularity| granularity.tables().is_some());
    let is_even = moves_tables && !strategy.eagerness.gathers();
    if is_even { BUFFERS_MAX } else { BUFFERS_MAX_OF_RARE_MERGES }
}

/// Predicts the costs of a design; `None` if its writers would stall forever.
pub fn costs(design: &Design, world: &Scenario) -> Option<PlayedDesign> {
    let mut setup = world.setup(design, world.at_once(), Arrival::Constant(CALM));
    let buffer = world.buffer_writes(design);
    let most = buffers_max(design);
    let keys = world.written_keys();
    let (loaded, tree) = if keys / buffer <= most {
        // A load is a closed loop, limited by its writer.
        let mut load = setup.clone();
        load.machine.costs.write_seconds = 1.0 / CALM;
        load.window_seconds = keys / CALM / WINDOWS;
        let population = Population::new(keys, world.skew);
        let costs = &setup.machine.costs;
        let sizes = (world.key_bytes, world.record_bytes);
        let empty = SimulatedTree::new(design, population, sizes, costs, setup.tables_max);
        let (outcome, tree) = Simulation::new(&load, empty).load();
        if outcome.stuck.is_some() {
            return None;
        }
        // The first half of a load writes to a tree of fewer levels.
        let all_keys = Scenario { records: world.written_keys(), ..*world };
        let costs = of_windows(design, &all_keys, &outcome, outcome.windows.len() / 2)?;
        (Some(costs), tree)
    } else {
        (None, initial_tree(&setup, InitialTree::Settled, world.seed))
    };
    if !world.writes {
        return Some(at_rest(design, world, tree));
    }
    if let Some(costs) = loaded.filter(|_| world.growth() >= 1.0) {
        return Some(PlayedDesign { costs, tree });
    }
    let rounds = if world.deletes > 0.0 { ROUNDS_OF_DELETES } else { ROUNDS };
    let writes = (rounds * keys).clamp(BUFFERS_MIN * buffer, most * buffer);
    setup.window_seconds = writes / CALM / WINDOWS;
    let (outcome, tree) = Simulation::new(&setup, tree).run(writes / CALM);
    if outcome.stuck.is_some() {
        return None;
    }
    let updated = of_windows(design, world, &outcome, outcome.windows.len() / 3)?;
    let costs = match loaded {
        Some(loaded) => blend(&loaded, &updated, world.growth()),
        // Inserts leave no obsolete versions.
        None => {
            DesignCosts { space: 1.0 + (updated.space - 1.0) * (1.0 - world.growth()), ..updated }
        }
    };
    Some(PlayedDesign { costs, tree })
}

/// Returns the costs from a window to the end; `None` if no write was completed in this time.
fn of_windows(
    design: &Design,
    world: &Scenario,
    outcome: &SimulationOutcome,
    from: usize,
) -> Option<DesignCosts> {
    let windows = outcome.windows.get(from..).unwrap_or_default();
    let count = windows.len().max(1) as f64;
    let mean = |of: &dyn Fn(&SimulationWindow) -> f64| windows.iter().map(of).sum::<f64>() / count;
    let deepest = windows.iter().map(|window| window.level_runs.len()).max().unwrap_or(0);
    let at = |values: &[u64], level: usize| values.get(level).map_or(0.0, |value| *value as f64);
    let levels: Vec<(f64, f64)> = (0..deepest)
        .map(|level| {
            let runs =
                mean(&|window| window.level_runs.get(level).map_or(0.0, |runs| *runs as f64));
            (runs, mean(&|window| at(&window.level_bytes, level)))
        })
        .collect();
    let (found_blocks, missing_blocks, runs) = DesignCosts::of_levels(design, &levels);
    let written = SimulationWindow::write_amplification_of(windows)?;
    let totals = &outcome.totals;
    let read = totals.read_bytes / (totals.flush_bytes + totals.merge_bytes).max(1.0);
    // During a load, not all records are written yet.
    let stored = |window: &SimulationWindow| {
        (window.level_bytes.iter().sum::<u64>() + window.value_bytes) as f64
    };
    let last = windows.last().map_or(0.0, stored);
    let is_load = last < 0.99 * world.valid_bytes();
    let bytes = mean(&stored);
    let space = if is_load { 1.0 } else { (bytes / world.valid_bytes()).max(1.0) };
    Some(DesignCosts {
        written,
        merged: written * read,
        found_blocks,
        missing_blocks,
        value_reads: world.value_reads(design),
        runs,
        space,
        stalled: None,
        p99_seconds: None,
    })
}

/// Returns the costs of a tree without writes.
fn at_rest(design: &Design, world: &Scenario, tree: SimulatedTree) -> PlayedDesign {
    let levels = &tree.shape().levels;
    let levels: Vec<(f64, f64)> =
        levels.iter().map(|level| (level.runs.len() as f64, level.size_bytes() as f64)).collect();
    let (found_blocks, missing_blocks, runs) = DesignCosts::of_levels(design, &levels);
    let tables: f64 = levels.iter().map(|(_, bytes)| bytes).sum();
    let bytes = tables + tree.shape().value_bytes() as f64;
    let costs = DesignCosts {
        written: 0.0,
        merged: 0.0,
        found_blocks,
        missing_blocks,
        value_reads: world.value_reads(design),
        runs,
        space: (bytes / world.valid_bytes()).max(1.0),
        stalled: None,
        p99_seconds: None,
    };
    PlayedDesign { costs, tree }
}

/// Blends two costs.
fn blend(one: &DesignCosts, other: &DesignCosts, part: f64) -> DesignCosts {
    let mixed = |one: f64, other: f64| part * one + (1.0 - part) * other;
    DesignCosts {
        written: mixed(one.written, other.written),
        merged: mixed(one.merged, other.merged),
        found_blocks: mixed(one.found_blocks, other.found_blocks),
        missing_blocks: mixed(one.missing_blocks, other.missing_blocks),
        value_reads: mixed(one.value_reads, other.value_reads),
        runs: mixed(one.runs, other.runs),
        space: mixed(one.space, other.space),
        stalled: None,
        p99_seconds: None,
    }
}

/// Returns the maximum writes per second of a design, in the long run.
pub fn greatest_rate(design: &Design, world: &Scenario, played: &PlayedDesign) -> f64 {
    let setup = world.setup(design, world.machine, Arrival::Closed);
    let moved = world.record_bytes * (played.costs.written + played.costs.merged).max(1.0);
    let guess = world.machine.device.bytes_per_second / moved;
    let seconds = STALL_BUFFERS * world.buffer_writes(design) / guess;
    let setup = SimulationSetup { window_seconds: seconds / WINDOWS, ..setup };
    let outcome = Simulation::new(&setup, played.tree.clone()).run(seconds).0;
    outcome.rate_from(seconds / 4.0)
}

/// Returns the share of time for which writers stall at `rate` writes per second, and the 99th
/// percentile of their latency in seconds.
pub fn held_up(design: &Design, world: &Scenario, played: &PlayedDesign, rate: f64) -> (f64, f64) {
    let setup = world.setup(design, world.machine, Arrival::Constant(rate));
    let seconds = STALL_BUFFERS * world.buffer_writes(design) / rate;
    let setup = SimulationSetup { window_seconds: seconds / WINDOWS, ..setup };
    let outcome = Simulation::new(&setup, played.tree.clone()).run(seconds).0;
    let lost = outcome.stalled_seconds(None) + outcome.totals.delayed_seconds;
    let part = (lost / outcome.seconds.max(1e-9)).min(1.0);
    let part = if outcome.stuck.is_some() { 1.0 } else { part };
    // If no write is completed, each waits at least until the end.
    (part, outcome.latencies.quantile(0.99).unwrap_or(outcome.seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(writes: bool) -> Scenario {
        Scenario {
            records: 2e5,
            key_bytes: 16.0,
            record_bytes: 200.0,
            skew: Skew::Uniform,
            inserts: 0.0,
            deletes: 0.0,
            writes,
            machine: MachineModel::default(),
            seed: 1,
        }
    }

    fn of(text: &str, world: &Scenario) -> DesignCosts {
        let design: Design = format!("{text}; buffer=512KiB; table=256KiB").parse().unwrap();
        costs(&design, world).unwrap().costs
    }

    #[test]
    fn leveling_reads_less_and_tiering_writes_less() {
        let world = world(true);
        let (leveled, tiered) = (of("leveling T=4", &world), of("tiering T=4", &world));
        assert!(leveled.written > 1.5 * tiered.written, "{leveled:?} {tiered:?}");
        assert!(leveled.runs < tiered.runs && leveled.missing_blocks < tiered.missing_blocks);
        assert!(leveled.space < tiered.space && leveled.space >= 1.0);
        assert_eq!(of("tiering T=4", &world), tiered);
    }

    #[test]
    fn read_only_data_is_never_rewritten_and_inserts_leave_no_garbage() {
        let quiet = of("tiering T=4", &world(false));
        assert_eq!((quiet.written, quiet.merged), (0.0, 0.0));
        let inserted = of("tiering T=4", &Scenario { inserts: 1.0, ..world(true) });
        assert!((inserted.space - 1.0).abs() < 0.01, "{inserted:?}");
        assert!(inserted.written > 1.0);
    }

    #[test]
    fn deletes_take_space_until_their_tombstones_reach_the_last_level() {
        let world = world(true);
        let of = |text: &str, deletes: f64| of(text, &Scenario { deletes, ..world });
        for design in ["tiering T=4", "leveling T=4"] {
            let (none, some) = (of(design, 0.0), of(design, 0.3));
            assert!(some.space > none.space, "{design}: {none:?} {some:?}");
        }
        // Leveling purges more often.
        let wasted = |design| of(design, 0.3).space;
        assert!(wasted("tiering T=4") > wasted("leveling T=4"));
    }

    #[test]
    fn writers_stall_above_the_maximum_rate() {
        let design: Design = "leveling T=10; buffer=512KiB; table=256KiB".parse().unwrap();
        let world = world(true);
        let played = costs(&design, &world).unwrap();
        let greatest = greatest_rate(&design, &world, &played);
        assert!(greatest > 1000.0, "{greatest}");
        let (calm, pressed) = (
            held_up(&design, &world, &played, greatest / 4.0),
            held_up(&design, &world, &played, greatest * 2.0),
        );
        assert!(calm.0 < 0.05 && pressed.0 > calm.0, "{calm:?} {pressed:?}");
        assert!(pressed.1 > calm.1);
    }
}
