//! Tests keyspaces that are created, dropped and created again, each with a design of its own.

use terrane::storage::Storage;
use terrane::{Background, Db, Design, ErrorKind, KeyspaceOptions, WriteBatch};
use terrane_testkit::wait_until;

use crate::support::{DIR, fill, in_memory, keys, small, small_design};

fn with(design: &str) -> KeyspaceOptions {
    KeyspaceOptions::new().design(design.parse().unwrap())
}

#[test]
fn keyspaces_hold_keys_of_their_own_and_are_found_again() {
    let (options, _) = in_memory();
    let db = options.clone().design(small_design()).open(DIR).unwrap();
    let tiered = db.keyspace("tiered", with("tiering T=3; buffer=4KiB")).unwrap();
    let like_default = db.keyspace("like default", KeyspaceOptions::new()).unwrap();
    assert_eq!(like_default.design(), small_design());
    db.put("k", "default").unwrap();
    tiered.put("k", "tiered").unwrap();
    tiered.put("t", "only here").unwrap();
    tiered.flush().unwrap();
    tiered.put("u", "in the log").unwrap();
    drop((db, tiered, like_default));
    let db = options.open(DIR).unwrap();
    let mut names = db.keyspaces();
    names.sort();
    assert_eq!(names, ["default", "like default", "tiered"]);
    let tiered = db.keyspace("tiered", KeyspaceOptions::new()).unwrap();
    assert_eq!((tiered.name(), keys(tiered.iter().unwrap()).concat()), ("tiered", "ktu".into()));
    assert_eq!(tiered.design().strategy.size_ratio, 3);
    assert_eq!(keys(db.iter().unwrap()), ["k"]);
    assert_eq!(
        db.keyspace("default", KeyspaceOptions::new()).unwrap().get("k").unwrap().unwrap(),
        "default"
    );
    assert_eq!(tiered.tree().keyspace, "tiered");
}

