//! Checkpoints: a second database, made while the first one is in use.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use terrane::storage::{DiskStorage, MemoryStorage, Storage};
use terrane::{Background, Db, Error, ErrorKind, KeyspaceOptions, Options, WriteBatch};
use terrane_testkit::StopOnDrop;

use crate::support::{DIR, fill, in_memory, keys, pairs, small_design};

#[test]
fn a_checkpoint_holds_all_contents_and_is_independent() {
    let (options, _) = in_memory();
    let db = options.clone().design(small_design()).open(DIR).unwrap();
    let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
    fill(&db, 200, 0);
    db.flush().unwrap();
    db.delete_range("050".."100").unwrap();
    other.put("k", "v").unwrap();
    let before = pairs(db.iter().unwrap());
    db.checkpoint("copy").unwrap();
    db.put("later", "not in the copy").unwrap();
    let copy = options.open("copy").unwrap();
    assert_eq!(pairs(copy.iter().unwrap()), before);
    assert_eq!(copy.design(), small_design());
    assert_eq!(
        keys(copy.keyspace("other", KeyspaceOptions::new()).unwrap().iter().unwrap()),
        ["k"]
    );
    // Neither database affects the other.
    copy.delete_range(..).unwrap();
    copy.compact_range(..).unwrap();
    assert_eq!(db.iter().unwrap().count(), 151);
    db.delete_range(..).unwrap();
    db.compact_range(..).unwrap();
    copy.put("mine", "1").unwrap();
    drop(copy);
    assert_eq!(keys(options.open("copy").unwrap().iter().unwrap()), ["mine"]);
}

#[test]
fn tables_are_shared_by_hard_links_on_a_disk() {
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir().unwrap();
    let (source, target) = (dir.path().join("db"), dir.path().join("copy"));
    let db = Options::new().design(small_design()).open(&source).unwrap();
    fill(&db, 100, 0);
    db.checkpoint(&target).unwrap();
    let shared = std::fs::read_dir(&target)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().extension().is_some_and(|end| end == "sst"));
    let mut count = 0;
    for table in shared {
        let (here, there) =
            (table.metadata().unwrap(), source.join(table.file_name()).metadata().unwrap());
        assert_eq!((here.ino(), here.dev()), (there.ino(), there.dev()));
        count += 1;
    }
    assert!(count > 0);
    db.close().unwrap();
    let copy = Db::open(&target).unwrap();
    assert_eq!(copy.iter().unwrap().count(), 100);
    assert!(terrane::inspect::verify(&target, &mut |_| {}).unwrap().problems.is_empty());
}

#[test]
fn a_directory_with_files_in_it_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (source, target) = (dir.path().join("db"), dir.path().join("copy"));
    let db = Db::open(&source).unwrap();
    db.put("a", "1").unwrap();
    std::fs::create_dir(&target).unwrap();
    std::fs::write(target.join("notes"), "mine").unwrap();
    let error = db.checkpoint(&target).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("copy"), "{error}");
    assert_eq!(std::fs::read_to_string(target.join("notes")).unwrap(), "mine");
    assert_eq!(std::fs::read_dir(&target).unwrap().count(), 1);
    let inside = db.checkpoint(&source).unwrap_err();
    assert_eq!(inside.kind(), ErrorKind::Invalid);
    std::fs::remove_file(target.join("notes")).unwrap();
    db.checkpoint(&target).unwrap();
}

/// Threads write numbers in order to two keyspaces while checkpoints are made. Each checkpoint can
/// be opened and holds a prefix of the numbers, which is the same in both keyspaces.
#[test]
fn checkpoints_while_writing_open_and_hold_a_prefix() {
    let storage = MemoryStorage::new(3);
    let options = Options::new()
        .storage(Arc::new(storage))
        .background(Background::Threads)
        .memory_budget(16 << 20)
        .log_segment_bytes(64 << 10);
    let db = options.clone().design(small_design()).open(DIR).unwrap();
    let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0u32.. {
                if is_done.load(Ordering::SeqCst) {
                    break;
                }
                let mut batch = WriteBatch::new();
                batch.put(number.to_be_bytes(), [number as u8; 60]);
                batch.put_in(&other, number.to_be_bytes(), [number as u8; 20]);
                db.write(&batch).unwrap();
            }
        });
        let stop = StopOnDrop(&is_done);
        let mut before = 0;
        for round in 0..20 {
            let dir = format!("copy {round}");
            db.checkpoint(&dir).unwrap();
            let copy = options.open(&dir).unwrap_or_else(|error| panic!("round {round}: {error}"));
            let there = copy.keyspace("other", KeyspaceOptions::new()).unwrap();
            let mut count = 0u32;
            for (a, b) in copy.iter().unwrap().zip(there.iter().unwrap()) {
                assert_eq!(a.unwrap().0, count.to_be_bytes());
                assert_eq!(b.unwrap().0, count.to_be_bytes());
                count += 1;
            }
            assert_eq!(copy.iter().unwrap().count(), there.iter().unwrap().count());
            assert!(count >= before);
            before = count;
        }
        drop(stop);
        assert!(before > 0);
    });
}

