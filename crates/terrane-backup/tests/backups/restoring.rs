//! Restoring: the choice of the backup and the directory, and interruptions.

use std::ops::ControlFlow;
use std::time::Duration;

use terrane::{Db, ErrorKind};
use terrane_backup::{Directory, Error, Memory, Repository, RestoreOptions, Which, list, restore};

use crate::support::{back_up, contents, fill, names, open, restored};

#[test]
fn the_newest_backup_at_a_time_is_restored() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    let repository = Memory::new();
    let mut made = Vec::new();
    for round in 0..3 {
        fill(&db, 0..50, round);
        made.push((back_up(&db, &repository).backup, contents(&db)));
        std::thread::sleep(Duration::from_millis(2));
    }
    for (index, (backup, expected)) in made.iter().enumerate() {
        for (late, micros) in [(0, 0), (1, 500)] {
            let which = Which::At(backup.time_micros + micros);
            let target = dir.path().join(format!("{index} {late}"));
            assert_eq!(restored(&repository, &which, &target), *expected);
        }
    }
    let early = Which::At(made[0].0.time_micros - 1);
    let target = dir.path().join("early");
    let refused = restore(&repository, &early, &target, &RestoreOptions::new()).unwrap_err();
    assert!(matches!(refused, Error::NoBackup { .. }) && !target.exists(), "{refused}");
    let found = list(&repository).unwrap();
    let (first, location) = (&made[0].0.name, "x");
    assert_eq!(found.find(&Which::Named(first[..22].into()), location).unwrap().name, *first);
    assert!(found.find(&Which::Named(first[..4].into()), location).is_err());
    assert!(found.find(&Which::Named("none".into()), location).is_err());
}

#[test]
fn directories_with_files_are_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    fill(&db, 0..50, 1);
    let repository = Memory::new();
    back_up(&db, &repository);
    let before = names(db.path());
    let options = RestoreOptions::new();
    let refused = restore(&repository, &Which::Latest, db.path(), &options).unwrap_err();
    assert!(refused.to_string().contains("is not empty"), "{refused}");
    assert_eq!(names(db.path()), before);
    let empty = dir.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    assert_eq!(restored(&repository, &Which::Latest, &empty), contents(&db));
}

/// Cancels restores at every piece, and continues them.
#[test]
fn an_interrupted_restore_is_refused_by_the_engine_and_continued() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    fill(&db, 0..1000, 1);
    db.flush().unwrap();
    let repository = Directory::new(dir.path().join("repository"));
    let first = back_up(&db, &repository).backup;
    fill(&db, 0..10, 2);
    back_up(&db, &repository);
    let target = dir.path().join("restored");
    let mut kept = 0;
    for tries in 0.. {
        let begun = std::sync::atomic::AtomicU64::new(0);
        let options = RestoreOptions::new().on_progress(move |progress| {
            let first =
                begun.fetch_max(progress.done_bytes.max(1), std::sync::atomic::Ordering::Relaxed);
            // Each attempt gets a little farther.
            if progress.done_bytes > progress.total_bytes * tries / 10 && first > 0 {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        match restore(&repository, &Which::Named(first.name.clone()), &target, &options) {
            Ok(done) => {
                assert_eq!(done.copied_bytes + done.kept_bytes, first.bytes);
                kept = done.kept_bytes;
                break;
            }
            Err(error) => assert!(matches!(error, Error::Cancelled), "{error}"),
        }
        for opened in [Db::open(&target), Db::open_read_only(&target)] {
            let refused = opened.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
        }
        let other = restore(&repository, &Which::Latest, &target, &RestoreOptions::new());
        let refused = other.unwrap_err().to_string();
        assert!(refused.contains(&first.name) && refused.contains("continue"), "{refused}");
        if tries == 5 {
            // A file that was damaged meanwhile is copied again.
            let table = names(&target).into_iter().find(|name| name.ends_with(".sst")).unwrap();
            let mut bytes = std::fs::read(target.join(&table)).unwrap();
            bytes[3] ^= 1;
            std::fs::write(target.join(&table), bytes).unwrap();
        }
    }
    assert!(kept > 0);
    let [entries, _] = contents(&Db::open(&target).unwrap());
    assert_eq!(entries.len(), 1000);
    let problems = terrane::inspect::verify(&target, &mut |_| {}).unwrap().problems;
    assert!(problems.is_empty(), "{problems:?}");
}

/// The directory was complete when the restore was killed, and the database has been used since.
#[test]
fn a_mark_that_remained_harms_no_database() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    fill(&db, 0..50, 1);
    let repository = Memory::new();
    let backup = back_up(&db, &repository).backup;
    let target = dir.path().join("restored");
    restore(&repository, &Which::Latest, &target, &RestoreOptions::new()).unwrap();
    std::fs::write(target.join("RESTORE"), format!("{{\"backup\":\"{}\"}}", backup.name)).unwrap();
    std::fs::write(target.join("CHECKPOINT"), "").unwrap();
    Db::open(&target).unwrap().put("new", "1").unwrap();
    let again = restore(&repository, &Which::Latest, &target, &RestoreOptions::new()).unwrap();
    assert_eq!((again.copied_bytes, again.kept_bytes), (0, 0));
    assert!(!target.join("RESTORE").exists());
    assert_eq!(Db::open(&target).unwrap().get("new").unwrap().unwrap(), "1");
}

#[test]
fn a_repository_that_cannot_be_written_can_be_restored() {
    struct ReadOnly(Memory);
    impl Repository for ReadOnly {
        fn location(&self) -> String {
            "read-only".into()
        }
        fn put(&self, _: &str, _: &mut dyn std::io::Read) -> std::io::Result<()> {
            Err(std::io::ErrorKind::PermissionDenied.into())
        }
        fn get(&self, name: &str) -> std::io::Result<Box<dyn std::io::Read + '_>> {
            self.0.get(name)
        }
        fn list(&self, folder: &str) -> std::io::Result<Vec<terrane_backup::Stored>> {
            self.0.list(folder)
        }
        fn delete(&self, _: &str) -> std::io::Result<()> {
            Err(std::io::ErrorKind::PermissionDenied.into())
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    fill(&db, 0..50, 1);
    let repository = Memory::new();
    back_up(&db, &repository);
    let repository = ReadOnly(repository);
    assert_eq!(restored(&repository, &Which::Latest, &dir.path().join("new")), contents(&db));
}
