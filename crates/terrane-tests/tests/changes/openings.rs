//! Segments that an opening finds and keeps.

use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use terrane::storage::{Crash, MemoryStorage, Storage, Survival};
use terrane::{
    Background, Clock, Error, Event, KeepChanges, KeyspaceOptions, ManualClock, Options,
};

const VALUE: &[u8] = &[7; 10_000];

fn logs(storage: &MemoryStorage) -> Vec<String> {
    let mut names = storage.list(Path::new("db")).unwrap();
    names.retain(|name| name.ends_with(".log"));
    names.sort();
    names
}

/// A reader delays removals until the log has reused the files of expired segments.
#[test]
fn a_kept_segment_that_expires_at_an_opening_may_be_used_again() {
    let storage = MemoryStorage::new(1);
    let base = |keep| {
        Options::new()
            .storage(Arc::new(storage.clone()))
            .log_segment_bytes(64 << 10)
            .keep_changes(keep)
    };
    let db = base(KeepChanges::bytes(64 << 20)).open("db").unwrap();
    let mut rng = terrane_testkit::Rng::new(5);
    for number in 0..800 {
        let value: Vec<u8> = (0..1250).flat_map(|_| rng.bits().to_le_bytes()).collect();
        db.put(number.to_string(), value).unwrap();
        if number % 100 == 99 {
            db.flush().unwrap();
        }
    }
    db.close().unwrap();
    let (release, released) = mpsc::channel::<()>();
    let released = Arc::new(Mutex::new(Some(released)));
    let locks = storage.clone();
    let options = base(KeepChanges::bytes(1 << 20)).on_event(move |event| {
        if !matches!(event.event, Event::OptionChanged { .. }) {
            return;
        }
        let Some(released) = released.lock().unwrap().take() else { return };
        let (has, taken) = mpsc::channel::<()>();
        let locks = locks.clone();
        std::thread::spawn(move || {
            // Another process opens the database read-only now.
            let lock = locks.lock_shared(Path::new("db/READERS")).unwrap();
            has.send(()).unwrap();
            let _ = released.recv();
            drop(lock);
        });
        taken.recv().unwrap();
    });
    let db = options.open("db").unwrap();
    std::thread::sleep(Duration::from_millis(700));
    for number in 0..100 {
        db.put(format!("later {number}"), VALUE).unwrap();
    }
    release.send(()).unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    for number in 100..110 {
        db.put(format!("later {number}"), VALUE).unwrap();
    }
    db.sync().unwrap();
    let image = storage.crash_point().image(Crash::Process);
    let reopened = Options::new().storage(Arc::new(image)).open("db");
    let reopened = reopened.unwrap_or_else(|error| panic!("opening failed: {error}"));
    let left = (0..110).filter(|n| reopened.get(format!("later {n}")).unwrap().is_some()).count();
    assert_eq!(left, 110);
}

#[test]
fn the_last_segment_of_an_opening_ends_with_the_next_one() {
    let (storage, clock) = (MemoryStorage::new(1), Arc::new(ManualClock::new(1_000_000)));
    let options = Options::new()
        .storage(Arc::new(storage.clone()))
        .background(Background::Inline)
        .clock(Arc::clone(&clock) as Arc<dyn Clock>)
        .keep_changes(KeepChanges::time(Duration::from_secs(3600)));
    let db = options.open("db").unwrap();
    db.put("a", "1").unwrap();
    clock.advance(Duration::from_secs(3700));
    db.put("b", "2").unwrap();
    assert_eq!(crate::all(&mut db.changes(1).unwrap()).len(), 1);
    db.close().unwrap();
    clock.advance(Duration::from_secs(1));
    let db = options.open("db").unwrap();
    let next = db.changes(1).unwrap().next();
    assert!(matches!(next, Some(Ok(_))), "{next:?}");
}

#[test]
fn openings_with_few_writes_take_little_of_the_limit() {
    let storage = MemoryStorage::new(1);
    let options = Options::new()
        .storage(Arc::new(storage.clone()))
        .background(Background::Inline)
        .keep_changes(KeepChanges::bytes(32 << 20));
    let mut gone = None;
    for round in 0..40 {
        let db = options.open("db").unwrap();
        db.put("a", round.to_string()).unwrap();
        if let Some(Err(error)) = db.changes(0).unwrap().next() {
            gone = gone.or(Some((round, error.to_string(), db.stats().log_kept_bytes)));
        }
        db.close().unwrap();
    }
    assert!(gone.is_none(), "{gone:?}");
}

