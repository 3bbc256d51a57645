//! Bug classes about versions of keys: snapshots, sequence numbers and time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use terrane::storage::MemoryStorage;
use terrane::{Background, Clock, Design, WriteBatch};
use terrane_testkit::{Rng, seed_from_env};

use super::{DIR, contents, entries, options, small_design};

/// The versions of one key came to lie in several tables of a level, and a compaction moved the
/// older ones below or above the newer ones.
#[test]
fn versions_of_a_key_in_several_tables_are_found_by_their_snapshots() {
    for design in [
        "leveling T=3 L0=1 base=4KiB; granularity=file; movement=round-robin",
        "leveling T=3 L0=1 base=4KiB; granularity=file; movement=least-overlap",
        "tiering T=3 L0=2 base=4KiB",
        "lazy-leveling T=3 L0=2 base=4KiB",
    ] {
        let design: Design =
            format!("{design}; buffer=2KiB; table=1KiB; block=128B").parse().unwrap();
        let db = options(MemoryStorage::new(1)).design(design.clone()).open(DIR).unwrap();
        let mut rng = Rng::new(seed_from_env(5));
        let mut snapshots = Vec::new();
        for version in 0..120u32 {
            // One key has many versions, which fill several tables by themselves.
            db.put("hot", [&version.to_be_bytes()[..], &[0; 300]].concat()).unwrap();
            for _ in 0..3 {
                db.put(format!("cold {:03}", rng.below(300)), [0; 60]).unwrap();
            }
            if version % 2 == 0 {
                snapshots.push((db.snapshot(), version));
            }
            while rng.percent(70) && db.run_background_job().unwrap() {}
            if rng.percent(10) {
                snapshots.remove(rng.index(snapshots.len()));
            }
            for (snapshot, version) in &snapshots {
                let found = snapshot.get("hot").unwrap().unwrap();
                assert_eq!(found[..4], version.to_be_bytes(), "{design}");
            }
            assert_eq!(db.get("hot").unwrap().unwrap()[..4], version.to_be_bytes(), "{design}");
        }
        db.tree().shape.check().unwrap();
    }
}

/// A compaction dropped versions for a snapshot that was released or taken while it ran.
#[test]
fn snapshots_stay_exact_while_others_are_released_during_compactions() {
    const KEYS: u8 = 40;
    let options = options(MemoryStorage::new(1)).background(Background::Threads);
    let db = options.design(small_design()).open(DIR).unwrap();
    let is_over = AtomicBool::new(false);
    let write = |round: u32| {
        let mut batch = WriteBatch::new();
        for key in 0..KEYS {
            batch.put([key], [&round.to_be_bytes()[..], &[key; 60]].concat());
        }
        db.write(&batch).unwrap();
    };
    write(0);
    let read = |snapshot: &terrane::Snapshot| -> Vec<u8> {
        let found = entries(snapshot.iter().unwrap());
        assert_eq!(found.len(), usize::from(KEYS));
        let round = found[0].1[..4].to_vec();
        assert!(found.iter().all(|(_, value)| value[..4] == round), "a snapshot of two rounds");
        round
    };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut kept = Vec::new();
                while !is_over.load(Ordering::SeqCst) {
                    let snapshot = db.snapshot();
                    let round = read(&snapshot);
                    kept.push((snapshot, round));
                    if kept.len() > 4 {
                        // The second oldest is released, and the oldest stays for a while.
                        kept.remove(1);
                    }
                    for (snapshot, round) in &kept {
                        assert_eq!(read(snapshot), *round);
                    }
                    if kept[0].1[3].is_multiple_of(7) {
                        kept.remove(0);
                    }
                }
            });
        }
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for round in 1..400 {
                write(round);
                if round % 50 == 0 {
                    db.compact_range(..).unwrap();
                }
            }
        }));
        is_over.store(true, Ordering::SeqCst);
        outcome.unwrap();
    });
}

