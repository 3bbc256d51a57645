//! Tests repeated opening: no write is replayed twice, and no file is left behind.

use std::path::Path;
use std::sync::Arc;

use terrane::storage::{Crash, MemoryStorage, Storage, Survival};
use terrane::{Background, Options};
use terrane_testkit::wait_until;

use crate::support::{DIR, fill, in_memory, value};

fn logs(storage: &MemoryStorage) -> Vec<String> {
    let names = storage.list(Path::new(DIR)).unwrap();
    names.into_iter().filter(|name| name.ends_with(".log")).collect()
}

#[test]
fn logs_of_earlier_openings_are_removed_without_writes() {
    let (options, storage) = in_memory();
    let db = options.open(DIR).unwrap();
    // The log has several segments.
    for round in 0..20 {
        fill(&db, 100, round);
    }
    db.close().unwrap();
    for _ in 0..5 {
        let db = options.open(DIR).unwrap();
        assert_eq!(db.stats().replayed_writes, 0);
        assert_eq!(db.get("050").unwrap().unwrap(), value(50, 19).as_str());
        db.close().unwrap();
    }
    assert!(logs(&storage).len() <= 2, "{:?}", logs(&storage));
}

#[test]
fn background_threads_remove_unneeded_log_files() {
    let (options, storage) = in_memory();
    let db = options.open(DIR).unwrap();
    for round in 0..20 {
        fill(&db, 100, round);
    }
    db.close().unwrap();
    let before = logs(&storage);
    let db = options.background(Background::Threads).open(DIR).unwrap();
    // The current segment and at most two spares remain.
    let are_removed = || logs(&storage).len() <= 3 && !logs(&storage).contains(&before[0]);
    wait_until(are_removed, || format!("{before:?} {:?}", logs(&storage)));
    db.put("new", "value").unwrap();
    db.flush().unwrap();
}

#[test]
fn a_flushed_log_is_not_needed_after_a_crash_while_opening() {
    let (options, storage) = in_memory();
    let db = options.open(DIR).unwrap();
    let other = db.keyspace("other", terrane::KeyspaceOptions::new()).unwrap();
    for round in 0..10 {
        fill(&db, 100, round);
        other.put("round", value(0, round)).unwrap();
    }
    db.close().unwrap();
    storage.track_crash_points();
    // The database is opened twice. The second opening makes a write that is synced and not
    // flushed.
    options.open(DIR).unwrap().close().unwrap();
    let db = options.open(DIR).unwrap();
    db.put("050", "later").unwrap();
    db.sync().unwrap();
    storage.mark(1);
    drop(db);
    drop(options.open(DIR).unwrap());
    for point in storage.take_crash_points() {
        for (percent, seed) in [(0, 1), (50, 2), (50, 3), (100, 4)] {
            let image = point.image(Crash::Power(Survival { percent, seed }));
            check(&options.clone().storage(Arc::new(image)), point.mark() > 0, point.operation());
        }
    }
}

/// Opens twice and checks all contents.
fn check(options: &Options, is_later: bool, when: &str) {
    for _ in 0..2 {
        let db = options.open(DIR).unwrap_or_else(|error| panic!("{when}: {error}"));
        assert_eq!(db.iter().unwrap().count(), 100, "{when}");
        let found = db.get("050").unwrap().unwrap();
        assert!(found == "later" || (!is_later && found == value(50, 9).as_str()), "{when}");
        let other = db.keyspace("other", terrane::KeyspaceOptions::new()).unwrap();
        assert_eq!(other.get("round").unwrap().unwrap(), value(0, 9).as_str());
    }
}

/// Returns the bytes that compactions write for the same writes if the database is reopened after
/// every `rounds_open` rounds.
fn compacted(rounds_open: u32) -> u64 {
    let (options, _) = in_memory();
    let design = "leveling T=4; granularity=file; movement=round-robin; buffer=4KiB; table=4KiB";
    let mut db = options.clone().design(design.parse().unwrap()).open(DIR).unwrap();
    let mut bytes = 0;
    for round in 0..60u32 {
        for number in 0..100u32 {
            let key = (round * 100 + number).wrapping_mul(0x9e37_79b1).to_be_bytes();
            db.put(key, [7; 40]).unwrap();
        }
        while db.run_background_job().unwrap() {}
        if round % rounds_open == rounds_open - 1 {
            bytes += db.stats().compaction_bytes_written;
            db.close().unwrap();
            db = options.clone().open(DIR).unwrap();
        }
    }
    bytes + db.stats().compaction_bytes_written
}

#[test]
fn round_robin_resumes_after_reopening() {
    let (once, often) = (compacted(60), compacted(2));
    assert!(often < once * 5 / 4, "{often} bytes with many openings, {once} with one");
}
