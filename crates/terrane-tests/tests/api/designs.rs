//! Changing the design of a live database.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use terrane::storage::{Crash, Survival};
use terrane::{Background, Db, Design, ErrorKind, KeyspaceOptions};
use terrane_policy::{MemtableKind, catalogue};
use terrane_testkit::StopOnDrop;

use crate::support::{DIR, in_memory, pairs, small_design, tiny};

fn write(db: &Db, round: u32) {
    for number in 0..400u32 {
        let key = format!("{:04}", number.wrapping_mul(389) % 1000);
        db.put(key, format!("round {round} number {number} with some padding to fill tables"))
            .unwrap();
    }
}

/// Checks that every level of a settled tree holds as many runs as its design allows.
fn check_shape(db: &Db) {
    let (tree, design) = (db.tree(), db.design());
    let last = tree.shape.last_level();
    for (level, content) in tree.shape.levels.iter().enumerate() {
        let allowed = design.strategy.runs_allowed(level, last).max(1) as usize;
        assert!(content.runs.len() <= allowed, "L{level} of {design}:\n{tree}");
    }
}

#[test]
fn every_change_of_design_keeps_the_answers_and_reaches_the_new_shape() {
    let (options, _) = in_memory();
    let small = "T=3; buffer=4KiB; table=4KiB; block=512B";
    let names = ["leveling", "tiering", "lazy-leveling", "leveling-full", "1-leveling", "tiering"];
    let db = options.clone().design(small_design()).open(DIR).unwrap();
    for (round, name) in (0..).zip(names) {
        write(&db, round);
        let before = pairs(db.iter().unwrap());
        let design: Design = format!("{name} {small}").parse().unwrap();
        let held = db.snapshot();
        db.set_design(design.clone()).unwrap();
        assert_eq!(db.design(), design);
        assert_eq!(pairs(db.iter().unwrap()), before, "{name} at once");
        db.flush().unwrap();
        db.wait_for_compactions().unwrap();
        assert_eq!(pairs(db.iter().unwrap()), before, "{name} in shape");
        check_shape(&db);
        write(&db, round + 100);
        db.flush().unwrap();
        db.wait_for_compactions().unwrap();
        check_shape(&db);
        assert_eq!(pairs(held.iter().unwrap()), before, "{name} in a snapshot");
    }
    drop(db);
    let db = options.open(DIR).unwrap();
    assert_eq!(
        db.design().to_string(),
        format!("tiering {small}").parse::<Design>().unwrap().to_string()
    );
}

#[test]
fn every_design_of_the_catalogue_takes_over_from_any_other() {
    let (options, _) = in_memory();
    let mut rng = terrane_testkit::Rng::new(terrane_testkit::seed_from_env(11));
    let mut names: Vec<&str> = catalogue::ALL.iter().map(|entry| entry.name).collect();
    for at in (1..names.len()).rev() {
        names.swap(at, rng.index(at + 1));
    }
    let db = options.design(small_design()).open(DIR).unwrap();
    for (round, name) in (0..).zip(names) {
        let design = tiny(name);
        db.set_design(design.clone()).unwrap();
        for number in 0..60 {
            let number = (round * 60 + number) * 389 % 1000;
            db.put(format!("{number:04}"), format!("round {round} of {name}, padded")).unwrap();
            if number % 7 == 0 {
                db.delete(format!("{:04}", number / 2)).unwrap();
            }
        }
        let before = pairs(db.iter().unwrap());
        db.flush().unwrap();
        db.wait_for_compactions().unwrap();
        assert_eq!(pairs(db.iter().unwrap()), before, "{name}");
        assert_eq!(db.forecast(&design).unwrap().jobs, 0, "{name}:\n{}", db.tree());
    }
}

#[test]
fn writers_wait_until_the_tree_is_in_shape_if_the_design_says_so() {
    let (options, _) = in_memory();
    let design: Design = "tiering T=3; buffer=4KiB; stall=full".parse().unwrap();
    let db = options.design(design).open(DIR).unwrap();
    for round in 0..40 {
        for number in 0..20 {
            db.put(format!("{number:04}"), [round; 40]).unwrap();
        }
        db.flush().unwrap();
        db.put("last", [round]).unwrap();
        let runs = db.tree().shape.levels.iter().map(|level| level.runs.len()).max().unwrap_or(0);
        assert!(runs <= 2, "a write continued with {runs} runs in a level:\n{}", db.tree());
    }
    assert!(db.stats().stalls.compactions_due_micros > 0);
}

