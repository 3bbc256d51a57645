//! What goes on beside closing, and after failures that leave something half done.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "users have threads of their own")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use terrane::storage::{Crash, Fault, FaultStorage, MemoryStorage, Operation, Survival};
use terrane::{Background, Clock, Durability, ErrorKind, KeyspaceOptions, Options, ReadMode};
use terrane_testkit::{HangGuard, run_guarded};

#[test]
fn a_compaction_of_the_caller_ends_with_the_database() {
    for round in 1..=5u64 {
        let options = Options::new().storage(Arc::new(MemoryStorage::new(round)));
        let db = options.clone().open("db").unwrap();
        for part in 0..3 {
            for i in 0..5_000 {
                db.put(format!("{i:06}"), format!("{part} {}", "x".repeat(100))).unwrap();
            }
            db.flush().unwrap();
        }
        let keyspace = db.keyspace("default", KeyspaceOptions::new()).unwrap();
        let compacting = std::thread::spawn(move || keyspace.compact_range::<&str>(..));
        // Any time will do: the closing meets the compaction before, in or after its merge.
        std::thread::sleep(Duration::from_millis(round));
        db.close().unwrap();
        let db = options.clone().open("db").unwrap();
        let _ = compacting.join().unwrap();
        db.put("one more", "x").unwrap();
        assert_eq!(db.iter().unwrap().map(Result::unwrap).count(), 5_001);
        db.close().unwrap();
        let db = options.open("db").unwrap();
        assert_eq!(db.iter().unwrap().map(Result::unwrap).count(), 5_001);
    }
}

#[test]
fn puts_beside_closing_are_kept_if_they_were_acknowledged() {
    for round in 1..=200 {
        let storage = Arc::new(MemoryStorage::new(round));
        let options = Options::new().storage(storage).background(Background::Inline);
        let options = options.log_segment_bytes(64 << 10u64);
        let db = options.clone().open("db").unwrap();
        let keyspace = db.keyspace("default", KeyspaceOptions::new()).unwrap();
        let counts: Vec<AtomicUsize> = (0..4).map(|_| AtomicUsize::new(0)).collect();
        std::thread::scope(|scope| {
            for (thread, count) in counts.iter().enumerate() {
                let keyspace = keyspace.clone();
                scope.spawn(move || {
                    let mut i = 0;
                    while keyspace.put(format!("{thread} {i:06}"), "x").is_ok() {
                        i += 1;
                        count.store(i, Ordering::SeqCst);
                    }
                });
            }
            let written = || counts.iter().map(|count| count.load(Ordering::SeqCst)).sum::<usize>();
            while written() < round as usize {
                std::thread::yield_now();
            }
            db.close().unwrap();
        });
        let again = options.open("db").unwrap();
        for (thread, count) in counts.iter().enumerate() {
            for i in 0..count.load(Ordering::SeqCst) {
                let key = format!("{thread} {i:06}");
                assert!(again.contains(&key).unwrap(), "round {round}: {key} is lost");
            }
        }
    }
}

#[test]
fn writes_after_a_segment_that_failed_to_begin_are_kept() {
    let power = Crash::Power(Survival { percent: 100, seed: 1 });
    for (durability, crash) in [(Durability::Process, Crash::Process), (Durability::Sync, power)] {
        let memory = MemoryStorage::new(1);
        let storage = FaultStorage::new(Arc::new(memory.clone()));
        let options = Options::new().background(Background::Inline).durability(durability);
        let options = options.log_segment_bytes(64 << 10u64);
        let db = options.clone().storage(Arc::new(storage.clone())).open("db").unwrap();
        db.put("a", [1; 100]).unwrap();
        // The header of the next segment is written, and that it follows is not.
        storage.set(Some(Fault { after: 1, ..fault(Operation::Write, ".log") }));
        assert!(db.put("large", vec![2; 70_000]).is_err());
        storage.set(None);
        for part in ["b", "c"] {
            for number in 0..20 {
                db.put(format!("{part}{number}"), [1; 100]).unwrap();
            }
            if part == "b" {
                db.flush().unwrap();
            }
        }
        let image = memory.crash_point().image(crash);
        let db = options.storage(Arc::new(image)).open("db").unwrap();
        assert_eq!(db.iter().unwrap().map(Result::unwrap).count(), 41);
    }
}

#[test]
fn nothing_follows_an_error_of_a_seek() {
    let storage = FaultStorage::new(Arc::new(MemoryStorage::new(1)));
    let options = Options::new().storage(Arc::new(storage.clone()));
    let options = options.background(Background::Inline).read_mode(ReadMode::Cached);
    let db = options.open("db").unwrap();
    for i in 0..5000 {
        db.put(format!("{i:06}"), [1; 100]).unwrap();
    }
    db.flush().unwrap();
    let mut iter = db.iter().unwrap();
    iter.next().unwrap().unwrap();
    storage.set(Some(fault(Operation::Read, "")));
    assert!(iter.seek("004000").is_err());
    storage.set(None);
    assert!(iter.next().is_none());
}

