//! Tests compactions that are divided by key into subcompactions, each on its own thread.

use std::sync::Arc;

use terrane::storage::{Fault, FaultStorage, MemoryStorage, Operation, Storage};
use terrane::{Background, Db, Options};

use crate::support::{DIR, pairs};

const TABLE_BYTES: u64 = 16 << 10;

fn options(storage: Arc<dyn Storage>, threads: usize) -> Options {
    // Under this design only a manual compaction runs.
    let design = "1-leveling L0=50; buffer=64KiB; table=16KiB; block=512B; delay=90; stop=100";
    Options::new().storage(storage).design(design.parse().unwrap()).merge_threads(threads)
}

/// Writes updates, deletes by key and by range, and takes a snapshot in between.
fn write(db: &Db) -> terrane::Snapshot {
    let mut snapshot = None;
    for number in 0..6000u32 {
        let key = number.wrapping_mul(2_654_435_761) % 4000;
        db.put(key.to_be_bytes(), [number as u8; 100]).unwrap();
        if number % 7 == 0 {
            db.delete((key / 2).to_be_bytes()).unwrap();
        }
        if number % 1500 == 700 {
            db.delete_range(key.to_be_bytes().as_slice()..(key + 300).to_be_bytes().as_slice())
                .unwrap();
        }
        if number == 3000 {
            snapshot = Some(db.snapshot());
        }
    }
    snapshot.unwrap()
}

/// Returns the number of tables of the last level that are below the target size. Only the last
/// table of each subcompaction may be.
fn small_tables(db: &Db) -> usize {
    let tree = db.tree();
    let last = tree.shape.levels.last().unwrap();
    let tables = last.runs.iter().flat_map(|run| &run.tables);
    tables.filter(|table| table.size_bytes < TABLE_BYTES).count()
}

#[test]
fn subcompactions_produce_the_contents_of_the_whole_merge() {
    let mut answers = Vec::new();
    for (threads, background) in
        [(1, Background::Inline), (4, Background::Inline), (4, Background::Threads)]
    {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new(1));
        let db = options(Arc::clone(&storage), threads).background(background).open(DIR).unwrap();
        let snapshot = write(&db);
        let before = (pairs(db.iter().unwrap()), pairs(snapshot.iter().unwrap()));
        db.compact_range(..).unwrap();
        let after = (pairs(db.iter().unwrap()), pairs(snapshot.iter().unwrap()));
        assert_eq!(before, after);
        let small = small_tables(&db);
        if threads == 1 {
            assert!(small <= 1, "{}", db.tree());
        } else {
            assert!((3..=4).contains(&small), "{small} of 4 parts:\n{}", db.tree());
        }
        assert!(db.stats().compaction_bytes_written > 20 * TABLE_BYTES);
        drop(snapshot);
        db.close().unwrap();
        let db = options(storage, threads).open(DIR).unwrap();
        assert_eq!(pairs(db.iter().unwrap()), after.0);
        answers.push(after);
        db.close().unwrap();
    }
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn a_failed_subcompaction_ends_the_merge_and_leaves_no_files() {
    let storage = FaultStorage::new(Arc::new(MemoryStorage::new(1)));
    let shared: Arc<dyn Storage> = Arc::new(storage.clone());
    let db = options(shared, 4).open(DIR).unwrap();
    drop(write(&db));
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    let before = pairs(db.iter().unwrap());
    storage.set(Some(Fault {
        operation: Some(Operation::Append),
        path_contains: ".sst".into(),
        after: 5,
        is_permanent: false,
        error: std::io::ErrorKind::Other,
    }));
    assert!(db.compact_range(..).is_err());
    assert_eq!(storage.fired(), 1);
    storage.set(None);
    let tables = |db: &Db| db.tree().shape.table_count();
    let files = || {
        let names = storage.list(DIR.as_ref()).unwrap();
        names.iter().filter(|name| name.ends_with(".sst")).count()
    };
    assert_eq!(files(), tables(&db));
    assert_eq!(pairs(db.iter().unwrap()), before);
    db.compact_range(..).unwrap();
    assert_eq!(pairs(db.iter().unwrap()), before);
    db.close().unwrap();
}
