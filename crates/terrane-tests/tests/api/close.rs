//! Tests closing a database, either explicitly for all handles or by dropping the last handle.

use terrane::{Durability, Error, KeyspaceOptions, WriteBatch, WriteOptions};

use crate::support::{DIR, fill, in_memory, keys, small_design};

#[test]
fn after_close_every_call_of_every_handle_says_closed() {
    let (options, _) = in_memory();
    let db = options.clone().design(small_design()).open(DIR).unwrap();
    let space = db.keyspace("s", KeyspaceOptions::new()).unwrap();
    fill(&db, 100, 0);
    let (clone, snapshot, iter) = (db.clone(), db.snapshot(), db.iter().unwrap());
    db.close().unwrap();
    let mut batch = WriteBatch::new();
    batch.put("k", "v");
    for refused in [
        clone.put("k", "v"),
        clone.delete("k"),
        clone.delete_range("a".."b"),
        clone.write(&batch),
        clone.get("000").map(drop),
        clone.multi_get(["000"]).map(drop),
        clone.contains("000").map(drop),
        clone.iter().map(drop),
        clone.range("a".."b").map(drop),
        clone.prefix("a").map(drop),
        clone.keyspace("s", KeyspaceOptions::new()).map(drop),
        clone.drop_keyspace("s").map(drop),
        clone.flush(),
        clone.sync(),
        clone.compact_range(..),
        clone.checkpoint("copy"),
        clone.set_design(small_design()),
        clone.run_background_job().map(drop),
        space.put("k", "v"),
        space.get("k").map(drop),
        space.iter().map(drop),
        snapshot.get("000").map(drop),
        snapshot.iter().map(drop),
        snapshot.get_in(&space, "k").map(drop),
    ] {
        assert!(matches!(refused, Err(Error::Closed)), "{refused:?}");
    }
    assert!(Error::Closed.to_string().contains("open it again"));
    // An iterator keeps its pins, and counters stay readable.
    assert_eq!(keys(iter).len(), 100);
    assert_eq!(clone.stats().writes, 100);
    // The database is closed although handles exist.
    let again = options.open(DIR).unwrap();
    assert_eq!(again.iter().unwrap().count(), 100);
    clone.close().unwrap();
    again.put("still", "open").unwrap();
}

#[test]
fn close_leaves_nothing_to_replay_and_drop_leaves_the_log() {
    let (options, _) = in_memory();
    let db = options.open(DIR).unwrap();
    fill(&db, 10, 0);
    db.close().unwrap();
    let db = options.open(DIR).unwrap();
    assert_eq!((db.stats().replayed_writes, db.stats().table_entries), (0, 10));
    fill(&db, 5, 1);
    drop(db);
    let db = options.open(DIR).unwrap();
    assert_eq!((db.stats().replayed_writes, db.stats().table_entries), (5, 10));
    assert_eq!(db.iter().unwrap().count(), 10);
}

#[test]
fn drop_loses_the_unlogged_writes_that_were_not_flushed() {
    let (options, _) = in_memory();
    let options = options.durability(Durability::None);
    let db = options.open(DIR).unwrap();
    db.put("flushed", "1").unwrap();
    db.flush().unwrap();
    db.put("lost", "2").unwrap();
    db.put_with("logged", "3", WriteOptions::new().durability(Durability::Process)).unwrap();
    drop(db);
    let db = options.open(DIR).unwrap();
    assert_eq!(keys(db.iter().unwrap()), ["flushed", "logged"]);
}

#[test]
fn close_keeps_unlogged_writes() {
    let (options, _) = in_memory();
    let none = WriteOptions::new().durability(Durability::None);
    let db = options.open(DIR).unwrap();
    db.put_with("kept", "by close", none).unwrap();
    db.close().unwrap();
    let db = options.open(DIR).unwrap();
    assert_eq!(keys(db.iter().unwrap()), ["kept"]);
    db.put_with("lost", "with the handle", none).unwrap();
    db.put("logged", "v").unwrap();
    drop(db);
    assert_eq!(keys(options.open(DIR).unwrap().iter().unwrap()), ["kept", "logged"]);
}

#[test]
fn values_and_iterators_outlive_a_closed_database_and_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let db = terrane::Db::open(dir.path().join("db")).unwrap();
    fill(&db, 100, 0);
    db.flush().unwrap();
    let (value, iter) = (db.get("042").unwrap().unwrap(), db.iter().unwrap());
    db.close().unwrap();
    std::fs::remove_dir_all(dir.path().join("db")).unwrap();
    assert_eq!(value, crate::support::value(42, 0));
    assert_eq!(iter.map(Result::unwrap).count(), 100);
}
