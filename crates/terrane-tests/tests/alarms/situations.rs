//! The situations in which each alarm fires, on small databases in memory.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use terrane::storage::{
    Crash, Fault, FaultStorage, MemoryStorage, Operation, RecordWriter, Segment, Storage, Survival,
    Syncer,
};
use terrane::{
    Background, Db, Durability, Event, ManualClock, Options, ReadMode, Stats, WriteMode,
};
use terrane_testkit::wait_until;

const DIR: &str = "db";

/// A database before and after something happened to it.
pub(crate) struct Situation {
    pub(crate) before: Stats,
    pub(crate) after: Stats,
    pub(crate) took: Duration,
    pub(crate) events: Vec<Event>,
}

/// The situation of an alarm.
type Produce = fn() -> Situation;

/// The alarms, in the order of the page.
pub(crate) const ALL: [(&str, Produce); 17] = [
    ("writes-refused", writes_refused),
    ("disk-full", disk_full),
    ("failing-storage", failing_storage),
    ("damage", damage),
    ("damaged-reads", damaged_reads),
    ("lost-records", lost_records),
    ("stalls", stalls),
    ("slow-syncs", slow_syncs),
    ("late-deletes", late_deletes),
    ("snapshots", snapshots),
    ("pinned", pinned),
    ("cache", cache),
    ("filters", filters),
    ("tombstones", tombstones),
    ("open-files", open_files),
    ("garbage", garbage),
    ("direct-io", direct_io),
];

const SMALL: &str = "1-leveling T=4 L0=2 base=16KiB; buffer=4KiB; table=4KiB; block=512B";

fn options(storage: &MemoryStorage) -> Options {
    Options::new()
        .storage(Arc::new(storage.clone()))
        .background(Background::Inline)
        .memory_budget(16 << 20)
        .log_segment_bytes(64 << 10)
        .design(SMALL.parse().unwrap())
}

fn in_memory() -> (Options, MemoryStorage) {
    let storage = MemoryStorage::new(1);
    (options(&storage), storage)
}

