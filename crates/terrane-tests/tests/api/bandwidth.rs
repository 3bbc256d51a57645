//! Tests the limits that write rates and I/O budgets set, and the events of stalled writers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use terrane::storage::{Fault, FaultStorage, MemoryStorage, Operation};
use terrane::{Db, DeferredDelays, Design, ErrorKind, Event, IoBudget, Options, StallEffect};
use terrane_policy::StallCause;
use terrane_testkit::{run_guarded, wait_until};

use crate::support::DIR;

fn design(text: &str) -> Design {
    format!("{text}; buffer=64KiB; table=64KiB").parse().unwrap()
}

fn options(text: &str) -> Options {
    Options::new().storage(Arc::new(MemoryStorage::new(1))).design(design(text))
}

fn fill(db: &Db, entries: u32, round: u32) {
    for number in 0..entries {
        let key = number.wrapping_mul(2_654_435_761);
        db.put(key.to_be_bytes(), [u8::try_from(round).unwrap(); 400]).unwrap();
    }
}

#[test]
fn an_io_budget_bounds_background_writes_and_can_be_lifted() {
    const BUDGET: u64 = 4 << 20;
    let text = "leveling-full L0=2 T=3; scheduler=greedy; stop=100; delay=90; buffers=50";
    let db = options(text).io_budget(IoBudget::Total(BUDGET)).open(DIR).unwrap();
    assert_eq!(db.io_budget(), IoBudget::Total(BUDGET));
    let start = Instant::now();
    fill(&db, 4000, 1);
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    let took = start.elapsed().as_secs_f64();
    let stats = db.stats();
    let written = (stats.flush_bytes_written + stats.compaction_bytes_written) as f64;
    assert!(stats.compactions > 0 && written > 2e6, "{stats}");
    // A lower bound, which load on the machine cannot break: the budget may have saved up 50 ms,
    // and a flush and a merge may each still owe a chunk.
    let least = written / BUDGET as f64 - 0.05 - 2.0 * 65536.0 / BUDGET as f64;
    assert!(took >= least, "{written} bytes took {took} s, at least {least} s are due");
    db.set_io_budget(IoBudget::Unlimited).unwrap();
    let refused = db.set_io_budget(IoBudget::Total(1)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    let before = db.stats();
    fill(&db, 4000, 2);
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    assert!(db.stats().compaction_bytes_written > before.compaction_bytes_written);
}

#[test]
fn an_ingest_stays_within_the_io_budget() {
    const BUDGET: u64 = 4 << 20;
    let db = options("leveling").io_budget(IoBudget::Total(BUDGET)).open(DIR).unwrap();
    let start = Instant::now();
    db.ingest((0..4000_u32).map(|number| (number.to_be_bytes(), [7; 400]))).unwrap();
    let took = start.elapsed().as_secs_f64();
    let written = db.stats().ingest_bytes_written as f64;
    // The budget may have saved up 50 ms, and the next job pays for the last chunk.
    let least = written / BUDGET as f64 - 0.05 - 65536.0 / BUDGET as f64;
    assert!(written > 1.5e6 && took >= least, "{written} bytes took {took} s, not {least} s");
}

#[test]
fn closing_ends_an_ingest_that_waits_for_a_budget() {
    let db = options("leveling").io_budget(IoBudget::Total(64 << 10)).open(DIR).unwrap();
    let mut ingest = db.default_keyspace().begin_ingest().unwrap();
    run_guarded(move || {
        std::thread::scope(|scope| {
            // Within the budget these 40 MB take ten minutes, which is longer than the guard waits.
            let putting = scope.spawn(move || {
                (0..100_000_u32).find_map(|number| ingest.put(number.to_be_bytes(), [7; 400]).err())
            });
            db.close().unwrap();
            assert_eq!(putting.join().unwrap().unwrap().kind(), ErrorKind::Closed);
        });
    });
}

#[test]
fn closing_does_not_wait_for_a_budget() {
    let text = "leveling-full L0=1 T=2; stop=100; delay=90; buffers=900";
    let db = options(text).io_budget(IoBudget::Total(64 << 10)).open(DIR).unwrap();
    // Within the budget these 40 MB take ten minutes, which is longer than the guard waits.
    fill(&db, 100_000, 1);
    run_guarded(move || db.close().unwrap());
}

#[test]
fn writes_stay_within_the_maximum_rate_of_a_design() {
    let db = options("leveling; max-rate=5000").open(DIR).unwrap();
    let start = Instant::now();
    fill(&db, 500, 1);
    let took = start.elapsed();
    // This is a lower bound: load on the machine only adds to the time.
    assert!(took >= Duration::from_millis(95), "500 writes at 5000 a second took {took:?}");
    assert!(db.stats().stalls.delay_micros > 0);
    db.set_design(design("leveling")).unwrap();
    fill(&db, 500, 2);
}

#[test]
fn a_thread_that_defers_its_delays_does_not_sleep() {
    let db = options("leveling; max-rate=100").open(DIR).unwrap();
    let start = Instant::now();
    let mut delays = DeferredDelays::new();
    delays.collect(&db, || fill(&db, 100, 1));
    let took = start.elapsed();
    let until = delays.until().unwrap();
    // The limit may have saved up 50 ms.
    assert!(until >= start + Duration::from_millis(900) && took < Duration::from_millis(900));
    assert!(db.stats().stalls.delay_micros > 800_000, "{}", db.stats());
    db.put("sleeps", "value").unwrap();
    assert!(Instant::now() >= until, "{took:?}");
}

#[test]
fn a_keyspace_says_that_a_write_would_wait() {
    let may_flush = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&may_flush);
    let options = options("tiering L0=4 T=4; buffers=2").on_event(move |event| {
        // Keeps the flush from freeing space.
        while matches!(event.event, Event::FlushBegun { .. }) && !flag.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let db = options.open(DIR).unwrap();
    let keyspace = db.default_keyspace().clone();
    let mut written = 0_u32;
    while !keyspace.is_stalled() {
        // This put never waits; if it did, the test would hang.
        db.put(written.to_be_bytes(), [1; 400]).unwrap();
        written += 1;
        assert!(written < 10_000, "{}", db.stats());
    }
    assert!(written > 100, "{written}");
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| db.put("waits", "value").unwrap());
        wait_until(|| !db.stats().stalls.now.is_empty(), || db.stats().to_string());
        assert!(!writing.is_finished() && keyspace.is_stalled());
        may_flush.store(true, Ordering::SeqCst);
        writing.join().unwrap();
    });
    wait_until(|| !keyspace.is_stalled(), || db.stats().to_string());
    db.close().unwrap();
    assert!(!keyspace.is_stalled(), "a write fails at once");
}

