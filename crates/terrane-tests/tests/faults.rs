//! Makes every file operation fail once, or from then on, at every point of a script.
//!
//! A call may fail but must not lie: acknowledged writes are readable, reads are correct, and
//! without the fault the database opens with every acknowledged write.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::io::ErrorKind as Io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrane::storage::{Fault, FaultStorage, MemoryStorage, Operation, Storage};
use terrane::{
    Background, CacheWarming, Db, Durability, Error, ErrorKind, ManualClock, Options, ReadMode,
    WriteBatch, WriteMode, WritePath,
};
use terrane_testkit::{Rng, print_counts, seed_from_env, wait_until};
use terrane_tests::config::{Config, LOG_DIRS, small_design};
use terrane_tests::model::Map;

const DIR: &str = "db";

fn config(rng: &mut Rng) -> Config {
    Config {
        design: small_design(rng),
        durability: *rng.pick(&[
            Durability::Process,
            Durability::Sync,
            Durability::Interval(Duration::from_millis(1)),
        ]),
        read_mode: *rng.pick(&[ReadMode::Cached, ReadMode::Direct]),
        write_mode: *rng.pick(&[WriteMode::Buffered, WriteMode::Direct]),
        write_path: *rng.pick(&[WritePath::Concurrent, WritePath::Queue]),
        cache_warming: *rng.pick(&[CacheWarming::None, CacheWarming::Meta, CacheWarming::All]),
        background: Background::Inline,
        memory_budget: 1 << 20,
        log_segment_bytes: 64 << 10,
        log_bytes_max: 1 << 20,
        log_dir: rng.pick::<&str>(LOG_DIRS),
        flush_threads: rng.between(1, 3) as usize,
        compaction_threads: 1,
        merge_threads: 3,
        io_budget: terrane::IoBudget::Unlimited,
        read_threads: 0,
        delete_persistence: rng.percent(60).then(|| Duration::from_secs(2)),
        clock: Arc::new(ManualClock::new(1_000_000)),
    }
}

/// The possible contents of each key: a failed write may or may not have happened.
#[derive(Default)]
struct Model {
    sure: Map,
    /// Writes that failed after the last successful one, oldest first. Any prefix of them may have
    /// happened.
    unsure: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Model {
    fn put(&mut self, key: Vec<u8>, value: Option<Vec<u8>>, succeeded: bool) {
        if succeeded {
            match value {
                Some(value) => drop(self.sure.insert(key.clone(), value)),
                None => drop(self.sure.remove(&key)),
            }
            self.unsure.retain(|(other, _)| *other != key);
        } else {
            self.unsure.push((key, value));
        }
    }

    fn allows(&self, key: &[u8], found: Option<&[u8]>) -> bool {
        let maybe = self.unsure.iter().filter(|(other, _)| other == key);
        self.sure.get(key).map(|value| &value[..]) == found
            || maybe.into_iter().any(|(_, value)| value.as_deref() == found)
    }

    fn check(&self, db: &Db, story: &str) {
        let found: Map = db
            .iter()
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|(key, value)| (key.to_vec(), value.to_vec()))
            .collect();
        let keys = found.keys().chain(self.sure.keys());
        for key in keys {
            let value = found.get(key).map(|value| &value[..]);
            assert!(self.allows(key, value), "{} is {value:?}\n{story}", key.escape_ascii());
            assert_eq!(db.get(key).unwrap().as_deref(), value, "{story}");
        }
    }
}

