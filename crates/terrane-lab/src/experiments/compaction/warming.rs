//! Measures lookups between writes for each choice of what flushes and compactions insert into the
//! cache: O11, and the misses of App. Fig. 9.

use std::path::Path;

use anyhow::Result;
use terrane::CacheWarming;

use super::loading::pages_after;
use super::sizes::{CompactionSizes, KeySet, OF_EACH_KIND};
use super::tree::{LoadPlan, LoadStats, LoadedTree};
use crate::results::Results;

const WARMINGS: [(CacheWarming, &str); 3] =
    [(CacheWarming::None, "none"), (CacheWarming::Meta, "meta"), (CacheWarming::All, "all")];

pub(super) fn measure(
    sizes: &CompactionSizes,
    keys: &KeySet,
    dir: &Path,
    results: &mut Results,
) -> Result<()> {
    let mut rows = Vec::new();
    for name in OF_EACH_KIND {
        for (cache_warming, warming) in WARMINGS {
            let design = sizes.design(name)?;
            let load =
                LoadPlan { is_interleaved: true, cache_warming, ..LoadPlan::inserts(design) };
            let stats = LoadedTree::load(sizes, keys, &load, dir)?.close()?;
            let (_, indexes, filters) = stats.misses;
            results.record("warm_pages", &[warming, name], stats.lookup_pages);
            results.record("warm_meta_misses", &[warming, name], (indexes + filters) as f64);
            rows.push(row(name, warming, &stats, pages_after(results, name)));
        }
    }
    let headers = [
        "strategy",
        "cache_warming",
        "pages of a lookup between writes",
        "of one after them",
        "data misses",
        "index misses",
        "filter misses",
        "KiB inserted by jobs",
    ];
    let title = "Lookups between writes, by what jobs insert into the cache (Fig. 5, 9)";
    results.table(title, &headers, rows);
    Ok(())
}

fn row(name: &str, warming: &str, stats: &LoadStats, after: f64) -> Vec<String> {
    let (data, indexes, filters) = stats.misses;
    let pages = [stats.lookup_pages, after].map(|pages| format!("{pages:.2}"));
    let counts = [data, indexes, filters, stats.warmed_bytes / 1024].map(|count| count.to_string());
    [name.to_owned(), warming.to_owned()].into_iter().chain(pages).chain(counts).collect()
}
