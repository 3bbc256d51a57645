//! Which log files are kept, and for how long.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrane::storage::{MemoryStorage, Storage};
use terrane::{Background, Clock, Db, Error, KeepChanges, ManualClock, Options};

use crate::{all, follow, position};

const VALUE: &[u8] = &[7; 10_000];

fn options(storage: &MemoryStorage, clock: &Arc<ManualClock>, keep: KeepChanges) -> Options {
    Options::new()
        .storage(Arc::new(storage.clone()))
        .background(Background::Inline)
        .clock(Arc::clone(clock) as Arc<dyn Clock>)
        .keep_changes(keep)
}

/// Returns the bytes of all log files.
fn log_bytes(storage: &MemoryStorage, dir: &str) -> u64 {
    let dir = Path::new(dir);
    let names = storage.list(dir).unwrap();
    let logs = names.iter().filter(|name| name.ends_with(".log"));
    logs.map(|name| storage.len(&dir.join(name)).unwrap()).sum()
}

/// Writes `count` values, and flushes after each hundred.
fn fill(db: &Db, numbers: std::ops::Range<u64>) {
    for number in numbers {
        db.put(number.to_string(), VALUE).unwrap();
        if number % 100 == 99 {
            db.flush().unwrap();
        }
    }
}

fn gone(db: &Db, since: u64) -> (u64, u64) {
    match db.changes(since).unwrap().next() {
        Some(Err(Error::ChangesGone(gone))) => (gone.position, gone.oldest),
        other => panic!("{other:?}"),
    }
}

#[test]
fn kept_bytes_are_bounded_and_gone_positions_name_the_oldest() {
    let (storage, clock) = (MemoryStorage::new(1), Arc::default());
    let keep = KeepChanges::bytes(4 << 20);
    let db = options(&storage, &clock, keep).open("db").unwrap();
    for round in 0..10 {
        fill(&db, round * 100..round * 100 + 100);
        // The current segment and two spares do not count as kept.
        assert!(log_bytes(&storage, "db") <= (4 << 20) + 3 * (512 << 10), "round {round}");
        assert!(db.stats().log_kept_bytes <= 4 << 20);
    }
    assert!(db.stats().log_kept_bytes > 3 << 20);
    let (position, oldest) = gone(&db, 0);
    assert_eq!(position, 0);
    assert!((500..800).contains(&oldest), "{oldest}");
    assert_eq!(gone(&db, oldest - 1), (oldest - 1, oldest));
    let left = all(&mut db.changes(oldest).unwrap());
    assert_eq!((left[0].0, left.len() as u64), (oldest + 1, 1000 - oldest));
    let before = oldest;
    // Reopening neither replays nor frees the kept segments.
    db.close().unwrap();
    let db = options(&storage, &clock, keep).open("db").unwrap();
    // The segment that used to be current is now a kept one.
    let oldest = gone(&db, 0).1;
    assert_eq!(db.stats().replayed_writes, 0);
    assert!((600..800).contains(&oldest), "{oldest}");
    assert_eq!(all(&mut db.changes(oldest).unwrap()), left[(oldest - before) as usize..]);
    // The option is stored. Without it everything is freed.
    drop(db);
    let reopened = |keep: Option<KeepChanges>| {
        let options = Options::new().storage(Arc::new(storage.clone()));
        keep.map_or(options.clone(), |keep| options.keep_changes(keep)).open("db").unwrap()
    };
    assert!(gone(&reopened(None), 0).1 < 800);
    drop(reopened(Some(KeepChanges::NONE)));
    let db = reopened(Some(keep));
    assert_eq!(gone(&db, oldest).1, 1000);
    assert_eq!(all(&mut db.changes(1000).unwrap()), []);
    db.put("later", "1").unwrap();
    assert_eq!(all(&mut db.changes(1000).unwrap()).len(), 1);
}