/// A process that died while it wrote a checkpoint left tables and a log without a manifest: a
/// "corrupt" directory, which the next checkpoint refused.
#[test]
fn an_unfinished_checkpoint_says_so_and_is_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let (source, target) = (dir.path().join("db"), dir.path().join("a/b/copy"));
    let db = Options::new().design(small_design()).open(&source).unwrap();
    fill(&db, 100, 0);
    db.checkpoint(&target).unwrap();
    assert!(!target.join("CHECKPOINT").exists());
    std::fs::remove_file(target.join("CURRENT")).unwrap();
    std::fs::write(target.join("CHECKPOINT"), "").unwrap();
    for error in [
        Db::open(&target).unwrap_err(),
        Db::open_read_only(&target).unwrap_err(),
        terrane::inspect::verify(&target, &mut |_| {}).unwrap_err(),
        terrane::inspect::manifest(&target).unwrap_err(),
    ] {
        assert!(matches!(error, Error::UnfinishedCheckpoint { .. }), "{error}");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("copy' contains an unfinished checkpoint"), "{error}");
    }
    // Foreign files are not removed.
    std::fs::write(target.join("notes"), "mine").unwrap();
    let error = db.checkpoint(&target).unwrap_err();
    assert!(error.to_string().contains("copy, which contains notes"), "{error}");
    assert!(target.join("CHECKPOINT").exists());
    std::fs::remove_file(target.join("notes")).unwrap();
    // A checkpoint that a process is still writing is not replaced.
    let lock = DiskStorage.lock(&target.join("CHECKPOINT")).unwrap();
    assert_eq!(db.checkpoint(&target).unwrap_err().kind(), ErrorKind::Locked);
    drop(lock);
    db.checkpoint(&target).unwrap();
    // A crash may keep the mark of a checkpoint that is complete.
    std::fs::write(target.join("CHECKPOINT"), "").unwrap();
    assert_eq!(db.checkpoint(&target).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(Db::open_read_only(&target).unwrap().iter().unwrap().count(), 100);
    assert_eq!(Db::open(&target).unwrap().iter().unwrap().count(), 100);
    assert!(!target.join("CHECKPOINT").exists());
}

/// A checkpoint into a directory with files used to flush all memtables before it was refused.
#[test]
fn a_refused_checkpoint_flushes_nothing() {
    let (options, _) = in_memory();
    let db = options.open(DIR).unwrap();
    db.put("key", "value").unwrap();
    let flushes = db.stats().flushes;
    assert!(db.checkpoint(DIR).is_err());
    assert_eq!(db.stats().flushes, flushes);
}

#[test]
fn the_files_of_a_checkpoint_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let (source, target) = (dir.path().join("db"), dir.path().join("copy"));
    let design = format!("{}; values=separate(64,file=16KiB)", small_design());
    let db = Options::new().design(design.parse().unwrap()).open(&source).unwrap();
    db.keyspace("other", KeyspaceOptions::new()).unwrap().put("k", "v").unwrap();
    for key in 0..300u32 {
        db.put(key.to_be_bytes(), "value".repeat(key as usize)).unwrap();
    }
    db.checkpoint(&target).unwrap();
    let found = terrane::inspect::files(&target).unwrap();
    let mut listed: Vec<_> =
        found.files.iter().map(|file| (file.name.clone(), file.bytes)).collect();
    listed.sort();
    let is_listed = |name: &str| name.ends_with(".sst") || name.ends_with(".val");
    let mut there: Vec<_> = std::fs::read_dir(&target)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len()))
        .filter(|(name, _)| is_listed(name))
        .collect();
    there.sort();
    assert_eq!(listed, there);
    for file in &found.files {
        assert_eq!(file.checksum.is_some(), file.name.ends_with(".sst"), "{file:?}");
        assert!(file.is_final || file.name.ends_with(".val"), "{file:?}");
    }
    assert!(found.files.iter().any(|file| file.name.ends_with(".val")));
    let names: Vec<&str> = found.keyspaces.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((names, found.database % 2), (vec!["default", "other"], 1));
    let original = terrane::inspect::files(&source).unwrap();
    assert_eq!(original.database, found.database);
    assert!(terrane::inspect::files(dir.path().join("none")).is_err());
    assert!(terrane::inspect::files(dir.path()).is_err());
}
