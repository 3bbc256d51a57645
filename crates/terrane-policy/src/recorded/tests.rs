//! Tests recordings as text, and the share of their decisions that the catalogue reproduces.

use std::path::PathBuf;

use super::*;
use crate::design::Design;

const SMALL: &str = "\
system S 1
options a=b
load uniform
design leveldb; buffer=1KiB; table=1KiB
skipped 3
base 1
level 0 4=a..=k:1KiB,seq=5-9 3=c..=z:1KiB
level 1 1=a..=c:1KiB 2=d..=f:1KiB
cursor 1 c\\x00

flush 0 5=b..=c:1KiB,entries=3,tombstones=2
rest
compact L0 0: 3 4 5 1: 1 2 -> 1: 6=a..=z:4KiB
move - 1: 6 -> 2
base 4
";

fn replayed(text: &str) -> Vec<(Option<Difference>, String)> {
    let trace: Trace = text.parse().unwrap();
    let design: Design = trace.design.parse().unwrap();
    let decisions = replay(&trace, &design).unwrap().into_iter();
    decisions
        .map(|one| (one.difference, one.design.map_or("rest".into(), |job| job.to_string())))
        .collect()
}

fn differences(text: &str) -> Vec<Option<Difference>> {
    replayed(text).into_iter().map(|(difference, _)| difference).collect()
}

#[test]
fn recordings_print_as_they_parse() {
    let trace: Trace = SMALL.parse().unwrap();
    assert_eq!(trace.to_string(), SMALL);
    assert_eq!(trace.events.len(), 5);
    for damaged in ["flush x 1=a..=b:1", "compact - 0: 1 ->", "move 0: 1 2", "level 99 1=a..=b:1"] {
        assert!(damaged.parse::<Trace>().is_err(), "{damaged}");
    }
}