fn fill(db: &Db, count: u32) {
    for number in 0..count {
        db.put(number.to_be_bytes(), [7; 100]).unwrap();
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
}

/// Does something to a database.
fn happens(db: &Db, action: impl FnOnce(&Db)) -> Situation {
    let (before, start) = (db.stats(), Instant::now());
    action(db);
    let events = db.events().into_iter().map(|logged| logged.event).collect();
    Situation { before, after: db.stats(), took: start.elapsed(), events }
}

fn fault(operation: Operation, path: &str, error: io::ErrorKind) -> Option<Fault> {
    let path_contains = path.into();
    Some(Fault { operation: Some(operation), path_contains, after: 0, is_permanent: true, error })
}

fn writes_refused() -> Situation {
    let (options, memory) = in_memory();
    let storage = FaultStorage::new(Arc::new(memory));
    let db = options.storage(Arc::new(storage.clone())).open(DIR).unwrap();
    happens(&db, |db| {
        storage.set(fault(Operation::Sync, ".log", io::ErrorKind::Other));
        db.put_with("a", "1", terrane::WriteOptions::new().durability(Durability::Sync))
            .unwrap_err();
        storage.set(None);
        db.put("b", "2").unwrap_err();
    })
}

fn disk_full() -> Situation {
    let (options, memory) = in_memory();
    let storage = FaultStorage::new(Arc::new(memory));
    let options = options.storage(Arc::new(storage.clone())).background(Background::Threads);
    let db = options.open(DIR).unwrap();
    let situation = happens(&db, |db| {
        db.put("a", "1").unwrap();
        storage.set(fault(Operation::Append, ".sst", io::ErrorKind::StorageFull));
        db.flush().unwrap_err();
        wait_until(|| db.stats().error.is_some(), || "no error is reported".into());
    });
    // The error clears by itself.
    storage.set(None);
    wait_until(|| db.stats().error.is_none(), || "the error does not pass".into());
    situation
}

fn failing_storage() -> Situation {
    let (options, memory) = in_memory();
    let storage = FaultStorage::new(Arc::new(memory));
    let options = options.storage(Arc::new(storage.clone())).background(Background::Threads);
    let db = options.open(DIR).unwrap();
    db.put("a", "1").unwrap();
    std::thread::scope(|scope| {
        let situation = happens(&db, |db| {
            storage.set(fault(Operation::Append, ".sst", io::ErrorKind::Other));
            // It waits until a retry succeeds.
            let flushed = db.clone();
            scope.spawn(move || flushed.flush().unwrap());
            wait_until(|| db.stats().error.is_some(), || "no error is reported".into());
        });
        storage.set(None);
        situation
    })
}

/// Opens a database whose tables are damaged.
fn with_damage() -> Db {
    let (options, storage) = in_memory();
    let db = options.clone().open(DIR).unwrap();
    fill(&db, 100);
    db.close().unwrap();
    for name in storage.list(Path::new(DIR)).unwrap().iter().filter(|name| name.ends_with(".sst")) {
        let path = Path::new(DIR).join(name);
        let mut bytes = storage.read(&path).unwrap();
        bytes[10] ^= 1;
        storage.overwrite(&path, &bytes).unwrap();
    }
    options.open(DIR).unwrap()
}

fn damaged_reads() -> Situation {
    happens(&with_damage(), |db| {
        db.get(0u32.to_be_bytes()).unwrap_err();
    })
}

fn damage() -> Situation {
    happens(&with_damage(), |db| {
        for number in 0..100u32 {
            db.put(number.to_be_bytes(), "new").unwrap();
        }
        db.compact_range(..).unwrap_err();
        // Runs jobs as a background thread would.
        while db.run_background_job().is_ok_and(|is_done| is_done) {}
    })
}

fn lost_records() -> Situation {
    for seed in 0..100 {
        let (options, storage) = in_memory();
        let options = options.design("leveling".parse().unwrap());
        let db = options.open(DIR).unwrap();
        fill(&db, 10);
        let before = db.stats();
        for number in 0..3_000u32 {
            db.put(number.to_be_bytes(), [8; 100]).unwrap();
        }
        let survival = Survival { percent: 90, seed };
        let image = storage.crash_point().image(Crash::Power(survival));
        let db = Options::new()
            .storage(Arc::new(image))
            .background(Background::Inline)
            .open(DIR)
            .unwrap();
        let after = db.stats();
        if after.dropped_log_records > 0 {
            return Situation { before, after, took: Duration::from_secs(1), events: Vec::new() };
        }
    }
    panic!("no crash loses a record before others");
}

fn stalls() -> Situation {
    let (options, _) = in_memory();
    // A few runs are enough to stop writers, which then merge them themselves.
    let design = format!("{SMALL}; limit=local(2); violation=stop; buffers=2");
    let design = design.parse().unwrap();
    let db = options.design(design).open(DIR).unwrap();
    db.put("a", "1").unwrap();
    happens(&db, |db| {
        for number in 0..5_000u32 {
            db.put((number * 7919 % 5_000).to_be_bytes(), [7; 100]).unwrap();
        }
    })
}

/// A storage whose log takes long to sync.
#[derive(Debug)]
struct SlowLog {
    inner: MemoryStorage,
}

#[derive(Debug)]
struct SlowSegment(Box<dyn Segment>);

#[derive(Debug)]
struct SlowSyncer(Arc<dyn Syncer>);

impl Storage for SlowLog {
    terrane_tests::forward_storage! {
        create_dir_all list len create open open_segment rename hard_link remove sync_dir lock
        boot_id entropy
    }

    fn create_segment(&self, path: &Path, len: u64) -> io::Result<Box<dyn Segment>> {
        Ok(Box::new(SlowSegment(self.inner.create_segment(path, len)?)))
    }
}

impl Segment for SlowSegment {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write(offset, bytes)
    }

    fn syncer(&self) -> Arc<dyn Syncer> {
        Arc::new(SlowSyncer(self.0.syncer()))
    }

    fn record_writer(&self) -> Option<Arc<dyn RecordWriter>> {
        self.0.record_writer()
    }
}

impl Syncer for SlowSyncer {
    fn sync(&self) -> io::Result<()> {
        std::thread::sleep(Duration::from_millis(150));
        self.0.sync()
    }

