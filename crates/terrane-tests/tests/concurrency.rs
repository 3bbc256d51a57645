//! Many threads at once: readers see batches whole, snapshots do not change, and no write is lost
//! between rotations, flushes, compactions, design changes and drops.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "users have threads and variables of their own")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use terrane::storage::MemoryStorage;
use terrane::{
    Background, Db, Design, Durability, KeyspaceOptions, Options, ReadMode, WriteBatch,
    WriteOptions, WritePath,
};
use terrane_policy::{MemtableKind, catalogue};
use terrane_testkit::{Rng, seed_from_env};

fn small(rng: &mut Rng) -> Db {
    let kinds = MemtableKind::EXAMPLES.iter();
    // A restarting scan may share the snapshot of an older scan.
    let kinds: Vec<_> = kinds.filter(|kind| !kind.contains("scan=restart")).collect();
    let design = "balanced L0=2 base=16KiB; buffer=4KiB; table=4KiB; block=256";
    let design: Design = format!("{design}; memtable={}", rng.pick(&kinds)).parse().unwrap();
    let storage = Arc::new(MemoryStorage::new(1));
    let options = Options::new().storage(storage).design(design).compaction_threads(2);
    let options = options
        .background(*rng.pick(&[Background::Threads, Background::Inline]))
        .write_path(*rng.pick(&[WritePath::Concurrent, WritePath::Queue]));
    options.log_segment_bytes(64 << 10).read_mode(ReadMode::Cached).open("db").unwrap()
}

/// The sum of all accounts never changes, so a reader that sees half of a transfer computes a wrong
/// sum.
#[test]
fn readers_see_transfers_whole() {
    let rounds = std::env::var("TERRANE_ROUNDS").ok().and_then(|text| text.parse().ok());
    let seed = seed_from_env(1);
    for seed in seed..seed + rounds.unwrap_or(4) {
        transfer(&small(&mut Rng::new(seed)));
    }
}

fn transfer(db: &Db) {
    const ACCOUNTS: u64 = 20;
    let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
    let account = |number: u64| number.to_be_bytes();
    for number in 0..ACCOUNTS {
        db.put(account(number), 100u64.to_be_bytes()).unwrap();
        other.put(account(number), 100u64.to_be_bytes()).unwrap();
    }
    let balance = |value: &[u8]| u64::from_be_bytes(value.try_into().unwrap());
    let is_done = AtomicBool::new(false);
    let transfers = AtomicU64::new(0);
    std::thread::scope(|scope| {
        // Each thread moves money within its own half of the accounts, so no other thread changes
        // what a transfer reads.
        for half in 0..2u64 {
            let (other, transfers) = (&other, &transfers);
            scope.spawn(move || {
                let mut rng = Rng::new(seed_from_env(0) + half);
                for _ in 0..3000 {
                    let (from, to) = (rng.below(10) * 2 + half, rng.below(10) * 2 + half);
                    let (mine, theirs) = (
                        balance(&db.get(account(from)).unwrap().unwrap()),
                        balance(&other.get(account(to)).unwrap().unwrap()),
                    );
                    let amount = rng.below(mine + 1);
                    let mut batch = WriteBatch::new();
                    batch.put(account(from), (mine - amount).to_be_bytes());
                    batch.put_in(other, account(to), (theirs + amount).to_be_bytes());
                    db.write(&batch).unwrap();
                    transfers.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    let snapshot = db.snapshot();
                    let sum = |iter: terrane::Iter| {
                        iter.map(|entry| balance(&entry.unwrap().1)).sum::<u64>()
                    };
                    let first =
                        sum(snapshot.iter().unwrap()) + sum(snapshot.range_in(&other, ..).unwrap());
                    assert_eq!(first, 2 * ACCOUNTS * 100);
                    let both = |number: u64| {
                        let theirs = snapshot.get_in(&other, account(number)).unwrap().unwrap();
                        balance(&snapshot.get(account(number)).unwrap().unwrap()) + balance(&theirs)
                    };
                    let gets: u64 = (0..ACCOUNTS).map(both).sum();
                    assert_eq!(gets, first, "a snapshot changed");
                }
            });
        }
        scope.spawn(|| {
            let mut rng = Rng::new(seed_from_env(7));
            while transfers.load(Ordering::Relaxed) < 6000 {
                match rng.below(4) {
                    0 => db.flush().unwrap(),
                    1 => db.compact_range(..).unwrap(),
                    2 => {
                        let mut design = (rng.pick(catalogue::ALL).design)();
                        design.buffer_bytes = 4 << 10;
                        design.table_bytes = 4 << 10;
                        db.set_design(design).unwrap();
                    }
                    _ => std::thread::yield_now(),
                }
            }
            is_done.store(true, Ordering::Relaxed);
        });
    });
}