#[test]
fn kept_changes_are_freed_by_age() {
    let (storage, clock) = (MemoryStorage::new(1), Arc::new(ManualClock::new(1_000_000)));
    let keep = KeepChanges::time(Duration::from_secs(60));
    let options = options(&storage, &clock, keep).log_segment_bytes(256 << 10);
    let db = options.open("db").unwrap();
    fill(&db, 0..200);
    assert_eq!(all(&mut db.changes(0).unwrap()).len(), 200);
    clock.advance(Duration::from_secs(59));
    fill(&db, 200..300);
    assert_eq!(all(&mut db.changes(0).unwrap()).len(), 300);
    clock.advance(Duration::from_secs(1));
    fill(&db, 300..400);
    let (_, oldest) = gone(&db, 0);
    assert!((150..=200).contains(&oldest), "{oldest}");
    // An idle database frees them by itself.
    drop(db);
    let db = options.background(Background::Threads).open("db").unwrap();
    clock.advance(Duration::from_secs(120));
    terrane_testkit::wait_until(
        || db.stats().log_kept_bytes == 0,
        || format!("{:?}", db.stats().log_kept_bytes),
    );
}

/// An open reader pins nothing, and never mistakes the records of another segment for the next ones.
#[test]
fn a_reader_that_is_overtaken_finds_its_changes_gone() {
    let (storage, clock) = (MemoryStorage::new(1), Arc::default());
    let db = options(&storage, &clock, KeepChanges::bytes(1 << 20)).open("db").unwrap();
    fill(&db, 0..100);
    for read in [0, 1, 40] {
        let last = db.stats().writes;
        let (_, oldest) = if last > 100 { gone(&db, 0) } else { (0, 0) };
        let mut changes = db.changes(oldest).unwrap();
        for _ in 0..read {
            assert!(changes.next().unwrap().is_ok());
        }
        fill(&db, last..last + 400);
        let mut expected = changes.position() + 1;
        let error = loop {
            match changes.next().unwrap() {
                // The reader may still return the rest of a segment that has not been removed.
                Ok(batch) => assert_eq!(batch.first(), expected),
                Err(error) => break error,
            }
            expected += 1;
        };
        let Error::ChangesGone(gone) = error else { panic!("{error}") };
        assert_eq!(gone.position, expected - 1);
        assert!(gone.oldest > last, "{gone:?}");
    }
}

#[test]
fn a_checkpoint_has_no_kept_changes_and_a_moved_log_has_all() {
    let (storage, clock) = (MemoryStorage::new(1), Arc::default());
    let keep = KeepChanges::bytes(64 << 20);
    let options = options(&storage, &clock, keep).log_segment_bytes(256 << 10);
    let db = options.open("db").unwrap();
    fill(&db, 0..300);
    let written = all(&mut db.changes(0).unwrap());
    db.checkpoint("copy").unwrap();
    assert!(log_bytes(&storage, "copy") <= 256 << 10);
    let copy = options.open("copy").unwrap();
    assert!(gone(&copy, 0).1 >= 250);
    drop((db, copy));
    let db = options.clone().log_dir("wal".into()).open("db").unwrap();
    assert_eq!(all(&mut db.changes(0).unwrap()), written);
    assert!(log_bytes(&storage, "db/wal") > 3_000_000);
    drop(db);
    let db = options.log_dir("database".into()).open("db").unwrap();
    assert_eq!(all(&mut db.changes(0).unwrap()), written);
}

/// When a memtable is flushed, its values may stay in log files, which then are value files as well.
#[test]
fn values_that_stay_in_the_log_are_changes_until_it_is_freed() {
    let (storage, clock) = (MemoryStorage::new(1), Arc::default());
    let keep = KeepChanges::bytes(1 << 20);
    let design = "tiering buffer=256KiB; values=separate(1KiB,garbage=50%)".parse().unwrap();
    let options = options(&storage, &clock, keep).design(design);
    let follower = Options::new().storage(Arc::new(MemoryStorage::new(2))).open("b").unwrap();
    let db = options.open("db").unwrap();
    for round in 0..8 {
        fill(&db, round * 60..round * 60 + 60);
        db.delete((round * 60).to_string()).unwrap();
        let mut changes = db.changes(position(&follower)).unwrap();
        assert_eq!(follow(&mut changes, &follower).unwrap(), 61);
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    for number in 0..480_u64 {
        let expected = (number % 60 != 0).then_some(VALUE);
        assert_eq!(db.get(number.to_string()).unwrap().as_deref(), expected);
        assert_eq!(follower.get(number.to_string()).unwrap().as_deref(), expected);
    }
    assert!(db.stats().value_bytes > 0 && gone(&db, 0).1 > 0);
}
