//! Tests that `write_path=queue`, in which one writer writes for all waiting writers, gives the
//! same results as concurrent writers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, OnceLock};
use std::time::Duration;

use terrane::storage::{FaultStorage, MemoryStorage};
use terrane::{
    Background, Db, Durability, ErrorKind, Event, KeepChanges, Keyspace, Options, WriteBatch,
    WriteOptions, WritePath,
};

const THREADS: u32 = 6;
const EACH: u32 = 400;

fn open(dir: &std::path::Path) -> Db {
    Options::new().write_path(WritePath::Queue).open(dir).unwrap()
}

fn key(thread: u32, number: u32) -> Vec<u8> {
    format!("{thread} {number:05}").into_bytes()
}

/// Makes the writes of one thread: single puts, batches over two keyspaces and deletes, with
/// changing durability.
fn write(db: &Db, other: &Keyspace, thread: u32) {
    for number in 0..EACH {
        let durability = match number % 50 {
            7 => Durability::Sync,
            23 => Durability::None,
            _ => Durability::Process,
        };
        let options = WriteOptions::new().durability(durability);
        let value = number.to_string();
        if number % 3 == 0 {
            let mut batch = WriteBatch::new();
            batch.put(key(thread, number), &value).put_in(other, key(thread, number), &value);
            db.write_with(&batch, options).unwrap();
        } else {
            db.put_with(key(thread, number), &value, options).unwrap();
        }
        // A writer reads its own write, even if another thread performed it.
        assert_eq!(db.get(key(thread, number)).unwrap().unwrap(), value.as_bytes());
        if number % 5 == 4 {
            db.delete(key(thread, number - 1)).unwrap();
            assert!(db.get(key(thread, number - 1)).unwrap().is_none());
        }
    }
}

fn check(db: &Db, other: &Keyspace) {
    for thread in 0..THREADS {
        for number in 0..EACH {
            let is_there = number % 5 != 3;
            let found = db.get(key(thread, number)).unwrap();
            assert_eq!(found.is_some(), is_there, "{thread} {number}");
            let in_other = other.get(key(thread, number)).unwrap();
            assert_eq!(in_other.is_some(), number % 3 == 0, "{thread} {number}");
        }
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "writers are threads of the caller")]
fn a_queue_of_writers_writes_what_each_of_them_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let other = db.keyspace("other", Default::default()).unwrap();
    let begin = Barrier::new(THREADS as usize);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (db, other, begin) = (&db, &other, &begin);
            scope.spawn(move || {
                begin.wait();
                write(db, other, thread);
            });
        }
    });
    check(&db, &other);
    assert_eq!(db.operations().writes, u64::from(THREADS * (EACH + EACH.div_ceil(3) + EACH / 5)));
    // The flush makes the earlier unlogged writes durable. The later write is replayed, because
    // nothing closes the database.
    db.flush().unwrap();
    db.put("last", "of all").unwrap();
    drop((db, other));
    let db = open(dir.path());
    let other = db.keyspace("other", Default::default()).unwrap();
    check(&db, &other);
    assert_eq!(db.get("last").unwrap().unwrap(), "of all");
}

/// Writers that wait for the sync of another one are written by one of them, in a batch. Concurrent writers are not.
#[test]
#[allow(clippy::disallowed_methods, reason = "writers are threads of the caller")]
fn a_queue_of_writers_writes_those_that_wait_in_one_batch() {
    for (path, are_grouped) in [(WritePath::Queue, true), (WritePath::Concurrent, false)] {
        let storage = FaultStorage::new(Arc::new(MemoryStorage::new(1)));
        let options = Options::new().storage(Arc::new(storage.clone())).write_path(path);
        let db = options.keep_changes(KeepChanges::bytes(1 << 20)).open("db").unwrap();
        storage.delay_log_syncs(Duration::from_millis(5));
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let db = &db;
                scope.spawn(move || {
                    let sync = WriteOptions::new().durability(Durability::Sync);
                    (0..20).for_each(|number| db.put_with(key(thread, number), "", sync).unwrap());
                });
            }
        });
        let batches: Vec<usize> =
            db.changes(0).unwrap().map(|batch| batch.unwrap().iter().count()).collect();
        assert_eq!(batches.iter().sum::<usize>(), 20 * THREADS as usize);
        let most = batches.into_iter().max().unwrap();
        assert_eq!(most > 1, are_grouped, "{path:?}: {most} writes in a batch");
    }
}

/// An invalid write of a group does not make the other writes fail.
#[test]
#[allow(clippy::disallowed_methods, reason = "writers are threads of the caller")]
fn each_writer_of_a_queue_has_its_own_answer() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let dropped = db.keyspace("dropped", Default::default()).unwrap();
    db.drop_keyspace("dropped").unwrap();
    let begin = Barrier::new(THREADS as usize);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (db, dropped, begin) = (&db, &dropped, &begin);
            scope.spawn(move || {
                begin.wait();
                for number in 0..EACH {
                    if thread % 2 == 0 {
                        db.put(key(thread, number), "x").unwrap();
                    } else if number % 2 == 0 {
                        let error = dropped.put(key(thread, number), "x").unwrap_err();
                        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
                    } else {
                        let error = db.put(vec![0; 1 << 20], "x").unwrap_err();
                        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
                    }
                }
            });
        }
    });
    assert_eq!(db.iter().unwrap().count() as u32, THREADS / 2 * EACH);
}

/// A listener may write, even while it runs inside the write that caused the event.
#[test]
fn a_listener_that_writes_does_not_deadlock() {
    let dir = tempfile::tempdir().unwrap();
    let handle: Arc<OnceLock<Db>> = Arc::default();
    let heard = Arc::new(AtomicU64::new(0));
    let (listener, count) = (Arc::clone(&handle), Arc::clone(&heard));
    let db = Options::new()
        .write_path(WritePath::Queue)
        // A stalled writer does the background work itself, so the listener runs within that
        // writer's call.
        .background(Background::Inline)
        .design("leveling; buffer=4KiB; table=4KiB; buffers=1".parse().unwrap())
        .on_event(move |event| {
            if let (Event::FlushEnded { .. }, Some(db)) = (&event.event, listener.get()) {
                count.fetch_add(1, Ordering::Relaxed);
                db.put("told", "x").unwrap();
            }
        })
        .open(dir.path())
        .unwrap();
    handle.set(db.clone()).unwrap();
    for number in 0..1000 {
        db.put(key(0, number), [7; 50]).unwrap();
    }
    assert!(heard.load(Ordering::Relaxed) > 0);
    assert_eq!(db.get("told").unwrap().unwrap(), "x");
}
