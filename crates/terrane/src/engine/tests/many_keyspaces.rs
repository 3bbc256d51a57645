//! What very many keyspaces cost. Counts stand in for times.

use std::sync::Arc;

use crate::files::storage::MemoryStorage;
use crate::{Background, Db, Keyspace, KeyspaceOptions, Options};

const COUNT: usize = 1000;

fn options() -> Options {
    let storage = Arc::new(MemoryStorage::new(1));
    Options::new().storage(storage).background(Background::Inline)
}

fn names() -> Vec<String> {
    (0..COUNT).map(|number| format!("keyspace {number}")).collect()
}

fn create(db: &Db) -> Vec<Keyspace> {
    KeyspaceOptions::new().open_all(db, &names()).unwrap()
}

/// The number of edits so far.
fn version(db: &Db) -> u64 {
    let keyspace = db.default_keyspace();
    keyspace.handle.engine.catalog.lock_manifest().as_ref().unwrap().version()
}

/// Each creation waited for the disk, and copied the maps of all keyspaces.
#[test]
fn keyspaces_that_are_opened_together_are_created_by_one_edit() {
    let options = options();
    let db = options.open("db").unwrap();
    db.keyspace("keyspace 7", KeyspaceOptions::new()).unwrap();
    let before = version(&db);
    let mut all = create(&db);
    let created = version(&db);
    assert!(created - before <= 2, "{} edits, where one and a snapshot suffice", created - before);
    assert_eq!(all[7].name(), "keyspace 7");
    all[8].put("key", "value").unwrap();
    // Existing keyspaces need no edit, and a name may occur twice.
    let twice = KeyspaceOptions::new().open_all(&db, &["keyspace 8", "keyspace 8"]).unwrap();
    assert_eq!(version(&db), created);
    assert!(twice.iter().all(|keyspace| keyspace.get("key").unwrap().is_some()));
    let refused = KeyspaceOptions::new().open_all(&db, &["new", ""]);
    assert!(refused.is_err() && !db.keyspaces().contains(&"new".to_owned()));
    all.clear();
    db.close().unwrap();
    let db = options.open("db").unwrap();
    assert_eq!(db.keyspaces().len(), COUNT + 1);
    assert!(db.rename_keyspace("keyspace 8", "eight").unwrap());
    assert!(db.keyspace("eight", KeyspaceOptions::new()).unwrap().get("key").unwrap().is_some());
    assert!(db.drop_keyspace("eight").unwrap() && !db.drop_keyspace("eight").unwrap());
}

/// Each idle keyspace had a memtable of 68 KiB, so that a few thousand filled the memory budget.
#[test]
fn keyspaces_that_are_not_written_have_no_memtables() {
    let db = options().open("db").unwrap();
    let memtables = || db.stats().memory.memtable_bytes;
    let before = memtables();
    let all = create(&db);
    assert_eq!(memtables(), before);
    all[3].put("key", "value").unwrap();
    assert!(memtables() > before);
    assert_eq!(all[3].get("key").unwrap().unwrap(), "value");
    assert_eq!(all[4].get("key").unwrap(), None);
    db.flush().unwrap();
    assert_eq!(memtables(), before, "a keyspace that was flushed is idle again");
    all[3].put("key", "again").unwrap();
    assert_eq!(all[3].get("key").unwrap().unwrap(), "again");
}

/// Memtables of a few bytes take 8 KiB each, so that their entries say little about their memory.
#[test]
fn very_many_small_memtables_are_flushed_within_the_memory_budget() {
    let db = options().memory_budget(8 << 20).open("db").unwrap();
    let all = create(&db);
    let mut most = 0;
    for keyspace in &all {
        keyspace.put("key", "value").unwrap();
        most = db.stats().memory.memtable_bytes.max(most);
    }
    let plan = db.default_keyspace().handle.engine.context.memory_plan;
    let allowed = plan.unused_bytes(0, 0, 0) as u64;
    // Between two measurements, the memtables may exceed what they may take by less than a quarter of it.
    assert!((allowed / 4..allowed / 4 * 5).contains(&most), "{most} of {allowed} bytes");
    assert!(all.iter().all(|keyspace| keyspace.get("key").unwrap().is_some()));
}

/// Memtables whose entries take less than 256 KiB but whose memory takes more counted neither as small nor as large,
/// so that nothing flushed them.
#[test]
fn many_memtables_of_medium_size_are_flushed_within_the_memory_budget() {
    for memtable in ["btree", "skiplist", "hash-skiplist(prefix=4, buckets=20000)"] {
        let design = format!("balanced; memtable={memtable}").parse().unwrap();
        let db = options().memory_budget(16 << 20).design(design).open("db").unwrap();
        let (plan, mut most) = (db.default_keyspace().handle.engine.context.memory_plan, 0);
        for number in 0..60 {
            let keyspace = KeyspaceOptions::new().design(db.design());
            let keyspace = db.keyspace(&format!("keyspace {number}"), keyspace).unwrap();
            for key in 0..44 {
                keyspace.put(format!("key {key}"), [7; 4000]).unwrap();
                most = db.stats().memory.memtable_bytes.max(most);
            }
        }
        let allowed = plan.unused_bytes(0, 0, 0) as u64;
        assert!(most < allowed / 4 * 5, "{memtable}: {most} of {allowed} bytes");
    }
}

/// A keyspace that was dropped stayed registered, and nothing would ever remove it.
#[test]
fn a_dropped_keyspace_is_not_visited() {
    let db = options().open("db").unwrap();
    for number in 0..10 {
        let dropped = db.keyspace("dropped", KeyspaceOptions::new()).unwrap();
        dropped.put("key", "value").unwrap();
        if number % 2 == 0 {
            dropped.flush().unwrap();
        }
        assert!(db.drop_keyspace("dropped").unwrap());
        assert!(dropped.put("key", "value").is_err());
    }
    let attention = &db.default_keyspace().handle.engine.context.attention;
    let sets = [&attention.memtables, &attention.flushes, &attention.compactions, &attention.drops];
    assert!(sets.iter().all(|set| set.is_empty()), "{attention:?}");
}

/// The keyspaces were flushed one after the other, and each synced its table, the directory and the
/// manifest.
#[test]
fn keyspaces_with_few_entries_are_flushed_together() {
    let options = options();
    let db = options.open("db").unwrap();
    let all = create(&db);
    all.iter().for_each(|keyspace| keyspace.put("key", "value").unwrap());
    let before = version(&db);
    let engine = &db.default_keyspace().handle.engine;
    let catalog = Arc::clone(&engine.catalog);
    drop(all);
    db.close().unwrap();
    drop(catalog);
    let db = options.open("db").unwrap();
    // One edit for each group, and a few for closing and opening.
    assert!(version(&db) - before < COUNT as u64 / 32, "{} edits", version(&db) - before);
    assert_eq!(db.stats().replayed_writes, 0);
    let all = create(&db);
    assert!(all.iter().all(|keyspace| keyspace.get("key").unwrap().is_some()));
}
