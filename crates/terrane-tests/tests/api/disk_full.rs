//! Tests a full disk: calls return the right error, acknowledged writes survive, and writes resume
//! once there is space.

use std::sync::Arc;
use std::time::{Duration, Instant};

use terrane::storage::{Fault, FaultStorage, Operation};
use terrane::{Background, Db, Error, ErrorKind};

use crate::support::{DIR, in_memory, keys, small_design};

/// Writes an entry as soon as the database accepts writes again.
pub(crate) fn until_written(db: &Db, key: &str, value: &str) {
    let since = Instant::now();
    while let Err(error) = db.put(key, value) {
        assert!(matches!(error, Error::DiskFull(_)), "{error}");
        assert!(since.elapsed() < Duration::from_secs(60), "writes do not resume");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_full_disk_error_names_file_and_remedy_and_passes() {
    let (options, storage) = in_memory();
    let db = options.clone().design(small_design()).open(DIR).unwrap();
    storage.set_capacity(Some(storage.used_bytes() + 20_000));
    let mut kept = 0u32;
    let error = loop {
        match db.put(kept.to_be_bytes(), [9; 200]) {
            Ok(()) => kept += 1,
            Err(error) => break error,
        }
        assert!(kept < 10_000, "the disk never fills up");
    };
    assert!(matches!(error, Error::DiskFull(_)), "{error}");
    assert_eq!(error.kind(), ErrorKind::Io);
    let Error::DiskFull(failure) = &error else { panic!("{error}") };
    assert!(failure.path.starts_with(DIR), "{error}");
    let text = error.to_string();
    assert!(text.contains("disk full") && text.contains("once there is space"), "{text}");
    // Reads work and find all acknowledged writes.
    assert_eq!(db.iter().unwrap().map(Result::unwrap).count(), kept as usize);
    storage.set_capacity(None);
    until_written(&db, "resumed", "by itself");
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    drop(db);
    let db = options.open(DIR).unwrap();
    assert_eq!(keys(db.iter().unwrap()).len(), kept as usize + 1);
    assert!(db.stats().error.is_none());
}

#[test]
fn a_checkpoint_on_a_full_disk_leaves_nothing_behind() {
    use terrane::storage::Storage;
    let (options, storage) = in_memory();
    let db = options.design(small_design()).open(DIR).unwrap();
    db.put("k", [1; 3000]).unwrap();
    db.flush().unwrap();
    // Space may run out in a table, in the log or in the manifest.
    let used = storage.used_bytes();
    let mut failures = 0;
    for room in (0u64..).step_by(64) {
        storage.set_capacity(Some(used + room));
        let Err(error) = db.checkpoint("copy") else { break };
        failures += 1;
        assert!(matches!(error, Error::DiskFull(_)), "{error}");
        let left = storage.list(std::path::Path::new("copy")).unwrap();
        assert!(left.is_empty(), "{left:?} with room for {room}");
    }
    assert!(failures > 10, "{failures}");
    storage.set_capacity(None);
}

#[test]
fn a_full_disk_is_not_asked_for_a_log_file_by_every_write() {
    let (options, memory) = in_memory();
    let storage = FaultStorage::new(Arc::new(memory));
    let options = options.storage(Arc::new(storage.clone())).background(Background::Threads);
    let db = options.log_segment_bytes(1 << 20).open(DIR).unwrap();
    storage.set(Some(Fault {
        operation: Some(Operation::Create),
        path_contains: ".log".into(),
        after: 0,
        is_permanent: true,
        error: std::io::ErrorKind::StorageFull,
    }));
    let mut written = 0;
    while db.put("key", [7; 100]).is_ok() {
        written += 1;
        assert!(written < 100_000, "the segment never fills up");
    }
    assert!(written > 1000, "{written}");
    // Four attempts in the second half of the segment, and one by the failed write.
    assert!((1..=5).contains(&storage.fired()), "{} attempts", storage.fired());
    let (since, attempts) = (Instant::now(), storage.fired());
    assert!((0..10_000).all(|_| db.put("key", [7; 100]).is_err()));
    let pauses = since.elapsed().as_millis() as u64 / 250;
    assert!(storage.fired() <= attempts + 1 + pauses, "{} attempts", storage.fired());
}
