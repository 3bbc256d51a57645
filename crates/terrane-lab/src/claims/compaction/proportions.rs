//! Lookups and ranges where tables, filters, indexes and the cache have the paper's proportions: O6
//! to O9 and O13.
//!
//! What a lookup costs a disk is made of these: a filter is five pages, an index one, and the cache
//! is a 160th of the data, which is about half of all filters and indexes (§5; appendix, o2). Trees
//! of many small tables have none of that: a filter is less than a page, and a cache that holds a few
//! pages holds all filters. So these trees have tables of 512 pages, as the paper's, and fewer of
//! them: a quarter as many, of pages a quarter as large. An index has 20 to 24 bytes for a page, and so
//! takes three of the smaller pages.

use std::path::Path;

use anyhow::Result;
use terrane_workload::Distribution;

use super::check::{Checks, mean_of, most, times_range};
use super::setting::{Keys, OF_EACH_KIND, Setting};
use super::tree::{Load, Pages, Tree};
use crate::claims::report::{Report, times};
use crate::human;

/// Pages of a table of the paper.
const TABLE_PAGES: u64 = 512;
const PAGE_BYTES: u32 = 4 << 10;
/// A sixteenth of the paper's, unless all is much smaller.
const ENTRIES: f64 = 10e6 / 16.0;
/// From this scale on there are as many: with fewer tables there would be no proportions.
const SCALE_OF_ALL: f64 = 0.1;
const ENTRY_BYTES: u64 = 128;
/// The paper's cache of 8 MiB is this part of its data.
const CACHE_PART: u64 = 160;
/// Half of the least memory that a database is opened with.
const CACHE_BYTES_MIN: u64 = 512 << 10;
/// The paper's ranges of 0.1 % and of 1 % of its entries, in pages.
const RANGE_PAGES: [usize; 2] = [80, 800];
/// Shares of lookups of keys that are not there, in percent.
const ALPHAS: [usize; 6] = [0, 20, 40, 60, 80, 100];

/// Pages that are read.
struct Costs {
    name: &'static str,
    asked: Vec<Pages>,
    /// By a range, as [`RANGE_PAGES`].
    ranges: Vec<f64>,
    /// By a lookup, 80 % of which are empty, after Zipf inserts.
    after_zipf: f64,
}

pub(super) fn measure(setting: &Setting, dir: &Path, report: &mut Report) -> Result<()> {
    let entries = ((ENTRIES * (setting.scale / SCALE_OF_ALL).min(1.0)) as usize).max(2000);
    let uniform = Keys::new(setting, Distribution::Uniform, entries);
    let zipf = Keys::new(setting, Distribution::Zipf { theta: 1.0 }, entries);
    let cache = (entries as u64 * ENTRY_BYTES / CACHE_PART).max(CACHE_BYTES_MIN);
    let mut all = Vec::new();
    let mut tables = 0;
    for name in OF_EACH_KIND {
        let mut design = setting.design(name)?;
        design.block_bytes = PAGE_BYTES;
        design.table_bytes = TABLE_PAGES * u64::from(PAGE_BYTES);
        design.buffer_bytes = design.table_bytes;
        let load = Load { is_on_disk: true, ..Load::inserts(design) };
        let tree = Tree::load(setting, &uniform, &load, dir)?.read_with_cache(cache)?;
        tables = tree.work.files;
        let ask = |alpha: &usize| tree.ask_pages(*alpha);
        let asked = ALPHAS.iter().map(ask).collect::<Result<Vec<_>>>()?;
        let entries_of = |pages: usize| pages * PAGE_BYTES as usize / ENTRY_BYTES as usize;
        let range = |pages: &usize| tree.scan_pages(entries_of(*pages));
        let ranges = RANGE_PAGES.iter().map(range).collect::<Result<Vec<_>>>()?;
        tree.close()?;
        let tree = Tree::load(setting, &zipf, &load, dir)?.read_with_cache(cache)?;
        let after_zipf = tree.ask_pages(80)?.mean;
        tree.close()?;
        all.push(Costs { name, asked, ranges, after_zipf });
    }
    table(report, &all, entries, tables, cache);
    lookups(report, &all);
    others(report, &all);
    Ok(())
}

fn table(report: &mut Report, all: &[Costs], entries: usize, tables: usize, cache: u64) {
    let alphas = ALPHAS.map(|alpha| format!("α={:.1}", alpha as f64 / 100.0));
    let ranges = RANGE_PAGES.map(|pages| format!("a range of {pages} pages"));
    let headers: Vec<&str> = std::iter::once("strategy")
        .chain(alphas.iter().map(String::as_str))
        .chain(["α=0.8 after Zipf inserts"])
        .chain(ranges.iter().map(String::as_str))
        .collect();
    let rows = all.iter().map(|one| {
        let asked = one.asked.iter().map(|pages| format!("{:.2}, {:.0}", pages.mean, pages.p90));
        let zipf = format!("{:.2}", one.after_zipf);
        let ranges = one.ranges.iter().map(|pages| format!("{pages:.0}"));
        std::iter::once(one.name.to_owned()).chain(asked).chain([zipf]).chain(ranges).collect()
    });
    let title = format!(
        "Pages read, mean and P90 of lookups, by trees of the paper's proportions: {} entries, {} of \
         {TABLE_PAGES} pages, a cache of {} (Fig. 4e to 4h, 6d)",
        human::count(entries as u64),
        human::counted(tables as u64, "table"),
        human::bytes(cache),
    );
    report.table(&title, &headers, rows.collect());
}

