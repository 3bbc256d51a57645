//! The default design and designs that differ from it in one option, compared by counts: bytes
//! written, blocks read, space, filter memory, and files.
//!
//! A comparison by bytes alone would favour the smallest tables, because each compaction then
//! rewrites less. But small tables need more files, each of which is created, synced, opened and
//! removed, and more filter memory, because filters are rounded up to cache lines of 64 bytes.
//! Therefore the costs include the number of files, and filter memory as allocated.

use std::path::Path;

use anyhow::Result;
use terrane::Design;
use terrane_workload::Distribution;

use super::sizes::{CompactionSizes, KeySet, in_parallel};
use super::tree::{LoadPlan, LoadedTree, Mix};
use crate::results::Results;

/// Name, strategy, capacity of level 1 in buffers, and tables per buffer of each candidate; the
/// first candidate is the default design. A candidate has the filters of the default design unless
/// its strategy sets them.
const CANDIDATES: &[(&str, &str, Option<u64>, u64)] = &[
    ("balanced, the default", "1-leveling", Some(4), 2),
    ("L0=2", "1-leveling L0=2", Some(4), 2),
    ("L0=8", "1-leveling L0=8", Some(8), 2),
    ("T=4", "1-leveling T=4", Some(4), 2),
    ("T=6", "1-leveling T=6", Some(4), 2),
    ("T=8", "1-leveling T=8", Some(4), 2),
    ("level 1 of 8 buffers", "1-leveling", Some(8), 2),
    ("level 1 of 40 buffers", "1-leveling", None, 2),
    ("whole levels", "1-leveling; granularity=level", Some(4), 2),
    ("whole level 1, then tables", "1-leveling; granularity=level,level,file", Some(4), 2),
    ("four tables at once", "1-leveling; granularity=files(4)", Some(4), 2),
    ("round-robin", "1-leveling; movement=round-robin", Some(4), 2),
    ("10 filter bits in every level", "1-leveling; filter=10", Some(4), 2),
    ("tables of a buffer", "1-leveling", Some(4), 1),
    ("tables of a quarter buffer", "1-leveling", Some(4), 4),
    ("one run in level 0", "leveling", Some(4), 2),
    ("lazy leveling, T=4", "lazy-leveling T=4", None, 2),
    ("tiering, T=4", "tiering T=4", None, 2),
];

/// The maximum scale, because larger trees cost proportionally more and yield the same ranking.
const SCALE_MAX: f64 = 1.0 / 64.0;

/// Costs count as equal up to this ratio.
const ALIKE: f64 = 1.05;
/// A cost counts as better if its ratio to the other cost is below this.
const BETTER: f64 = 0.9;

/// The costs of a candidate; for each cost, less is better.
struct DesignCosts {
    name: &'static str,
    costs: [f64; COSTS.len()],
}

const COSTS: [&str; 11] = [
    "load: written ×",
    "updates: written ×",
    "updates: tables over valid entries",
    "updates, nine of ten of a tenth of the keys: written ×",
    "runs of a scan",
    "blocks of a lookup",
    "blocks of 1000 missing ones",
    "filter bits of a key",
    "largest compaction, in buffers",
    "files created for a buffer written",
    FILES,
];

const FILES: &str = "files at the end for a buffer of data";

pub(super) fn measure(sizes: &CompactionSizes, dir: &Path, results: &mut Results) -> Result<()> {
    let sizes = &sizes.at_most(SCALE_MAX);
    results.record("default_entries", &[], 2.0 * sizes.entries() as f64);
    let keys = KeySet::new(sizes, Distribution::Uniform, 2 * sizes.entries());
    let workers = CompactionSizes::workers(keys.sorted.len());
    let all = in_parallel(workers, CANDIDATES.to_vec(), |(name, spec, base, tables)| {
        let dir = dir.join(format!("default-{}", name.replace(' ', "-")));
        Ok(DesignCosts { name, costs: costs(sizes, &keys, &dir, (spec, base, tables))? })
    })?;
    let rows = all.iter().map(|one| {
        let cells = one.costs.iter().map(|cost| format!("{cost:.2}"));
        std::iter::once(one.name.to_owned()).chain(cells).collect()
    });
    let headers: Vec<&str> = std::iter::once("design").chain(COSTS).collect();
    results.table("The default design, and variations of one option", &headers, rows.collect());
    let Some((default, others)) = all.split_first() else { return Ok(()) };
    let winners: Vec<&DesignCosts> = others.iter().filter(|one| beats(one, default)).collect();
    let wins_beyond_files = |one: &&&DesignCosts| {
        let better = gains(one, default).into_iter().filter(|(gain, _)| *gain >= 1.0 - BETTER);
        !better.map(|(_, cost)| cost).eq([FILES])
    };
    let beyond_files = winners.iter().filter(wins_beyond_files).count();
    let names: Vec<String> = winners.iter().map(|one| described(one, default)).collect();
    results.record("winners", &[], winners.len() as f64);
    results.record("winners_beyond_files", &[], beyond_files as f64);
    results.record_text(
        "winner_names",
        if names.is_empty() { "none".to_owned() } else { names.join(", ") },
    );
    Ok(())
}

