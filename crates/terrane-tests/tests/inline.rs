//! Background work on the threads of several callers, and listeners that use the database that is
//! calling them.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "users have threads of their own")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use terrane::storage::MemoryStorage;
use terrane::{
    Background, Clock, Db, Durability, ErrorKind, Event, IoBudget, Options, WriteOptions, WritePath,
};
use terrane_testkit::{Rng, run_guarded, seed_from_env, wait_until};

const THREADS: u64 = 4;

/// Designs that stop writers after a few kilobytes, each for a different reason.
const DESIGNS: &[&str] = &[
    "leveling; buffer=2KiB; table=2KiB; buffers=1",
    "balanced L0=1 base=8KiB; buffer=1KiB; table=1KiB; delay=1; stop=2; buffers=1",
    "balanced L0=2 base=8KiB; buffer=2KiB; table=2KiB; flush=merge; delay=2; stop=3; buffers=1",
    "tiering T=3; buffer=1KiB; table=4KiB; limit=global(2x); violation=stop; buffers=2",
    "leveling; buffer=2KiB; table=1KiB; stall=full; scheduler=gear; buffers=1",
    "leveling; buffer=2KiB; table=1KiB; stall=full; scheduler=single; buffers=2; memtable=flodb",
    "lazy-leveling T=2 L0=1; buffer=1KiB; table=1KiB; scheduler=greedy(2); buffers=1; delay=1; stop=2",
];

fn puts() -> u64 {
    let rounds = std::env::var("TERRANE_ROUNDS").ok().and_then(|text| text.parse().ok());
    rounds.unwrap_or(1u64) * 1500
}

/// Each thread writes keys of its own and reads them back.
fn write(db: &Db, thread: u64, seed: u64) {
    let mut rng = Rng::new(seed * 10 + thread);
    for number in 0..puts() {
        let key = [thread, rng.below(400)].map(u64::to_be_bytes).concat();
        let value = [&number.to_be_bytes()[..], &vec![1; rng.index(60)]].concat();
        let story = || format!("put {number} of thread {thread}, {}", db.design());
        db.put(&key, &value).unwrap_or_else(|error| panic!("{error} in {}", story()));
        match rng.below(400) {
            0 => db.flush().unwrap(),
            1 => db.compact_range(..).unwrap(),
            2 => db.wait_for_compactions().unwrap(),
            3 => drop(db.run_background_job().unwrap()),
            _ => {}
        }
        if rng.percent(10) {
            assert_eq!(db.get(&key).unwrap().unwrap(), value, "{}", story());
        }
    }
}

/// A stalled writer may find no job, because another thread is running it, and then no running
/// thread, because that thread has finished. Its write used to fail with an internal error.
#[test]
fn writers_that_stall_at_the_same_time_wait_for_each_other() {
    let seed = seed_from_env(1);
    for (design, number) in DESIGNS.iter().zip(0u64..) {
        for write_path in [WritePath::Concurrent, WritePath::Queue] {
            let mut options = Options::new()
                .storage(Arc::new(MemoryStorage::new(seed)))
                .background(Background::Inline)
                .write_path(write_path)
                .compaction_threads(1 + number as usize % 2)
                .design(design.parse().unwrap_or_else(|error| panic!("{design}: {error}")));
            if number.is_multiple_of(3) {
                options = options.io_budget(IoBudget::Total(400 << 20));
            }
            let options = options.log_segment_bytes(64 << 10u64);
            run_guarded(move || {
                let db = options.open("db").unwrap();
                std::thread::scope(|scope| {
                    for thread in 0..THREADS {
                        let db = &db;
                        scope.spawn(move || write(db, thread, seed + number));
                    }
                });
                let count = db.iter().unwrap().count();
                db.close().unwrap();
                let db = options.open("db").unwrap();
                assert_eq!(db.iter().unwrap().count(), count);
            });
        }
    }
}

/// A clock that panics once it is armed, and only then.
#[derive(Debug, Default)]
struct PanickingClock(AtomicBool);

impl Clock for PanickingClock {
    fn now_micros(&self) -> u64 {
        assert!(!self.0.swap(false, Ordering::SeqCst), "a clock that panics on purpose");
        7
    }
}

/// When a job panicked on the thread of a caller, other callers used to wait for it forever.
#[test]
fn a_job_that_panics_in_a_caller_fails_the_other_callers() {
    let clock = Arc::new(PanickingClock::default());
    let options = Options::new()
        .storage(Arc::new(MemoryStorage::new(1)))
        .background(Background::Inline)
        .clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let db = options.open("db").unwrap();
    db.put("key", "value").unwrap();
    clock.0.store(true, Ordering::SeqCst);
    let flushing = db.clone();
    std::thread::spawn(move || flushing.flush()).join().unwrap_err();
    let flushing = db.clone();
    let flushed = run_guarded(move || flushing.flush());
    assert_eq!(flushed.unwrap_err().kind(), ErrorKind::Internal);
    assert_eq!(db.get("key").unwrap().unwrap(), "value");
}

