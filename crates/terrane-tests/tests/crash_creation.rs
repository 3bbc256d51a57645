//! Interrupts the creation of a database or a checkpoint at every call, up to three times in a row.
//!
//! The parent directory is empty when recording starts, so the crash points include the creation of
//! directories. After each crash and each fault the next opening must create or open the database,
//! and writes that were acknowledged as durable must survive.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests"
)]

use std::io::ErrorKind as Io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use terrane::storage::{
    CrashPoint, DiskStorage, Fault, FaultStorage, MemoryStorage, Operation, Storage,
};
use terrane::{Db, Error, ErrorKind, OpenMode};
use terrane_testkit::{Rng, print_counts, seed_from_env};

use terrane_tests::openings::{crashes, in_memory, options};

const PATHS: [&str; 5] = ["db", "./db", "a/b/db", "a/../db", "/a/b/db"];

/// The points to crash at: all at the first interruption, and fewer at each later one.
fn points(storage: &MemoryStorage, depth: usize, rng: &mut Rng) -> Vec<CrashPoint> {
    let mut points = storage.take_crash_points();
    assert!(points.len() > 5, "{}", points.len());
    points.retain(|_| rng.percent([100, 40, 8, 0][depth]));
    points
}

/// Returns true unless the directory holds one manifest and no file of an interrupted creation.
fn has_leftovers(storage: &dyn Storage, dir: &Path) -> bool {
    let names = storage.list(dir).unwrap();
    let count = |start: &str| names.iter().filter(|name| name.starts_with(start)).count();
    count("MANIFEST") != 1 || count("CURRENT") != 1 || count("CHECKPOINT") != 0
}

/// Opens the database, which must have the earlier write if `is_durable`, and writes. Repeats this
/// after a crash at each call of the opening.
fn open_and_crash(
    storage: &MemoryStorage,
    dir: &Path,
    is_durable: bool,
    depth: usize,
    story: &str,
    rng: &mut Rng,
) -> usize {
    storage.track_crash_points();
    storage.mark(u64::from(is_durable));
    let db = in_memory(storage).open(dir).unwrap_or_else(|error| panic!("{error}\n{story}"));
    assert!(!has_leftovers(storage, dir), "{story}");
    let found = db.get("key").unwrap();
    assert!(found.is_some() || !is_durable, "the write is lost\n{story}");
    db.put("key", "value").unwrap();
    storage.mark(1);
    // This adds a crash point after the write.
    storage.sync_dir(Path::new("")).unwrap();
    let mut opened = 1;
    for point in points(storage, depth, rng) {
        for crash in crashes(depth, rng) {
            let story = format!("{story}, then before '{}' {crash:?}", point.operation());
            let (image, is_durable) = (point.image(crash), point.mark() == 1);
            opened += open_and_crash(&image, dir, is_durable, depth + 1, &story, rng);
        }
    }
    opened
}

/// A second interruption after the manifest was written used to make the directory "corrupt", and a
/// power failure used to lose directories that had been created.
#[test]
fn a_creation_that_crashes_three_times_succeeds() {
    let seed = seed_from_env(7000);
    let mut images = 0;
    for (number, dir) in PATHS.into_iter().enumerate() {
        let seed = seed + number as u64;
        let story = format!("seed {seed}, {dir}");
        let storage = MemoryStorage::new(seed);
        let dir = Path::new(dir);
        let opened = open_and_crash(&storage, dir, false, 0, &story, &mut Rng::new(seed));
        assert!(opened > 500, "{opened} openings");
        images += opened as u64 - 1;
    }
    print_counts(&[("creation_images", images)]);
}

/// Opens the database with a fault three times and then without; returns how often the fault fired.
fn fail_three_times(storage: &Arc<dyn Storage>, dir: &Path, fault: &Fault, story: &str) -> u64 {
    let faulty = FaultStorage::new(Arc::clone(storage));
    let (mut fired, mut is_durable) = (0, false);
    for attempt in 0..3 {
        faulty.set(Some(fault.clone()));
        let opened = options(Arc::new(faulty.clone())).open(dir);
        let written = opened.and_then(|db| {
            assert!(db.get("key")?.is_some() || !is_durable, "attempt {attempt}, {story}");
            db.put("key", "value")
        });
        match written {
            Ok(()) => is_durable = true,
            Err(error) => {
                let kinds = [ErrorKind::Io, ErrorKind::Poisoned];
                assert!(kinds.contains(&error.kind()), "{error}\nattempt {attempt}, {story}");
            }
        }
        fired += faulty.fired();
    }
    let db = options(Arc::clone(storage)).open(dir);
    let db = db.unwrap_or_else(|error| panic!("{error}\n{story}"));
    assert!(db.get("key").unwrap().is_some() || !is_durable, "{story}");
    assert!(!has_leftovers(&**storage, dir), "{story}");
    db.put("key", "value").unwrap();
    fired
}

