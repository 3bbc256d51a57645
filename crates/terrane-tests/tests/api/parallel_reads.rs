//! Tests gets that read several runs concurrently: the answers stay the same, even if tables are
//! damaged or the database is being closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use terrane::storage::{Fault, FaultStorage, MemoryStorage, Operation};
use terrane::{Background, CacheWarming, Db, ErrorKind, Options, ReadMode};

use terrane_testkit::wait_until;

use crate::support::{DIR, fill, keys, value};

/// A design that never compacts the ten runs.
const RUNS: &str = "tiering T=4 L0=40; buffer=1MiB; block=256B; filter=0; delay=60; stop=80";

fn options(read_threads: usize) -> Options {
    options_of(&storage(), read_threads)
}

/// Returns files in memory, on a device whose reads wait.
fn storage() -> FaultStorage {
    let storage = FaultStorage::new(Arc::new(MemoryStorage::new(1)));
    storage.delay_reads(Duration::from_micros(50));
    storage
}

fn options_of(storage: &FaultStorage, read_threads: usize) -> Options {
    Options::new()
        .storage(Arc::new(storage.clone()))
        .background(Background::Threads)
        .cache_warming(CacheWarming::None)
        .read_threads(read_threads)
        .memory_budget(16 << 20)
        .log_segment_bytes(64 << 10)
}

/// Writes ten runs of the same keys; the seventh has a deleted range.
fn ten_runs(options: &Options) -> Db {
    let db = options.clone().design(RUNS.parse().unwrap()).open(DIR).unwrap();
    for round in 0..10 {
        fill(&db, 100 - round * 5, round);
        if round == 6 {
            db.delete_range("020".."090").unwrap();
        }
        db.flush().unwrap();
    }
    assert_eq!(db.tree().shape.run_count(), 10);
    db
}

#[test]
fn parallel_reads_respect_the_order_of_runs() {
    for read_mode in [ReadMode::Cached, ReadMode::Direct] {
        for threads in [0, 1, 2, 5] {
            let storage = storage();
            let db = ten_runs(&options_of(&storage, threads).read_mode(read_mode));
            // A background thread may still be looking for the tables that the deleted range covers.
            wait_until(|| storage.take_most_reads_at_once() == 0, || "reads continue".to_owned());
            for number in 0..100 {
                // This is the newest round that wrote the key. A later round may have deleted the key.
                let round = ((99 - number) / 5).min(9);
                let is_deleted = (20..90).contains(&number) && round <= 6;
                let expected = (!is_deleted).then(|| value(number, round));
                let found = db.get(format!("{number:03}")).unwrap();
                assert_eq!(found.as_deref(), expected.as_ref().map(String::as_bytes), "{number}");
            }
            assert_eq!(db.get("0005").unwrap(), None);
            // There is no upper bound: reads of an earlier get may still run when the next one begins,
            // and background threads read too.
            let most = storage.take_most_reads_at_once();
            assert!(threads < 2 || most > 1, "{most} reads at once by {threads}");
            let forward = keys(db.iter().unwrap());
            let mut backward = keys(db.iter().unwrap().rev());
            backward.reverse();
            assert_eq!(forward, backward);
            let expected = (0..65).chain(90..100).map(|number| format!("{number:03}"));
            assert_eq!(forward, expected.collect::<Vec<_>>());
            assert_eq!(keys(db.range("050".."052").unwrap()), ["050", "051"]);
            assert_eq!(keys(db.range("091"..).unwrap().rev()).last().unwrap(), "091");
            let mut iter = db.range("010".."099").unwrap();
            iter.seek("064x").unwrap();
            assert!(iter.advance().unwrap());
            assert_eq!(iter.key(), b"090");
        }
    }
}

#[test]
fn a_snapshot_reads_the_versions_of_its_time() {
    let db = options(2).design(RUNS.parse().unwrap()).open(DIR).unwrap();
    let mut snapshots = Vec::new();
    for round in 0..6 {
        fill(&db, 20, round);
        db.flush().unwrap();
        snapshots.push(db.snapshot());
        db.delete_range("005".."010").unwrap();
    }
    for (round, snapshot) in snapshots.iter().enumerate() {
        for number in 0..20 {
            let found = snapshot.get(format!("{number:03}")).unwrap().unwrap();
            assert_eq!(found, value(number, round as u32).as_str());
        }
        assert_eq!(snapshot.iter().unwrap().count(), 20);
    }
    assert_eq!(db.iter().unwrap().count(), 15);
}

/// Makes reads of the oldest table fail.
fn break_oldest(storage: &FaultStorage) {
    storage.set(Some(Fault {
        operation: Some(Operation::Read),
        path_contains: "00000001-".into(),
        after: 0,
        is_permanent: true,
        error: std::io::ErrorKind::Other,
    }));
}

#[test]
fn an_error_in_an_old_run_hides_no_newer_answer() {
    for threads in [0, 2] {
        for is_open_before in [false, true] {
            let storage = storage();
            let options = options_of(&storage, threads).read_mode(ReadMode::Cached);
            let db = options.clone().design(RUNS.parse().unwrap()).open(DIR).unwrap();
            fill(&db, 100, 0);
            db.flush().unwrap();
            for round in 1..4 {
                for number in 50..100 {
                    db.put(format!("{number:03}"), value(number, round)).unwrap();
                }
                db.flush().unwrap();
            }
            db.close().unwrap();
            let db = options.open(DIR).unwrap();
            if is_open_before {
                // This reads footers and indexes, but not the blocks of the keys below.
                assert!(db.contains("000").unwrap() && db.contains("099").unwrap());
            }
            break_oldest(&storage);
            for _ in 0..20 {
                assert_eq!(db.get("060").unwrap().unwrap(), value(60, 3).as_str());
                assert_eq!(db.get("030").unwrap_err().kind(), ErrorKind::Io);
                assert_eq!(db.get("0601").unwrap_err().kind(), ErrorKind::Io);
            }
            // A scan needs all runs, and an iterator ends with its error.
            let mut iter = db.range("060"..).unwrap();
            assert_eq!(iter.next().unwrap().unwrap_err().kind(), ErrorKind::Io);
            assert!(iter.next().is_none());
            storage.set(None);
            assert_eq!(db.get("030").unwrap().unwrap(), value(30, 0).as_str());
            assert_eq!(db.range("060"..).unwrap().count(), 40);
        }
    }
}

#[test]
fn closing_while_reads_wait_ends_them_with_an_answer_or_closed() {
    for round in 0..10 {
        let db = ten_runs(&options(2).read_mode(ReadMode::Cached));
        let (is_closed, reads) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for reader in 0..4 {
                let (db, mut kept) = (db.clone(), db.iter().unwrap());
                let (is_closed, reads) = (&is_closed, &reads);
                scope.spawn(move || {
                    for number in (0..100).cycle().skip(reader * 7) {
                        match db.get(format!("{number:03}")) {
                            Ok(found) => assert!(found.is_some() || (65..90).contains(&number)),
                            Err(error) => {
                                assert_eq!(error.kind(), ErrorKind::Closed);
                                break;
                            }
                        }
                        reads.fetch_add(1, Ordering::Relaxed);
                    }
                    while !is_closed.load(Ordering::Acquire) {
                        std::thread::yield_now();
                    }
                    // Open iterators work without the threads.
                    kept.seek("090").unwrap();
                    assert_eq!(kept.count(), 10);
                });
            }
            while reads.load(Ordering::Relaxed) < 100 * round {
                std::thread::yield_now();
            }
            db.clone().close().unwrap();
            is_closed.store(true, Ordering::Release);
        });
    }
}
