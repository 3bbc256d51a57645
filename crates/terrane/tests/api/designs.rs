//! Another design on a live database.

use terrane::policy::catalogue;
use terrane::{Db, Design, ErrorKind};

use crate::support::{DIR, in_memory, pairs, small_design};

fn write(db: &Db, round: u32) {
    for number in 0..400u32 {
        let key = format!("{:04}", number.wrapping_mul(389) % 1000);
        db.put(key, format!("round {round} number {number} with some padding to fill tables"))
            .unwrap();
    }
}

/// Every level holds as many runs as its design lets it, once nothing is left to be done.
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

/// A design of the catalogue, with sizes that a few kilobytes fill.
fn tiny(name: &str) -> Design {
    let mut design: Design = name.parse().unwrap();
    (design.buffer_bytes, design.table_bytes, design.block_bytes) = (4 << 10, 4 << 10, 512);
    design.strategy.size_ratio = design.strategy.size_ratio.min(3);
    design.strategy.level0_runs = design.strategy.level0_runs.min(3);
    design.strategy.base_bytes = design.strategy.base_bytes.map(|_| 16 << 10);
    design
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
fn writers_wait_for_the_shape_of_the_tree_where_the_design_says_so() {
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
        assert!(runs <= 2, "a write went on with {runs} runs in a level:\n{}", db.tree());
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
    db.compact_range::<&str>(..).unwrap();
    let plain = db.stats().table_bytes;
    for number in 0..100u32 {
        assert_eq!(db.get(format!("{number:04}x")).unwrap(), None);
    }
    assert_eq!(db.stats().filter_probes, 0);
    let design = "leveling T=3; buffer=4KiB; filter=12; compression=lz4; memtable=skiplist";
    db.set_design(design.parse().unwrap()).unwrap();
    write(&db, 0);
    db.compact_range::<&str>(..).unwrap();
    assert!(db.stats().table_bytes < plain * 3 / 4, "{} of {plain}", db.stats().table_bytes);
    for number in 0..100u32 {
        assert_eq!(db.get(format!("{number:04}x")).unwrap(), None);
    }
    assert!(db.stats().filter_negatives > 50);
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