/// Runs the script, which depends on the seed only. Returns when it ends or the database refuses
/// writes until it is reopened.
fn script(
    seed: u64,
    db: &Db,
    (config, without_faults): (&Config, &Arc<dyn Storage>),
    model: &mut Model,
    story: &str,
) {
    let mut rng = Rng::new(seed);
    for step in 0..150u32 {
        let key = format!("{:03}", rng.below(40)).into_bytes();
        let value = vec![step as u8; rng.index(80)];
        let outcome = match rng.below(44) {
            0 => db.flush(),
            1 => db.compact_range(..),
            2 => db.wait_for_compactions(),
            // This makes tombstones and log segments old.
            16 | 17 => {
                config.clock.advance(Duration::from_millis(300));
                db.run_background_job().map(drop)
            }
            3..=8 => {
                let deleted = db.delete(&key);
                model.put(key, None, deleted.is_ok());
                deleted
            }
            9..=14 => match db.get(&key) {
                Ok(found) => {
                    assert!(model.allows(&key, found.as_deref()), "step {step}\n{story}");
                    Ok(())
                }
                Err(error) => Err(error),
            },
            15 => scan(db, model, story),
            40 => db.sync(),
            41 => checkpoint(db, step, (config, without_faults), model, story),
            42..=43 => {
                let other = format!("{:03}", rng.below(40)).into_bytes();
                let mut batch = WriteBatch::new();
                batch.put(&key, &value).delete(&other);
                let written = db.write(&batch);
                model.put(key, Some(value), written.is_ok());
                model.put(other, None, written.is_ok());
                written
            }
            _ => {
                let put = db.put(&key, &value);
                model.put(key, Some(value), put.is_ok());
                put
            }
        };
        if let Err(error) = outcome {
            let expected = [ErrorKind::Io, ErrorKind::Poisoned];
            assert!(expected.contains(&error.kind()), "{error}\n{story}");
        }
    }
}

/// A checkpoint that succeeds is complete, whatever happened before.
fn checkpoint(
    db: &Db,
    step: u32,
    (config, without_faults): (&Config, &Arc<dyn Storage>),
    model: &Model,
    story: &str,
) -> terrane::Result<()> {
    let target = format!("checkpoint-{step}");
    db.checkpoint(&target)?;
    let copy = config.options(Arc::clone(without_faults)).open(&target).unwrap();
    model.check(&copy, story);
    Ok(())
}

fn scan(db: &Db, model: &Model, story: &str) -> terrane::Result<()> {
    let mut seen = 0;
    for entry in db.iter()? {
        let (key, value) = entry?;
        assert!(model.allows(&key, Some(&value)), "{story}");
        seen += 1;
    }
    // A scan that ended without an error was complete.
    assert!(seen + model.unsure.len() >= model.sure.len(), "{story}");
    Ok(())
}

/// Runs the script with a fault, and then without it. If `torn` is set, failing writes write that
/// percentage of their bytes first. Returns how often the fault fired.
fn with_fault(seed: u64, fault: &Fault, torn: Option<u8>) -> u64 {
    let mut config = config(&mut Rng::new(seed));
    if fault.operation == Some(Operation::Read) {
        config.read_mode = ReadMode::Cached;
    }
    let inner: Arc<dyn Storage> = Arc::new(MemoryStorage::new(seed));
    let storage = FaultStorage::new(Arc::clone(&inner));
    if seed.is_multiple_of(2) {
        storage.hide_record_writers();
    }
    if let Some(percent) = torn {
        storage.tear_writes(percent);
    }
    let story = format!("seed {seed}, {fault:?}, torn at {torn:?}, {config:?}");
    let db = config.create(Arc::new(storage.clone()), Path::new(DIR));
    let mut model = Model::default();
    storage.set(Some(fault.clone()));
    script(seed, &db, (&config, &inner), &mut model, &story);
    let fired = storage.fired();
    // Opening the database while the fault is set may fail, but must do no damage.
    drop(db);
    let opened = config.options(Arc::new(storage.clone())).open(DIR);
    if let Ok(db) = opened {
        let _ = db.put("unsure", "x");
        model.unsure.push((b"unsure".to_vec(), Some(b"x".to_vec())));
        drop(db);
    }
    storage.set(None);
    let db = config.options(Arc::new(storage)).open(DIR);
    let db = db.unwrap_or_else(|error| panic!("{error}\n{story}"));
    model.check(&db, &story);
    db.put("after", "x").unwrap();
    db.close().unwrap();
    fired
}

