//! Lookups between writes, by what compactions put into the cache: O11, and the misses of App. Fig. 9.

use std::path::Path;

use anyhow::Result;
use terrane::CacheWarming;

use super::check::mean_of;
use super::loading::Loaded;
use super::setting::{Keys, OF_EACH_KIND, Setting};
use super::tree::{Load, Tree, Work};
use crate::claims::report::Report;

const WAYS: [(CacheWarming, &str); 3] =
    [(CacheWarming::None, "none"), (CacheWarming::Meta, "meta"), (CacheWarming::All, "all")];

pub(super) fn measure(
    setting: &Setting,
    keys: &Keys,
    loaded: &[Loaded],
    dir: &Path,
    report: &mut Report,
) -> Result<()> {
    let mut rows = Vec::new();
    // Less than without warming, in percent: pages, and misses of indexes and filters.
    let (mut pages_saved, mut misses_saved) = ([Vec::new(), Vec::new()], Vec::new());
    // Pages of lookups between writes, with indexes and filters warmed, below those after.
    let mut faster = Vec::new();
    for name in OF_EACH_KIND {
        let mut works = Vec::new();
        for (cache_warming, _) in WAYS {
            let design = setting.design(name)?;
            let load = Load { is_interleaved: true, cache_warming, ..Load::inserts(design) };
            works.push(Tree::load(setting, keys, &load, dir)?.close()?);
        }
        let after = loaded.iter().find(|one| one.name == name);
        let after = after.map_or(f64::NAN, |one| one.asked[0].read_amplification);
        rows.extend(works.iter().zip(WAYS).map(|(work, (_, way))| row(name, way, work, after)));
        let less = |from: f64, to: f64| 100.0 * (1.0 - to / from);
        if let [none, meta, all] = &works[..] {
            let meta_misses = |work: &Work| (work.misses.1 + work.misses.2) as f64;
            misses_saved.push(less(meta_misses(none), meta_misses(meta)));
            pages_saved[0].push(less(none.lookup_pages, meta.lookup_pages));
            pages_saved[1].push(less(none.lookup_pages, all.lookup_pages));
            faster.push(less(after, meta.lookup_pages));
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
        "KiB put in by jobs",
    ];
    report.table(
        "Lookups between writes, by what jobs put into the cache (Fig. 5, 9)",
        &headers,
        rows,
    );
    report.check(
        "S2-93, TA V",
        "compactions that put indexes and filters into the cache spare readers misses of them",
        format!("{:.0} % fewer on average with cache_warming=meta", mean_of(&misses_saved)),
        mean_of(&misses_saved) > 10.0,
        "",
    );
    let [meta, all] = pages_saved.map(|saved| mean_of(&saved));
    report.check(
        "S2-107 O11, TA VII",
        "lookups between writes find more in the cache where compactions warm it (pages read)",
        format!(
            "{meta:.1} % fewer pages with cache_warming=meta than with none, {all:.1} % with all"
        ),
        meta > 0.0 && all > 0.0,
        "data blocks of new tables are rarely asked for, and take the place of indexes and filters in a small cache",
    );
    report.check(
        "S2-107 O11, TA VII",
        "and are then 26 to 63 % cheaper than those after all writes (pages read)",
        format!("{:.0} % fewer pages", mean_of(&faster)),
        mean_of(&faster) >= 26.0,
        "most of what a lookup reads is its data block, which the cache has for few of keys that are read uniformly; and while writes go on, memtables and jobs have a part of the memory that is the cache's afterwards",
    );
    Ok(())
}

fn row(name: &str, way: &str, work: &Work, after: f64) -> Vec<String> {
    let (data, indexes, filters) = work.misses;
    let pages = [work.lookup_pages, after].map(|pages| format!("{pages:.2}"));
    let counts = [data, indexes, filters, work.warmed_bytes / 1024].map(|count| count.to_string());
    [name.to_owned(), way.to_owned()].into_iter().chain(pages).chain(counts).collect()
}
