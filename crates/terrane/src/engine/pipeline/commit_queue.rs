//! Makes writes visible in the order of their sequence numbers.
//!
//! Writers get their sequence numbers one after the other, but insert into memtables concurrently
//! and finish in any order. A write becomes visible once it and all writes before it are inserted,
//! so no reader sees part of a batch, or sees a write but not all writes before it.
//!
//! Writers enter a ring of slots in the order of their sequence numbers. A writer that has inserted
//! its entries marks its slot, and then advances the visible position over all consecutive marked
//! slots, including slots of other writers. A writer whose predecessors are not done waits: first
//! it spins, because an insertion takes less than a microsecond, then it sleeps, because a
//! predecessor may be waiting for a sync.
//!
//! A write that panics in its slot never marks it, so no later write becomes visible. The queue is
//! then broken off, and the writers of later writes get an error.
//!
//! Invariants:
//! 1. `published <= entered <= published + SLOTS`, because `enter` waits for a free slot; so a slot is
//!    reused only after its ticket was published.
//! 2. A slot is marked for ticket `t` once, because only the writer that entered with `t` marks it.
//! 3. `visible` never exceeds the last sequence number of the published tickets, because it is set
//!    only after a ticket is published, and never decreases, because only `fetch_max` changes it.

use std::sync::PoisonError;

#[cfg(loom)]
use loom::sync::{
    Condvar, Mutex,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
};
#[cfg(not(loom))]
use std::sync::{
    Condvar, Mutex,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
};

use terrane_memtable::Padded;

use crate::types::SeqNo;

/// The number of slots. It exceeds the usual number of concurrent writers; a writer that finds no
/// free slot waits until a slot becomes free. Tests under loom use so few slots that slots are
/// reused.
const SLOTS: usize = if cfg!(loom) { 2 } else { 1024 };

/// The slots of this number of consecutive tickets are in different cache lines, because their writers
/// mark them concurrently.
const STRIDE: usize = if cfg!(loom) { 1 } else { 128 };

/// The number of iterations, of a few nanoseconds each, that a writer spins before it sleeps.
const SPINS: u32 = if cfg!(loom) { 0 } else { 200 };

#[derive(Debug, Default)]
struct Slot {
    /// The last sequence number of the write.
    last: AtomicU64,
    /// One more than the ticket of the last write that was inserted in this slot.
    inserted: AtomicU64,
}

/// A position in the order of writes.
#[derive(Debug, Clone, Copy)]
#[must_use = "a ticket that is not finished blocks all later writes"]
pub(crate) struct Ticket(u64);

/// The order in which writes become visible.
#[derive(Debug)]
pub(crate) struct CommitQueue {
    slots: Box<[Slot]>,
    reached: Padded<Reached>,
    sleepers: AtomicUsize,
    /// True once the queue is broken off. Setting it wakes all sleepers.
    is_broken: AtomicBool,
    mutex: Mutex<()>,
    moved: Condvar,
}

/// The published position. Every write advances it, and every reader loads it.
#[derive(Debug)]
struct Reached {
    published: AtomicU64,
    visible: AtomicU64,
}

/// The next ticket. The writer lock, under which sequence numbers are assigned, protects it.
#[derive(Debug, Default)]
pub(crate) struct Entrance {
    next: u64,
    /// The last known number of published tickets. While it implies a free slot, the contended cache
    /// line of `Reached` is not read.
    published: u64,
}

impl CommitQueue {
    /// Creates a queue in which every write up to `visible` is visible.
    pub(crate) fn new(visible: SeqNo) -> Self {
        Self {
            slots: (0..SLOTS).map(|_| Slot::default()).collect(),
            reached: Padded(Reached {
                published: AtomicU64::new(0),
                visible: AtomicU64::new(visible),
            }),
            sleepers: AtomicUsize::new(0),
            is_broken: AtomicBool::new(false),
            mutex: Mutex::new(()),
            moved: Condvar::new(),
        }
    }

    /// Returns the newest sequence number that readers may see.
    #[inline]
    pub(crate) fn visible(&self) -> SeqNo {
        // Acquire pairs with the `fetch_max` in `advance`: insertions up to this number are seen.
        self.reached.visible.load(Ordering::Acquire)
    }

