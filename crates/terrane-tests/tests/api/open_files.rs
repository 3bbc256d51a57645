//! Few table files stay open, however many tables there are.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use terrane::storage::{Access, DiskStorage, MemoryStorage, RandomReader, Storage};
use terrane::{Background, Db, Design, ErrorKind, Options, ReadMode};
use terrane_testkit::{Rng, StopOnDrop, seed_from_env};

use crate::support::DIR;

/// A design with many small tables.
fn small_tables() -> Design {
    "1-leveling T=4 L0=2 base=64KiB; buffer=32KiB; table=4KiB; block=512B".parse().unwrap()
}

/// Counts the files that are open for reading.
#[derive(Debug, Clone)]
struct CountingStorage {
    inner: MemoryStorage,
    open: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct CountedReader {
    inner: Arc<dyn RandomReader>,
    open: Arc<AtomicUsize>,
}

impl RandomReader for CountedReader {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(offset, buffer)
    }

    fn is_direct(&self) -> bool {
        self.inner.is_direct()
    }
}

impl Drop for CountedReader {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Storage for CountingStorage {
    terrane_tests::forward_storage! {
        create_dir_all list len create create_segment open_segment rename hard_link remove
        sync_dir lock boot_id entropy
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn RandomReader>> {
        let inner = self.inner.open(path, access)?;
        let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(open, Ordering::SeqCst);
        Ok(Arc::new(CountedReader { inner, open: Arc::clone(&self.open) }))
    }
}

fn key(number: u64) -> String {
    format!("{number:06}")
}

fn value(number: u64) -> String {
    format!("the value of {number}, ").repeat(5)
}

const KEYS: u64 = 4000;
const OPEN_FILES: usize = 8;
const READERS: usize = 4;
/// The threads that read blocks for readers, each of which opens the file that it reads.
const IO_THREADS: usize = 16;
/// Readers, one writer, one flush thread, the compaction threads, and the threads that read blocks.
const THREADS: usize = READERS + 2 + 4 + IO_THREADS;

fn read_randomly(db: &Db, seed: u64) {
    let mut rng = Rng::new(seed);
    for round in 0..4000 {
        let number = rng.below(KEYS);
        assert_eq!(db.get(key(number)).unwrap().as_deref(), Some(value(number).as_bytes()));
        if round % 400 == 0 {
            let entries = db.range(key(number)..).unwrap().map(Result::unwrap);
            let found = entries.take(50).map(|(found, _)| found.to_vec());
            let expected = (number..KEYS).map(|number| key(number).into_bytes());
            assert!(found.eq(expected.take(50)));
        }
    }
}

/// Every table that had been read used to keep a descriptor, until the program ran out of them.
#[test]
fn few_files_are_open_under_reads_and_compactions_of_hundreds_of_tables() {
    let seed = seed_from_env(91);
    for mode in [ReadMode::Cached, ReadMode::Direct] {
        let inner = MemoryStorage::new(1);
        let storage = CountingStorage { inner, open: Arc::default(), most: Arc::default() };
        let options = Options::new()
            .storage(Arc::new(storage.clone()))
            .read_mode(mode)
            .open_files(OPEN_FILES)
            .compaction_threads(2)
            .memory_budget(1 << 20)
            .log_segment_bytes(64 << 10);
        let db = options.clone().design(small_tables()).open(DIR).unwrap();
        (0..KEYS).for_each(|number| db.put(key(number), value(number)).unwrap());
        db.wait_for_compactions().unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in (0..KEYS).cycle() {
                    if stop.load(Ordering::SeqCst) {
                        break;
                    }
                    db.put(key(number), value(number)).unwrap();
                }
            });
            let _stop = StopOnDrop(&stop);
            std::thread::scope(|scope| {
                for reader in 0..READERS as u64 {
                    let db = &db;
                    scope.spawn(move || read_randomly(db, seed + reader));
                }
            });
        });
        let stats = db.stats();
        assert!(stats.tables > 100, "{} tables", stats.tables);
        assert!(stats.open_files <= OPEN_FILES as u64 && stats.open_files_closed > 1000);
        let most = storage.most.load(Ordering::SeqCst);
        assert!(most <= OPEN_FILES + THREADS, "{most} files were open");
        db.close().unwrap();
        assert_eq!(storage.open.load(Ordering::SeqCst), 0, "a file stays open");
        // A read-only opening keeps files open once it has read them, because a writer may remove them.
        let db = options.open_read_only(DIR).unwrap();
        (0..KEYS).for_each(|number| assert!(db.contains(key(number)).unwrap()));
        let stats = db.stats();
        assert!(stats.open_files > 50 && stats.open_files_closed == 0, "{}", stats.open_files);
    }
}