#[test]
fn the_last_decisions_start_from_the_tree_before_them() {
    let trace: Trace = SMALL.parse().unwrap();
    let last = trace.last(1).unwrap();
    assert_eq!(last.skipped, 5);
    assert_eq!(last.events, trace.events[3..]);
    assert_eq!(last.start.iter().map(Vec::len).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(trace.last(9).unwrap(), Trace { skipped: 3, ..trace.clone() });
    let unknown: Trace = "move - 1: 7 -> 2".parse().unwrap();
    assert!(matches!(unknown.last(0), Err(ReplayError::Unknown(id)) if id.0 == 7));
}

#[test]
fn a_base_level_is_level_1_of_the_design() {
    let text = "design 1-leveling L0=2 base=1KiB; movement=round-robin\nbase 5\n\
                level 0 4=a..=k:1KiB 3=c..=z:1KiB\nlevel 5 1=a..=c:1KiB\n\
                compact - 0: 3 4 5: 1 -> 5: 6=a..=z:3KiB\nmove - 5: 6 -> 6\n";
    let [(None, first), (None, second)] = &replayed(text)[..] else {
        panic!("{:?}", replayed(text))
    };
    assert!(first.starts_with("L0 r7: 4 + L0 r6: 3 + L1 r1: 1 -> L1 r1"), "{first}");
    assert!(second.starts_with("L1 r1: 6 -> L2 new run"), "{second}");
}

#[test]
fn differences_follow_their_rules() {
    let of = |design: &str, tree: &str, decision: &str| {
        let found = differences(&format!("design {design}\n{tree}\n{decision}\n"));
        found[0]
    };
    let level0 = "level 0 4=a..=k:1KiB 3=c..=z:1KiB 2=a..=k:1KiB";
    let gathers = "1-leveling L0=3 base=9KiB; buffer=1KiB; trigger=run-count,level-saturation";
    // The outputs of a compaction do not matter here.
    let to_1 = "-> 1:";
    assert_eq!(of(gathers, level0, &format!("compact - 0: 2 3 4 {to_1}")), None);
    assert_eq!(of(gathers, level0, "rest"), Some(Difference::Acts));
    let fewer = of(gathers, level0, &format!("compact - 0: 2 3 {to_1}"));
    assert_eq!(fewer, Some(Difference::FewerRuns));
    let within = of(gathers, level0, "compact - 0: 3 4 -> 0:");
    assert_eq!(within, Some(Difference::WithinLevel0));
    let rests = of(gathers, "level 0 4=a..=k:1KiB", &format!("compact - 0: 4 {to_1}"));
    assert_eq!(rests, Some(Difference::Rests));

    let turns = "leveling base=1KiB; table=1KiB; movement=round-robin";
    let tables =
        "level 1 1=a..=b:1KiB 2=c..=d:1KiB 3=e..=f:1KiB\nlevel 2 5=a..=c:1KiB 6=e..=h:9KiB";
    let to_2 = "-> 2:";
    assert_eq!(of(turns, tables, &format!("compact - 1: 1 2: 5 {to_2}")), None);
    let of_level_1 = |decision: &str| of(turns, tables, &format!("{decision} {to_2}"));
    assert_eq!(of_level_1("compact - 1: 1 2 2: 5"), Some(Difference::Expanded));
    assert_eq!(of_level_1("compact - 1: 1 2 3 2: 5 6"), Some(Difference::MoreTables));
    assert_eq!(of_level_1("compact - 1: 3 2: 6"), Some(Difference::Turn));
    assert_eq!(of_level_1("compact - 1: 1 2: 5 6"), Some(Difference::Target));
    let cursor = format!("{tables}\ncursor 1 b");
    assert_eq!(of(turns, &cursor, &format!("compact - 1: 2 2: 5 {to_2}")), None);
    let least = "leveling base=1KiB; table=1KiB";
    let table = of(least, tables, &format!("compact - 1: 3 2: 6 {to_2}"));
    assert_eq!(table, Some(Difference::Table));
    let tie = of(least, tables, &format!("compact - 1: 2 2: 5 {to_2}"));
    assert_eq!(tie, Some(Difference::Tie));
    let alone = "level 1 1=a..=b:1KiB 2=c..=d:1KiB\nlevel 2 6=x..=z:1KiB";
    assert_eq!(of(least, alone, "move - 1: 1 2 -> 2"), Some(Difference::MovedTogether));

    let lower = "level 1 1=a..=b:2KiB\nlevel 2 5=a..=c:9KiB\nlevel 3 6=a..=c:99KiB";
    let level = of("leveling T=5 base=1KiB", lower, "compact - 2: 5 3: 6 -> 3:");
    assert_eq!(level, Some(Difference::Level));
    let deletes = "level 1 1=a..=b:1KiB,entries=4,tombstones=4 2=c..=d:512,entries=4";
    let counted = of("leveling base=2KiB", deletes, "move - 1: 1 -> 2");
    assert_eq!(counted, Some(Difference::Deletes));
}

/// Compares the recordings of LevelDB and RocksDB with the compactions that their designs choose.
/// Fails if a change to the catalogue or to picking alters these decisions. `docs/recorded.md`
/// lists all decisions.
#[test]
fn the_catalogue_decides_as_the_systems_do() {
    let expected = [
        ("leveldb-deletes", 33, 33),
        ("leveldb-lookups", 26, 45),
        ("leveldb-sequential", 32, 32),
        ("leveldb-uniform", 41, 41),
        ("leveldb-zipf", 25, 25),
        ("rocksdb-coldest-uniform", 44, 44),
        ("rocksdb-dynamic-uniform", 44, 44),
        ("rocksdb-dynamic-zipf", 35, 36),
        ("rocksdb-oldest-uniform", 40, 40),
        ("rocksdb-overlap-bursts", 58, 59),
        ("rocksdb-overlap-deletes", 29, 30),
        ("rocksdb-overlap-sequential", 27, 27),
        ("rocksdb-overlap-uniform", 41, 41),
        ("rocksdb-overlap-zipf", 31, 32),
        ("rocksdb-size-deletes", 24, 26),
        ("rocksdb-turns-uniform", 12, 29),
        ("rocksdb-universal-bursts", 37, 37),
        ("rocksdb-universal-deletes", 26, 26),
        ("rocksdb-universal-uniform", 31, 31),
        ("rocksdb-universal-zipf", 31, 31),
    ];
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/recorded");
    let entries = std::fs::read_dir(dir).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut found = Vec::new();
    for path in &paths {
        let trace: Trace = std::fs::read_to_string(path).unwrap().parse().unwrap();
        let design: Design = trace.design.parse().unwrap();
        let decisions = replay(&trace, &design).unwrap();
        let is_compaction = |one: &&Decision| matches!(one.system, Event::Compaction(_));
        let made = decisions.iter().filter(is_compaction);
        let equal = made.clone().filter(|one| one.difference.is_none()).count();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        found.push((name, equal, made.count()));
    }
    let found: Vec<(&str, usize, usize)> =
        found.iter().map(|(name, equal, all)| (&name[..], *equal, *all)).collect();
    assert_eq!(found, expected);
}
