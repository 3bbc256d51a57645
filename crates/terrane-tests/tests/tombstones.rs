//! Scans over long runs of tombstones are correct and do not take quadratic time.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use terrane::storage::MemoryStorage;
use terrane::{Background, Db, Durability, Iter, Options, Snapshot, WriteBatch, WriteOptions};
use terrane_testkit::{HangGuard, Rng, seed_from_env};

const KEYS: u64 = 900;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn open() -> Db {
    let options = Options::new().storage(Arc::new(MemoryStorage::new(1)));
    let design = "1-leveling T=3 L0=3; buffer=16KiB; table=8KiB; block=512B".parse().unwrap();
    options.background(Background::Inline).design(design).open("db").unwrap()
}

fn key(number: u64) -> Vec<u8> {
    format!("{number:04}").into_bytes()
}

/// Walks from one end, from both ends or by seeks, and compares the result with the model.
fn check(rng: &mut Rng, iter: Iter, from: &[u8], to: &[u8], model: &Model, seed: u64) {
    let inside = model.range(from.to_vec()..to.to_vec());
    let expected: Vec<_> = inside.map(|(k, v)| (k.clone(), v.clone())).collect();
    let pair = |entry: terrane::Result<(terrane::Key, terrane::Value)>| {
        let (key, value) = entry.unwrap();
        (key.to_vec(), value.to_vec())
    };
    let found: Vec<_> = match rng.index(3) {
        0 => iter.map(pair).collect(),
        1 => {
            let mut backward: Vec<_> = iter.rev().map(pair).collect();
            backward.reverse();
            backward
        }
        _ => {
            let (mut iter, mut front, mut back) = (iter, vec![], vec![]);
            loop {
                let is_front = rng.index(2) == 0;
                match if is_front { iter.next() } else { iter.next_back() } {
                    Some(entry) if is_front => front.push(pair(entry)),
                    Some(entry) => back.push(pair(entry)),
                    None => break,
                }
            }
            front.extend(back.into_iter().rev());
            front
        }
    };
    assert_eq!(found, expected, "seed {seed}");
}

#[test]
fn scans_over_runs_of_tombstones_agree_with_the_model() {
    let seed = seed_from_env(71);
    for round in 0..12 {
        let seed = seed + round;
        let mut rng = Rng::new(seed);
        let db = open();
        let mut model = Model::new();
        let mut snapshots: Vec<(Snapshot, Model)> = Vec::new();
        for step in 0..400u64 {
            let (from, len) = (rng.below(KEYS), rng.below(400));
            match rng.index(12) {
                0 | 1 => {
                    for number in from..(from + len).min(KEYS) {
                        db.put(key(number), step.to_le_bytes()).unwrap();
                        model.insert(key(number), step.to_le_bytes().to_vec());
                    }
                }
                2 | 3 => {
                    for number in from..(from + len).min(KEYS) {
                        db.delete(key(number)).unwrap();
                        model.remove(&key(number));
                    }
                }
                4 | 5 => {
                    db.put(key(from), b"one").unwrap();
                    model.insert(key(from), b"one".to_vec());
                }
                6 if len < 40 => {
                    db.delete_range(key(from)..key(from + len)).unwrap();
                    model.retain(|k, _| *k < key(from) || *k >= key(from + len));
                }
                7 => db.flush().unwrap(),
                8 if len < 40 => db.compact_range(key(from)..key(from + len)).unwrap(),
                9 => {
                    snapshots.truncate(3);
                    snapshots.insert(0, (db.snapshot(), model.clone()));
                }
                _ => {}
            }
            let (low, high) = (key(rng.below(KEYS)), key(rng.below(KEYS + 1)));
            let (low, high) = if low <= high { (low, high) } else { (high, low) };
            let iter = db.range(low.clone()..high.clone()).unwrap();
            check(&mut rng, iter, &low, &high, &model, seed);
            if let Some((snapshot, then)) = snapshots.get(rng.index(4)) {
                let iter = snapshot.range(low.clone()..high.clone()).unwrap();
                check(&mut rng, iter, &low, &high, then, seed);
            }
        }
    }
}

/// The average number of deleted keys that a read of the front may step over: a scan records a run of
/// 64, and starts to skip recorded keys after 8.
const DEAD_KEYS: u64 = 2 * (64 + 8);

fn queue(length: u64) -> Db {
    let db = Options::new().storage(Arc::new(MemoryStorage::new(1))).open("db").unwrap();
    for number in 0..length {
        db.put(number.to_be_bytes(), b"job").unwrap();
    }
    db
}

/// Takes jobs one by one from the front of a queue, and calls `beside` after each.
fn empty(db: &Db, length: u64, options: &WriteOptions, beside: impl Fn(u64)) {
    let guard = HangGuard::new();
    for number in 0..length {
        let (first, _) = db.iter().unwrap().next().unwrap().unwrap();
        assert_eq!(*first, number.to_be_bytes());
        let mut batch = WriteBatch::new();
        db.write_with(batch.delete(&first), *options).unwrap();
        beside(number);
        guard.check(|| format!("{number} of {length} jobs"));
    }
    let dead = db.stats().scan_dead_keys / length;
    assert!(dead <= DEAD_KEYS, "each scan stepped over {dead} deleted keys");
}

#[test]
fn emptying_a_queue_takes_linear_time() {
    const LENGTH: u64 = 150_000;
    let db = queue(LENGTH);
    // The back of the queue grows while the front is read.
    empty(&db, LENGTH, &WriteOptions::new(), |number| {
        db.put((LENGTH + number).to_be_bytes(), b"job").unwrap();
    });
}

/// Scans used to record deleted keys only if nothing was written to the tree meanwhile, and that
/// became rarer the more keys they stepped over.
#[test]
fn emptying_a_queue_takes_linear_time_while_other_threads_append() {
    for (durability, length) in [(Durability::Process, 150_000), (Durability::Sync, 3_000)] {
        let db = queue(length);
        let options = WriteOptions::new().durability(durability);
        let next = AtomicU64::new(length);
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let append = || {
                while !is_done.load(Ordering::Relaxed) {
                    let mut batch = WriteBatch::new();
                    let key = next.fetch_add(1, Ordering::Relaxed).to_be_bytes();
                    db.write_with(batch.put(key, b"job"), options).unwrap();
                    std::thread::sleep(Duration::from_micros(20));
                }
            };
            let end = OnDrop(|| is_done.store(true, Ordering::Relaxed));
            scope.spawn(append);
            scope.spawn(append);
            empty(&db, length, &options, |_| {});
            drop(end);
        });
    }
}

/// Ends the other threads, even if an assertion fails.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
