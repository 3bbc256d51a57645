//! Records that stay in memory without their block change no answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use terrane::storage::{FaultStorage, MemoryStorage};
use terrane::{AsyncDb, Background, CacheWarming, Db, Options, Snapshot, WriteBatch};

use crate::support::DIR;

const KEYS: usize = 200_000;

/// What the database contains: for each key, the number that its value shows.
type Model = BTreeMap<usize, usize>;

fn key(number: usize) -> Vec<u8> {
    // Popular keys are spread over all blocks, by the golden ratio.
    format!("{:08}", number * 123_607 % KEYS).into_bytes()
}

fn value(number: usize, version: usize) -> Vec<u8> {
    let mut value = format!("{number}:{version}:").into_bytes();
    value.resize(240, b'x');
    value
}

/// Lower numbers are more popular.
fn popular(step: usize) -> usize {
    let random = (step as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    let share = random as f64 / (1u64 << 24) as f64;
    ((KEYS as f64).powf(share) as usize).min(KEYS) - 1
}

fn database() -> Db {
    database_of("leveling T=10", Background::Inline, CacheWarming::None)
}

/// 50 MB of data, with a cache of 32 MiB and reads that wait.
fn database_of(strategy: &str, background: Background, warming: CacheWarming) -> Db {
    let storage = FaultStorage::new(Arc::new(MemoryStorage::new(1)));
    let db = Options::new()
        .storage(Arc::new(storage.clone()))
        .background(background)
        .read_threads(4)
        .cache_warming(warming)
        .memory_budget(96 << 20)
        .cache_bytes(32 << 20)
        .design(format!("{strategy}; buffer=4MiB; block=32KiB; compression=none").parse().unwrap())
        .open(DIR)
        .unwrap();
    let mut numbers: Vec<_> = (0..KEYS).collect();
    numbers.sort_by_key(|number| key(*number));
    write(&db, numbers.into_iter().map(|number| (number, Some(0))));
    storage.delay_reads(Duration::from_micros(25));
    db
}

/// Puts versions of values, or deletes keys.
fn write(db: &Db, changes: impl Iterator<Item = (usize, Option<usize>)>) {
    let mut batch = WriteBatch::new();
    for (number, version) in changes {
        match version {
            Some(version) => batch.put(key(number), value(number, version)),
            None => batch.delete(key(number)),
        };
        if batch.len() == 1000 {
            db.write(&std::mem::take(&mut batch)).unwrap();
        }
    }
    db.write(&batch).unwrap();
    db.flush().unwrap();
}

fn expected(model: &Model, number: usize) -> Option<Vec<u8>> {
    model.get(&number).map(|version| value(number, *version))
}

/// Looks up popular keys, one after the other and several at once.
fn check(db: &Db, model: &Model, steps: std::ops::Range<usize>) {
    for step in steps.clone() {
        let number = popular(step);
        let got = db.get(key(number)).unwrap().map(|value| value.to_vec());
        assert_eq!(got, expected(model, number), "{number}");
    }
    for step in steps.step_by(160) {
        let numbers: Vec<_> = (step..step + 16).map(popular).collect();
        let keys: Vec<_> = numbers.iter().map(|number| key(*number)).collect();
        for (number, got) in numbers.into_iter().zip(db.multi_get(&keys).unwrap()) {
            assert_eq!(got.map(|value| value.to_vec()), expected(model, number), "{number}");
        }
    }
}

fn check_snapshot(snapshot: &Snapshot, model: &Model) {
    for number in (0..300).chain((0..3000).map(popular)) {
        let got = snapshot.get(key(number)).unwrap().map(|value| value.to_vec());
        assert_eq!(got, expected(model, number), "{number}");
    }
}

#[test]
fn answers_are_those_of_a_map() {
    answers_are_those_of_a_map_with(CacheWarming::None);
}

/// Compactions write versions of other tables, deletes and range tombstones to the tables of records.
#[test]
fn answers_are_those_of_a_map_while_compactions_carry_them_over() {
    answers_are_those_of_a_map_with(CacheWarming::Read);
}

fn answers_are_those_of_a_map_with(warming: CacheWarming) {
    let db = database_of("leveling T=10", Background::Inline, warming);
    let mut model: Model = (0..KEYS).map(|number| (number, 0)).collect();
    check(&db, &model, 0..60_000);
    let before = db.stats();
    assert!(before.cache.record_hits > 3000, "{:?}", before.cache);
    assert!(before.cache.record_bytes > 1 << 20, "{:?}", before.cache);
    assert!(before.memory.total_bytes() <= before.memory.budget_bytes, "{:?}", before.memory);
    let snapshot = db.snapshot();
    let old = model.clone();
    for round in 1..=2 {
        // Popular keys are overwritten and deleted, then some by range.
        let changes = (0..4000).map(|number| {
            let version = (number % 5 != round).then_some(round);
            match version {
                Some(version) => model.insert(number, version),
                None => model.remove(&number),
            };
            (number, version)
        });
        let changes: Vec<_> = changes.collect();
        write(&db, changes.into_iter());
        let start = round * 10_000;
        let (from, to) = (format!("{start:08}"), format!("{:08}", start + 500));
        db.delete_range(&*from..&*to).unwrap();
        let range = from.into_bytes()..to.into_bytes();
        model.retain(|number, _| !range.contains(&key(*number)));
        check(&db, &model, round * 200_000..round * 200_000 + 20_000);
        check_snapshot(&snapshot, &old);
        db.compact_range(..).unwrap();
        check(&db, &model, 0..20_000);
        check_snapshot(&snapshot, &old);
    }
    let after = db.stats();
    assert!(after.cache.record_hits > before.cache.record_hits + 3000, "{:?}", after.cache);
    assert!(after.cache.data_misses > before.cache.data_misses);
}

/// After a compaction, the first lookup of each popular key read a block again.
#[test]
fn compactions_carry_them_over() {
    let shares = [CacheWarming::None, CacheWarming::Read].map(|warming| {
        let db = database_of("leveling T=10", Background::Inline, warming);
        let mut model: Model = (0..KEYS).map(|number| (number, 0)).collect();
        let mut steps = 0..0;
        let mut record_hits = |db: &Db, model: &Model, lookups: usize| {
            let before = db.stats().cache.record_hits;
            steps = steps.end..steps.end + lookups;
            check(db, model, steps.clone());
            db.stats().cache.record_hits - before
        };
        record_hits(&db, &model, 100_000);
        let before = record_hits(&db, &model, 4000);
        assert!(before > 500, "{before}");
        // Every table is rewritten, a third of the keys with new values.
        let changes = (0..KEYS).step_by(3).map(|number| (number, Some(1)));
        model.extend((0..KEYS).step_by(3).map(|number| (number, 1)));
        write(&db, changes);
        db.compact_range(..).unwrap();
        record_hits(&db, &model, 4000) * 100 / before
    });
    println!("{shares:?}");
    let [without, with] = shares;
    assert!(without < 50 && with > 75, "{without} and {with} % of the hits before");
}

#[test]
fn every_lookup_counts_once() {
    let db = database();
    check(&db, &(0..KEYS).map(|number| (number, 0)).collect(), 0..30_000);
    let keys: Vec<_> = (50_000..50_500).map(popular).map(key).collect();
    for lookups in [1, 50] {
        let before = db.stats().cache;
        let mut hits = 0;
        for keys in keys.chunks(lookups) {
            let found = if lookups == 1 {
                vec![db.get(&keys[0]).unwrap()]
            } else {
                db.multi_get(keys).unwrap()
            };
            hits += found.iter().flatten().count() as u64;
        }
        let after = db.stats().cache;
        let records = after.record_hits - before.record_hits;
        // A block that is missing for several keys of a batch is used by each, and also to load it.
        let blocks = after.data_hits + after.data_misses - before.data_hits - before.data_misses;
        let loaded = if lookups == 1 { 0 } else { after.data_misses - before.data_misses };
        assert_eq!((hits, records + blocks - loaded), (500, 500), "{before:?} {after:?}");
        assert!(records > 5, "{records}");
    }
}

#[test]
fn several_runs_and_futures_find_them() {
    let strategy = "tiering T=10 L0=40; delay=60; stop=80";
    let db = database_of(strategy, Background::Threads, CacheWarming::Read);
    let mut model: Model = (0..KEYS).map(|number| (number, 0)).collect();
    for version in 1..=2 {
        let changes = (0..KEYS / 10).map(|number| number * 3 + version).filter(|it| it % 7 > 0);
        model.extend(changes.clone().map(|number| (number, version)));
        write(&db, changes.map(|number| (number, Some(version))));
    }
    assert!(db.tree().shape.run_count() > 10);
    check(&db, &model, 0..40_000);
    let before = db.stats().cache;
    assert!(before.record_hits > 500, "{before:?}");
    let (counts, db) = (db.clone(), AsyncDb::from(db));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for number in (50_000..55_000).map(popular) {
        let got = runtime.block_on(db.get(key(number))).unwrap();
        assert_eq!(got.map(|value| value.to_vec()), expected(&model, number), "{number}");
    }
    let after = counts.stats().cache;
    assert!(after.record_hits > before.record_hits + 100, "{after:?}");
}
