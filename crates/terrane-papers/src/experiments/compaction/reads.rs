//! Lookups and ranges of trees whose tables, filters, indexes and cache have the paper's
//! proportions, by counts of pages: O6 to O9, O13, O14, TA V and TA VIII.
//!
//! The paper's costs of a lookup follow from these proportions: a filter takes five pages, an index
//! one, and the cache holds a 160th of the data, which is about half of all filters and indexes
//! (§5; appendix, o2). Trees of many small tables lose these proportions: a filter takes less than
//! a page, and a cache of a few pages holds all filters. Therefore these trees have tables of at
//! least 512 pages, like the paper's, even if this means fewer tables. Smaller pages have larger
//! indexes: an index takes 20 to 24 bytes per page, hence three pages of 4 KiB.
//!
//! A tree is read eight times during the second half of its load, because the number of its runs
//! varies over time, most of all under Full and Tier. The cache grows with it.

use std::path::Path;

use anyhow::Result;
use terrane_lab::host::progress;
use terrane_lab::output::human;
use terrane_workload::Distribution;

use super::axes::{NORMAL, ZIPF};
use super::recording::{headers, table_with_cells};
use super::setting::Setting;
use super::sizes::{CompactionSizes, ENTRY_BYTES, KeySet, WITHOUT_DELETES, in_parallel};
use super::tree::{LoadedTree, ReadCost};
use crate::experiment::ExperimentOptions;
use crate::results::{Metric, Results};

/// Pages of a table of the paper.
const TABLE_PAGES: u64 = 512;
/// Fewer entries would lose the proportions: the cache for half as many entries has the minimum
/// size.
const ENTRIES_MIN: f64 = 1_250_000.0;
/// Below this scale, trees have fewer entries nevertheless.
const FULL_SIZE_SCALE: f64 = 0.01;
/// The paper's cache of 8 MiB is this part of its data.
const CACHE_PART: u64 = 160;
/// Half of the minimum memory with which a database can be opened.
const CACHE_BYTES_MIN: u64 = 512 << 10;
/// Reads during the second half of a load.
const MOMENTS: usize = 8;
/// Lookups at each moment and for each share of missing keys, after a third as many to warm the
/// cache.
const LOOKUPS: usize = 1500;
const RANGES: usize = 20;
/// Percentages of lookups that request missing keys.
pub(super) const EMPTY_PERCENTS: [usize; 6] = [0, 20, 40, 60, 80, 100];
/// The entries of a range, in hundred-thousandths of all entries.
pub(super) const SELECTIVITIES: [usize; 4] = [10, 100, 1000, 10_000];
const DISTRIBUTIONS: [(&str, Distribution); 3] =
    [("uniform", Distribution::Uniform), ("zipf", ZIPF), ("normal", NORMAL)];

pub(super) const METRICS: &[Metric] = &[
    Metric {
        name: "lookup_pages",
        about: "pages read per lookup, by distribution of inserts, percent of missing keys and strategy",
    },
    Metric { name: "lookup_pages_p90", about: "the same, 90th percentile" },
    Metric { name: "data_misses", about: "misses of data blocks per lookup, by the same" },
    Metric { name: "index_misses", about: "misses of index blocks per lookup, by the same" },
    Metric { name: "filter_misses", about: "misses of filters per lookup, by the same" },
    Metric {
        name: "drawn_pages",
        about: "pages read per lookup, by distribution of lookups, percent of missing keys and strategy",
    },
    Metric {
        name: "range_pages",
        about: "pages read by a range, by its parts of 100,000 of all entries and strategy",
    },
    Metric { name: "read_runs", about: "sorted runs during these reads, by strategy" },
];

/// The reads of a tree that are needed.
#[derive(Clone, Copy)]
struct NeededReads {
    lookups: bool,
    /// Lookups of a tree of uniform inserts by several distributions.
    drawn: bool,
    ranges: bool,
}

impl NeededReads {
    /// Returns the reads that are needed after inserts by a distribution.
    fn of(options: &ExperimentOptions, inserted: &str) -> Self {
        let of_lookups =
            ["lookup_pages", "lookup_pages_p90", "data_misses", "index_misses", "filter_misses"];
        let is_uniform = inserted == "uniform";
        Self {
            lookups: of_lookups.iter().any(|metric| options.needs(metric, &[inserted])),
            drawn: is_uniform && options.needs("drawn_pages", &[]),
            ranges: is_uniform && options.needs_any(&["range_pages", "read_runs"]),
        }
    }
}