#[test]
fn openings_without_writes_take_little_space() {
    let (storage, clock) = (MemoryStorage::new(1), Arc::new(ManualClock::new(1_000_000)));
    let options = Options::new()
        .storage(Arc::new(storage.clone()))
        .background(Background::Inline)
        .clock(Arc::clone(&clock) as Arc<dyn Clock>)
        .keep_changes(KeepChanges::time(Duration::from_secs(24 * 3600)));
    for _ in 0..100 {
        options.open("db").unwrap().close().unwrap();
        clock.advance(Duration::from_secs(60));
    }
    let names = logs(&storage);
    let len = |name: &String| storage.len(&Path::new("db").join(name)).unwrap();
    let bytes: u64 = names.iter().map(len).sum();
    assert!(bytes < 8 << 20, "{} files, {bytes} bytes, no write", names.len());
}

#[test]
fn a_follower_that_has_everything_finds_the_first_write_of_an_opening() {
    const ROUNDS: u64 = 300;
    let mut gone = 0;
    for round in 0..ROUNDS {
        let storage = MemoryStorage::new(round);
        let options = Options::new().storage(Arc::new(storage.clone()));
        let db = options.clone().background(Background::Inline).open("db").unwrap();
        db.put("a", "1").unwrap();
        db.close().unwrap();
        let options = options.keep_changes(KeepChanges::bytes(1 << 20));
        let db = options.background(Background::Inline).open("db").unwrap();
        let barrier = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                barrier.wait();
                (0..round % 40).for_each(|_| std::hint::spin_loop());
                db.put("b", "2").unwrap();
            });
            let mut changes = db.changes(1).unwrap();
            barrier.wait();
            if let Some(Err(_)) = changes.next() {
                gone += 1;
            }
        });
    }
    assert_eq!(gone, 0, "of {ROUNDS}");
}

fn corrupt_after_power_loss(image: &Options, what: &str) -> u64 {
    let db = image.open("db").unwrap_or_else(|error| panic!("{what}: {error}"));
    let mut expected = 1;
    for batch in db.changes(0).unwrap() {
        match batch {
            Ok(batch) => {
                assert_eq!(batch.first(), expected, "{what}");
                expected = batch.position() + 1;
            }
            Err(Error::ChangesGone(_)) => return 0,
            Err(_) => return 1,
        }
    }
    0
}

/// Segments from before the option was set may have lost pages.
#[test]
fn segments_from_before_the_option_are_not_kept() {
    let storage = MemoryStorage::new(3);
    let options = |storage: &MemoryStorage| {
        Options::new()
            .storage(Arc::new(storage.clone()))
            .background(Background::Inline)
            .log_segment_bytes(64 << 10)
    };
    let db = options(&storage).open("db").unwrap();
    storage.track_crash_points();
    for number in 0..60 {
        db.put(number.to_string(), VALUE).unwrap();
        if number % 20 == 19 {
            db.flush().unwrap();
        }
    }
    let (mut all, mut bad) = (0, 0);
    for (number, point) in storage.take_crash_points().iter().enumerate() {
        for percent in [0, 60] {
            let survival = Survival { percent, seed: number as u64 };
            let image = point.image(Crash::Power(survival));
            let options = options(&image).keep_changes(KeepChanges::bytes(64 << 20));
            all += 1;
            bad += corrupt_after_power_loss(&options, &format!("{number} {}", point.operation()));
        }
    }
    assert_eq!(bad, 0, "of {all}");
}

/// No tree needs the records of a dropped keyspace.
#[test]
fn kept_segments_of_dropped_keyspaces_survive_a_power_failure() {
    let storage = MemoryStorage::new(4);
    let options = |storage: &MemoryStorage| {
        Options::new()
            .storage(Arc::new(storage.clone()))
            .background(Background::Inline)
            .log_segment_bytes(64 << 10)
            .keep_changes(KeepChanges::bytes(64 << 20))
    };
    let db = options(&storage).open("db").unwrap();
    storage.track_crash_points();
    for round in 0..4 {
        db.put(round.to_string(), VALUE).unwrap();
        if round % 2 == 0 {
            db.flush().unwrap();
        }
        let name = format!("other {round}");
        let other = db.keyspace(&name, KeyspaceOptions::new()).unwrap();
        for number in 0..15 {
            other.put(number.to_string(), VALUE).unwrap();
        }
        drop(other);
        db.drop_keyspace(&name).unwrap();
    }
    db.close().unwrap();
    let (mut all, mut bad) = (0, 0);
    for (number, point) in storage.take_crash_points().iter().enumerate() {
        for percent in [0, 60] {
            let survival = Survival { percent, seed: number as u64 };
            let image = point.image(Crash::Power(survival));
            all += 1;
            let what = format!("{number} {}", point.operation());
            bad += corrupt_after_power_loss(&options(&image), &what);
        }
    }
    assert_eq!(bad, 0, "of {all}");
}

