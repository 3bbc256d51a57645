//! Tests that the bytes of deleted values disappear from all files in time, tables as well as the
//! log.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrane::storage::{Crash, Fault, FaultStorage, MemoryStorage, Operation, Storage, Survival};
use terrane::{Background, Clock, Db, Design, Durability, KeyspaceOptions, ManualClock, Options};
use terrane_policy::catalogue;
use terrane_testkit::{contains, wait_until};

use crate::support::{DIR, tiny};

const THRESHOLD: Duration = Duration::from_secs(100);
const STEP: Duration = Duration::from_secs(2);

/// Memtables that differ in how they store entries.
const MEMTABLES: [&str; 6] = [
    "btree",
    "skiplist",
    "vector",
    "hash-vector(buckets=16)",
    "hash-skiplist(prefix=3,buckets=16)",
    "flodb",
];

/// Values stay in tables, or larger ones go to value files, few of which are collected early.
const INLINE: &str = "inline";
const SEPARATED: &str = "separate(32,garbage=100%,space=100,file=1KiB)";

fn small(name: &str, memtable: &str, values: &str) -> Design {
    let mut design = tiny(name);
    design.memtable = format!("leveling; memtable={memtable}").parse::<Design>().unwrap().memtable;
    // The search for bytes needs uncompressed tables.
    design.compression = "leveling; compression=none".parse::<Design>().unwrap().compression;
    design.values = values.parse().unwrap();
    design
}

struct Case {
    storage: MemoryStorage,
    clock: Arc<ManualClock>,
    db: Option<Db>,
    name: String,
}

impl Case {
    fn new(name: &str, memtable: &str, values: &str) -> Self {
        let mut case = Self {
            storage: MemoryStorage::new(1),
            clock: Arc::new(ManualClock::new(1_000_000_000)),
            db: None,
            name: format!("{name} with {memtable}, {values}"),
        };
        case.open(Some(small(name, memtable, values)));
        case
    }

    fn open(&mut self, design: Option<Design>) {
        let mut options = Options::new()
            .storage(Arc::new(self.storage.clone()))
            .background(Background::Inline)
            .clock(self.clock.clone())
            .log_segment_bytes(64 << 10)
            .delete_persistence(THRESHOLD);
        if let Some(design) = design {
            options = options.design(design);
        }
        self.db = Some(options.open(DIR).unwrap());
    }

    fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    fn work(&self) {
        while self.db().run_background_job().unwrap() {}
    }

    fn pass(&self, time: Duration) {
        let end = self.clock.now_micros() + time.as_micros() as u64;
        while self.clock.now_micros() < end {
            self.clock.advance(STEP);
            self.work();
        }
    }

    /// Returns the files that contain these bytes.
    fn holders(&self, bytes: &str) -> Vec<String> {
        let dir = Path::new(DIR);
        let names = self.storage.list(dir).unwrap();
        let holds = |name: &String| {
            // A thread may remove a file meanwhile. The file then counts as empty.
            let contents = self.storage.read(&dir.join(name)).unwrap_or_default();
            contains(&contents, bytes.as_bytes())
        };
        names.into_iter().filter(holds).collect()
    }

    fn assert_gone(&self, what: &str) {
        let holders = self.holders("doomed");
        assert!(holders.is_empty(), "{}, {what}: {holders:?}\n{}", self.name, self.tree());
    }

    fn tree(&self) -> String {
        self.db.as_ref().map(|db| db.tree().to_string()).unwrap_or_default()
    }

    fn fill(&self) {
        for number in 0..300u32 {
            self.db().put(key(number), format!("some value of some length, {number:5}")).unwrap();
        }
    }

    /// Puts the values that will be deleted, into tables and into memory.
    fn put_doomed(&self) {
        for number in [1, 70, 71, 140, 250] {
            self.db().put(key(number), doomed(number)).unwrap();
        }
    }

    fn delete_doomed(&self) {
        self.db().delete(key(1)).unwrap();
        self.db().delete_range(key(70)..key(72)).unwrap();
        self.db().delete(key(140)).unwrap();
        self.db().delete(key(250)).unwrap();
    }

    fn crash(&mut self, crash: Crash) {
        let image = self.storage.crash_point().image(crash);
        self.db = None;
        self.storage = image;
    }
}

fn doomed(number: u32) -> String {
    format!("doomed {number}, which may be stored apart from its key")
}

fn key(number: u32) -> String {
    format!("{number:05}")
}

