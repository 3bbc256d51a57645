//! A separate log directory: interrupted creations and moves, and conflicts between databases.
//!
//! After each crash and each fault, the next opening finds the log where `LOGDIR` says, or moves it
//! again, and all acknowledged writes survive.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::io::ErrorKind as Io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane::storage::{CrashPoint, Fault, FaultStorage, MemoryStorage, Storage};
use terrane::{Db, Error, ErrorKind, OpenMode, Options};
use terrane_testkit::{Rng, print_counts, seed_from_env};

use terrane_tests::openings::{crashes, in_memory, options};

const DIR: &str = "db";
/// Log directories: inside the database directory, next to it, and absolute paths.
const PLACES: [&str; 4] = ["wal", "../wal", "a/b/wal", "/fast/wal"];

/// Adds the directory of the log to options, unless `place` is empty.
fn with_log(options: Options, place: &str) -> Options {
    if place.is_empty() { options } else { options.log_dir(PathBuf::from(place)) }
}

fn segments(storage: &dyn Storage, dir: &Path) -> usize {
    let names = storage.list(dir).unwrap_or_default();
    names.iter().filter(|name| name.ends_with(".log")).count()
}

/// Returns the directories of the log that have segments.
fn places_with_segments(storage: &dyn Storage) -> Vec<PathBuf> {
    let dirs = std::iter::once(PathBuf::from(DIR));
    let dirs = dirs.chain(PLACES.iter().map(|place| Path::new(DIR).join(place)));
    dirs.filter(|dir| segments(storage, dir) > 0).collect()
}

/// Opens the database with its log in `place`. It must have the first `durable` writes. Adds one, and
/// repeats this after a crash at each call of the opening, with the log in any of the `next` places.
fn open_and_crash(
    storage: &MemoryStorage,
    place: &str,
    (durable, depth): (u64, usize),
    story: &str,
    rng: &mut Rng,
) -> u64 {
    const TO: [&str; 4] = ["", "database", "wal", "/fast/wal"];
    storage.track_crash_points();
    storage.mark(durable);
    let opened = with_log(in_memory(storage), place).open(DIR);
    let db = opened.unwrap_or_else(|error| panic!("{error}\n{story}"));
    for number in 0..durable {
        assert!(db.get(number.to_string()).unwrap().is_some(), "{number} is lost\n{story}");
    }
    if place == "database" || PLACES.contains(&place) {
        let expected = if place == "database" { DIR.into() } else { Path::new(DIR).join(place) };
        assert_eq!(db.log_path(), expected, "{story}");
    }
    // An interrupted move leaves an unfinished copy, except next to the tables.
    let places = places_with_segments(storage);
    let is_expected =
        |place: &PathBuf| place == db.log_path() || (depth > 0 && place != Path::new(DIR));
    assert!(places.iter().all(is_expected), "{places:?}\n{story}");
    assert!(places.iter().any(|place| place == db.log_path()), "{places:?}\n{story}");
    let number = (0..).find(|number: &u64| db.get(number.to_string()).unwrap().is_none()).unwrap();
    db.put(number.to_string(), "value").unwrap();
    storage.mark(number + 1);
    // This adds a crash point after the write.
    storage.sync_dir(Path::new("")).unwrap();
    drop(db);
    let mut opened = 1;
    let mut points: Vec<CrashPoint> = storage.take_crash_points();
    assert!(points.len() > 5, "{}", points.len());
    points.retain(|_| rng.percent([100, 12, 0][depth]));
    for point in points {
        for crash in crashes(depth, rng) {
            let to = *rng.pick(&TO);
            let story = format!("{story}, then before '{}' {crash:?} to '{to}'", point.operation());
            let (image, durable) = (point.image(crash), point.mark());
            opened += open_and_crash(&image, to, (durable, depth + 1), &story, rng);
        }
    }
    opened
}

#[test]
fn a_creation_with_a_log_elsewhere_may_crash_twice() {
    let seed = seed_from_env(9000);
    let mut images = 0;
    for (number, place) in PLACES.into_iter().enumerate() {
        let seed = seed + number as u64;
        let story = format!("seed {seed}, {place}");
        let storage = MemoryStorage::new(seed);
        images += open_and_crash(&storage, place, (0, 0), &story, &mut Rng::new(seed)) - 1;
    }
    assert!(images > 400, "{images}");
    print_counts(&[("log_creation_images", images)]);
}

