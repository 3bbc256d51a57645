//! How the memtables of one tree are used: counts for the choice of a kind, and whether expiring
//! values were written.
//!
//! Counting has a cost, so it is enabled only for trees whose design leaves the kind open. Each
//! thread adds to one of a few stripes, as for the database's counters. Counts only grow, so that
//! users that measure different periods do not disturb each other.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use terrane_memtable::head_of;
use terrane_policy::memtable_choice::MemtableOperations;

use super::cardinality::KeyCardinality;
use crate::base::stats::stripe_of_thread;
use crate::files::table::filter_hash;

const STRIPES: usize = 8;

#[repr(align(128))]
#[derive(Debug, Default)]
struct Stripe {
    /// The first bytes of the last key that was written.
    last_head: AtomicU64,
    writes: AtomicU64,
    ascending: AtomicU64,
    lookups: AtomicU64,
    found: AtomicU64,
    scans: AtomicU64,
    scanned: AtomicU64,
}

/// The operations of a tree.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    /// Whether expiring values were written since the tree was opened.
    may_expire: AtomicBool,
    is_on: AtomicBool,
    /// A thread requests a check each time its count reaches a multiple of a power of two; this is
    /// that power minus one.
    check_mask: AtomicU64,
    is_check_due: AtomicBool,
    /// Created when counting is first enabled, because they would be half the size of an idle tree.
    stripes: OnceLock<Box<[Stripe; STRIPES]>>,
    distinct: KeyCardinality,
}

impl Usage {
    /// Turns counting on or off.
    pub(crate) fn count(&self, is_on: bool) {
        if is_on {
            self.stripes.get_or_init(Box::default);
        }
        // Relaxed, like all accesses here: stale counts affect only the choice of a memtable.
        self.is_on.store(is_on, Ordering::Relaxed);
    }

    /// Notes that an expiring value will be inserted.
    pub(crate) fn note_expiring(&self) {
        // Relaxed: a reader that sees such a value has read a visible sequence number that its
        // writer published afterwards.
        if !self.may_expire() {
            self.may_expire.store(true, Ordering::Relaxed);
        }
    }

    /// Returns false if no value in a memtable expires.
    #[inline]
    pub(crate) fn may_expire(&self) -> bool {
        self.may_expire.load(Ordering::Relaxed)
    }

    #[inline]
    fn stripe(&self) -> Option<&Stripe> {
        if !self.is_on.load(Ordering::Relaxed) {
            return None;
        }
        self.stripes.get()?.get(stripe_of_thread() % STRIPES)
    }

    /// Counts a written or deleted key.
    #[inline]
    pub(crate) fn write(&self, key: &[u8]) {
        let Some(stripe) = self.stripe() else { return };
        let head = head_of(key);
        // Loads and stores cost less than atomic updates, and threads rarely share a stripe.
        let is_ascending = stripe.last_head.load(Ordering::Relaxed) <= head;
        stripe.last_head.store(head, Ordering::Relaxed);
        let add = |count: &AtomicU64, by: u64| {
            count.store(count.load(Ordering::Relaxed) + by, Ordering::Relaxed);
        };
        add(&stripe.writes, 1);
        add(&stripe.ascending, u64::from(is_ascending));
        self.distinct.add(filter_hash(key));
    }

    /// Counts a lookup, and whether memtables answered it. Returns true if the kind of the memtable
    /// should be checked now.
    #[inline]
    pub(crate) fn lookup(&self, is_found: bool) -> bool {
        let Some(stripe) = self.stripe() else { return false };
        let before = stripe.lookups.fetch_add(1, Ordering::Relaxed);
        stripe.found.fetch_add(u64::from(is_found), Ordering::Relaxed);
        self.is_check_due_after(before)
    }

    /// Counts a completed scan over `entries` entries. Returns true if the kind of the memtable
    /// should be checked now.
    pub(crate) fn scan(&self, entries: u64) -> bool {
        let Some(stripe) = self.stripe() else { return false };
        let before = stripe.scans.fetch_add(1, Ordering::Relaxed);
        stripe.scanned.fetch_add(entries, Ordering::Relaxed);
        self.is_check_due_after(before)
    }

    #[inline]
    fn is_check_due_after(&self, reads: u64) -> bool {
        let mask = self.check_mask.load(Ordering::Relaxed);
        let is_due = reads & mask == mask && mask > 0;
        if is_due {
            self.is_check_due.store(true, Ordering::Relaxed);
        }
        is_due
    }

    /// Sets the number of a thread's lookups, or scans, after which it requests a check; a power of
    /// two.
    pub(super) fn check_every(&self, lookups: u64) {
        self.check_mask.store(lookups.saturating_sub(1), Ordering::Relaxed);
    }

    /// Returns true if a check was due. From now on, none is.
    pub(super) fn take_due(&self) -> bool {
        self.is_check_due.load(Ordering::Relaxed)
            && self.is_check_due.swap(false, Ordering::Relaxed)
    }

