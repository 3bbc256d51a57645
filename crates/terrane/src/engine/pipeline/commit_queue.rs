//! Makes writes visible in the order of their sequence numbers.
//!
//! Writers get their sequence numbers one after the other, but insert into memtables at the same
//! time, and finish in any order. A write is visible once it and all before it are inserted: then
//! no reader sees a batch in part, nor a write without those before it.
//!
//! Writers enter a ring of slots in the order of their sequence numbers. Who has inserted marks
//! its slot, and then moves the visible position over all marked slots in a row, also those of
//! others. A writer whose predecessors are not done yet waits: first by spinning, for inserting
//! takes less than a microsecond, then asleep, for its predecessor may be waiting for a sync.
//!
//! A write that panics in its slot never marks it. What comes after it must not become visible, and
//! does not: the queue is broken off, and whoever waits is told so.
//!
//! Invariants:
//! 1. `published <= entered <= published + SLOTS`; a slot is entered again only after it was
//!    published.
//! 2. A slot is marked for ticket `t` once, by the writer that entered with it.
//! 3. `visible` is the last sequence number of some published ticket, and never falls.

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

/// More than there ever are writers at once; a writer that finds none free waits for one. Under
/// loom so few that slots are used again.
const SLOTS: usize = if cfg!(loom) { 2 } else { 1024 };

/// Slots of so many tickets in a row are in cache lines of their own: their writers mark them at the
/// same time.
const APART: usize = if cfg!(loom) { 1 } else { 128 };

/// How long a writer spins before it sleeps, in loops of a few nanoseconds.
const SPINS: u32 = if cfg!(loom) { 0 } else { 200 };

#[derive(Debug, Default)]
struct Slot {
    /// The last sequence number of the write.
    last: AtomicU64,
    /// The ticket that was inserted, plus one.
    inserted: AtomicU64,
}

/// A place in the order of writes.
#[derive(Debug, Clone, Copy)]
#[must_use = "a ticket that is not finished holds up all later writes"]
pub(crate) struct Ticket(u64);

/// The order in which writes become visible.
#[derive(Debug)]
pub(crate) struct CommitQueue {
    slots: Box<[Slot]>,
    reached: Padded<Reached>,
    sleepers: AtomicUsize,
    /// Set once, and told to those that sleep.
    is_broken: AtomicBool,
    mutex: Mutex<()>,
    moved: Condvar,
}

/// How far it has come. Every write moves it, and every reader looks at it.
#[derive(Debug)]
struct Reached {
    published: AtomicU64,
    visible: AtomicU64,
}

/// The next ticket; kept by whoever gives out sequence numbers, one at a time.
#[derive(Debug, Default)]
pub(crate) struct Entrance {
    next: u64,
    /// So many were published when that was looked at last: as long as that leaves a slot free, the
    /// line that all writers fight over is left alone.
    published: u64,
}

impl CommitQueue {
    /// A queue in which everything up to `visible` is visible.
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

    /// The newest sequence number that readers may see.
    #[inline]
    pub(crate) fn visible(&self) -> SeqNo {
        // Acquire pairs with the release in `publish`: what was inserted before is seen.
        self.reached.visible.load(Ordering::Acquire)
    }

    /// As [`Self::visible`], and sequentially consistent.
    #[inline]
    pub(crate) fn visible_in_order(&self) -> SeqNo {
        self.reached.visible.load(Ordering::SeqCst)
    }

    /// Everything up to `seq` is visible. Only while no one writes, as in recovery.
    pub(crate) fn set_visible(&self, seq: SeqNo) {
        self.reached.visible.fetch_max(seq, Ordering::AcqRel);
    }

    /// Takes the next place. Callers enter one at a time, in the order of sequence numbers. `None`
    /// if there will be none, as the queue was broken off.
    #[must_use = "a ticket that is not finished holds up all later writes"]
    pub(crate) fn enter(&self, entrance: &mut Entrance, last: SeqNo) -> Option<Ticket> {
        let ticket = entrance.next;
        if ticket - entrance.published >= SLOTS as u64 {
            let is_free = |queue: &Self| {
                ticket - queue.reached.published.load(Ordering::Acquire) < SLOTS as u64
            };
            if !is_free(self) && !self.sleep_until(is_free) {
                return None;
            }
            entrance.published = self.reached.published.load(Ordering::Acquire);
        }
        entrance.next += 1;
        // Relaxed: read only after `inserted`, which is stored with release.
        self.slot(ticket).last.store(last, Ordering::Relaxed);
        Some(Ticket(ticket))
    }

