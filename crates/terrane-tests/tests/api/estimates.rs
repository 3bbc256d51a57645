//! Ranges of all types, keys without values, clearing, and estimates.

use std::ops::Bound::{Excluded, Unbounded};

use terrane::{Db, KeyBounds, KeyspaceOptions, WriteBatch};
use terrane_testkit::Rng;

use crate::support::{DIR, fill, in_memory, keys, small, tiny};

#[test]
fn ranges_of_every_type_need_no_annotation() {
    let db = small();
    fill(&db, 10, 0);
    let count = |iter: terrane::Result<terrane::Iter>| iter.unwrap().count();
    assert_eq!(count(db.range(..)), 10);
    assert_eq!(count(db.range("002".."004")), 2);
    assert_eq!(count(db.range(b"002"..=b"004")), 3);
    assert_eq!(count(db.range(b"002".to_vec()..)), 8);
    let key = String::from("003");
    assert_eq!(count(db.range(&key..)), 7);
    assert_eq!(count(db.range(..key)), 3);
    assert_eq!(count(db.range((Excluded("003"), Unbounded))), 6);
    let snapshot = db.snapshot();
    assert_eq!(count(snapshot.range(b"002"..b"004")), 2);
    let mut batch = WriteBatch::new();
    batch.delete_range(b"000"..b"001").delete_range(b"008"..);
    db.write(&batch).unwrap();
    db.compact_range(..).unwrap();
    let mut transaction = db.begin();
    assert_eq!(transaction.range(b"001"..b"004").unwrap().count(), 3);
    transaction.delete_range(b"001"..b"003");
    assert_eq!(transaction.keys().unwrap().count(), 5);
    transaction.clear();
    assert_eq!(transaction.keys().unwrap().count(), 0);
    db.delete_range(..).unwrap();
    assert!(db.is_empty().unwrap());
    assert_eq!(count(snapshot.range(..)), 10);
}

#[test]
fn keys_come_from_both_ends_without_reading_separated_values() {
    let design = "1-leveling T=4 L0=2 base=16KiB; buffer=4KiB; table=4KiB; block=512B; \
                  values=separate(1KiB)";
    let (options, _) = in_memory();
    let db = options.design(design.parse().unwrap()).open(DIR).unwrap();
    let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
    for number in 0..30 {
        db.put(format!("{number:02}"), vec![7; 2000]).unwrap();
    }
    other.put("x", "y").unwrap();
    db.flush().unwrap();
    let before = db.stats().value_bytes_read;
    let mut all = db.keys().unwrap();
    assert_eq!(all.next().unwrap().unwrap(), "00");
    assert_eq!(all.next_back().unwrap().unwrap(), "29");
    assert_eq!(all.count(), 28);
    let tens: Vec<_> = db.prefix("1").unwrap().into_keys().map(Result::unwrap).collect();
    assert_eq!(tens.len(), 10);
    let transaction = db.begin();
    assert_eq!(transaction.keys().unwrap().rev().count(), 30);
    assert_eq!(transaction.keys_in(&other).unwrap().count(), 1);
    let snapshot = db.snapshot();
    assert_eq!(snapshot.keys().unwrap().count(), 30);
    assert_eq!(snapshot.keys_in(&other).unwrap().count(), 1);
    assert_eq!(other.keys().unwrap().count(), 1);
    assert_eq!(db.stats().value_bytes_read, before);
    assert_eq!(db.iter().unwrap().count(), 30);
    assert!(db.stats().value_bytes_read > before, "the count would notice a value");
}

#[test]
fn clear_removes_all_keys_of_one_keyspace_with_one_write() {
    let db = small();
    let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
    fill(&db, 500, 0);
    other.put("x", "y").unwrap();
    let (before, snapshot) = (db.stats().writes, db.snapshot());
    db.clear().unwrap();
    assert_eq!(db.stats().writes, before + 1);
    assert!(db.is_empty().unwrap() && !other.is_empty().unwrap());
    assert_eq!(snapshot.iter().unwrap().count(), 500);
    assert_eq!(db.approximate_len(..).unwrap(), 0);
    db.put("after", "clear").unwrap();
    assert_eq!(db.approximate_len(..).unwrap(), 1);
    drop(snapshot);
    db.compact_range(..).unwrap();
    assert_eq!(keys(db.iter().unwrap()), ["after"]);
    assert_eq!(db.approximate_len(..).unwrap(), 1);
    let mut transaction = db.begin();
    transaction.clear_in(&other).unwrap();
    transaction.commit().unwrap();
    assert!(other.is_empty().unwrap());
}