/// The reads of a tree.
struct TreeCosts {
    strategy: &'static str,
    /// The cost of uniform lookups for each of [`EMPTY_PERCENTS`].
    lookups: Vec<ReadCost>,
    /// The same for lookups by Zipf and normal distributions, at the end.
    drawn: Vec<(&'static str, Vec<ReadCost>)>,
    /// The cost of ranges for each of [`SELECTIVITIES`].
    ranges: Vec<ReadCost>,
    runs: f64,
}

pub(super) fn measure(
    sizes: &CompactionSizes,
    dir: &Path,
    options: &ExperimentOptions,
    results: &mut Results,
) -> Result<()> {
    let setting = setting(sizes);
    let strategies = sizes.strategies(WITHOUT_DELETES);
    for (name, distribution) in DISTRIBUTIONS {
        let parts = NeededReads::of(options, name);
        if !parts.lookups && !parts.drawn && !parts.ranges {
            continue;
        }
        let keys = KeySet::new(sizes, distribution, setting.entries);
        let workers = CompactionSizes::workers(setting.entries);
        let all = in_parallel(workers, strategies.to_vec(), |strategy| {
            let dir = dir.join(format!("reads-{strategy}"));
            let costs = costs(sizes, &setting, &keys, (strategy, parts), &dir)?;
            progress::step(&format!("read {strategy} after {name} inserts"));
            Ok(costs)
        })?;
        all.iter().for_each(|one| record(name, one, results));
        table(name, &setting, &all, results);
    }
    Ok(())
}

fn setting(sizes: &CompactionSizes) -> Setting {
    let base = Setting::base(sizes);
    if sizes.is_trial() {
        return Setting { cache_bytes: CACHE_BYTES_MIN, ..base };
    }
    let least = ENTRIES_MIN * (sizes.scale / FULL_SIZE_SCALE).min(1.0);
    let entries = base.entries.max(least as usize);
    let table_bytes = base.buffer_bytes.max(TABLE_PAGES * u64::from(base.page_bytes));
    let cache_bytes = (entries as u64 * ENTRY_BYTES / CACHE_PART).max(CACHE_BYTES_MIN);
    Setting { entries, buffer_bytes: table_bytes, cache_bytes, ..base }
}

fn costs(
    sizes: &CompactionSizes,
    setting: &Setting,
    keys: &KeySet,
    (strategy, parts): (&'static str, NeededReads),
    dir: &Path,
) -> Result<TreeCosts> {
    let mut tree = LoadedTree::create(sizes, keys, setting.load(strategy)?, dir)?;
    let count = sizes.reads(LOOKUPS);
    let (mut lookups, mut ranges) = (Vec::new(), Vec::new());
    for moment in 1..=MOMENTS {
        let written = setting.entries / 2 + setting.entries / 2 * moment / MOMENTS;
        tree.write(written)?;
        if !parts.lookups {
            continue;
        }
        // The cache is the same share of the data at every moment.
        let cache_bytes = setting.cache_bytes * written as u64 / setting.entries as u64;
        let mut reader = tree.reader(cache_bytes.max(CACHE_BYTES_MIN))?;
        let look_up = |empty: &usize| {
            reader.look_up(*empty, Distribution::Uniform, count / 3)?;
            reader.look_up(*empty, Distribution::Uniform, count)
        };
        lookups.push(EMPTY_PERCENTS.iter().map(look_up).collect::<Result<Vec<_>>>()?);
    }
    tree.write(usize::MAX)?;
    tree.finish()?;
    let mut drawn = Vec::new();
    if parts.ranges || parts.drawn {
        let mut reader = tree.reader(setting.cache_bytes)?;
        for share in SELECTIVITIES.iter().filter(|_| parts.ranges) {
            let length = setting.entries * share / 100_000;
            ranges.push(reader.scan(length, sizes.reads(RANGES))?);
        }
        for (name, distribution) in DISTRIBUTIONS.into_iter().filter(|_| parts.drawn) {
            let look_up = |empty: &usize| {
                reader.look_up(*empty, distribution, count)?;
                reader.look_up(*empty, distribution, 2 * count)
            };
            drawn.push((name, EMPTY_PERCENTS.iter().map(look_up).collect::<Result<Vec<_>>>()?));
        }
    }
    let runs = tree.close()?.mean_runs;
    let of_share = |at: usize| {
        let moments: Vec<ReadCost> = lookups.iter().map(|moment| moment[at].clone()).collect();
        ReadCost::mean(&moments)
    };
    let shares = if lookups.is_empty() { 0 } else { EMPTY_PERCENTS.len() };
    let lookups = (0..shares).map(of_share).collect();
    Ok(TreeCosts { strategy, lookups, drawn, ranges, runs })
}

fn record(inserted: &str, one: &TreeCosts, results: &mut Results) {
    for (empty, cost) in EMPTY_PERCENTS.iter().zip(&one.lookups) {
        for (metric, value) in [
            ("lookup_pages", cost.pages),
            ("lookup_pages_p90", cost.pages_p90),
            ("data_misses", cost.data_misses),
            ("index_misses", cost.index_misses),
            ("filter_misses", cost.filter_misses),
        ] {
            results.record(metric, &[inserted, &empty.to_string(), one.strategy], value);
        }
    }
    for (drawn, costs) in &one.drawn {
        for (empty, cost) in EMPTY_PERCENTS.iter().zip(costs) {
            results.record("drawn_pages", &[drawn, &empty.to_string(), one.strategy], cost.pages);
        }
    }
    for (parts, cost) in SELECTIVITIES.iter().zip(&one.ranges) {
        results.record("range_pages", &[&parts.to_string(), one.strategy], cost.pages);
    }
    if !one.ranges.is_empty() {
        results.record("read_runs", &[one.strategy], one.runs);
    }
}

fn table(inserted: &str, setting: &Setting, all: &[TreeCosts], results: &mut Results) {
    let shares = EMPTY_PERCENTS.map(|empty| format!("α={:.1}", empty as f64 / 100.0));
    let rows = all.iter().map(|one| {
        let cells =
            one.lookups.iter().map(|cost| format!("{:.2}, {:.0}", cost.pages, cost.pages_p90));
        std::iter::once(one.strategy.to_owned()).chain(cells).collect()
    });
    let title = format!(
        "Pages read by a lookup, mean and P90, after {inserted} inserts: {} entries, tables of {} pages, a cache of {}",
        human::count(setting.entries as u64),
        setting.buffer_bytes / u64::from(setting.page_bytes),
        human::bytes(setting.cache_bytes),
    );
    table_with_cells(title, &headers("strategy", &shares), rows.collect(), results);
    if inserted != "uniform" {
        return;
    }
    let rows = all.iter().map(|one| {
        let cells = one.lookups.iter().map(|cost| {
            format!("{:.2}, {:.2}, {:.2}", cost.filter_misses, cost.index_misses, cost.data_misses)
        });
        std::iter::once(one.strategy.to_owned()).chain(cells).collect()
    });
    let title = "Cache misses of a lookup: filters, indexes, data (Fig. 9c, 9d)";
    table_with_cells(title, &headers("strategy", &shares), rows.collect(), results);
    for (at, (drawn, _)) in DISTRIBUTIONS.iter().enumerate().skip(1) {
        let rows = all.iter().map(|one| {
            let costs = one.drawn.get(at).map(|(_, costs)| &costs[..]).unwrap_or_default();
            let cells = costs.iter().map(|cost| format!("{:.2}", cost.pages));
            std::iter::once(one.strategy.to_owned()).chain(cells).collect()
        });
        let title = format!("Pages read by a lookup, lookups by {drawn} distribution (Fig. 7)");
        table_with_cells(title, &headers("strategy", &shares), rows.collect(), results);
    }
    let parts = SELECTIVITIES.map(|parts| format!("{} %", parts as f64 / 1000.0));
    let rows = all.iter().map(|one| {
        let cells = one.ranges.iter().map(|cost| format!("{:.0}", cost.pages));
        std::iter::once(one.strategy.to_owned()).chain(cells).collect()
    });
    let title = "Pages read by a range, by its share of all entries (Fig. 4g)";
    table_with_cells(title, &headers("strategy", &parts), rows.collect(), results);
}