/// The first opening with the option finds older segments that lost pages but are still needed. The
/// second opening used to mistake them for kept segments.
#[test]
fn segments_from_before_the_option_are_not_kept_by_the_opening_after() {
    let storage = MemoryStorage::new(3);
    let options = |storage: &MemoryStorage| {
        Options::new()
            .storage(Arc::new(storage.clone()))
            .background(Background::Inline)
            .log_segment_bytes(1 << 20)
    };
    let db = options(&storage).open("db").unwrap();
    storage.track_crash_points();
    for number in 0..60 {
        db.put(number.to_string(), VALUE).unwrap();
        if number % 20 == 14 {
            db.flush().unwrap();
        }
    }
    let last = storage.crash_point();
    let points = storage.take_crash_points();
    let (mut all, mut bad) = (0, 0);
    for (number, point) in points.iter().chain([&last]).enumerate() {
        for percent in [0, 60, 90] {
            let survival = Survival { percent, seed: number as u64 };
            let image = point.image(Crash::Power(survival));
            let options = options(&image).keep_changes(KeepChanges::bytes(64 << 20));
            let what = format!("{number} {}", point.operation());
            let db = options.open("db").unwrap();
            let position = db.snapshot().sequence_number();
            db.put("first", "1").unwrap();
            drop(db);
            all += 1;
            bad += corrupt_after_power_loss(&options, &what);
            // Segments that were kept after that are still there.
            let db = options.open("db").unwrap();
            let found = crate::all(&mut db.changes(position).unwrap());
            assert_eq!(found, [(position + 1, position + 1, "default: first = 1".to_owned())]);
        }
    }
    assert_eq!(bad, 0, "of {all}");
}

/// The damage to a segment.
#[derive(Debug, Clone, Copy)]
enum Damage {
    Header,
    Records,
    Cut,
    Removed,
}

/// The entries are in tables, so only changes are lost.
#[test]
fn damaged_and_missing_kept_segments_cost_only_changes() {
    let storage = MemoryStorage::new(5);
    let options = |storage: &MemoryStorage| {
        Options::new()
            .storage(Arc::new(storage.clone()))
            .background(Background::Inline)
            .log_segment_bytes(64 << 10)
            .keep_changes(KeepChanges::bytes(64 << 20))
    };
    let db = options(&storage).open("db").unwrap();
    for number in 0..40 {
        db.put(number.to_string(), VALUE).unwrap();
    }
    db.flush().unwrap();
    let kept = logs(&storage);
    let kept = &kept[..kept.len() - 1];
    drop(db);
    assert!(kept.len() > 4, "{kept:?}");
    for name in kept {
        for damage in [Damage::Header, Damage::Records, Damage::Cut, Damage::Removed] {
            for is_open in [false, true] {
                let what = format!("{damage:?} of {name}, open: {is_open}");
                let image = storage.deep_copy();
                let before = is_open.then(|| options(&image).open("db").unwrap());
                let path = Path::new("db").join(name);
                let mut bytes = image.read(&path).unwrap();
                match damage {
                    Damage::Header => bytes[20] ^= 1,
                    Damage::Records => bytes[20_000] ^= 1,
                    Damage::Cut => bytes.truncate(100),
                    Damage::Removed => {}
                }
                match damage {
                    Damage::Removed => image.remove(&path).unwrap(),
                    _ => image.overwrite(&path, &bytes).unwrap(),
                }
                let opened = before.map_or_else(|| options(&image).open("db"), Ok);
                let db = opened.unwrap_or_else(|error| panic!("{error}, {what}"));
                let mut changes = db.changes(0).unwrap();
                match changes.find_map(Result::err) {
                    Some(Error::ChangesGone(gone)) => {
                        assert!(!is_open, "{what}");
                        let rest = crate::all(&mut db.changes(gone.oldest).unwrap());
                        assert_eq!(rest.len() as u64, 40 - gone.oldest, "{what}");
                    }
                    Some(error @ Error::Corruption(_)) => {
                        assert!(error.to_string().contains(&format!("{name} at byte")), "{error}");
                    }
                    other => panic!("{other:?}, {what}"),
                }
                assert_eq!(db.iter().unwrap().count(), 40, "{what}");
                db.put("later", "1").unwrap();
                assert_eq!(crate::all(&mut db.changes(40).unwrap()).len(), 1, "{what}");
            }
        }
    }
}
