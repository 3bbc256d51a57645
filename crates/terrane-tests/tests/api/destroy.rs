//! The removal of a database.

use std::path::Path;
use std::sync::Arc;

use terrane::storage::{Fault, FaultStorage, MemoryStorage, Storage};
use terrane::{Background, Error, ErrorKind, KeyspaceOptions, OpenMode, Options};

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_destroyed_database_leaves_only_files_of_others() {
    let (dir, log) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(log.path().join("note"), "").unwrap();
    let options = Options::new().log_dir(log.path().into());
    let db = options.open(dir.path()).unwrap();
    let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
    for number in 0..1000_u32 {
        other.put(number.to_be_bytes(), "value").unwrap();
    }
    db.flush().unwrap();
    db.put("in the log", "1").unwrap();
    std::fs::write(dir.path().join("README"), "").unwrap();
    let error = Options::new().destroy(dir.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    assert_eq!(db.get("in the log").unwrap().unwrap(), "1");
    db.close().unwrap();
    Options::new().destroy(dir.path()).unwrap();
    assert_eq!(names(dir.path()), ["README"]);
    assert_eq!(names(log.path()), ["note"]);
    // The directory can now hold another database, without a trace of the first.
    let db = options.among_other_files().open(dir.path()).unwrap();
    assert_eq!(db.keyspaces(), ["default"]);
}

#[test]
fn a_directory_without_a_database_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("notes.txt"), "").unwrap();
    for missing in [dir.path().to_owned(), dir.path().join("missing")] {
        let error = Options::new().destroy(&missing).unwrap_err();
        assert!(matches!(error, Error::NoDatabase { .. }), "{error}");
    }
    assert_eq!(names(dir.path()), ["notes.txt"]);
}

#[test]
fn an_interrupted_removal_can_be_repeated() {
    for succeed in 0.. {
        let memory = MemoryStorage::new(1);
        let faults = FaultStorage::new(Arc::new(memory.clone()));
        let options = Options::new()
            .storage(Arc::new(faults.clone()))
            .background(Background::Inline)
            .log_dir("log".into());
        let db = options.open("db").unwrap();
        db.put("key", "value").unwrap();
        db.flush().unwrap();
        db.put("key", "newer").unwrap();
        db.close().unwrap();
        faults.set(Some(Fault {
            operation: None,
            path_contains: String::new(),
            after: succeed,
            is_permanent: true,
            error: std::io::ErrorKind::Other,
        }));
        let first = options.destroy("db");
        faults.set(None);
        if first.is_ok() {
            assert!(succeed > 10, "{succeed}");
            return;
        }
        // Either the whole database is left, or it does not open.
        match options.clone().open_mode(OpenMode::MustExist).open("db") {
            Ok(db) => {
                assert_eq!(db.get("key").unwrap().unwrap(), "newer", "{succeed}");
                db.close().unwrap();
            }
            Err(error) => assert_ne!(error.kind(), ErrorKind::Internal, "{succeed}: {error}"),
        }
        match options.destroy("db") {
            Ok(()) | Err(Error::NoDatabase { .. }) => {}
            Err(error) => unreachable!("after {succeed} operations: {error}"),
        }
        let left = |dir: &str| memory.list(Path::new(dir)).unwrap();
        assert!(left("db").iter().all(|name| name == "log"), "{succeed}: {:?}", left("db"));
        assert!(left("db/log").is_empty(), "{succeed}: {:?}", left("db/log"));
    }
}
