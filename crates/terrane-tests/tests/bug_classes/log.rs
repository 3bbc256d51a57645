//! Bug classes about the log.

use std::io::ErrorKind as Io;
use std::path::Path;
use std::sync::Arc;

use terrane::storage::{Crash, Fault, FaultStorage, MemoryStorage, Operation, Storage};
use terrane::{Db, Durability, ErrorKind, KeyspaceOptions, WriteBatch, WriteOptions};

use super::{DIR, LOST, contents, crash, losses, names, options, small_design};

fn synced() -> WriteOptions {
    WriteOptions::new().durability(Durability::Sync)
}

fn key(number: u32) -> Vec<u8> {
    format!("{number:04}").into_bytes()
}

/// A database with `count` writes in several log files and none in tables.
fn logged(storage: &MemoryStorage, count: u32) -> Db {
    let db = options(storage.clone()).open(DIR).unwrap();
    for number in 0..count {
        db.put(key(number), [number as u8; 1000]).unwrap();
    }
    assert!(names(storage, ".log").len() > 2 && names(storage, ".sst").is_empty());
    db
}

/// A newer log file was recovered although an older one had lost its end.
#[test]
fn a_log_file_that_lost_its_end_hides_the_later_ones() {
    const COUNT: u32 = 300;
    let storage = MemoryStorage::new(1);
    let _db = logged(&storage, COUNT);
    let mut lengths = Vec::new();
    for loss in losses() {
        let db = options(crash(&storage, loss)).open(DIR).unwrap();
        let found: Vec<Vec<u8>> =
            contents(&db, "default").into_iter().map(|(key, _)| key).collect();
        let prefix: Vec<Vec<u8>> = (0..found.len() as u32).map(key).collect();
        assert_eq!(found, prefix, "{loss:?}");
        lengths.push(found.len());
    }
    lengths.sort_unstable();
    lengths.dedup();
    assert!(lengths.len() > 3 && lengths.contains(&(COUNT as usize)), "{lengths:?}");
}

/// A log file was used again, and records of its earlier use were replayed.
#[test]
fn records_of_an_earlier_use_of_a_log_file_do_not_return() {
    let storage = MemoryStorage::new(1);
    let db = options(storage.clone()).open(DIR).unwrap();
    let mut files = 0;
    for round in 0..12u8 {
        for number in 0..100 {
            db.put(key(number), [round; 1000]).unwrap();
        }
        for loss in losses().step_by(5).chain([Crash::Process]) {
            let db = options(crash(&storage, loss)).open(DIR).unwrap();
            // The previous round was flushed, and a prefix of this round survives.
            let found = contents(&db, "default");
            let new = found.iter().take_while(|(_, value)| value[0] == round).count();
            let is_old = |(_, value): &(Vec<u8>, Vec<u8>)| value[0].checked_add(1) == Some(round);
            assert!(found[new..].iter().all(is_old), "round {round}, {loss:?}");
            assert!(found.len() == 100 || round == 0, "round {round}, {loss:?}");
        }
        db.flush().unwrap();
        files = files.max(names(&storage, ".log").len());
    }
    // Each round fills almost two files, so files were used again.
    assert!(files < 10, "{files} log files");
}

/// The replay of the log mistook an I/O error for the end of the log, and later writes were lost.
#[test]
fn a_log_that_cannot_be_read_is_not_taken_for_its_end() {
    const COUNT: u32 = 200;
    let storage = MemoryStorage::new(1);
    drop(logged(&storage, COUNT));
    let mut fired = 0;
    for operation in [Operation::Open, Operation::Read, Operation::List] {
        for after in 0.. {
            let faulty = FaultStorage::new(Arc::new(storage.deep_copy()));
            faulty.set(Some(Fault {
                operation: Some(operation),
                path_contains: if operation == Operation::List { "" } else { ".log" }.into(),
                after,
                is_permanent: false,
                error: Io::Other,
            }));
            match options(faulty.clone()).open(DIR) {
                Ok(db) => assert_eq!(contents(&db, "default").len(), COUNT as usize),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Io, "{error}"),
            }
            if faulty.fired() == 0 {
                break;
            }
            fired += 1;
            faulty.set(None);
            let db = options(faulty).open(DIR).unwrap();
            assert_eq!(contents(&db, "default").len(), COUNT as usize, "{operation:?} {after}");
        }
    }
    assert!(fired > 3, "{fired} faults");
}

