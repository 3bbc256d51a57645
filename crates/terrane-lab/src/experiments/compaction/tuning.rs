//! Sizes and settings: O19 to O23.

use std::path::Path;

use anyhow::Result;
use terrane::Design;
use terrane_policy::design::PerLevel;
use terrane_workload::Distribution;

use super::recording::record;
use super::sizes::{CompactionSizes, KeySet, OF_EACH_KIND, VALUE_BYTES};
use super::tree::{LoadPlan, LoadedTree};
use crate::results::Results;

/// A change of the base design: the key of its measurements, the title of its table, the bytes of a
/// value, and the function that changes the settings.
type Variation = (&'static str, &'static str, usize, fn(&mut Design));

const VARIATIONS: [Variation; 8] = [
    ("base", "The base setting of the variations below", VALUE_BYTES, |_| {}),
    ("entries 32", "Entries of 32 bytes (Fig. 8j)", 28, |_| {}),
    ("buffer 4x", "Buffers 4× as large (Fig. 8l)", VALUE_BYTES, |design| {
        design.buffer_bytes *= 4;
        design.table_bytes *= 4;
    }),
    ("page 1", "Pages of 1 KiB (Fig. 8o)", VALUE_BYTES, |design| {
        design.block_bytes = 1 << 10;
    }),
    ("page 16", "Pages of 16 KiB (Fig. 8o, 12)", VALUE_BYTES, |design| {
        design.block_bytes = 16 << 10;
    }),
    ("T 4", "T=4 (Fig. 13)", VALUE_BYTES, |design| set_size_ratio(design, 4)),
    ("T 6", "T=6 (Fig. 13)", VALUE_BYTES, |design| set_size_ratio(design, 6)),
    ("bits 5", "5 filter bits a key (Fig. 14)", VALUE_BYTES, |design| {
        design.filter_bits = PerLevel::all(5.0);
    }),
];

/// The workload with fewer entries comes after the base.
const QUARTER: Variation = ("quarter", "A quarter of the entries (Fig. 8g)", VALUE_BYTES, |_| {});

fn set_size_ratio(design: &mut Design, ratio: u32) {
    design.strategy.size_ratio = ratio;
    if design.strategy.level0_runs == 10 {
        design.strategy.level0_runs = ratio;
    }
}

pub(super) fn measure(
    sizes: &CompactionSizes,
    keys: &KeySet,
    dir: &Path,
    results: &mut Results,
) -> Result<()> {
    let quarter = KeySet::new(sizes, Distribution::Uniform, sizes.entries() / 4);
    let [base, rest @ ..] = VARIATIONS;
    run(sizes, keys, dir, base, results)?;
    run(sizes, &quarter, dir, QUARTER, results)?;
    rest.into_iter().try_for_each(|variation| run(sizes, keys, dir, variation, results))
}

fn run(
    sizes: &CompactionSizes,
    keys: &KeySet,
    dir: &Path,
    (workload, title, value_bytes, change): Variation,
    results: &mut Results,
) -> Result<()> {
    let mut loads = Vec::new();
    for name in OF_EACH_KIND {
        let mut design = sizes.design(name)?;
        change(&mut design);
        design.validate()?;
        let load = LoadPlan { value_bytes, ..LoadPlan::inserts(design) };
        loads.push((name, LoadedTree::load(sizes, keys, &load, dir)?.close()?));
    }
    record(results, workload, title, loads.iter().map(|(name, stats)| (*name, stats)));
    Ok(())
}
