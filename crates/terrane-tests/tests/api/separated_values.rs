//! Values that are stored apart from their keys.

use std::path::Path;
use std::sync::Arc;

use terrane::storage::{Access, Fault, FaultStorage, MemoryStorage, Operation, Storage};
use terrane::{Background, Db, Design, ErrorKind, KeyspaceOptions, Options, WriteBatch, inspect};
use terrane_testkit::contains;

use crate::support::{DIR, in_memory};

fn design(values: &str) -> Design {
    let text = "1-leveling T=4 L0=2 base=16KiB; buffer=4KiB; table=4KiB; block=512B";
    format!("{text}; values={values}").parse().unwrap()
}

fn open(values: &str) -> (Db, Options, MemoryStorage) {
    let (options, storage) = in_memory();
    (options.clone().design(design(values)).open(DIR).unwrap(), options, storage)
}

/// A value of 100 bytes or more, which names key and round.
fn large(number: u32, round: u32) -> String {
    format!("{:<100}", format!("the large value {number} of round {round}"))
}

/// Puts large and small values. The small ones make up more than a fifth of the log, so at
/// `garbage=20%` a flush leaves no values in the log.
fn fill(db: &Db, count: u32, round: u32) {
    for number in 0..count {
        db.put(format!("{number:03}"), large(number, round)).unwrap();
        db.put(format!("{number:03} small"), "small").unwrap();
    }
}

fn check(db: &Db, count: u32, round: u32) {
    for number in 0..count {
        let found = db.get(format!("{number:03}")).unwrap();
        assert_eq!(found.as_deref(), Some(large(number, round).as_bytes()), "{number}");
        assert_eq!(db.get(format!("{number:03} small")).unwrap().unwrap(), "small");
    }
    let expected: Vec<(String, String)> = (0..count)
        .flat_map(|number| {
            let small = (format!("{number:03} small"), "small".to_owned());
            [(format!("{number:03}"), large(number, round)), small]
        })
        .collect();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let pair = |entry: terrane::Result<(terrane::Key, terrane::Value)>| {
        let (key, value) = entry.unwrap();
        (text(&key), text(&value))
    };
    assert_eq!(db.iter().unwrap().map(pair).collect::<Vec<_>>(), expected);
    let mut back: Vec<_> = db.iter().unwrap().rev().map(pair).collect();
    back.reverse();
    assert_eq!(back, expected);
    let keys: Vec<String> = expected.iter().map(|(key, _)| key.clone()).collect();
    let values = db.multi_get(&keys).unwrap();
    assert!(
        values.iter().zip(&expected).all(|(found, (_, value))| found.as_ref().unwrap() == value)
    );
    let mut iter = db.iter().unwrap();
    for (key, value) in &expected {
        assert!(iter.advance().unwrap());
        assert_eq!((text(iter.key()), text(iter.value())), (key.clone(), value.clone()));
    }
    assert!(!iter.advance().unwrap());
}

fn value_files(storage: &MemoryStorage) -> Vec<String> {
    let names = storage.list(Path::new(DIR)).unwrap();
    names.into_iter().filter(|name| name.ends_with(".val")).collect()
}

#[test]
fn large_values_are_in_value_files_and_read_back() {
    let (db, options, storage) = open("separate(100,garbage=20%,file=4KiB)");
    fill(&db, 200, 1);
    db.flush().unwrap();
    assert!(value_files(&storage).len() > 3);
    check(&db, 200, 1);
    db.compact_range(..).unwrap();
    check(&db, 200, 1);
    db.close().unwrap();
    let db = options.clone().open(DIR).unwrap();
    check(&db, 200, 1);
    db.close().unwrap();
    let db = options.open_read_only(DIR).unwrap();
    check(&db, 200, 1);
}

#[test]
fn files_without_live_values_are_removed() {
    let (db, _, storage) = open("separate(100,garbage=20%,file=4KiB)");
    for round in 0..5 {
        fill(&db, 100, round);
    }
    db.compact_range(..).unwrap();
    check(&db, 100, 4);
    let bytes = |names: &[String]| -> u64 {
        names.iter().map(|name| storage.len(&Path::new(DIR).join(name)).unwrap()).sum()
    };
    let files = value_files(&storage);
    assert!(bytes(&files) < 30_000, "{} bytes in {files:?}", bytes(&files));
    db.delete_range(..).unwrap();
    db.compact_range(..).unwrap();
    db.wait_for_compactions().unwrap();
    assert_eq!(value_files(&storage), [""; 0]);
}

