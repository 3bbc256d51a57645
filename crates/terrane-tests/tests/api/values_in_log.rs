//! Large values that a memtable does not copy, because they are in the log.

use std::path::Path;
use std::sync::Arc;

use terrane::storage::{Fault, FaultStorage, MemoryStorage, Operation, Storage};
use terrane::{
    Background, Db, Design, ErrorKind, Iter, KeyspaceOptions, Options, WriteBatch, WriteOptions,
};
use terrane_testkit::contains;

use crate::support::{DIR, in_memory};

/// Values from 1 KiB on are separated, and those from 2 KiB on not copied into memtables.
fn design(values: &str) -> Design {
    let text = "1-leveling T=4 L0=2 base=1MiB; buffer=32KiB; table=16KiB; block=512B";
    format!("{text}; values={values}").parse().unwrap()
}

fn value(number: u32, round: u32) -> Vec<u8> {
    let name = format!("the value {number} of round {round} ");
    name.bytes().cycle().take(2048 + number as usize).collect()
}

fn key(number: u32) -> String {
    format!("{number:03}")
}

fn fill(db: &Db, numbers: std::ops::Range<u32>, round: u32) {
    numbers.for_each(|number| db.put(key(number), value(number, round)).unwrap());
}

fn entries(iter: Iter) -> Vec<(String, Vec<u8>)> {
    iter.map(|entry| entry.map(|(key, value)| (text(&key), value.to_vec())).unwrap()).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn expected(numbers: std::ops::Range<u32>, round: u32) -> Vec<(String, Vec<u8>)> {
    numbers.map(|number| (key(number), value(number, round))).collect()
}

fn files(storage: &MemoryStorage, ending: &str) -> Vec<String> {
    let names = storage.list(Path::new(DIR)).unwrap();
    names.into_iter().filter(|name| name.ends_with(ending)).collect()
}

/// A storage in memory whose calls can fail, and options for it.
fn faulty() -> (Options, FaultStorage, MemoryStorage) {
    let (options, storage) = in_memory();
    let fault = FaultStorage::new(Arc::new(storage.clone()));
    (options.storage(Arc::new(fault.clone())), fault, storage)
}

fn fail(fault: &FaultStorage, operation: Operation, path: &str) {
    fault.set(Some(Fault {
        operation: Some(operation),
        path_contains: path.into(),
        after: 0,
        is_permanent: true,
        error: std::io::ErrorKind::Other,
    }));
}

#[test]
fn every_read_finds_a_value_that_the_memtable_did_not_copy() {
    let mut large = design("separate(1KiB)");
    large.buffer_bytes = 2 << 20;
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().background(Background::Inline).design(large);
    let db = options.clone().open(dir.path()).unwrap();
    let keyspace = db.keyspace("default", KeyspaceOptions::new()).unwrap();
    keyspace.set_merge_operator("append").unwrap();
    let before = db.stats().memory.memtable_bytes;
    let long = |number: u8| vec![number; 70_000 + usize::from(number)];
    for number in 0..10 {
        db.put([number], long(number)).unwrap();
    }
    assert!(
        db.stats().memory.memtable_bytes - before < 100_000,
        "{}",
        db.stats().memory.memtable_bytes
    );
    assert!(db.tree().memtable_bytes > 700_000, "the values count towards the size of the buffer");
    let size = keyspace.approximate_size(..).unwrap();
    assert!(size > 600_000, "{size}");
    let snapshot = db.snapshot();
    let mut batch = WriteBatch::new();
    batch.put([0], long(100)).put([1], "short").delete([2]).merge([3], "+").put([10], long(10));
    db.write(&batch).unwrap();
    let check = |db: &Db| {
        let mut expected: Vec<(u8, Vec<u8>)> =
            (4..=10).map(|number| (number, long(number))).collect();
        expected.insert(0, (3, [long(3), b"+".to_vec()].concat()));
        expected.insert(0, (1, b"short".to_vec()));
        expected.insert(0, (0, long(100)));
        let pair = |entry: terrane::Result<(terrane::Key, terrane::Value)>| {
            entry.map(|(key, value)| (key[0], value.to_vec())).unwrap()
        };
        assert!(db.iter().unwrap().map(pair).eq(expected.iter().cloned()));
        assert!(db.iter().unwrap().rev().map(pair).eq(expected.iter().rev().cloned()));
        for (key, value) in &expected {
            assert!(db.get([*key]).unwrap().unwrap() == *value, "{key}");
            assert!(db.contains([*key]).unwrap());
        }
        let keys: Vec<[u8; 1]> = (0..11).map(|number| [number]).collect();
        let found = db.multi_get(&keys).unwrap();
        assert_eq!(found.iter().flatten().count(), expected.len());
        assert!(found.iter().flatten().zip(&expected).all(|(found, (_, value))| *found == *value));
        assert!(db.get([2]).unwrap().is_none());
    };
    check(&db);
    let explained = keyspace.explain([7]).unwrap().to_string();
    assert!(explained.contains("70007") || explained.contains("70,007"), "{explained}");
    let put_again = |transaction: &mut terrane::Transaction| {
        assert!(transaction.get([7])?.unwrap() == long(7));
        transaction.put([7], long(7));
        Ok(())
    };
    db.transaction(put_again).unwrap();
    check(&db);
    assert!(snapshot.get([0]).unwrap().unwrap() == long(0));
    db.flush().unwrap();
    check(&db);
    assert!(snapshot.get([2]).unwrap().unwrap() == long(2));
    assert!(snapshot.iter().unwrap().count() == 10);
    drop(snapshot);
    db.compact_range(..).unwrap();
    check(&db);
    drop((db, keyspace));
    check(&options.open(dir.path()).unwrap());
}

#[test]
fn a_flush_writes_and_reads_no_value() {
    let (options, storage) = in_memory();
    let db = options.clone().design(design("separate(1KiB)")).open(DIR).unwrap();
    fill(&db, 0..100, 1);
    db.flush().unwrap();
    let stats = db.stats();
    assert_eq!(stats.value_bytes_read, 0);
    assert!(stats.flush_bytes_written < 50_000, "{}", stats.flush_bytes_written);
    assert!(stats.flushes > 5, "the values count towards the size of a memtable");
    assert!(!files(&storage, ".val").is_empty());
    assert_eq!(entries(db.iter().unwrap()), expected(0..100, 1));
    drop(db);
    assert_eq!(entries(options.open(DIR).unwrap().iter().unwrap()), expected(0..100, 1));
}

/// The name of a segment goes once its values are flushed, and so does its name as a value file once they
/// are overwritten, but readers still have its values in memtables.
#[test]
fn readers_keep_segments_that_have_no_name_any_more() {
    let (options, storage) = in_memory();
    let large = design("separate(1KiB)");
    let db = options.design(large.clone()).open(DIR).unwrap();
    let other = db.keyspace("other", KeyspaceOptions::new().design(large)).unwrap();
    for number in 0..30 {
        other.put(key(number), value(number, 7)).unwrap();
    }
    fill(&db, 0..200, 1);
    let mut ahead = db.iter().unwrap();
    assert!(ahead.advance().unwrap());
    let snapshot = db.snapshot();
    let of_snapshot = snapshot.iter().unwrap();
    let of_other = other.iter().unwrap();
    let logs = files(&storage, ".log");
    drop(other);
    db.drop_keyspace("other").unwrap();
    for round in 2..20 {
        fill(&db, 0..200, round);
        db.flush().unwrap();
    }
    db.compact_range(..).unwrap();
    let logs_left = files(&storage, ".log");
    assert!(logs.iter().all(|log| !logs_left.contains(log)), "{logs:?}, {logs_left:?}");
    assert_eq!(entries(of_snapshot), expected(0..200, 1));
    assert_eq!(entries(of_other), expected(0..30, 7));
    assert!(ahead.value() == value(0, 1));
    assert_eq!(entries(ahead), expected(1..200, 1));
    assert_eq!(snapshot.get("123").unwrap().unwrap(), value(123, 1));
    assert_eq!(entries(db.iter().unwrap()), expected(0..200, 19));
}

/// The log usually uses a file again. Nothing is flushed here that could keep it.
#[test]
fn the_log_uses_no_file_again_from_which_readers_of_a_dropped_keyspace_read() {
    let (options, _) = in_memory();
    // Longer files are not used again.
    let options = options.log_segment_bytes(256 << 10).design(design("inline"));
    let db = options.open(DIR).unwrap();
    let mut large = design("separate(1KiB)");
    large.buffer_bytes = 1 << 20;
    let keyspace = db.keyspace("dropped", KeyspaceOptions::new().design(large)).unwrap();
    let long = |number: u8| vec![number; 64 << 10];
    (0..10).for_each(|number| keyspace.put([number], long(number)).unwrap());
    let iter = keyspace.iter().unwrap();
    drop(keyspace);
    db.drop_keyspace("dropped").unwrap();
    for number in 0..3000 {
        db.put(key(number), [7; 1000]).unwrap();
    }
    let mut count = 0;
    for (number, entry) in (0..).zip(iter) {
        assert!(entry.unwrap().1 == long(number), "{number}");
        count += 1;
    }
    assert_eq!(count, 10);
}

/// A segment with much else is not worth keeping as a value file.
#[test]
fn values_of_a_segment_with_much_else_move_to_a_value_file() {
    let (options, storage) = in_memory();
    let db = options.clone().design(design("separate(1KiB,garbage=20%)")).open(DIR).unwrap();
    let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
    for number in 0..100 {
        db.put(key(number), value(number, 1)).unwrap();
        other.put(key(number), [7; 1000]).unwrap();
    }
    let reader = db.iter().unwrap();
    db.flush().unwrap();
    let is_log =
        |name: &String| storage.read(&Path::new(DIR).join(name)).unwrap().starts_with(b"TERRLOG");
    let names = files(&storage, ".val");
    assert!(!names.is_empty() && !names.iter().any(is_log), "{names:?}");
    assert_eq!(entries(db.iter().unwrap()), expected(0..100, 1));
    assert_eq!(entries(reader), expected(0..100, 1));
    drop(db);
    drop(other);
    assert_eq!(entries(options.open(DIR).unwrap().iter().unwrap()), expected(0..100, 1));
}

/// The flush gives the segment its name and takes it back, because no table refers to it.
#[test]
fn a_segment_whose_first_values_are_dead_is_used_by_the_next_flush() {
    let (options, storage) = in_memory();
    let options = options.log_segment_bytes(1 << 20);
    let db = options.clone().design(design("separate(1KiB)")).open(DIR).unwrap();
    let reader = {
        fill(&db, 0..10, 1);
        let reader = db.iter().unwrap();
        db.delete_range(..).unwrap();
        reader
    };
    db.flush().unwrap();
    assert_eq!(files(&storage, ".val"), [""; 0]);
    for round in 2..5 {
        fill(&db, 0..10, round);
        db.flush().unwrap();
        assert_eq!(entries(db.iter().unwrap()), expected(0..10, round));
    }
    assert_eq!(entries(reader), expected(0..10, 1));
    drop(db);
    assert_eq!(entries(options.open(DIR).unwrap().iter().unwrap()), expected(0..10, 4));
}

#[test]
fn a_new_design_moves_values_into_tables() {
    let (options, storage) = in_memory();
    let db = options.clone().design(design("separate(1KiB)")).open(DIR).unwrap();
    fill(&db, 0..50, 1);
    db.set_design(design("inline")).unwrap();
    fill(&db, 50..60, 1);
    assert_eq!(entries(db.iter().unwrap()), expected(0..60, 1));
    db.flush().unwrap();
    assert_eq!(files(&storage, ".val"), [""; 0]);
    assert_eq!(entries(db.iter().unwrap()), expected(0..60, 1));
    drop(db);
    assert_eq!(entries(options.open(DIR).unwrap().iter().unwrap()), expected(0..60, 1));
}

#[test]
fn unlogged_values_are_copied() {
    let (options, _) = in_memory();
    let db = options.design(design("separate(1KiB)")).open(DIR).unwrap();
    let unlogged = WriteOptions::new().durability(terrane::Durability::None);
    fill(&db, 0..3, 1);
    for number in 3..6 {
        db.put_with(key(number), value(number, 1), unlogged).unwrap();
    }
    assert_eq!(entries(db.iter().unwrap()), expected(0..6, 1));
    db.flush().unwrap();
    assert_eq!(entries(db.iter().unwrap()), expected(0..6, 1));
}

/// Each value begins a segment here. Seven of eight values were once copied, without being counted.
#[test]
fn values_of_many_threads_take_no_memory_and_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let mut large = design("separate(1KiB)");
    large.buffer_bytes = 64 << 20;
    let options = Options::new().memory_budget(64 << 20).log_segment_bytes(1 << 20);
    let db = options.clone().design(large).open(dir.path()).unwrap();
    let long = |number: u8| vec![number; (1 << 20) + usize::from(number)];
    db.put([255], long(255)).unwrap();
    let before = db.stats().memory.memtable_bytes;
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let db = &db;
            scope.spawn(move || {
                for number in (thread..32).step_by(8) {
                    db.put([number], long(number)).unwrap();
                    assert!(db.get([number]).unwrap().unwrap() == long(number));
                    let last = db.iter().unwrap().next_back().unwrap().unwrap();
                    assert!(last.1 == long(255));
                }
            });
        }
    });
    let bytes = db.stats().memory.memtable_bytes - before;
    assert!(bytes < 1 << 20, "{bytes}");
    drop(db);
    let db = options.open(dir.path()).unwrap();
    (0..32).for_each(|number| assert!(db.get([number]).unwrap().unwrap() == long(number)));
}

