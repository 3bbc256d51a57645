//! Bug classes about the manifest, file names and file numbers.

use std::io::ErrorKind as Io;
use std::path::Path;
use std::sync::Arc;

use terrane::storage::{Access, Fault, FaultStorage, MemoryStorage, Operation, Storage};
use terrane::{Db, ErrorKind, KeyspaceOptions};

use super::{DIR, LOST, contents, crash, names, options, small_design};

/// An append to the manifest failed on a full disk, and the next one followed the torn record.
#[test]
fn a_full_disk_at_any_write_of_the_manifest_passes() {
    let mut failures = 0;
    for after in 0.. {
        let storage = FaultStorage::new(Arc::new(MemoryStorage::new(1)));
        let db = options(storage.clone()).design(small_design()).open(DIR).unwrap();
        storage.set(Some(Fault {
            operation: Some(Operation::Append),
            path_contains: "MANIFEST".into(),
            after,
            is_permanent: false,
            error: Io::StorageFull,
        }));
        let mut acknowledged = Vec::new();
        let mut attempt = |db: &Db, number: u32| {
            let (key, value) = (format!("{number:04}"), vec![number as u8; 200]);
            let outcomes = [
                db.put(&key, &value).map(|()| acknowledged.push((key.into_bytes(), value))),
                if number.is_multiple_of(20) { db.flush() } else { Ok(()) },
                db.keyspace("other", KeyspaceOptions::new()).map(drop),
                if number % 50 == 7 { db.drop_keyspace("other").map(drop) } else { Ok(()) },
            ];
            for error in outcomes.into_iter().filter_map(Result::err) {
                assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                assert!(error.to_string().contains("disk full"), "{error}");
            }
        };
        (0..100).for_each(|number| attempt(&db, number));
        let fired = storage.fired();
        storage.set(None);
        // Space is available again, and everything works without reopening.
        (100..140).for_each(|number| attempt(&db, number));
        db.flush().unwrap();
        assert_eq!(contents(&db, "default"), acknowledged, "fault {after}");
        drop(db);
        for _ in 0..2 {
            let db = options(storage.clone()).open(DIR).unwrap();
            assert_eq!(contents(&db, "default"), acknowledged, "fault {after}");
            db.close().unwrap();
        }
        if fired == 0 {
            break;
        }
        failures += 1;
    }
    assert!(failures > 5, "{failures} faults");
}

/// A database reused a file number, and found or overwrote a file that a crash had left.
#[test]
fn numbers_of_files_that_a_crash_left_are_not_used_again() {
    let storage = MemoryStorage::new(1);
    let fill = |db: &Db, round: u8| {
        for number in 0..100 {
            db.put(format!("{number:03}"), [round; 100]).unwrap();
        }
        db.flush().unwrap();
    };
    let db = options(storage.clone()).design(small_design()).open(DIR).unwrap();
    fill(&db, 0);
    db.close().unwrap();
    for round in 1..4 {
        let mut left = Vec::new();
        for name in names(&storage, "") {
            // Takes the numbers that follow the number of each file.
            let start = name.find(|letter: char| letter.is_ascii_digit());
            let Some(start) = start.filter(|_| !name.ends_with(".new")) else { continue };
            let digits = name[start..].bytes().take_while(u8::is_ascii_digit).count();
            let (number, end) = (&name[start..start + digits], &name[start + digits..]);
            let number: u64 = number.parse().unwrap();
            for next in number + 1..number + 8 {
                left.push(format!("{}{next:0digits$}{end}", &name[..start]));
            }
        }
        for name in left {
            let path = Path::new(DIR).join(name);
            if let Ok(mut file) = storage.create(&path, Access::Buffered) {
                file.append(b"left by a crash").unwrap();
                file.sync().unwrap();
            }
        }
        storage.sync_dir(Path::new(DIR)).unwrap();
        let db = options(storage.clone()).open(DIR).unwrap();
        assert_eq!(contents(&db, "default").len(), 100);
        fill(&db, round);
        for image in [crash(&storage, LOST), storage.deep_copy()] {
            let db = options(image).open(DIR).unwrap();
            let found = contents(&db, "default");
            assert!(found.len() == 100 && found.iter().all(|(_, value)| *value == [round; 100]));
        }
        db.close().unwrap();
    }
}

/// Recovery failed at entries of the directory that are not files of the database.
#[cfg(unix)]
#[test]
fn entries_with_odd_names_and_kinds_are_left_alone() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = terrane::Options::new().design(small_design()).open(&path).unwrap();
    db.put("key", "value").unwrap();
    db.close().unwrap();
    let name = |bytes: &[u8]| path.join(OsStr::from_bytes(bytes));
    let files: [&[u8]; 6] =
        [b"\xff\xfe.sst", b"00000001-\xff.sst", b"\xff.log", b"MANIFEST-\xff", b" ", b"-"];
    for file in files {
        std::fs::write(name(file), "not ours").unwrap();
    }
    let long = [b'x'; 255];
    std::fs::write(name(&long), "not ours").unwrap();
    std::fs::create_dir(name(b"notes")).unwrap();
    std::fs::create_dir(name(b"99999998.log.d")).unwrap();
    std::os::unix::fs::symlink("nowhere", name(b"link")).unwrap();
    for round in 0..3 {
        let db = Db::open(&path).unwrap();
        assert_eq!(db.get("key").unwrap().unwrap(), "value", "round {round}");
        db.put("other", format!("{round}")).unwrap();
        db.flush().unwrap();
        if round == 1 {
            db.close().unwrap();
        }
    }
    let verification = terrane::inspect::verify(&path, &mut |_| {}).unwrap();
    assert!(verification.problems.is_empty(), "{:?}", verification.problems);
    assert!(files.iter().all(|file| name(file).exists()) && name(&long).exists());
    assert!(name(b"notes").is_dir() && name(b"99999998.log.d").is_dir());
    assert!(name(b"link").symlink_metadata().is_ok());
}

/// A checkpoint lacked unsynced contents or the names of its files.
#[test]
fn a_checkpoint_that_was_made_survives_the_loss_of_power() {
    let storage = MemoryStorage::new(1);
    let db = options(storage.clone()).design(small_design()).open(DIR).unwrap();
    let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
    for copy in 0..5u8 {
        for number in 0..150u8 {
            db.put([number], [copy; 50]).unwrap();
            other.put([number], [copy; 50]).unwrap();
        }
        let target = format!("copies/{copy}");
        db.checkpoint(&target).unwrap();
        let image = crash(&storage, LOST);
        for opening in 0..2 {
            let db = options(image.clone()).open(&target).unwrap();
            for keyspace in ["default", "other"] {
                let found = contents(&db, keyspace);
                let is_whole =
                    found.len() == 150 && found.iter().all(|(_, value)| value[0] == copy);
                assert!(is_whole, "{keyspace} of checkpoint {copy}, opening {opening}");
            }
        }
    }
}
