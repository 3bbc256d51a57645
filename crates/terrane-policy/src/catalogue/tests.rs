//! Checks the catalogue against the paper's tables, which `testdata/tables.txt` repeats.

use std::collections::BTreeSet;

use super::*;
use crate::design::Design;
use crate::strategy::Eagerness;
use crate::strategy::Movement;
use crate::strategy::Strategy;

const TABLES: &str = include_str!("../../testdata/tables.txt");

/// Returns the lines of one table, each split at `|`.
fn table(number: usize) -> Vec<Vec<&'static str>> {
    let section = TABLES.split("[table ").find(|part| part.starts_with(&format!("{number}]")));
    let lines = section.unwrap().lines().skip(1);
    let rows = lines.filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    rows.map(|line| line.split('|').map(str::trim).collect()).collect()
}

fn set(words: &str) -> BTreeSet<String> {
    words.split_whitespace().map(str::to_owned).collect()
}

/// The primitives of a strategy as sets of names. Triggers are those of level 1, because many systems use
/// the number of files for level 0. A size-tiered policy counts as the paper's triggers of which it
/// consists.
fn primitives(strategy: &Strategy) -> [BTreeSet<String>; 4] {
    let triggers = strategy.triggers.at(1).iter().flat_map(|trigger| {
        let info = trigger.kind().info();
        if info.consists_of.is_empty() { vec![info.name] } else { info.consists_of.to_vec() }
    });
    let triggers = triggers.map(str::to_owned);
    let granularity = strategy.granularity.at(1).to_string();
    let granularity = granularity.split('(').next().unwrap_or_default().to_owned();
    // The paper has a single round-robin.
    let rule = |rule: &Movement| rule.to_string().trim_end_matches("-within").to_owned();
    let movement: BTreeSet<String> = strategy.movement.at(1).iter().map(rule).collect();
    [
        set(&strategy.eagerness.to_string()),
        triggers.collect(),
        set(&granularity),
        if movement.is_empty() { set("none") } else { movement },
    ]
}

#[test]
fn names_are_unique_and_the_default_exists() {
    let names: BTreeSet<&str> = ALL.iter().map(|entry| entry.name).collect();
    assert_eq!(names.len(), ALL.len());
    assert!(find(DEFAULT).is_some());
}

#[test]
fn all_designs_are_valid_and_print_as_they_parse() {
    for entry in ALL {
        let design = (entry.design)();
        assert_eq!(design.validate(), Ok(()), "{}", entry.name);
        assert_eq!(design.to_string().parse(), Ok(design), "{}", entry.name);
        assert!(!entry.about.is_empty() && !entry.source.is_empty(), "{}", entry.name);
    }
}

/// [`plain`] silently turns a text that does not parse into leveling.
#[test]
fn texts_of_the_catalogue_parse() {
    let fallback = Design::new(Eagerness::Leveling);
    for entry in ALL.iter().filter(|entry| entry.name != "leveling") {
        assert_ne!((entry.design)(), fallback, "{} did not parse", entry.name);
    }
}

#[test]
fn strategies_of_table_2_match_the_paper() {
    let rows = table(2);
    assert_eq!(rows.len(), 9);
    for row in rows {
        let [name, eagerness, triggers, granularity, movement] = row[..] else { panic!("{row:?}") };
        let strategy = (find(name).unwrap().design)().strategy;
        let found = primitives(&strategy);
        let printed = [eagerness, triggers, granularity, movement].map(set);
        assert_eq!(found, printed, "{name}");
        // The order of the list is the precedence.
        let rules: Vec<String> = strategy.movement.at(1).iter().map(ToString::to_string).collect();
        let words: Vec<&str> = movement.split_whitespace().filter(|word| *word != "none").collect();
        assert_eq!(rules, words, "{name}");
    }
}

/// Table 2 prints a trigger for Tier that the paper's text contradicts: its programs ran RocksDB's
/// universal compaction.
#[test]
fn tier_is_rocksdbs_universal_compaction() {
    let strategy = (find("tier").unwrap().design)().strategy;
    let system = (find("rocksdb-tiering").unwrap().design)().strategy;
    assert_eq!(
        strategy.triggers.at(0),
        &["universal(runs=4,space=200,ratio=1,min=2)".parse().unwrap()]
    );
    let policy = |strategy: &Strategy| strategy.size_tiered_trigger().cloned();
    assert_eq!(policy(&strategy), policy(&system));
}

/// Systems whose source contradicts their row in Table 1; `beyond` says how.
const NOT_AS_PRINTED: [&str; 1] = ["wiredtiger"];

