//! Measures lookups between writes for each choice of cache warming by flushes and compactions:
//! O11, and the misses of App. Fig. 9.

use std::path::Path;

use anyhow::Result;
use terrane::CacheWarming;

use terrane_workload::Distribution;

use super::axes::LOOKUPS_PERCENT;
use super::setting::Setting;
use super::sizes::{CompactionSizes, KeySet, OF_EACH_KIND, in_parallel};
use super::tree::{LoadPlan, LoadStats, LoadedTree};
use crate::results::{Metric, Results};

pub(super) const METRICS: &[Metric] = &[
    Metric {
        name: "warm_pages",
        about: "pages read per lookup between writes, by cache warming and strategy",
    },
    Metric {
        name: "warm_meta_misses",
        about: "cache misses of index blocks and filters, by cache warming and strategy",
    },
];

const WARMINGS: [(CacheWarming, &str); 3] =
    [(CacheWarming::None, "none"), (CacheWarming::Meta, "meta"), (CacheWarming::All, "all")];

pub(super) fn measure(sizes: &CompactionSizes, dir: &Path, results: &mut Results) -> Result<()> {
    let setting = Setting { lookups_percent: LOOKUPS_PERCENT, ..Setting::base(sizes) };
    let keys = KeySet::new(sizes, Distribution::Uniform, setting.entries);
    let every = |name: &&'static str| WARMINGS.map(|(warming, text)| (*name, warming, text));
    let jobs: Vec<_> = OF_EACH_KIND.iter().flat_map(every).collect();
    let workers = CompactionSizes::workers(setting.entries);
    let loads = in_parallel(workers, jobs, |(name, cache_warming, warming)| {
        let load = LoadPlan { cache_warming, ..setting.load(name)? };
        let dir = dir.join(format!("warming-{name}-{warming}"));
        Ok((name, warming, LoadedTree::load(sizes, &keys, load, &dir)?.close()?))
    })?;
    let mut rows = Vec::new();
    for (name, warming, stats) in loads {
        let (_, indexes, filters) = stats.misses;
        results.record("warm_pages", &[warming, name], stats.lookup_pages);
        results.record("warm_meta_misses", &[warming, name], (indexes + filters) as f64);
        rows.push(row(name, warming, &stats));
    }
    let headers = [
        "strategy",
        "cache_warming",
        "pages of a lookup between writes",
        "data misses",
        "index misses",
        "filter misses",
        "KiB inserted by jobs",
    ];
    let title = "Lookups between writes, by what jobs insert into the cache (Fig. 5, 9)";
    results.table(title, &headers, rows);
    Ok(())
}

fn row(name: &str, warming: &str, stats: &LoadStats) -> Vec<String> {
    let (data, indexes, filters) = stats.misses;
    let pages = [format!("{:.2}", stats.lookup_pages)];
    let counts = [data, indexes, filters, stats.warmed_bytes / 1024].map(|count| count.to_string());
    [name.to_owned(), warming.to_owned()].into_iter().chain(pages).chain(counts).collect()
}
