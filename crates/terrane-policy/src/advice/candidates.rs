//! The candidates: the catalogue with given sizes, and neighbours of a good design.
//!
//! The user sets sizes, memtable and filter memory; candidates differ only in strategy and in where
//! they store values. Every candidate therefore has the buffer, table and block size, memtable and
//! compression of the base design, and the same average number of filter bits per key, however it
//! allocates them.

use crate::catalogue;
use crate::design::{Design, FilterAllocation, PerLevel, ValueSeparation, Values};
use crate::strategy::{Eagerness, Granularity, Growth, Movement, RunLimit, Runs, Strategy};

use super::words::summary;

/// Size ratios to try.
const RATIOS: [u32; 9] = [2, 3, 4, 5, 6, 8, 10, 12, 16];

/// Numbers of runs in level 0 to try, in addition to the size ratio.
const LEVEL0_RUNS: [u32; 4] = [1, 2, 4, 8];

/// Capacities of level 1 to try, as multiples of the buffer size.
const BASE_BUFFERS: [u64; 3] = [4, 10, 40];

/// The thresholds of separated values to try, in bytes.
const THRESHOLDS: [u64; 2] = [1 << 10, 4 << 10];

/// Returns each design of the catalogue once, with its name and with the sizes of `base`, for values
/// of `value_bytes` bytes.
pub fn catalogue_on(base: &Design, filter_bits: f64, value_bytes: u64) -> Vec<(String, Design)> {
    let mut found: Vec<(String, Design)> = Vec::new();
    for entry in catalogue::ALL {
        let mut design = on_sizes(&(entry.design)(), base, filter_bits);
        if !design.values.is_separated(value_bytes) {
            design.values = Values::Inline;
        }
        let is_new = found.iter().all(|(_, known)| *known != design);
        if is_new && design.validate().is_ok() {
            found.push((entry.name.to_owned(), design));
        }
    }
    found
}

/// Returns `design` with the sizes of `base`, and scales the capacity of level 1 in proportion.
fn on_sizes(design: &Design, base: &Design, filter_bits: f64) -> Design {
    let mut made = design.clone();
    let scaled = |bytes: u64| {
        let scaled = u128::from(bytes) * u128::from(base.buffer_bytes)
            / u128::from(design.buffer_bytes.max(1));
        u64::try_from(scaled).unwrap_or(u64::MAX).max(1)
    };
    made.strategy.base_bytes = design.strategy.base_bytes.map(scaled);
    made.buffer_bytes = base.buffer_bytes;
    made.table_bytes = base.table_bytes;
    made.block_bytes = base.block_bytes;
    made.memtable = base.memtable;
    made.compression = base.compression.clone();
    made.filter_bits = PerLevel::all(filter_bits);
    made
}

/// Returns the designs that differ from `design` in a single choice, with their texts, for values of
/// `value_bytes` bytes.
pub fn neighbours(design: &Design, value_bytes: u64) -> Vec<(String, Design)> {
    let mut found = Vec::new();
    let mut add = |change: &dyn Fn(&mut Design)| {
        let mut made = design.clone();
        change(&mut made);
        if made != *design && made.validate().is_ok() {
            found.push((summary(&made), made));
        }
    };
    for ratio in near(&RATIOS, design.strategy.size_ratio) {
        add(&|design| set_ratio(&mut design.strategy, ratio));
    }
    if !design.strategy.eagerness.gathers() {
        for runs in near(&LEVEL0_RUNS, design.strategy.level0_runs) {
            add(&|design| design.strategy.level0_runs = runs);
        }
        for buffers in BASE_BUFFERS {
            add(&|design| design.strategy.base_bytes = Some(buffers * design.buffer_bytes));
        }
    }
    for eagerness in layouts() {
        add(&|design| set_eagerness(design, eagerness.clone()));
    }
    if !design.strategy.eagerness.gathers() {
        for granularity in [Granularity::File, Granularity::Files(4), Granularity::Level] {
            add(&|design| set_granularity(&mut design.strategy, granularity));
        }
        for movement in [Movement::LeastOverlap, Movement::RoundRobin, Movement::Oldest] {
            add(&|design| {
                if design.strategy.granularity.values().iter().any(|one| one.tables().is_some()) {
                    design.strategy.movement = PerLevel::all(vec![movement]);
                }
            });
        }
    }
    if design.values != Values::Inline {
        add(&|design| design.values = Values::Inline);
    }
    // A threshold above the size of the values would change nothing.
    for threshold in THRESHOLDS.into_iter().filter(|threshold| value_bytes >= *threshold) {
        if design.values == Values::Inline {
            add(&|design| design.values = Values::Separate(ValueSeparation::at(threshold)));
        }
    }
    add(&|design| {
        design.filter_allocation = match design.filter_allocation {
            FilterAllocation::Given => FilterAllocation::Monkey,
            FilterAllocation::Monkey => FilterAllocation::Given,
        };
    });
    found
}

/// Returns the list entry closest to a value, and that entry's neighbours.
fn near(values: &[u32], value: u32) -> impl Iterator<Item = u32> {
    let at = values.partition_point(|one| *one < value);
    let from = at.saturating_sub(1);
    values.get(from..(at + 2).min(values.len())).unwrap_or_default().to_vec().into_iter()
}

/// Returns layouts, ordered by the number of runs that they keep, lowest first.
fn layouts() -> Vec<Eagerness> {
    let (few, last) = (RunLimit::Fixed(2), Some(RunLimit::Fixed(1)));
    vec![
        Eagerness::Leveling,
        Eagerness::OneLeveling,
        Eagerness::Hybrid(Runs::new(few, [], last)),
        Eagerness::Hybrid(Runs::new(RunLimit::Fixed(4), [], last)),
        Eagerness::LazyLeveling,
        Eagerness::Hybrid(Runs::new(RunLimit::Tiered, [], Some(few))),
        Eagerness::Tiering,
    ]
}

fn set_ratio(strategy: &mut Strategy, ratio: u32) {
    // In a tree that gathers runs, level 0 is as wide as the other levels.
    if strategy.eagerness.gathers() && strategy.level0_runs == strategy.size_ratio {
        strategy.level0_runs = ratio;
    }
    strategy.size_ratio = ratio;
}

/// Changes the layout, and with it level 0, granularity and base capacity to the layout's defaults.
fn set_eagerness(design: &mut Design, eagerness: Eagerness) {
    let ratio = design.strategy.size_ratio;
    let mut usual = Strategy::new(eagerness);
    let gathers = usual.eagerness.gathers();
    usual.size_ratio = ratio;
    if gathers {
        usual.level0_runs = ratio;
    }
    usual.growth = Growth::Fixed;
    design.strategy = usual;
}

fn set_granularity(strategy: &mut Strategy, granularity: Granularity) {
    strategy.granularity = granularity.into();
    if granularity.tables().is_some() && strategy.movement.values().iter().all(Vec::is_empty) {
        strategy.movement = PerLevel::all(vec![Movement::LeastOverlap]);
    }
}