/// Contents that were removed other than by deleting keys came back after a crash, because their
/// removal was not in the log.
#[test]
fn what_was_removed_stays_removed_after_every_crash() {
    type Remove = fn(&Db);
    let removals: [(&str, Remove); 6] = [
        ("delete", |db| {
            (0..10).for_each(|number| db.delete_with(key(number), synced()).unwrap());
        }),
        ("range", |db| {
            db.delete_range(key(0)..key(10)).unwrap();
            db.sync().unwrap();
        }),
        ("batch", |db| {
            let mut batch = WriteBatch::new();
            for number in 0..10 {
                batch.delete(key(number));
            }
            db.write_with(&batch, synced()).unwrap();
        }),
        ("range in a batch", |db| {
            let mut batch = WriteBatch::new();
            batch.delete_range(key(0)..key(10));
            db.write_with(&batch, synced()).unwrap();
        }),
        ("keyspace", |db| assert!(db.drop_keyspace("other").unwrap())),
        ("keyspace made again", |db| {
            assert!(db.drop_keyspace("other").unwrap());
            db.keyspace("other", KeyspaceOptions::new()).unwrap();
        }),
    ];
    for (name, remove) in removals {
        for is_flushed in [false, true] {
            let storage = MemoryStorage::new(1);
            let db = options(storage.clone()).open(DIR).unwrap();
            let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
            for number in 0..20 {
                db.put(key(number), "old").unwrap();
                other.put_with(key(number), "old", synced()).unwrap();
            }
            if is_flushed {
                db.flush().unwrap();
            }
            remove(&db);
            for loss in losses().step_by(7).chain([LOST, Crash::Process]) {
                let story = format!("{name}, flushed: {is_flushed}, {loss:?}");
                let image = crash(&storage, loss);
                for _ in 0..2 {
                    let db = options(image.clone()).open(DIR).unwrap();
                    let kept = contents(&db, "default").len();
                    if name.starts_with("keyspace") {
                        let is_there = db.keyspaces().contains(&"other".to_owned());
                        assert_eq!(is_there, name == "keyspace made again", "{story}");
                        let left = if is_there { contents(&db, "other").len() } else { 0 };
                        assert_eq!((kept, left), (20, 0), "{story}");
                    } else {
                        assert_eq!((kept, contents(&db, "other").len()), (10, 20), "{story}");
                    }
                    db.close().unwrap();
                }
            }
        }
    }
}

/// A recovered log got a name that the next opening did not look for, so later writes were lost.
#[test]
fn writes_after_the_loss_of_a_file_are_found_by_later_openings() {
    let storage = MemoryStorage::new(1);
    drop(logged(&storage, 200));
    let mut opened = 0;
    for name in storage.list(Path::new(DIR)).unwrap() {
        let image = storage.deep_copy();
        image.remove(&Path::new(DIR).join(&name)).unwrap();
        let Ok(db) = options(image.clone()).open(DIR) else { continue };
        opened += 1;
        let before = contents(&db, "default");
        db.put_with("new", "new", synced()).unwrap();
        drop(db);
        for opening in 0..2 {
            let db = options(image.clone()).open(DIR).unwrap();
            let mut found = contents(&db, "default");
            assert_eq!(found.pop().unwrap().0, b"new", "opening {opening} without {name}");
            assert_eq!(found, before, "opening {opening} without {name}");
        }
    }
    assert!(opened > 0);
}

/// A batch was recovered in part, because it lay in several log files.
#[test]
fn a_batch_longer_than_a_log_file_is_whole_or_absent() {
    let storage = MemoryStorage::new(1);
    let db = options(storage.clone()).open(DIR).unwrap();
    let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
    db.put_with("before", "", synced()).unwrap();
    let mut batch = WriteBatch::new();
    for number in 0..200 {
        batch.put(key(number), [1; 1000]).put_in(&other, key(number), [2; 100]);
    }
    db.write(&batch).unwrap();
    db.put("after", "").unwrap();
    let mut found = [0; 2];
    for loss in losses() {
        let db = options(crash(&storage, loss)).open(DIR).unwrap();
        let (here, there) = (contents(&db, "default").len(), contents(&db, "other").len());
        let is_whole = there == 200;
        assert!((is_whole && here >= 201) || (here, there) == (1, 0), "{here} {there} {loss:?}");
        found[usize::from(is_whole)] += 1;
    }
    assert!(found.iter().all(|&count| count > 0), "{found:?}");
}

/// An operation closed or replaced files that later syncs needed, so they synced nothing.
#[test]
fn a_synced_write_survives_after_every_other_operation() {
    type Act = fn(&Db);
    let acts: [(&str, Act); 9] = [
        ("flush", |db| db.flush().unwrap()),
        ("compact", |db| db.compact_range(..).unwrap()),
        ("sync", |db| db.sync().unwrap()),
        ("make a keyspace", |db| drop(db.keyspace("more", KeyspaceOptions::new()).unwrap())),
        ("drop a keyspace", |db| {
            let _was_there = db.drop_keyspace("more").unwrap();
        }),
        ("switch the design", |db| db.set_design(small_design()).unwrap()),
        ("switch it back", |db| db.set_design("tiering".parse().unwrap()).unwrap()),
        ("checkpoint", |db| {
            db.put("another", "write").unwrap();
            db.checkpoint(format!("copy {}", db.snapshot().sequence_number())).unwrap();
        }),
        ("fill a log file", |db| {
            (0..100).for_each(|number| db.put(key(number), [0; 1000]).unwrap());
        }),
    ];
    let storage = MemoryStorage::new(1);
    let db = options(storage.clone()).open(DIR).unwrap();
    // Every operation follows every other one.
    for (at, (_, first)) in acts.iter().enumerate() {
        for (number, (name, second)) in acts.iter().enumerate() {
            first(&db);
            second(&db);
            let key = format!("after {at} {number}");
            db.put_with(&key, "value", synced()).unwrap();
            let db = options(crash(&storage, LOST)).open(DIR).unwrap();
            assert!(db.contains(&key).unwrap(), "{key}: {name}");
        }
    }
}
