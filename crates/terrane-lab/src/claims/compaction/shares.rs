//! Distributions, updates and deletes: O12 to O18.

use std::path::Path;

use anyhow::Result;
use terrane::Design;
use terrane::policy::design::PerLevel;
use terrane::policy::strategy::trigger::{LevelSaturation, TombstoneDensity, TombstoneTtl};
use terrane_workload::Distribution;

use super::check::{Checks, mean_of, most};
use super::loading::{Loaded, rows};
use super::setting::{Keys, OF_EACH_KIND, Setting, WITHOUT_DELETES};
use super::tree::{Load, Tree, Work};
use crate::claims::report::{Report, times};

const NORMAL: Distribution = Distribution::Normal { deviation: 0.34 };
const ZIPF: Distribution = Distribution::Zipf { theta: 1.0 };
/// TSD with a density that tables reach where one operation of ten is a delete: the paper does not
/// tell its own.
const DENSE: &str = "tsd12";
const DENSE_PERCENT: u32 = 12;
/// An operation is a millisecond of the clock.
const OPERATION_MICROS: u64 = 1000;

pub(super) fn distributions(
    setting: &Setting,
    keys: &Keys,
    loaded: &[Loaded],
    dir: &Path,
    report: &mut Report,
) -> Result<()> {
    let mut off: f64 = 1.0;
    for (name, distribution) in [("Zipf, s=1", ZIPF), ("normal, 34 %", NORMAL)] {
        let drawn = Keys::new(setting, distribution, setting.entries());
        let mut works = Vec::new();
        for strategy in OF_EACH_KIND {
            let load = Load::inserts(setting.design(strategy)?);
            let work = Tree::load(setting, &drawn, &load, dir)?.close()?;
            if let Some(uniform) = loaded.iter().find(|one| one.name == strategy) {
                let ratio = work.moved() / uniform.work.moved();
                off = off.max(ratio).max(1.0 / ratio);
            }
            works.push((strategy.to_owned(), work));
        }
        let title = format!("Unique inserts, {name} (Fig. 6)");
        rows(report, &title, works.iter().map(|(name, work)| (name.clone(), work)));
    }
    report.check(
        "S2-108 O12",
        "data movement is the same for uniform, Zipf and normal inserts",
        format!("within {} of uniform", times(off)),
        off < 1.15,
        "",
    );
    asked(setting, keys, loaded, dir, report)
}

fn asked(
    setting: &Setting,
    keys: &Keys,
    loaded: &[Loaded],
    dir: &Path,
    report: &mut Report,
) -> Result<()> {
    let mut table = Vec::new();
    let mut cheaper = Vec::new();
    for strategy in OF_EACH_KIND {
        let load = Load::inserts(setting.design(strategy)?);
        let tree = Tree::load(setting, keys, &load, dir)?;
        let (zipf, normal) = (tree.ask(0, ZIPF)?, tree.ask(0, NORMAL)?);
        tree.close()?;
        let uniform = loaded.iter().find(|one| one.name == strategy).map(|one| one.asked[0]);
        let uniform = uniform.map_or(f64::NAN, |asked| asked.read_amplification);
        cheaper.push(zipf.read_amplification / uniform);
        let cells = [uniform, zipf.read_amplification, normal.read_amplification];
        let cells = cells.map(|pages| format!("{pages:.2}"));
        table.push(std::iter::once(strategy.to_owned()).chain(cells).collect());
    }
    let headers = ["strategy", "uniform", "Zipf", "normal"];
    report.table("Pages read per lookup, by distribution of lookups (Fig. 7)", &headers, table);
    report.check(
        "S2-108 O14, TA VIII",
        "Zipf lookups read far fewer pages than uniform ones, under every strategy",
        format!("at most {} of uniform", times(most(&cheaper))),
        most(&cheaper) < 0.8,
        "",
    );
    Ok(())
}

