//! Sizes and settings: O19 to O23.

use std::path::Path;

use anyhow::Result;
use terrane::Design;
use terrane::policy::design::PerLevel;
use terrane_workload::Distribution;

use super::check::{Checks, mean_of};
use super::loading::{ALL_OF_IT, rows};
use super::setting::{Keys, OF_EACH_KIND, Setting, VALUE_BYTES};
use super::tree::{Load, Tree, Work};
use crate::claims::report::{Report, times};

type Works = Vec<(&'static str, Work)>;

pub(super) fn measure(
    setting: &Setting,
    keys: &Keys,
    dir: &Path,
    report: &mut Report,
) -> Result<()> {
    let mut run = |title: &str, keys: &Keys, value_bytes, change: &dyn Fn(&mut Design)| {
        let mut works = Vec::new();
        for name in OF_EACH_KIND {
            let mut design = setting.design(name)?;
            change(&mut design);
            design.validate()?;
            let load = Load { value_bytes, ..Load::inserts(design) };
            works.push((name, Tree::load(setting, keys, &load, dir)?.close()?));
        }
        rows(report, title, works.iter().map(|(name, work)| ((*name).to_owned(), work)));
        anyhow::Ok(works)
    };
    let base = run("The setting of the rest", keys, VALUE_BYTES, &|_| {})?;
    let quarter = Keys::new(setting, Distribution::Uniform, setting.entries() / 4);
    let quarter = run("A quarter of the entries (Fig. 8g)", &quarter, VALUE_BYTES, &|_| {})?;
    let small = run("Entries of 32 bytes (Fig. 8j)", keys, 28, &|_| {})?;
    let buffer = run("Buffers 4× as large (Fig. 8l)", keys, VALUE_BYTES, &|design| {
        design.buffer_bytes *= 4;
        design.table_bytes *= 4;
    })?;
    let page = run("Pages of 1 KiB (Fig. 8o)", keys, VALUE_BYTES, &|design| {
        design.block_bytes = 1 << 10;
    })?;
    let large_page = run("Pages of 16 KiB (Fig. 8o, 12)", keys, VALUE_BYTES, &|design| {
        design.block_bytes = 16 << 10;
    })?;
    let ratio = run("T=4 (Fig. 13)", keys, VALUE_BYTES, &|design| {
        design.strategy.size_ratio = 4;
        if design.strategy.level0_runs == 10 {
            design.strategy.level0_runs = 4;
        }
    })?;
    let half = run("T=6 (Fig. 13)", keys, VALUE_BYTES, &|design| {
        design.strategy.size_ratio = 6;
        if design.strategy.level0_runs == 10 {
            design.strategy.level0_runs = 6;
        }
    })?;
    let bits = run("5 filter bits a key (Fig. 14)", keys, VALUE_BYTES, &|design| {
        design.filter_bits = PerLevel::all(5.0);
    })?;
    data_size(report, &base, &quarter);
    entry_size(report, &base, &small);
    buffer_size(report, &base, &buffer);
    let order = |works: &Works| metric(works, Work::moved).order().join(" < ");
    let is_alike = |other: &Works| order(other) == order(&base);
    report.check(
        "S2-111 O22",
        "strategies react to the size of pages alike",
        format!("moved with 1 KiB: {}; with 16 KiB: {}", order(&page), order(&large_page)),
        is_alike(&page) && is_alike(&large_page),
        "",
    );
    report.check(
        "S2-111 O23",
        "and to T and to bits of filters: the order of the strategies stays",
        format!("T=4: {}; 5 bits: {}", order(&ratio), order(&bits)),
        is_alike(&ratio) && is_alike(&bits),
        "",
    );
    let rises = [change(&ratio, &half, Work::mean_job), change(&half, &base, Work::mean_job)];
    report.check(
        "S2-96",
        "the mean compaction grows with T, under every strategy (bytes moved)",
        format!("from 4 to 6: {}; from 6 to 10: {}", named(&rises[0]), named(&rises[1])),
        rises.iter().flatten().all(|change| *change > 1.0),
        "of Tier there are few compactions, and how full the last level is in the end decides how large one of them is",
    );
    Ok(())
}

fn metric(works: &Works, metric: impl Fn(&Work) -> f64) -> Checks {
    Checks::named(works.iter().map(|(name, work)| (*name, metric(work))).collect())
}

/// By how much a metric changes for each strategy.
fn change(from: &Works, to: &Works, of: impl Fn(&Work) -> f64) -> Vec<f64> {
    from.iter().zip(to).map(|((_, from), (_, to))| of(to) / of(from)).collect()
}

fn named(changes: &[f64]) -> String {
    let each = OF_EACH_KIND.iter().zip(changes);
    each.map(|(name, change)| format!("{name} {}", times(*change))).collect::<Vec<_>>().join(", ")
}

fn data_size(report: &mut Report, base: &Works, quarter: &Works) {
    let mean = change(quarter, base, Work::mean_job);
    report.check(
        "S2-111 O19",
        "the mean compaction grows less than the data (bytes moved)",
        format!("with 4× the data {}", named(&mean)),
        mean.iter().all(|change| *change < 4.0),
        "",
    );
    let tail = metric(base, Work::largest_job);
    report.check(
        "S2-111 O19",
        "Tier's longest compaction is the longest of all (bytes moved)",
        format!("Tier {} Full", times(tail.get("tier") / tail.get("full"))),
        tail.order().last() == Some(&"tier"),
        ALL_OF_IT,
    );
}

fn entry_size(report: &mut Report, base: &Works, small: &Works) {
    let dearer = change(base, small, Work::nanos_per_byte);
    report.check(
        "S2-111 O20",
        "small entries make compactions dearer, per byte (median time)",
        format!("32 against 128 bytes: {}", named(&dearer)),
        mean_of(&dearer) > 1.0,
        "",
    );
}

fn buffer_size(report: &mut Report, base: &Works, buffer: &Works) {
    let mean = change(base, buffer, Work::mean_job);
    report.check(
        "S2-111 O21",
        "a larger buffer makes the mean compaction longer (bytes moved)",
        named(&mean),
        mean.iter().all(|change| *change > 1.0),
        "",
    );
    let written = metric(base, Work::write_amplification);
    report.check(
        "S2-111 O21",
        "of partial strategies Old writes more than LO+1",
        format!("Old {} LO+1", times(written.get("old") / written.get("lo+1"))),
        written.get("old") > written.get("lo+1"),
        "",
    );
}