/// A database opens each segment once, however many keyspaces have values in it.
#[cfg(target_os = "linux")]
#[test]
fn keyspaces_share_the_descriptors_of_segments() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().background(Background::Inline);
    let db = options.open(dir.path()).unwrap();
    for number in 0..30 {
        let options = KeyspaceOptions::new().design(design("separate(1KiB)"));
        let keyspace = db.keyspace(&format!("keyspace {number}"), options).unwrap();
        keyspace.put("first", vec![number; 3000]).unwrap();
        keyspace.put("second", vec![number; 4000]).unwrap();
        assert!(keyspace.get("second").unwrap().unwrap() == vec![number; 4000]);
    }
    let is_log = |path: &std::path::PathBuf| {
        path.starts_with(dir.path()) && path.extension().is_some_and(|ending| ending == "log")
    };
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let open = open.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok());
    let open = open.filter(is_log).count();
    assert!((2..=4).contains(&open), "{open}: the log and readers of its segments");
}

/// A memtable that overwrites in place reclaims the space of overwritten values, so it has them.
#[test]
fn memtables_that_overwrite_in_place_copy() {
    let (options, _) = in_memory();
    let mut large = design("separate(1KiB)");
    large.memtable = "flodb(update=in-place)".parse().unwrap();
    large.buffer_bytes = 1 << 20;
    let db = options.design(large).open(DIR).unwrap();
    for round in 0..100 {
        db.put("key", vec![round; 64 << 10]).unwrap();
    }
    assert!(db.get("key").unwrap().unwrap() == vec![99; 64 << 10]);
    assert!(db.stats().flushes < 3, "{}", db.stats().flushes);
}