/// Dead values used to stay in files that also held live ones.
#[test]
fn compacting_a_range_removes_dead_values_from_files_with_live_ones() {
    let is_stored = |storage: &MemoryStorage, value: &str| {
        value_files(storage).iter().any(|name| {
            let bytes = storage.read(&Path::new(DIR).join(name)).unwrap();
            contains(&bytes, value.as_bytes())
        })
    };
    // Unlogged values are in no log segment; a segment would keep the dead ones.
    let (options, storage) = in_memory();
    let options = options.durability(terrane::Durability::None);
    let values = design("separate(100,garbage=100%,space=100,file=4KiB)");
    let db = options.design(values).open(DIR).unwrap();
    fill(&db, 100, 1);
    db.compact_range(..).unwrap();
    db.delete("041").unwrap();
    db.put("077", large(77, 2)).unwrap();
    db.compact_range("035".."045").unwrap();
    db.compact_range("077"..="077").unwrap();
    assert!(!is_stored(&storage, &large(41, 1)) && !is_stored(&storage, &large(77, 1)));
    assert!(is_stored(&storage, &large(40, 1)) && is_stored(&storage, &large(77, 2)));
    db.delete_range("003".."097").unwrap();
    db.compact_range(..).unwrap();
    for number in 0..100 {
        let is_live = !(3..97).contains(&number);
        assert_eq!(is_stored(&storage, &large(number, 1)), is_live, "{number}");
        assert_eq!(db.get(format!("{number:03}")).unwrap().is_some(), is_live, "{number}");
    }
}

#[test]
fn a_design_without_separated_values_brings_them_back() {
    let (db, _, storage) = open("separate(100,garbage=20%)");
    fill(&db, 100, 1);
    db.compact_range(..).unwrap();
    assert!(!value_files(&storage).is_empty());
    db.set_design(design("inline")).unwrap();
    check(&db, 100, 1);
    fill(&db, 100, 2);
    db.compact_range(..).unwrap();
    assert_eq!(value_files(&storage), [""; 0]);
    check(&db, 100, 2);
    db.set_design(design("separate(64)")).unwrap();
    fill(&db, 20, 3);
    db.delete_range("020"..).unwrap();
    db.compact_range(..).unwrap();
    assert!(!value_files(&storage).is_empty());
    check(&db, 20, 3);
}

#[test]
fn snapshots_and_iterators_keep_removed_files() {
    let (db, _, storage) = open("separate(100,garbage=20%,file=4KiB)");
    fill(&db, 50, 1);
    db.flush().unwrap();
    let snapshot = db.snapshot();
    let mut iter = db.iter().unwrap();
    assert!(iter.advance().unwrap());
    fill(&db, 50, 2);
    db.compact_range(..).unwrap();
    assert_eq!(snapshot.get("007").unwrap().unwrap(), large(7, 1));
    assert_eq!(iter.count(), 99);
    drop(snapshot);
    fill(&db, 50, 3);
    db.compact_range(..).unwrap();
    check(&db, 50, 3);
    assert!(value_files(&storage).len() < 5);
}

#[test]
fn a_scan_of_keys_reads_no_values() {
    let (db, _, _) = open("separate(100)");
    fill(&db, 100, 1);
    db.flush().unwrap();
    let before = db.stats().value_bytes_read;
    let mut keys = db.iter().unwrap().keys_only();
    let mut count = 0;
    while keys.advance().unwrap() {
        assert!(keys.value().is_empty() && keys.key().len() >= 3);
        count += 1;
    }
    let snapshot = db.snapshot();
    for number in 0..100 {
        let key = format!("{number:03}");
        assert!(db.contains(&key).unwrap() && snapshot.contains(&key).unwrap());
    }
    assert!(!db.contains("no such key").unwrap());
    assert_eq!((count, db.stats().value_bytes_read), (200, before));
    assert_eq!(db.range("010".."020").unwrap().count(), 20);
    assert_eq!(db.stats().value_bytes_read - before, 1000, "the value after the range is not read");
}