    /// Some write will never be inserted. Nothing after it becomes visible any more.
    #[cold]
    pub(crate) fn break_off(&self) {
        // Relaxed: who sleeps looks at it with the mutex, which is taken here after it was set.
        self.is_broken.store(true, Ordering::Relaxed);
        drop(self.mutex.lock().unwrap_or_else(PoisonError::into_inner));
        self.moved.notify_all();
    }

    fn slot(&self, ticket: u64) -> &Slot {
        let (row, at) = (ticket as usize / APART, ticket as usize % APART);
        &self.slots[at * (SLOTS / APART) + row % (SLOTS / APART)]
    }

    /// The write of `ticket`, up to `last`, is inserted. Returns once it is visible; false if it
    /// never will be, as the queue was broken off before it.
    #[inline]
    #[must_use = "a write may never become visible"]
    pub(crate) fn finish(&self, ticket: Ticket, last: SeqNo) -> bool {
        // Release: who publishes the ticket has what was inserted before it.
        self.slot(ticket.0).inserted.store(ticket.0 + 1, Ordering::Release);
        self.publish();
        self.visible() >= last || self.wait_visible(last)
    }

    /// Moves the visible position over everything that is seen to be inserted, and wakes who waits
    /// for that.
    ///
    /// Two writers that mark neighbouring slots at the same time may each miss the mark of the
    /// other. The later one then is not visible, and goes to sleep: see [`Self::sleep_until`].
    #[inline]
    fn publish(&self) {
        // Sequentially consistent with `sleep_until`, as is what `advance` changes: either a sleeper
        // is seen here, or it sees what was published here.
        if self.advance() {
            // Loom takes such accesses for weaker ones, and needs to be told.
            #[cfg(loom)]
            fence(Ordering::SeqCst);
            if self.sleepers.load(Ordering::SeqCst) > 0 {
                drop(self.mutex.lock().unwrap_or_else(PoisonError::into_inner));
                self.moved.notify_all();
            }
        }
    }

    /// True if the visible position was moved.
    #[inline]
    fn advance(&self) -> bool {
        let mut has_moved = false;
        loop {
            let ticket = self.reached.published.load(Ordering::Acquire);
            let slot = self.slot(ticket);
            if slot.inserted.load(Ordering::Acquire) != ticket + 1 {
                return has_moved;
            }
            // Read before the slot is given up. If it was given up and entered again by then, the
            // exchange fails and the value is not used.
            let last = slot.last.load(Ordering::Relaxed);
            let exchange = self.reached.published.compare_exchange(
                ticket,
                ticket + 1,
                Ordering::SeqCst,
                Ordering::Relaxed,
            );
            if exchange.is_ok() {
                // The maximum: one who published a later ticket may be ahead.
                self.reached.visible.fetch_max(last, Ordering::SeqCst);
                has_moved = true;
            }
        }
    }

    /// Returns once `seq` is visible; false if it never will be.
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

    /// Sleeps until what is waited for is published. A sleeper publishes what it can itself, when it
    /// goes to sleep and whenever it is woken: whoever published the slot before its own either saw
    /// its mark, or sees that it sleeps. False if the queue was broken off before that.
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
    fn what_comes_after_a_write_that_is_never_inserted_is_told_so() {
        let queue = Arc::new(CommitQueue::new(0));
        let mut entrance = Entrance::default();
        let [before, lost, after] = [1, 2, 3].map(|seq| queue.enter(&mut entrance, seq).unwrap());
        let waiting = Arc::clone(&queue);
        let later = std::thread::spawn(move || waiting.finish(after, 3));
        std::thread::sleep(std::time::Duration::from_millis(5));
        let _ = lost;
        queue.break_off();
        assert!(!later.join().unwrap());
        assert!(queue.finish(before, 1), "what is before it goes on");
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