/// Concurrent writers use every durability. All writes are readable, even after reopening.
#[test]
fn mixed_durabilities_lose_nothing_that_is_closed() {
    let storage = Arc::new(MemoryStorage::new(1));
    let design: Design = "tiering T=3; buffer=8KiB; table=8KiB".parse().unwrap();
    let options = Options::new().storage(storage);
    let db = options.clone().design(design).open("db").unwrap();
    let interval = Durability::Interval(std::time::Duration::from_millis(2));
    let modes = [Durability::None, Durability::Process, interval, Durability::Sync];
    std::thread::scope(|scope| {
        for (number, mode) in modes.into_iter().enumerate() {
            let db = &db;
            scope.spawn(move || {
                for index in 0..1500u32 {
                    let key = [&[number as u8][..], &index.to_be_bytes()].concat();
                    let write = WriteOptions::new().durability(mode);
                    db.put_with(&key, &key, write).unwrap();
                    assert_eq!(db.get(&key).unwrap().unwrap(), key);
                }
            });
        }
    });
    let count = |db: &Db| {
        db.iter()
            .unwrap()
            .map(|entry| entry.unwrap())
            .filter(|(key, value)| **key == **value)
            .count()
    };
    assert_eq!(count(&db), 6000);
    db.close().unwrap();
    assert_eq!(count(&options.open("db").unwrap()), 6000);
}

/// Iterators, values and snapshots outlive the handle they came from.
#[test]
fn readers_outlive_the_database_handle() {
    let db = small(&mut Rng::new(seed_from_env(1)));
    for number in 0..500u32 {
        db.put(number.to_be_bytes(), [number as u8; 50]).unwrap();
    }
    db.flush().unwrap();
    let value = db.get(7u32.to_be_bytes()).unwrap().unwrap();
    let mut iter = db.iter().unwrap();
    iter.next().unwrap().unwrap();
    let snapshot = db.snapshot();
    let copy = db.clone();
    drop(db);
    std::thread::spawn(move || {
        assert_eq!(value, [7; 50]);
        assert_eq!(iter.filter(Result::is_ok).count(), 499);
        assert_eq!(snapshot.get(9u32.to_be_bytes()).unwrap().unwrap(), [9; 50]);
    })
    .join()
    .unwrap();
    let mut iter = copy.iter().unwrap();
    iter.next().unwrap().unwrap();
    let other = copy.clone();
    copy.close().unwrap();
    assert!(other.put("x", "y").is_err() && other.get("x").is_err() && other.iter().is_err());
    assert!(other.close().is_ok());
    // The iterator keeps its pins.
    assert_eq!(iter.filter(Result::is_ok).count(), 499);
}

/// Writers stall when they must, the cause is counted, and memory stays within its bound.
#[test]
fn stalled_writers_are_counted_by_cause() {
    let design: Design =
        "balanced L0=1 base=32KiB; buffer=2KiB; table=4KiB; delay=2; stop=3; buffers=1"
            .parse()
            .unwrap();
    let options = Options::new()
        .storage(Arc::new(MemoryStorage::new(1)))
        .design(design)
        .memory_budget(1 << 20);
    let db = options.log_segment_bytes(64 << 10).open("db").unwrap();
    let mut rng = Rng::new(seed_from_env(1));
    for _ in 0..4000 {
        db.put(rng.bits().to_be_bytes(), [0; 200]).unwrap();
    }
    let stats = db.stats();
    assert!(stats.stalls.writes > 0 && stats.stalls.total_micros() > 0, "{stats}");
    assert!(stats.memory.total_bytes() < 4 << 20, "{stats}");
    db.wait_for_compactions().unwrap();
    assert!(db.stats().stalls.now.is_empty());
    assert_eq!(db.iter().unwrap().count(), 4000);
}
