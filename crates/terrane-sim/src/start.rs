//! Initial trees.

use std::fmt;
use std::str::FromStr;

use terrane_policy::random::SplitMix64;
use terrane_policy::{ParseError, Run, Scheduler, TreeShape};

use crate::keys::{Content, Population};
use crate::simulation::{Simulation, SimulationSetup};
use crate::tree::SimulatedTree;

/// [`InitialTree::Auto`] simulates the load of a tree if it takes at most this many flushes.
const FLUSHES_MAX: f64 = 20_000.0;

/// The deepest level of a settled tree.
const LEVELS_MAX: usize = 20;

/// The state of a tree before the first write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InitialTree {
    /// An empty tree.
    Empty,
    /// All records have been written once in random order, and all merges are complete.
    Loaded,
    /// A tree after a long run: all records are in its last level, and the levels above are filled
    /// at random. For trees that would take long to load.
    Settled,
    /// [`Self::Loaded`], or [`Self::Settled`] if the load would take too many flushes.
    Auto,
}

impl fmt::Display for InitialTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "empty",
            Self::Loaded => "loaded",
            Self::Settled => "settled",
            Self::Auto => "auto",
        })
    }
}

impl FromStr for InitialTree {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "empty" => Ok(Self::Empty),
            "loaded" => Ok(Self::Loaded),
            "settled" => Ok(Self::Settled),
            "auto" => Ok(Self::Auto),
            _ => Err(ParseError::new("start", text, "empty, loaded, settled or auto")),
        }
    }
}

/// Returns a tree with the runs of a real one, each with its number of entries. The oldest run
/// counts as loaded records, the others as updates.
pub fn tree_like(setup: &SimulationSetup, shape: &TreeShape) -> SimulatedTree {
    let entries = |run: &Run| run.tables.iter().map(|table| table.entries as f64).sum();
    let levels = shape.levels.iter().map(|level| level.runs.iter().map(entries).collect());
    tree_of_runs(setup, &levels.collect::<Vec<_>>())
}

/// Like [`tree_like`], for the entries of the runs of each level, newest first.
pub fn tree_of_runs(setup: &SimulationSetup, levels: &[Vec<f64>]) -> SimulatedTree {
    let mut tree = initial_tree(setup, InitialTree::Empty, 0);
    let mut is_oldest = true;
    for (level, runs) in levels.iter().enumerate().rev() {
        for entries in runs.iter().rev() {
            let content = match is_oldest {
                true => tree.keys().after_load(*entries),
                false => holding(tree.keys(), *entries),
            };
            is_oldest = false;
            tree.add_run(level, &content, (0, 0), 0);
        }
    }
    tree
}

/// Returns the initial trees of a simulation of several trees.
pub fn initial_trees(setup: &SimulationSetup, start: InitialTree, seed: u64) -> Vec<SimulatedTree> {
    let alone = setup.alone();
    alone.iter().zip(seed..).map(|(setup, seed)| initial_tree(setup, start, seed)).collect()
}

/// Returns the initial tree of a simulation, or the first of several. The fill of a settled tree's
/// levels depends on `seed`.
pub fn initial_tree(setup: &SimulationSetup, start: InitialTree, seed: u64) -> SimulatedTree {
    let workload = &setup.workload;
    let mut keys = Population::new(workload.records, workload.skew);
    if workload.mix.inserts > 0.0 {
        keys = keys.with_inserts();
    }
    let costs = &setup.machine.costs;
    let sizes = (workload.key_bytes, workload.record_bytes);
    let empty = SimulatedTree::new(&setup.design, keys, sizes, costs, setup.tables_max);
    let entry = workload.record_bytes + costs.memtable_entry_bytes;
    let flushes = workload.records * entry / setup.design.buffer_bytes.max(1) as f64;
    match start {
        InitialTree::Empty => empty,
        InitialTree::Loaded => loaded(setup, empty),
        InitialTree::Auto if flushes <= FLUSHES_MAX => loaded(setup, empty),
        InitialTree::Settled | InitialTree::Auto => settled(setup, empty, seed),
    }
}

fn loaded(setup: &SimulationSetup, empty: SimulatedTree) -> SimulatedTree {
    let mut setup = setup.clone();
    // The schedule of merges during the load must not depend on the design under test.
    setup.design.scheduler = Scheduler::Fair;
    setup.design.constraint.max_rate = None;
    setup.others.clear();
    setup.workload.writers = 1;
    setup.trace_max = 0;
    Simulation::new(&setup, empty).load().1
}

/// Fills levels from the deepest upwards.
fn settled(setup: &SimulationSetup, mut tree: SimulatedTree, seed: u64) -> SimulatedTree {
    let design = &setup.design;
    let everything = tree.keys().after_load(tree.keys().records());
    let (bytes, entries) = tree.size_of(&everything);
    let last = (1..LEVELS_MAX)
        .find(|level| design.capacity_bytes(*level, *level) as f64 >= bytes)
        .unwrap_or(LEVELS_MAX);
    let mut random = SplitMix64::new(seed);
    tree.add_run(last, &everything, (0, 0), 0);
    let entry_bytes = bytes / entries.max(1.0);
    let whole_files = design.strategy.granularity.values().iter().any(|one| one.tables().is_some());
    for level in (1..last).rev() {
        let allowed = design.strategy.runs_allowed(level, last).max(1);
        let capacity = design.capacity_bytes(level, last) as f64;
        // A level of one run stays full if compactions take single tables from it, but varies
        // between empty and full if they take the whole level.
        let (runs, each) = if allowed > 1 {
            ((random.unit() * f64::from(allowed + 1)) as u32, capacity / f64::from(allowed + 1))
        } else if whole_files {
            (1, capacity)
        } else {
            (1, capacity * random.unit())
        };
        for _ in 0..runs {
            let content = holding(tree.keys(), each / entry_bytes);
            tree.add_run(level, &content, (0, 0), 0);
        }
    }
    tree
}

/// Returns the content of a run of updates with this many entries.
fn holding(keys: &Population, entries: f64) -> Content {
    let (mut low, mut high) = (0.0, entries.min(keys.records()) * 1e3);
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        let holds = keys.entries(&keys.after_updates(middle), 1.0);
        if holds < entries { low = middle } else { high = middle }
    }
    keys.after_updates(high)
}
