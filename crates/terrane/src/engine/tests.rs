//! Tests of states between two steps of the engine, which the public interface does not show.

mod many_keyspaces;
mod small_tables;

use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};

use terrane_policy::{PickContext, pick};
use terrane_testkit::{run_guarded, wait_until};

use crate::base::durability::Durability;
use crate::base::error::Error;
use crate::base::error::tests::expecting_internal;
use crate::base::event::Event;
use crate::base::types::MAX_SEQ;
use crate::engine::Engine;
use crate::engine::context::JobKind;
use crate::engine::pipeline::PendingWrite;
use crate::files::storage::{Fault, FaultStorage, MemoryStorage, Operation};
use crate::files::wal::Ending;
use crate::{Background, Db, Design, ErrorKind, KeyspaceOptions, Options, Result, WriteOptions};

fn open() -> Db {
    let storage = Arc::new(MemoryStorage::new(1));
    Options::new().storage(storage).background(Background::Inline).open("db").unwrap()
}

/// A compaction was picked, its keyspace was dropped, and the compaction then found none of its
/// tables. This was treated as an internal error, which stopped all writes to the database.
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
    let (id, compaction) = {
        let state = tree.state();
        let mut jobs = tree.jobs();
        let design: Design = "leveling T=2 L0=1".parse().unwrap();
        let shape = state.version.shape();
        let input = PickContext::new(shape, &design);
        let compaction = pick(&input).unwrap();
        engine.jobs.compactor.begin(tree, &mut jobs, compaction)
    };
    db.drop_keyspace("dropped").unwrap();
    let outcome = engine.jobs.compactor.run_in_caller(tree, (id, compaction), None);
    assert!(matches!(outcome, Err(Error::Closed)), "{outcome:?}");
    assert!(tree.jobs().compactions.is_empty());
}

/// On a full disk a segment that was too old could not end before a delete had made segments short.
#[test]
fn a_segment_ends_in_the_space_of_the_released_reserve() {
    let storage = MemoryStorage::new(1);
    let options = Options::new().storage(Arc::new(storage.clone()));
    let db = options.background(Background::Inline).open("db").unwrap();
    db.put("key", "1").unwrap();
    let keyspace = db.keyspace("default", KeyspaceOptions::new()).unwrap();
    let engine = &keyspace.handle.engine;
    let full = Error::io("append to", Path::new("7.sst"), std::io::ErrorKind::StorageFull.into());
    assert!(engine.context.release_reserve(&full));
    storage.set_capacity(Some(storage.used_bytes() + (20 << 10)));
    assert!(engine.pipeline.end_segment_if(Ending::Aged, |_| true));
    db.delete("key").unwrap();
}

/// While a compaction claims the tables that a flush would merge, the flush creates a new run at
/// once. Conversely, no compaction takes the tables that a flush claims.
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
    let (engine, tree) = (&keyspace.handle.engine, &keyspace.tree);
    let (id, compaction) = {
        let state = tree.state();
        let mut jobs = tree.jobs();
        let design: Design = "leveling T=2 L0=1".parse().unwrap();
        let compaction = pick(&PickContext::new(state.version.shape(), &design)).unwrap();
        engine.jobs.compactor.begin(tree, &mut jobs, compaction)
    };
    assert_eq!((flush("3"), flush("4")), (2, 2), "a new run, and a flush that merges with it");
    engine.jobs.compactor.run_in_caller(tree, (id, compaction), None).unwrap();
    assert_eq!(flush("5"), 1);
    assert_eq!(keyspace.get("key").unwrap().unwrap(), "5");
    let stats = db.stats();
    assert_eq!((stats.flushes, stats.flushes_merged, stats.flushes_apart), (5, 3, 1));
    assert!(tree.jobs().flushing.is_none());
}

/// The edit that drops a keyspace failed, and a second keyspace with the same name was created.
/// After reopening, both existed.
#[test]
fn a_keyspace_whose_drop_failed_still_exists() {
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
        error: std::io::ErrorKind::Other,
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

/// Returns the result of a put that enters behind a pending write; `meanwhile` runs once it has.
#[allow(clippy::disallowed_methods, reason = "a writer is a thread of the caller")]
fn put_behind(db: &Db, meanwhile: impl FnOnce(&Engine, PendingWrite<'_>)) -> Result<()> {
    let keyspace = db.keyspace("default", KeyspaceOptions::new()).unwrap();
    let engine = &keyspace.handle.engine;
    let first = {
        let mut writer = engine.pipeline.lock();
        engine.pipeline.enter(&mut writer, 1, None)
    };
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| db.put("key", "value"));
        // The lock is taken without closing the window, because closing a window that has a write
        // behind the first one would block.
        let next_seq = || engine.pipeline.lock_keeping_window().next_seq;
        while next_seq() == engine.pipeline.visible() + 2 {
            std::thread::yield_now();
        }
        meanwhile(engine, first);
        waiting.join().unwrap()
    })
}

