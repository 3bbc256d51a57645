//! Writers, flushes and keyspaces alongside followers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use terrane::storage::MemoryStorage;
use terrane::{
    Change, Db, Durability, Error, KeepChanges, KeyspaceOptions, Options, WriteBatch, WriteOptions,
    WritePath,
};

const WRITERS: u64 = 3;
const BATCHES: u64 = 500;

/// Each batch of a writer puts its number under keys of the writer, in two keyspaces.
fn write(db: &Db, writer: u64, durability: Durability) {
    let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
    for number in 0..BATCHES {
        let (mut batch, value) = (WriteBatch::new(), number.to_le_bytes());
        batch.put(format!("{writer}"), value).put_in(&other, format!("{writer}"), value);
        let is_synced = durability == Durability::Sync && number % 50 == 0;
        let durability = if is_synced { Durability::Sync } else { Durability::Process };
        db.write_with(&batch, WriteOptions::new().durability(durability)).unwrap();
    }
}

/// Reads the numbers of each writer until all writers are done. Checks that no batch is missing,
/// doubled, torn or out of order.
fn read(db: &Db, includes_unsynced: bool) {
    let mut changes = db.changes(0).unwrap();
    if includes_unsynced {
        changes = changes.include_unsynced();
    }
    let (mut position, mut next) = (0, BTreeMap::new());
    while next.values().filter(|next| **next == BATCHES).count() < WRITERS as usize {
        let Some(batch) = changes.next() else {
            changes.wait(Duration::from_secs(1)).unwrap();
            continue;
        };
        let batch = batch.unwrap();
        assert_eq!(batch.first(), position + 1);
        position = batch.position();
        let changed: Vec<Change<'_>> = batch.iter().collect();
        for pair in changed.chunks(2) {
            let [Change::Put { key, value, .. }, Change::Put { key: other, value: second, .. }] =
                pair
            else {
                panic!("{pair:?}")
            };
            assert_eq!((key, value), (other, second));
            let next = next.entry(key.to_vec()).or_insert(0_u64);
            assert_eq!(*value, next.to_le_bytes());
            *next += 1;
        }
    }
}

fn run(options: Options, durability: Durability) {
    let dir = tempfile::tempdir().unwrap();
    let options = options.log_segment_bytes(64 << 10).keep_changes(KeepChanges::bytes(64 << 20));
    let db = options.open(dir.path().join("db")).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let others = scope.spawn(|| {
            let mut number = 0;
            while !is_over.load(Ordering::Relaxed) {
                number += 1;
                let name = format!("{number}");
                db.keyspace(&name, KeyspaceOptions::new()).unwrap();
                db.flush().unwrap();
                db.drop_keyspace(&name).unwrap();
            }
        });
        let readers = [false, true].map(|unsynced| {
            scope.spawn({
                let db = &db;
                move || read(db, unsynced)
            })
        });
        let db = &db;
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| scope.spawn(move || write(db, writer, durability))).collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
        others.join().unwrap();
    });
    db.close().unwrap();
}

#[test]
fn readers_see_each_batch_of_concurrent_writers_once() {
    run(Options::new(), Durability::Process);
}

#[test]
fn readers_see_each_batch_of_writers_that_sync() {
    run(Options::new(), Durability::Sync);
}

#[test]
fn readers_see_each_batch_of_a_queue_of_writers() {
    run(Options::new().write_path(WritePath::Queue), Durability::Process);
}

/// Files are freed and reused while readers have them open.
#[test]
fn readers_next_to_the_removal_of_their_segments_find_changes_or_that_they_are_gone() {
    let design = "tiering buffer=64KiB".parse().unwrap();
    let options = Options::new().design(design).keep_changes(KeepChanges::bytes(1 << 20));
    // The files are in memory, because a reader that keeps up syncs the log all the time.
    let db = options.storage(Arc::new(MemoryStorage::new(1))).open("db").unwrap();
    let written = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut found, mut gone) = (0_u64, 0);
            let mut changes = db.changes(0).unwrap();
            while gone < 5 {
                // Falls behind in the middle of a segment, by more than the log keeps.
                let behind = changes.position() + if found % 300 == 299 { 4000 } else { 0 };
                while written.load(Ordering::Relaxed) < behind {
                    std::thread::yield_now();
                }
                match changes.next() {
                    None => {}
                    Some(Ok(batch)) => {
                        let Some(Change::Put { key, value, .. }) = batch.iter().next() else {
                            panic!("{batch:?}")
                        };
                        assert_eq!(key, batch.position().to_be_bytes());
                        assert_eq!(value, [batch.position() as u8; 1000]);
                        found += 1;
                    }
                    Some(Err(Error::ChangesGone(error))) => {
                        assert!(error.oldest > changes.position());
                        changes = db.changes(error.oldest).unwrap();
                        gone += 1;
                    }
                    Some(Err(error)) => panic!("{error}"),
                }
            }
        });
        let mut number = 0_u64;
        while !reader.is_finished() {
            number += 1;
            db.put(number.to_be_bytes(), [number as u8; 1000]).unwrap();
            written.store(number, Ordering::Relaxed);
        }
        reader.join().unwrap();
    });
    db.close().unwrap();
}
