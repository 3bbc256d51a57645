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

#[cfg(test)]
mod tests {
    use super::*;

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
