//! Tests the order in which writes become visible, and how writers reserve sequence numbers, under
//! all interleavings of the writer threads and all values that their atomic loads may return:
//! `cargo xtask loom`.
//!
//! The modules under test are compiled into this test, and the test is in this package, because the engine and what it
//! depends on would take a minute to compile under `--cfg loom`. Under `--cfg loom` the ring has two slots,
//! so three writers reuse a slot.
#![cfg(loom)]
#![allow(missing_docs, unreachable_pub, dead_code, clippy::unwrap_used, reason = "tests")]

#[path = "../../terrane/src/engine/pipeline/commit_queue.rs"]
mod commit;
#[path = "../../terrane/src/engine/pipeline/reservations.rs"]
mod reservations;

/// The types that the modules under test import from the crate.
mod base {
    pub(crate) mod types {
        pub(crate) type SeqNo = u64;
    }
}

use std::sync::Arc;

use commit::{CommitQueue, Span};
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread::spawn;
use reservations::{Reservations, Reserved};

fn model(test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 100_000;
    builder.check(test);
}

fn one(seq: u64) -> Span {
    Span { first: seq, last: seq, log_end: seq }
}

/// A queue, the source of the sequence numbers, and the inserted entries. As in a memtable, the
/// insert itself does not order anything.
struct Database {
    queue: CommitQueue,
    next: AtomicU64,
    inserted: [AtomicU64; 5],
    /// The writes up to this number are durable.
    durable: AtomicU64,
}

/// The entry of a write that must not become visible before its sync.
const SYNCED: u64 = 2;

impl Database {
    fn new() -> Arc<Self> {
        let inserted = std::array::from_fn(|_| AtomicU64::new(0));
        Arc::new(Self {
            queue: CommitQueue::new(0),
            next: AtomicU64::new(1),
            inserted,
            durable: AtomicU64::new(0),
        })
    }

    fn write(&self) -> u64 {
        self.write_batch(1)
    }

    /// Writes a batch, and returns its last sequence number.
    fn write_batch(&self, operations: u64) -> u64 {
        let first = self.next.fetch_add(operations, Ordering::Relaxed);
        let last = first + operations - 1;
        for seq in first..=last {
            self.inserted[seq as usize].store(1, Ordering::Relaxed);
        }
        assert!(self.queue.finish(Span { first, last, log_end: last }));
        assert!(self.queue.visible() >= last, "a write returned before it was visible");
        assert!(self.queue.log_end() >= last, "the record of a visible write is not complete");
        last
    }

    /// Inserts a write, lets another thread see it as unsynced, and syncs the log.
    fn write_synced(&self) {
        let seq = self.next.fetch_add(1, Ordering::Relaxed);
        self.inserted[seq as usize].store(SYNCED, Ordering::Relaxed);
        let finished = self.queue.finish_after(one(seq), || {
            self.durable.fetch_max(seq, Ordering::Relaxed);
            self.queue.note_synced(seq);
            Ok::<_, ()>(())
        });
        assert_eq!(finished, Ok(true));
        assert!(self.queue.visible() >= seq, "a write returned before it was visible");
    }

