//! Makes writes visible in the order of their sequence numbers.
//!
//! Writers get their sequence numbers one after the other, but insert into memtables concurrently
//! and finish in any order. A write becomes visible once it and all writes before it are inserted,
//! so no reader sees part of a batch, or sees a write but not all writes before it.
//!
//! The visible position is a baton: only the writer whose first sequence number follows it may
//! advance it. A writer that finds the baton when it finishes advances the position with one atomic
//! exchange and writes no other shared memory. A writer that finishes early marks a slot in a ring,
//! which its first sequence number selects. The writer with the baton advances the position over
//! its own write and over all consecutive marked slots. A writer whose predecessors have not
//! finished waits: first it spins, because an insertion takes less than a microsecond, then it
//! sleeps, because a predecessor may be waiting for a sync. Writes that wait for a sync themselves
//! are marked before it ([`unsynced`]).
//!
//! A write that panics, or whose sync fails, never finishes, so no later write becomes visible. The
//! queue is then broken at that write, and the writers of later writes get an error. Earlier writes
//! continue.
//!
//! Invariants:
//! 1. Only the writer of the sequence number `visible + 1` changes `visible`, or the thread that has
//!    claimed its slot if that is marked as unsynced: another writer could do so only by finding the
//!    slot of that write marked, and the writer with the baton does not mark it.
//! 2. A writer marks its slot only if `visible + SLOTS >= first`. So every write with a lower first
//!    number that selects the same slot is visible before the slot is marked again.
//! 3. The slot that `visible + 1` selects is marked if and only if it contains a number above
//!    `visible`, apart from the bit of an unsynced write: the numbers of earlier marks are visible,
//!    and no later write has marked the slot (invariant 2).
//! 4. `visible` never decreases and never exceeds the last number of an inserted write whose
//!    predecessors are all inserted (invariants 1 and 3).

#[path = "commit_queue/unsynced.rs"]
mod unsynced;

use std::sync::PoisonError;
use std::time::{Duration, Instant};

#[cfg(loom)]
use loom::sync::{
    Condvar, Mutex,
    atomic::{AtomicU64, Ordering, fence},
};
#[cfg(not(loom))]
use std::sync::{
    Condvar, Mutex,
    atomic::{AtomicU64, Ordering, fence},
};

use terrane_memtable::Padded;

use crate::base::types::SeqNo;

/// The number of slots: how far a write may be ahead of the visible position when it is marked.
/// Loom tests use so few slots that slots are reused.
const SLOTS: usize = if cfg!(loom) { 2 } else { 1024 };

/// The slots of this many consecutive sequence numbers are in different cache lines, because
/// writers mark them concurrently.
const STRIDE: usize = if cfg!(loom) { 1 } else { 128 };

/// The number of iterations, each a few nanoseconds long, that a writer spins before it sleeps.
const SPINS: u32 = if cfg!(loom) { 0 } else { 400 };

/// A write that is inserted but not visible yet.
#[derive(Debug, Default)]
struct Slot {
    /// The last sequence number of the write, with a bit that says whether it is unsynced.
    last: AtomicU64,
    /// The end of its record in the log; 0 if the write is not logged.
    log_end: AtomicU64,
}

/// The sequence numbers of a write, and the end of its record in the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) first: SeqNo,
    pub(crate) last: SeqNo,
    /// The position after the record; 0 if the write is not logged.
    pub(crate) log_end: u64,
}

/// The order in which writes become visible.
#[derive(Debug)]
pub(crate) struct CommitQueue {
    slots: Box<[Slot]>,
    reached: Padded<Reached>,
    /// The smallest visible position for which a sleeper waits; `u64::MAX` if there is none.
    wanted: AtomicU64,
    /// The lowest sequence number at which the queue is broken, which never becomes visible;
    /// `u64::MAX` while the queue is intact. Lowering it wakes all sleepers.
    broken_at: AtomicU64,
    /// The records before this position of the log are durable, and possibly more.
    synced: AtomicU64,
    mutex: Mutex<()>,
    moved: Condvar,
}

