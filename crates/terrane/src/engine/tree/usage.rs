//! Counts how the memtables of one tree are used, for the choice of a kind.
//!
//! Counting has a cost, so it is enabled only for trees whose design leaves the kind open. Each thread
//! adds to one of a few stripes, as for the counters of the database.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use terrane_memtable::head_of;
use terrane_policy::memtable_choice::MemtableOperations;

use crate::stats::stripe_of_thread;

const STRIPES: usize = 8;

#[repr(align(128))]
#[derive(Debug, Default)]
struct Stripe {
    /// The first bytes of the last key that was written.
    last_head: AtomicU64,
    ascending: AtomicU64,
    lookups: AtomicU64,
    found: AtomicU64,
    scans: AtomicU64,
    scanned: AtomicU64,
}

/// The operations of a tree since the last rotation.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    is_on: AtomicBool,
    stripes: [Stripe; STRIPES],
}

impl Usage {
    /// Turns counting on or off.
    pub(crate) fn count(&self, is_on: bool) {
        // Relaxed, like all accesses here: stale counts affect only the choice of a memtable.
        self.is_on.store(is_on, Ordering::Relaxed);
    }

    #[inline]
    fn stripe(&self) -> Option<&Stripe> {
        if !self.is_on.load(Ordering::Relaxed) {
            return None;
        }
        self.stripes.get(stripe_of_thread() % STRIPES)
    }

    /// Counts a key that was written or deleted.
    #[inline]
    pub(crate) fn write(&self, key: &[u8]) {
        let Some(stripe) = self.stripe() else { return };
        let head = head_of(key);
        if stripe.last_head.swap(head, Ordering::Relaxed) <= head {
            stripe.ascending.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a lookup, and whether it was answered by memtables.
    #[inline]
    pub(crate) fn lookup(&self, is_found: bool) {
        let Some(stripe) = self.stripe() else { return };
        stripe.lookups.fetch_add(1, Ordering::Relaxed);
        stripe.found.fetch_add(u64::from(is_found), Ordering::Relaxed);
    }

    /// Counts a scan that has ended, over `entries` entries.
    pub(crate) fn scan(&self, entries: u64) {
        let Some(stripe) = self.stripe() else { return };
        stripe.scans.fetch_add(1, Ordering::Relaxed);
        stripe.scanned.fetch_add(entries, Ordering::Relaxed);
    }

    /// Returns the counts and resets them. The caller knows the number and size of the writes, and the
    /// share of scanned entries that was in memtables.
    pub(crate) fn take(
        &self,
        writes: u64,
        written_bytes: u64,
        in_memory: f64,
    ) -> MemtableOperations {
        let sum = |field: fn(&Stripe) -> &AtomicU64| -> u64 {
            self.stripes.iter().map(|stripe| field(stripe).swap(0, Ordering::Relaxed)).sum()
        };
        MemtableOperations {
            writes,
            ascending: sum(|stripe| &stripe.ascending),
            written_bytes,
            lookups: sum(|stripe| &stripe.lookups),
            found: sum(|stripe| &stripe.found),
            scans: sum(|stripe| &stripe.scans),
            scanned: (sum(|stripe| &stripe.scanned) as f64 * in_memory) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_taken_once() {
        let usage = Usage::default();
        usage.lookup(true);
        assert_eq!(usage.take(0, 0, 1.0), MemtableOperations::default());
        usage.count(true);
        for key in ["b", "c", "a", "d"] {
            usage.write(key.as_bytes());
        }
        usage.lookup(true);
        usage.lookup(false);
        usage.scan(40);
        let mix = MemtableOperations {
            writes: 4,
            ascending: 3,
            written_bytes: 4,
            lookups: 2,
            found: 1,
            scans: 1,
            scanned: 10,
        };
        assert_eq!(usage.take(4, 4, 0.25), mix);
        assert_eq!(usage.take(0, 0, 1.0), MemtableOperations::default());
    }
}