#[test]
fn a_move_of_the_log_may_crash_twice() {
    let seed = seed_from_env(9100);
    let mut images = 0;
    for (number, (from, to)) in
        [("", "wal"), ("", "/fast/wal"), ("wal", "/fast/wal"), ("wal", "database")]
            .iter()
            .enumerate()
    {
        let seed = seed + number as u64;
        let story = format!("seed {seed}, from '{from}' to '{to}'");
        let storage = MemoryStorage::new(seed);
        let db = with_log(in_memory(&storage), from).open(DIR).unwrap();
        (0..3).for_each(|number: u64| db.put(number.to_string(), "value").unwrap());
        drop(db);
        images += open_and_crash(&storage, to, (3, 0), &story, &mut Rng::new(seed)) - 1;
    }
    assert!(images > 400, "{images}");
    print_counts(&[("log_move_images", images)]);
}

/// Makes each call of an opening fail, once or from then on, and reopens with and without the fault.
#[test]
fn a_creation_or_move_that_fails_can_be_repeated() {
    for (from, to) in [(None, "wal"), (Some(""), "wal"), (Some("wal"), "database")] {
        for (is_permanent, error) in [(true, Io::StorageFull), (false, Io::Other)] {
            for after in 0.. {
                let inner = Arc::new(MemoryStorage::new(1));
                let storage: Arc<dyn Storage> = Arc::clone(&inner) as Arc<dyn Storage>;
                if let Some(from) = from {
                    let db = with_log(options(Arc::clone(&storage)), from).open(DIR).unwrap();
                    db.put("before", "value").unwrap();
                }
                let faulty = FaultStorage::new(Arc::clone(&storage));
                let fault = Fault {
                    operation: None,
                    path_contains: String::new(),
                    after,
                    is_permanent,
                    error,
                };
                let mut fired = 0;
                let mut is_written = false;
                for _ in 0..2 {
                    faulty.set(Some(fault.clone()));
                    let opened = with_log(options(Arc::new(faulty.clone())), to).open(DIR);
                    match opened.and_then(|db| db.put("key", "value")) {
                        Ok(()) => is_written = true,
                        Err(error) => {
                            let kinds = [ErrorKind::Io, ErrorKind::Poisoned];
                            assert!(kinds.contains(&error.kind()), "{error}\n{fault:?}");
                        }
                    }
                    fired += faulty.fired();
                }
                let db = with_log(options(storage), to).open(DIR);
                let db = db.unwrap_or_else(|error| panic!("{error}\n{fault:?} {from:?} {to}"));
                assert!(!is_written || db.get("key").unwrap().is_some(), "{fault:?}");
                assert!(from.is_none() || db.get("before").unwrap().is_some(), "{fault:?}");
                if fired == 0 {
                    assert!(after > 20, "{after}");
                    break;
                }
            }
        }
    }
}

fn create(storage: &MemoryStorage, dir: &str, place: &str) -> Db {
    with_log(in_memory(storage), place).open(dir).unwrap()
}

#[test]
fn two_databases_cannot_share_a_directory() {
    let storage = MemoryStorage::new(1);
    let db = create(&storage, DIR, "/wal");
    db.put("key", "value").unwrap();
    let taken = |place: &str, dir: &str| {
        let opened = with_log(in_memory(&storage), place).open(dir);
        assert!(matches!(opened, Err(Error::LogDirectoryTaken { .. })), "{place} {dir} {opened:?}");
    };
    // The directory is taken while the other database is open, and after it is closed.
    taken("/wal", "other");
    drop(db);
    taken("/wal", "other");
    // A directory with the tables of another database is taken as well.
    drop(create(&storage, "third", ""));
    taken("../third", "other");
    taken("../third", DIR);
    // The refused creation left nothing that a later one would use.
    drop(create(&storage, "other", ""));
    assert_eq!(create(&storage, DIR, "").get("key").unwrap().unwrap(), "value");
}

#[test]
fn the_directory_of_the_log_is_locked() {
    let storage = MemoryStorage::new(1);
    drop(create(&storage, DIR, "/wal"));
    let lock = storage.lock(Path::new("/wal/LOCK")).unwrap();
    let error = in_memory(&storage).open(DIR).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    drop(lock);
    create(&storage, DIR, "").put("key", "value").unwrap();
}