/// The listener may use the database, because no lock is held while it runs.
#[test]
fn stalled_writers_emit_events_with_cause_and_end() {
    let reported: Arc<Mutex<Vec<Event>>> = Arc::default();
    let handle: Arc<OnceLock<Db>> = Arc::default();
    let (listener, writer) = (Arc::clone(&reported), Arc::clone(&handle));
    let text = "tiering L0=4 T=4; limit=local(8); violation=stop; buffers=8";
    let options = options(text).io_budget(IoBudget::Total(64 << 10)).on_event(move |event| {
        listener.lock().unwrap().push(event.event.clone());
        if let (Event::WritesResumed { .. }, Some(db)) = (&event.event, writer.get()) {
            db.get("x").unwrap();
        }
    });
    let db = options.open(DIR).unwrap();
    handle.set(db.clone()).unwrap();
    let seen = std::thread::scope(|scope| {
        let writing = scope.spawn(|| fill(&db, 6000, 1));
        let mut seen = None;
        let is_stopped = || {
            seen = db.stats().stalls.now.into_iter().find(|stall| stall.stops);
            seen.is_some()
        };
        wait_until(is_stopped, || db.stats().to_string());
        db.set_io_budget(IoBudget::Unlimited).unwrap();
        writing.join().unwrap();
        seen.unwrap()
    });
    let text = seen.to_string();
    assert!(text.starts_with("default: stopped by ") && text.contains("until "), "{text}");
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    let reported = reported.lock().unwrap().clone();
    let stalls: Vec<&Event> =
        reported.iter().filter(|event| matches!(event, Event::WritesStalled(_))).collect();
    let resumed =
        reported.iter().filter(|event| matches!(event, Event::WritesResumed { .. })).count();
    assert!(!stalls.is_empty() && stalls.len() < 40, "{stalls:?}");
    assert!(resumed > 0, "{reported:?}");
    for stall in stalls {
        let Event::WritesStalled(stall) = stall else { continue };
        assert_eq!(stall.effect, StallEffect::Stopped);
        assert!(matches!(stall.cause, StallCause::LevelRuns | StallCause::ImmutableMemtables));
        assert!(stall.measured >= stall.threshold && !stall.until.is_empty(), "{stall:?}");
    }
    handle.get().unwrap().clone().close().unwrap();
}

/// A table of a megabyte is synced many times, every 64 KiB. If one of these syncs fails, writing
/// the table fails.
#[test]
fn tables_are_synced_in_chunks() {
    let storage = FaultStorage::new(Arc::new(MemoryStorage::new(1)));
    let design: Design = "leveling; buffer=2MiB; table=2MiB".parse().unwrap();
    let options = Options::new().storage(Arc::new(storage.clone())).design(design);
    let db = options.sync_bytes(64 << 10_u64).open(DIR).unwrap();
    fill(&db, 2000, 1);
    storage.set(Some(Fault {
        operation: Some(Operation::Sync),
        path_contains: ".sst".into(),
        after: 3,
        is_permanent: false,
        error: std::io::ErrorKind::Other,
    }));
    // A failed sync is final for the file, not for its data: the flush writes another table.
    let _ = db.flush();
    assert_eq!(storage.fired(), 1, "the table was forced to disk fewer than four times");
    storage.set(None);
    db.flush().unwrap();
    assert_eq!(db.iter().unwrap().count(), 2000);
}

