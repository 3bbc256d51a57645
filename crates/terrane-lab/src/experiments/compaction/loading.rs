//! Loads, lookups and ranges, and writes interleaved with lookups: O1 to O11.

use std::path::Path;

use anyhow::Result;
use terrane_workload::Distribution;

use super::recording::{headers, record, recorded};
use super::sizes::{CompactionSizes, KeySet, WITHOUT_DELETES};
use super::tree::{LoadPlan, LoadStats, LoadedTree, LookupCost};
use crate::results::Results;

/// Percentages of lookups that request missing keys.
const EMPTY_PERCENTS: [usize; 6] = [0, 20, 40, 60, 80, 100];

/// Percentages of all keys in a range, with their shares.
const RANGES: [(&str, f64); 2] = [("0.1", 0.001), ("10", 0.1)];

/// Unique inserts by one strategy, and the cost of reading the tree.
struct StrategyRun {
    name: &'static str,
    stats: LoadStats,
    /// The cost of lookups for each of [`EMPTY_PERCENTS`].
    lookups: Vec<LookupCost>,
    /// Microseconds per range for each of [`RANGES`].
    ranges: Vec<f64>,
    interleaved: LoadStats,
}

pub(super) fn measure(
    sizes: &CompactionSizes,
    keys: &KeySet,
    dir: &Path,
    results: &mut Results,
) -> Result<()> {
    let mut all = Vec::new();
    for name in WITHOUT_DELETES {
        let mut rounds = Vec::new();
        for _ in 0..sizes.rounds {
            rounds.push(run(sizes, keys, name, dir)?);
        }
        rounds.sort_by(|a, b| a.lookups[0].micros.total_cmp(&b.lookups[0].micros));
        all.push(rounds.swap_remove(rounds.len() / 2));
    }
    let title = "Unique inserts, uniform (Fig. 4a to 4d)";
    record(results, "inserts", title, all.iter().map(|one| (one.name, &one.stats)));
    let title = "The same, interleaved with lookups (Fig. 5)";
    record(results, "interleaved", title, all.iter().map(|one| (one.name, &one.interleaved)));
    for one in &all {
        record_reads(one, results);
    }
    let costs = EMPTY_PERCENTS.map(|empty| format!("α={:.1}: µs, pages", empty as f64 / 100.0));
    let ranges = RANGES.map(|(percent, _)| format!("range {percent} % µs"));
    let columns: Vec<String> = costs.into_iter().chain(ranges).collect();
    let rows = all.iter().map(|one| {
        let lookups =
            one.lookups.iter().map(|cost| format!("{:.2}, {:.2}", cost.micros, cost.pages));
        let ranges = one.ranges.iter().map(|micros| format!("{micros:.0}"));
        std::iter::once(one.name.to_owned()).chain(lookups).chain(ranges).collect()
    });
    let title = "Lookups by the share of missing keys (Fig. 4e to 4h)";
    results.table(title, &headers("strategy", &columns), rows.collect());
    Ok(())
}

fn run(
    sizes: &CompactionSizes,
    keys: &KeySet,
    name: &'static str,
    dir: &Path,
) -> Result<StrategyRun> {
    let mut load = LoadPlan::inserts(sizes.design(name)?);
    let tree = LoadedTree::load(sizes, keys, &load, dir)?;
    let look_up = |empty: &usize| tree.look_up(*empty, Distribution::Uniform);
    let lookups = EMPTY_PERCENTS.iter().map(look_up).collect::<Result<Vec<_>>>()?;
    let scan = |(_, share): &(_, f64)| tree.scan(*share);
    let ranges = RANGES.iter().map(scan).collect::<Result<Vec<_>>>()?;
    let stats = tree.close()?;
    load.is_interleaved = true;
    let interleaved = LoadedTree::load(sizes, keys, &load, dir)?.close()?;
    Ok(StrategyRun { name, stats, lookups, ranges, interleaved })
}

fn record_reads(one: &StrategyRun, results: &mut Results) {
    for (empty, cost) in EMPTY_PERCENTS.iter().zip(&one.lookups) {
        let keys = [&*empty.to_string(), one.name];
        results.record("lookup_micros", &keys, cost.micros);
        results.record("lookup_pages", &keys, cost.pages);
    }
    for ((percent, _), micros) in RANGES.iter().zip(&one.ranges) {
        results.record("range_micros", &[percent, one.name], *micros);
    }
    let interleaved = one.interleaved.lookups.percentile_micros(50.0);
    results.record("interleaved_micros", &[one.name], interleaved);
}

/// Returns the pages per lookup of existing keys after the inserts of a strategy.
pub(super) fn pages_after(results: &Results, strategy: &str) -> f64 {
    recorded(results, "lookup_pages", &["0", strategy])
}
