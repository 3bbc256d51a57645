//! Operations that another thread cancels and watches.

use std::thread;
use std::time::{Duration, Instant};

use terrane::{
    Db, ErrorKind, IoBudget, JobState, JobType, Keyspace, KeyspaceOptions, Maintenance, Options,
    policy::StallCause,
};

use crate::support::{fill, pairs, small_design};

const DEADLINE: Duration = Duration::from_secs(60);

/// Returns a database with several runs, whose next compactions take minutes.
fn slow(dir: &std::path::Path) -> Db {
    let db = Options::new()
        .design("tiering T=10 L0=10; buffer=1MiB".parse().unwrap())
        .open(dir)
        .unwrap();
    for round in 0..3 {
        for number in 0..400u32 {
            db.put(format!("{number:05}"), [round; 2000]).unwrap();
        }
        db.flush().unwrap();
    }
    // Long enough that the budget has nothing saved up.
    db.set_io_budget(IoBudget::Total(64 << 10)).unwrap();
    db
}

/// Waits until something holds.
fn wait(mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < DEADLINE, "nothing happened");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_cancelled_compaction_ends_soon_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let db = slow(dir.path());
    let (before, runs) = (pairs(db.iter().unwrap()), db.tree().shape.run_count());
    let maintenance = Maintenance::of(&db);
    let compacting = {
        let (maintenance, db) = (maintenance.clone(), db.clone());
        thread::spawn(move || maintenance.compact_range(db.default_keyspace(), ..))
    };
    wait(|| maintenance.jobs().iter().any(|job| job.job == JobType::Compaction));
    let job = maintenance.jobs().swap_remove(0);
    assert_eq!((job.state, job.keyspace.as_str()), (JobState::Running, "default"));
    assert!(job.id.is_some() && job.total_bytes > 1 << 20, "{job:?}");
    assert!(job.remaining_bytes.unwrap() <= job.total_bytes, "{job:?}");
    assert!(job.what.contains("L0") && job.why.contains("manual"), "{job:?}");
    wait(|| maintenance.progress_bytes().0 > 0);
    let cancelled = Instant::now();
    maintenance.cancel();
    let error = compacting.join().unwrap().unwrap_err();
    assert!(cancelled.elapsed() < DEADLINE / 2, "{:?}", cancelled.elapsed());
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    assert!(maintenance.jobs().is_empty());
    assert_eq!((pairs(db.iter().unwrap()), db.tree().shape.run_count()), (before, runs));
    // The database is as healthy as before: the compaction can be repeated, and no file is left.
    assert!(db.stats().error.is_none());
    db.set_io_budget(IoBudget::Unlimited).unwrap();
    Maintenance::of(&db).compact_range(db.default_keyspace(), ..).unwrap();
    assert_eq!(db.tree().shape.run_count(), 1);
    let tables = db.stats().tables;
    db.close().unwrap();
    let files = std::fs::read_dir(dir.path()).unwrap().flatten();
    let is_table = |name: &std::ffi::OsString| name.to_string_lossy().ends_with(".sst");
    let left = files.filter(|file| is_table(&file.file_name())).count();
    assert_eq!(left as u64, tables);
}