fn each(of: impl Fn(Case)) {
    for (number, entry) in catalogue::ALL.iter().enumerate() {
        of(Case::new(entry.name, MEMTABLES[number % MEMTABLES.len()], INLINE));
        of(Case::new(entry.name, MEMTABLES[number % MEMTABLES.len()], SEPARATED));
    }
    for memtable in MEMTABLES {
        of(Case::new(catalogue::DEFAULT, memtable, INLINE));
    }
}

#[test]
fn an_idle_database_erases_deleted_values() {
    each(|case| {
        case.fill();
        case.put_doomed();
        case.work();
        case.pass(Duration::from_secs(6));
        // Puts the same keys again, this time only into the log and the memtable.
        case.put_doomed();
        case.delete_doomed();
        assert!(!case.holders("doomed").is_empty());
        case.pass(THRESHOLD);
        case.assert_gone("idle");
    });
}

#[test]
fn a_busy_database_erases_deleted_values() {
    each(|case| {
        case.fill();
        case.put_doomed();
        case.pass(Duration::from_secs(20));
        case.delete_doomed();
        let mut number = 300;
        let deadline = case.clock.now_micros() + THRESHOLD.as_micros() as u64;
        while case.clock.now_micros() < deadline {
            case.clock.advance(STEP);
            for _ in 0..5 {
                number += 1;
                case.db().put(key(number * 7919 % 2000 + 300), "a value of some length").unwrap();
            }
            case.work();
        }
        case.assert_gone("in use");
    });
}

/// A value file used to keep only the time of its first garbage, which may come from a value that was
/// overwritten shortly before the tombstone arrived.
#[test]
fn overwritten_neighbours_do_not_delay_erasure() {
    each(|case| {
        case.fill();
        case.put_doomed();
        let neighbours = [2, 3, 69, 72, 73, 139, 141, 142, 249, 251];
        let long = |round: u64| format!("a value that may be stored apart, of round {round:3}");
        neighbours.iter().for_each(|&number| case.db().put(key(number), long(0)).unwrap());
        case.pass(Duration::from_secs(20));
        case.delete_doomed();
        let deadline = case.clock.now_micros() + THRESHOLD.as_micros() as u64;
        let mut round = 0;
        while case.clock.now_micros() < deadline {
            case.clock.advance(STEP);
            round += 1;
            let number = neighbours[round as usize / 4 % neighbours.len()];
            case.db().put(key(number), long(round)).unwrap();
            for other in 0..5 {
                let number = (round as u32 * 5 + other) * 7919 % 2000 + 300;
                case.db().put(key(number), "a value of some length").unwrap();
            }
            case.work();
        }
        case.assert_gone("next to overwritten values");
    });
}

#[test]
fn erasure_due_while_closed_happens_on_opening() {
    each(|mut case| {
        case.fill();
        case.put_doomed();
        case.pass(Duration::from_secs(6));
        case.put_doomed();
        case.delete_doomed();
        let design = case.db().design();
        for round in 0..2 {
            match round {
                0 => case.crash(Crash::Process),
                _ => case.db.take().unwrap().close().unwrap(),
            }
            case.clock.advance(THRESHOLD * 3);
            case.open(Some(design.clone()));
            case.work();
            case.assert_gone("opened again");
            case.put_doomed();
            case.delete_doomed();
        }
    });
}

#[test]
fn a_power_failure_does_not_delay_erasure() {
    for (round, entry) in catalogue::ALL.iter().enumerate() {
        let mut case = Case::new(
            entry.name,
            MEMTABLES[round % MEMTABLES.len()],
            [INLINE, SEPARATED][round % 2],
        );
        case.fill();
        case.put_doomed();
        case.pass(STEP * (round as u32 % 8));
        case.delete_doomed();
        case.db().sync().unwrap();
        // The crash comes at various times, and afterwards files of both openings exist.
        case.pass(STEP * (round as u32 * 7 % 40));
        let percent = [0, 30, 70, 100][round % 4];
        case.crash(Crash::Power(Survival { percent, seed: round as u64 }));
        case.open(None);
        case.pass(THRESHOLD);
        assert!(case.db().get(key(1)).unwrap().is_none(), "{}", case.name);
        case.assert_gone("after the loss of power");
    }
}

#[test]
fn closing_empties_the_log() {
    let mut case = Case::new(catalogue::DEFAULT, "btree", SEPARATED);
    case.put_doomed();
    case.db.take().unwrap().close().unwrap();
    let holders = case.holders("doomed");
    assert!(holders.iter().all(|name| !name.ends_with(".log")), "{holders:?}");
    assert!(!holders.is_empty());
}

