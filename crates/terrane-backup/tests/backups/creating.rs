//! The files that a backup stores, and the files that it leaves alone.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use terrane::WriteBatch;
use terrane_backup::{
    BackedUpFile, CheckpointWith, ContentId, CreateOptions, Directory, Error, Memory, ReadBack,
    Repository, Which, create, list,
};

use crate::support::{back_up, contents, fill, names, object_bytes, open, restored};

#[test]
fn a_backup_is_restored_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    fill(&db, 0..2000, 1);
    db.flush().unwrap();
    fill(&db, 0..500, 2);
    let repository = Directory::new(dir.path().join("repository"));
    let before = contents(&db);
    let first = back_up(&db, &repository);
    assert_eq!(first.stored_bytes, first.backup.bytes);
    assert_eq!(first.backup.sequence, db.snapshot().sequence_number());
    fill(&db, 400..700, 3);
    let second = back_up(&db, &repository);
    let found = list(&repository).unwrap();
    assert_eq!(found.backups, [first.backup.clone(), second.backup.clone()]);
    assert!(found.unreadable.is_empty());
    assert_eq!(restored(&repository, &Which::Latest, &dir.path().join("new")), contents(&db));
    let named = Which::Named(first.backup.name);
    assert_eq!(restored(&repository, &named, &dir.path().join("old")), before);
    // No file remains next to the database.
    assert_eq!(names(dir.path()), ["db", "new", "old", "repository"]);
}

/// Every file whose name or contents are new is stored, and no other.
#[test]
fn a_second_backup_stores_only_new_files() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    let repository = Memory::new();
    fill(&db, 0..3000, 1);
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    let first = back_up(&db, &repository);
    // Only the manifest and the log have changed, which every checkpoint writes anew.
    let second = back_up(&db, &repository);
    assert!(second.stored_bytes < 32 << 10, "{}", second.stored_bytes);
    assert!(second.read_bytes < 160 << 10, "{}", second.read_bytes);
    fill(&db, 0..100, 2);
    db.flush().unwrap();
    let third = back_up(&db, &repository);
    let known: BTreeSet<String> = [&first, &second]
        .iter()
        .flat_map(|it| &it.backup.files)
        .map(BackedUpFile::object)
        .collect();
    let new: u64 = third
        .backup
        .files
        .iter()
        .filter(|file| !known.contains(&file.object()))
        .map(|file| file.bytes)
        .sum();
    assert_eq!(third.stored_bytes, new);
    assert!(new < first.stored_bytes / 4, "{new} of {}", first.stored_bytes);
    let total = first.stored_bytes + second.stored_bytes + third.stored_bytes;
    assert_eq!(object_bytes(&repository), total);
    // Reading everything again finds the same objects.
    let options = CreateOptions::new().reread().read_back(ReadBack::All);
    let fourth = create(&db, &repository, &options).unwrap();
    assert_eq!(fourth.read_bytes, fourth.backup.bytes);
    assert!(fourth.stored_bytes < 32 << 10, "{}", fourth.stored_bytes);
}

#[test]
fn objects_are_copies_with_the_name_of_their_contents() {
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    fill(&db, 0..500, 1);
    let repository = Directory::new(dir.path().join("repository"));
    back_up(&db, &repository);
    for stored in repository.list("objects/").unwrap() {
        let path = repository.path().join(&stored.name);
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(ContentId::of(&bytes).object(), stored.name);
        assert_eq!(std::fs::metadata(&path).unwrap().nlink(), 1);
    }
    assert!(names(&repository.path().join("tmp")).is_empty());
    assert!(names(&repository.path().join("locks")).is_empty());
}

/// The current segment of the log is a value file, which writers change while it is copied.
#[test]
fn backups_while_writing_are_prefixes() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    fill(&db, 0..500, 0);
    let repository = Directory::new(dir.path().join("repository"));
    let is_done = AtomicBool::new(false);
    let next = AtomicU64::new(0);
    let backups = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let large = number.to_be_bytes().repeat(1 + (number % 90) as usize);
                let mut batch = WriteBatch::new();
                batch.put([b'n', (number % 200) as u8], &large).put("last", number.to_be_bytes());
                db.write(&batch).unwrap();
            }
        });
        let mut backups = Vec::new();
        for _ in 0..8 {
            let before = next.load(Ordering::Relaxed);
            let created = back_up(&db, &repository);
            backups.push((before, created.backup, next.load(Ordering::Relaxed)));
        }
        is_done.store(true, Ordering::Relaxed);
        backups
    });
    for (index, (before, backup, after)) in backups.into_iter().enumerate() {
        let target = dir.path().join(format!("restored {index}"));
        let [entries, _] = restored(&repository, &Which::Named(backup.name), &target);
        let Some(last) = entries.get(&b"last"[..]) else {
            assert!(before <= 1);
            continue;
        };
        let last = u64::from_be_bytes(last[..].try_into().unwrap());
        // Every write that had returned is included, and no write that began later.
        assert!(last + 2 >= before && last < after, "{before} {last} {after}");
        for number in last.saturating_sub(199)..=last {
            let value = &entries[&[b'n', (number % 200) as u8][..]];
            assert_eq!(*value, number.to_be_bytes().repeat(1 + (number % 90) as usize));
        }
    }
}

