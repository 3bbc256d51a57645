//! What only shows between two steps of the engine.

use std::sync::Arc;

use terrane_policy::{PickInput, pick};

use crate::durability::Durability;
use crate::engine::{Engine, JobKind};
use crate::error::Error;
use crate::storage::{Fault, FaultStorage, MemoryStorage, Operation};
use crate::{Background, Db, Design, ErrorKind, KeyspaceOptions, Options, Result};

fn open() -> Db {
    let storage = Arc::new(MemoryStorage::new(1));
    Options::new().storage(storage).background(Background::Inline).open("db").unwrap()
}

/// A compaction was picked, its keyspace was dropped, and the compaction then found none of its
/// tables: which was taken for a contradiction, and stopped all writes of the database.
#[test]
fn a_keyspace_dropped_before_its_compaction_begins_stops_nothing_else() {
    let db = open();
    let gathers: Design = "tiering T=9".parse().unwrap();
    let keyspace = db.keyspace("dropped", KeyspaceOptions::new().design(gathers)).unwrap();
    for value in ["1", "2", "3"] {
        keyspace.put("key", value).unwrap();
        keyspace.flush().unwrap();
    }
    let (engine, tree) = (&keyspace.handle.engine, &keyspace.tree);
    let compaction = {
        let state = tree.state();
        let mut jobs = tree.jobs();
        let design: Design = "leveling T=2 L0=1".parse().unwrap();
        let shape = state.version.shape();
        let input = PickInput::new(shape, &design);
        let compaction = pick(&input).unwrap();
        jobs.compactions.push(compaction.clone());
        compaction
    };
    db.drop_keyspace("dropped").unwrap();
    let merge = engine.as_merge(tree, &tree.jobs(), &compaction);
    let pass = engine.gate.enter(merge, compaction.from_level());
    let outcome = engine.compact(tree, &compaction, pass);
    assert!(matches!(outcome, Err(Error::Closed)), "{outcome:?}");
    assert!(tree.jobs().compactions.is_empty());
}

/// While a compaction holds what a flush would merge, the flush makes a run of its own at once, and
/// no compaction takes what a flush holds.
#[test]
fn a_flush_that_merges_waits_for_no_compaction() {
    let db = open();
    let design: Design = "1-leveling L0=4; flush=merge".parse().unwrap();
    let keyspace = db.keyspace("merged", KeyspaceOptions::new().design(design)).unwrap();
    let flush = |value: &str| {
        keyspace.put("key", value).unwrap();
        keyspace.flush().unwrap();
        keyspace.tree.state().version.shape().level(0).runs.len()
    };
    assert_eq!((flush("1"), flush("2")), (1, 1));
    let tree = &keyspace.tree;
    let compaction = {
        let state = tree.state();
        let mut jobs = tree.jobs();
        let design: Design = "leveling T=2 L0=1".parse().unwrap();
        let compaction = pick(&PickInput::new(state.version.shape(), &design)).unwrap();
        jobs.compactions.push(compaction.clone());
        compaction
    };
    assert_eq!((flush("3"), flush("4")), (2, 2), "a run of its own, and one that merges with it");
    let engine = &keyspace.handle.engine;
    let merge = engine.as_merge(tree, &tree.jobs(), &compaction);
    let pass = engine.gate.enter(merge, compaction.from_level());
    engine.compact(tree, &compaction, pass).unwrap();
    assert_eq!(flush("5"), 1);
    assert_eq!(keyspace.get("key").unwrap().unwrap(), "5");
    let stats = db.stats();
    assert_eq!((stats.flushes, stats.flushes_merged, stats.flushes_apart), (5, 3, 1));
    assert!(tree.jobs().flushing.is_none());
}

/// Dropping a keyspace failed to be kept, and a new one of the same name was made beside it: both
/// were there when the database was opened again.
#[test]
fn a_keyspace_whose_drop_was_not_kept_is_still_there() {
    let storage = FaultStorage::new(Arc::new(MemoryStorage::new(1)));
    let options = Options::new().storage(Arc::new(storage.clone())).background(Background::Inline);
    let db = options.open("db").unwrap();
    let keyspace = db.keyspace("kept", KeyspaceOptions::new()).unwrap();
    keyspace.put("a", "1").unwrap();
    storage.set(Some(Fault {
        operation: Some(Operation::Append),
        path_contains: "MANIFEST".into(),
        after: 0,
        is_permanent: false,
        error: std::io::ErrorKind::StorageFull,
    }));
    assert!(db.drop_keyspace("kept").is_err());
    assert_eq!(storage.fired(), 1);
    storage.set(None);
    let again = db.keyspace("kept", KeyspaceOptions::new()).unwrap();
    assert_eq!(again.get("a").unwrap().unwrap(), "1");
    again.put("b", "2").unwrap();
    keyspace.put("c", "3").unwrap();
    drop((keyspace, again));
    db.close().unwrap();
    let db = options.open("db").unwrap();
    assert_eq!(db.keyspaces(), ["default", "kept"]);
    assert_eq!(db.keyspace("kept", KeyspaceOptions::new()).unwrap().iter().unwrap().count(), 3);
}