/// A write panicked after it had entered the commit queue, and all later writes waited for it forever.
#[test]
fn writes_behind_one_that_panicked_are_refused() {
    let db = open();
    db.put("before", "1").unwrap();
    // A panic drops the pending write in the same way.
    let outcome = put_behind(&db, |_, first| drop(first));
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Internal);
    assert_eq!(db.put("later", "1").unwrap_err().kind(), ErrorKind::Internal);
    assert!(db.flush().is_err());
    assert_eq!(db.get("before").unwrap().unwrap(), "1");
    assert!(db.get("key").unwrap().is_none(), "its predecessor is missing");
    assert_eq!(db.close().unwrap_err().kind(), ErrorKind::Internal);
}

/// Two writers noted the times of their entries in a new memtable, and the later time was kept.
#[test]
fn the_first_time_that_is_recorded_for_a_memtable_is_kept() {
    let db = open();
    let keyspace = db.keyspace("default", KeyspaceOptions::new()).unwrap();
    let state = keyspace.tree.state();
    let is_first = state.active.note_entry(|| {
        assert!(state.active.note_entry(|| 5));
        9
    });
    assert_eq!((is_first, state.active.since_micros()), (false, Some(5)));
}

/// All writers that found a window full closed the window that the first of them had opened.
#[test]
fn only_a_window_that_is_full_is_closed() {
    let db = open();
    let keyspace = db.keyspace("default", KeyspaceOptions::new()).unwrap();
    let pipeline = &keyspace.handle.engine.pipeline;
    db.put("key", "value").unwrap();
    let full = Arc::clone(pipeline.window().as_ref().unwrap());
    drop(pipeline.lock());
    db.put("key", "value").unwrap();
    assert!(pipeline.lock_unless_replaced(&full).is_none());
    let open = Arc::clone(pipeline.window().as_ref().unwrap());
    assert!(pipeline.lock_unless_replaced(&open).is_some());
    assert!(pipeline.window().is_none());
}

/// Every write to a log without record writers opened a window, which the next write had to close.
#[test]
fn windows_without_a_place_in_the_log_are_opened_for_unlogged_writes_only() {
    for has_record_writers in [true, false] {
        let storage = FaultStorage::new(Arc::new(MemoryStorage::new(1)));
        if !has_record_writers {
            storage.hide_record_writers();
        }
        let options = Options::new().storage(Arc::new(storage));
        let db = options.background(Background::Inline).open("db").unwrap();
        let keyspace = db.keyspace("default", KeyspaceOptions::new()).unwrap();
        let pipeline = &keyspace.handle.engine.pipeline;
        for durability in [Durability::Process, Durability::None, Durability::Process] {
            db.put_with("key", "value", WriteOptions::new().durability(durability)).unwrap();
            let is_unlogged = durability == Durability::None;
            assert_eq!(pipeline.window().is_some(), has_record_writers || is_unlogged);
        }
    }
}

/// A write panicked after it had reserved its place in a window. The listener was called first, so
/// a listener that used the database waited forever for this write.
#[test]
fn a_listener_uses_the_database_after_a_write_panicked() {
    let handle = Arc::new(Mutex::new(None::<Db>));
    let (sender, outcomes) = mpsc::channel();
    let of_listener = Arc::clone(&handle);
    let options = Options::new().storage(Arc::new(MemoryStorage::new(1)));
    let options = options.background(Background::Inline).on_event(move |event| {
        if let (Event::Failed { .. }, Some(db)) = (&event.event, of_listener.lock().unwrap().take())
        {
            sender.send(db.keyspace("new", KeyspaceOptions::new()).map(drop)).unwrap();
        }
    });
    let db = options.open("db").unwrap();
    *handle.lock().unwrap() = Some(db.clone());
    run_guarded(move || {
        db.put("key", "value").unwrap();
        let keyspace = db.keyspace("default", KeyspaceOptions::new()).unwrap();
        let pipeline = &keyspace.handle.engine.pipeline;
        db.put("key", "value").unwrap();
        let window = pipeline.window();
        let (pending, _) = pipeline.reserve(window.as_ref().unwrap(), 1, None).unwrap();
        drop(pending);
        db.close().unwrap_err();
    });
    assert_eq!(outcomes.recv().unwrap().unwrap_err().kind(), ErrorKind::Internal);
}

/// A sync failed after a write had entered the commit queue, and the write was acknowledged as
/// durable.
#[test]
fn a_write_that_a_failed_sync_may_have_lost_is_not_acknowledged() {
    let db = open();
    let poisoned = || Error::Poisoned(Box::new(Error::Closed));
    let outcome = put_behind(&db, |engine, first| {
        engine.context.health.fail(poisoned());
        first.finish().unwrap();
    });
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Poisoned);
    assert_eq!(db.durability(), Durability::Process);
}

/// A flush failed although it had enough space, because a compaction had found the disk full, or
/// because the disk had been full earlier.
#[test]
fn flushes_do_not_fail_by_the_failures_of_others_or_past_ones() {
    let db = open();
    let keyspace = db.keyspace("default", KeyspaceOptions::new()).unwrap();
    let health = &keyspace.handle.engine.context.health;
    let full = std::io::ErrorKind::StorageFull;
    for kind in [JobKind::Compaction, JobKind::Flush] {
        health.set_failure(kind, Error::io("append to", "db/7.sst".as_ref(), full.into()));
        db.put("key", "value").unwrap();
        db.flush().unwrap();
        db.wait_for_compactions().unwrap();
    }
}

