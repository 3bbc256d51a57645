//! Accounts for the memory of each holder.
//!
//! All memory that grows with the data is charged to one of a few holders; the memory budget bounds
//! the sum. The buffer pool accounts for blocks itself, and memtables for their memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes by holder.
#[derive(Debug, Default)]
pub(crate) struct MemoryLedger {
    /// The memory of open tables, without their blocks.
    pub(crate) tables: AtomicUsize,
    /// Buffers of flushes, compactions and ingests.
    pub(crate) jobs: AtomicUsize,
    /// Writes of open transactions, and the keys that they have read.
    pub(crate) transactions: AtomicUsize,
    /// The part of `tables` that the capacity of the buffer pool takes into account.
    pub(crate) tables_counted: AtomicUsize,
    /// The capacity that the buffer pool always keeps.
    pub(crate) pool_bytes_min: AtomicUsize,
}

/// Bytes charged to a holder until this is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    ledger: Arc<MemoryLedger>,
    holder: fn(&MemoryLedger) -> &AtomicUsize,
    bytes: usize,
}

impl Charge {
    pub(crate) fn new(
        ledger: &Arc<MemoryLedger>,
        holder: fn(&MemoryLedger) -> &AtomicUsize,
        bytes: usize,
    ) -> Self {
        // Relaxed: no other memory access depends on the sums.
        holder(ledger).fetch_add(bytes, Ordering::Relaxed);
        Self { ledger: Arc::clone(ledger), holder, bytes }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        (self.holder)(&self.ledger).fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A number of bytes that changes often, charged to a holder in steps until this is dropped. Fewer
/// bytes than a step are never charged, so that small objects do not change the shared sums.
#[derive(Debug)]
pub(crate) struct SteppedCharge {
    ledger: Arc<MemoryLedger>,
    holder: fn(&MemoryLedger) -> &AtomicUsize,
    bytes: usize,
    charged_bytes: usize,
}

impl SteppedCharge {
    const STEP_BYTES: usize = 16 << 10;

    pub(crate) fn new(
        ledger: &Arc<MemoryLedger>,
        holder: fn(&MemoryLedger) -> &AtomicUsize,
    ) -> Self {
        Self { ledger: Arc::clone(ledger), holder, bytes: 0, charged_bytes: 0 }
    }

    /// Adds bytes.
    #[inline]
    pub(crate) fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
        if self.bytes >= self.charged_bytes + Self::STEP_BYTES {
            self.settle();
        }
    }

    /// Removes bytes that were added.
    #[inline]
    pub(crate) fn remove(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
        if self.charged_bytes >= self.bytes + Self::STEP_BYTES {
            self.settle();
        }
    }

    /// Charges the whole steps of the current bytes.
    #[cold]
    fn settle(&mut self) {
        let charged = self.bytes - self.bytes % Self::STEP_BYTES;
        let sum = (self.holder)(&self.ledger);
        // Relaxed: no other memory access depends on the sums.
        match charged.checked_sub(self.charged_bytes) {
            Some(more) => sum.fetch_add(more, Ordering::Relaxed),
            None => sum.fetch_sub(self.charged_bytes - charged, Ordering::Relaxed),
        };
        self.charged_bytes = charged;
    }
}

impl Clone for SteppedCharge {
    fn clone(&self) -> Self {
        let mut clone = Self::new(&self.ledger, self.holder);
        clone.add(self.bytes);
        clone
    }
}

impl Drop for SteppedCharge {
    fn drop(&mut self) {
        if self.charged_bytes > 0 {
            (self.holder)(&self.ledger).fetch_sub(self.charged_bytes, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stepped_charges_follow_the_bytes_from_a_step_on() {
        let ledger = Arc::new(MemoryLedger::default());
        let charged = || ledger.transactions.load(Ordering::Relaxed);
        let mut one = SteppedCharge::new(&ledger, |ledger| &ledger.transactions);
        one.add(16_000);
        assert_eq!(charged(), 0);
        one.add(400);
        assert_eq!(charged(), 16_384);
        one.add(100_000);
        assert_eq!(charged(), 7 * 16_384);
        let two = one.clone();
        assert_eq!(charged(), 14 * 16_384);
        one.remove(100_000);
        assert_eq!(charged(), 8 * 16_384);
        drop((one, two));
        assert_eq!(charged(), 0);
    }

    #[test]
    fn charges_last_as_long_as_they_are_held() {
        let ledger = Arc::new(MemoryLedger::default());
        let one = Charge::new(&ledger, |ledger| &ledger.tables, 100);
        let two = Charge::new(&ledger, |ledger| &ledger.tables, 10);
        assert_eq!(ledger.tables.load(Ordering::Relaxed), 110);
        drop(two);
        assert_eq!(ledger.tables.load(Ordering::Relaxed), 100);
        drop(one);
        assert_eq!(ledger.tables.load(Ordering::Relaxed), 0);
    }
}