/// Makes each call of a creation fail, either once or from then on.
fn fail_everywhere(make: &dyn Fn() -> (Arc<dyn Storage>, PathBuf), error: Io) {
    for is_permanent in [true, false] {
        for after in 0.. {
            let (storage, dir) = make();
            let path_contains = String::new();
            let fault = Fault { operation: None, path_contains, after, is_permanent, error };
            let story = format!("{fault:?}, {}", dir.display());
            if fail_three_times(&storage, &dir, &fault, &story) == 0 {
                assert!(after > 20, "{after}");
                break;
            }
        }
    }
}

#[test]
fn a_creation_that_fails_three_times_succeeds() {
    for dir in PATHS {
        for error in [Io::StorageFull, Io::Other] {
            let make = || (Arc::new(MemoryStorage::new(1)) as Arc<dyn Storage>, PathBuf::from(dir));
            fail_everywhere(&make, error);
        }
    }
}

#[test]
fn a_creation_on_a_full_disk_succeeds_once_there_is_space() {
    let mut room = 0;
    loop {
        let storage = MemoryStorage::new(1);
        let dir = Path::new("a/db");
        storage.set_capacity(Some(room));
        let mut names = Vec::new();
        let mut failures = 0;
        for _ in 0..4 {
            match in_memory(&storage).open(dir) {
                Ok(_) => break,
                Err(error) => assert!(matches!(error, Error::DiskFull(_)), "{error}"),
            }
            failures += 1;
            names.push(storage.list(dir).unwrap());
        }
        // Attempts do not fill the disk with leftovers.
        assert!(names.windows(2).skip(1).all(|pair| pair[0].len() == pair[1].len()), "{names:?}");
        storage.set_capacity(None);
        let db = in_memory(&storage).open(dir).unwrap();
        db.put("key", "value").unwrap();
        assert!(!has_leftovers(&storage, dir));
        if failures == 0 {
            break;
        }
        room += if room < 4096 { 61 } else { 16 << 10 };
    }
    assert!(room > 4096, "{room}");
}

const CHILD_VARIABLE: &str = "TERRANE_CREATE_RELATIVE";

/// This is not a test of its own: the next one runs it as a process with a working directory.
#[test]
fn child_creates_databases_in_its_working_directory() {
    if std::env::var_os(CHILD_VARIABLE).is_none() {
        return;
    }
    let mut number = 0;
    for parents in ["", "./", "a/b/"] {
        let mut make = || {
            number += 1;
            (
                Arc::new(DiskStorage) as Arc<dyn Storage>,
                PathBuf::from(format!("{parents}db{number}")),
            )
        };
        let make = std::cell::RefCell::new(&mut make);
        fail_everywhere(&|| (make.borrow_mut())(), Io::StorageFull);
    }
    // The working directory is synced, and the creation fails if that sync fails.
    let storage = FaultStorage::new(Arc::new(DiskStorage));
    let here = std::env::current_dir().unwrap().display().to_string();
    let (operation, path_contains) = (Some(Operation::SyncDir), here.clone());
    let error = Io::Other;
    // `new` is synced first.
    storage.set(Some(Fault { operation, path_contains, after: 1, is_permanent: false, error }));
    let error = options(Arc::new(storage.clone())).open("new/db").unwrap_err();
    assert!(error.to_string().starts_with(&format!("cannot sync {here}:")), "{error}");
    let db = options(Arc::new(storage)).open("new/db").unwrap();
    db.put("key", "value").unwrap();
}

#[test]
fn relative_paths_on_a_disk_survive_failed_creations() {
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_creates_databases_in_its_working_directory", "--nocapture"])
        .env(CHILD_VARIABLE, "1")
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for made in ["db1", "new/db"] {
        let db = Db::open(dir.path().join(made)).unwrap();
        assert_eq!(db.get("key").unwrap().unwrap(), "value", "{made}");
    }
}

const TARGETS: [&str; 3] = ["copy", "a/b/copy", "/a/copy"];
const ENTRIES: usize = 60;

/// Creates a database with tables and a log. Nothing is written to it afterwards.
fn source() -> MemoryStorage {
    let storage = MemoryStorage::new(1);
    let design = "1-leveling T=4 L0=2 base=4KiB; buffer=2KiB; table=2KiB; block=512B";
    let db = in_memory(&storage).design(design.parse().unwrap()).open("db").unwrap();
    for number in 0..ENTRIES {
        db.put(format!("{number:03}"), [1; 90]).unwrap();
    }
    drop(db);
    storage
}