/// A design with drain threads was set while the database was being closed. They started after all
/// other threads had been stopped, and kept the database in memory.
#[test]
fn no_thread_begins_once_the_database_is_closed() {
    let db = Options::new().storage(Arc::new(MemoryStorage::new(1))).open("db").unwrap();
    let keyspace = db.keyspace("default", KeyspaceOptions::new()).unwrap();
    let engine = Arc::clone(&keyspace.handle.engine);
    db.close().unwrap();
    keyspace.tree.set_design("balanced; memtable=flodb(drain-threads=2)".parse().unwrap());
    let started = engine.jobs.start_drain_threads_for(&keyspace.tree);
    assert!(matches!(started, Err(Error::Closed)), "{started:?}");
    drop(keyspace);
    assert_eq!((Arc::strong_count(&engine), Arc::strong_count(&engine.jobs)), (1, 2));
}

/// Every flush recorded the log position of each idle keyspace again: half a megabyte for ten thousand
/// keyspaces.
#[test]
fn a_flush_among_many_idle_keyspaces_records_little_and_they_keep_no_log() {
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
    let kept = || engine.catalog.lock_manifest().as_ref().unwrap().bytes_written();
    let before = kept();
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    assert!(kept() - before < 1000, "{} bytes", kept() - before);
    for number in 0..100_u32 {
        db.put(number.to_be_bytes(), [7; 10_000]).unwrap();
        db.flush().unwrap();
    }
    let files = engine.pipeline.lock().log.as_ref().unwrap().files();
    assert!(files.len() <= 7, "{files:?}");
    db.put("b", "2").unwrap();
    drop(last);
    db.close().unwrap();
    let db = options.open("db").unwrap();
    assert_eq!(db.stats().replayed_writes, 0);
}

/// A range that encloses all earlier ranges adds a sequence number to each of their fragments. A
/// memtable was measured again only after thousands of such writes, and exceeded its share several
/// times over.
#[test]
fn nested_ranges_count_with_the_memory_they_take() {
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

/// Sequence numbers that wrapped would make old versions visible again.
#[test]
fn writes_after_the_last_sequence_number_are_refused() {
    let db = open();
    db.put("key", "1").unwrap();
    let keyspace = db.keyspace("default", KeyspaceOptions::new()).unwrap();
    let set_next = |seq| keyspace.handle.engine.pipeline.lock().next_seq = seq;
    let next = keyspace.handle.engine.pipeline.lock().next_seq;
    set_next(MAX_SEQ);
    let mut batch = crate::WriteBatch::new();
    batch.put("key", "2").put("other", "2");
    for _ in 0..2 {
        let written = expecting_internal(|| db.write(&batch));
        assert_eq!(written.unwrap_err().kind(), ErrorKind::Internal);
        assert_eq!(db.get("key").unwrap().unwrap(), "1");
    }
    set_next(next);
    db.put("key", "3").unwrap();
}

/// The iterator began before its memtable was replaced. Its keyspace is not written to any more.
#[test]
fn an_iterator_of_an_idle_keyspace_counts_as_a_reader_until_it_ends() {
    let options = Options::new().storage(Arc::new(MemoryStorage::new(1)));
    let db = options.background(Background::Threads).open("db").unwrap();
    let idle = db.keyspace("idle", KeyspaceOptions::new()).unwrap();
    idle.put("key", "value").unwrap();
    let iterator = idle.iter().unwrap();
    idle.flush().unwrap();
    db.put("key", "value").unwrap();
    let catalog = &idle.handle.engine.catalog;
    let are_read = || catalog.tree_memtables().are_read;
    wait_until(are_read, || "the iterator does not count".to_owned());
    drop(iterator);
    wait_until(|| !are_read(), || "the iterator counts still".to_owned());
}

/// A write would otherwise wait until a merge has used up its time slice.
#[test]
#[cfg(all(target_os = "linux", not(miri)))]
#[allow(clippy::disallowed_methods, reason = "the turns of the thread end with it")]
fn background_threads_take_short_turns_if_the_system_has_them() {
    use crate::base::turns;
    let is_supported = std::thread::spawn(|| {
        turns::take_short_turns();
        turns::are_short()
    });
    if !is_supported.join().unwrap() {
        return;
    }
    let storage = Arc::new(MemoryStorage::new(1));
    let _db = Options::new().storage(storage).open("db").unwrap();
    let names = [("terrane-flush", i32::MIN), ("terrane-log", i32::MIN), ("terrane-compact", 4)];
    for (prefix, nice_min) in names {
        let is_started = || {
            let threads = turns::threads_with_short_turns();
            threads.iter().any(|(name, nice)| name.starts_with(prefix) && *nice >= nice_min)
        };
        wait_until(is_started, || format!("{prefix}: {:?}", turns::threads_with_short_turns()));
    }
}
