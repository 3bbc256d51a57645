//! The default design beside designs that differ from it in one thing, by counts: what they write,
//! what reading costs, what space and filter memory they take, and how many files they make.
//!
//! Bytes alone would have tables as small as can be: less is rewritten with each. What that costs is
//! files, each of which is made, synced, opened and removed; and at the sizes of this page filters
//! of small tables are mostly rounding, for they are whole lines of 64 bytes. So filter memory is
//! what tables have, not what the design asks for, and the files are counted.

use std::path::Path;

use anyhow::Result;
use terrane::Design;
use terrane_workload::Distribution;

use super::setting::{Keys, Setting};
use super::tree::{Load, Tree};
use crate::claims::report::Report;

/// What each candidate is called, its strategy, the capacity of level 1 in buffers, and the tables of a
/// buffer; filters are those of the default unless others are given. The first one is the default.
const CANDIDATES: &[(&str, &str, Option<u64>, u64)] = &[
    ("balanced, the default", "1-leveling", Some(4), 2),
    ("L0=2", "1-leveling L0=2", Some(4), 2),
    ("L0=8", "1-leveling L0=8", Some(8), 2),
    ("T=4", "1-leveling T=4", Some(4), 2),
    ("T=6", "1-leveling T=6", Some(4), 2),
    ("T=8", "1-leveling T=8", Some(4), 2),
    ("level 1 of 8 buffers", "1-leveling", Some(8), 2),
    ("level 1 of 40 buffers", "1-leveling", None, 2),
    ("whole levels", "1-leveling; granularity=level", Some(4), 2),
    ("whole level 1, then tables", "1-leveling; granularity=level,level,file", Some(4), 2),
    ("four tables at once", "1-leveling; granularity=files(4)", Some(4), 2),
    ("round-robin", "1-leveling; movement=round-robin", Some(4), 2),
    ("10 filter bits in every level", "1-leveling; filter=10", Some(4), 2),
    ("tables of a buffer", "1-leveling", Some(4), 1),
    ("tables of a quarter buffer", "1-leveling", Some(4), 4),
    ("one run in level 0", "leveling", Some(4), 2),
    ("lazy leveling, T=4", "lazy-leveling T=4", None, 2),
    ("tiering, T=4", "tiering T=4", None, 2),
];

/// A candidate is as good as another one that is better by no more than this.
const ALIKE: f64 = 1.05;
/// And clearly better from this on.
const BETTER: f64 = 0.9;

/// What a candidate costs; less is better in all of it.
struct Costs {
    name: &'static str,
    costs: [f64; COSTS.len()],
}

const COSTS: [&str; 11] = [
    "load: written ×",
    "updates: written ×",
    "updates: tables over valid entries",
    "updates, nine of ten of a tenth of the keys: written ×",
    "runs a scan asks",
    "blocks of a lookup",
    "blocks of 1000 missing ones",
    "filter bits of a key",
    "largest compaction, in buffers",
    "files made for a buffer written",
    FILES,
];

const FILES: &str = "files in the end, for a buffer of data";

