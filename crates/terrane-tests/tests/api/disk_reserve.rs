//! Tests that a full disk accepts deletes, and that these make room for other writes.

use std::sync::Arc;

use terrane::storage::{Crash, DiskStorage, MemoryStorage, Storage, Survival};
use terrane::{Background, Db, Durability, Options, WriteBatch, WriteOptions};

use super::disk_full::until_written;
use crate::support::{DIR, in_memory, keys, small_design};

/// The free space that a test fills.
const FREE_BYTES: u64 = 300_000;

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// Fills the disk until it refuses a put. Returns the number of entries.
fn fill_disk(db: &Db, storage: &MemoryStorage) -> u32 {
    storage.set_capacity(Some(storage.used_bytes() + FREE_BYTES));
    let refused = (0..).find(|number| db.put(key(*number), [9; 200]).is_err()).unwrap();
    assert!(refused > 100, "{refused}");
    refused
}

fn both_backgrounds(run: impl Fn(Options, MemoryStorage)) {
    for background in [Background::Inline, Background::Threads] {
        let (options, storage) = in_memory();
        run(options.design(small_design()).background(background), storage);
    }
}

/// A full disk refused deletes as well, so that only another program could make room.
#[test]
fn deletes_on_a_full_disk_make_room() {
    both_backgrounds(|options, storage| {
        let db = options.open(DIR).unwrap();
        let count = fill_disk(&db, &storage);
        for number in 0..100 {
            db.delete(key(number)).unwrap();
        }
        let mut batch = WriteBatch::new();
        batch.delete(key(count));
        db.write(&batch).unwrap();
        assert_eq!(keys(db.iter().unwrap()).len() as u32, count - 100);
        db.delete_range(key(0)..).unwrap();
        until_written(&db, "again", "1");
        assert_eq!(keys(db.iter().unwrap()), ["again"]);
        for number in 0..count / 2 {
            until_written(&db, &number.to_string(), "written again");
        }
    });
}

/// The manifest, the log and replayed memtables need space. Without a reserve such a database could be
/// neither opened nor freed of data.
#[test]
fn a_database_opens_on_a_full_disk() {
    both_backgrounds(|options, storage| {
        let db = options.clone().open(DIR).unwrap();
        let count = fill_disk(&db, &storage);
        drop(db);
        let db = options.clone().open(DIR).unwrap();
        assert_eq!(keys(db.iter().unwrap()).len() as u32, count);
        db.delete_range(key(0)..key(count / 2)).unwrap();
        drop(db);
        let db = options.open(DIR).unwrap();
        assert_eq!(keys(db.iter().unwrap()).len() as u32, count - count / 2);
        db.delete_range(key(0)..).unwrap();
        until_written(&db, "again", "1");
    });
}

/// Another program has taken all space, the last byte included.
#[test]
fn the_reserve_serves_an_opening_that_has_no_other_space() {
    both_backgrounds(|options, storage| {
        let db = options.clone().open(DIR).unwrap();
        (0..500).for_each(|number| db.put(key(number), [9; 200]).unwrap());
        drop(db);
        storage.set_capacity(Some(storage.used_bytes()));
        let db = options.open(DIR).unwrap();
        db.delete_range(key(0)..).unwrap();
        until_written(&db, "again", "1");
    });
}

/// A power failure loses neither a delete that was acknowledged as durable, nor tables for a range that
/// was not deleted.
#[test]
fn no_crash_during_deletes_on_a_full_disk_changes_the_result() {
    let (options, storage) = in_memory();
    let options = options.design(small_design()).durability(Durability::Sync);
    let db = options.clone().open(DIR).unwrap();
    let count = fill_disk(&db, &storage);
    storage.mark(1);
    storage.track_crash_points();
    db.delete_range(key(10)..key(count)).unwrap();
    storage.mark(2);
    until_written(&db, "again", "1");
    let points = storage.take_crash_points();
    assert!(points.iter().any(|point| point.mark() == 2), "no operation follows the delete");
    for (number, point) in points.iter().enumerate() {
        for percent in [0, 50, 100] {
            let crash = Crash::Power(Survival { percent, seed: number as u64 });
            let options = options.clone().storage(Arc::new(point.image(crash)));
            let db = options.open(DIR).unwrap();
            let mut left = keys(db.iter().unwrap());
            left.retain(|key| key != "again");
            let is_deleted = left.len() == 10;
            assert!(is_deleted || left.len() as u32 == count, "{} of {count}", left.len());
            assert!(is_deleted || point.mark() == 1, "a durable delete was lost");
        }
    }
}

/// A crash may lose an unlogged delete as a whole, so its range must not free tables before a flush.
#[test]
fn an_unlogged_delete_on_a_full_disk_is_lost_as_a_whole_or_not_at_all() {
    both_backgrounds(|options, storage| {
        let db = options.clone().open(DIR).unwrap();
        let count = fill_disk(&db, &storage);
        storage.track_crash_points();
        let unlogged = WriteOptions::new().durability(Durability::None);
        let mut batch = WriteBatch::new();
        batch.delete_range(key(0)..);
        db.write_with(&batch, unlogged).unwrap();
        // A logged delete makes the engine look for tables to drop.
        db.delete(key(count)).unwrap();
        drop(db);
        let mut points = storage.take_crash_points();
        points.push(storage.crash_point());
        for point in points {
            let storage = Arc::new(point.image(Crash::Process));
            let db = options.clone().storage(storage).open(DIR).unwrap();
            let left = keys(db.iter().unwrap()).len() as u32;
            assert!(left == 0 || left == count, "{left} of {count}");
        }
    });
}

#[test]
fn the_reserve_is_a_file_of_the_database() {
    let dir = tempfile::tempdir().unwrap();
    let reserve = dir.path().join("RESERVE");
    let db = Options::new().open(dir.path()).unwrap();
    assert!(!reserve.exists(), "a small database takes no more space than it needs");
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    assert_eq!(DiskStorage.len(&reserve).unwrap(), 1 << 20);
    drop(db);
    std::fs::remove_file(&reserve).unwrap();
    drop(Options::new().open(dir.path()).unwrap());
    assert_eq!(DiskStorage.len(&reserve).unwrap(), 1 << 20);
    Options::new().destroy(dir.path()).unwrap();
    assert!(!reserve.exists());
}