    /// Returns the estimated number of keys that were written since the last call.
    pub(super) fn take_distinct(&self) -> u64 {
        self.distinct.take()
    }

    /// Returns all counts.
    pub(super) fn totals(&self) -> UsageTotals {
        let Some(stripes) = self.stripes.get() else { return UsageTotals::default() };
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let sum = |field: fn(&Stripe) -> &AtomicU64| -> u64 {
            stripes.iter().map(|stripe| load(field(stripe))).sum()
        };
        UsageTotals {
            writes: stripes.each_ref().map(|stripe| load(&stripe.writes)),
            ascending: sum(|stripe| &stripe.ascending),
            lookups: sum(|stripe| &stripe.lookups),
            found: sum(|stripe| &stripe.found),
            scans: sum(|stripe| &stripe.scans),
            scanned: sum(|stripe| &stripe.scanned),
        }
    }
}

/// The operations of a tree up to some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct UsageTotals {
    /// The writes per stripe.
    writes: [u64; STRIPES],
    ascending: u64,
    lookups: u64,
    found: u64,
    scans: u64,
    scanned: u64,
}

impl UsageTotals {
    /// Returns the operations since `before`. If the number of keys is unknown, uses the number of
    /// writes.
    pub(super) fn since(
        &self,
        before: &Self,
        distinct: Option<u64>,
        seen: Seen,
    ) -> MemtableOperations {
        let mut by_stripe = self.writes;
        by_stripe.iter_mut().zip(before.writes).for_each(|(one, before)| {
            *one = one.saturating_sub(before);
        });
        let writes: u64 = by_stripe.iter().sum();
        MemtableOperations {
            writes,
            ascending: self.ascending.saturating_sub(before.ascending),
            distinct: distinct.unwrap_or(writes).min(writes),
            written_bytes: (writes as f64 * seen.entry_bytes) as u64,
            lookups: self.lookups.saturating_sub(before.lookups),
            found: self.found.saturating_sub(before.found),
            scans: self.scans.saturating_sub(before.scans),
            scanned: (self.scanned.saturating_sub(before.scanned) as f64 * seen.in_memory) as u64,
            threads: threads_of(&by_stripe),
        }
    }
}

/// Properties of the entries of a tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// The bytes of a key and its value in the active memtable.
    pub(super) entry_bytes: f64,
    /// The fraction of all entries that is in the active memtable.
    pub(super) in_memory: f64,
}

/// Returns the number of threads that wrote: the number of equally active threads with the same sum
/// of squares, so that a thread that wrote little counts little. Capped at the number of threads
/// that the machine can run concurrently.
fn threads_of(writes: &[u64; STRIPES]) -> u32 {
    let sum: f64 = writes.iter().map(|count| *count as f64).sum();
    let squares: f64 = writes.iter().map(|count| (*count as f64).powi(2)).sum();
    let threads = if squares > 0.0 { (sum * sum / squares).round() } else { 1.0 };
    let at_once = std::thread::available_parallelism().map_or(STRIPES, usize::from);
    (threads as u32).clamp(1, u32::try_from(at_once).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_of_the_time_between_two_totals() {
        let usage = Usage::default();
        usage.lookup(true);
        assert_eq!(usage.totals(), UsageTotals::default());
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
            distinct: 3,
            written_bytes: 8,
            lookups: 2,
            found: 1,
            scans: 1,
            scanned: 10,
            threads: 1,
        };
        let totals = usage.totals();
        let seen = Seen { entry_bytes: 2.0, in_memory: 0.25 };
        let since = |before: &UsageTotals| totals.since(before, Some(3), seen);
        assert_eq!(since(&UsageTotals::default()), mix);
        assert_eq!(
            since(&totals),
            MemtableOperations { threads: 1, ..MemtableOperations::default() }
        );
    }

    #[test]
    fn a_check_is_due_after_a_number_of_lookups() {
        let usage = Usage::default();
        usage.count(true);
        assert!((0..100).all(|_| !usage.lookup(true)) && !usage.take_due());
        usage.check_every(64);
        let due = (100..1100).filter(|_| usage.lookup(true)).count();
        assert!((15..=16).contains(&due), "{due}");
        assert!(usage.take_due() && !usage.take_due());
    }

    #[test]
    fn threads_that_write_little_count_little() {
        let writes = |some: &[u64]| {
            let mut all = [0; STRIPES];
            all[..some.len()].copy_from_slice(some);
            all
        };
        assert_eq!(threads_of(&writes(&[])), 1);
        assert_eq!(threads_of(&writes(&[1000, 3])), 1);
        let at_once = std::thread::available_parallelism().map_or(1, usize::from) as u32;
        assert_eq!(threads_of(&writes(&[1000, 900])), at_once.min(2));
    }
}