/// What a put answers that was let in behind a write that goes on, while `meanwhile` happens.
#[allow(clippy::disallowed_methods, reason = "a writer is a thread of the caller")]
fn put_behind(
    db: &Db,
    meanwhile: impl FnOnce(&Engine, crate::engine::write::Entered<'_>),
) -> Result<()> {
    let keyspace = db.keyspace("default", KeyspaceOptions::new()).unwrap();
    let engine = &keyspace.handle.engine;
    let first = {
        let mut writer = engine.lock_writer();
        let seq = writer.next_seq;
        writer.next_seq += 1;
        engine.enter(&mut writer, seq).unwrap()
    };
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| db.put("key", "value"));
        while engine.lock_writer().next_seq == engine.visible() + 2 {
            std::thread::yield_now();
        }
        meanwhile(engine, first);
        waiting.join().unwrap()
    })
}

/// A write panicked after it had its place in the order: all later ones waited for it for ever.
#[test]
fn writes_behind_one_that_panicked_are_refused() {
    let db = open();
    db.put("before", "1").unwrap();
    // As it is dropped by a panic.
    let outcome = put_behind(&db, |_, first| drop(first));
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Internal);
    assert_eq!(db.put("later", "1").unwrap_err().kind(), ErrorKind::Internal);
    assert!(db.flush().is_err());
    assert_eq!(db.get("before").unwrap().unwrap(), "1");
    assert!(db.get("key").unwrap().is_none(), "it comes after what is not there");
    assert_eq!(db.close().unwrap_err().kind(), ErrorKind::Internal);
}

/// A sync failed after a write was let in, which then was acknowledged as one that survives.
#[test]
fn a_write_that_a_failed_sync_may_have_lost_is_not_acknowledged() {
    let db = open();
    let poisoned = || Error::Poisoned(Box::new(Error::Closed));
    let outcome = put_behind(&db, |engine, first| {
        engine.health.fail(poisoned());
        first.finish().unwrap();
    });
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Poisoned);
    assert_eq!(db.durability(), Durability::Process);
}

/// A full disk that a compaction had met failed flushes for which there was room; and one that was
/// over by then, whoever had met it.
#[test]
fn flushes_are_not_failed_by_what_others_have_met_or_what_is_over() {
    let db = open();
    let keyspace = db.keyspace("default", KeyspaceOptions::new()).unwrap();
    let health = &keyspace.handle.engine.health;
    let full = std::io::ErrorKind::StorageFull;
    for kind in [JobKind::Compaction, JobKind::Flush] {
        health.set_trouble(kind, Error::io("append to", "db/7.sst".as_ref(), full.into()));
        db.put("key", "value").unwrap();
        db.flush().unwrap();
        db.wait_for_compactions().unwrap();
    }
}

/// A design with threads of its own was set while the database was closed: they began after all
/// others had been told to end, and kept the database in memory for ever.
#[test]
fn no_thread_begins_once_the_database_is_closed() {
    let db = Options::new().storage(Arc::new(MemoryStorage::new(1))).open("db").unwrap();
    let keyspace = db.keyspace("default", KeyspaceOptions::new()).unwrap();
    let engine = Arc::clone(&keyspace.handle.engine);
    db.close().unwrap();
    keyspace.tree.set_design("balanced; memtable=flodb(drain-threads=2)".parse().unwrap());
    let started = engine.start_drain_threads();
    assert!(matches!(started, Err(Error::Closed)), "{started:?}");
    drop(keyspace);
    assert_eq!(Arc::strong_count(&engine), 1);
}

/// Every flush kept anew where each idle keyspace is in the log: with ten thousand of them, half a
/// megabyte.
#[test]
fn a_flush_beside_many_idle_keyspaces_keeps_little_and_they_keep_no_log() {
    let storage = Arc::new(MemoryStorage::new(1));
    let options = Options::new().storage(storage).background(Background::Inline);
    let options = options.log_segment_bytes(64 << 10);
    let db = options.open("db").unwrap();
    let mut last = db.keyspace("default", KeyspaceOptions::new()).unwrap();
    for number in 0..300 {
        last = db.keyspace(&format!("idle {number}"), KeyspaceOptions::new()).unwrap();
    }
    db.flush().unwrap();
    let engine = &last.handle.engine;
    let kept = || engine.lock_manifest().as_ref().unwrap().bytes_written();
    let before = kept();
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    assert!(kept() - before < 1000, "{} bytes", kept() - before);
    for number in 0..100_u32 {
        db.put(number.to_be_bytes(), [7; 10_000]).unwrap();
        db.flush().unwrap();
    }
    let files = engine.lock_writer().log.as_ref().unwrap().files();
    assert!(files.len() <= 7, "{files:?}");
    db.put("b", "2").unwrap();
    drop(last);
    db.close().unwrap();
    let db = options.open("db").unwrap();
    assert_eq!(db.stats().replayed_writes, 0);
}

/// Each range that lies around all before it takes a number in every fragment of them. A memtable
/// was measured again only after thousands of such writes, and took several times its share by then.
#[test]
fn ranges_around_each_other_fill_a_memtable_by_what_they_take() {
    let storage = Arc::new(MemoryStorage::new(1));
    let options = Options::new().storage(storage).background(Background::Inline);
    let design: Design = "balanced; buffer=16MiB".parse().unwrap();
    let db = options.memory_budget(128 << 20).design(design).open("db").unwrap();
    let middle = 1_000_000_u64;
    let mut most = 0;
    for number in 0..3000 {
        db.delete_range((middle - number).to_be_bytes()..(middle + 1 + number).to_be_bytes())
            .unwrap();
        most = most.max(db.stats().memory.memtable_bytes);
    }
    assert!(most < 40 << 20, "{most} bytes");
}