/// The visible position. Every write advances it, and every reader loads it.
#[derive(Debug)]
struct Reached {
    visible: AtomicU64,
    /// All records before this log position are complete.
    log_end: AtomicU64,
}

impl CommitQueue {
    /// Creates a queue in which every write up to `visible` is visible.
    pub(crate) fn new(visible: SeqNo) -> Self {
        Self {
            slots: (0..SLOTS).map(|_| Slot::default()).collect(),
            reached: Padded(Reached {
                visible: AtomicU64::new(visible),
                log_end: AtomicU64::new(0),
            }),
            wanted: AtomicU64::new(u64::MAX),
            broken_at: AtomicU64::new(u64::MAX),
            synced: AtomicU64::new(0),
            mutex: Mutex::new(()),
            moved: Condvar::new(),
        }
    }

    /// Returns the newest sequence number that readers may see.
    #[inline]
    pub(crate) fn visible(&self) -> SeqNo {
        // Acquire pairs with the exchange in `advance`: insertions up to this number are seen.
        self.reached.visible.load(Ordering::Acquire)
    }

    /// Like [`Self::visible`], but with a sequentially consistent load.
    #[inline]
    pub(crate) fn visible_in_order(&self) -> SeqNo {
        self.reached.visible.load(Ordering::SeqCst)
    }

    /// Returns a log position before which all records are complete, including the records of all
    /// visible writes.
    pub(crate) fn log_end(&self) -> u64 {
        // SeqCst: see `Pipeline::sync_within`. The load is also an acquire, which pairs with the
        // exchange in `advance`, so the load below sees the position of that write.
        self.visible_in_order();
        self.reached.log_end.load(Ordering::Acquire)
    }

    /// Makes everything up to `seq` visible. Must be called only while no writers exist, as in
    /// recovery.
    pub(crate) fn set_visible(&self, seq: SeqNo) {
        // Release pairs with the acquire in `visible`: readers see the replayed entries.
        self.reached.visible.fetch_max(seq, Ordering::AcqRel);
    }

    /// Notes that the write whose first sequence number is `first` will never be inserted. No later
    /// write becomes visible.
    #[cold]
    pub(crate) fn break_off(&self, first: SeqNo) {
        // Relaxed: a sleeper reads it with the mutex, which is taken here after the store.
        self.broken_at.fetch_min(first, Ordering::Relaxed);
        drop(self.mutex.lock().unwrap_or_else(PoisonError::into_inner));
        self.moved.notify_all();
    }

    /// Returns true if a write will never be inserted.
    pub(crate) fn is_broken(&self) -> bool {
        // Relaxed: the writer lock orders this load after the wait that failed.
        self.broken_at.load(Ordering::Relaxed) != u64::MAX
    }

    fn slot(&self, first: SeqNo) -> &Slot {
        let (row, at) = (first as usize / STRIDE, first as usize % STRIDE);
        &self.slots[at * (SLOTS / STRIDE) + row % (SLOTS / STRIDE)]
    }

    /// Notes that a write is inserted and its record complete. Returns true once the write is
    /// visible, or false if it will never become visible because an earlier write broke the queue.
    #[inline]
    #[must_use = "a write may never become visible"]
    pub(crate) fn finish(&self, write: Span) -> bool {
        // Acquire: the insertions of all previous writes precede what this writer does next.
        if self.visible() == write.first - 1 {
            self.advance(write);
            return true;
        }
        self.wait_for_baton(write)
    }