/// Describes the two largest gains of a candidate over the default design.
fn described(one: &DesignCosts, default: &DesignCosts) -> String {
    let mut gains = gains(one, default);
    gains.sort_by(|a, b| b.0.total_cmp(&a.0));
    let [(most, cost), (next, _), ..] = gains;
    let (most, next) = (100.0 * most, 100.0 * next);
    format!("{} by {most:.0} % in {cost}, and by at most {next:.0} % in any other cost", one.name)
}

fn costs(
    sizes: &CompactionSizes,
    keys: &KeySet,
    dir: &Path,
    (spec, base, tables): (&str, Option<u64>, u64),
) -> Result<[f64; COSTS.len()]> {
    let filters = if spec.contains("filter=") { "" } else { "; filter=monkey(10)" };
    let mut design: Design = format!("{spec}{filters}").parse()?;
    design.buffer_bytes = sizes.buffer_bytes();
    design.table_bytes = design.buffer_bytes / tables;
    design.strategy.base_bytes = base.map(|buffers| buffers * design.buffer_bytes);
    // Levels that gather runs hold more runs, so writers must stall at a larger number of runs.
    (design.constraint.delay_runs, design.constraint.stop_runs) = (20, 36);
    design.validate()?;
    let operations = keys.sorted.len();
    let mix = |updates, is_skewed| Mix { operations, updates, is_skewed, deletes_percent: 0 };
    let load_mix = |mix| LoadedTree::load(sizes, keys, LoadPlan::new(design.clone(), mix), dir);
    let loaded = load_mix(mix(0, false))?;
    let mut reader = loaded.reader(sizes.cache_bytes())?;
    let found = reader.look_up(0, Distribution::Uniform, operations / 20)?;
    // One lookup in a hundred reads a block, so distinguishing designs takes many lookups.
    let missing = reader.look_up(100, Distribution::Uniform, operations)?;
    drop(reader);
    let load = loaded.close()?;
    let updated = load_mix(mix(4, false))?.close()?;
    let skewed = load_mix(mix(4, true))?.close()?;
    let buffer = sizes.buffer_bytes() as f64;
    Ok([
        load.write_amplification(),
        updated.write_amplification(),
        1.0 + updated.mean_space,
        skewed.write_amplification(),
        load.mean_runs,
        found.blocks,
        1000.0 * missing.blocks,
        load.filter_bits,
        load.job_percentile(100).max(updated.job_percentile(100)) / buffer,
        load.tables_made as f64 / (load.user_bytes as f64 / buffer),
        load.files as f64 / (load.user_bytes as f64 / buffer),
    ])
}

/// Returns the share by which each cost of `one` is below the same cost of `other`.
fn gains(one: &DesignCosts, other: &DesignCosts) -> [(f64, &'static str); COSTS.len()] {
    std::array::from_fn(|at| (1.0 - one.costs[at] / other.costs[at], COSTS[at]))
}

/// Returns true if each cost of `one` equals or beats the same cost of `other`, and at least one
/// cost is better.
fn beats(one: &DesignCosts, other: &DesignCosts) -> bool {
    let pairs = || one.costs.iter().zip(&other.costs);
    pairs().all(|(one, other)| *one <= other * ALIKE)
        && pairs().any(|(one, other)| *one <= other * BETTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidate_wins_if_no_cost_is_worse_and_one_is_better() {
        let costs = |first, rest| {
            let mut costs = [rest; COSTS.len()];
            costs[0] = first;
            DesignCosts { name: "one", costs }
        };
        let default = costs(10.0, 10.0);
        assert!(!beats(&default, &default));
        assert!(beats(&costs(8.0, 10.4), &default));
        assert!(!beats(&costs(8.0, 11.0), &default));
        assert!(!beats(&costs(9.5, 9.5), &default));
    }
}
