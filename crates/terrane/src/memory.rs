//! Who holds how much memory.
//!
//! Everything that grows with the data charges what it takes to one of a few holders, and the sum
//! is what the memory budget bounds. Blocks charge themselves for as long as they live, also when
//! the cache has let go of them and an iterator or a value still pins them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes by holder.
#[derive(Debug, Default)]
pub(crate) struct MemoryLedger {
    /// Blocks read from tables: cached, pinned, or both.
    pub(crate) blocks: AtomicUsize,
    /// Write buffers that take writes or wait to be flushed.
    pub(crate) memtables: AtomicUsize,
    /// Buffers of flushes and compactions.
    pub(crate) jobs: AtomicUsize,
}

/// Bytes that are charged to a holder until this is dropped.
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
        // Relaxed: the sums order nothing.
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
        let one = Charge::new(&ledger, |ledger| &ledger.blocks, 100);
        let two = Charge::new(&ledger, |ledger| &ledger.blocks, 10);
        assert_eq!(ledger.blocks.load(Ordering::Relaxed), 110);
        drop(two);
        assert_eq!(ledger.blocks.load(Ordering::Relaxed), 100);
        drop(one);
        assert_eq!(ledger.blocks.load(Ordering::Relaxed), 0);
    }
}