/// Without a descriptor for the segment, memtables copy.
#[test]
fn values_of_a_segment_that_cannot_be_opened_are_copied() {
    let (options, fault, _) = faulty();
    let db = options.design(design("separate(1KiB)")).open(DIR).unwrap();
    fail(&fault, Operation::Open, ".log");
    fill(&db, 0..5, 1);
    assert!(fault.fired() > 0);
    fault.set(None);
    assert_eq!(entries(db.iter().unwrap()), expected(0..5, 1));
    fill(&db, 5..100, 1);
    db.flush().unwrap();
    assert_eq!(entries(db.iter().unwrap()), expected(0..100, 1));
}

/// A storage without hard links cannot keep a segment as a value file.
#[test]
fn values_move_if_the_segment_gets_no_second_name() {
    let (options, fault, _) = faulty();
    let db = options.clone().design(design("separate(1KiB)")).open(DIR).unwrap();
    fill(&db, 0..100, 1);
    fail(&fault, Operation::Name, ".val");
    db.flush().unwrap();
    assert!(fault.fired() > 0);
    fault.set(None);
    assert_eq!(entries(db.iter().unwrap()), expected(0..100, 1));
    drop(db);
    assert_eq!(entries(options.open(DIR).unwrap().iter().unwrap()), expected(0..100, 1));
}