fn every_place(operation: Operation, error: Io, is_permanent: bool, torn: Option<u8>) {
    let seed = seed_from_env(500);
    let (mut came_up, mut faults, mut databases) = (0, 0, 0);
    for seed in seed..seed + 3 {
        let mut after = 0;
        loop {
            let fault = Fault {
                operation: Some(operation),
                path_contains: String::new(),
                after,
                is_permanent,
                error,
            };
            let fired = with_fault(seed, &fault, torn);
            if fired == 0 {
                break;
            }
            faults += fired;
            databases += 1;
            // Early operations differ most from each other, so later operations are only sampled.
            after += 1 + after / 12;
        }
        came_up += after;
    }
    assert!(came_up > 0, "{operation:?} never came up");
    print_counts(&[("faults", faults), ("databases_with_faults", databases)]);
}

macro_rules! every_place {
    ($($name:ident: $operation:ident, $error:ident, $is_permanent:literal;)*) => {$(
        #[test]
        fn $name() {
            every_place(Operation::$operation, Io::$error, $is_permanent, None);
        }
    )*};
}

every_place! {
    writing_fails_once: Write, Other, false;
    writing_fails_for_good: Write, Other, true;
    writing_finds_a_full_disk_for_good: Write, StorageFull, true;
    creating_fails_once: Create, Other, false;
    creating_fails_for_good: Create, Other, true;
    appending_fails_once: Append, Other, false;
    appending_fails_for_good: Append, Other, true;
    appending_finds_a_full_disk_once: Append, StorageFull, false;
    appending_finds_a_full_disk_for_good: Append, StorageFull, true;
    creating_finds_a_full_disk_for_good: Create, StorageFull, true;
    syncing_fails_once: Sync, Other, false;
    syncing_fails_for_good: Sync, Other, true;
    syncing_names_fails_once: SyncDir, Other, false;
    syncing_names_fails_for_good: SyncDir, Other, true;
    naming_fails_once: Name, Other, false;
    naming_fails_for_good: Name, Other, true;
    reading_fails_once: Read, Other, false;
    reading_fails_for_good: Read, Other, true;
    opening_fails_once: Open, Other, false;
    listing_fails_once: List, Other, false;
}

/// A system call that writes to the log may fail after it has written any part of a record, or all of
/// it.
#[test]
fn writes_to_the_log_stop_halfway() {
    for percent in [1, 60, 97, 100] {
        for operation in [Operation::Write, Operation::Append] {
            every_place(operation, Io::StorageFull, false, Some(percent));
        }
    }
    every_place(Operation::Write, Io::StorageFull, true, Some(60));
    every_place(Operation::Append, Io::StorageFull, true, Some(90));
}

#[test]
fn a_failed_sync_refuses_writes_until_the_database_is_opened_again() {
    let storage = FaultStorage::new(Arc::new(MemoryStorage::new(1)));
    let options = Options::new().storage(Arc::new(storage.clone())).durability(Durability::Sync);
    let db = options.open(DIR).unwrap();
    db.put("a", "1").unwrap();
    storage.set(Some(Fault {
        operation: Some(Operation::Sync),
        path_contains: ".log".into(),
        after: 0,
        is_permanent: false,
        error: Io::Other,
    }));
    let error = db.put("b", "2").unwrap_err();
    assert!(matches!(error, Error::Poisoned(_)), "{error}");
    for _ in 0..3 {
        assert_eq!(db.put("c", "3").unwrap_err().kind(), ErrorKind::Poisoned);
    }
    assert_eq!(storage.fired(), 1, "a failed sync must not be tried again");
    assert_eq!(db.get("a").unwrap().unwrap(), "1");
    assert!(db.stats().error.is_some());
    assert_eq!(db.close().unwrap_err().kind(), ErrorKind::Poisoned);
    let db = options.open(DIR).unwrap();
    assert_eq!(db.get("a").unwrap().unwrap(), "1");
    db.put("c", "3").unwrap();
}

