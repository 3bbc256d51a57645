//! The reads of a database since the previous flush of a tree.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::base::stats::{Counter, Counters};

/// Remembers how often a database had been read at the previous flush of a tree.
#[derive(Debug, Default)]
pub(crate) struct RecentReads(AtomicU64);

impl RecentReads {
    /// Returns the number of lookups and scans of the database since the previous call.
    pub(crate) fn take(&self, counters: &Counters) -> u64 {
        let now = counters.get(Counter::Gets) + counters.get(Counter::Scans);
        // Relaxed: only the flush of the tree, of which there is one at a time, uses the number.
        now.saturating_sub(self.0.swap(now, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_count_once() {
        let (counters, recent) = (Counters::default(), RecentReads::default());
        counters.add(Counter::Gets, 5);
        counters.add(Counter::Scans, 2);
        assert_eq!([(); 2].map(|()| recent.take(&counters)), [7, 0]);
        counters.add(Counter::Scans, 1);
        assert_eq!(recent.take(&counters), 1);
    }
}
