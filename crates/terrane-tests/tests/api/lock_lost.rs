//! Tests a directory that another process takes, because `LOCK` was removed while the database was
//! open. Two handles of one process stand for two processes.

use std::path::{Path, PathBuf};

use terrane::{Db, Error, ErrorKind, Options};

use crate::support::keys;

fn remove_lock(dir: &Path) {
    std::fs::remove_file(dir.join("LOCK")).unwrap();
}

fn assert_lost(result: terrane::Result<()>) {
    let error = result.unwrap_err();
    assert!(matches!(error, Error::LockLost { .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Poisoned);
    let text = error.to_string();
    assert!(text.contains("LOCK") && text.contains("another process"), "{text}");
    assert!(text.contains("open it again"), "{text}");
}

fn manifests(dir: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    files.filter(|path| path.to_str().unwrap().contains("MANIFEST-")).collect()
}

/// The first process used to go on acknowledging writes and flushes that the second never saw.
#[test]
fn a_process_that_lost_its_lock_acknowledges_no_flush_and_refuses_writes() {
    let dir = tempfile::tempdir().unwrap();
    let first = Db::open(dir.path()).unwrap();
    first.put("a", "1").unwrap();
    remove_lock(dir.path());
    let second = Db::open(dir.path()).unwrap();
    second.put("b", "2").unwrap();
    second.flush().unwrap();

    // Nothing is checked between two flushes, so this write succeeds, and is lost.
    first.put("lost", "3").unwrap();
    assert_lost(first.flush());
    assert_lost(first.put("c", "4"));
    assert_lost(first.sync());
    assert_lost(first.flush());
    assert_eq!(first.get("a").unwrap().unwrap(), "1");
    assert!(matches!(first.stats().error, Some(Error::LockLost { .. })));
    assert_lost(first.close());

    second.put("d", "5").unwrap();
    second.flush().unwrap();
    second.close().unwrap();
    let db = Db::open(dir.path()).unwrap();
    assert_eq!(keys(db.iter().unwrap()), ["a", "b", "d"]);
    db.close().unwrap();
    let found = terrane::inspect::verify(dir.path(), &mut |_| {}).unwrap();
    assert!(found.problems.is_empty(), "{:?}", found.problems);
}

#[test]
fn a_process_that_lost_its_lock_removes_no_table_of_the_other() {
    let dir = tempfile::tempdir().unwrap();
    let first = Db::open(dir.path()).unwrap();
    for round in 0..3 {
        first.put("a", format!("{round}")).unwrap();
        first.flush().unwrap();
    }
    remove_lock(dir.path());
    let second = Db::open(dir.path()).unwrap();
    assert_lost(first.compact_range(..));
    drop(first);
    assert_eq!(second.get("a").unwrap().unwrap(), "2");
    second.close().unwrap();
    let found = terrane::inspect::verify(dir.path(), &mut |_| {}).unwrap();
    assert!(found.problems.is_empty(), "{:?}", found.problems);
}

#[test]
fn a_new_segment_of_the_log_checks_the_lock() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().log_segment_bytes(64 << 10);
    let first = options.open(dir.path()).unwrap();
    remove_lock(dir.path());
    let second = options.open(dir.path()).unwrap();
    let mut written = 0;
    let error = loop {
        match first.put("key", [7; 1000]) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 100, "the log grew by more than a segment");
    };
    assert_lost(Err(error));
    assert_lost(first.put("key", "value"));
    assert!(second.is_empty().unwrap());
}

/// Two machines that share a file system may both hold the lock.
#[test]
fn a_manifest_that_another_machine_replaced_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    db.put("a", "1").unwrap();
    for path in manifests(dir.path()) {
        std::fs::remove_file(path).unwrap();
    }
    assert_lost(db.flush());
    assert_lost(db.put("b", "2"));
}
