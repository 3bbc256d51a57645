//! Writes to one database after another: creates it in directories of its own, writes with several
//! threads while another one flushes, compacts, switches designs and makes checkpoints, reopens it,
//! and removes the previous database.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use terrane::{
    Db, Design, Durability, Keyspace, KeyspaceOptions, Options, WriteBatch, WriteOptions,
};
use terrane::{WriteMode, WritePath};
use terrane_policy::MemtableKind;
use terrane_testkit::Rng;

use super::record::{Phase, Record, THREADS, UNLOGGED};

/// Writes that a thread makes to one database at most, so that checks stay short.
const WRITES_MAX: u64 = 6000;

/// How many of its last writes a thread keeps in the default keyspace.
pub(crate) const KEPT: u64 = 50;

const TREES: &[&str] = &[
    "balanced L0=2 base=64KiB",
    "tiering T=3 L0=2 base=64KiB",
    "leveling T=4 L0=1 base=64KiB",
    "lazy-leveling T=3 L0=2 base=64KiB",
    "1-leveling T=4 L0=2 base=64KiB",
    "balanced L0=3 base=64KiB; flush=merge",
];

pub(crate) fn database(root: &Path, number: u64) -> PathBuf {
    root.join(format!("{number:08}/nested/db"))
}

pub(crate) fn checkpoint(root: &Path, number: u64, checkpoint: usize) -> PathBuf {
    root.join(format!("{number:08}/copies/{checkpoint}"))
}

/// Options with small files, so that every kind of change of files happens often.
pub(crate) fn options() -> Options {
    Options::new().log_segment_bytes(256 << 10).memory_budget(8 << 20)
}

fn design(rng: &mut Rng) -> Design {
    loop {
        let (tree, memtable) = (rng.pick(TREES), rng.pick(MemtableKind::EXAMPLES));
        let design = format!("{tree}; memtable={memtable}; buffer=32KiB; table=32KiB; block=512");
        let design: Design = design.parse().unwrap();
        if design.validate().is_ok() {
            return design;
        }
    }
}

pub(crate) fn key(thread: usize, number: u64) -> Vec<u8> {
    // Keys are scattered, so that compactions have to merge.
    let scattered = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [&scattered.to_be_bytes()[..4], &[thread as u8], &number.to_be_bytes()].concat()
}

pub(crate) fn value(thread: usize, number: u64) -> Vec<u8> {
    let mut rng = Rng::new((thread as u64) << 32 | number);
    rng.bits().to_be_bytes().repeat((number % 20) as usize + 1)
}

/// The key of a thread's write count, which is in each of its batches.
pub(crate) fn count_key(thread: usize) -> [u8; 2] {
    [b'n', thread as u8]
}

/// Returns the write counts that the last batch of a thread stores: its own, then how many writes
/// of each thread had returned before that batch was written.
pub(crate) fn stored_counts(keyspace: &Keyspace, thread: usize) -> Vec<u64> {
    let Some(bytes) = keyspace.get(count_key(thread)).unwrap() else { return vec![0; 1 + THREADS] };
    bytes.chunks_exact(8).map(|word| u64::from_be_bytes(word.try_into().unwrap())).collect()
}

/// Writes to `databases` databases.
pub(crate) fn write(root: &Path, records: &Path, seed: u64, databases: u64) {
    let mut last: Option<Record> = None;
    for number in 0..databases {
        let mut rng = Rng::new(seed.wrapping_add(number));
        let record = Record::create(records, number);
        let lives = rng.between(2, 4);
        for life in 0..lives {
            let database = Database { root, number, record: &record };
            database.live(&mut rng, life == 0, life + 1 == lives);
        }
        // The previous database stayed closed until now.
        if let Some(last) = last.replace(record) {
            last.phase(Phase::Removed);
            std::fs::remove_dir_all(root.join(format!("{:08}", number - 1))).unwrap();
            Record::remove(records, number - 1);
        }
    }
}

struct Database<'a> {
    root: &'a Path,
    number: u64,
    record: &'a Record,
}