#[test]
fn another_design_than_the_stored_one_is_explained() {
    let db = small();
    db.keyspace("x", with("tiering T=3")).unwrap();
    db.keyspace("x", with("tiering T=3")).unwrap();
    let error = db.keyspace("x", with("leveling T=3")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let text = error.to_string();
    assert!(text.contains("keyspace 'x'") && text.contains("design_or_change"), "{text}");
    assert!(text.ends_with("terrane design set db --keyspace x 'leveling T=3'"), "{text}");
    assert_eq!(db.keyspaces().len(), 2);
}

/// This also holds with background threads, which drop replaced states, and with an open handle.
#[test]
fn a_dropped_keyspace_leaves_no_files_with_background_threads() {
    let (options, storage) = in_memory();
    let options = options.background(Background::Threads).design(small_design());
    let db = options.open(DIR).unwrap();
    let space = db.keyspace("s", with("tiering T=3; buffer=4KiB")).unwrap();
    for number in 0..400u32 {
        space.put(number.to_be_bytes(), [1; 100]).unwrap();
    }
    space.flush().unwrap();
    db.wait_for_compactions().unwrap();
    assert!(db.drop_keyspace("s").unwrap());
    // A thread that has just made a table may hold it a moment longer.
    let tables = || {
        let names = storage.list(DIR.as_ref()).unwrap();
        names.into_iter().filter(|name| name.ends_with(".sst")).collect::<Vec<_>>()
    };
    wait_until(|| tables().is_empty(), || format!("{:?}", tables()));
    drop(space);
}

#[test]
fn a_dropped_keyspace_is_gone_and_its_name_can_be_used_again() {
    let (options, storage) = in_memory();
    let db = options.clone().design(small_design()).open(DIR).unwrap();
    let space = db.keyspace("s", with("tiering T=3; buffer=4KiB")).unwrap();
    for number in 0..200u32 {
        space.put(number.to_be_bytes(), [1; 100]).unwrap();
    }
    space.flush().unwrap();
    space.put("late", "in memory").unwrap();
    let used = storage.used_bytes();
    assert!(db.drop_keyspace("s").unwrap());
    assert!(!db.drop_keyspace("s").unwrap());
    assert!(storage.used_bytes() < used - 10_000, "its tables are removed");
    // A handle of a dropped keyspace refuses writes and finds nothing.
    assert_eq!(space.put("k", "v").unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(space.get("late").unwrap(), None);
    assert_eq!(space.get(7u32.to_be_bytes()).unwrap(), None);
    assert_eq!(space.iter().unwrap().count(), 0);
    let again = db.keyspace("s", with("leveling T=5; buffer=4KiB")).unwrap();
    assert_eq!(again.iter().unwrap().count(), 0);
    again.put("k", "new").unwrap();
    drop((db, space, again));
    let db = options.open(DIR).unwrap();
    let again = db.keyspace("s", KeyspaceOptions::new()).unwrap();
    assert_eq!(keys(again.iter().unwrap()), ["k"]);
    assert_eq!(again.design().strategy.size_ratio, 5);
}

#[test]
fn iterators_over_a_dropped_keyspace_go_on() {
    let db = small();
    let space = db.keyspace("s", with("tiering T=3; buffer=4KiB")).unwrap();
    for number in 0..100u8 {
        space.put([number], [number; 100]).unwrap();
    }
    let mut iter = space.iter().unwrap();
    assert!(iter.advance().unwrap());
    db.drop_keyspace("s").unwrap();
    drop(space);
    assert_eq!(iter.map(Result::unwrap).count(), 99);
}

#[test]
fn the_log_is_freed_though_a_keyspace_is_idle() {
    let (options, storage) = in_memory();
    let options = options.log_bytes_max(1 << 20).log_segment_bytes(64 << 10);
    let db = options.design("balanced; buffer=64KiB".parse::<Design>().unwrap()).open(DIR).unwrap();
    let idle = db.keyspace("idle", with("balanced; buffer=1MiB")).unwrap();
    idle.put("written once", "and never again").unwrap();
    for number in 0..8000u32 {
        db.put((number % 100).to_be_bytes(), [3; 1000]).unwrap();
    }
    let used = storage.used_bytes();
    assert!(used < 3 << 20, "{used} bytes are in use for 100 KiB of data");
    assert_eq!(idle.get("written once").unwrap().unwrap(), "and never again");
}

#[test]
fn the_default_keyspace_cannot_be_dropped_and_names_have_limits() {
    let db = small();
    for error in [
        db.drop_keyspace("default").unwrap_err(),
        db.keyspace("", KeyspaceOptions::new()).unwrap_err(),
        db.keyspace(&"é".repeat(128), KeyspaceOptions::new()).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
    db.keyspace(&"n".repeat(255), KeyspaceOptions::new()).unwrap();
}

#[test]
fn batches_reach_several_keyspaces_and_survive_reopening() {
    let (options, _) = in_memory();
    let open = || -> Db { options.clone().open(DIR).unwrap() };
    let db = open();
    let (a, b) = (
        db.keyspace("a", KeyspaceOptions::new()).unwrap(),
        db.keyspace("b", KeyspaceOptions::new()).unwrap(),
    );
    fill(&db, 5, 0);
    a.put("old", "1").unwrap();
    let mut batch = WriteBatch::new();
    batch.put_in(&a, "k", "in a").put_in(&b, "k", "in b").delete_in(&a, "old").delete("000");
    batch.delete_range_in(&b, "x"..).put_in(&b, "z", "after the range").delete_range("003"..);
    db.write(&batch).unwrap();
    let check = |db: &Db| {
        let find = |name| db.keyspace(name, KeyspaceOptions::new()).unwrap();
        assert_eq!(keys(find("a").iter().unwrap()), ["k"]);
        assert_eq!(keys(find("b").iter().unwrap()), ["k", "z"]);
        assert_eq!(keys(db.iter().unwrap()), ["001", "002"]);
    };
    check(&db);
    drop((db, a, b));
    check(&open());
    open().close().unwrap();
    check(&open());
}

/// Batches name keyspaces by number. A keyspace of another database used to be accepted, and its
/// number was taken for that of a keyspace of this database.
#[test]
fn keyspaces_of_another_database_are_refused() {
    let (db, other) = (small(), small());
    let (mine, foreign) = (
        db.keyspace("mine", KeyspaceOptions::new()).unwrap(),
        other.keyspace("other", KeyspaceOptions::new()).unwrap(),
    );
    foreign.put("key", "foreign").unwrap();
    let is_refused = |outcome: terrane::Result<()>| {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains("another database"), "{error}");
    };
    let mut batch = WriteBatch::new();
    batch.put("a", "1").put_in(&foreign, "a", "1");
    is_refused(db.write(&batch));
    other.write(&batch).unwrap();
    batch.delete_in(&mine, "a");
    is_refused(db.write(&batch));
    is_refused(other.write(&batch));
    batch.clear();
    batch.delete_range_in(&mine, "a".."b");
    db.write(&batch).unwrap();
    let snapshot = db.snapshot();
    is_refused(snapshot.get_in(&foreign, "key").map(drop));
    is_refused(snapshot.range_in(&foreign, ..).map(drop));
    assert_eq!(snapshot.get_in(&mine, "key").unwrap(), None);
    assert_eq!((db.iter().unwrap().count(), other.iter().unwrap().count()), (0, 1));
}