#[test]
fn filters_and_compression_follow_the_new_design() {
    let (options, _) = in_memory();
    let db = options
        .design("leveling T=3; buffer=4KiB; filter=0".parse::<Design>().unwrap())
        .open(DIR)
        .unwrap();
    write(&db, 0);
    db.compact_range(..).unwrap();
    let plain = db.stats().table_bytes;
    for number in 0..100u32 {
        assert_eq!(db.get(format!("{number:04}x")).unwrap(), None);
    }
    assert_eq!(db.stats().filter_probes, 0);
    let design = "leveling T=3; buffer=4KiB; filter=12; compression=lz4; memtable=skiplist";
    db.set_design(design.parse().unwrap()).unwrap();
    write(&db, 0);
    db.compact_range(..).unwrap();
    assert!(db.stats().table_bytes < plain * 3 / 4, "{} of {plain}", db.stats().table_bytes);
    for number in 0..100u32 {
        assert_eq!(db.get(format!("{number:04}x")).unwrap(), None);
    }
    assert!(db.stats().filter_negatives > 50);
}

#[test]
fn a_build_without_the_compressor_refuses_a_new_design_with_zstd() {
    let (options, _) = in_memory();
    let db = options.clone().design(small_design()).open(DIR).unwrap();
    let design: Design = "leveling; buffer=4KiB; compression=zstd".parse().unwrap();
    let outcomes = [
        db.set_design(design.clone()),
        db.keyspace("other", KeyspaceOptions::new().design(design.clone())).map(drop),
        in_memory().0.design(design).open(DIR).map(drop),
    ];
    for outcome in outcomes {
        assert_eq!(outcome.is_ok(), cfg!(feature = "zstd"));
        if let Err(error) = outcome {
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().contains("feature `zstd`"), "{error}");
        }
    }
    write(&db, 0);
    db.compact_range(..).unwrap();
    assert_eq!(pairs(db.iter().unwrap()).len(), 400);
}

#[test]
fn a_design_that_makes_no_sense_is_refused_and_changes_nothing() {
    let (options, _) = in_memory();
    let db = options.design(small_design()).open(DIR).unwrap();
    let mut design = small_design();
    design.strategy.size_ratio = 1;
    let error = db.set_design(design).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(
        error.to_string().contains("T=1") && error.to_string().contains("2 to 1000"),
        "{error}"
    );
    assert_eq!(db.design(), small_design());
}

fn with_memtable(memtable: &str) -> Design {
    format!("{}; memtable={memtable}", small_design()).parse().unwrap()
}

#[test]
fn a_new_memtable_kind_applies_from_the_next_rotation() {
    let (options, _) = in_memory();
    let db = options.clone().design(with_memtable("btree")).open(DIR).unwrap();
    for (round, memtable) in (0..).zip(MemtableKind::EXAMPLES) {
        db.put("key", format!("before {round}")).unwrap();
        let held = db.snapshot();
        db.set_design(with_memtable(memtable)).unwrap();
        // The old memtable stays in use until it is full or flushed.
        db.put("key", format!("in between {round}")).unwrap();
        db.flush().unwrap();
        assert_eq!(db.get("key").unwrap().unwrap(), format!("in between {round}").as_bytes());
        write(&db, round);
        db.put("key", format!("after {round}")).unwrap();
        assert_eq!(db.get("key").unwrap().unwrap(), format!("after {round}").as_bytes());
        assert_eq!(held.get("key").unwrap().unwrap(), format!("before {round}").as_bytes());
        assert_eq!(db.design().memtable.to_string(), *memtable);
        // These are 400 distinct keys, the same in each round, and `key`.
        assert_eq!(pairs(db.iter().unwrap()).len(), 401);
    }
    let all = pairs(db.iter().unwrap());
    drop(db);
    let db = options.open(DIR).unwrap();
    assert_eq!(pairs(db.iter().unwrap()), all);
}