/// A clock that panics when it is told to.
#[derive(Debug, Default)]
struct Panics(AtomicBool);

impl Clock for Panics {
    fn now_micros(&self) -> u64 {
        assert!(!self.0.load(Ordering::SeqCst), "a clock that panics, as this test wants it");
        7
    }
}

/// The thread that flushes was gone, and who waited for a flush waited for ever.
#[test]
fn a_thread_that_panics_is_told_to_those_that_wait_for_it() {
    let clock = Arc::new(Panics::default());
    let options = Options::new().storage(Arc::new(MemoryStorage::new(1)));
    let db = options.clone().clock(Arc::clone(&clock) as Arc<dyn Clock>).open("db").unwrap();
    db.put("key", "value").unwrap();
    clock.0.store(true, Ordering::SeqCst);
    let flushing = db.clone();
    let flushed = run_guarded(move || flushing.flush());
    assert_eq!(flushed.unwrap_err().kind(), ErrorKind::Internal);
    assert_eq!(db.put("key", "other").unwrap_err().kind(), ErrorKind::Internal);
    assert_eq!(db.get("key").unwrap().unwrap(), "value");
    assert!(db.close().is_err());
    let db = options.open("db").unwrap();
    assert_eq!(db.get("key").unwrap().unwrap(), "value");
}

/// A clock that stops whoever asks it first, once it is armed, until it is let go.
#[derive(Debug, Default)]
struct Stops {
    is_armed: AtomicBool,
    has_stopped: AtomicBool,
    goes_on: AtomicBool,
}

impl Clock for Stops {
    fn now_micros(&self) -> u64 {
        if self.is_armed.swap(false, Ordering::SeqCst) {
            self.has_stopped.store(true, Ordering::SeqCst);
            while !self.goes_on.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
        }
        7
    }
}

/// Closing flushed what a caller was flushing already, and let go of the directory while the caller
/// made and removed files in it.
#[test]
fn closing_waits_for_callers_that_do_the_work_themselves() {
    let clock = Arc::new(Stops::default());
    let storage = Arc::new(MemoryStorage::new(1));
    let options = Options::new().storage(storage).background(Background::Inline);
    let db = options.clone().clock(Arc::clone(&clock) as Arc<dyn Clock>).open("db").unwrap();
    db.put("key", "value").unwrap();
    clock.is_armed.store(true, Ordering::SeqCst);
    std::thread::scope(|scope| {
        let flushing = db.clone();
        scope.spawn(move || flushing.flush());
        while !clock.has_stopped.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        let closing = scope.spawn(move || db.close());
        // Time for the closing to do the wrong thing; the right one is to wait, however long.
        std::thread::sleep(Duration::from_millis(50));
        let is_held = options.clone().open("db").is_err();
        clock.goes_on.store(true, Ordering::SeqCst);
        closing.join().unwrap().unwrap();
        assert!(is_held, "the directory was let go of");
    });
    let db = options.open("db").unwrap();
    assert_eq!(db.get("key").unwrap().unwrap(), "value");
    assert_eq!(db.tree().shape.table_count(), 1);
}

fn fault(operation: Operation, path: &str) -> Fault {
    Fault {
        operation: Some(operation),
        path_contains: path.into(),
        after: 0,
        is_permanent: false,
        error: std::io::ErrorKind::Other,
    }
}

/// The log's thread makes the header of a new segment durable. If it cannot, nothing is promised any
/// more, as after every sync that failed.
#[test]
fn a_header_that_the_logs_thread_cannot_sync_ends_all_writes() {
    let storage = FaultStorage::new(Arc::new(MemoryStorage::new(1)));
    let options = Options::new().storage(Arc::new(storage.clone()));
    let db = options.log_segment_bytes(64 << 10u64).open("db").unwrap();
    storage.set(Some(fault(Operation::Sync, ".log")));
    let guard = HangGuard::new();
    let mut number = 0u32;
    while db.put(number.to_be_bytes(), [1; 1000]).is_ok() {
        number += 1;
        guard.check(|| format!("{number} writes, {} faults", storage.fired()));
    }
    assert_eq!(storage.fired(), 1);
    assert!(matches!(db.sync(), Err(error) if error.kind() == ErrorKind::Poisoned));
    assert!(matches!(db.put("x", "y"), Err(error) if error.kind() == ErrorKind::Poisoned));
    // Reads go on. The write that was told of it first may be there or not.
    let there = db.iter().unwrap().count();
    assert!((number as usize..=number as usize + 1).contains(&there), "{there} of {number}");
}