    /// Like [`Self::visible`], but with a sequentially consistent load.
    #[inline]
    pub(crate) fn visible_in_order(&self) -> SeqNo {
        self.reached.visible.load(Ordering::SeqCst)
    }

    /// Makes everything up to `seq` visible. Must be called only while there are no writers, as in
    /// recovery.
    pub(crate) fn set_visible(&self, seq: SeqNo) {
        // Release pairs with the acquire in `visible`: readers see the replayed entries.
        self.reached.visible.fetch_max(seq, Ordering::AcqRel);
    }

    /// Takes the next position. Callers enter one at a time, in the order of sequence numbers.
    /// Returns `None` if the queue was broken off and no slot will become free.
    #[must_use = "a ticket that is not finished blocks all later writes"]
    pub(crate) fn enter(&self, entrance: &mut Entrance, last: SeqNo) -> Option<Ticket> {
        let ticket = entrance.next;
        if ticket - entrance.published >= SLOTS as u64 {
            let is_free = |queue: &Self| {
                ticket - queue.reached.published.load(Ordering::Acquire) < SLOTS as u64
            };
            if !is_free(self) && !self.sleep_until(is_free) {
                return None;
            }
            // Acquire pairs with the exchange in `advance`: the slot's previous ticket was published
            // before the slot is reused.
            entrance.published = self.reached.published.load(Ordering::Acquire);
        }
        entrance.next += 1;
        // Relaxed: `last` is read only after `inserted`, whose release store in `finish` follows.
        self.slot(ticket).last.store(last, Ordering::Relaxed);
        Some(Ticket(ticket))
    }

    /// Records that a write will never be inserted. No later write becomes visible.
    #[cold]
    pub(crate) fn break_off(&self) {
        // Relaxed: a sleeper reads the flag with the mutex, which is taken here after the store.
        self.is_broken.store(true, Ordering::Relaxed);
        drop(self.mutex.lock().unwrap_or_else(PoisonError::into_inner));
        self.moved.notify_all();
    }

    fn slot(&self, ticket: u64) -> &Slot {
        let (row, at) = (ticket as usize / STRIDE, ticket as usize % STRIDE);
        &self.slots[at * (SLOTS / STRIDE) + row % (SLOTS / STRIDE)]
    }

    /// Marks the write of `ticket`, up to `last`, as inserted. Returns true once the write is
    /// visible, or false if it will never become visible because an earlier write broke off the
    /// queue.
    #[inline]
    #[must_use = "a write may never become visible"]
    pub(crate) fn finish(&self, ticket: Ticket, last: SeqNo) -> bool {
        // Release pairs with the acquire in `advance`: the thread that publishes the ticket sees its
        // insertions.
        self.slot(ticket.0).inserted.store(ticket.0 + 1, Ordering::Release);
        self.publish();
        self.visible() >= last || self.wait_visible(last)
    }

    /// Advances the visible position over all consecutive marked slots, and wakes sleepers.
    ///
    /// Two writers that mark neighbouring slots concurrently may each miss the mark of the other. Then
    /// the later write is not visible yet, and its writer goes to sleep: see [`Self::sleep_until`].
    #[inline]
    fn publish(&self) {
        // Sequentially consistent, like the changes of `advance` and the fence in `sleep_until`: either
        // this sees the sleeper, or the sleeper sees the position published here.
        if self.advance() {
            // Loom treats sequentially consistent accesses as weaker, and needs a fence.
            #[cfg(loom)]
            fence(Ordering::SeqCst);
            if self.sleepers.load(Ordering::SeqCst) > 0 {
                drop(self.mutex.lock().unwrap_or_else(PoisonError::into_inner));
                self.moved.notify_all();
            }
        }
    }

    /// Advances the visible position. Returns true if the position has changed.
    #[inline]
    fn advance(&self) -> bool {
        let mut has_moved = false;
        loop {
            // Acquire pairs with the exchange below, in any thread: whoever publishes this ticket sees
            // the insertions of all earlier ones.
            let ticket = self.reached.published.load(Ordering::Acquire);
            let slot = self.slot(ticket);
            // Acquire pairs with the release in `finish`.
            if slot.inserted.load(Ordering::Acquire) != ticket + 1 {
                return has_moved;
            }
            // Read before the slot is published. If another thread has published the slot meanwhile
            // and it was reused, the exchange fails and the value is not used.
            let last = slot.last.load(Ordering::Relaxed);
            let exchange = self.reached.published.compare_exchange(
                ticket,
                ticket + 1,
                Ordering::SeqCst,
                Ordering::Relaxed,
            );
            if exchange.is_ok() {
                // `fetch_max`, because a thread that published a later ticket may be ahead.
                self.reached.visible.fetch_max(last, Ordering::SeqCst);
                has_moved = true;
            }
        }
    }