pub(super) fn updates(
    setting: &Setting,
    keys: &Keys,
    dir: &Path,
    report: &mut Report,
) -> Result<()> {
    let mut by_ratio: Vec<Vec<(&'static str, Work)>> = Vec::new();
    for updates in [0, 8] {
        let mut works = Vec::new();
        for name in WITHOUT_DELETES {
            let load = Load { updates, ..Load::inserts(setting.design(name)?) };
            works.push((name, Tree::load(setting, keys, &load, dir)?.close()?));
        }
        let title = format!("{updates} updates for each insert (Fig. 8a to 8c)");
        rows(report, &title, works.iter().map(|(name, work)| ((*name).to_owned(), work)));
        by_ratio.push(works);
    }
    let metric = |at: usize, metric: fn(&Work) -> f64| {
        Checks::named(by_ratio[at].iter().map(|(name, work)| (*name, metric(work))).collect())
    };
    let mean = |at| metric(at, Work::mean_job);
    let tier = mean(1).get("tier") / mean(0).get("tier");
    report.check(
        "S2-109 O15, TA IX",
        "updates make Tier's compactions smaller (bytes moved)",
        format!("{} with 8 updates for each insert", times(tier)),
        tier < 0.95,
        "",
    );
    let moved = metric(1, Work::moved);
    let leveled = ["full", "lo+1", "lo+2", "rr", "cold", "old"];
    let others = mean_of(&moved.among(&["full", "lo+1", "rr", "cold", "old"]));
    let less = 100.0 * (1.0 - moved.get("lo+2") / others);
    let is_best = moved.order().into_iter().find(|name| leveled.contains(name)) == Some("lo+2");
    report.check(
        "S2-109 O15",
        "LO+2 moves least of the leveled strategies, by 20 %",
        format!("{less:.0} % less than the mean of the others"),
        is_best,
        "with 8 updates for each insert there are two levels: LO+2 has no grandparent to look at, and is LO+1",
    );
    let tail = |at| {
        let tail = metric(at, Work::largest_job);
        tail.get("tier") / tail.get("full")
    };
    report.check(
        "S2-109 O16",
        "Tier's longest compaction falls from 6× that of Full to 1.2× (bytes moved)",
        format!("from {} to {}", times(tail(0)), times(tail(1))),
        tail(1) < tail(0),
        "",
    );
    Ok(())
}

/// A strategy of the catalogue, or one of those for deletes with a threshold of its own.
fn design_for_deletes(setting: &Setting, name: &str) -> Result<Design> {
    let of = ["tsa", "tsd"].into_iter().find(|of| name.starts_with(of)).unwrap_or(name);
    let mut design = setting.design(of)?;
    if name == DENSE {
        let triggers = vec![TombstoneDensity(DENSE_PERCENT).into(), LevelSaturation.into()];
        design.strategy.triggers = PerLevel::all(triggers);
    }
    let time = setting.entries() as u64 * OPERATION_MICROS;
    // §5.2.4: a quarter of the time of the experiment, and half of it.
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
    setting: &Setting,
    keys: &Keys,
    dir: &Path,
    report: &mut Report,
) -> Result<()> {
    let names = [
        "full", "lo+1", "lo+2", "rr", "cold", "old", "tsd", DENSE, "tsa33", "tsa50", "tier",
        "1-lvl",
    ];
    let mut works = Vec::new();
    for name in names {
        let design = design_for_deletes(setting, name)?;
        let load = Load { deletes_percent: 10, ..Load::inserts(design) };
        works.push((name, Tree::load(setting, keys, &load, dir)?.close()?));
    }
    let title = "10 % deletes (Fig. 8d to 8f)";
    rows(report, title, works.iter().map(|(name, work)| ((*name).to_owned(), work)));
    let metric = |metric: fn(&Work) -> f64| {
        Checks::named(works.iter().map(|(name, work)| (*name, metric(work))).collect())
    };
    let left = metric(|work| work.tombstones as f64);
    let fewer = |than: f64, name: &str| 100.0 * (1.0 - left.get(name) / than);
    let tier = fewer(left.get("tier"), DENSE);
    report.check(
        "S2-110 O17, TA X",
        "TSD leaves 16 % fewer tombstones than Tier",
        format!("{tier:.0} % fewer"),
        tier >= 8.0,
        "",
    );
    let others = mean_of(&left.among(&["lo+1", "lo+2", "rr", "cold", "old"]));
    let partial = fewer(others, DENSE);
    report.check(
        "S2-110 O17",
        "and 5 % fewer than other partial strategies",
        format!(
            "{partial:.0} % fewer with tables of {DENSE_PERCENT} % tombstones, {:.0} % with those of 50 %",
            fewer(others, "tsd")
        ),
        partial > 0.0,
        "one operation of ten is a delete, and few tables have many more tombstones than that",
    );
    let tsa = ["tsa33", "tsa50"].map(|name| fewer(left.get(DENSE), name));
    report.check(
        "S2-110 O17",
        "TSA leaves 7 to 10 % fewer tombstones than TSD",
        format!("TSA33 {:.0} %, TSA50 {:.0} % fewer", tsa[0], tsa[1]),
        tsa.iter().all(|fewer| *fewer > 0.0),
        "tombstones that are not expired yet stay where they are, and a table with many moves at once",
    );
    let moved = metric(Work::moved);
    let more =
        [DENSE, "tsa50", "tsa33"].map(|name| 100.0 * (moved.get(name) / moved.get("lo+1") - 1.0));
    report.check(
        "S2-110 O18",
        "TSD and TSA50 move 18 % more than LO+1, TSA33 35 %",
        format!("TSD {:.0} %, TSA50 {:.0} %, TSA33 {:.0} % more", more[0], more[1], more[2]),
        more.iter().all(|more| *more >= 5.0) && more[2] >= more[1],
        "tombstones that are due by TSA's time are mostly in tables that move anyway",
    );
    Ok(())
}