pub(super) fn measure(setting: &Setting, dir: &Path, report: &mut Report) -> Result<()> {
    let keys = Keys::new(setting, Distribution::Uniform, 2 * setting.entries());
    let mut all = Vec::new();
    for &(name, spec, base, tables) in CANDIDATES {
        all.push(Costs { name, costs: costs(setting, &keys, dir, (spec, base, tables))? });
    }
    let rows = all.iter().map(|one| {
        let cells = one.costs.iter().map(|cost| format!("{cost:.2}"));
        std::iter::once(one.name.to_owned()).chain(cells).collect()
    });
    let headers: Vec<&str> = std::iter::once("design").chain(COSTS).collect();
    report.table("The default, and what differs from it in one thing", &headers, rows.collect());
    let Some((default, others)) = all.split_first() else { return Ok(()) };
    let better = |one: &Costs| {
        let mut gains = gains(one, default);
        gains.sort_by(|a, b| b.0.total_cmp(&a.0));
        let [(most, cost), (next, _), ..] = gains;
        let (most, next) = (100.0 * most, 100.0 * next);
        format!(
            "{} by {most:.0} % in {cost}, and by at most {next:.0} % in anything else",
            one.name
        )
    };
    let winners: Vec<&Costs> = others.iter().filter(|one| beats(one, default)).collect();
    let only_in_files = |one: &&Costs| {
        let better = gains(one, default).into_iter().filter(|(gain, _)| *gain >= 1.0 - BETTER);
        better.map(|(_, cost)| cost).eq([FILES])
    };
    let why = match winners.iter().all(only_in_files) {
        true => {
            "fewer files in the end are nothing that writers or readers see, and the rest is as good: a choice among equals, in which the default stays what it is"
        }
        false => "",
    };
    let winners: Vec<String> = winners.into_iter().map(better).collect();
    report.check(
        "the default",
        "no candidate is within 5 % of the default or better in all of its costs, and 10 % better in one",
        if winners.is_empty() { "none".into() } else { winners.join(", ") },
        winners.is_empty(),
        why,
    );
    Ok(())
}

fn costs(
    setting: &Setting,
    keys: &Keys,
    dir: &Path,
    (spec, base, tables): (&str, Option<u64>, u64),
) -> Result<[f64; COSTS.len()]> {
    let filters = if spec.contains("filter=") { "" } else { "; filter=monkey(10)" };
    let mut design: Design = format!("{spec}{filters}").parse()?;
    design.buffer_bytes = setting.buffer_bytes();
    design.table_bytes = design.buffer_bytes / tables;
    design.strategy.base_bytes = base.map(|buffers| buffers * design.buffer_bytes);
    // Levels that gather runs need room for more before writers are held up.
    (design.constraint.delay_runs, design.constraint.stop_runs) = (20, 36);
    design.validate()?;
    let loaded = Tree::load(setting, keys, &Load::inserts(design.clone()), dir)?;
    let found = loaded.ask(0, Distribution::Uniform)?;
    // One in a hundred reads something: many are needed to tell designs apart.
    let often = 20 * setting.lookups();
    let missing = loaded.ask_often(100, Distribution::Uniform, often)?;
    let load = loaded.close()?;
    let updates = Load { updates: 4, ..Load::inserts(design) };
    let updated = Tree::load(setting, keys, &updates, dir)?.close()?;
    let skewed = Load { is_skewed: true, ..updates };
    let skewed = Tree::load(setting, keys, &skewed, dir)?.close()?;
    let buffer = setting.buffer_bytes() as f64;
    Ok([
        load.write_amplification(),
        updated.write_amplification(),
        1.0 + updated.mean_space,
        skewed.write_amplification(),
        load.mean_runs,
        found.blocks,
        1000.0 * missing.blocks,
        load.filter_bits,
        load.largest_job().max(updated.largest_job()) / buffer,
        load.tables_made as f64 / (load.user_bytes as f64 / buffer),
        load.files as f64 / (load.user_bytes as f64 / buffer),
    ])
}

/// By which part each cost of one is below that of the other.
fn gains(one: &Costs, other: &Costs) -> [(f64, &'static str); COSTS.len()] {
    std::array::from_fn(|at| (1.0 - one.costs[at] / other.costs[at], COSTS[at]))
}

/// Whether one is as good as the other in everything, and clearly better in something.
fn beats(one: &Costs, other: &Costs) -> bool {
    let pairs = || one.costs.iter().zip(&other.costs);
    pairs().all(|(one, other)| *one <= other * ALIKE)
        && pairs().any(|(one, other)| *one <= other * BETTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidate_wins_if_it_is_as_good_in_everything_and_better_in_something() {
        let costs = |first, rest| {
            let mut costs = [rest; COSTS.len()];
            costs[0] = first;
            Costs { name: "one", costs }
        };
        let default = costs(10.0, 10.0);
        assert!(!beats(&default, &default));
        assert!(beats(&costs(8.0, 10.4), &default));
        assert!(!beats(&costs(8.0, 11.0), &default));
        assert!(!beats(&costs(9.5, 9.5), &default));
    }
}