/// Returns true if the target holds the whole checkpoint. Otherwise it must hold none.
fn is_complete(storage: &MemoryStorage, target: &Path, story: &str) -> bool {
    match in_memory(storage).open_mode(OpenMode::MustExist).open(target) {
        Ok(copy) => {
            assert_eq!(copy.iter().unwrap().map(Result::unwrap).count(), ENTRIES, "{story}");
            assert!(!has_leftovers(storage, target), "{story}");
            true
        }
        Err(Error::UnfinishedCheckpoint { .. } | Error::NoDatabase { .. }) => false,
        Err(error) => panic!("{error}\n{story}"),
    }
}

/// Makes a checkpoint unless there is one, and repeats this after a crash at each of its calls.
fn checkpoint_and_crash(
    storage: &MemoryStorage,
    target: &Path,
    depth: usize,
    story: &str,
    rng: &mut Rng,
) -> usize {
    let db = in_memory(storage).open("db").unwrap_or_else(|error| panic!("{error}\n{story}"));
    storage.track_crash_points();
    storage.mark(0);
    db.checkpoint(target).unwrap_or_else(|error| panic!("{error}\n{story}"));
    storage.mark(1);
    storage.sync_dir(Path::new("")).unwrap();
    drop(db);
    let points = points(storage, depth, rng);
    assert!(is_complete(storage, target, story));
    let mut made = 1;
    for point in points {
        for crash in crashes(depth, rng) {
            let story = format!("{story}, then before '{}' {crash:?}", point.operation());
            let image = point.image(crash);
            image.track_crash_points();
            let complete = is_complete(&image, target, &story);
            assert!(complete || point.mark() == 0, "the checkpoint is lost\n{story}");
            // The opening of a complete checkpoint that still has its mark may crash as well.
            let mut later = image.take_crash_points();
            later.retain(|_| depth == 0);
            for again in later {
                let crashes = crashes(0, rng);
                let crash = *rng.pick(&crashes);
                let story = format!("{story}, then before '{}' {crash:?}", again.operation());
                let complete = is_complete(&again.image(crash), target, &story);
                assert!(complete || point.mark() == 0, "the checkpoint is lost\n{story}");
            }
            if !complete {
                made += checkpoint_and_crash(&image, target, depth + 1, &story, rng);
            }
        }
    }
    made
}

/// An interrupted checkpoint used to leave tables and logs without a manifest: a "corrupt"
/// directory that no later checkpoint could use.
#[test]
fn a_checkpoint_that_crashes_three_times_succeeds() {
    let seed = seed_from_env(8000);
    let mut images = 0;
    for (number, target) in TARGETS.into_iter().enumerate() {
        let seed = seed + number as u64;
        let story = format!("seed {seed}, {target}");
        let mut rng = Rng::new(seed);
        let made = checkpoint_and_crash(&source(), Path::new(target), 0, &story, &mut rng);
        assert!(made > 200, "{made} checkpoints");
        images += made as u64 - 1;
    }
    print_counts(&[("checkpoint_images", images)]);
}

#[test]
fn a_checkpoint_that_fails_leaves_nothing_or_a_mark() {
    let inner = source();
    let target = Path::new("a/copy");
    for is_permanent in [true, false] {
        for after in 0.. {
            let storage = inner.deep_copy();
            let faulty = FaultStorage::new(Arc::new(storage.clone()));
            let mut fired = 0;
            for _ in 0..3 {
                let db = options(Arc::new(faulty.clone())).open("db").unwrap();
                let (operation, path_contains) = (None, "copy".to_owned());
                let error = Io::StorageFull;
                faulty.set(Some(Fault { operation, path_contains, after, is_permanent, error }));
                let made = db.checkpoint(target);
                fired += faulty.fired();
                faulty.set(None);
                drop(db);
                let complete = is_complete(&storage, target, &format!("{after} {is_permanent}"));
                // If its last sync failed, a checkpoint may be complete.
                assert!(complete || made.is_err(), "{made:?}");
                if complete {
                    break;
                }
            }
            let db = in_memory(&storage).open("db").unwrap();
            match db.checkpoint(target) {
                Ok(()) => assert!(is_complete(&storage, target, "at last")),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Invalid, "{error}"),
            }
            if fired == 0 {
                assert!(after > 20, "{after}");
                break;
            }
        }
    }
}
