//! Lookups and ranges of trees whose tables, filters, indexes and cache have the paper's
//! proportions: O6 to O9 and O13.
//!
//! The paper's costs of a lookup follow from these proportions: a filter takes five pages, an index
//! one, and the cache holds a 160th of the data, which is about half of all filters and indexes
//! (§5; appendix, o2). Trees of many small tables lose these proportions: a filter takes less than
//! a page, and a cache of a few pages holds all filters. These trees have tables of 512 pages like
//! the paper's, but a quarter as many tables, and pages a quarter as large. An index takes 20 to 24
//! bytes per page, hence three of the smaller pages.

use std::path::Path;

use anyhow::Result;
use terrane_workload::Distribution;

use super::recording::headers;
use super::sizes::{CompactionSizes, KeySet, OF_EACH_KIND};
use super::tree::{LoadPlan, LoadedTree, PageCounts};
use crate::human;
use crate::results::Results;

/// Pages of a table of the paper.
const TABLE_PAGES: u64 = 512;
const PAGE_BYTES: u32 = 4 << 10;
/// A sixteenth of the paper's entries.
const ENTRIES: f64 = 10e6 / 16.0;
/// At this scale and above the full number of entries is used; fewer tables would lose the
/// proportions.
const FULL_SIZE_SCALE: f64 = 0.1;
const ENTRY_BYTES: u64 = 128;
/// The paper's cache of 8 MiB is this part of its data.
const CACHE_PART: u64 = 160;
/// Half of the minimum memory with which a database can be opened.
const CACHE_BYTES_MIN: u64 = 512 << 10;
/// The paper's ranges of 0.1 % and of 1 % of its entries, in pages.
const RANGE_PAGES: [usize; 2] = [80, 800];
/// Percentages of lookups that request missing keys.
const EMPTY_PERCENTS: [usize; 6] = [0, 20, 40, 60, 80, 100];
/// The percentage of lookups after Zipf inserts that request missing keys.
const ZIPF_EMPTY_PERCENT: usize = 80;

/// Pages read from the tree of a strategy.
struct TreeCosts {
    name: &'static str,
    /// Pages per lookup for each of [`EMPTY_PERCENTS`].
    lookups: Vec<PageCounts>,
    /// Pages per range for each of [`RANGE_PAGES`].
    ranges: Vec<f64>,
    after_zipf: f64,
    levels: usize,
}

pub(super) fn measure(sizes: &CompactionSizes, dir: &Path, results: &mut Results) -> Result<()> {
    let entries = ((ENTRIES * (sizes.scale / FULL_SIZE_SCALE).min(1.0)) as usize).max(2000);
    let uniform = KeySet::new(sizes, Distribution::Uniform, entries);
    let zipf = KeySet::new(sizes, Distribution::Zipf { theta: 1.0 }, entries);
    let cache = (entries as u64 * ENTRY_BYTES / CACHE_PART).max(CACHE_BYTES_MIN);
    let mut all = Vec::new();
    let mut tables = 0;
    for name in OF_EACH_KIND {
        let mut design = sizes.design(name)?;
        design.block_bytes = PAGE_BYTES;
        design.table_bytes = TABLE_PAGES * u64::from(PAGE_BYTES);
        design.buffer_bytes = design.table_bytes;
        let load = LoadPlan { is_on_disk: true, ..LoadPlan::inserts(design) };
        let tree = LoadedTree::load(sizes, &uniform, &load, dir)?.read_with_cache(cache)?;
        let levels = tree.stats.levels;
        tables = tree.stats.files;
        let look_up = |empty: &usize| tree.lookup_pages(*empty);
        let lookups = EMPTY_PERCENTS.iter().map(look_up).collect::<Result<Vec<_>>>()?;
        let entries_of = |pages: usize| pages * PAGE_BYTES as usize / ENTRY_BYTES as usize;
        let scan = |pages: &usize| tree.scan_pages(entries_of(*pages));
        let ranges = RANGE_PAGES.iter().map(scan).collect::<Result<Vec<_>>>()?;
        tree.close()?;
        let tree = LoadedTree::load(sizes, &zipf, &load, dir)?.read_with_cache(cache)?;
        let after_zipf = tree.lookup_pages(ZIPF_EMPTY_PERCENT)?.mean;
        tree.close()?;
        all.push(TreeCosts { name, lookups, ranges, after_zipf, levels });
    }
    all.iter().for_each(|one| record(one, results));
    let title = format!(
        "Pages read, mean and P90 of lookups, by trees of the paper's proportions: {} entries, {} of \
         {TABLE_PAGES} pages, a cache of {} (Fig. 4e to 4h, 6d)",
        human::count(entries as u64),
        human::counted(tables as u64, "table"),
        human::bytes(cache),
    );
    table(&title, &all, results);
    Ok(())
}

fn record(one: &TreeCosts, results: &mut Results) {
    for (empty, pages) in EMPTY_PERCENTS.iter().zip(&one.lookups) {
        let keys = [&*empty.to_string(), one.name];
        results.record("tree_lookup_pages", &keys, pages.mean);
        results.record("tree_lookup_pages_p90", &keys, pages.p90);
    }
    for (length, pages) in RANGE_PAGES.iter().zip(&one.ranges) {
        results.record("tree_range_pages", &[&length.to_string(), one.name], *pages);
    }
    results.record("tree_zipf_pages", &[one.name], one.after_zipf);
    results.record("tree_levels", &[one.name], one.levels as f64);
}

fn table(title: &str, all: &[TreeCosts], results: &mut Results) {
    let lookups = EMPTY_PERCENTS.map(|empty| format!("α={:.1}", empty as f64 / 100.0));
    let ranges = RANGE_PAGES.map(|pages| format!("a range of {pages} pages"));
    let zipf = ["α=0.8 after Zipf inserts".to_owned()];
    let columns: Vec<String> = lookups.into_iter().chain(zipf).chain(ranges).collect();
    let rows = all.iter().map(|one| {
        let lookups =
            one.lookups.iter().map(|pages| format!("{:.2}, {:.0}", pages.mean, pages.p90));
        let zipf = format!("{:.2}", one.after_zipf);
        let ranges = one.ranges.iter().map(|pages| format!("{pages:.0}"));
        std::iter::once(one.name.to_owned()).chain(lookups).chain([zipf]).chain(ranges).collect()
    });
    results.table(title, &headers("strategy", &columns), rows.collect());
}
