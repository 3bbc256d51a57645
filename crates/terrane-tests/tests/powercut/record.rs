//! The promises that the writer got, in files that a cut does not affect.
//!
//! Each database has a file of eight-byte numbers, which only grow. So every number read before a
//! cut was promised before the cut.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The writing threads. Their writes are logged, except those of the last one.
pub(crate) const THREADS: usize = 4;
/// The thread whose writes have no durability of their own.
pub(crate) const UNLOGGED: usize = THREADS - 1;

/// The checkpoints of one database.
pub(crate) const CHECKPOINTS: usize = 16;

const PHASE: usize = 0;
const ACKNOWLEDGED: usize = 1;
const DURABLE: usize = ACKNOWLEDGED + THREADS;
/// For each checkpoint its [`Phase`], then the number of writes of each thread that it must hold.
const CHECKPOINT: usize = DURABLE + THREADS;
const SLOTS: usize = CHECKPOINT + CHECKPOINTS * (1 + THREADS);

/// The life of a database or a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Absent,
    /// Its creation has returned.
    Created,
    /// It is being removed.
    Removed,
}

/// The record of one database as the writer keeps it.
pub(crate) struct Record {
    file: File,
    slots: Mutex<Vec<u64>>,
    /// How many writes of the unlogged thread are in the open database. Dropping the database
    /// without closing it loses some, which are then repeated.
    unlogged: AtomicU64,
}

fn path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:08}"))
}

impl Record {
    pub(crate) fn create(dir: &Path, number: u64) -> Self {
        let options = &mut OpenOptions::new();
        let file = options.write(true).create_new(true).open(path(dir, number)).unwrap();
        file.write_all_at(&[0; SLOTS * 8], 0).unwrap();
        Self { file, slots: Mutex::new(vec![0; SLOTS]), unlogged: AtomicU64::new(0) }
    }

    pub(crate) fn remove(dir: &Path, number: u64) {
        std::fs::remove_file(path(dir, number)).unwrap();
    }

    /// Raises a number. The lock keeps the numbers of the file growing.
    fn raise(&self, slot: usize, number: u64) {
        let mut slots = self.slots.lock().unwrap();
        if number > slots[slot] {
            slots[slot] = number;
            self.file.write_all_at(&number.to_le_bytes(), slot as u64 * 8).unwrap();
        }
    }

    pub(crate) fn phase(&self, phase: Phase) {
        self.raise(PHASE, phase as u64);
    }

    /// Records that the first `count` writes of a thread have returned.
    pub(crate) fn acknowledge(&self, thread: usize, count: u64) {
        if thread == UNLOGGED {
            self.unlogged.store(count, Ordering::SeqCst);
        }
        self.raise(ACKNOWLEDGED + thread, count);
    }

    /// Returns how many writes of each thread have returned and are in the open database.
    pub(crate) fn acknowledged(&self) -> Vec<u64> {
        let mut counts = self.slots.lock().unwrap()[ACKNOWLEDGED..][..THREADS].to_vec();
        counts[UNLOGGED] = self.unlogged.load(Ordering::SeqCst);
        counts
    }

    /// Records that these numbers of writes survive a loss of power.
    pub(crate) fn promise(&self, counts: &[u64]) {
        for (thread, count) in counts.iter().enumerate() {
            self.raise(DURABLE + thread, *count);
        }
    }

    /// Records that a checkpoint with at least these numbers of writes is durable.
    pub(crate) fn promise_checkpoint(&self, checkpoint: usize, counts: &[u64]) {
        let first = CHECKPOINT + checkpoint * (1 + THREADS);
        for (thread, count) in counts.iter().enumerate() {
            self.raise(first + 1 + thread, *count);
        }
        self.raise(first, Phase::Created as u64);
    }

    /// Returns a checkpoint that was never made.
    pub(crate) fn unused_checkpoint(&self) -> Option<usize> {
        let slots = self.slots.lock().unwrap();
        (0..CHECKPOINTS).find(|number| slots[CHECKPOINT + number * (1 + THREADS)] == 0)
    }

    pub(crate) fn remove_checkpoint(&self, checkpoint: usize) {
        self.raise(CHECKPOINT + checkpoint * (1 + THREADS), Phase::Removed as u64);
    }
}

/// A record as saved before or after a cut.
pub(crate) struct Saved(Vec<u64>);

impl Saved {
    /// Reads all records of a directory, with the numbers of their databases.
    pub(crate) fn read_all(dir: &Path) -> Vec<(u64, Self)> {
        let files = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
        let read = |file: PathBuf| {
            let number = file.file_name().unwrap().to_str().unwrap().parse().unwrap();
            let bytes = std::fs::read(&file).unwrap();
            let words = bytes.chunks_exact(8).map(|word| word.try_into().unwrap());
            let mut slots: Vec<u64> = words.map(u64::from_le_bytes).collect();
            // The file was saved while it was created.
            slots.resize(SLOTS, 0);
            (number, Self(slots))
        };
        files.map(read).collect()
    }

    pub(crate) fn empty() -> Self {
        Self(vec![0; SLOTS])
    }

    pub(crate) fn phase(&self) -> Phase {
        phase_of(self.0[PHASE])
    }

    pub(crate) fn acknowledged(&self) -> &[u64] {
        &self.0[ACKNOWLEDGED..][..THREADS]
    }

    pub(crate) fn promised(&self) -> &[u64] {
        &self.0[DURABLE..][..THREADS]
    }

    /// Returns the phase of a checkpoint, and how many writes of each thread it must hold.
    pub(crate) fn checkpoint(&self, checkpoint: usize) -> (Phase, &[u64]) {
        let slots = &self.0[CHECKPOINT + checkpoint * (1 + THREADS)..][..1 + THREADS];
        (phase_of(slots[0]), &slots[1..])
    }
}

fn phase_of(number: u64) -> Phase {
    match number {
        0 => Phase::Absent,
        1 => Phase::Created,
        _ => Phase::Removed,
    }
}