/// A value of a memtable has no copy: a flush that cannot read it must not leave a pointer to a segment
/// that the log then frees.
#[test]
fn a_flush_that_cannot_move_a_value_fails_and_loses_nothing() {
    let (options, fault, _) = faulty();
    let db = options.clone().design(design("separate(1KiB)")).open(DIR).unwrap();
    fill(&db, 0..50, 1);
    db.set_design(design("inline")).unwrap();
    fail(&fault, Operation::Read, ".log");
    assert_eq!(db.get("007").unwrap_err().kind(), ErrorKind::Io);
    let error = db.flush().unwrap_err();
    assert!(error.to_string().contains(".log"), "{error}");
    fault.set(None);
    assert_eq!(entries(db.iter().unwrap()), expected(0..50, 1));
    db.flush().unwrap();
    assert_eq!(entries(db.iter().unwrap()), expected(0..50, 1));
    drop(db);
    assert_eq!(entries(options.open(DIR).unwrap().iter().unwrap()), expected(0..50, 1));
}

/// Damages a value in the log.
fn damage(storage: &MemoryStorage, value: &[u8]) {
    let path = Path::new(DIR).join(&files(storage, ".log")[0]);
    let mut bytes = storage.read(&path).unwrap();
    assert!(contains(&bytes, value));
    let at = bytes.windows(value.len()).position(|window| window == value).unwrap();
    bytes[at + 1000] ^= 1;
    storage.overwrite(&path, &bytes).unwrap();
}