/// Writes until flushes, which the budget slows, have stopped or delayed writers for a while.
fn fill_beyond_the_budget(violation: &str) -> Db {
    let text = format!("tiering L0=100 T=2; delay=150; stop=200; buffers=2; violation={violation}");
    let db = options(&text).io_budget(IoBudget::Total(1 << 20)).open(DIR).unwrap();
    (1..=4).for_each(|round| fill(&db, 500, round));
    db
}

#[test]
fn writers_spread_the_room_before_a_stop() {
    let stalls = fill_beyond_the_budget("stop").stats().stalls;
    assert_eq!(stalls.delay_micros, 0, "{stalls:?}");
    assert!(stalls.total_micros() > 100_000, "{stalls:?}");
    let db = fill_beyond_the_budget("spread");
    let stalls = db.stats().stalls;
    // The first flush has not been timed, so that writers may be stopped once.
    let stopped = stalls.micros(StallCause::ImmutableMemtables);
    assert!(stalls.delay_micros > stopped, "{stalls:?}");
    let delayed = db.events().into_iter().find_map(|logged| match logged.event {
        Event::WritesStalled(stall) if stall.effect == StallEffect::Delayed => Some(stall),
        _ => None,
    });
    let delayed = delayed.unwrap();
    assert_eq!(delayed.cause, StallCause::ImmutableMemtables);
    assert_eq!(delayed.until, "a flush ends");
    for number in 0..500_u32 {
        let key = number.wrapping_mul(2_654_435_761);
        assert_eq!(db.get(key.to_be_bytes()).unwrap().unwrap(), [4; 400]);
    }
}

#[test]
fn writes_that_fill_a_memtable_enter_the_schedule() {
    let text = "tiering L0=100 T=2; delay=150; stop=200; buffers=4; violation=spread";
    let db = options(text).io_budget(IoBudget::Total(2 << 20)).open(DIR).unwrap();
    // Each write takes a whole memtable, so that most of the time is a stop. On a loaded machine, a writer may
    // be slower than its schedule for a while.
    let is_delayed = (0..100_u32).any(|number| {
        db.put(number.to_be_bytes(), [7; 80_000]).unwrap();
        db.stats().stalls.delay_micros > 0
    });
    assert!(is_delayed, "{}", db.stats());
}

#[test]
fn writers_are_not_delayed_for_merges_that_fail() {
    let storage = FaultStorage::new(Arc::new(MemoryStorage::new(1)));
    let text = "1-leveling L0=2 T=4; delay=4; stop=40; buffers=4; violation=spread";
    let options = options(text).storage(Arc::new(storage.clone()));
    let db = options.io_budget(IoBudget::Total(200 << 10)).open(DIR).unwrap();
    // The budget makes merges long, which is then expected of later ones.
    (1..=2).for_each(|round| fill(&db, 500, round));
    db.wait_for_compactions().unwrap();
    db.set_io_budget(IoBudget::Unlimited).unwrap();
    storage.set(Some(Fault {
        operation: Some(Operation::Read),
        path_contains: ".sst".into(),
        after: 0,
        is_permanent: true,
        // Failures of a full disk pass, so that writes are not refused.
        error: std::io::ErrorKind::StorageFull,
    }));
    let before = db.stats().stalls.delay_micros;
    (1..=4).for_each(|round| fill(&db, 700, round));
    let delayed = db.stats().stalls.delay_micros - before;
    assert!(storage.fired() > 0 && db.tree().shape.run_count() > 10, "{}", db.tree().shape);
    assert!(delayed < 500_000, "{delayed}");
    storage.set(None);
}

/// Flushes are always due, and no merge ends. Flushed memtables must not be kept until no flush is due.
#[test]
fn flushed_memtables_are_freed_while_others_wait() {
    // A small budget leaves one flush thread, which has to free them itself.
    for memory_budget in [8 << 20, 64 << 20] {
        let text = "tiering L0=500 T=2; delay=900; stop=1000; buffers=4";
        let options = options(text).memory_budget(memory_budget);
        let db = options.io_budget(IoBudget::Total(8 << 20)).open(DIR).unwrap();
        let db = run_guarded(move || {
            fill(&db, 12_000, 1);
            db
        });
        let stats = db.stats();
        assert!(stats.stalls.immutable_memtables_micros > 100_000, "{stats}");
        assert!(stats.memory.kept_memtable_bytes < 1 << 20, "{stats}");
    }
}
