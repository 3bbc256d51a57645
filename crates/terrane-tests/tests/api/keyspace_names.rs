//! Renaming keyspaces.

use std::sync::Arc;

use terrane::storage::{Crash, Fault, FaultStorage, MemoryStorage, Storage, Survival};
use terrane::{Background, Db, ErrorKind, KeyspaceOptions, OpenMode, Options, WriteBatch, inspect};

use crate::support::{DIR, in_memory, keys, small};

fn names(db: &Db) -> Vec<String> {
    let mut names = db.keyspaces();
    names.sort();
    names
}

fn open(db: &Db, name: &str) -> terrane::Keyspace {
    assert!(db.keyspaces().iter().any(|known| known == name), "no keyspace {name}");
    db.keyspace(name, KeyspaceOptions::new()).unwrap()
}

#[test]
fn a_renamed_keyspace_keeps_its_entries_its_design_and_its_handles() {
    let (options, _) = in_memory();
    let db = options.clone().open(DIR).unwrap();
    let design: terrane::Design = "tiering T=3; buffer=4KiB".parse().unwrap();
    let space = db.keyspace("a", KeyspaceOptions::new().design(design.clone())).unwrap();
    space.put("flushed", "1").unwrap();
    space.flush().unwrap();
    space.put("logged", "2").unwrap();
    let old_name = space.name();
    let mut batch = WriteBatch::new();
    batch.put_in(&space, "batch of before", "3");
    assert!(db.rename_keyspace("a", "b").unwrap());
    assert_eq!((old_name, space.name(), names(&db).join(" ")), ("a", "b", "b default".into()));
    db.write(&batch).unwrap();
    // The old name is free, and a new keyspace of that name is a different keyspace.
    let other = db.keyspace("a", KeyspaceOptions::new()).unwrap();
    assert!(other.is_empty().unwrap());
    other.put("other", "").unwrap();
    assert!(db.drop_keyspace("a").unwrap());
    // A change of the design keeps the name.
    space.set_design("tiering T=4; buffer=4KiB".parse().unwrap()).unwrap();
    drop((db, space, other, batch));
    let db = options.open(DIR).unwrap();
    assert_eq!(names(&db), ["b", "default"]);
    let space = open(&db, "b");
    assert_eq!(space.design_before(), Some(design));
    assert_eq!(keys(space.iter().unwrap()), ["batch of before", "flushed", "logged"]);
}

#[test]
fn names_that_are_taken_missing_or_invalid_are_refused() {
    let db = small();
    db.keyspace("a", KeyspaceOptions::new()).unwrap();
    db.keyspace("b", KeyspaceOptions::new()).unwrap();
    assert!(!db.rename_keyspace("missing", "c").unwrap());
    assert!(db.rename_keyspace("a", "a").unwrap());
    for (name, new_name) in
        [("a", "b"), ("a", "default"), ("default", "c"), ("a", ""), ("a", &"n".repeat(256))]
    {
        let error = db.rename_keyspace(name, new_name).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
    assert_eq!(names(&db), ["a", "b", "default"]);
}

/// Returns a database with keyspaces `a` and `b`, which initially contain their own names.
fn two(options: &Options) -> Db {
    let db = options.open(DIR).unwrap();
    for name in ["a", "b"] {
        db.keyspace(name, KeyspaceOptions::new()).unwrap().put("first name", name).unwrap();
    }
    db
}

/// Exchanges the names of two keyspaces.
fn exchange(db: &Db) -> terrane::Result<()> {
    for (name, new_name) in [("a", "c"), ("b", "a"), ("c", "b")] {
        assert!(db.rename_keyspace(name, new_name)?);
    }
    Ok(())
}

/// The names of the two keyspaces after each step of [`exchange`].
const STEPS: [[&str; 2]; 4] = [["a", "b"], ["c", "b"], ["c", "a"], ["b", "a"]];

/// Returns how many steps of [`exchange`] a database has completed.
fn steps(db: &Db) -> usize {
    let mut found = [String::new(), String::new()];
    assert_eq!(db.keyspaces().len(), 3, "{:?}", db.keyspaces());
    for name in db.keyspaces().into_iter().filter(|name| name != "default") {
        let first = open(db, &name).get("first name").unwrap().unwrap();
        found[usize::from(first == "b")] = name;
    }
    STEPS.iter().position(|names| *names == found).unwrap_or_else(|| panic!("{found:?}"))
}

#[test]
fn a_crash_while_keyspaces_are_renamed_leaves_the_names_of_one_moment() {
    let (options, storage) = in_memory();
    let db = two(&options);
    db.sync().unwrap();
    storage.track_crash_points();
    for (at, (name, new_name)) in (1..).zip([("a", "c"), ("b", "a"), ("c", "b")]) {
        assert!(db.rename_keyspace(name, new_name).unwrap());
        storage.mark(at);
    }
    storage.sync_dir(DIR.as_ref()).unwrap();
    let mut found = [0; 4];
    for point in storage.take_crash_points() {
        for crash in [
            Crash::Process,
            Crash::Power(Survival { percent: 0, seed: 1 }),
            Crash::Power(Survival { percent: 50, seed: 2 }),
        ] {
            let image: MemoryStorage = point.image(crash);
            let options = Options::new().storage(Arc::new(image)).background(Background::Inline);
            let db = options.open_mode(OpenMode::MustExist).open(DIR).unwrap();
            let taken = steps(&db);
            let acknowledged = usize::try_from(point.mark()).unwrap();
            assert!(taken == acknowledged || taken == acknowledged + 1, "{taken}, {acknowledged}");
            found[taken] += 1;
        }
    }
    assert!(found.iter().all(|&count| count > 0), "{found:?}");
}

#[test]
fn a_renaming_that_fails_leaves_the_names_of_one_moment() {
    let mut fired = 0;
    for after in 0.. {
        let (options, storage) = in_memory();
        let faults = FaultStorage::new(Arc::new(storage));
        let options = options.storage(Arc::new(faults.clone()));
        let db = two(&options);
        faults.set(Some(Fault {
            operation: None,
            path_contains: String::new(),
            after,
            is_permanent: false,
            error: std::io::ErrorKind::Other,
        }));
        let outcome = exchange(&db);
        let has_fired = faults.fired() > 0;
        faults.set(None);
        let in_memory = steps(&db);
        assert!(outcome.is_err() || in_memory == 3);
        drop(db);
        let stored = steps(&options.open(DIR).unwrap());
        // A failed edit may be durable nevertheless.
        assert!(stored == in_memory || outcome.is_err() && stored == in_memory + 1);
        fired += u64::from(has_fired);
        if !has_fired {
            break;
        }
    }
    assert!(fired >= 6, "{fired}");
}

#[test]
fn readers_and_checkpoints_have_the_new_name() {
    let dir = tempfile::tempdir().unwrap();
    let (path, copy) = (dir.path().join("db"), dir.path().join("copy"));
    let db = Db::open(&path).unwrap();
    db.keyspace("a", KeyspaceOptions::new()).unwrap().put("k", "v").unwrap();
    db.rename_keyspace("a", "b").unwrap();
    assert_eq!(names(&Db::open_read_only(&path).unwrap()), ["b", "default"]);
    db.checkpoint(&copy).unwrap();
    db.close().unwrap();
    let db = Db::open(&copy).unwrap();
    assert_eq!(open(&db, "b").get("k").unwrap().unwrap(), "v");
    for path in [&path, &copy] {
        assert!(inspect::verify(path, &mut |_| {}).unwrap().problems.is_empty());
    }
}