    /// Advances the visible position over a write, whose writer has the baton, and over all marked
    /// writes behind it.
    #[inline]
    fn advance(&self, write: Span) {
        let Span { mut last, mut log_end, .. } = write;
        loop {
            let slot = self.slot(last + 1);
            // Acquire pairs with the release in `wait_for_baton`: the exchange below also publishes
            // the marked write's insertions.
            let marked = slot.last.load(Ordering::Acquire);
            if unsynced::last_of(marked) <= last {
                break; // Not marked (invariant 3).
            }
            if !self.pass(slot, marked) {
                break;
            }
            log_end = log_end.max(slot.log_end.load(Ordering::Relaxed));
            last = unsynced::last_of(marked);
        }
        // Loaded first, because most databases log either all writes or none, so the store is often
        // unnecessary. Only the writer with the baton stores the position.
        if log_end > self.reached.log_end.load(Ordering::Relaxed) {
            // Release pairs with the acquire in `log_end`: the records are seen complete.
            self.reached.log_end.store(log_end, Ordering::Release);
        }
        // SeqCst, like the load of `wanted` and the fence in `sleep_until`: either this thread sees
        // the sleeper, or the sleeper sees the position published here. The exchange is also a
        // release, which pairs with the acquire in `visible`.
        self.reached.visible.swap(last, Ordering::SeqCst);
        // Loom treats sequentially consistent accesses as weaker, and needs a fence.
        #[cfg(loom)]
        fence(Ordering::SeqCst);
        if self.wanted.load(Ordering::SeqCst) <= last {
            self.wake_sleepers();
        }
    }

    #[cold]
    fn wake_sleepers(&self) {
        let guard = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
        // A woken thread that must sleep again re-registers the position for which it waits. Until
        // then, no writer notifies it a second time. Relaxed: only changed with the mutex held.
        self.wanted.store(u64::MAX, Ordering::Relaxed);
        drop(guard);
        self.moved.notify_all();
    }

    /// Marks a write that is inserted before its predecessors are visible, and waits until it is
    /// visible. Advances the position if this writer gets the baton first.
    #[cold]
    fn wait_for_baton(&self, write: Span) -> bool {
        let Span { first, last, log_end } = write;
        // A writer passes the baton over this write only if it is marked, so if this writer gets
        // the baton before it has marked its slot, it keeps the baton.
        let near = first.saturating_sub(SLOTS as u64);
        if !self.wait_visible(near) {
            return false;
        }
        if self.visible() == first - 1 {
            self.advance(write);
            return true;
        }
        let slot = self.slot(first);
        // Relaxed: read only after `last`, whose release store follows.
        slot.log_end.store(log_end, Ordering::Relaxed);
        slot.last.store(last, Ordering::Release);
        // A predecessor may have passed the baton before it could see the mark, so each check also
        // looks for the baton. In that case no other writer advances over this write, because the
        // predecessor has already checked the slot (invariant 1).
        self.wait_until(first - 1, |queue| {
            let visible = queue.visible();
            if visible == first - 1 {
                queue.advance(write);
                return true;
            }
            visible >= last
        })
    }

    /// Waits until `seq` is visible. Returns false if it will never become visible.
    #[inline]
    #[must_use = "a write may never become visible"]
    pub(crate) fn wait_visible(&self, seq: SeqNo) -> bool {
        self.visible() >= seq || self.wait_until(seq, |queue| queue.visible() >= seq)
    }

