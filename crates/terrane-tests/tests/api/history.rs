//! Tests the reported reasons of past compactions, the state of deletes, and where the versions of
//! a key are.

use std::sync::Arc;
use std::time::Duration;

use terrane::{Background, Db, Design, ManualClock, Options, inspect};

use crate::support::small_design;

fn open(dir: &std::path::Path, clock: &Arc<ManualClock>, design: &str) -> Db {
    let design: Design = design.parse().unwrap();
    Options::new()
        .background(Background::Inline)
        .clock(clock.clone())
        .delete_persistence(Duration::from_secs(100))
        .design(design)
        .open(dir)
        .unwrap()
}

#[test]
fn jobs_record_their_reason_and_cost() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(1_000_000));
    let db = open(dir.path(), &clock, "tiering T=3; buffer=4KiB; table=4KiB");
    for round in 0..3 {
        db.put("a", format!("value {round}")).unwrap();
        db.flush().unwrap();
    }
    assert!(db.run_background_job().unwrap());
    let before = inspect::jobs(dir.path()).unwrap();
    let job = &before[0];
    assert_eq!(job.why, "run-count: level 0 holds 3 of 3 runs");
    assert_eq!((job.tables_rewritten, job.tables_moved), (3, 0));
    assert!(job.what.ends_with("into L1 a new run"), "{}", job.what);
    assert!(job.predicted_bytes >= job.read_bytes && job.read_bytes > job.written_bytes);
    assert_eq!((job.keyspace.as_str(), job.persisted_micros), ("default", None));
    // Job records survive reopening, although reopening begins a new manifest.
    drop(db);
    drop(Options::new().open(dir.path()).unwrap());
    assert_eq!(inspect::jobs(dir.path()).unwrap().len(), before.len());
}

#[test]
fn deletes_report_the_worst_case_and_violations() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(1_000_000));
    let db = open(dir.path(), &clock, "leveling; buffer=4KiB; table=4KiB");
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    db.compact_range(..).unwrap();
    let snapshot = db.snapshot();
    db.delete("a").unwrap();
    db.flush().unwrap();
    let report = inspect::deletes(dir.path()).unwrap();
    assert_eq!(report.threshold_micros, Some(100_000_000));
    assert_eq!((report.worst_micros, report.keyspaces[0].tombstones), (None, 1));
    assert_eq!(report.violations(50_000_000), 0);
    assert_eq!(report.violations(200_000_000), 1);
    // The log holds all writes since its creation.
    let file = &report.log[0];
    assert_eq!((report.log.len(), file.batches, file.deletes), (1, 2, 1));
    assert_eq!((file.begun_micros, file.ended_micros), (1_000_000, None));
    drop(snapshot);
    clock.advance(Duration::from_secs(95));
    while db.run_background_job().unwrap() {}
    let report = inspect::deletes(dir.path()).unwrap();
    assert!(report.log.is_empty(), "{:?}", report.log);
    assert_eq!(report.keyspaces[0].tombstones, 0);
    assert_eq!(report.worst_micros, Some(95_000_000));
    assert_eq!(report.violations(u64::MAX), 0);
}

/// Only tombstones used to be counted.
#[test]
fn dead_values_count_until_their_file_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(1_000_000));
    let design = "leveling; buffer=4KiB; values=separate(64,garbage=100%,space=100)";
    let db = open(dir.path(), &clock, design);
    for key in ["a", "b"] {
        db.put(key, [1; 100]).unwrap();
    }
    db.flush().unwrap();
    db.delete("a").unwrap();
    db.flush().unwrap();
    let pass = |seconds| {
        clock.advance(Duration::from_secs(seconds));
        while db.run_background_job().unwrap() {}
        inspect::deletes(dir.path()).unwrap()
    };
    let report = pass(70);
    assert!(report.log.is_empty() && report.keyspaces[0].tables.is_empty());
    let [(_, since)] = report.keyspaces[0].value_files[..] else { panic!("{report:?}") };
    assert_eq!((since, report.worst_micros), (1_000_000, Some(70_000_000)));
    assert_eq!((report.violations(100_000_000), report.violations(102_000_000)), (0, 1));
    let report = pass(20);
    assert_eq!((report.worst_micros, report.violations(u64::MAX)), (Some(90_000_000), 0));
    assert!(report.keyspaces[0].value_files.is_empty());
}

fn asked(counts: &terrane::OperationCounts) -> [u64; 6] {
    let lookups = [counts.gets, counts.gets_found];
    let scans = [counts.scans, counts.scan_entries];
    [counts.writes, counts.deletes, lookups[0], lookups[1], scans[0], scans[1]]
}