fn on_disk(mode: ReadMode) -> Options {
    Options::new()
        .read_mode(mode)
        .background(Background::Inline)
        .memory_budget(1 << 20)
        .storage(Arc::new(DiskStorage))
        .log_segment_bytes(64 << 10)
}

#[test]
fn a_file_that_another_program_removed_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("db");
    let options = on_disk(ReadMode::Cached).open_files(1);
    let db = options.design(small_tables()).open(&dir).unwrap();
    (0..KEYS / 8).for_each(|number| db.put(key(number), value(number)).unwrap());
    db.flush().unwrap();
    // Every table is opened, and all files but one are closed again.
    let some = (0..KEYS / 8).step_by(20);
    some.for_each(|number| assert!(db.contains(key(number)).unwrap()));
    for entry in std::fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "sst") {
            std::fs::remove_file(path).unwrap();
        }
    }
    // Only blocks in the cache can still be read.
    let error = (0..KEYS / 8).find_map(|number| db.get(key(number)).err()).unwrap();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    let text = error.to_string();
    assert!(text.contains(".sst: the file is missing"), "{text}");
}

#[cfg(target_os = "linux")]
#[allow(clippy::disallowed_types, reason = "users have files of their own")]
mod few_descriptors {
    use super::*;
    use std::fs::File;
    use std::process::Command;

    const VARIABLE: &str = "TERRANE_FEW_DESCRIPTORS_DIR";

    /// Runs in a process of its own, because the limit holds for all threads.
    #[test]
    fn child() {
        let Ok(dir) = std::env::var(VARIABLE) else { return };
        let resource = rustix::process::Resource::Nofile;
        let limit =
            rustix::process::Rlimit { current: Some(64), ..rustix::process::getrlimit(resource) };
        rustix::process::setrlimit(resource, limit).unwrap();
        for (mode, files) in [(ReadMode::Cached, None), (ReadMode::Direct, Some(1000))] {
            let dir = Path::new(&dir).join(mode.to_string());
            let mut options = on_disk(mode).background(Background::Threads);
            if let Some(files) = files {
                options = options.open_files(files);
            }
            let db = options.design(small_tables()).open(&dir).unwrap();
            let write = || (0..KEYS).for_each(|number| db.put(key(number), value(number)).unwrap());
            write();
            db.flush().unwrap();
            let read = || {
                for number in (0..KEYS).step_by(7) {
                    let found = db.get(key(number)).unwrap();
                    assert_eq!(found.as_deref(), Some(value(number).as_bytes()));
                }
            };
            read();
            assert!(db.stats().tables > 64, "{} tables", db.stats().tables);
            // The rest of the program takes all other descriptors. Reads and writes continue.
            let mut taken: Vec<File> =
                std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
            assert!(taken.len() > 10, "{} are left", taken.len());
            read();
            taken.truncate(taken.len() / 2);
            write();
            read();
            db.wait_for_compactions().unwrap();
            drop(taken);
            db.close().unwrap();
        }
        println!("child is done");
    }

    /// With `ulimit -n 64`, reads used to fail, and writes were refused until a reopening.
    #[test]
    fn a_process_with_few_descriptors_writes_and_reads_many_tables() {
        let dir = tempfile::tempdir().unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "open_files::few_descriptors::child", "--nocapture"])
            .env(VARIABLE, dir.path())
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&child.stdout), text(&child.stderr));
        assert!(child.status.success() && out.contains("child is done"), "{out}\n{err}");
    }
}

/// Counts the bytes that are read from files with and without [`RandomReader::expect_random_reads`].
#[derive(Debug, Clone)]
struct AdvisedStorage {
    inner: MemoryStorage,
    /// The bytes read in order, those read at random, and those announced.
    read: Arc<[AtomicUsize; 3]>,
}

