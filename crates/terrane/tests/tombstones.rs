//! Scans over long runs of tombstones are correct, and not quadratic.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use terrane::storage::MemoryStorage;
use terrane::{Background, Db, Iter, Options, Snapshot};
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

/// If each read of the front stepped over all earlier tombstones, there would be 10^10 steps, which
/// would exceed the limit of the guard.
#[test]
fn emptying_a_queue_takes_linear_time() {
    const LENGTH: u64 = 150_000;
    let db = Options::new().storage(Arc::new(MemoryStorage::new(1))).open("db").unwrap();
    for number in 0..LENGTH {
        db.put(number.to_be_bytes(), b"job").unwrap();
    }
    let guard = HangGuard::new();
    for number in 0..LENGTH {
        let (first, _) = db.iter().unwrap().next().unwrap().unwrap();
        assert_eq!(*first, number.to_be_bytes());
        db.delete(&first).unwrap();
        // The back of the queue grows while the front is read.
        db.put((LENGTH + number).to_be_bytes(), b"job").unwrap();
        guard.check(|| format!("{number} of {LENGTH} jobs"));
    }
}

/// Does the same while another thread appends to the queue.
#[test]
fn emptying_a_queue_takes_linear_time_while_another_thread_appends() {
    const LENGTH: u64 = 150_000;
    let db = Options::new().storage(Arc::new(MemoryStorage::new(1))).open("db").unwrap();
    for number in 0..LENGTH {
        db.put(number.to_be_bytes(), b"job").unwrap();
    }
    let is_done = std::sync::atomic::AtomicBool::new(false);
    let guard = HangGuard::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = LENGTH;
            while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
                db.put(number.to_be_bytes(), b"job").unwrap();
                number += 1;
                guard.check(|| "the reader did not end".into());
                std::thread::sleep(Duration::from_micros(20));
            }
        });
        for number in 0..LENGTH {
            let (first, _) = db.iter().unwrap().next().unwrap().unwrap();
            assert_eq!(*first, number.to_be_bytes());
            db.delete(&first).unwrap();
            guard.check(|| format!("{number} of {LENGTH} jobs"));
        }
        is_done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
