//! Writers and readers see an ingest at one moment.
//!
//! A writer counts in one key, while another thread ingests a round of other keys again and again. All
//! observations of both, by scans and snapshots, fit one order of writes: none has a newer count but an
//! older round than another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use terrane::storage::MemoryStorage;
use terrane::{Background, Db, Durability, KeyspaceOptions, Options};
use terrane_testkit::print_counts;

const KEYS: u64 = 50;

fn options(storage: &MemoryStorage, memtable: &str) -> Options {
    let design = format!(
        "1-leveling T=4 L0=4 base=64KiB; buffer=16KiB; table=4KiB; block=512B; memtable={memtable}"
    );
    Options::new()
        .storage(Arc::new(storage.clone()))
        .background(Background::Threads)
        .memory_budget(32 << 20)
        .log_segment_bytes(256 << 10)
        .design(design.parse().unwrap())
}

fn number(value: &[u8]) -> u64 {
    u64::from_be_bytes(value.try_into().unwrap())
}

/// Returns the count and the round in an iterator over all keys.
fn observe(iter: terrane::Iter) -> (u64, u64) {
    let entries: Vec<_> = iter.map(Result::unwrap).collect();
    let (count, rounds) = entries.split_first().unwrap();
    assert_eq!(count.0, "count");
    let round = rounds.first().map_or(0, |(_, value)| number(value));
    assert!(rounds.is_empty() || rounds.len() as u64 == KEYS, "{} keys", rounds.len());
    assert!(rounds.iter().all(|(_, value)| number(value) == round), "several rounds");
    (number(&count.1), round)
}

fn ingest(db: &Db, round: u64) {
    let mut ingest = db.default_keyspace().begin_ingest().unwrap();
    for key in 0..KEYS {
        ingest.put(format!("k{key:03}"), round.to_be_bytes()).unwrap();
    }
    ingest.commit().unwrap();
}

fn check_order(mut seen: Vec<(u64, u64)>) {
    seen.sort_unstable();
    for pair in seen.windows(2) {
        assert!(pair[0].1 <= pair[1].1, "{:?} and {:?} have no order", pair[0], pair[1]);
    }
}

fn observations_are_ordered(memtable: &str, durability: Durability, rounds: u64) -> usize {
    let storage = MemoryStorage::new(1);
    let db = options(&storage, memtable).durability(durability).open("db").unwrap();
    let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
    db.put("count", 0_u64.to_be_bytes()).unwrap();
    let (is_over, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let goes_on = || !is_over.load(Ordering::Relaxed);
    let seen = std::thread::scope(|scope| {
        let writer = |key: &'static str, counts: bool| {
            let (db, other) = (&db, &other);
            move || {
                for count in 1.. {
                    if !goes_on() {
                        break;
                    }
                    if counts {
                        db.put(key, u64::to_be_bytes(count)).unwrap();
                    } else {
                        other.put(key, u64::to_be_bytes(count)).unwrap();
                    }
                }
            }
        };
        scope.spawn(writer("count", true));
        scope.spawn(writer("elsewhere", false));
        let scans = scope.spawn(|| {
            let mut seen = Vec::new();
            while goes_on() {
                // A committed ingest must be seen.
                let least = done.load(Ordering::Acquire);
                let found = observe(db.iter().unwrap());
                assert!(found.1 >= least, "round {} after {least}", found.1);
                seen.push(found);
            }
            seen
        });
        let snapshots = scope.spawn(|| {
            let mut seen = Vec::new();
            while goes_on() {
                let snapshot = db.snapshot();
                let found = observe(snapshot.iter().unwrap());
                assert_eq!(observe(snapshot.iter().unwrap()), found, "a snapshot changed");
                let got = snapshot.get("k007").unwrap().map_or(0, |value| number(&value));
                assert_eq!(got, found.1);
                seen.push(found);
            }
            seen
        });
        let gets = scope.spawn(|| get_in_order(&db, goes_on));
        for round in 1..=rounds {
            ingest(&db, round);
            done.store(round, Ordering::Release);
        }
        is_over.store(true, Ordering::Relaxed);
        gets.join().unwrap();
        let mut seen = scans.join().unwrap();
        seen.extend(snapshots.join().unwrap());
        seen
    });
    let count = seen.len();
    check_order(seen);
    let last = db.get("count").unwrap().unwrap();
    db.close().unwrap();
    let db = options(&storage, memtable).open("db").unwrap();
    assert_eq!(observe(db.iter().unwrap()), (number(&last), rounds));
    count
}

/// Gets keys until `goes_on` is false, and checks that no count or round goes back.
fn get_in_order(db: &Db, goes_on: impl Fn() -> bool) {
    let (mut round, mut count) = (0, 0);
    while goes_on() {
        let values = db.multi_get(["count", "k000", "k049"]).unwrap();
        let values = values.iter().map(|value| value.as_ref().map_or(0, |value| number(value)));
        let values: Vec<_> = values.collect();
        assert_eq!(values[1], values[2]);
        assert!(values[0] >= count && values[1] >= round, "time went backward");
        (count, round) = (values[0], values[1]);
        let got = db.get("k020").unwrap().map_or(0, |value| number(&value));
        assert!(got >= round, "time went backward");
        round = got;
    }
}

#[test]
fn observations_have_one_order() {
    let mut seen = 0;
    for memtable in ["btree", "skiplist", "vector", "flodb"] {
        for durability in [Durability::Process, Durability::Sync] {
            seen += observations_are_ordered(memtable, durability, 40);
        }
    }
    print_counts(&[("observations", seen as u64)]);
}

#[test]
fn ingests_of_several_threads_are_all_there() {
    let storage = MemoryStorage::new(1);
    let db = options(&storage, "btree").open("db").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let db = &db;
            scope.spawn(move || {
                let own = db.keyspace(&format!("{}", thread % 2), KeyspaceOptions::new()).unwrap();
                for round in 0..10 {
                    let keys = (0..40).map(|key| format!("{thread} {round} {key:02}"));
                    own.ingest(keys.map(|key| (key, "value"))).unwrap();
                    own.put(format!("{thread} {round} put"), "value").unwrap();
                }
            });
        }
    });
    db.close().unwrap();
    let db = options(&storage, "btree").open("db").unwrap();
    for name in ["0", "1"] {
        let own = db.keyspace(name, KeyspaceOptions::new()).unwrap();
        assert_eq!(own.iter().unwrap().count(), 2 * 10 * 41);
    }
}

/// A reader that opens the database takes the manifest before the log. It must not show a write from the
/// log without the ingest before it.
#[test]
fn a_reader_that_opens_the_database_sees_no_later_write_without_the_ingest() {
    let storage = MemoryStorage::new(1);
    let db = options(&storage, "btree").open("db").unwrap();
    db.put("count", 0_u64.to_be_bytes()).unwrap();
    let is_over = AtomicBool::new(false);
    let openings = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut openings = 0_u64;
                    while !is_over.load(Ordering::Relaxed) {
                        match options(&storage, "btree").open_read_only("db") {
                            Ok(reader) => {
                                let (count, round) = observe(reader.iter().unwrap());
                                assert!(round >= count, "count {count}, round {round}");
                                openings += 1;
                            }
                            Err(error) => assert_eq!(error.kind(), terrane::ErrorKind::Busy),
                        }
                    }
                    openings
                })
            })
            .collect();
        for round in 1..=150_u64 {
            ingest(&db, round);
            db.put("count", round.to_be_bytes()).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        readers.into_iter().map(|reader| reader.join().unwrap()).sum::<u64>()
    });
    print_counts(&[("openings", openings)]);
    assert!(openings > 0);
}