/// A database with separated values, with the first `count` keys of one byte, each with a value of `len` bytes.
fn open_with_large_values(budget: u64, count: u8, len: usize) -> Db {
    let design = "balanced; buffer=4MiB; values=separate(4KiB)".parse().unwrap();
    let db = in_memory().0.design(design).memory_budget(budget).open(DIR).unwrap();
    (0..count).for_each(|key| db.put([key], vec![key; len]).unwrap());
    db.flush().unwrap();
    db
}

/// Returns how many of `lookups` lookups of a value read it from its file.
fn reads(db: &Db, key: u8, lookups: u64) -> u64 {
    let before = db.stats().value_bytes_read;
    let len = (0..lookups).map(|_| db.get([key]).unwrap().unwrap().len()).max().unwrap();
    (db.stats().value_bytes_read - before) / len as u64
}

/// Values above 128 KiB were never cached, so that each lookup of one read all of it, also from a cache of gigabytes.
#[test]
fn lookups_cache_large_values_that_are_small_next_to_the_cache() {
    // A page that is being prepared keeps the first ones outside of the cache.
    assert!((1..4).contains(&reads(&open_with_large_values(512 << 20, 1, 1 << 20), 0, 20)));
    assert_eq!(reads(&open_with_large_values(16 << 20, 1, 1 << 20), 0, 20), 20, "a small cache");
    assert_eq!(reads(&open_with_large_values(1 << 30, 1, 5 << 20), 0, 5), 5, "above 4 MiB");
}

#[test]
fn scans_use_cached_large_values_and_cache_none() {
    let db = open_with_large_values(512 << 20, 2, 1 << 20);
    reads(&db, 0, 20);
    let before = db.stats().value_bytes_read;
    (0..5).for_each(|_| assert_eq!(db.iter().unwrap().count(), 2));
    (0..5).for_each(|_| assert_eq!(db.iter().unwrap().rev().count(), 2));
    assert_eq!(db.stats().value_bytes_read - before, 10 << 20, "only the second value is read");
}

#[test]
fn dropped_keyspaces_and_checkpoints() {
    let (db, options, storage) = open("separate(100)");
    let other =
        db.keyspace("other", KeyspaceOptions::new().design(design("separate(50)"))).unwrap();
    fill(&db, 50, 1);
    other.put("key", large(1, 1)).unwrap();
    db.flush().unwrap();
    db.checkpoint("copy").unwrap();
    let before = value_files(&storage).len();
    db.drop_keyspace("other").unwrap();
    drop(other);
    assert_eq!(value_files(&storage).len(), before - 1);
    fill(&db, 50, 2);
    db.compact_range(..).unwrap();
    check(&db, 50, 2);
    let copy = options.open("copy").unwrap();
    check(&copy, 50, 1);
    let other = copy.keyspace("other", KeyspaceOptions::new()).unwrap();
    assert_eq!(other.get("key").unwrap().unwrap(), large(1, 1));
}