#[test]
fn databases_share_a_repository() {
    let dir = tempfile::tempdir().unwrap();
    let repository = Directory::new(dir.path().join("repository"));
    let dbs = ["one", "two"].map(|name| open(&dir.path().join(name)));
    for (round, db) in (1..).zip(&dbs) {
        fill(db, 0..300, round);
        back_up(db, &repository);
    }
    let mut found = list(&repository).unwrap();
    let databases = found.databases().into_iter().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(databases.len(), 2);
    let ambiguous = found.find(&Which::Latest, "x").unwrap_err().to_string();
    assert!(ambiguous.contains("--database"), "{ambiguous}");
    let number = found.backups[0].database.clone();
    found.keep_database(&number[..12], "x").unwrap();
    assert_eq!(found.find(&Which::Latest, "x").unwrap().database, number);
    for (index, db) in dbs.iter().enumerate() {
        let number = terrane::inspect::files(db.path()).unwrap().database;
        let options = terrane_backup::RestoreOptions::new().database(format!("{number:016X}"));
        let target = dir.path().join(format!("restored {index}"));
        terrane_backup::restore(&repository, &Which::Latest, &target, &options).unwrap();
        assert_eq!(contents(&terrane::Db::open(target).unwrap()), contents(db));
    }
}

#[test]
fn another_process_can_make_the_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    fill(&db, 0..100, 1);
    let asked = Mutex::new(Vec::new());
    let source = CheckpointWith::new(db.path(), |target| {
        asked.lock().unwrap().push(target.to_owned());
        Ok(db.checkpoint(target)?)
    });
    let repository = Memory::new();
    create(&source, &repository, &CreateOptions::new()).unwrap();
    let asked = asked.into_inner().unwrap();
    assert!(asked.len() == 1 && asked[0].is_absolute() && !asked[0].exists(), "{asked:?}");
    let failing = CheckpointWith::new(db.path(), |_| Err("no answer".into()));
    let failed = create(&failing, &repository, &CreateOptions::new()).unwrap_err();
    assert_eq!(failed.to_string(), "cannot make a checkpoint: no answer");
    assert_eq!(names(dir.path()), ["db"]);
}

#[test]
fn a_cancelled_backup_is_none_and_the_next_one_uses_its_objects() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    fill(&db, 0..3000, 1);
    db.flush().unwrap();
    let repository = Memory::new();
    let options = CreateOptions::new().on_progress(|progress| {
        if progress.done_bytes > progress.total_bytes / 2 {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    assert!(matches!(create(&db, &repository, &options), Err(Error::Cancelled)));
    assert!(list(&repository).unwrap().backups.is_empty());
    assert!(repository.list("locks/").unwrap().is_empty());
    assert_eq!(names(dir.path()), ["db"]);
    let stored = object_bytes(&repository);
    let created = back_up(&db, &repository);
    let reused = created.backup.bytes - created.stored_bytes;
    assert!(stored > 0 && reused > created.backup.bytes / 3, "{reused} of {stored}");
    assert_eq!(restored(&repository, &Which::Latest, &dir.path().join("new")), contents(&db));
}

#[test]
fn a_rate_slows_a_backup_and_progress_reaches_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    fill(&db, 0..2000, 1);
    db.flush().unwrap();
    let last = Arc::new(Mutex::new(None));
    let told = Arc::clone(&last);
    let begun = Instant::now();
    let options = CreateOptions::new().rate(1 << 20).on_progress(move |progress| {
        *told.lock().unwrap() = Some(progress);
        ControlFlow::Continue(())
    });
    let created = create(&db, &Memory::new(), &options).unwrap();
    let least = Duration::from_secs_f64(created.stored_bytes as f64 / f64::from(1 << 20) * 0.9);
    assert!(created.stored_bytes > 200 << 10 && begun.elapsed() >= least, "{:?}", begun.elapsed());
    let last = last.lock().unwrap().unwrap();
    assert_eq!((last.done_bytes, last.done_files), (last.total_bytes, last.total_files));
    assert_eq!(last.total_files, created.backup.files.len() as u64);
}