impl Database<'_> {
    /// Opens the database, writes for a while, and closes or drops it.
    fn live(&self, rng: &mut Rng, is_new: bool, is_last: bool) {
        let mut options = options()
            .write_mode(*rng.pick(&[WriteMode::Buffered, WriteMode::Buffered, WriteMode::Direct]))
            .write_path(*rng.pick(&[WritePath::Concurrent, WritePath::Queue]))
            .flush_threads(rng.between(1, 3) as usize)
            .merge_threads(*rng.pick(&[1, 3]));
        if is_new {
            options = options.design(design(rng));
        }
        let db = options.open(database(self.root, self.number)).unwrap();
        self.record.phase(Phase::Created);
        let others = KeyspaceOptions::new();
        let (other, unlogged) = (
            db.keyspace("other", others.clone()).unwrap(),
            db.keyspace("unlogged", others).unwrap(),
        );
        let writes = rng.between(WRITES_MAX / 12, WRITES_MAX / 4);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let (db, other, unlogged, mut rng) = (&db, &other, &unlogged, rng.fork());
                    scope.spawn(move || match thread {
                        UNLOGGED => self.write_unlogged(db, unlogged, writes),
                        _ => self.write_logged(db, other, thread, writes, &mut rng),
                    })
                })
                .collect();
            let (db, is_over, mut rng) = (&db, &is_over, rng.fork());
            scope.spawn(move || {
                while !is_over.load(Ordering::SeqCst) {
                    self.maintain(db, &mut rng);
                    std::thread::sleep(Duration::from_millis(rng.between(1, 30)));
                }
            });
            let ended: Vec<_> =
                writers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
            is_over.store(true, Ordering::SeqCst);
            ended.into_iter().for_each(|ended| ended.unwrap());
        });
        drop((other, unlogged));
        if is_last || rng.percent(50) {
            db.close().unwrap();
            self.record.promise(&self.record.acknowledged());
        } else {
            drop(db);
        }
    }

    /// Writes batches over two keyspaces, each with the number of writes of all threads so far.
    fn write_logged(&self, db: &Db, other: &Keyspace, thread: usize, writes: u64, rng: &mut Rng) {
        let default = db.keyspace("default", KeyspaceOptions::new()).unwrap();
        let from = stored_counts(&default, thread)[0];
        // A synced write waits for the device, so this thread writes fewer.
        let writes = if thread == 0 { writes / 8 } else { writes };
        for number in from..from + writes {
            let before = self.record.acknowledged();
            let counts: Vec<u64> = [number + 1].into_iter().chain(before.clone()).collect();
            let counts = counts.iter().flat_map(|count| count.to_be_bytes()).collect::<Vec<u8>>();
            let mut batch = WriteBatch::new();
            batch.put(key(thread, number), value(thread, number));
            batch.put_in(other, key(thread, number), b"too");
            batch.put(count_key(thread), counts);
            if let Some(old) = number.checked_sub(KEPT) {
                let old = key(thread, old);
                if rng.percent(5) {
                    let end = [&old[..], &[0]].concat();
                    batch.delete_range(old..end);
                } else {
                    batch.delete(old);
                }
            }
            let interval = Durability::Interval(Duration::from_millis(5));
            let durability = match rng.below(100) {
                _ if thread == 0 => Durability::Sync,
                0..=3 => Durability::Sync,
                4..=50 => interval,
                _ => Durability::Process,
            };
            db.write_with(&batch, WriteOptions::new().durability(durability)).unwrap();
            self.record.acknowledge(thread, number + 1);
            if durability == Durability::Sync {
                // A synced write makes all logged writes that returned before it durable.
                let mut promised = before;
                promised[thread] = number + 1;
                promised[UNLOGGED] = 0;
                self.record.promise(&promised);
            }
        }
    }

    /// Writes without the log to a separate keyspace, whose tree keeps a prefix of the writes.
    fn write_unlogged(&self, db: &Db, unlogged: &Keyspace, writes: u64) {
        let options = WriteOptions::new().durability(Durability::None);
        let from = stored_counts(unlogged, UNLOGGED)[0];
        self.record.acknowledge(UNLOGGED, from);
        for number in from..from + writes {
            let mut batch = WriteBatch::new();
            batch.put_in(unlogged, key(UNLOGGED, number), value(UNLOGGED, number));
            batch.put_in(unlogged, count_key(UNLOGGED), (number + 1).to_be_bytes());
            db.write_with(&batch, options).unwrap();
            self.record.acknowledge(UNLOGGED, number + 1);
        }
    }

    /// One administrative step, with its promises.
    fn maintain(&self, db: &Db, rng: &mut Rng) {
        let before = self.record.acknowledged();
        match rng.below(20) {
            0..=5 => {
                db.sync().unwrap();
                let mut promised = before;
                promised[UNLOGGED] = 0;
                self.record.promise(&promised);
            }
            6..=8 => {
                db.flush().unwrap();
                self.record.promise(&before);
            }
            9..=13 => {
                let name = *rng.pick(&["default", "other", "unlogged"]);
                let keyspace = db.keyspace(name, KeyspaceOptions::new()).unwrap();
                keyspace.set_design(design(rng)).unwrap();
            }
            14 => db.compact_range(..).unwrap(),
            15..=17 => self.checkpoint(db, rng, before),
            _ => {
                let options = KeyspaceOptions::new().design(design(rng));
                let _ = db.drop_keyspace("temporary").unwrap();
                db.keyspace("temporary", options).unwrap().put("key", "value").unwrap();
            }
        }
    }

    /// Makes a checkpoint, and removes an earlier one now and then.
    fn checkpoint(&self, db: &Db, rng: &mut Rng, mut before: Vec<u64>) {
        let Some(number) = self.record.unused_checkpoint() else { return };
        let path = checkpoint(self.root, self.number, number);
        db.checkpoint(&path).unwrap();
        before[UNLOGGED] = 0;
        self.record.promise_checkpoint(number, &before);
        if rng.percent(30) {
            self.record.remove_checkpoint(number);
            std::fs::remove_dir_all(&path).unwrap();
        }
    }
}