#[test]
fn a_keyspace_does_not_delay_erasure_in_another() {
    let case = Case::new(catalogue::DEFAULT, "btree", SEPARATED);
    let options = || KeyspaceOptions::new().design(small("tiering", "skiplist", SEPARATED));
    let idle = case.db().keyspace("idle", options()).unwrap();
    let busy = case.db().keyspace("busy", options()).unwrap();
    let gone = case.db().keyspace("gone", options()).unwrap();
    case.put_doomed();
    idle.put("a", "doomed").unwrap();
    gone.put("a", "doomed").unwrap();
    case.pass(STEP);
    idle.delete("a").unwrap();
    case.delete_doomed();
    case.db().drop_keyspace("gone").unwrap();
    drop(gone);
    let deadline = case.clock.now_micros() + THRESHOLD.as_micros() as u64;
    let mut number = 0;
    while case.clock.now_micros() < deadline {
        number += 1;
        let durability = if number % 2 == 0 { Durability::None } else { Durability::Process };
        let write = terrane::WriteOptions::new().durability(durability);
        let mut batch = terrane::WriteBatch::new();
        batch.put_in(&busy, key(number % 50), "a value");
        case.db().write_with(&batch, write).unwrap();
        case.clock.advance(STEP);
        case.work();
    }
    case.assert_gone("several keyspaces");
}

#[test]
fn a_snapshot_and_an_iterator_delay_erasure_until_they_are_released() {
    let case = Case::new("tiering", "btree", SEPARATED);
    case.put_doomed();
    case.work();
    let snapshot = case.db().snapshot();
    let mut iterator = case.db().iter().unwrap();
    case.delete_doomed();
    case.pass(THRESHOLD * 2);
    assert_eq!(snapshot.get(key(1)).unwrap().unwrap(), doomed(1));
    assert_eq!(iterator.next().unwrap().unwrap().1, doomed(1));
    // The log keeps nothing for the snapshot and the iterator.
    assert!(case.holders("doomed").iter().all(|name| !name.ends_with(".log")));
    drop((snapshot, iterator));
    case.pass(STEP);
    case.assert_gone("released");
}

/// The file used to stay until the database was reopened.
#[test]
fn a_file_that_could_not_be_removed_is_removed_later() {
    for (name, path, values) in [
        ("leveling", ".log", SEPARATED),
        ("leveling", ".sst", INLINE),
        ("tiering", ".sst", INLINE),
        ("leveling", ".val", SEPARATED),
        ("tiering", ".val", SEPARATED),
    ] {
        let storage = MemoryStorage::new(1);
        let clock = Arc::new(ManualClock::new(1_000_000_000));
        let fault = FaultStorage::new(Arc::new(storage.clone()));
        let db = Options::new()
            .storage(Arc::new(fault.clone()))
            .background(Background::Inline)
            .clock(clock.clone())
            .delete_persistence(THRESHOLD)
            .design(small(name, "btree", values))
            .open(DIR)
            .unwrap();
        let case = Case { storage, clock, db: Some(db), name: format!("{name}, {path}") };
        case.fill();
        case.put_doomed();
        case.db().flush().unwrap();
        case.pass(STEP);
        // Puts the same keys again, this time only into the log.
        case.put_doomed();
        case.delete_doomed();
        fault.set(Some(Fault {
            operation: Some(Operation::Name),
            path_contains: path.into(),
            after: 0,
            is_permanent: true,
            error: std::io::ErrorKind::Other,
        }));
        case.pass(THRESHOLD);
        assert!(fault.fired() > 0 && !case.holders("doomed").is_empty(), "{}", case.name);
        fault.set(None);
        case.pass(STEP);
        case.assert_gone("removed later");
    }
}

#[test]
fn background_threads_erase_the_log_by_time_alone() {
    let storage = MemoryStorage::new(1);
    let db = Options::new()
        .storage(Arc::new(storage.clone()))
        .delete_persistence(Duration::from_secs(1))
        .design(small("leveling", "btree", SEPARATED))
        .open(DIR)
        .unwrap();
    db.put("a", "doomed").unwrap();
    db.delete("a").unwrap();
    let case = Case {
        storage,
        clock: Arc::new(ManualClock::new(0)),
        db: Some(db),
        name: "threads".into(),
    };
    wait_until(|| case.holders("doomed").is_empty(), || case.tree().to_string());
}