#[test]
fn a_damaged_value_is_reported_and_harms_no_other() {
    let (db, options, storage) = open("separate(100,garbage=10%,file=4KiB)");
    fill(&db, 60, 1);
    db.close().unwrap();
    let damaged = large(7, 1);
    let holder = value_files(&storage).into_iter().find(|name| {
        let bytes = storage.read(&Path::new(DIR).join(name)).unwrap();
        contains(&bytes, damaged.as_bytes())
    });
    let holder = holder.unwrap();
    let path = Path::new(DIR).join(&holder);
    let mut bytes = storage.read(&path).unwrap();
    let at = bytes.windows(100).position(|window| window == damaged.as_bytes()).unwrap();
    bytes[at + 50] ^= 1;
    storage.overwrite(&path, &bytes).unwrap();
    let db = options.open(DIR).unwrap();
    let error = db.get("007").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.to_string().contains(&holder), "{error}");
    assert_eq!(db.get("008").unwrap().unwrap(), large(8, 1));
    let mut iter = db.iter().unwrap();
    let error = loop {
        match iter.advance() {
            Ok(is_left) => assert!(is_left && iter.key() < b"007".as_slice()),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(!iter.advance().unwrap(), "a failed scan has ended");
    drop(iter);
    let back: Vec<_> = db.iter().unwrap().rev().take_while(Result::is_ok).collect();
    assert_eq!(back.len(), 120 - 15);
    assert_eq!(db.iter().unwrap().keys_only().map(Result::unwrap).count(), 120);
    // Collections leave the damaged value where it is, and all other values survive them.
    for number in (0..60).filter(|number| number % 3 > 0 && *number != 7) {
        db.put(format!("{number:03}"), large(number, 2)).unwrap();
    }
    db.compact_range(..).unwrap();
    db.wait_for_compactions().unwrap();
    assert_eq!(db.get("007").unwrap_err().kind(), ErrorKind::Corruption);
    assert_eq!(db.get("009").unwrap().unwrap(), large(9, 1));
    // Moving values back into tables leaves the damaged one where it is.
    db.set_design(design("inline")).unwrap();
    db.compact_range(..).unwrap();
    db.wait_for_compactions().unwrap();
    assert_eq!(db.get("007").unwrap_err().kind(), ErrorKind::Corruption);
    assert!(value_files(&storage).contains(&holder));
    db.put("007", "written again").unwrap();
    db.compact_range(..).unwrap();
    assert!(!value_files(&storage).contains(&holder));
    assert_eq!(db.get("006").unwrap().unwrap(), large(6, 1));
}

/// Files with damaged values are not collected, so their garbage must not stop writers.
#[test]
fn garbage_of_damaged_files_does_not_stop_writers() {
    let (db, options, storage) = open("separate(100,garbage=10%,file=4KiB)");
    fill(&db, 400, 1);
    db.close().unwrap();
    for name in value_files(&storage) {
        let path = Path::new(DIR).join(&name);
        let mut bytes = storage.read(&path).unwrap();
        bytes.iter_mut().skip(100).step_by(50).for_each(|byte| *byte ^= 1);
        storage.overwrite(&path, &bytes).unwrap();
    }
    let db = options.open(DIR).unwrap();
    let is_kept = |number: &u32| number.is_multiple_of(10);
    for round in 2..5 {
        for number in (0..400).filter(|number| !is_kept(number)) {
            db.put(format!("{number:03}"), large(number, round)).unwrap();
        }
        db.flush().unwrap();
    }
    db.compact_range(..).unwrap();
    let tree = db.tree();
    let by_shape = terrane_policy::admit(&tree.shape, 0, &tree.design);
    assert!(matches!(by_shape, terrane_policy::Admission::Stop(_)), "{}", tree.shape);
    assert_eq!(tree.admission, terrane_policy::Admission::Proceed);
    db.put("400", large(400, 5)).unwrap();
    assert_eq!(db.get("011").unwrap().unwrap(), large(11, 4));
    assert_eq!(db.get("010").unwrap_err().kind(), ErrorKind::Corruption);
}

/// Flips a bit in a value of each value file, and returns the numbers of these values.
fn damage_each_file(storage: &MemoryStorage, count: u32) -> Vec<u32> {
    let mut damaged = Vec::new();
    for name in value_files(storage) {
        let path = Path::new(DIR).join(&name);
        let mut bytes = storage.read(&path).unwrap();
        let place_of = |number: &u32| {
            let value = large(*number, 1);
            bytes.windows(value.len()).position(|window| window == value.as_bytes())
        };
        let Some(number) = (0..count).find(|number| place_of(number).is_some()) else { continue };
        let at = place_of(&number).unwrap();
        bytes[at + 50] ^= 1;
        storage.overwrite(&path, &bytes).unwrap();
        damaged.push(number);
    }
    damaged
}

/// A file with one damaged value used to be never collected, so its garbage kept writers waiting.
#[test]
fn a_collection_leaves_only_the_damaged_values_behind() {
    let (db, options, storage) = open("separate(100,garbage=20%,space=1.1,file=4KiB)");
    fill(&db, 300, 1);
    db.close().unwrap();
    let damaged = damage_each_file(&storage, 300);
    assert!(damaged.len() > 5, "{damaged:?}");
    let old = value_files(&storage);
    let db = options.open(DIR).unwrap();
    let is_kept = |number: &u32| number.is_multiple_of(3) || damaged.contains(number);
    for round in 2..6 {
        for number in (0..300).filter(|number| !is_kept(number)) {
            db.put(format!("{number:03}"), large(number, round)).unwrap();
        }
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    assert_eq!(db.stats().error.unwrap().kind(), ErrorKind::Corruption);
    for number in 0..300 {
        let found = db.get(format!("{number:03}"));
        if damaged.contains(&number) {
            assert_eq!(found.unwrap_err().kind(), ErrorKind::Corruption, "{number}");
        } else {
            let round = if is_kept(&number) { 1 } else { 5 };
            assert_eq!(found.unwrap().unwrap(), large(number, round), "{number}");
        }
    }
    let usage = db.tree().shape.value_usage();
    let number_of = |name: &String| name.split_once('-').unwrap().0.parse::<u64>().unwrap();
    let left: Vec<_> = usage
        .iter()
        .filter(|one| old.iter().any(|name| number_of(name) == one.file.id.0))
        .collect();
    // A collection leaves a file alone once it finds a damaged value, so other tables may refer to it.
    let live: u64 = left.iter().map(|one| one.live_values).sum();
    assert!(left.len() > 5 && live < 2 * left.len() as u64, "{left:?}");
    // Without the damaged values, their files can go: each opening retries their collection.
    for number in &damaged {
        db.put(format!("{number:03}"), large(*number, 5)).unwrap();
    }
    db.close().unwrap();
    let db = options.open(DIR).unwrap();
    db.compact_range(..).unwrap();
    let files = value_files(&storage);
    assert!(!files.iter().any(|name| old.contains(name)), "{files:?}");
}

/// The collection used to be retried until the database failed.
#[test]
fn a_value_file_that_the_device_cannot_read_fails_no_job() {
    let storage = MemoryStorage::new(1);
    let fault = FaultStorage::new(Arc::new(storage.clone()));
    let options = Options::new()
        .storage(Arc::new(fault.clone()))
        .background(Background::Inline)
        .design(design("separate(100,garbage=20%,space=1.2,file=4KiB)"));
    let db = options.open(DIR).unwrap();
    fill(&db, 200, 1);
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    let unreadable = value_files(&storage).remove(1);
    fault.set(Some(Fault {
        operation: Some(Operation::Read),
        path_contains: unreadable.clone(),
        after: 0,
        is_permanent: true,
        error: std::io::ErrorKind::Other,
    }));
    for round in 2..5 {
        for number in (0..200).filter(|number| number % 3 > 0) {
            db.put(format!("{number:03}"), large(number, round)).unwrap();
        }
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    assert!(fault.fired() > 0);
    assert!(value_files(&storage).contains(&unreadable));
    assert!(db.stats().error.unwrap().to_string().contains(&unreadable));
    fault.set(None);
    for number in 0..200 {
        let round = if number % 3 > 0 { 4 } else { 1 };
        assert_eq!(db.get(format!("{number:03}")).unwrap().unwrap(), large(number, round));
    }
}

#[test]
fn files_with_much_garbage_are_collected() {
    let (db, options, storage) = open("separate(100,garbage=30%,space=1.3,file=4KiB)");
    for round in 0..8 {
        for number in (0..300).filter(|number| round == 0 || number % 7 == round % 7) {
            db.put(format!("{number:03}"), large(number, round)).unwrap();
        }
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    let bytes: u64 = value_files(&storage)
        .iter()
        .map(|name| storage.len(&Path::new(DIR).join(name)).unwrap())
        .sum();
    let live = 300 * (100 + 32 + 3);
    // The current segment of the log may be a value file as well.
    assert!(bytes < live * 3 / 2 + (64 << 10), "{bytes} for {live}");
    let check = |db: &Db| {
        for number in 0..300u32 {
            let round = if number % 7 == 0 { 7 } else { number % 7 };
            assert_eq!(db.get(format!("{number:03}")).unwrap().unwrap(), large(number, round));
        }
    };
    check(&db);
    db.close().unwrap();
    check(&options.open(DIR).unwrap());
}

#[test]
fn verify_and_repair_report_lost_values() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db =
        Options::new().design(design("separate(100,garbage=20%,file=4KiB)")).open(&path).unwrap();
    fill(&db, 200, 1);
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    db.close().unwrap();
    let sound = inspect::verify(&path, &mut |_| {}).unwrap();
    assert!(sound.problems.is_empty(), "{:?}", sound.problems);
    assert_eq!(sound.values, 200);
    let names = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        names.filter(|path| path.extension().is_some_and(|ending| ending == "val")).collect();
    files.sort();
    // One file is missing, and in another one a value is damaged.
    std::fs::remove_file(&files[1]).unwrap();
    let mut bytes = std::fs::read(&files[2]).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&files[2], &bytes).unwrap();
    let error = Db::open(&path).unwrap_err();
    let missing = files[1].file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.to_string().contains(&missing), "{error}");
    let found = inspect::verify(&path, &mut |_| {}).unwrap();
    for file in &files[1..3] {
        assert!(found.problems.iter().any(|problem| problem.path == *file), "{file:?}");
    }
    let target = dir.path().join("repaired");
    let report = inspect::repair(&path, &target).unwrap();
    assert_eq!(report.problems.len(), 2, "{:?}", report.problems);
    let repaired = Db::open(&target).unwrap();
    let mut lost = 0;
    for number in 0..200 {
        assert_eq!(repaired.get(format!("{number:03} small")).unwrap().unwrap(), "small");
        match repaired.get(format!("{number:03}")).unwrap() {
            Some(value) => assert_eq!(value, large(number, 1)),
            None => lost += 1,
        }
    }
    assert!((2..60).contains(&lost), "{lost}");
    assert_eq!(repaired.iter().unwrap().count(), 400 - lost);
}

/// A design whose memtables copy all values of the test.
fn large_buffer() -> Design {
    let mut design = design("separate(100)");
    design.buffer_bytes = 1 << 20;
    design
}

/// The engine records the positions of values while it writes them. A flush that had to read the log to
/// find them would be as slow as one that rewrites them.
#[test]
fn a_flush_takes_values_from_the_log_without_reading_it() {
    let storage = MemoryStorage::new(1);
    let fault = FaultStorage::new(Arc::new(storage.clone()));
    let options = Options::new()
        .storage(Arc::new(fault.clone()))
        .background(Background::Inline)
        .design(large_buffer());
    let db = options.clone().open(DIR).unwrap();
    let other_options = KeyspaceOptions::new().design(large_buffer());
    let other = db.keyspace("other", other_options).unwrap();
    fault.set(Some(Fault {
        operation: Some(Operation::Read),
        path_contains: ".log".into(),
        after: 0,
        is_permanent: true,
        error: std::io::ErrorKind::Other,
    }));
    let long = |number: u32| format!("{:<3000}", format!("the long value {number}"));
    for number in 0..100 {
        db.put(format!("{number:03}"), large(number, 1)).unwrap();
        db.put(format!("{number:03} long"), long(number)).unwrap();
        let mut batch = WriteBatch::new();
        batch.put(format!("{number:03} first"), large(number, 2));
        batch.put_in(&other, format!("{number:03}"), long(number));
        batch.put(format!("{number:03} last"), large(number, 3));
        db.write(&batch).unwrap();
    }
    db.flush().unwrap();
    other.flush().unwrap();
    assert_eq!(fault.fired(), 0);
    fault.set(None);
    let starts = |name: &String| {
        let file = storage.open(&Path::new(DIR).join(name), Access::Buffered).unwrap();
        let mut start = [0; 7];
        file.read_at(0, &mut start).unwrap();
        start
    };
    assert!(value_files(&storage).iter().any(|name| starts(name) == *b"TERRLOG"));
    let check = |db: &Db| {
        let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
        for number in 0..100 {
            let get = |suffix: &str| db.get(format!("{number:03}{suffix}")).unwrap().unwrap();
            assert_eq!(get(""), large(number, 1));
            assert_eq!(get(" long"), long(number));
            assert_eq!(get(" first"), large(number, 2));
            assert_eq!(get(" last"), large(number, 3));
            assert_eq!(other.get(format!("{number:03}")).unwrap().unwrap(), long(number));
        }
    };
    check(&db);
    db.close().unwrap();
    check(&options.open(DIR).unwrap());
}
