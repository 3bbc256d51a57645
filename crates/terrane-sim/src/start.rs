//! Trees to begin with.

use std::fmt;
use std::str::FromStr;

use terrane_policy::{ParseError, Scheduler};

use crate::keys::{Content, Population};
use crate::simulation::{Setup, Simulation};
use crate::tree::Tree;

/// More flushes than this are not played to load a tree.
const FLUSHES_MAX: f64 = 20_000.0;

/// Levels are not filled beyond this one.
const LEVELS_MAX: usize = 20;

/// What a tree is like before the first write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// There is nothing in it.
    Empty,
    /// All records were written once in random order, and all merges ended.
    Loaded,
    /// All records are in its last levels, and the levels above are as full as chance has it: what a
    /// tree is like after a long time. For trees that would take long to load.
    Settled,
    /// Loaded, or settled where that would take too long.
    Auto,
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "empty",
            Self::Loaded => "loaded",
            Self::Settled => "settled",
            Self::Auto => "auto",
        })
    }
}

impl FromStr for Start {
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

/// A tree for a simulation to begin with. How full levels of a settled tree are follows from `seed`.
pub fn begin(setup: &Setup, start: Start, seed: u64) -> Tree {
    let workload = &setup.workload;
    let keys = Population::new(workload.records, workload.skew);
    let costs = &setup.machine.costs;
    let empty = Tree::new(&setup.design, keys, workload.record_bytes, costs, setup.tables_max);
    let entry = workload.record_bytes + costs.memtable_entry_bytes;
    let flushes = workload.records * entry / setup.design.buffer_bytes.max(1) as f64;
    match start {
        Start::Empty => empty,
        Start::Loaded => loaded(setup, empty),
        Start::Auto if flushes <= FLUSHES_MAX => loaded(setup, empty),
        Start::Settled | Start::Auto => settled(setup, empty, seed),
    }
}

fn loaded(setup: &Setup, empty: Tree) -> Tree {
    let mut setup = setup.clone();
    // How merges were scheduled then is no part of what is asked.
    setup.design.scheduler = Scheduler::Fair;
    setup.design.constraint.max_rate = None;
    setup.workload.writers = 1;
    Simulation::new(&setup, empty).load().1
}

/// Fills levels from the deepest one up.
fn settled(setup: &Setup, mut tree: Tree, seed: u64) -> Tree {
    let design = &setup.design;
    let everything = tree.keys().after_load(tree.keys().records());
    let (bytes, entries) = tree.size_of(&everything);
    let last = (1..LEVELS_MAX)
        .find(|level| design.capacity_bytes(*level, *level) as f64 >= bytes)
        .unwrap_or(LEVELS_MAX);
    let mut random = seed;
    let mut chance = move || {
        // SplitMix64.
        random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    };
    tree.add_run(last, &everything, (0, 0), 0);
    let entry_bytes = bytes / entries.max(1.0);
    let whole_files = design.strategy.granularity.values().iter().any(|one| one.tables().is_some());
    for level in (1..last).rev() {
        let allowed = design.strategy.runs_allowed(level, last).max(1);
        let capacity = design.capacity_bytes(level, last) as f64;
        // A level of one run is full where tables leave it one by one, and anything between empty
        // and full where all of it leaves.
        let (runs, each) = if allowed > 1 {
            ((chance() * f64::from(allowed + 1)) as u32, capacity / f64::from(allowed + 1))
        } else if whole_files {
            (1, capacity)
        } else {
            (1, capacity * chance())
        };
        for _ in 0..runs {
            let content = holding(tree.keys(), each / entry_bytes);
            tree.add_run(level, &content, (0, 0), 0);
        }
    }
    tree
}

/// What so many entries are after updates.
fn holding(keys: &Population, entries: f64) -> Content {
    let (mut low, mut high) = (0.0, entries.min(keys.records()) * 1e3);
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        let holds = keys.entries(&keys.after_updates(middle), 1.0);
        if holds < entries { low = middle } else { high = middle }
    }
    keys.after_updates(high)
}
