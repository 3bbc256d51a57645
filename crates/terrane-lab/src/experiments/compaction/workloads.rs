//! Distributions, updates and deletes: O12 to O18.

use std::path::Path;

use anyhow::Result;
use terrane::Design;
use terrane_policy::design::PerLevel;
use terrane_policy::strategy::trigger::{LevelSaturation, TombstoneDensity, TombstoneTtl};
use terrane_workload::Distribution;

use super::loading::pages_after;
use super::recording::{StatsByStrategy, record};
use super::sizes::{CompactionSizes, KeySet, OF_EACH_KIND, WITHOUT_DELETES};
use super::tree::{LoadPlan, LoadedTree};
use crate::results::Results;

const NORMAL: Distribution = Distribution::Normal { deviation: 0.34 };
const ZIPF: Distribution = Distribution::Zipf { theta: 1.0 };
/// TSD with a density that tables reach when one operation of ten is a delete; the paper does not
/// state the density that it uses.
const DENSE: &str = "tsd12";
const DENSE_PERCENT: u32 = 12;
/// The clock advances by a millisecond per operation.
const OPERATION_MICROS: u64 = 1000;

fn record_all(results: &mut Results, workload: &str, title: &str, loads: &StatsByStrategy) {
    record(results, workload, title, loads.iter().map(|(name, stats)| (*name, stats)));
}

pub(super) fn distributions(
    sizes: &CompactionSizes,
    keys: &KeySet,
    dir: &Path,
    results: &mut Results,
) -> Result<()> {
    for (workload, name, distribution) in
        [("zipf", "Zipf, s=1", ZIPF), ("normal", "normal, 34 %", NORMAL)]
    {
        let drawn = KeySet::new(sizes, distribution, sizes.entries());
        let mut loads = Vec::new();
        for strategy in OF_EACH_KIND {
            let load = LoadPlan::inserts(sizes.design(strategy)?);
            loads.push((strategy, LoadedTree::load(sizes, &drawn, &load, dir)?.close()?));
        }
        record_all(results, workload, &format!("Unique inserts, {name} (Fig. 6)"), &loads);
    }
    let mut rows = Vec::new();
    for strategy in OF_EACH_KIND {
        let load = LoadPlan::inserts(sizes.design(strategy)?);
        let tree = LoadedTree::load(sizes, keys, &load, dir)?;
        let (zipf, normal) = (tree.look_up(0, ZIPF)?.pages, tree.look_up(0, NORMAL)?.pages);
        tree.close()?;
        let pages =
            [("uniform", pages_after(results, strategy)), ("zipf", zipf), ("normal", normal)];
        for (distribution, pages) in pages {
            results.record("drawn_pages", &[distribution, strategy], pages);
        }
        let cells = pages.map(|(_, pages)| format!("{pages:.2}"));
        rows.push(std::iter::once(strategy.to_owned()).chain(cells).collect());
    }
    let title = "Pages read per lookup, by distribution of lookups (Fig. 7)";
    results.table(title, &["strategy", "uniform", "Zipf", "normal"], rows);
    Ok(())
}

pub(super) fn updates(
    sizes: &CompactionSizes,
    keys: &KeySet,
    dir: &Path,
    results: &mut Results,
) -> Result<()> {
    for updates in [0, 8] {
        let mut loads = Vec::new();
        for name in WITHOUT_DELETES {
            let load = LoadPlan { updates, ..LoadPlan::inserts(sizes.design(name)?) };
            loads.push((name, LoadedTree::load(sizes, keys, &load, dir)?.close()?));
        }
        let title = format!("{updates} updates for each insert (Fig. 8a to 8c)");
        record_all(results, &format!("updates {updates}"), &title, &loads);
    }
    Ok(())
}

/// Returns a strategy of the catalogue, or a strategy for deletes with its own threshold.
fn design_for_deletes(sizes: &CompactionSizes, name: &str) -> Result<Design> {
    let catalogued = ["tsa", "tsd"].into_iter().find(|one| name.starts_with(one)).unwrap_or(name);
    let mut design = sizes.design(catalogued)?;
    if name == DENSE {
        let triggers = vec![TombstoneDensity(DENSE_PERCENT).into(), LevelSaturation.into()];
        design.strategy.triggers = PerLevel::all(triggers);
    }
    let time = sizes.entries() as u64 * OPERATION_MICROS;
    // The thresholds are a quarter and half of the duration of the experiment (§5.2.4).
    let ttl = match name {
        "tsa33" => Some(time / 4),
        "tsa50" => Some(time / 2),
        _ => None,
    };
    if let Some(ttl) = ttl {
        let triggers = vec![TombstoneTtl(PerLevel::all(ttl)).into(), LevelSaturation.into()];
        design.strategy.triggers = PerLevel::all(triggers);
    }
    Ok(design)
}

pub(super) fn deletes(
    sizes: &CompactionSizes,
    keys: &KeySet,
    dir: &Path,
    results: &mut Results,
) -> Result<()> {
    let names = [
        "full", "lo+1", "lo+2", "rr", "cold", "old", "tsd", DENSE, "tsa33", "tsa50", "tier",
        "1-lvl",
    ];
    let mut loads = Vec::new();
    for name in names {
        let design = design_for_deletes(sizes, name)?;
        let load = LoadPlan { deletes_percent: 10, ..LoadPlan::inserts(design) };
        loads.push((name, LoadedTree::load(sizes, keys, &load, dir)?.close()?));
    }
    record_all(results, "deletes", "10 % deletes (Fig. 8d to 8f)", &loads);
    Ok(())
}
