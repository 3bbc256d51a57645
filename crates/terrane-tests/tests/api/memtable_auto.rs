//! Choosing a memtable by the observed operations: `memtable=auto`.

use terrane::{Db, Design, Event, KeyspaceOptions, Options, TreeView};

use crate::support::{DIR, in_memory};

fn kind_of(db: &Db) -> Option<String> {
    db.tree().memtable_choice.map(|choice| choice.kind.to_string())
}

/// Keys in no order.
fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// Returns the reasons of the reported choices.
fn reported(db: &Db) -> Vec<String> {
    let chosen = db.events().into_iter().filter_map(|reported| match reported.event {
        Event::MemtableChosen { reason, .. } => Some(reason),
        _ => None,
    });
    chosen.collect()
}

/// A load, then lookups among writes, then scans, then a load again: the memtable kind follows
/// within two rotations, and an event says so.
#[test]
fn an_automatic_memtable_choice_follows_the_operations() {
    const ROTATION: u64 = 4000;
    let design = "leveling; buffer=512KiB; memtable=auto";
    let db = in_memory().0.design(design.parse::<Design>().unwrap()).open(DIR).unwrap();
    let put = |number: u64| {
        let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        db.put(key, [7; 50]).unwrap();
        key
    };
    let mut chosen = Vec::new();
    for (phase, lookups, scans) in [(0, 0, 0), (1, 4, 0), (2, 0, 1), (3, 0, 0)] {
        let mut kinds = Vec::new();
        for number in 0..4 * ROTATION {
            let key = put(phase * 1_000_000 + number);
            (0..lookups).for_each(|_| assert!(db.get(key).unwrap().is_some()));
            (0..scans).for_each(|_| assert!(db.range(key..).unwrap().take(5).count() > 0));
            kinds.extend(kind_of(&db));
        }
        let choice = db.tree().memtable_choice.unwrap();
        assert!(choice.reason.contains("% writes"), "{}", choice.reason);
        assert!(db.tree().to_string().contains(&choice.reason));
        // The kind is stable in the second half of each phase, after two rotations.
        let kind = choice.kind.to_string();
        assert!(kinds.iter().skip(2 * ROTATION as usize).all(|other| *other == kind), "{kinds:?}");
        chosen.push(kind.split_once('(').map_or(kind.clone(), |(name, _)| name.to_owned()));
    }
    assert_eq!(chosen, ["vector", "hash-vector", "btree", "vector"]);
    let reported = db.events();
    let reported = reported.iter().filter_map(|reported| match &reported.event {
        Event::MemtableChosen { kind, reason, .. } => Some((kind.clone(), reason.clone())),
        _ => None,
    });
    let (kinds, reasons): (Vec<String>, Vec<String>) = reported.unzip();
    // The event log may have dropped old events.
    assert!(kinds.last().is_some_and(|kind| kind == "vector") && kinds.len() < 8, "{kinds:?}");
    assert!(reasons.iter().all(|reason| reason.contains("expected cost per operation")));
    // A design that names a memtable ends the automatic choice.
    db.set_design("leveling; buffer=512KiB".parse().unwrap()).unwrap();
    db.flush().unwrap();
    assert_eq!(db.tree().memtable_choice, None);
    assert_eq!(db.iter().unwrap().count() as u64, 16 * ROTATION);
}

/// The operations on one keyspace do not affect the memtable of another.
#[test]
fn every_tree_chooses_its_memtable_by_its_own_operations() {
    let design: Design = "leveling; buffer=256KiB; memtable=auto".parse().unwrap();
    let db = in_memory().0.design(design.clone()).open(DIR).unwrap();
    let read = db.keyspace("read", KeyspaceOptions::new().design(design)).unwrap();
    for number in 0..8000u64 {
        let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        db.put(key, [7; 50]).unwrap();
        read.put(key, [7; 50]).unwrap();
        (0..3).for_each(|_| assert!(read.get(key).unwrap().is_some()));
    }
    let name = |tree: TreeView| tree.memtable_choice.unwrap().kind.to_string();
    assert_eq!(name(db.tree()), "vector");
    let chosen = name(read.tree());
    assert!(chosen.starts_with("hash-vector"), "{chosen}");
}