/// Four writers put increasing numbers to their own keys while the kind of the memtable changes.
#[test]
fn no_write_is_lost_or_reordered_while_memtables_change() {
    let (options, _) = in_memory();
    let options = options.background(Background::Threads);
    let db = options.clone().design(with_memtable("btree")).open(DIR).unwrap();
    let is_over = AtomicBool::new(false);
    let last: [AtomicU64; 4] = std::array::from_fn(|_| AtomicU64::new(0));
    let key = |writer: usize, number: u64| format!("{writer}-{:03}", number % 100);
    std::thread::scope(|scope| {
        let stop = StopOnDrop(&is_over);
        for (writer, last) in last.iter().enumerate() {
            let (db, is_over) = (&db, &is_over);
            scope.spawn(move || {
                for number in 1.. {
                    if is_over.load(Ordering::Relaxed) && number > 2000 {
                        break;
                    }
                    db.put(key(writer, number), number.to_string()).unwrap();
                    last.store(number, Ordering::Release);
                }
            });
        }
        for memtable in MemtableKind::EXAMPLES.iter().chain(MemtableKind::EXAMPLES) {
            db.set_design(with_memtable(memtable)).unwrap();
            for (writer, last) in last.iter().enumerate() {
                let acknowledged = last.load(Ordering::Acquire);
                let oldest = acknowledged.saturating_sub(99).max(1);
                for number in oldest..=acknowledged {
                    let found = db.get(key(writer, number)).unwrap().expect(memtable);
                    let found: u64 = String::from_utf8(found.to_vec()).unwrap().parse().unwrap();
                    assert!(found >= number && found % 100 == number % 100, "{memtable}");
                }
            }
            let walked = pairs(db.iter().unwrap());
            assert!(walked.is_sorted_by(|a, b| a.0 < b.0), "{memtable}");
        }
        drop(stop);
    });
    let check = |db: &Db| {
        for (writer, last) in last.iter().enumerate() {
            let last = last.load(Ordering::Acquire);
            for number in last - 99..=last {
                let found = db.get(key(writer, number)).unwrap().unwrap();
                assert_eq!(found, number.to_string().as_bytes());
            }
        }
        assert_eq!(db.iter().unwrap().count(), 400);
    };
    check(&db);
    drop(db);
    check(&options.open(DIR).unwrap());
}

/// Dent's Fig. 1: a buffer of three entries and a fanout of two. This engine merges a level when it
/// is full, Dent's when the next run arrives, but the resulting tree is the same.
#[test]
fn the_example_of_dents_report_ends_like_its_figure() {
    let (options, _) = in_memory();
    let design = "tiering T=2 L0=2; trigger=run-count; granularity=level; filter=0.5";
    let db = options.design(design.parse().unwrap()).open(DIR).unwrap();
    let runs = [
        [("1", "1"), ("4", "12"), ("7", "9")],
        [("2", "4"), ("4", "7"), ("9", "1")],
        [("5", "10"), ("6", "2"), ("8", "14")],
    ];
    for run in runs {
        run.into_iter().for_each(|(key, value)| db.put(key, value).unwrap());
        db.flush().unwrap();
        db.wait_for_compactions().unwrap();
    }
    let levels: Vec<Vec<u64>> = (db.tree().shape.levels.iter())
        .map(|level| {
            let entries = |run: &terrane_policy::Run| {
                run.tables.iter().map(|table| table.entries).sum::<u64>()
            };
            level.runs.iter().map(entries).collect()
        })
        .collect();
    // Of the two entries of key 4, the newer one is left.
    assert_eq!(levels, [vec![3], vec![5]]);
    assert_eq!(db.get("4").unwrap().unwrap(), "7");
    assert_eq!(db.iter().unwrap().count(), 8);
}

