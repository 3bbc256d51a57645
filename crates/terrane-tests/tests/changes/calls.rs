//! The batches, errors and positions of a feed, and waiting.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrane::storage::{MemoryStorage, Storage};
use terrane::{
    Background, Db, Durability, Error, ErrorKind, KeepChanges, KeyspaceOptions, ManualClock,
    Options, WriteBatch, WriteOptions,
};

use crate::{all, follow, position, text};

fn options(storage: &MemoryStorage) -> Options {
    Options::new()
        .storage(Arc::new(storage.clone()))
        .background(Background::Inline)
        .clock(Arc::new(ManualClock::new(1_000_000)))
        .keep_changes(KeepChanges::bytes(8 << 20))
}

fn open(storage: &MemoryStorage) -> Db {
    options(storage).open("db").unwrap()
}

#[test]
fn batches_have_all_operations_in_order() {
    let storage = MemoryStorage::new(1);
    let db = open(&storage);
    let counters = db.keyspace("counters", KeyspaceOptions::new()).unwrap();
    counters.set_merge_operator("append").unwrap();
    db.put("a", "1").unwrap();
    let mut batch = WriteBatch::new();
    batch.put("b", "2").delete("a").delete_range("c".."d").merge_in(&counters, "m", "x");
    db.write(&batch).unwrap();
    db.put_with("e", "3", WriteOptions::new().ttl(Duration::from_secs(5))).unwrap();
    db.clear().unwrap();
    let mut changes = db.changes(0).unwrap();
    let expected = [
        (1, 1, "default: a = 1"),
        (2, 5, "default: b = 2, default: delete a, default: delete c..d, counters: m += x"),
        (6, 6, "default: e = 3 until 6000000"),
        (7, 7, "default: delete .."),
    ];
    let expected = expected.map(|(first, last, text)| (first, last, text.to_owned()));
    assert_eq!(all(&mut changes), expected);
    assert_eq!(changes.position(), 7);
    assert!(changes.next().is_none());
    // The end is not final: later writes follow.
    db.put("f", "4").unwrap();
    assert_eq!(all(&mut changes), [(8, 8, "default: f = 4".to_owned())]);
    for since in [1, 5, 6, 7, 8] {
        let found = all(&mut db.changes(since).unwrap());
        assert_eq!(found.first().map_or(9, |(first, ..)| *first), since + 1);
    }
    db.close().unwrap();
    // Closing flushes everything, and positions stay.
    let db = open(&storage);
    assert_eq!(all(&mut db.changes(0).unwrap())[..4], expected);
    db.put("g", "5").unwrap();
    assert_eq!(all(&mut db.changes(8).unwrap()), [(9, 9, "default: g = 5".to_owned())]);
}