fn of(all: &[Costs], metric: impl Fn(&Costs) -> f64) -> Checks {
    Checks::named(all.iter().map(|one| (one.name, metric(one))).collect())
}

const FALLS: &str = "an empty lookup spares the index and the page, and reads hardly more filters than one that goes to the last level, where nine of ten keys are: pages fall with α";
const RISES: &str = "an empty lookup asks the filters of all levels, and few of them are in the cache: pages rise with α";

const LEVELED: [&str; 3] = ["full", "lo+1", "old"];
const PARTIAL: [&str; 2] = ["lo+1", "old"];

fn lookups(report: &mut Report, all: &[Costs]) {
    let at = |alpha: usize| ALPHAS.iter().position(|one| *one == alpha).unwrap_or(0);
    let pages = |alpha: usize| of(all, |one| one.asked[at(alpha)].mean);
    let existing = pages(0);
    let above = mean_of(&existing.among(&PARTIAL)) / existing.get("full");
    report.check(
        "S2-103 O6",
        "lookups of Full are 3 to 15 % below those of partial strategies (pages read)",
        format!("partial {} Full", times(above)),
        above >= 1.03,
        "the trees have as many levels with tables in them, and so as many filters to ask",
    );
    let curve = |metric: fn(&Pages) -> f64| -> Vec<f64> {
        let mean = |index: usize| mean_of(&of(all, |one| metric(&one.asked[index])).all());
        (0..ALPHAS.len()).map(mean).collect()
    };
    let (means, tails) = (curve(|pages| pages.mean), curve(|pages| pages.p90));
    let is_worst_inside = |curve: &[f64]| {
        let inner = most(&curve[1..curve.len() - 1]);
        inner > curve[0] && inner > curve[curve.len() - 1]
    };
    let told = |curve: &[f64]| {
        curve.iter().map(|pages| format!("{pages:.1}")).collect::<Vec<_>>().join(", ")
    };
    report.check(
        "S2-104 O7",
        "lookups are worst where empty and other ones are balanced (mean and P90 of pages read)",
        format!("from α=0 to 1: {}; P90 {}", told(&means), told(&tails)),
        is_worst_inside(&means) || is_worst_inside(&tails),
        if means[0] > means[ALPHAS.len() - 1] { FALLS } else { RISES },
    );
    let leveled: Vec<(f64, f64)> = [0, 80]
        .map(|alpha| times_range(pages(alpha).get("tier"), &pages(alpha).among(&LEVELED)))
        .to_vec();
    report.check(
        "S2-105 O8",
        "pages read per lookup: Tier 1.2 to 1.8× leveling, at any α",
        leveled
            .iter()
            .zip([0, 80])
            .map(|((low, high), alpha)| {
                format!("{} to {} at {:.1}", times(*low), times(*high), f64::from(alpha) / 100.0)
            })
            .collect::<Vec<_>>()
            .join(", "),
        leveled.iter().all(|(low, _)| *low >= 1.1),
        "more runs have more filters to read only as far as the cache has not got them, and what a lookup finds costs an index and a page under any strategy",
    );
    let (none, most_empty) = (mean_of(&existing.all()), mean_of(&pages(80).all()));
    report.check(
        "S2-105 O8",
        "and grow with α: from 4 at 0 to 14 at 0.8",
        format!("{none:.1} at 0, {most_empty:.1} at 0.8"),
        most_empty > none,
        FALLS,
    );
}

fn others(report: &mut Report, all: &[Costs]) {
    let more: Vec<f64> = (0..RANGE_PAGES.len())
        .map(|index| {
            let pages = of(all, |one| one.ranges[index]);
            pages.get("tier") / mean_of(&pages.among(&LEVELED))
        })
        .collect();
    report.check(
        "S2-106 O9, TA VI",
        "ranges cost Tier 5 % more, whatever their length (pages read)",
        format!(
            "{} with {} pages, {} with {}",
            times(more[0]),
            RANGE_PAGES[0],
            times(more[1]),
            RANGE_PAGES[1]
        ),
        more.iter().all(|more| (0.95..=1.2).contains(more)),
        "",
    );
    let fewer: Vec<f64> =
        all.iter().map(|one| 100.0 * (1.0 - one.after_zipf / one.asked[4].mean)).collect();
    report.check(
        "S2-108 O13",
        "after Zipf inserts, lookups of which 80 % are empty read 65 to 75 % fewer pages",
        format!("{:.0} % fewer on average", mean_of(&fewer)),
        mean_of(&fewer) >= 30.0,
        "keys that lie close together end empty lookups by the bounds of tables, without a filter; what is left of the pages are those of keys that are there",
    );
}