    /// Reads the visible position. Every write up to this position must have been inserted.
    fn read(&self) -> u64 {
        let visible = self.queue.visible();
        for seq in 1..=visible {
            let inserted = self.inserted[seq as usize].load(Ordering::Relaxed);
            assert_ne!(inserted, 0, "{seq} of {visible} is visible but not inserted");
            let is_durable = self.durable.load(Ordering::Relaxed) >= seq;
            assert!(is_durable || inserted != SYNCED, "{seq} is visible before its sync");
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

/// A batch spans a slot that a later write uses, so the position must pass over that slot.
#[test]
fn batches_and_single_writes_leave_no_gap() {
    model(|| {
        let database = Database::new();
        let other = Arc::clone(&database);
        let writer = spawn(move || other.write_batch(3));
        database.write();
        writer.join().unwrap();
        assert_eq!(database.read(), 4);
    });
}

/// Two writes wait for a sync, which the second writer performs, while the first may write again.
#[test]
fn synced_writes_are_visible_once() {
    model(|| {
        let database = Database::new();
        let other = Arc::clone(&database);
        let writer = spawn(move || other.write_synced());
        database.write_synced();
        database.read();
        writer.join().unwrap();
        assert_eq!(database.read(), 2);
    });
}

/// The write without a sync passes over the other one, stops before it, or follows it.
#[test]
fn a_write_passes_over_a_synced_one() {
    model(|| {
        let database = Database::new();
        let other = Arc::clone(&database);
        let writer = spawn(move || (other.write_synced(), other.write()));
        database.write();
        database.read();
        writer.join().unwrap();
        assert_eq!(database.read(), 3);
    });
}

/// One write is abandoned, and in every interleaving a later one fails.
#[test]
fn a_broken_queue_wakes_all_waiters() {
    model(|| {
        let database = Database::new();
        let other = Arc::clone(&database);
        let writer = spawn(move || other.queue.finish(one(2)));
        database.queue.break_off(1);
        assert!(!writer.join().unwrap());
        assert_eq!(database.queue.visible(), 0);
    });
}

/// The last of three writes is abandoned. The writes before it become visible in every
/// interleaving, and a thread that waits for all of them sees that.
#[test]
fn writes_before_an_abandoned_one_are_waited_for() {
    model(|| {
        let database = Database::new();
        let writers = [1, 2].map(|seq| {
            let database = Arc::clone(&database);
            spawn(move || assert!(database.queue.finish(one(seq))))
        });
        database.queue.break_off(3);
        assert!(!database.queue.wait_done(3));
        assert_eq!(database.queue.visible(), 2);
        for writer in writers {
            writer.join().unwrap();
        }
    });
}

/// Two writers reserve until the space is used up or closed. Their parts are disjoint and leave no
/// gap before the end that closing returns.
#[test]
fn reservations_end_where_closing_says() {
    for limit in [Reserved { operations: 9, units: 4 }, Reserved { operations: 2, units: 9 }] {
        model(move || {
            let all = Arc::new(Reservations::new(limit));
            let writers = [2, 3].map(|units| {
                let all = Arc::clone(&all);
                let wanted = Reserved { operations: 1, units };
                spawn(move || [(); 2].map(|()| Some((all.reserve(wanted)?, wanted))))
            });
            let end = all.close();
            let parts = writers.map(|writer| writer.join().unwrap());
            let mut parts: Vec<_> = parts.into_iter().flatten().flatten().collect();
            parts.sort_by_key(|(before, _)| before.operations);
            let mut next = Reserved::default();
            for (before, wanted) in parts {
                assert_eq!(before, next);
                next.operations += wanted.operations;
                next.units += wanted.units;
            }
            assert_eq!(next, end);
            assert!(all.reserve(Reserved { operations: 1, units: 0 }).is_none());
        });
    }
}

/// A writer whose reservation succeeds loaded the state before it was closed, so later changes do
/// not affect it.
#[test]
fn a_reservation_that_succeeds_used_the_state_before_closing() {
    model(|| {
        let all = Arc::new(Reservations::new(Reserved { operations: 9, units: 9 }));
        let state = Arc::new(AtomicU64::new(0));
        let (other, changed) = (Arc::clone(&all), Arc::clone(&state));
        let writer = spawn(move || {
            let loaded = changed.load(Ordering::Relaxed);
            let reserved = other.reserve(Reserved { operations: 1, units: 1 });
            (loaded, reserved.is_some())
        });
        let end = all.close();
        state.store(1, Ordering::Relaxed);
        let (loaded, is_reserved) = writer.join().unwrap();
        assert_eq!(end.operations, u64::from(is_reserved));
        assert!(!is_reserved || loaded == 0, "the state was changed under a reservation");
    });
}