#[test]
fn a_wait_for_compactions_ends_when_it_is_cancelled() {
    let dir = tempfile::tempdir().unwrap();
    let db = slow(dir.path());
    db.set_design("leveling T=2 L0=2; buffer=1MiB".parse().unwrap()).unwrap();
    let maintenance = Maintenance::of(&db);
    let waiting = {
        let maintenance = maintenance.clone();
        thread::spawn(move || maintenance.wait_for_compactions())
    };
    wait(|| !maintenance.jobs().is_empty());
    maintenance.cancel();
    assert_eq!(waiting.join().unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
    // The compaction itself does not belong to the caller, and continues.
    assert!(!maintenance.jobs().is_empty());
    db.set_io_budget(IoBudget::Unlimited).unwrap();
    db.wait_for_compactions().unwrap();
}

#[test]
fn a_wait_for_flushes_of_all_keyspaces_ends_when_it_is_cancelled() {
    let dir = tempfile::tempdir().unwrap();
    let db = slow(dir.path());
    let runs = |keyspace: &Keyspace| {
        keyspace.tree().shape.levels.iter().map(|level| level.runs.len()).sum::<usize>()
    };
    let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
    let maintenance = Maintenance::of(&db);
    other.put("key", "value").unwrap();
    maintenance.flush_all().unwrap();
    assert_eq!(runs(&other), 1);
    maintenance.cancel();
    other.put("key", "value").unwrap();
    assert_eq!(maintenance.flush_all().unwrap_err().kind(), ErrorKind::Cancelled);
    // The flush had already begun, so it continues.
    wait(|| runs(&other) == 2);
}

#[test]
fn a_cancelled_checkpoint_leaves_no_files() {
    let dir = tempfile::tempdir().unwrap();
    let db = Options::new().design(small_design()).open(dir.path().join("db")).unwrap();
    fill(&db, 100, 0);
    let maintenance = Maintenance::of(&db);
    maintenance.checkpoint(dir.path().join("whole")).unwrap();
    let (done, total) = maintenance.progress_bytes();
    assert!(done == total && total > 0, "{done} of {total}");
    maintenance.cancel();
    let copy = dir.path().join("copy");
    let error = maintenance.checkpoint(&copy).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    assert_eq!(std::fs::read_dir(&copy).unwrap().count(), 0);
    db.checkpoint(&copy).unwrap();
    assert_eq!(Db::open(&copy).unwrap().iter().unwrap().count(), 100);
}

#[test]
fn a_queued_flush_and_what_it_waits_for_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let db = slow(dir.path());
    let maintenance = Maintenance::of(&db);
    let writing = {
        let db = db.clone();
        thread::spawn(move || {
            for number in 0..4000u32 {
                if db.put(format!("{number:05}"), [9; 2000]).is_err() {
                    return;
                }
            }
        })
    };
    wait(|| {
        let jobs = maintenance.jobs();
        let of = |state| jobs.iter().any(|job| (job.job, job.state) == (JobType::Flush, state));
        of(JobState::Running) && of(JobState::Queued)
    });
    wait(|| !db.stats().stalls.now.is_empty());
    assert_eq!(db.stats().stalls.now[0].pressure.cause, StallCause::ImmutableMemtables);
    db.set_io_budget(IoBudget::Unlimited).unwrap();
    writing.join().unwrap();
}

#[test]
fn a_handle_says_whether_writes_are_accepted_and_what_happened() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    let maintenance = Maintenance::of(&db);
    maintenance.check_writable().unwrap();
    let read_only = Maintenance::of(&Db::open_read_only(dir.path()).unwrap());
    assert_eq!(read_only.check_writable().unwrap_err().kind(), ErrorKind::Invalid);
    let first = maintenance.events_after(0).len() as u64;
    db.put("a", "1").unwrap();
    maintenance.flush(db.default_keyspace()).unwrap();
    let new = maintenance.events_after(first);
    assert_eq!(new.iter().map(|event| event.number).next(), Some(first + 1));
    assert_eq!(new.len(), db.events().len() - first as usize);
    assert!(maintenance.events_after(u64::MAX).is_empty());
    db.close().unwrap();
    assert_eq!(maintenance.check_writable().unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn a_control_socket_is_a_file_of_the_database() {
    let dir = tempfile::tempdir().unwrap();
    // A killed process, or another one that created the database, may have left this socket.
    std::fs::write(dir.path().join("control.sock"), "").unwrap();
    let db = Db::open(dir.path()).unwrap();
    db.put("a", "1").unwrap();
    db.checkpoint(dir.path().join("copy")).unwrap();
    db.close().unwrap();
    assert!(!dir.path().join("copy/control.sock").exists());
    let verified = terrane::inspect::verify(dir.path(), &mut |_| {}).unwrap();
    assert!(verified.problems.is_empty(), "{:?}", verified.problems);
}