#[test]
fn changes_are_refused_if_they_are_not_kept() {
    let storage = MemoryStorage::new(1);
    let kind = |error: Error| (error.kind(), error.to_string());
    let db = options(&storage).keep_changes(KeepChanges::NONE).open("db").unwrap();
    let (of, text) = kind(db.changes(0).unwrap_err());
    assert!(of == ErrorKind::Invalid && text.contains("keep_changes"), "{text}");
    drop(db);
    let db = open(&storage);
    db.put("a", "1").unwrap();
    let mut batch = WriteBatch::new();
    batch.put("b", "2").put("c", "3");
    db.write(&batch).unwrap();
    let (of, text) = kind(db.changes(4).unwrap_err());
    assert!(of == ErrorKind::Invalid && text.contains("last write, 3"), "{text}");
    let mut within = db.changes(2).unwrap();
    for _ in 0..2 {
        let (of, text) = kind(within.next().unwrap().unwrap_err());
        assert!(of == ErrorKind::Invalid && text.contains("within a batch"), "{text}");
    }
    let mut changes = db.changes(0).unwrap();
    assert!(changes.next().is_some());
    db.close().unwrap();
    assert_eq!(changes.next().unwrap().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(changes.wait(Duration::MAX).unwrap_err().kind(), ErrorKind::Closed);
    let persistent = options(&storage).delete_persistence(Duration::from_secs(60)).open("db");
    assert!(persistent.unwrap_err().to_string().contains("delete_persistence"));
    let reader = options(&storage).open_read_only("db").unwrap();
    assert_eq!(reader.changes(0).unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn writes_that_are_not_in_the_log_are_reported() {
    let storage = MemoryStorage::new(1);
    let db = open(&storage);
    let unlogged = WriteOptions::new().durability(Durability::None);
    db.put_with("a", "1", unlogged).unwrap();
    db.put_with("b", "2", unlogged).unwrap();
    // These numbers may be used again after a crash, so they are not reported yet.
    assert_eq!(all(&mut db.changes(0).unwrap()), []);
    db.put("c", "3").unwrap();
    let gap = |first, last| (first, last, "not logged".to_owned());
    let expected = vec![gap(1, 2), (3, 3, "default: c = 3".to_owned())];
    assert_eq!(all(&mut db.changes(0).unwrap()), expected);
    db.ingest([("x", "1"), ("y", "2")]).unwrap();
    // A committed ingest is durable when the call returns.
    let mut changes = db.changes(3).unwrap();
    let last = db.snapshot().sequence_number();
    assert_eq!(all(&mut changes), [gap(4, last)]);
    db.put("d", "4").unwrap();
    assert_eq!(all(&mut changes), [(last + 1, last + 1, "default: d = 4".to_owned())]);
    // So are other writes once they are flushed.
    db.put_with("e", "5", unlogged).unwrap();
    assert_eq!(all(&mut changes), []);
    db.flush().unwrap();
    assert_eq!(all(&mut changes), [gap(last + 2, last + 2)]);
    db.close().unwrap();
    let db = open(&storage);
    assert_eq!(all(&mut db.changes(last + 1).unwrap()), [gap(last + 2, last + 2)]);
}

#[test]
fn unlogged_writes_that_a_crash_undid_are_not_skipped() {
    let storage = MemoryStorage::new(1);
    let db = open(&storage);
    db.put("a", "1").unwrap();
    let mut changes = db.changes(0).unwrap();
    assert_eq!(all(&mut changes).len(), 1);
    db.put_with("b", "2", WriteOptions::new().durability(Durability::None)).unwrap();
    assert_eq!((all(&mut changes), changes.position()), (vec![], 1));
    drop((changes, db));
    // The write is lost, and the next one has its number.
    let db = open(&storage);
    db.put("c", "3").unwrap();
    assert_eq!(all(&mut db.changes(1).unwrap()), [(2, 2, "default: c = 3".to_owned())]);
}

#[test]
fn a_dropped_keyspace_has_a_number_and_a_renamed_one_its_new_name() {
    let storage = MemoryStorage::new(1);
    let db = open(&storage);
    let [first, second] =
        ["first", "second"].map(|name| db.keyspace(name, KeyspaceOptions::new()).unwrap());
    first.put("a", "1").unwrap();
    second.put("b", "2").unwrap();
    db.drop_keyspace("first").unwrap();
    db.rename_keyspace("second", "third").unwrap();
    db.keyspace("first", KeyspaceOptions::new()).unwrap();
    let listed = db.changes(0).unwrap().keyspaces();
    let listed: Vec<_> = listed.iter().map(|one| (one.id(), one.name().unwrap())).collect();
    assert_eq!(listed, [(0, "default"), (2, "third"), (3, "first")]);
    let expected = ["number 1: a = 1", "third: b = 2"];
    let found = all(&mut db.changes(0).unwrap());
    assert_eq!(found.into_iter().map(|(.., text)| text).collect::<Vec<_>>(), expected);
}

#[test]
fn waiting_ends_with_the_next_write_the_timeout_or_closing() {
    let db = Options::new()
        .storage(Arc::new(MemoryStorage::new(1)))
        .keep_changes(KeepChanges::bytes(1 << 20))
        .open("db")
        .unwrap();
    let mut changes = db.changes(0).unwrap();
    assert_eq!(all(&mut changes), []);
    assert!(!changes.wait(Duration::from_millis(1)).unwrap());
    let writer = db.clone();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        writer.put("a", "1").unwrap();
    });
    assert!(changes.wait(Duration::MAX).unwrap());
    assert_eq!(all(&mut changes).len(), 1);
    thread.join().unwrap();
    // A write that the feed does not return yet ends the wait once.
    db.put_with("b", "2", WriteOptions::new().durability(Durability::None)).unwrap();
    assert!(changes.wait(Duration::MAX).unwrap());
    assert_eq!(all(&mut changes), []);
    assert!(!changes.wait(Duration::from_millis(1)).unwrap());
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        db.close().unwrap();
    });
    assert_eq!(changes.wait(Duration::MAX).unwrap_err().kind(), ErrorKind::Closed);
    thread.join().unwrap();
}

