//! The order in which writes become visible, under all interleavings of the writer threads and all
//! values that their atomics may read: `cargo xtask loom`.
//!
//! The module under test is compiled into this test. Under `--cfg loom` its ring has two slots, so
//! three writers reuse one.
#![cfg(loom)]
#![allow(missing_docs, unreachable_pub, dead_code, clippy::unwrap_used, reason = "tests")]

#[path = "../src/engine/pipeline/commit_queue.rs"]
mod commit;

/// The types that the module under test imports from the crate.
mod types {
    pub(crate) type SeqNo = u64;
}

use std::sync::Arc;

use commit::{CommitQueue, Entrance};
use loom::sync::Mutex;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread::spawn;

fn model(test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 100_000;
    builder.check(test);
}

/// A queue, the source of the sequence numbers, and the inserted entries. As in a memtable, the
/// insert itself does not order anything.
struct Database {
    queue: CommitQueue,
    entrance: Mutex<(Entrance, u64)>,
    inserted: [AtomicU64; 4],
}

impl Database {
    fn new() -> Arc<Self> {
        let inserted = std::array::from_fn(|_| AtomicU64::new(0));
        let entrance = Mutex::new((Entrance::default(), 0));
        Arc::new(Self { queue: CommitQueue::new(0), entrance, inserted })
    }

    fn write(&self) -> u64 {
        let (ticket, seq) = {
            let mut guard = self.entrance.lock().unwrap();
            let (entrance, last) = &mut *guard;
            *last += 1;
            (self.queue.enter(entrance, *last).unwrap(), *last)
        };
        self.inserted[seq as usize].store(1, Ordering::Relaxed);
        assert!(self.queue.finish(ticket, seq));
        assert!(self.queue.visible() >= seq, "a write returned before it was visible");
        seq
    }

    /// Reads the visible position. Every write up to this position must have been inserted.
    fn read(&self) -> u64 {
        let visible = self.queue.visible();
        for seq in 1..=visible {
            let inserted = self.inserted[seq as usize].load(Ordering::Relaxed);
            assert_eq!(inserted, 1, "{seq} of {visible} is visible and not there");
        }
        visible
    }
}

#[test]
fn visible_writes_are_inserted() {
    model(|| {
        let database = Database::new();
        let other = Arc::clone(&database);
        let writer = spawn(move || other.write());
        let before = database.read();
        database.write();
        let after = database.read();
        assert!(before <= after && after >= 1);
        writer.join().unwrap();
        assert_eq!(database.read(), 2);
    });
}

#[test]
fn readers_see_writes_of_two_others_in_order() {
    model(|| {
        let database = Database::new();
        let writers = [Arc::clone(&database), Arc::clone(&database)];
        let writers = writers.map(|database| spawn(move || database.write()));
        let (first, second) = (database.read(), database.read());
        assert!(first <= second, "the visible position fell");
        for writer in writers {
            writer.join().unwrap();
        }
        assert_eq!(database.read(), 2);
    });
}

/// Three writes share two slots, so one slot is reused and its writer may have to wait.
#[test]
fn slots_are_reused_only_after_publication() {
    model(|| {
        let database = Database::new();
        let other = Arc::clone(&database);
        let writer = spawn(move || (other.write(), other.write()));
        database.write();
        writer.join().unwrap();
        assert_eq!(database.read(), 3);
    });
}

/// One write is abandoned, and a later one fails in every interleaving.
#[test]
fn a_broken_queue_wakes_all_waiters() {
    model(|| {
        let database = Database::new();
        let (lost, next) = {
            let mut guard = database.entrance.lock().unwrap();
            let lost = database.queue.enter(&mut guard.0, 1).unwrap();
            (lost, database.queue.enter(&mut guard.0, 2).unwrap())
        };
        let other = Arc::clone(&database);
        let writer = spawn(move || other.queue.finish(next, 2));
        let _ = lost;
        database.queue.break_off();
        assert!(!writer.join().unwrap());
        assert_eq!(database.queue.visible(), 0);
    });
}
