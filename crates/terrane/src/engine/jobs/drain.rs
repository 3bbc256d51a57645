//! FloDB's memtables: how large their front level is, and the threads that empty it.
//!
//! A write that finds its place in the front level taken goes to the lower level at once, which takes
//! longer. So threads move entries from one to the other meanwhile, as many as the designs ask for.
//! Without them all is right as well: flushes and scans drain what they come to.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use terrane_memtable::{DrainInsert, FloDbConfig, InsertOutcome, LowerLevel, Memtable, Update};
use terrane_policy::MemtableKind;
use terrane_policy::flodb::{self, FloDb};

use crate::engine::{Engine, Tree};
use crate::error::Result;
use crate::stats::Counter;
use crate::types::{MAX_SEQ, SeqNo};

/// A bucket of the front level, and its keys.
const BUCKET_BYTES: u64 = 64;
const BUCKET_KEYS: u64 = 6;

/// An entry is taken to be so large before there were any.
const ENTRY_BYTES_GUESS: u64 = 200;

/// Buckets fill unevenly: so many keys find their place if there is room for three of them for
/// every two.
const SPARE: (u64, u64) = (3, 2);

/// How long a thread rests that found nothing to move but what is hot.
const REST: Duration = Duration::from_millis(1);

/// A thread that sleeps looks again at least this often.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// The memtable that a design asks for, after one that held entries of some size.
pub(crate) fn config(flodb: FloDb, buffer_bytes: u64, before: Option<&Memtable>) -> FloDbConfig {
    let seen = before.filter(|before| before.len() > 100);
    let entry_bytes = seen
        .map_or(ENTRY_BYTES_GUESS, |before| (before.filled_bytes() / before.len()).max(1) as u64);
    let front_bytes = buffer_bytes / 100 * u64::from(flodb.membuffer_percent);
    let keys = front_bytes / entry_bytes * SPARE.0 / SPARE.1;
    // Small entries: the table itself takes no more than half.
    let most = front_bytes / 2 / BUCKET_BYTES;
    let buckets =
        if flodb.membuffer_percent == 0 { 0 } else { (keys / BUCKET_KEYS).min(most).max(1) };
    FloDbConfig {
        buckets: usize::try_from(buckets).unwrap_or(usize::MAX),
        partition_bits: flodb.partition_bits,
        lower: match flodb.lower {
            flodb::LowerLevel::BTree => LowerLevel::BTree,
            flodb::LowerLevel::SkipList => LowerLevel::SkipList,
        },
        insert: match flodb.insert {
            flodb::DrainInsert::Single => DrainInsert::Single,
            flodb::DrainInsert::Multi => DrainInsert::Multi,
        },
        update: match flodb.update {
            flodb::UpdateMode::InPlace => Update::InPlace,
            flodb::UpdateMode::Versions => Update::Versions,
        },
    }
}

/// What draining threads share with those who have something for them.
#[derive(Debug, Default)]
pub(crate) struct DrainSignal {
    threads: Mutex<usize>,
    asleep: AtomicUsize,
    mutex: Mutex<()>,
    came_up: Condvar,
}

impl DrainSignal {
    /// There is something to drain, or an end.
    #[inline]
    pub(crate) fn wake(&self) {
        if self.asleep.load(Ordering::SeqCst) > 0 {
            drop(self.mutex.lock().unwrap_or_else(PoisonError::into_inner));
            self.came_up.notify_one();
        }
    }

    pub(crate) fn wake_all(&self) {
        drop(self.mutex.lock().unwrap_or_else(PoisonError::into_inner));
        self.came_up.notify_all();
    }
}

impl Engine {
    /// Starts the threads that the designs ask for and that are not there yet.
    pub(crate) fn start_drain_threads(self: &Arc<Self>) -> Result<()> {
        if self.is_inline() {
            return Ok(());
        }
        let trees = self.trees();
        let wanted = trees.values().map(|tree| match tree.design().memtable {
            MemtableKind::FloDb(flodb) => usize::from(flodb.drain_threads),
            _ => 0,
        });
        let wanted = wanted.max().unwrap_or(0);
        let mut threads = self.drains.threads.lock().unwrap_or_else(PoisonError::into_inner);
        while *threads < wanted {
            self.start_thread(format!("terrane-drain-{threads}"), Self::drain_loop)?;
            *threads += 1;
        }
        Ok(())
    }

    fn drain_loop(&self) {
        while !self.is_stopping() {
            if self.drain_some() > 0 {
                continue;
            }
            if self.wants_drain() {
                std::thread::sleep(REST);
                continue;
            }
            let signal = &self.drains;
            let guard = signal.mutex.lock().unwrap_or_else(PoisonError::into_inner);
            signal.asleep.fetch_add(1, Ordering::SeqCst);
            if !self.wants_drain() && !self.is_stopping() {
                let waited = signal.came_up.wait_timeout(guard, LOOK_AGAIN);
                drop(waited.unwrap_or_else(PoisonError::into_inner));
            }
            signal.asleep.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Drains all memtables of a tree.
    pub(crate) fn drain_tree(&self, tree: &Tree) {
        tree.state_arc().memtables().for_each(|memtable| memtable.drain_all());
    }

    /// Whether what was drained of a tree has an entry in a range that is newer than `seq`.
    pub(crate) fn is_overtaken(&self, tree: &Tree, start: &[u8], end: &[u8], seq: SeqNo) -> bool {
        tree.state_arc().memtables().any(|memtable| {
            let mut cursor = memtable.cursor_of_drained();
            cursor.seek(start, MAX_SEQ);
            while let Some(entry) = cursor.entry().filter(|entry| entry.key < end) {
                if entry.seq > seq {
                    return true;
                }
                cursor.next();
            }
            false
        })
    }

    /// Does something while no one writes, and everything that was written is visible. What a panic
    /// broke off never is, and the database is poisoned then: no one reads it.
    pub(crate) fn while_writers_wait<T>(&self, action: impl FnOnce() -> T) -> T {
        let writer = self.lock_writer();
        // Those who have left the lock need it no more.
        let _are_all_visible = self.commits.wait_visible(writer.next_seq - 1);
        let result = action();
        drop(writer);
        result
    }

    fn wants_drain(&self) -> bool {
        self.trees().values().any(|tree| tree.state().active.memtable.wants_drain())
    }

    /// Drains the memtables that are written to. Answers how many versions were moved.
    fn drain_some(&self) -> usize {
        let start = Instant::now();
        let mut moved = 0;
        for tree in self.trees().values() {
            // Kept for as long as it takes, and no longer than that.
            let memtable = Arc::clone(&tree.state().active.memtable);
            moved += memtable.drain();
        }
        if moved > 0 {
            let micros = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
            self.counters.add(Counter::DrainMicros, micros);
            self.counters.add(Counter::Drained, moved as u64);
        }
        moved
    }

    /// Counts a write into a FloDB memtable, and has the threads drain it if need be.
    pub(crate) fn count_inserted(&self, inserted: InsertOutcome) {
        if inserted.is_in_membuffer {
            self.counters.add(Counter::MembufferWrites, 1);
        }
        if inserted.reclaimed > 0 {
            self.counters.add(Counter::UpdatesInPlace, inserted.reclaimed as u64);
        }
        if inserted.wants_drain {
            self.drains.wake();
        }
    }
}