/// A snapshot of an empty database had the sequence number zero, which meant "the newest".
#[test]
fn a_snapshot_of_an_empty_database_stays_empty() {
    let storage = MemoryStorage::new(1);
    let db = options(storage.clone()).design(small_design()).open(DIR).unwrap();
    let empty = db.snapshot();
    let iter = db.iter().unwrap();
    for number in 0..200u8 {
        db.put([number], [number; 60]).unwrap();
    }
    db.flush().unwrap();
    db.compact_range(..).unwrap();
    db.wait_for_compactions().unwrap();
    assert!((0..200u8).all(|number| empty.get([number]).unwrap().is_none()));
    assert_eq!(entries(empty.iter().unwrap()), []);
    assert_eq!(entries(iter), []);
    drop(empty);
    // If a database starts with the tables of another, even its first snapshot sees them all.
    db.checkpoint("copy").unwrap();
    let copy = options(storage).open("copy").unwrap();
    let first = copy.snapshot();
    copy.delete_range(..).unwrap();
    copy.compact_range(..).unwrap();
    assert_eq!(entries(first.iter().unwrap()).len(), 200);
    assert_eq!(contents(&copy, "default"), []);
}

/// A clock that the test sets to any time.
#[derive(Debug)]
struct JumpingClock(AtomicU64);

impl Clock for JumpingClock {
    fn now_micros(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// The clock moved back or far ahead, and entries were dropped before they were due.
#[test]
fn a_clock_that_jumps_changes_no_answer() {
    const DAY: u64 = 86_400_000_000;
    let seed = seed_from_env(9);
    for seed in seed..seed + 6 {
        let mut rng = Rng::new(seed);
        let clock = Arc::new(JumpingClock(AtomicU64::new(400 * DAY)));
        let options = options(MemoryStorage::new(seed))
            .clock(Arc::clone(&clock) as Arc<dyn Clock>)
            .delete_persistence(Duration::from_secs(2));
        let design = "leveling T=3 L0=2 base=8KiB; trigger=tombstone-ttl(3s)+level-saturation; \
                      buffer=2KiB; table=1KiB; block=128B";
        let mut db = options.clone().design(design.parse().unwrap()).open(DIR).unwrap();
        let mut model = BTreeMap::new();
        let mut snapshot = (db.snapshot(), model.clone());
        for step in 0..1500u32 {
            let key = format!("{:02}", rng.below(80)).into_bytes();
            match rng.below(40) {
                0..=24 => {
                    let value = [&step.to_be_bytes()[..], &[0; 40]].concat();
                    db.put(&key, &value).unwrap();
                    model.insert(key, value);
                }
                25..=33 => {
                    db.delete(&key).unwrap();
                    model.remove(&key);
                }
                34..=36 => {
                    let now = clock.now_micros();
                    let ends = [0, u64::MAX / 4, now + 10 * DAY, now.saturating_sub(10 * DAY)];
                    let near = [now + 5_000_000, now.saturating_sub(5_000_000), 400 * DAY];
                    let time = *rng.pick(&[&ends[..], &near[..]].concat());
                    clock.0.store(time, Ordering::SeqCst);
                    while db.run_background_job().unwrap() {}
                }
                37 => snapshot = (db.snapshot(), model.clone()),
                38 if rng.percent(20) => {
                    drop(snapshot);
                    db.close().unwrap();
                    db = options.open(DIR).unwrap();
                    snapshot = (db.snapshot(), model.clone());
                }
                _ => {
                    let found = db.get(&key).unwrap();
                    assert_eq!(found.as_deref(), model.get(&key).map(|value| &value[..]));
                }
            }
            if step % 100 == 0 {
                let all = |model: &BTreeMap<_, _>| model.clone().into_iter().collect::<Vec<_>>();
                assert_eq!(contents(&db, "default"), all(&model), "seed {seed} step {step}");
                let found = entries(snapshot.0.iter().unwrap());
                assert_eq!(found, all(&snapshot.1), "snapshot, seed {seed} step {step}");
            }
        }
    }
}
