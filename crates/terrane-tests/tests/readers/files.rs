//! A writer keeps files while a reader opens the database, but only for a limited time.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrane::storage::{DiskStorage, MemoryStorage, Storage};
use terrane::{Background, Clock, Db, ManualClock, Options, ReadMode};
use terrane_testkit::wait_until;

const DIR: &str = "db";
const DESIGN: &str = "1-leveling T=4 L0=2 base=16KiB; buffer=4KiB; table=4KiB; block=512B";

fn options() -> Options {
    Options::new().design(DESIGN.parse().unwrap()).log_segment_bytes(64 << 10)
}

/// Replaces every table and several segments of the log.
fn rewrite(db: &Db, round: u32) {
    for number in 0..2000u32 {
        db.put(format!("{number:04}"), format!("{round:060}")).unwrap();
    }
    db.flush().unwrap();
    db.compact_range(..).unwrap();
}

fn tables_and_logs(storage: &dyn Storage, dir: &Path) -> BTreeSet<String> {
    let names = storage.list(dir).unwrap().into_iter();
    names.filter(|name| name.ends_with(".sst") || name.ends_with(".log")).collect()
}

/// Returns the contents of the log files, because a file that is reused keeps its name.
fn logs(storage: &MemoryStorage) -> Vec<Vec<u8>> {
    let names = tables_and_logs(storage, Path::new(DIR)).into_iter();
    let logs = names.filter(|name| name.ends_with(".log"));
    logs.map(|name| storage.read(&Path::new(DIR).join(name)).unwrap()).collect()
}

#[test]
fn files_stay_while_a_reader_opens_and_go_when_it_is_done_or_takes_too_long() {
    let storage = MemoryStorage::new(1);
    let clock = Arc::new(ManualClock::new(1_000_000));
    let options = options()
        .storage(Arc::new(storage.clone()))
        .clock(Arc::clone(&clock) as Arc<dyn Clock>)
        .background(Background::Inline);
    let db = options.open(DIR).unwrap();
    let files = || tables_and_logs(&storage, Path::new(DIR));
    rewrite(&db, 0);
    let readers = Path::new(DIR).join("READERS");
    for is_stopped in [false, true] {
        let before = files();
        let lock = storage.lock_shared(&readers).unwrap();
        rewrite(&db, 1);
        rewrite(&db, 2);
        assert!(before.is_subset(&files()), "{before:?} {:?}", files());
        let (many, log) = (files().len(), logs(&storage));
        if is_stopped {
            clock.advance(Duration::from_secs(10));
        } else {
            drop(lock);
        }
        db.wait_for_compactions().unwrap();
        rewrite(&db, 3);
        let left = files();
        assert!(left.len() < many && !before.is_subset(&left), "{left:?}");
        assert!(logs(&storage) != log);
    }
    // Closing removes the remaining files unless a reader holds the lock; then the next opening does.
    let lock = storage.lock_shared(&readers).unwrap();
    let before = files();
    drop(db);
    let db = options.open(DIR).unwrap();
    rewrite(&db, 4);
    let _ = lock;
    assert!(before.is_subset(&files()));
}

#[test]
fn files_of_a_busy_database_go_soon_after_the_reader() {
    let dir = tempfile::tempdir().unwrap();
    // The time for which the writer keeps files does not pass, however long the rewrite takes.
    let clock = Arc::new(ManualClock::new(1_000_000));
    let db = options().clock(clock as Arc<dyn Clock>).open(dir.path()).unwrap();
    rewrite(&db, 0);
    let files = || tables_and_logs(&DiskStorage, dir.path());
    let before = files();
    let lock = DiskStorage.lock_shared(&dir.path().join("READERS")).unwrap();
    rewrite(&db, 1);
    assert!(before.is_subset(&files()), "{before:?} {:?}", files());
    drop(lock);
    let tables = |files: &BTreeSet<String>| {
        files.iter().filter(|name| name.ends_with(".sst")).cloned().collect::<BTreeSet<_>>()
    };
    // No operation of the database follows.
    wait_until(|| tables(&before).is_disjoint(&files()), || format!("{before:?} {:?}", files()));
    db.close().unwrap();
}

#[test]
fn a_deadline_for_deletes_does_not_wait_for_readers() {
    let storage = MemoryStorage::new(1);
    let options = options()
        .storage(Arc::new(storage.clone()))
        .background(Background::Inline)
        .delete_persistence(Duration::from_secs(60));
    let db = options.open(DIR).unwrap();
    rewrite(&db, 0);
    let before = tables_and_logs(&storage, Path::new(DIR));
    let _lock = storage.lock_shared(&Path::new(DIR).join("READERS")).unwrap();
    rewrite(&db, 1);
    assert!(!before.is_subset(&tables_and_logs(&storage, Path::new(DIR))));
}

/// A file that has been removed cannot be opened again, so a reader keeps every table open.
#[test]
fn readers_keep_reading_after_the_writer_has_replaced_every_file() {
    let dir = tempfile::tempdir().unwrap();
    let db = options().open(dir.path()).unwrap();
    rewrite(&db, 0);
    let files = || tables_and_logs(&DiskStorage, dir.path());
    let tables: Vec<String> = files().into_iter().filter(|name| name.ends_with(".sst")).collect();
    assert!(tables.len() > 10, "{tables:?}");
    let open = |mode| Options::new().read_mode(mode).open_read_only(dir.path()).unwrap();
    let readers = [ReadMode::Cached, ReadMode::Direct].map(open);
    rewrite(&db, 1);
    let is_left = || files().iter().any(|name| tables.contains(name));
    wait_until(|| !is_left(), || format!("{:?}", files()));
    for reader in &readers {
        let entries = reader.iter().unwrap().map(Result::unwrap);
        assert_eq!(
            entries.filter(|(_, value)| **value == *format!("{:060}", 0).as_bytes()).count(),
            2000
        );
    }
}