/// Both calls used to flush the same memtables.
#[test]
fn a_second_close_waits_for_the_first() {
    for round in 0..50u32 {
        let storage = Arc::new(MemoryStorage::new(round.into()));
        let background = if round % 2 == 0 { Background::Inline } else { Background::Threads };
        let options = Options::new().storage(storage).background(background);
        let db = options.open("db").unwrap();
        let none = WriteOptions::new().durability(Durability::None);
        for number in 0..200 {
            db.put_with((round * 1000 + number).to_be_bytes(), [1; 100], none).unwrap();
        }
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let (db, options) = (db.clone(), &options);
                scope.spawn(move || {
                    db.close().unwrap();
                    let left = options.open_read_only("db").unwrap();
                    assert_eq!(left.iter().unwrap().count(), 200);
                    assert_eq!(left.tree().shape.table_count(), 1);
                });
            }
        });
    }
}

/// Opens a database whose listener gets a handle of it.
fn open_with_listener(
    options: Options,
    listener: impl Fn(&Db, &Event) + Send + Sync + 'static,
) -> (Db, Arc<Mutex<Option<Db>>>) {
    let handle: Arc<Mutex<Option<Db>>> = Arc::default();
    let own = Arc::clone(&handle);
    let options = options.on_event(move |event| {
        let db = own.lock().unwrap().clone();
        if let Some(db) = db {
            listener(&db, &event.event);
        }
    });
    let db = options.open("db").unwrap();
    *handle.lock().unwrap() = Some(db.clone());
    (db, handle)
}

/// The listener used to wait for a stalled writer that waited for the flush that called the listener.
#[test]
fn a_listener_writes_while_writers_are_stopped() {
    for write_path in [WritePath::Concurrent, WritePath::Queue] {
        for background in [Background::Inline, Background::Threads] {
            let options = Options::new()
                .storage(Arc::new(MemoryStorage::new(1)))
                .background(background)
                .write_path(write_path)
                .design(DESIGNS[1].parse().unwrap());
            let written = Arc::new(AtomicU64::new(0));
            let count = Arc::clone(&written);
            let (db, handle) = open_with_listener(options, move |db, _| {
                // Large writes would cause flushes, and thus ever more events.
                let number = count.fetch_add(1, Ordering::SeqCst);
                db.put(number.to_be_bytes(), [2; 10]).unwrap();
                assert_eq!(db.get(number.to_be_bytes()).unwrap().unwrap(), [2; 10]);
            });
            let all = run_guarded(move || {
                std::thread::scope(|scope| {
                    for thread in 0..THREADS {
                        let db = &db;
                        scope.spawn(move || {
                            for number in 0..200 {
                                let key = [100 + thread, number].map(u64::to_be_bytes).concat();
                                db.put(key, [1; 100]).unwrap();
                            }
                        });
                    }
                });
                drop(handle.lock().unwrap().take());
                db.wait_for_compactions().unwrap();
                db.iter().unwrap().count()
            });
            assert!(written.load(Ordering::SeqCst) > 10);
            assert_eq!(all as u64, written.load(Ordering::SeqCst) + 200 * THREADS);
        }
    }
}

#[test]
fn a_listener_that_waits_for_background_work_gets_an_error() {
    for background in [Background::Inline, Background::Threads] {
        let options = Options::new().storage(Arc::new(MemoryStorage::new(1)));
        let options = options.background(background).design(DESIGNS[0].parse().unwrap());
        let refused = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&refused);
        let (db, handle) = open_with_listener(options, move |db, _| {
            let calls = [
                db.flush(),
                db.compact_range(..),
                db.wait_for_compactions(),
                db.run_background_job().map(drop),
                db.checkpoint("copy"),
                db.clone().close(),
            ];
            for call in calls {
                assert_eq!(call.unwrap_err().kind(), ErrorKind::Invalid);
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        run_guarded(move || {
            db.put("key", "value").unwrap();
            db.flush().unwrap();
            drop(handle.lock().unwrap().take());
            db.close().unwrap();
        });
        let refused = refused.load(Ordering::SeqCst);
        assert!(refused >= 12 && refused.is_multiple_of(6), "{refused}");
    }
}

/// The flush thread used to wait for itself to end.
#[test]
fn a_listener_drops_the_last_handle() {
    let options = Options::new().storage(Arc::new(MemoryStorage::new(1)));
    let design = "leveling; buffer=4KiB; table=4KiB".parse().unwrap();
    options.clone().design(design).open("db").unwrap().close().unwrap();
    for round in 0..20u64 {
        let handle: Arc<Mutex<Option<Db>>> = Arc::default();
        let flags: Arc<[AtomicBool; 3]> = Arc::default();
        let (own, told) = (Arc::clone(&handle), Arc::clone(&flags));
        let listening = options.clone().on_event(move |event| {
            let [has_begun, is_last, is_dropped] = &*told;
            if let Event::FlushBegun { .. } = event.event
                && let Some(db) = own.lock().unwrap().take()
            {
                has_begun.store(true, Ordering::SeqCst);
                while !is_last.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
                drop(db);
                is_dropped.store(true, Ordering::SeqCst);
            }
        });
        let db = listening.open("db").unwrap();
        *handle.lock().unwrap() = Some(db.clone());
        for number in 0..60 {
            db.put([round, number].map(u64::to_be_bytes).concat(), [1; 100]).unwrap();
        }
        let [has_begun, is_last, is_dropped] = &*flags;
        wait_until(|| has_begun.load(Ordering::SeqCst), || "no flush begins".into());
        drop(db);
        is_last.store(true, Ordering::SeqCst);
        wait_until(|| is_dropped.load(Ordering::SeqCst), || "the drop hangs".into());
        let db = options.open("db").unwrap();
        assert_eq!(db.iter().unwrap().count() as u64, 60 * (round + 1));
        db.close().unwrap();
    }
}