    fn sync_start(&self, len: u64) -> io::Result<()> {
        self.0.sync_start(len)
    }
}

fn slow_syncs() -> Situation {
    let storage = SlowLog { inner: MemoryStorage::new(1) };
    let options = Options::new().storage(Arc::new(storage)).durability(Durability::Sync);
    let db = options.background(Background::Inline).open(DIR).unwrap();
    happens(&db, |db| (0..3u8).for_each(|number| db.put([number], "1").unwrap()))
}

fn late_deletes() -> Situation {
    let clock = Arc::new(ManualClock::new(1_000_000));
    let day = Duration::from_secs(24 * 3600);
    let (options, _) = in_memory();
    let db = options.clock(clock.clone()).delete_persistence(day).open(DIR).unwrap();
    fill(&db, 10);
    db.compact_range(..).unwrap();
    let _holds_it = db.snapshot();
    happens(&db, |db| {
        db.delete(3u32.to_be_bytes()).unwrap();
        db.flush().unwrap();
        clock.advance(day + Duration::from_secs(1));
        while db.run_background_job().unwrap() {}
    })
}

fn snapshots() -> Situation {
    let db = in_memory().0.open(DIR).unwrap();
    fill(&db, 10);
    let mut held = None;
    happens(&db, |db| held = Some(db.snapshot()))
}

fn pinned() -> Situation {
    let design = "leveling; buffer=256KiB; table=64KiB".parse().unwrap();
    let db = in_memory().0.memory_budget(1 << 20).design(design).open(DIR).unwrap();
    fill(&db, 20_000);
    let mut held = Vec::new();
    happens(&db, |db| {
        held.extend((0..20_000u32).map(|number| db.get(number.to_be_bytes()).unwrap()));
    })
}

fn cache() -> Situation {
    let design = "leveling; buffer=256KiB; table=64KiB".parse().unwrap();
    let db = in_memory().0.memory_budget(1 << 20).design(design).open(DIR).unwrap();
    fill(&db, 30_000);
    happens(&db, |db| {
        for number in 0..3_000u32 {
            assert!(db.get((number * 7919 % 30_000).to_be_bytes()).unwrap().is_some());
        }
    })
}

fn filters() -> Situation {
    let (options, _) = in_memory();
    let db = options.design(format!("{SMALL}; filter=1").parse().unwrap()).open(DIR).unwrap();
    fill(&db, 1_000);
    happens(&db, |db| {
        for number in 0..1_000u32 {
            db.get([&number.to_be_bytes()[..], b"x"].concat()).unwrap();
        }
    })
}

fn tombstones() -> Situation {
    let db = in_memory().0.design("leveling".parse().unwrap()).open(DIR).unwrap();
    fill(&db, 5_000);
    happens(&db, |db| {
        for number in 0..4_900u32 {
            db.delete(number.to_be_bytes()).unwrap();
        }
        for _ in 0..10 {
            assert!(db.iter().unwrap().advance().unwrap());
        }
    })
}

fn open_files() -> Situation {
    let db = in_memory().0.open_files(1).open(DIR).unwrap();
    fill(&db, 1_000);
    happens(&db, |db| {
        for number in 0..2_000u32 {
            db.get((number * 7919 % 1_000).to_be_bytes()).unwrap();
        }
    })
}

fn garbage() -> Situation {
    let (options, _) = in_memory();
    let design = format!("{SMALL}; values=separate(64,garbage=100%,space=100)").parse().unwrap();
    let db = options.design(design).open(DIR).unwrap();
    fill(&db, 1_000);
    happens(&db, |db| {
        // Each round leaves a tenth of the previous round's values live, across all files.
        for round in 1..8 {
            for number in (0..1_000u32).filter(|number| number % 10 >= round) {
                db.put(number.to_be_bytes(), [8; 100]).unwrap();
            }
        }
        db.flush().unwrap();
        db.wait_for_compactions().unwrap();
    })
}

fn direct_io() -> Situation {
    let (options, storage) = in_memory();
    storage.refuse_direct();
    let options = options.read_mode(ReadMode::Direct).write_mode(WriteMode::Direct);
    let db = options.open(DIR).unwrap();
    happens(&db, |db| fill(db, 10))
}
