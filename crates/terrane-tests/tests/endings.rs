//! Tests races with closing, and failures that leave an operation half done.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "users have threads of their own")]

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use terrane::storage::{Crash, Fault, FaultStorage, MemoryStorage, Operation, Survival};
use terrane::{
    Background, Clock, Db, Durability, ErrorKind, Event, KeyspaceOptions, Options, ReadMode,
    WriteOptions,
};
use terrane_testkit::{HangGuard, run_guarded};

#[test]
fn a_manual_compaction_ends_when_the_database_closes() {
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
        let compacting = std::thread::spawn(move || keyspace.compact_range(..));
        // Any delay will do: the close meets the compaction before, during or after its merge.
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
fn acknowledged_puts_survive_a_concurrent_close() {
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
fn writes_after_a_failed_segment_are_kept() {
    let power = Crash::Power(Survival { percent: 100, seed: 1 });
    for (durability, crash) in [(Durability::Process, Crash::Process), (Durability::Sync, power)] {
        let memory = MemoryStorage::new(1);
        let storage = FaultStorage::new(Arc::new(memory.clone()));
        let options = Options::new().background(Background::Inline).durability(durability);
        let options = options.log_segment_bytes(64 << 10u64);
        let db = options.clone().storage(Arc::new(storage.clone())).open("db").unwrap();
        db.put("a", [1; 100]).unwrap();
        // The header of the next segment is written, but not the record that links to it.
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
fn a_failed_seek_ends_the_iterator() {
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
    // A block whose read-ahead failed is read again.
    storage.set(Some(Fault { is_permanent: true, ..fault(Operation::Read, "") }));
    assert!(iter.seek("004000").is_err());
    storage.set(None);
    assert!(iter.next().is_none());
}

/// A clock that panics once it is armed.
#[derive(Debug, Default)]
struct PanickingClock(AtomicBool);

impl Clock for PanickingClock {
    fn now_micros(&self) -> u64 {
        assert!(!self.0.load(Ordering::SeqCst), "a clock that panics on purpose");
        7
    }
}

/// The flush thread used to die, and callers that waited for a flush hung.
#[test]
fn a_panic_of_the_flush_thread_fails_its_waiters() {
    let clock = Arc::new(PanickingClock::default());
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

/// Writes when its thread ends.
struct WritesAtExit {
    db: Db,
    outcome: mpsc::Sender<bool>,
}

impl Drop for WritesAtExit {
    fn drop(&mut self) {
        let put = || self.db.put("last", "1").is_ok();
        let outcome = catch_unwind(AssertUnwindSafe(put)).unwrap_or(false);
        self.outcome.send(outcome).unwrap();
    }
}

thread_local! {
    static AT_EXIT: RefCell<Option<WritesAtExit>> = const { RefCell::new(None) };
}

/// The thread's record buffer was already destroyed, so the write panicked after it had reserved
/// its place in the log, and all later writes failed.
#[test]
fn the_destructor_of_a_thread_local_variable_writes() {
    let options = Options::new().storage(Arc::new(MemoryStorage::new(1)));
    let db = options.background(Background::Inline).open("db").unwrap();
    let (outcome, outcomes) = mpsc::channel();
    let of_thread = WritesAtExit { db: db.clone(), outcome };
    let thread = std::thread::spawn(move || {
        // Destructors run in the reverse order of the first use.
        AT_EXIT.set(Some(of_thread));
        AT_EXIT.with_borrow(|at_exit| {
            let db = &at_exit.as_ref().unwrap().db;
            (0..3).for_each(|_| db.put("first", "1").unwrap());
        });
    });
    thread.join().unwrap();
    assert!(outcomes.recv().unwrap());
    db.put("later", "1").unwrap();
    assert_eq!(db.iter().unwrap().count(), 3);
}

/// A clock that panics when it is asked for the nth time.
#[derive(Debug)]
struct LimitedClock(AtomicUsize);

impl Clock for LimitedClock {
    fn now_micros(&self) -> u64 {
        assert!(self.0.fetch_sub(1, Ordering::SeqCst) != 1, "a clock that panics on purpose");
        7
    }
}

/// A write that panicked under a lock used to report its failure while it still held the lock, and a
/// listener that used the database waited for the lock forever.
#[test]
fn a_listener_uses_the_database_after_a_clock_panicked_in_a_write() {
    let mut failures = 0;
    for number in 1..8 {
        let clock = Arc::new(LimitedClock(AtomicUsize::new(0)));
        let handle = Arc::new(Mutex::new(None::<Db>));
        let (used, of_listener) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&handle));
        let uses = Arc::clone(&used);
        let options = Options::new().storage(Arc::new(MemoryStorage::new(1)));
        let options = options.background(Background::Inline).clock(Arc::clone(&clock) as _);
        let options = options.delete_persistence(Duration::from_secs(100)).on_event(move |event| {
            let is_failure = matches!(event.event, Event::Failed { .. });
            if is_failure && let Some(db) = of_listener.lock().unwrap().take() {
                assert!(db.keyspace("new", KeyspaceOptions::new()).is_err());
                uses.fetch_add(1, Ordering::SeqCst);
            }
        });
        let db = options.open("db").unwrap();
        *handle.lock().unwrap() = Some(db.clone());
        let is_failed = run_guarded(move || {
            clock.0.store(number, Ordering::SeqCst);
            let unlogged = WriteOptions::new().durability(Durability::None);
            let put = catch_unwind(AssertUnwindSafe(|| db.put_with("key", "value", unlogged)));
            clock.0.store(usize::MAX, Ordering::SeqCst);
            let is_failed = db.put("other", "value").is_err();
            assert!(!is_failed || put.is_err());
            assert_eq!(db.close().is_err(), is_failed);
            is_failed
        });
        assert_eq!(used.load(Ordering::SeqCst), usize::from(is_failed));
        failures += usize::from(is_failed);
    }
    assert!(failures > 0);
}

/// Once armed, this clock blocks its next caller until it is released.
#[derive(Debug, Default)]
struct BlockingClock {
    is_armed: AtomicBool,
    has_blocked: AtomicBool,
    is_released: AtomicBool,
}

impl Clock for BlockingClock {
    fn now_micros(&self) -> u64 {
        if self.is_armed.swap(false, Ordering::SeqCst) {
            self.has_blocked.store(true, Ordering::SeqCst);
            while !self.is_released.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
        }
        7
    }
}

/// Closing used to flush a memtable that a caller was already flushing, and released the directory
/// while the caller still created and removed files in it.
#[test]
fn closing_waits_for_inline_background_work() {
    let clock = Arc::new(BlockingClock::default());
    let storage = Arc::new(MemoryStorage::new(1));
    let options = Options::new().storage(storage).background(Background::Inline);
    let db = options.clone().clock(Arc::clone(&clock) as Arc<dyn Clock>).open("db").unwrap();
    db.put("key", "value").unwrap();
    clock.is_armed.store(true, Ordering::SeqCst);
    std::thread::scope(|scope| {
        let flushing = db.clone();
        scope.spawn(move || flushing.flush());
        while !clock.has_blocked.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        let closing = scope.spawn(move || db.close());
        // This gives an incorrect close time to finish. A correct close waits, however long the
        // flush takes.
        std::thread::sleep(Duration::from_millis(50));
        let is_held = options.clone().open("db").is_err();
        clock.is_released.store(true, Ordering::SeqCst);
        closing.join().unwrap().unwrap();
        assert!(is_held, "the directory was released");
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

/// The log thread syncs the header of a new segment. If that fails, the database refuses writes, as
/// after every failed sync.
#[test]
fn a_failed_header_sync_of_the_log_thread_refuses_writes() {
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
    // Reads still work. The first write that failed may or may not be visible.
    let there = db.iter().unwrap().count();
    assert!((number as usize..=number as usize + 1).contains(&there), "{there} of {number}");
}