#[test]
fn operation_history_survives_openings_and_decays() {
    const HOUR: Duration = Duration::from_secs(3600);
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(1_000_000));
    let options = || Options::new().background(Background::Inline).clock(clock.clone());
    let db = options().open(dir.path()).unwrap();
    for number in 0..10u32 {
        db.put(number.to_be_bytes(), "x").unwrap();
    }
    let mut batch = terrane::WriteBatch::new();
    batch.put("a", "1").delete("b").delete_range("c".."d");
    db.write(&batch).unwrap();
    db.delete("a").unwrap();
    assert!(db.get("a").unwrap().is_none() && db.get(7u32.to_be_bytes()).unwrap().is_some());
    assert_eq!(db.multi_get(["a", "b"]).unwrap().len(), 2);
    assert_eq!(db.iter().unwrap().take(4).count(), 4);
    let all = [14, 3, 4, 1, 1, 4];
    assert_eq!((asked(&db.operations()), asked(&db.remembered_operations())), (all, all));
    // Saved counts decay; the counts of this opening decay as if spread evenly over its duration.
    // Time during which the database is closed does not count.
    clock.advance(HOUR * 24);
    for _ in 0..20 {
        db.get("a").unwrap();
    }
    assert_eq!(db.operations().open_micros, 24 * 3_600_000_000);
    db.close().unwrap();
    let half = [7, 2, 16, 1, 1, 2];
    clock.advance(HOUR * 1000);
    let db = options().open(dir.path()).unwrap();
    assert_eq!((asked(&db.operations()), asked(&db.remembered_operations())), ([0; 6], half));
    clock.advance(HOUR * 24);
    assert_eq!(asked(&db.remembered_operations()), [4, 1, 8, 1, 1, 1]);
    // A flush saves the counts so far. A crash loses operations that were counted later.
    db.put("b", "2").unwrap();
    db.flush().unwrap();
    db.put("c", "2").unwrap();
    drop(db);
    let db = Options::new().clock(clock.clone()).open_read_only(dir.path()).unwrap();
    assert_eq!(asked(&db.remembered_operations()), [5, 1, 8, 1, 1, 1]);
    let reported = inspect::manifest(dir.path()).unwrap();
    let reported = reported.iter().flat_map(|edit| &edit.changes);
    assert!(
        reported
            .clone()
            .any(|change| change.starts_with("operation history of 14 operations: 5 writes"))
    );
}

/// Deleted values in the log count, although tables no longer hold them.
#[test]
fn a_log_file_kept_too_long_is_a_violation() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(1_000_000));
    let options = || {
        let options = Options::new().background(Background::Inline).clock(clock.clone());
        options.log_segment_bytes(64 << 10)
    };
    let db = options().open(dir.path()).unwrap();
    db.put("a", "1").unwrap();
    db.delete("a").unwrap();
    clock.advance(Duration::from_secs(1));
    for number in 0..1000u32 {
        db.put(number.to_be_bytes(), [7; 100]).unwrap();
    }
    drop(db);
    let at = |report: &inspect::DeletesReport, seconds: u64| report.violations(seconds * 1_000_000);
    let report = inspect::deletes(dir.path()).unwrap();
    assert!(report.log.len() > 1 && report.log[0].ended_micros == Some(2_000_000));
    assert_eq!((report.threshold_micros, at(&report, 1000)), (None, 0), "nothing was promised");
    // Simulates a database that stores this option and that nobody has opened since.
    drop(options().delete_persistence(Duration::from_secs(100)).open(dir.path()).unwrap());
    let report = inspect::deletes(dir.path()).unwrap();
    let full = report.log.iter().filter(|file| file.ended_micros.is_some()).count();
    assert_eq!((at(&report, 102), at(&report, 103)), (0, full));
    assert!(full > 0);
}

#[test]
fn every_version_of_a_key_is_found_where_it_lies() {
    let dir = tempfile::tempdir().unwrap();
    let db = Options::new().design(small_design()).open(dir.path()).unwrap();
    let _held = db.snapshot();
    db.put("k", "one").unwrap();
    let _second = db.snapshot();
    db.put("k", "three").unwrap();
    db.flush().unwrap();
    db.delete_range("a".."z").unwrap();
    db.put("other", "x").unwrap();
    db.delete("k").unwrap();
    let kinds = |key: &[u8]| {
        let found = inspect::key(dir.path(), key).unwrap();
        found
            .into_iter()
            .map(|version| {
                let place = version.place.split([' ', ',']).next().unwrap().to_owned();
                (version.sequence_number, version.kind, place, version.value_bytes)
            })
            .collect::<Vec<_>>()
    };
    let found = kinds(b"k");
    let seqs: Vec<u64> = found.iter().map(|version| version.0).collect();
    assert!(seqs.is_sorted_by(|newer, older| newer >= older), "{found:?}");
    let in_tables: Vec<_> = found.iter().filter(|version| version.2 != "log").collect();
    assert_eq!(in_tables.len(), 2, "{found:?}");
    assert!(found.iter().any(|version| version.1 == "delete-range" && version.2 == "log"));
    assert!(found.iter().any(|version| version.1 == "delete" && version.2 == "log"));
    assert!(kinds(b"nothing").iter().all(|version| version.1 == "delete-range"));
    assert!(kinds(b"0").is_empty());
}

#[test]
fn a_forecast_is_what_then_happens() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(1_000_000));
    let db = open(dir.path(), &clock, "tiering T=4; buffer=4KiB; table=64KiB; block=512B");
    for round in 0..11u32 {
        for number in 0..30 {
            db.put(format!("{:04}", (round * 30 + number) * 389 % 1000), [7; 50]).unwrap();
        }
        db.flush().unwrap();
        db.wait_for_compactions().unwrap();
    }
    let leveling: Design = "leveling T=4; buffer=4KiB; table=64KiB; block=512B".parse().unwrap();
    let reported = db.forecast(&leveling).unwrap();
    assert!(
        reported.jobs > 0 && reported.is_complete && reported.before.runs > reported.after.runs,
        "{reported:?}"
    );
    assert_eq!(db.tree().shape.run_count() as u64, reported.before.runs, "nothing was done");
    let read = db.stats().compaction_bytes_read;
    db.set_design(leveling.clone()).unwrap();
    db.wait_for_compactions().unwrap();
    assert_eq!(db.tree().shape.run_count() as u64, reported.after.runs);
    let read = db.stats().compaction_bytes_read - read;
    assert!(read <= reported.bytes_rewritten * 11 / 10, "{read} of {}", reported.bytes_rewritten);
    assert_eq!(db.forecast(&leveling).unwrap().jobs, 0);
}
