//! Reserves sequence numbers and log space in one atomic step.
//!
//! One word counts all reservations: the operations in its lower half, the space in its upper half.
//! A writer adds its own counts to the word; the previous value is the start of its part. So the
//! parts of all writers are disjoint, leave no gap, and have the same order in both counts. A
//! reservation that does not fit fails, and so do all later ones. Closing makes every later
//! reservation fail and returns the totals.
//!
//! Invariants:
//! 1. The word only grows, both before and after it is closed. It does not overflow: a writer adds
//!    to a word at most once after it is full or closed, because it then takes the lock, and a
//!    reservation is at most [`OPERATIONS_MAX`] and [`UNITS_MAX`], so an overflow would take
//!    200,000 threads.
//! 2. Once a reservation has failed, the word exceeds a limit or is closed, and stays so (invariant
//!    1). So the reservations that succeed are the first ones in the order of the word.
//! 3. At most one of the failing reservations finds a word that is neither full nor closed. It was
//!    the first to fail, and its previous value is the end of all successful reservations.

#[cfg(loom)]
use loom::{
    sync::atomic::{AtomicU64, Ordering},
    thread::yield_now,
};
#[cfg(not(loom))]
use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread::yield_now,
};

use terrane_memtable::Padded;

/// The largest number of operations of one reservation.
pub(crate) const OPERATIONS_MAX: u64 = 1 << 10;

/// The largest number of units of one reservation.
pub(crate) const UNITS_MAX: u64 = 1 << 13;

const UNITS_SHIFT: u32 = 32;

/// Set in a closed word. The count of units never reaches this bit (invariant 1).
const CLOSED: u64 = 1 << 63;

/// Numbers of operations and units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Reserved {
    pub(crate) operations: u64,
    pub(crate) units: u64,
}

impl Reserved {
    fn of(word: u64) -> Self {
        let units = (word & !CLOSED) >> UNITS_SHIFT;
        Self { operations: word & ((1 << UNITS_SHIFT) - 1), units }
    }

    fn word(self) -> u64 {
        self.units << UNITS_SHIFT | self.operations
    }

    fn fits(self, limit: Self) -> bool {
        self.operations <= limit.operations && self.units <= limit.units
    }
}

/// What writers have reserved out of a limited number of operations and units.
#[derive(Debug)]
pub(crate) struct Reservations {
    word: Padded<AtomicU64>,
    limit: Reserved,
    /// The word before the first reservation that failed because it did not fit, with [`CLOSED`]
    /// set; 0 while there is none.
    full_at: AtomicU64,
}

impl Reservations {
    /// The largest limit.
    pub(crate) const LIMIT_MAX: Reserved = Reserved { operations: 1 << 30, units: 1 << 28 };

    /// Creates reservations of at most `limit` in total. Nothing is reserved yet.
    pub(crate) fn new(limit: Reserved) -> Self {
        debug_assert!(limit.fits(Self::LIMIT_MAX));
        Self { word: Padded(AtomicU64::new(0)), limit, full_at: AtomicU64::new(0) }
    }

    /// Reserves `wanted`, whose numbers are at most [`OPERATIONS_MAX`] and [`UNITS_MAX`]. Returns
    /// the previous totals, or `None` if it does not fit or the word is closed.
    #[inline]
    pub(crate) fn reserve(&self, wanted: Reserved) -> Option<Reserved> {
        debug_assert!(wanted.operations <= OPERATIONS_MAX && wanted.units <= UNITS_MAX);
        // Acquire and release: later changes by the thread that closes the word do not affect loads
        // that precede a successful reservation.
        let word = self.word.fetch_add(wanted.word(), Ordering::AcqRel);
        let before = Reserved::of(word);
        if word & CLOSED != 0 || !before.fits(self.limit) {
            return None;
        }
        let after = Reserved {
            operations: before.operations + wanted.operations,
            units: before.units + wanted.units,
        };
        if after.fits(self.limit) {
            return Some(before);
        }
        // The first reservation that does not fit (invariant 3). Release pairs with the acquire in
        // `close`.
        self.full_at.store(word | CLOSED, Ordering::Release);
        None
    }

    /// Returns the totals that are reserved; `None` if the word is full or closed.
    pub(crate) fn reserved(&self) -> Option<Reserved> {
        let word = self.word.load(Ordering::Acquire);
        let reserved = Reserved::of(word);
        (word & CLOSED == 0 && reserved.fits(self.limit)).then_some(reserved)
    }