/// After a power failure anywhere between a design change and the end of its compactions, the
/// database has either design and all of its data, and the change can be undone.
#[test]
fn a_design_change_interrupted_by_a_power_failure_is_atomic_and_can_be_undone() {
    let small = "T=3; buffer=4KiB; table=4KiB; block=512B";
    let [tiering, leveling]: [Design; 2] =
        ["tiering", "leveling"].map(|name| format!("{name} {small}").parse().unwrap());
    let (options, storage) = in_memory();
    let db = options.clone().design(tiering.clone()).open(DIR).unwrap();
    (0..7).for_each(|round| write(&db, round));
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    let all = pairs(db.iter().unwrap());
    assert_eq!(db.default_keyspace().design_before(), None);
    storage.track_crash_points();
    db.set_design(leveling.clone()).unwrap();
    storage.mark(1);
    db.wait_for_compactions().unwrap();
    assert_eq!(db.default_keyspace().design_before(), Some(tiering.clone()));
    let points = storage.take_crash_points();
    let mut seen = [0, 0];
    let ways = (0..6u64).flat_map(|seed| points.iter().map(move |point| (seed, point)));
    for (seed, point) in ways {
        let percent = [0, 50, 100][seed as usize % 3];
        let image = point.image(Crash::Power(Survival { percent, seed }));
        let options = options.clone().storage(Arc::new(image));
        let db = options.open(DIR).unwrap();
        let is_changed = db.design() == leveling;
        assert!(is_changed || point.mark() == 0, "a change that was acknowledged is gone");
        let before = is_changed.then(|| tiering.clone());
        assert_eq!(db.default_keyspace().design_before(), before);
        assert_eq!(pairs(db.iter().unwrap()), all);
        if let Some(before) = before {
            db.set_design(before).unwrap();
        }
        db.wait_for_compactions().unwrap();
        check_shape(&db);
        assert_eq!(pairs(db.iter().unwrap()), all);
        drop(db);
        let db = options.open(DIR).unwrap();
        let undone = is_changed.then(|| leveling.clone());
        assert_eq!((db.design(), db.default_keyspace().design_before()), (tiering.clone(), undone));
        seen[usize::from(is_changed)] += 1;
    }
    assert!(seen[0] > 0 && seen[1] > 10, "{seen:?}");
}

/// If one compaction made all tables of a level and nothing read them, movement rules see no
/// difference between them. Such rules used to take the first table each time, which then spanned
/// most keys of its level and rewrote most of the next one. Loads wrote up to six times as much as
/// under other rules.
#[test]
fn no_movement_rewrites_much_more_than_taking_turns() {
    let written = |movement: &str| {
        let design = format!(
            "leveling T=10; buffer=4KiB; table=4KiB; block=512B; trigger=level-saturation; \
             granularity=file; movement={movement}; stall=full"
        );
        let design: Design = design.parse().unwrap();
        let db = in_memory().0.design(design).open(DIR).unwrap();
        for number in 0..10_000u64 {
            let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            db.put(key.to_be_bytes(), [7; 40]).unwrap();
        }
        db.flush().unwrap();
        db.wait_for_compactions().unwrap();
        let levels = db.tree().shape.levels.len();
        assert!(levels >= 4, "{levels} levels are too few to tell");
        db.stats().compaction_bytes_written
    };
    let turns = written("round-robin");
    for movement in [
        "random",
        "least-overlap",
        "least-overlap-grandparent",
        "coldest",
        "coldest-update",
        "oldest",
    ] {
        let bytes = written(movement);
        assert!(bytes < turns * 13 / 10, "{movement} wrote {bytes}, taking turns {turns}");
    }
}

/// The last level of lazy leveling used to have no size limit at which the tree grows a level, so
/// all data was rewritten whenever level 0 was full.
#[test]
fn no_design_with_one_run_in_the_last_level_rewrites_it_again_and_again() {
    let is_lazy = |name: &&str| {
        let strategy = tiny(name).strategy;
        strategy.runs_allowed(5, 5) == 1 && strategy.runs_allowed(4, 5) > 1
    };
    for name in catalogue::ALL.iter().map(|entry| entry.name).filter(is_lazy) {
        let design = tiny(name);
        let db = in_memory().0.design(design).open(DIR).unwrap();
        for number in 0..6000u64 {
            let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            db.put(key.to_be_bytes(), [7; 40]).unwrap();
        }
        db.flush().unwrap();
        db.wait_for_compactions().unwrap();
        let stats = db.stats();
        let times = stats.compaction_bytes_written as f64 / stats.user_bytes_written as f64;
        assert!(times < 12.0, "{name} wrote {times} times what was put\n{}", db.tree());
    }
}
