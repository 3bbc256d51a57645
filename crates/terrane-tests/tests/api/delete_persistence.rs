//! Deleted keys leave the tables in time, whether a design merges eagerly or lazily.

use std::sync::Arc;
use std::time::Duration;

use terrane::storage::MemoryStorage;
use terrane::{Background, Db, Design, ManualClock, Options};
use terrane_policy::catalogue;
use terrane_testkit::wait_until;

use crate::support::{DIR, tiny};

const THRESHOLD: Duration = Duration::from_secs(100);
const STEP: Duration = Duration::from_secs(2);

fn open(design: Design) -> (Db, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(1_000_000_000));
    let db = Options::new()
        .storage(Arc::new(MemoryStorage::new(1)))
        .background(Background::Inline)
        .clock(clock.clone())
        .delete_persistence(THRESHOLD)
        .design(design)
        .open(DIR)
        .unwrap();
    (db, clock)
}

fn key(number: u32) -> String {
    format!("{:05}", number.wrapping_mul(7919) % 5000)
}

/// Checks that no table holds a tombstone older than the threshold.
fn check(db: &Db, clock: &ManualClock, name: &str) {
    use terrane::Clock;
    let threshold = u64::try_from(THRESHOLD.as_micros()).unwrap();
    for table in db.tree().shape.tables() {
        let Some(since) = table.oldest_tombstone_micros else { continue };
        let age = clock.now_micros() - since;
        assert!(age <= threshold, "{name}: table {} is {age} us old\n{}", table.id, db.tree());
    }
}

fn work(db: &Db) {
    while db.run_background_job().unwrap() {}
}

#[test]
fn deletes_are_persistent_in_time_under_every_design() {
    for entry in catalogue::ALL {
        let (db, clock) = open(tiny(entry.name));
        for number in 0..600 {
            db.put(key(number), "a value that has some length to it").unwrap();
        }
        work(&db);
        // Mixes deletes with writes while time passes.
        for round in 0..120u32 {
            if round < 40 {
                for number in 0..10 {
                    db.delete(key(round * 10 + number)).unwrap();
                    db.put(key(700 + round * 10 + number), "another value of some length").unwrap();
                }
                if round % 10 == 3 {
                    db.delete_range(
                        format!("{:05}", round * 50)..format!("{:05}", round * 50 + 40),
                    )
                    .unwrap();
                }
            }
            clock.advance(STEP);
            work(&db);
            check(&db, &clock, entry.name);
        }
        let stats = db.stats();
        assert_eq!(stats.table_tombstones + stats.table_range_tombstones, 0, "{}", entry.name);
        // Tables hold at least the entries that a scan returns.
        let found = db.iter().unwrap().count() as u64;
        let in_tables: u64 = db.tree().shape.tables().map(|table| table.entries).sum();
        assert!(in_tables >= found, "{}", entry.name);
    }
}

#[test]
fn a_delete_without_later_writes_is_flushed_by_time() {
    let (db, clock) = open(tiny("leveling"));
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    db.delete("a").unwrap();
    assert!(!db.run_background_job().unwrap() || db.tree().memtable_entries > 0);
    clock.advance(THRESHOLD);
    work(&db);
    assert_eq!(db.tree().memtable_entries, 0);
    assert_eq!(db.stats().table_entries, 0, "the value and its tombstone are gone");
}

#[test]
fn a_snapshot_delays_delete_persistence_until_it_is_released() {
    let (db, clock) = open(tiny("tiering"));
    db.put("a", "1").unwrap();
    let snapshot = db.snapshot();
    db.delete("a").unwrap();
    db.flush().unwrap();
    clock.advance(THRESHOLD * 2);
    // Background work finishes although the tombstone must be kept.
    work(&db);
    assert_eq!(snapshot.get("a").unwrap().unwrap(), "1");
    drop(snapshot);
    work(&db);
    assert_eq!(db.stats().table_entries, 0);
}

#[test]
fn threads_wake_up_by_time_alone() {
    let options = Options::new()
        .storage(Arc::new(MemoryStorage::new(1)))
        .delete_persistence(Duration::from_secs(1))
        .design(tiny("leveling"));
    let db = options.open(DIR).unwrap();
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    db.delete("a").unwrap();
    let is_empty = || db.stats().table_entries == 0 && db.tree().memtable_entries == 0;
    wait_until(is_empty, || db.tree().to_string());
}