/// A follower syncs the log itself instead of waiting for the syncs of writers; a follower that
/// includes unsynced writes does not sync it.
#[test]
fn following_durable_writes_syncs_the_log_once_a_round() {
    let storage = MemoryStorage::new(1);
    let db = open(&storage);
    let syncs = || db.stats().log_syncs;
    let mut changes = db.changes(0).unwrap();
    for round in 0..3 {
        let before = syncs();
        for number in 0..10 {
            db.put(format!("{round} {number}"), "").unwrap();
        }
        assert_eq!(syncs(), before);
        let mut unsynced = db.changes(round * 10).unwrap().include_unsynced();
        assert_eq!((all(&mut unsynced).len(), syncs()), (10, before));
        assert_eq!((all(&mut changes).len(), syncs()), (10, before + 1));
    }
}

#[test]
fn a_damaged_segment_is_an_error_with_its_file_and_offset() {
    let storage = MemoryStorage::new(1);
    let db = open(&storage);
    for number in 0..100 {
        db.put(format!("{number:03}"), [7; 1000]).unwrap();
    }
    db.flush().unwrap();
    let mut changes = db.changes(0).unwrap();
    assert!(changes.next().unwrap().is_ok());
    let dir = Path::new("db");
    let names = storage.list(dir).unwrap();
    let log = names.iter().find(|name| name.ends_with(".log")).unwrap();
    let mut bytes = storage.read(&dir.join(log)).unwrap();
    bytes[40_000] ^= 1;
    storage.overwrite(&dir.join(log), &bytes).unwrap();
    let mut changes = db.changes(0).unwrap();
    let error = changes.by_ref().find_map(Result::err).unwrap();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.to_string().contains(".log at byte 3"), "{error}");
    let position = changes.position();
    assert!((30..40).contains(&position), "{position}");
    // The damaged record is not skipped.
    let again = changes.next().unwrap().unwrap_err();
    assert_eq!((again.to_string(), changes.position()), (error.to_string(), position));
}

#[test]
fn expiry_times_and_merges_are_repeated_exactly() {
    let (leading, following) = (MemoryStorage::new(1), MemoryStorage::new(2));
    let db = open(&leading);
    let clock = Arc::new(ManualClock::new(3_000_000));
    let follower = options(&following).clock(clock.clone()).open("db").unwrap();
    for db in [&db, &follower] {
        let counters = db.keyspace("counters", KeyspaceOptions::new()).unwrap();
        counters.set_merge_operator("counter_add").unwrap();
    }
    let counters = db.keyspace("counters", KeyspaceOptions::new()).unwrap();
    for _ in 0..5 {
        counters.merge("n", 2_i64.to_le_bytes()).unwrap();
    }
    db.put_with("a", "1", WriteOptions::new().ttl(Duration::from_secs(5))).unwrap();
    let mut changes = db.changes(0).unwrap();
    assert_eq!(follow(&mut changes, &follower).unwrap(), 6);
    assert_eq!(position(&follower), 6);
    let copy = follower.keyspace("counters", KeyspaceOptions::new()).unwrap();
    assert_eq!(copy.get("n").unwrap().unwrap(), 10_i64.to_le_bytes());
    // The value was put at second 1 and expires at second 6, although it was copied at second 3.
    clock.advance(Duration::from_micros(2_999_999));
    assert_eq!(follower.get("a").unwrap().unwrap(), "1");
    clock.advance(Duration::from_micros(1));
    assert_eq!(follower.get("a").unwrap(), None);

    let batch = db.changes(5).unwrap().next().unwrap().unwrap();
    let expiring = batch.iter().next().unwrap();
    assert!(text(&expiring).ends_with("until 6000000"));
    let mut mixed = WriteBatch::new();
    mixed.repeat_in(&copy, &expiring).put_with_ttl("b", "2", Duration::from_secs(1));
    assert_eq!(follower.write(&mixed).unwrap_err().kind(), ErrorKind::Invalid);
    let mut unknown = WriteBatch::new();
    unknown.repeat_in(&copy, &terrane::Change::NotLogged);
    assert_eq!(follower.write(&unknown).unwrap_err().kind(), ErrorKind::Invalid);
}