#[derive(Debug)]
struct AdvisedReader {
    inner: Arc<dyn RandomReader>,
    read: Arc<[AtomicUsize; 3]>,
    is_random: AtomicBool,
}

impl RandomReader for AdvisedReader {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let kind = usize::from(self.is_random.load(Ordering::SeqCst));
        self.read[kind].fetch_add(buffer.len(), Ordering::SeqCst);
        self.inner.read_at(offset, buffer)
    }

    fn expect_random_reads(&self) {
        self.is_random.store(true, Ordering::SeqCst);
    }

    fn will_read(&self, bytes: Range<u64>) {
        self.read[2].fetch_add((bytes.end - bytes.start) as usize, Ordering::SeqCst);
    }
}

impl Storage for AdvisedStorage {
    terrane_tests::forward_storage! {
        create_dir_all list len create create_segment open_segment rename hard_link remove
        sync_dir lock boot_id entropy
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn RandomReader>> {
        let (inner, read) = (self.inner.open(path, access)?, Arc::clone(&self.read));
        Ok(Arc::new(AdvisedReader { inner, read, is_random: AtomicBool::new(false) }))
    }
}

/// The system reads ahead for compactions, and not for lookups and scans, which read ahead themselves.
#[test]
fn the_system_reads_ahead_only_for_jobs() {
    let storage = AdvisedStorage { inner: MemoryStorage::new(1), read: Arc::default() };
    let options = Options::new().storage(Arc::new(storage.clone())).memory_budget(1 << 20);
    let db = options.design(small_tables()).open(DIR).unwrap();
    let read = || {
        let [in_order, at_random] = [0, 1].map(|kind| storage.read[kind].load(Ordering::SeqCst));
        (in_order, at_random)
    };
    for remainder in 0..2 {
        let numbers = (0..KEYS).filter(|number| number % 2 == remainder);
        numbers.for_each(|number| db.put(key(number), value(number)).unwrap());
        db.flush().unwrap();
    }
    db.compact_range(..).unwrap();
    db.wait_for_compactions().unwrap();
    let after = read();
    let table_bytes = db.stats().table_bytes as usize;
    assert!(after.0 >= table_bytes / 2, "{after:?} of {table_bytes}");
    // Opening a table reads some of its parts.
    assert!(after.1 < after.0, "{after:?} of {table_bytes}");
    read_randomly(&db, 1);
    let gets = read();
    assert!(gets.0 == after.0 && gets.1 > after.1, "{after:?} {gets:?}");
    let found = db.iter().unwrap().map(Result::unwrap).count();
    assert_eq!(found as u64, KEYS);
    let scan = read();
    assert!(scan.0 == gets.0 && scan.1 > gets.1, "{gets:?} {scan:?}");
    db.close().unwrap();
}

/// Gets of sorted keys from files became five times slower when the system no longer read ahead.
#[test]
fn the_system_reads_ahead_of_gets_in_order() {
    let storage = AdvisedStorage { inner: MemoryStorage::new(1), read: Arc::default() };
    let options = Options::new().storage(Arc::new(storage.clone()));
    let db = options.clone().open(DIR).unwrap();
    (0..KEYS).for_each(|number| db.put(key(number), value(number)).unwrap());
    db.flush().unwrap();
    let table_bytes = db.stats().table_bytes as usize;
    db.close().unwrap();
    let announced = || storage.read[2].load(Ordering::SeqCst);
    for in_order in [false, true] {
        let db = options.clone().open(DIR).unwrap();
        let before = announced();
        for number in 0..KEYS {
            let number = if in_order { number } else { number * 1_237 % KEYS };
            assert!(db.contains(key(number)).unwrap());
            assert_eq!(db.get(key(number)).unwrap().as_deref(), Some(value(number).as_bytes()));
        }
        let more = announced() - before;
        let expected = if in_order { table_bytes / 2..table_bytes } else { 0..1 };
        assert!(expected.contains(&more), "{more} of {table_bytes} bytes, in order: {in_order}");
        db.close().unwrap();
    }
}
