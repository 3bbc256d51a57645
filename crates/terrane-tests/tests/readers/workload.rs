//! A busy writer, and the state that a reader of its database must see.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use terrane::{Db, Design, Keyspace, KeyspaceOptions, Options, WriteBatch};
use terrane_testkit::{Rng, StopOnDrop};

/// The number of threads that write batches. One more thread administers the database, and writes
/// batches as well.
pub(crate) const THREADS: usize = 2;

/// The number of keys that each thread overwrites in turn.
const KEYS: u64 = 500;

const DESIGNS: &[&str] = &[
    "1-leveling T=4 L0=2 base=256KiB; buffer=32KiB; table=32KiB; block=1KiB",
    "tiering T=3 L0=2 base=128KiB; buffer=64KiB; table=64KiB; memtable=skiplist",
    "lazy-leveling T=3 L0=2 base=64KiB; buffer=32KiB; table=32KiB; flush=merge",
    "1-leveling T=3 L0=2 base=64KiB; buffer=32KiB; table=32KiB; values=separate(64,file=16KiB)",
];

/// The batches that each thread has finished.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) batches: [AtomicU64; THREADS + 1],
    /// The writer has ended.
    pub(crate) has_ended: AtomicBool,
}

impl Progress {
    pub(crate) fn load(&self) -> Vec<u64> {
        assert!(!self.has_ended.load(Ordering::SeqCst), "the writer failed");
        self.batches.iter().map(|number| number.load(Ordering::SeqCst)).collect()
    }
}

pub(crate) fn options() -> Options {
    Options::new().log_segment_bytes(64 << 10).log_bytes_max(1 << 20).memory_budget(16 << 20)
}

/// The keyspaces that every batch writes to.
fn keyspaces(db: &Db) -> Vec<Keyspace> {
    let other = |name| db.keyspace(name, KeyspaceOptions::new()).unwrap();
    vec![other("default"), other("left"), other("right")]
}

/// Creates the database and its keyspaces.
pub(crate) fn create(options: &Options, dir: &Path) {
    let db = options.clone().design(DESIGNS[0].parse().unwrap()).open(dir).unwrap();
    keyspaces(&db);
    db.close().unwrap();
}

fn counter(thread: usize) -> [u8; 2] {
    [b'c', thread as u8]
}

fn key(thread: usize, number: u64) -> Vec<u8> {
    let scattered = (number % KEYS).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [&scattered.to_be_bytes()[..3], &[thread as u8], &(number % KEYS).to_be_bytes()].concat()
}

fn value(number: u64) -> Vec<u8> {
    number.to_be_bytes().repeat(5 + (number % 20) as usize)
}

/// Puts the next batch of a thread: a counter and a value, in every keyspace.
fn put_batch(db: &Db, keyspaces: &[Keyspace], thread: usize, number: u64) {
    let mut batch = WriteBatch::new();
    for keyspace in keyspaces {
        batch.put_in(keyspace, counter(thread), number.to_be_bytes());
        batch.put_in(keyspace, key(thread, number), value(number));
    }
    db.write(&batch).unwrap();
}

fn number_of(keyspace: &Keyspace, thread: usize) -> Option<u64> {
    let stored = keyspace.get(counter(thread)).unwrap();
    stored.map(|bytes| u64::from_be_bytes(bytes[..].try_into().unwrap()))
}

/// Opens the database, writes to it from several threads until `is_done`, and closes it. Calls
/// `acknowledge` with the thread and the number of each batch.
pub(crate) fn write_and_administer(
    options: &Options,
    dir: &Path,
    remove_checkpoint: &dyn Fn(&Path),
    acknowledge: &(dyn Fn(usize, u64) + Sync),
    is_done: &(dyn Fn() -> bool + Sync),
) {
    let db = options.open(dir).unwrap();
    // Threads run until `is_done`, so the first one that ends before has failed; the others then end too.
    let is_over = AtomicBool::new(false);
    let is_done = || is_done() || is_over.load(Ordering::SeqCst);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (db, is_done, is_over) = (&db, &is_done, &is_over);
            scope.spawn(move || {
                let _guard = StopOnDrop(is_over);
                let keyspaces = keyspaces(db);
                let from = number_of(&keyspaces[0], thread).unwrap_or(0) + 1;
                for number in from.. {
                    if is_done() {
                        break;
                    }
                    put_batch(db, &keyspaces, thread, number);
                    acknowledge(thread, number);
                }
            });
        }
        let _guard = StopOnDrop(&is_over);
        administer(&db, dir, remove_checkpoint, acknowledge, &is_done);
    });
    db.close().unwrap();
}

/// Flushes, compacts, makes checkpoints, switches designs, and creates and drops a keyspace.
fn administer(
    db: &Db,
    dir: &Path,
    remove_checkpoint: &dyn Fn(&Path),
    acknowledge: &(dyn Fn(usize, u64) + Sync),
    is_done: &(dyn Fn() -> bool + Sync),
) {
    let always = keyspaces(db);
    let mut next = number_of(&always[0], THREADS).unwrap_or(0) + 1;
    let mut rng = Rng::new(next);
    while !is_done() {
        // No batch is written while the keyspace is missing, so a reader that finds it sees the
        // counter of the last batch in it, or no counter.
        db.drop_keyspace("passing").unwrap();
        let mut all = always.clone();
        all.push(db.keyspace("passing", KeyspaceOptions::new()).unwrap());
        for _ in 0..rng.between(1, 40) {
            put_batch(db, &all, THREADS, next);
            acknowledge(THREADS, next);
            next += 1;
        }
        let keyspace = &all[rng.below(all.len() as u64) as usize];
        match rng.below(5) {
            0 => db.flush().unwrap(),
            1 => keyspace.compact_range(..).unwrap(),
            2 => {
                let design: Design = rng.pick(DESIGNS).parse().unwrap();
                keyspace.set_design(design).unwrap();
            }
            3 => {
                let target = dir.with_extension(format!("checkpoint{next}"));
                db.checkpoint(&target).unwrap();
                remove_checkpoint(&target);
            }
            _ => {}
        }
    }
}

/// Checks that a reader sees one moment of the database, at or after `promised`. Returns the number of
/// batches of each thread that it sees.
pub(crate) fn check(reader: &Db, promised: &[u64]) -> Vec<u64> {
    let always = keyspaces(reader);
    let seen = |keyspace: &Keyspace| -> Vec<u64> {
        (0..=THREADS).map(|thread| number_of(keyspace, thread).unwrap_or(0)).collect()
    };
    let numbers = seen(&always[0]);
    for keyspace in &always {
        assert_eq!(seen(keyspace), numbers, "keyspaces differ");
    }
    let is_kept = |(seen, promised): (&u64, &u64)| seen >= promised;
    assert!(numbers.iter().zip(promised).all(is_kept), "{numbers:?} {promised:?}");
    if reader.keyspaces().iter().any(|name| name == "passing") {
        let passing = reader.keyspace("passing", KeyspaceOptions::new()).unwrap();
        let in_passing = number_of(&passing, THREADS);
        assert!(in_passing.is_none_or(|number| number == numbers[THREADS]), "{in_passing:?}");
    }
    for (thread, &last) in numbers.iter().enumerate() {
        for number in last.saturating_sub(KEYS - 1).max(1)..=last {
            for keyspace in &always {
                let found = keyspace.get(key(thread, number)).unwrap();
                assert_eq!(found.as_deref(), Some(&value(number)[..]), "{number} of {last}");
            }
        }
    }
    numbers
}