/// After a load, when only lookups followed, the memtable used to stay a vector in arrival order. Each
/// lookup compared every entry and took 20 to 60 microseconds instead of one.
#[test]
fn a_vector_is_sorted_once_when_lookups_follow_a_load() {
    let design: Design = "leveling; buffer=4MiB; memtable=auto".parse().unwrap();
    let db = in_memory().0.memory_budget(64 << 20).design(design).open(DIR).unwrap();
    let (mut number, mut filled) = (0, 0);
    // A load with few lookups, until a vector that lookups scan is three quarters full.
    while kind_of(&db).as_deref() != Some("vector(query=scan)") || filled < 18_000 {
        filled = if kind_of(&db).as_deref() == Some("vector(query=scan)") { filled + 1 } else { 0 };
        db.put(key(number), [7; 100]).unwrap();
        number += 1;
        if number % 2000 == 0 {
            assert!(db.get(key(number / 2)).unwrap().is_some());
        }
        assert!(number < 1_000_000, "{:?}", db.tree().memtable_choice);
    }
    while db.run_background_job().unwrap() {}
    let flushes = db.stats().flushes;
    let lookups = |count: u64| {
        for step in 0..count {
            let found = db.get(key(number - 1 - step % 10_000)).unwrap();
            assert!(found.is_some() && db.get(key(number + step)).unwrap().is_none());
            if step % 100 == 0 {
                db.run_background_job().unwrap();
            }
        }
    };
    lookups(5000);
    let chosen = reported(&db);
    let sorted = chosen.iter().filter(|reason| reason.contains("sorted once")).count();
    assert_eq!(sorted, 1, "{chosen:?}");
    assert_eq!(db.stats().flushes, flushes, "sorting needs no flush");
    assert_eq!(kind_of(&db).as_deref(), Some("vector(query=scan)"));
    // The view is sorted already, so nothing else follows.
    lookups(20_000);
    assert_eq!(reported(&db).len(), chosen.len());
}

/// The thread that flushes also sorts vectors. While a flush waited for bandwidth, lookups compared every entry for
/// fifteen times as long as sorting takes.
#[test]
fn a_vector_is_sorted_while_a_flush_runs() {
    for flush_threads in ["1", "2"] {
        let design: Design = "leveling; buffer=1MiB; memtable=auto".parse().unwrap();
        let storage = std::sync::Arc::new(terrane::storage::MemoryStorage::new(1));
        let mut options = Options::new().storage(storage).design(design);
        options.set("io_budget", "64KiB/s").unwrap();
        options.set("flush_threads", flush_threads).unwrap();
        let db = options.open(DIR).unwrap();
        let mut number = 0;
        // The first memtable is flushed for seconds, while the second one fills.
        let mut filled = 0;
        while filled < 3000 {
            db.put(key(number), [7; 100]).unwrap();
            number += 1;
            if number % 2000 == 0 {
                assert!(db.get(key(number / 2)).unwrap().is_some());
            }
            filled += u64::from(kind_of(&db).as_deref() == Some("vector(query=scan)"));
            assert!(number < 12_000, "{:?}", db.tree().memtable_choice);
        }
        let begun = std::time::Instant::now();
        while !reported(&db).iter().any(|reason| reason.contains("sorted once")) {
            assert!(db.get(key(number - 1)).unwrap().is_some());
            assert!(
                begun.elapsed() < std::time::Duration::from_secs(20),
                "the vector stayed unsorted"
            );
        }
        assert_eq!(db.stats().flushes, 0, "the flush still runs");
    }
}

/// Flush after flush used to rewrite the same few keys that were overwritten in between.
#[test]
fn keys_that_are_overwritten_again_and_again_stay_in_memory() {
    let design: Design = "leveling; buffer=1MiB; memtable=auto".parse().unwrap();
    let db = in_memory().0.memory_budget(64 << 20).design(design).open(DIR).unwrap();
    for number in 0..60_000u64 {
        db.put(key(number % 300), number.to_be_bytes().repeat(12)).unwrap();
        db.run_background_job().unwrap();
    }
    let choice = db.tree().memtable_choice.unwrap();
    assert!(choice.kind.to_string().starts_with("flodb"), "{choice:?}");
    assert!(choice.reason.contains("written before"), "{}", choice.reason);
    let flushes = db.stats().flushes;
    for number in 60_000..200_000u64 {
        db.put(key(number % 300), number.to_be_bytes().repeat(12)).unwrap();
    }
    assert_eq!(db.stats().flushes, flushes, "a flush of 300 keys");
    assert_eq!(db.iter().unwrap().count(), 300);
    // New keys end that choice once they have filled a memtable.
    for number in 0..40_000u64 {
        db.put(key(1000 + number), [7; 96]).unwrap();
    }
    assert!(kind_of(&db).is_some_and(|kind| !kind.starts_with("flodb")), "{:?}", kind_of(&db));
}
