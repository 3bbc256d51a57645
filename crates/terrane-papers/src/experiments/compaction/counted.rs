//! Loads of every strategy along every axis, by counts: O1 to O3, O10, O12, O15 to O23.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use terrane_lab::host::progress;
use terrane_workload::Distribution;

use super::axes::{self, Axis};
use super::recording::{self, Counted};
use super::setting::Setting;
use super::sizes::{CompactionSizes, KeySet, in_parallel};
use super::tree::LoadedTree;
use crate::experiment::ExperimentOptions;
use crate::results::Results;

/// Lookups after each load, of existing and of missing keys.
const LOOKUPS: usize = 2000;

pub(super) fn measure(
    sizes: &CompactionSizes,
    dir: &Path,
    options: &ExperimentOptions,
    results: &mut Results,
) -> Result<()> {
    for axis in axes::counted(sizes) {
        let axis = axis.needed(options, &recording::OF_LOAD.map(|(name, ..)| name));
        if axis.settings.is_empty() {
            continue;
        }
        let name = format!("counted, {}", axis.name);
        options.part(results, &name, axis.figures, |results| {
            let loads = run(sizes, &axis, dir)?;
            loads.iter().for_each(|load| recording::record(axis.name, load, results));
            recording::tables(&axis, &loads, results);
            Ok(())
        })?;
    }
    Ok(())
}

/// Runs the loads of an axis, the largest first.
fn run(sizes: &CompactionSizes, axis: &Axis, dir: &Path) -> Result<Vec<Counted>> {
    let keys = key_sets(sizes, axis);
    let mut jobs = Vec::new();
    for (value, setting) in &axis.settings {
        for strategy in axis.strategies {
            let dir = dir.join(format!("{}-{value}-{strategy}", axis.name));
            jobs.push((value, setting, *strategy, dir));
        }
    }
    let count = sizes.reads(LOOKUPS);
    let largest = axis.settings.iter().map(|(_, setting)| setting.entries).max().unwrap_or(0);
    in_parallel(CompactionSizes::workers(largest), jobs, |(value, setting, strategy, dir)| {
        let keys = &keys[&key_of(setting)];
        let tree = LoadedTree::load(sizes, keys, setting.load(strategy)?, &dir)?;
        let mut reader = tree.reader(setting.cache_bytes)?;
        // The first lookups warm the cache.
        reader.look_up(50, Distribution::Uniform, count / 2)?;
        let existing = reader.look_up(0, Distribution::Uniform, count)?;
        let missing = reader.look_up(100, Distribution::Uniform, count)?;
        drop(reader);
        let stats = tree.close()?;
        progress::step(&format!("{}={value}, {strategy}, by counts", axis.name));
        Ok(Counted { value: value.clone(), strategy, stats, existing, missing })
    })
}

/// The number and the distribution of keys.
fn key_of(setting: &Setting) -> (usize, String) {
    (setting.entries, setting.distribution.to_string())
}

fn key_sets(sizes: &CompactionSizes, axis: &Axis) -> BTreeMap<(usize, String), KeySet> {
    let mut all = BTreeMap::new();
    for (_, setting) in &axis.settings {
        let draw = || KeySet::new(sizes, setting.distribution, setting.entries);
        all.entry(key_of(setting)).or_insert_with(draw);
    }
    all
}
