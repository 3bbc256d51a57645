//! Tests that a full disk accepts deletes, and that these make room for other writes.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use terrane::storage::{
    Crash, DiskStorage, Fault, FaultStorage, MemoryStorage, Operation, Segment, Storage, Survival,
};
use terrane::{
    Background, Db, Durability, Error, KeyspaceOptions, Options, WriteBatch, WriteOptions,
};

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
    assert!(DiskStorage.len(&reserve).unwrap() >= 1 << 20);
    drop(db);
    std::fs::remove_file(&reserve).unwrap();
    drop(Options::new().open(dir.path()).unwrap());
    assert!(DiskStorage.len(&reserve).unwrap() >= 1 << 20);
    Options::new().destroy(dir.path()).unwrap();
    assert!(!reserve.exists());
}

/// The length of a file of the database in memory; 0 if it does not exist.
fn len(storage: &MemoryStorage, name: &str) -> u64 {
    storage.len(&Path::new(DIR).join(name)).unwrap_or(0)
}

fn manifest_len(storage: &MemoryStorage) -> u64 {
    let names = storage.list(Path::new(DIR)).unwrap();
    let manifests = names.iter().filter(|name| name.starts_with("MANIFEST-"));
    manifests.map(|name| len(storage, name)).sum()
}

/// The reserve ignored the manifest, and kept the length that it had at the first flush. The snapshot that
/// every opening writes then had no space on a full disk.
#[test]
fn the_reserve_grows_with_the_manifest() {
    let (options, storage) = in_memory();
    let db = options.clone().open(DIR).unwrap();
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    let before = len(&storage, "RESERVE");
    let create = |from: u32| {
        let names: Vec<String> = (from..from + 2000).map(|number| format!("k{number}")).collect();
        KeyspaceOptions::new().open_all(&db, &names).unwrap();
    };
    for from in [0, 2000] {
        create(from);
        let (reserve, spare) = (len(&storage, "RESERVE"), len(&storage, "RESERVE.manifest"));
        let manifest = manifest_len(&storage);
        assert!(manifest > 4 * before, "{manifest}");
        assert!(reserve >= manifest && spare >= manifest / 2, "{reserve}, {spare}, {manifest}");
    }
    drop(db);
    storage.set_capacity(Some(storage.used_bytes()));
    drop(options.clone().open(DIR).unwrap());
    assert_eq!(len(&storage, "RESERVE"), 0, "the snapshot needs its space");
    storage.set_capacity(None);
    drop(options.open(DIR).unwrap());
    assert!(len(&storage, "RESERVE") >= 2 * manifest_len(&storage));
}

/// The opening removed the shorter reserve, found no space for the longer one, and refused every put.
#[test]
fn an_opening_that_cannot_lengthen_the_reserve_accepts_puts() {
    let (options, memory) = in_memory();
    let storage = FaultStorage::new(Arc::new(memory.clone()));
    let options = options.storage(Arc::new(storage.clone()));
    let db = options.clone().open(DIR).unwrap();
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    drop(db);
    memory.overwrite(&Path::new(DIR).join("RESERVE"), &[0; 1000]).unwrap();
    storage.set(Some(Fault {
        operation: Some(Operation::Create),
        path_contains: "RESERVE".into(),
        after: 0,
        is_permanent: true,
        error: io::ErrorKind::StorageFull,
    }));
    let db = options.open(DIR).unwrap();
    assert!(storage.fired() > 0);
    db.put("b", "2").unwrap();
    assert_eq!(len(&memory, "RESERVE"), 1000);
    storage.set(None);
    db.flush().unwrap();
    assert!(len(&memory, "RESERVE") >= 64 << 10);
}

/// It released the reserve, so that all writers were refused until it was filled again.
#[test]
fn a_put_that_is_too_large_for_the_disk_refuses_no_other_put() {
    both_backgrounds(|options, storage| {
        let db = options.open(DIR).unwrap();
        db.put("a", "0").unwrap();
        db.flush().unwrap();
        storage.set_capacity(Some(storage.used_bytes() + (1 << 20)));
        for round in 0..3 {
            let error = db.put("large", vec![7; 2 << 20]).unwrap_err();
            assert!(matches!(error, Error::DiskFull(_)), "{error}");
            // These also need new segments.
            (0..300).for_each(|number| db.put(key(number), [round; 300]).unwrap());
        }
        db.delete("a").unwrap();
    });
}

/// A function that runs once.
type Hook = Box<dyn FnOnce() + Send>;

/// Files in memory. The hook runs before a log segment is created by one thread.
#[derive(Clone)]
struct HookedStorage {
    inner: MemoryStorage,
    before_segment: Arc<Mutex<Option<Hook>>>,
    thread: std::thread::ThreadId,
}

impl fmt::Debug for HookedStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl Storage for HookedStorage {
    terrane_tests::forward_storage! {
        create_dir_all list len create open open_segment rename remove sync_dir hard_link lock
        boot_id entropy
    }

    fn create_segment(&self, path: &Path, len: u64) -> io::Result<Box<dyn Segment>> {
        let is_log = path.extension().is_some_and(|name| name == "log");
        // A thread of the database may create a segment in advance.
        if is_log && std::thread::current().id() == self.thread {
            let hook = self.before_segment.lock().unwrap().take();
            hook.into_iter().for_each(|hook| hook());
        }
        self.inner.create_segment(path, len)
    }
}

/// The delete was refused: the reserve had been released before it asked for space.
#[test]
fn a_delete_gets_the_space_with_which_a_put_has_just_filled_the_reserve() {
    let (options, memory) = in_memory();
    let thread = std::thread::current().id();
    let storage = HookedStorage { inner: memory.clone(), before_segment: Arc::default(), thread };
    let options = options.storage(Arc::new(storage.clone())).background(Background::Threads);
    let db = options.open(DIR).unwrap();
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    memory.set_capacity(Some(memory.used_bytes()));
    let mut keys = (0..).map(key);
    while len(&memory, "RESERVE") > 0 {
        db.delete(keys.next().unwrap()).unwrap();
    }
    let (writer, since) = (db.clone(), Instant::now());
    *storage.before_segment.lock().unwrap() = Some(Box::new(move || {
        memory.set_capacity(Some(memory.used_bytes() + (80 << 10)));
        // The put that fills the reserve waits for the lock of the delete.
        std::thread::spawn(move || until_written(&writer, "b", "2"));
        while len(&memory, "RESERVE") == 0 {
            assert!(since.elapsed() < Duration::from_secs(60), "the reserve is not filled");
            std::thread::sleep(Duration::from_millis(1));
        }
        memory.set_capacity(Some(memory.used_bytes()));
    }));
    while storage.before_segment.lock().unwrap().is_some() {
        db.delete(keys.next().unwrap()).unwrap();
    }
    // Lets the thread end.
    storage.inner.set_capacity(None);
}