#[test]
fn every_system_of_table_1_has_a_design_within_its_row() {
    let rows = table(1);
    assert_eq!(rows.len(), 24, "20 printed rows, 4 of which have two lines");
    let mut named = BTreeSet::new();
    for row in rows {
        let [names, eagerness, triggers, granularity, movement] = row[..] else {
            panic!("{row:?}")
        };
        for name in names.split_whitespace() {
            named.insert(name);
            let entry = find(name).unwrap_or_else(|| panic!("{name} is not in the catalogue"));
            let known = entry.row.unwrap_or_else(|| panic!("{name} has no row"));
            let printed = [eagerness, triggers, granularity, movement].map(set);
            let known =
                [known.eagerness, known.triggers, known.granularity, known.movement].map(set);
            assert_eq!(known, printed, "{name}");
            let found = primitives(&(entry.design)().strategy);
            let is_within = found.iter().zip(&printed).all(|(one, row)| one.is_subset(row));
            assert_eq!(is_within, !NOT_AS_PRINTED.contains(&name), "{name}: {found:?} {printed:?}");
            assert!(!entry.beyond.is_empty(), "{name} must list the features that it lacks");
        }
    }
    let others = ALL.iter().filter(|entry| entry.row.is_some() && !named.contains(entry.name));
    assert_eq!(others.count(), 0, "rows that are not in Table 1");
    assert_eq!(named.len(), 30);
}

/// The performance-stability paper proposes these settings (§5.1.5), and runs them in AsterixDB.
#[test]
fn designs_of_the_stability_paper_have_its_scheduler_limit_and_memtables() {
    for name in ["greedy-leveling", "greedy-tiering", "asterixdb-leveling", "asterixdb-tiering"] {
        let design = (find(name).unwrap().design)();
        let constraint = &design.constraint;
        assert_eq!(design.scheduler.to_string(), "greedy", "{name}");
        assert_eq!(constraint.limit.to_string(), "global(2x)", "{name}");
        assert_eq!(constraint.violation.to_string(), "stop", "{name}");
        // One memtable takes writes while another is flushed.
        assert_eq!((constraint.stop_buffers, design.buffer_bytes), (1, 128 << 20), "{name}");
    }
}

/// The papers name the same trees differently: Dent's tree and the stability paper's tiering both gather
/// runs and merge them by number, and the compaction paper's Full is the stability paper's leveling.
#[test]
fn trees_of_several_papers_are_one_strategy_under_their_names() {
    let words = |name: &str| (find(name).unwrap().design)().strategy.words();
    let levels = ["leveling", "level-saturation", "level", "none"].map(String::from);
    for name in ["full", "asterixdb-leveling", "greedy-leveling", "o-neil"] {
        assert_eq!(words(name), levels, "{name}");
    }
    for name in ["dent", "asterixdb-tiering", "greedy-tiering"] {
        let [eagerness, triggers, granularity, movement] = words(name);
        assert_eq!((eagerness.as_str(), triggers.as_str()), ("tiering", "run-count"), "{name}");
        // A level that gathers runs gives up all of them with either granularity.
        assert!(["run", "level"].contains(&granularity.as_str()), "{name}: {granularity}");
        assert_eq!(movement, "none", "{name}");
    }
    // A design text may begin with a name.
    for name in ["dent", "asterixdb-leveling", "asterixdb-tiering", "leveldb", "blsm"] {
        let design: Design = format!("{name}; T=7").parse().unwrap();
        assert_eq!(design.strategy.size_ratio, 7, "{name}");
    }
}

/// The map of docs/designs.md, "Numbers of levels". The papers count levels on disk from 1, and level i holds buffer · T^i
/// bytes. Here level 0 is where flushes land. If it keeps no run, as in leveling, level i is theirs;
/// if it gathers T flushes, as in tiering, it is their level 1.
#[test]
fn levels_of_the_papers_have_the_capacities_of_their_numbers_here() {
    for (name, ratio, shift) in [
        ("full", 10, 0),
        ("lo+1", 10, 0),
        ("asterixdb-leveling", 10, 0),
        ("tier-levels", 10, 1),
        ("1-lvl", 10, 1),
        ("dent", 10, 1),
        ("asterixdb-tiering", 3, 1),
    ] {
        let design = (find(name).unwrap().design)();
        assert_eq!(design.strategy.runs_allowed(0, 4) == 0, shift == 0, "{name}");
        for level in 1..=4u32 {
            let here = level as usize - shift;
            let bytes = design.buffer_bytes * u64::pow(ratio, level);
            assert_eq!(design.capacity_bytes(here, 4), bytes, "{name}, level {level}");
        }
    }
}