#[test]
fn a_log_that_is_elsewhere_is_found_or_missed_with_its_name() {
    let storage = MemoryStorage::new(1);
    create(&storage, DIR, "/wal").put("key", "value").unwrap();
    let move_files = |from: &str, to: &str| {
        storage.create_dir_all(Path::new(to)).unwrap();
        for name in storage.list(Path::new(from)).unwrap() {
            storage.rename(&Path::new(from).join(&name), &Path::new(to).join(&name)).unwrap();
        }
    };
    move_files("/wal", "/moved");
    for options in [in_memory(&storage), in_memory(&storage).open_mode(OpenMode::MustExist)] {
        let error = options.open(DIR).unwrap_err();
        assert!(matches!(error, Error::NoLogDirectory { .. }), "{error}");
        assert!(error.to_string().contains("'/wal'"), "{error}");
    }
    let error = in_memory(&storage).open_read_only(DIR).unwrap_err();
    assert!(matches!(error, Error::NoLogDirectory { .. }), "{error}");
    // Another empty directory is not mistaken for it.
    let error = with_log(in_memory(&storage), "/empty").open(DIR).unwrap_err();
    assert!(matches!(error, Error::NoLogDirectory { .. }), "{error}");
    assert_eq!(create(&storage, DIR, "/moved").get("key").unwrap().unwrap(), "value");
    // The new place is recorded, and a reader finds it.
    let db = in_memory(&storage).open_read_only(DIR).unwrap();
    assert_eq!((db.log_path(), db.get("key").unwrap().is_some()), (Path::new("/moved"), true));
}

/// The copy and the original would otherwise take turns writing to the same log.
#[test]
fn a_copy_of_the_database_cannot_use_the_log_of_the_original() {
    let storage = MemoryStorage::new(1);
    create(&storage, DIR, "/wal").put("key", "value").unwrap();
    storage.create_dir_all(Path::new("copy")).unwrap();
    for name in storage.list(Path::new(DIR)).unwrap() {
        let bytes = storage.read(&Path::new(DIR).join(&name)).unwrap();
        let access = terrane::storage::Access::Buffered;
        let mut file = storage.create(&Path::new("copy").join(&name), access).unwrap();
        file.append(&bytes).unwrap();
    }
    create(&storage, DIR, "").put("key", "newer").unwrap();
    let error = in_memory(&storage).open("copy").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    assert_eq!(create(&storage, DIR, "").get("key").unwrap().unwrap(), "newer");
}

#[test]
fn a_damaged_pointer_is_an_error_unless_there_is_no_database() {
    let storage = MemoryStorage::new(1);
    let damage = |dir: &str| {
        let file = Path::new(dir).join("LOGDIR");
        let mut bytes = storage.read(&file).unwrap();
        bytes[3] ^= 1;
        storage.overwrite(&file, &bytes).unwrap();
    };
    create(&storage, DIR, "/wal").put("key", "value").unwrap();
    damage(DIR);
    for opened in [in_memory(&storage).open(DIR), in_memory(&storage).open_read_only(DIR)] {
        assert_eq!(opened.unwrap_err().kind(), ErrorKind::Corruption);
    }
    damage(DIR);
    assert!(create(&storage, DIR, "").get("key").unwrap().is_some());
    // A creation that was interrupted right after it had written the file.
    for name in storage.list(Path::new(DIR)).unwrap() {
        if name != "LOGDIR" {
            storage.remove(&Path::new(DIR).join(name)).unwrap();
        }
    }
    damage(DIR);
    drop(create(&storage, DIR, ""));
    assert_eq!(create(&storage, DIR, "").log_path(), Path::new(DIR));
}

#[test]
fn a_checkpoint_has_its_log_next_to_its_tables() {
    let storage = MemoryStorage::new(1);
    let db = create(&storage, DIR, "/wal");
    db.put("key", "value").unwrap();
    db.checkpoint("copy").unwrap();
    db.put("key", "newer").unwrap();
    let copy = create(&storage, "copy", "");
    assert_eq!(copy.log_path(), Path::new("copy"));
    assert_eq!(copy.get("key").unwrap().unwrap(), "value");
    assert_eq!(db.get("key").unwrap().unwrap(), "newer");
}