/// Compares an estimate with the truth.
fn check(db: &Db, range: impl KeyBounds + Clone, tolerance: f64, what: &str) {
    let estimate = db.approximate_len(range.clone()).unwrap();
    let truth = db.range(range).unwrap().into_keys().count();
    let error = estimate.abs_diff(truth as u64) as f64;
    assert!(error <= tolerance, "{what}: {estimate}, and there are {truth} keys");
}

#[test]
fn lengths_are_exact_in_memory_and_within_blocks_in_tables() {
    let (options, _) = in_memory();
    let design = "1-leveling T=4 L0=2 base=16KiB; buffer=1MiB; table=16KiB; block=512B";
    let db = options.design(design.parse().unwrap()).open(DIR).unwrap();
    assert_eq!(db.approximate_len(..).unwrap(), 0);
    assert_eq!(db.default_keyspace().approximate_size(..).unwrap(), 0);
    let mut rng = Rng::new(7);
    let key = |number: u64| format!("key {number:05}");
    for number in 0..3000 {
        db.put(key(number), vec![1; 20]).unwrap();
    }
    for round in 0..3 {
        for _ in 0..30 {
            let (a, b) = (rng.below(3100), rng.below(3100));
            // A block holds about 15 entries, and a range cuts up to three tables at each end.
            let tolerance = if round == 0 { 0.0 } else { 100.0 };
            check(&db, key(a)..key(b), tolerance, "a range");
            check(&db, key(a).., tolerance, "a range without end");
        }
        db.flush().unwrap();
        if round == 1 {
            db.compact_range(..).unwrap();
            db.delete_range(key(1000)..key(2000)).unwrap();
            check(&db, .., 100.0, "a range delete");
            db.delete(key(7)).unwrap();
            check(&db, ..key(8), 40.0, "a delete");
        }
    }
    assert_eq!(db.approximate_len(key(9)..key(3)).unwrap(), 0);
    db.compact_range(..).unwrap();
    let all = db.default_keyspace().approximate_size(..).unwrap();
    assert!((db.tree().shape.size_bytes()).abs_diff(all) < 100, "{all}");
    let half = db.default_keyspace().approximate_size(key(2000)..key(2500)).unwrap();
    assert!((all / 5..all / 3).contains(&half), "{half} of {all}");
}

#[test]
fn long_ranges_of_memtables_are_interpolated() {
    for kind in ["btree", "skiplist", "vector", "hash-skiplist(prefix=4, buckets=100)", "flodb"] {
        let (options, _) = in_memory();
        let design = format!("leveling; buffer=8MiB; memtable={kind}").parse().unwrap();
        let db = options.memory_budget(64 << 20).design(design).open(DIR).unwrap();
        for number in 0..20_000_u64 {
            db.put((number * 7919 % 20_000).to_be_bytes(), "value").unwrap();
        }
        let key = u64::to_be_bytes;
        check(&db, .., 0.0, kind);
        check(&db, key(5000)..key(15_000), 200.0, kind);
        check(&db, key(5000)..key(5100), 0.0, kind);
        check(&db, key(100).., 200.0, kind);
    }
}

#[test]
fn sizes_include_separated_values() {
    let mut design = tiny("leveling");
    design.values = "separate(1KiB)".parse().unwrap();
    let db = in_memory().0.design(design).open(DIR).unwrap();
    for number in 0..100 {
        db.put(format!("{number:02}"), vec![7; 2000]).unwrap();
    }
    db.flush().unwrap();
    let (all, half) = (
        db.default_keyspace().approximate_size(..),
        db.default_keyspace().approximate_size("50"..),
    );
    let (all, half) = (all.unwrap(), half.unwrap());
    assert!((200_000..220_000).contains(&all), "{all}");
    assert!((70_000..130_000).contains(&half), "{half}");
}