/// The log is not read through a map, so a value that was damaged in the file is noticed.
#[test]
fn a_damaged_value_in_the_log_is_reported_with_its_file() {
    let (options, storage) = in_memory();
    let db = options.design(design("separate(1KiB)")).open(DIR).unwrap();
    fill(&db, 0..10, 1);
    damage(&storage, &value(4, 1));
    let error = db.get("004").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.to_string().contains(".log"), "{error}");
    assert_eq!(db.get("005").unwrap().unwrap(), value(5, 1));
}

/// The segment is not worth keeping, but one of its values cannot move.
#[test]
fn a_flush_keeps_a_segment_with_a_damaged_value() {
    let (options, storage) = in_memory();
    let db = options.clone().design(design("separate(1KiB,garbage=20%)")).open(DIR).unwrap();
    let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
    for number in 0..10 {
        db.put(key(number), value(number, 1)).unwrap();
        other.put(key(number), [7; 1000]).unwrap();
    }
    damage(&storage, &value(4, 1));
    db.flush().unwrap();
    for number in 0..10 {
        match number {
            4 => assert_eq!(db.get("004").unwrap_err().kind(), ErrorKind::Corruption),
            _ => assert_eq!(db.get(key(number)).unwrap().unwrap(), value(number, 1)),
        }
    }
    // Later flushes and an opening have nothing to do with it.
    fill(&db, 20..60, 1);
    db.flush().unwrap();
    db.put("004", value(4, 2)).unwrap();
    db.flush().unwrap();
    assert_eq!(db.get("004").unwrap().unwrap(), value(4, 2));
    other.flush().unwrap();
    drop((db, other));
    let db = options.open(DIR).unwrap();
    assert_eq!(db.get("004").unwrap().unwrap(), value(4, 2));
    assert_eq!(db.get("005").unwrap().unwrap(), value(5, 1));
}