    /// Waits until `seq` is visible, `timeout` has passed, or `is_over` returns true. Returns
    /// whether it is visible. Writers pay nothing for the wait until `seq` becomes visible.
    pub(crate) fn wait_visible_for(
        &self,
        seq: SeqNo,
        timeout: Duration,
        is_over: impl Fn() -> bool,
    ) -> bool {
        // A deadline beyond the range of the clock counts as none.
        let deadline = Instant::now().checked_add(timeout);
        loop {
            let seen = self.visible();
            if seen >= seq {
                return true;
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let guard = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
            // Checked with the mutex, which `wake_all` takes after the database is closed.
            let is_broken = self.broken_at.load(Ordering::Relaxed) <= seq;
            if is_over() || is_broken || left.is_some_and(|left| left.is_zero()) {
                return false;
            }
            // As in `sleep_until`.
            self.wanted.fetch_min(seq, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            if self.visible() == seen {
                let left = left.unwrap_or(Duration::MAX);
                drop(self.moved.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner));
            }
        }
    }

    /// Makes all sleepers check again whether they should keep waiting.
    pub(crate) fn wake_all(&self) {
        drop(self.mutex.lock().unwrap_or_else(PoisonError::into_inner));
        self.moved.notify_all();
    }

    /// Waits until every write up to `seq` either is visible or follows a write that broke the
    /// queue. Returns true if all are visible.
    pub(crate) fn wait_done(&self, seq: SeqNo) -> bool {
        loop {
            if self.wait_visible(seq) {
                return true;
            }
            // Relaxed: a stale value is higher, and the wait then fails as well.
            if self.wait_visible(self.broken_at.load(Ordering::Relaxed) - 1) {
                return false;
            }
        }
    }

    /// Waits until `is_reached` holds, which may happen once the visible position has reached
    /// `seq`.
    #[cold]
    fn wait_until(&self, seq: SeqNo, is_reached: impl Fn(&Self) -> bool) -> bool {
        for _ in 0..SPINS {
            if is_reached(self) {
                return true;
            }
            std::hint::spin_loop();
        }
        self.sleep_until(seq, is_reached)
    }

    /// Sleeps until `is_reached` holds, which may happen once the visible position has reached
    /// `seq`. Returns false if the queue is broken before that. No wakeup is lost: the writer that
    /// advances the position either sees the position for which the sleeper waits and notifies it,
    /// or advanced the position before the sleeper read it.
    #[cold]
    fn sleep_until(&self, seq: SeqNo, is_reached: impl Fn(&Self) -> bool) -> bool {
        loop {
            let seen = self.visible();
            // Checked without the mutex, which `advance` takes.
            if is_reached(self) {
                return true;
            }
            let guard = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
            if self.broken_at.load(Ordering::Relaxed) <= seq {
                return false;
            }
            // Relaxed: the fence orders this before the load below.
            self.wanted.fetch_min(seq, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            if self.visible() == seen {
                drop(self.moved.wait(guard).unwrap_or_else(PoisonError::into_inner));
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn one(seq: SeqNo) -> Span {
        Span { first: seq, last: seq, log_end: 8 * seq }
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a writer is a thread of the caller")]
    fn writes_become_visible_in_order_whoever_finishes_first() {
        let queue = Arc::new(CommitQueue::new(10));
        let waiting = Arc::clone(&queue);
        let later = std::thread::spawn(move || {
            assert!(waiting.finish(Span { first: 12, last: 14, log_end: 0 }));
            waiting.visible()
        });
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!((queue.visible(), queue.log_end()), (10, 0));
        assert!(queue.finish(one(11)));
        assert_eq!(later.join().unwrap(), 14);
        assert_eq!((queue.visible(), queue.log_end()), (14, 88));
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a writer is a thread of the caller")]
    fn writes_after_one_that_is_never_inserted_fail() {
        let queue = Arc::new(CommitQueue::new(0));
        let waiting = Arc::clone(&queue);
        let later = std::thread::spawn(move || waiting.finish(one(3)));
        std::thread::sleep(Duration::from_millis(5));
        queue.break_off(2);
        assert!(!later.join().unwrap());
        assert!(queue.finish(one(1)), "writes before it succeed");
        assert_eq!(queue.visible(), 1);
        for seq in [4, SLOTS as u64, 5 * SLOTS as u64] {
            assert!(!queue.finish(one(seq)));
        }
    }

    /// Writers did not wait for the writes before one that panicked, so these could be acknowledged
    /// after the database was closed.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "a writer is a thread of the caller")]
    fn writes_before_one_that_is_never_inserted_are_waited_for() {
        let queue = Arc::new(CommitQueue::new(0));
        queue.break_off(5);
        queue.break_off(3);
        queue.break_off(4);
        let all = [2, 9].map(|seq| {
            let waiting = Arc::clone(&queue);
            std::thread::spawn(move || (waiting.wait_done(seq), waiting.visible()))
        });
        let waiting = Arc::clone(&queue);
        let second = std::thread::spawn(move || waiting.finish(one(2)));
        std::thread::sleep(Duration::from_millis(5));
        assert!(queue.finish(one(1)));
        assert!(second.join().unwrap());
        assert_eq!(all.map(|one| one.join().unwrap()), [(true, 2), (false, 2)]);
    }

    /// The thread that synced makes the writes of both visible, and neither before.
    #[test]
    fn synced_writes_become_visible_together() {
        let queue = CommitQueue::new(0);
        assert!(queue.mark_unsynced(one(1)));
        assert!(queue.mark_unsynced(Span { first: 2, last: 4, log_end: 16 }));
        queue.note_synced(7);
        assert_eq!(queue.visible(), 0);
        queue.note_synced(16);
        assert_eq!((queue.visible(), queue.log_end()), (4, 16));
        assert!(queue.finish_synced(one(1)));
        assert!(queue.finish_synced(Span { first: 2, last: 4, log_end: 16 }));
        assert!(queue.finish(one(5)));
        assert_eq!(queue.visible(), 5);
    }

    #[test]
    fn the_baton_rests_at_an_unsynced_write() {
        let queue = CommitQueue::new(0);
        assert!(queue.mark_unsynced(one(2)));
        assert!(queue.mark_unsynced(one(3)));
        assert!(queue.finish(one(1)));
        assert_eq!(queue.visible(), 1);
        queue.note_synced(16);
        assert_eq!(queue.visible(), 2, "the record of the third ends at 24");
        // The writer of the third knows that its record is durable.
        assert!(queue.finish_synced(one(3)));
        assert!(queue.finish_synced(one(2)));
        assert_eq!(queue.visible(), 3);
        // A predecessor passes over writes whose records are durable.
        assert!(queue.mark_unsynced(one(5)));
        queue.note_synced(40);
        assert_eq!(queue.visible(), 3);
        assert!(queue.finish(one(4)));
        assert_eq!(queue.visible(), 5);
    }

    #[test]
    fn a_write_far_ahead_is_not_marked() {
        let queue = CommitQueue::new(0);
        assert!(queue.mark_unsynced(one(SLOTS as u64)));
        assert!(!queue.mark_unsynced(one(SLOTS as u64 + 1)));
    }

    #[test]
    fn the_failed_sync_of_a_write_breaks_the_queue() {
        let queue = CommitQueue::new(0);
        assert!(queue.mark_unsynced(one(1)));
        assert!(queue.mark_unsynced(one(2)));
        queue.break_off(1);
        assert!(!queue.finish_synced(one(2)));
        assert!(!queue.finish(one(3)));
        assert_eq!(queue.visible(), 0);
    }

    /// A batch with more operations than there are slots.
    #[test]
    fn a_large_batch_leaves_no_gap() {
        let queue = CommitQueue::new(0);
        let large = 5 * SLOTS as u64;
        assert!(queue.finish(Span { first: 1, last: large, log_end: 8 }));
        assert!(queue.finish(one(large + 1)));
        assert_eq!(queue.visible(), large + 1);
    }

    #[test]
    fn many_writers_leave_no_gap() {
        const WRITERS: u64 = 4;
        let queue = CommitQueue::new(0);
        let next = AtomicU64::new(1);
        let inserted: Vec<AtomicU64> = (0..40_001).map(|_| AtomicU64::new(0)).collect();
        std::thread::scope(|scope| {
            for _ in 0..WRITERS {
                scope.spawn(|| {
                    for number in 0..2500 {
                        let count = [1, 7][usize::from(number % 2 == 0)];
                        let first = next.fetch_add(count, Ordering::Relaxed);
                        let last = first + count - 1;
                        for seq in first..=last {
                            inserted[seq as usize].store(1, Ordering::Relaxed);
                        }
                        let write = Span { first, last, log_end: last };
                        // Every third write waits for a sync.
                        let sync = || {
                            queue.note_synced(last);
                            Ok::<_, ()>(())
                        };
                        let finished = match number % 3 {
                            0 => queue.finish_after(write, sync) == Ok(true),
                            _ => queue.finish(write),
                        };
                        assert!(finished);
                        let visible = queue.visible();
                        assert!(visible >= last && queue.log_end() >= last);
                        let all = inserted[1..=visible as usize].iter();
                        assert!(all.rev().take(20).all(|slot| slot.load(Ordering::Relaxed) == 1));
                    }
                });
            }
        });
        assert_eq!(queue.visible(), 40_000);
    }
}
