//! The log places of a memtable's large values, noted while the values are written.
//!
//! A flush that takes values from the log needs their places, and would otherwise read the log to
//! find them. Values whose places were not noted are not lost: the flush writes them to a value
//! file.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use terrane_memtable::Padded;

use crate::base::stats::stripe_of_thread;
use crate::base::types::{Lsn, SeqNo};
use crate::engine::merge::LOGGED_VALUES_MAX;

/// The number of lists. Each thread appends to one of them, so threads rarely share a list.
const PARTS: usize = 8;

/// The first capacity of a list.
const CAPACITY_MIN: usize = 64;

/// A large value in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LoggedValueRef {
    pub(crate) seq: SeqNo,
    /// The hash of its key.
    pub(crate) hash: u64,
    /// Where its bytes begin.
    pub(crate) at: Lsn,
    pub(crate) len: u32,
    pub(crate) key_len: u32,
}

/// The noted values of a memtable, each at least of the threshold length.
#[derive(Debug)]
pub(crate) struct LoggedValueRefs {
    threshold: u64,
    parts: [Padded<Mutex<Vec<LoggedValueRef>>>; PARTS],
    /// The total capacity of all lists. No more values are noted once it would exceed
    /// [`LOGGED_VALUES_MAX`].
    capacity: AtomicUsize,
}

impl LoggedValueRefs {
    pub(super) fn new(threshold: u64) -> Self {
        let parts = std::array::from_fn(|_| Padded::default());
        Self { threshold, parts, capacity: AtomicUsize::new(0) }
    }

    /// Returns the minimum length of noted values.
    #[inline]
    pub(crate) fn threshold(&self) -> u64 {
        self.threshold
    }

    /// Returns the memory that this takes, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        // Relaxed: only a count.
        self.capacity.load(Ordering::Relaxed) * size_of::<LoggedValueRef>()
    }

    /// Notes a value.
    pub(crate) fn add(&self, value: LoggedValueRef) {
        let mut part = lock(&self.parts[stripe_of_thread() % PARTS]);
        if part.len() == part.capacity() {
            let more = part.len().max(CAPACITY_MIN);
            // Relaxed: only a count. Concurrent threads may exceed the limit by one list each.
            if self.capacity.load(Ordering::Relaxed) + more > LOGGED_VALUES_MAX {
                return;
            }
            self.capacity.fetch_add(more, Ordering::Relaxed);
            part.reserve_exact(more);
        }
        part.push(value);
    }

    /// Returns the values of at least `len_min` bytes, in log order. The memtable's writers must
    /// have finished.
    pub(crate) fn list(&self, len_min: u64) -> Vec<LoggedValueRef> {
        let mut values = Vec::new();
        for part in &self.parts {
            let is_large = |value: &&LoggedValueRef| u64::from(value.len) >= len_min;
            values.extend(lock(part).iter().filter(is_large).copied());
        }
        values.sort_unstable_by_key(|value| value.at);
        values
    }
}

fn lock(part: &Mutex<Vec<LoggedValueRef>>) -> MutexGuard<'_, Vec<LoggedValueRef>> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_many_threads_are_listed_in_order_and_their_number_is_bounded() {
        let refs = LoggedValueRefs::new(100);
        let value =
            |at: u64| LoggedValueRef { seq: at, hash: 0, at: Lsn(at), len: at as u32, key_len: 1 };
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let refs = &refs;
                scope.spawn(move || (0..300).for_each(|i| refs.add(value(3 * i + thread))));
            }
        });
        let listed: Vec<u64> = refs.list(10).iter().map(|value| value.at.0).collect();
        assert_eq!(listed, (10..900).collect::<Vec<_>>());
        (0..LOGGED_VALUES_MAX as u64 * 2).for_each(|at| refs.add(value(at)));
        assert!(refs.memory_bytes() <= LOGGED_VALUES_MAX * size_of::<LoggedValueRef>());
        assert!(refs.list(0).len() >= LOGGED_VALUES_MAX / 4);
    }
}