    /// Waits until `seq` is visible. Returns false if it will never become visible.
    #[cold]
    #[must_use = "a write may never become visible"]
    pub(crate) fn wait_visible(&self, seq: SeqNo) -> bool {
        for _ in 0..SPINS {
            if self.visible() >= seq {
                return true;
            }
            std::hint::spin_loop();
        }
        self.sleep_until(|queue| queue.visible() >= seq)
    }

    /// Sleeps until `is_reached` holds. Returns false if the queue is broken off before that. No
    /// wakeup is lost, because a sleeper advances the position itself before it sleeps and whenever
    /// it wakes: the thread that published the slot before the slot of the sleeper has either seen
    /// the sleeper's mark, or sees the sleeper and wakes it.
    #[cold]
    fn sleep_until(&self, is_reached: impl Fn(&Self) -> bool) -> bool {
        let mut guard = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let is_done = loop {
            if self.advance() {
                self.moved.notify_all();
            }
            if is_reached(self) {
                break true;
            }
            if self.is_broken.load(Ordering::Relaxed) {
                break false;
            }
            guard = self.moved.wait(guard).unwrap_or_else(PoisonError::into_inner);
        };
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        is_done
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a writer is a thread of the caller")]
    fn writes_become_visible_in_order_whoever_finishes_first() {
        let queue = Arc::new(CommitQueue::new(10));
        let mut entrance = Entrance::default();
        let first = queue.enter(&mut entrance, 11).unwrap();
        let second = queue.enter(&mut entrance, 14).unwrap();
        let waiting = Arc::clone(&queue);
        let later = std::thread::spawn(move || {
            assert!(waiting.finish(second, 14));
            waiting.visible()
        });
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert_eq!(queue.visible(), 10);
        assert!(queue.finish(first, 11));
        assert_eq!(later.join().unwrap(), 14);
        assert_eq!(queue.visible(), 14);
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a writer is a thread of the caller")]
    fn writes_after_one_that_is_never_inserted_fail() {
        let queue = Arc::new(CommitQueue::new(0));
        let mut entrance = Entrance::default();
        let [before, lost, after] = [1, 2, 3].map(|seq| queue.enter(&mut entrance, seq).unwrap());
        let waiting = Arc::clone(&queue);
        let later = std::thread::spawn(move || waiting.finish(after, 3));
        std::thread::sleep(std::time::Duration::from_millis(5));
        let _ = lost;
        queue.break_off();
        assert!(!later.join().unwrap());
        assert!(queue.finish(before, 1), "writes before it succeed");
        assert_eq!(queue.visible(), 1);
        for seq in 4..=1 + SLOTS as u64 {
            let ticket = queue.enter(&mut entrance, seq).unwrap();
            assert!(!queue.finish(ticket, seq));
        }
        assert!(queue.enter(&mut entrance, 9999).is_none(), "no slot will be free");
    }

    #[test]
    fn many_writers_leave_no_gap() {
        let queue = CommitQueue::new(0);
        let entrance = Mutex::new((Entrance::default(), 0));
        let inserted: Vec<AtomicU64> = (0..8001).map(|_| AtomicU64::new(0)).collect();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let (ticket, seq) = {
                            let (entrance, last) = &mut *entrance.lock().unwrap();
                            *last += 1;
                            (queue.enter(entrance, *last).unwrap(), *last)
                        };
                        inserted[seq as usize].store(1, Ordering::Relaxed);
                        assert!(queue.finish(ticket, seq));
                        let visible = queue.visible();
                        assert!(visible >= seq);
                        let all = inserted[1..=visible as usize].iter();
                        assert!(all.rev().take(20).all(|slot| slot.load(Ordering::Relaxed) == 1));
                    }
                });
            }
        });
        assert_eq!(queue.visible(), 8000);
    }
}