/// Fills a disk, frees space, and fills it again: no acknowledged write is lost, and writes resume
/// automatically.
fn full_disk(background: Background, durability: Durability) {
    let storage = MemoryStorage::new(1);
    let mut design = small_design(&mut Rng::new(3));
    design.buffer_bytes = 8 << 10;
    let options = Options::new()
        .storage(Arc::new(storage.clone()))
        .background(background)
        .durability(durability)
        .log_segment_bytes(64 << 10)
        .memory_budget(1 << 20);
    let db = options.clone().design(design).open(DIR).unwrap();
    let mut sure = Map::new();
    let mut number = 0u32;
    for round in 0..3 {
        storage.set_capacity(Some(storage.used_bytes() + 100_000));
        let mut refused = 0;
        while refused < 5 {
            number += 1;
            let (key, value) = (number.to_be_bytes().to_vec(), vec![number as u8; 300]);
            match db.put(&key, &value) {
                Ok(()) => drop(sure.insert(key, value)),
                Err(error) => {
                    assert!(matches!(error, Error::DiskFull(_)), "{error}");
                    assert!(error.to_string().contains("disk full"), "{error}");
                    refused += 1;
                }
            }
            assert!(number < 100_000, "the disk never filled up");
        }
        // Reads still work.
        for (key, value) in sure.iter().step_by(17) {
            assert_eq!(db.get(key).unwrap().as_deref(), Some(&value[..]));
        }
        assert_eq!(
            db.iter()
                .unwrap()
                .filter(|entry| sure.contains_key(&entry.as_ref().unwrap().0.to_vec()))
                .count(),
            sure.len()
        );
        storage.set_capacity(None);
        // Writes resume by themselves, without any other call.
        let is_written = || match db.put("again", format!("{round}")) {
            Ok(()) => true,
            Err(error) => {
                assert!(matches!(error, Error::DiskFull(_)), "{error}");
                false
            }
        };
        wait_until(is_written, || "writes do not resume".into());
    }
    drop(db);
    let db = options.open(DIR).unwrap();
    for (key, value) in &sure {
        assert_eq!(db.get(key).unwrap().as_deref(), Some(&value[..]));
    }
    assert_eq!(db.get("again").unwrap().unwrap(), "2");
}

#[test]
fn a_full_disk_is_survived_inline() {
    full_disk(Background::Inline, Durability::Process);
}

#[test]
fn a_full_disk_is_survived_with_threads() {
    full_disk(Background::Threads, Durability::Process);
    full_disk(Background::Threads, Durability::Sync);
}

/// The header of a log segment failed to sync, and another file became that segment. Recovery must
/// not decide by file name which of the two belongs to the log.
#[test]
fn recovery_ignores_a_segment_whose_header_failed_to_sync() {
    let value = [7; 1000];
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let storage = FaultStorage::new(Arc::new(MemoryStorage::new(1)));
        let options = Options::new()
            .storage(Arc::new(storage.clone()))
            .background(Background::Inline)
            .log_segment_bytes(64 << 10);
        let db = options.open(DIR).unwrap();
        let mut kept = Vec::new();
        for number in 0..1000u32 {
            // Flushes leave spare segments, which are reused in any order of their numbers.
            if rng.below(100) == 0 {
                db.flush().unwrap();
            }
            if rng.below(40) == 0 {
                // The write of the header of a segment, or of the record that links to it, fails.
                storage.set(Some(Fault {
                    operation: Some(Operation::Write),
                    path_contains: ".log".into(),
                    after: rng.below(3),
                    is_permanent: false,
                    error: Io::Other,
                }));
            }
            if db.put(number.to_be_bytes(), value).is_ok() {
                kept.push(number);
            }
        }
        storage.set(None);
        drop(db);
        let db = options.open(DIR).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        for number in &kept {
            assert!(db.contains(number.to_be_bytes()).unwrap(), "seed {seed}: {number} is lost");
        }
    }
}