    /// Reserves `wanted` if the totals are still `before`. Returns false otherwise, or if `wanted`
    /// does not fit.
    pub(crate) fn reserve_after(&self, before: Reserved, wanted: Reserved) -> bool {
        debug_assert!(wanted.operations <= OPERATIONS_MAX && wanted.units <= UNITS_MAX);
        let after = Reserved {
            operations: before.operations + wanted.operations,
            units: before.units + wanted.units,
        };
        // If `wanted` fits, the word is neither full nor closed. Acquire and release, as in
        // `reserve`.
        let change = || {
            let order = (Ordering::AcqRel, Ordering::Relaxed);
            self.word.compare_exchange(before.word(), after.word(), order.0, order.1)
        };
        after.fits(self.limit) && change().is_ok()
    }

    /// Makes all later reservations fail. Returns the totals. May be called once.
    pub(crate) fn close(&self) -> Reserved {
        let word = self.word.fetch_or(CLOSED, Ordering::AcqRel);
        let reserved = Reserved::of(word);
        if reserved.fits(self.limit) {
            return reserved;
        }
        // An earlier reservation failed, and its thread is about to store the end.
        let mut yields = 0;
        loop {
            match self.full_at.load(Ordering::Acquire) {
                0 => wait(yields),
                word => return Reserved::of(word),
            }
            yields += 1;
        }
    }
}

/// Waits for a thread that was interrupted between two instructions.
#[cold]
fn wait(yields: u32) {
    // A thread of lower priority might never run if this thread only yields.
    #[cfg(not(loom))]
    if yields > 100 {
        std::thread::sleep(std::time::Duration::from_micros(50));
    }
    let _ = yields;
    yield_now();
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const fn reserved(operations: u64, units: u64) -> Reserved {
        Reserved { operations, units }
    }

    #[test]
    fn reservations_end_where_the_first_one_fails() {
        let all = Reservations::new(reserved(5, 10));
        assert_eq!(all.reserve(reserved(1, 4)), Some(reserved(0, 0)));
        assert_eq!(all.reserve(reserved(2, 0)), Some(reserved(1, 4)));
        assert_eq!(all.reserve(reserved(1, 7)), None);
        assert_eq!(all.reserve(reserved(1, 1)), None, "all later ones fail");
        assert_eq!(all.close(), reserved(3, 4));
        let all = Reservations::new(reserved(5, 10));
        assert_eq!(all.reserve(reserved(5, 10)), Some(reserved(0, 0)));
        assert_eq!(all.close(), reserved(5, 10));
        assert_eq!(all.reserve(reserved(0, 0)), None);
    }

    #[test]
    fn a_reservation_after_another_one_fails_if_there_was_one_between() {
        let all = Reservations::new(reserved(5, 10));
        let before = all.reserved().unwrap();
        assert!(all.reserve_after(before, reserved(1, 4)));
        assert!(!all.reserve_after(before, reserved(1, 1)));
        let before = all.reserved().unwrap();
        assert_eq!(before, reserved(1, 4));
        assert!(!all.reserve_after(before, reserved(1, 7)), "it does not fit");
        assert!(all.reserve_after(before, reserved(1, 6)), "the failed attempt reserved nothing");
        let before = all.reserved().unwrap();
        assert_eq!(all.close(), reserved(2, 10));
        assert!(!all.reserve_after(before, reserved(1, 0)) && all.reserved().is_none());
        let full = Reservations::new(reserved(1, 1));
        let before = full.reserved().unwrap();
        assert!(full.reserve(reserved(2, 0)).is_none());
        assert!(!full.reserve_after(before, reserved(1, 0)) && full.reserved().is_none());
    }

    #[test]
    fn reservations_of_many_threads_are_disjoint_and_complete() {
        for round in 0..20 {
            let all = Reservations::new(reserved(10_000, 3000 + round));
            let mut parts: Vec<(Reserved, Reserved)> = std::thread::scope(|scope| {
                let take = |size: u64| {
                    let all = &all;
                    scope.spawn(move || {
                        let wanted = reserved(1, size);
                        // One thread reserves only if nothing was reserved since it looked.
                        let after = || all.reserved().filter(|one| all.reserve_after(*one, wanted));
                        let next = || {
                            let seen = if size == 1 { after() } else { None };
                            Some((seen.or_else(|| all.reserve(wanted))?, wanted))
                        };
                        std::iter::from_fn(next).collect()
                    })
                };
                let threads: Vec<_> = (1..4).map(take).collect();
                threads.into_iter().flat_map(|one| -> Vec<_> { one.join().unwrap() }).collect()
            });
            parts.sort_by_key(|(before, _)| before.units);
            let mut end = Reserved::default();
            for (before, wanted) in parts {
                assert_eq!(before, end);
                end = reserved(end.operations + wanted.operations, end.units + wanted.units);
            }
            assert_eq!(all.close(), end);
        }
    }
}
