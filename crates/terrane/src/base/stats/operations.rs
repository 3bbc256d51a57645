//! Operation counts by kind, and the operation history.

use super::{Counter, Counters};

/// Operation counts by kind, over all keyspaces of a database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct OperationCounts {
    /// Puts, deletes of keys and deletes of ranges, counting each operation of a batch.
    pub writes: u64,
    /// Deletes of keys and of ranges.
    pub deletes: u64,
    /// User bytes written: the lengths of keys and values as passed in.
    pub written_bytes: u64,
    /// Point lookups, counting each key of a `multi_get`.
    pub gets: u64,
    /// Point lookups that found a value.
    pub gets_found: u64,
    /// Iterators created.
    pub scans: u64,
    /// Entries that iterators moved to; reaching the end counts as one.
    pub scan_entries: u64,
    /// The time that the database was open, in microseconds.
    pub open_micros: u64,
}

impl OperationCounts {
    /// Returns the total number of operations.
    pub fn total(&self) -> u64 {
        self.writes.saturating_add(self.gets).saturating_add(self.scans)
    }

    /// Returns the growth since `before`, which was counted earlier in the same opening.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let pairs = self.numbers().into_iter().zip(before.numbers());
        let mut numbers = pairs.map(|(now, before)| now.saturating_sub(before));
        Self::of_numbers(|| numbers.next().unwrap_or_default())
    }

    /// Returns the counts so far, after `open_micros` of open time.
    pub(crate) fn of(counters: &Counters, open_micros: u64) -> Self {
        let count = |counter| counters.get(counter);
        Self {
            writes: count(Counter::Writes),
            deletes: count(Counter::Deletes),
            written_bytes: count(Counter::UserBytesWritten),
            gets: count(Counter::Gets),
            gets_found: count(Counter::GetsFound),
            scans: count(Counter::Scans),
            scan_entries: count(Counter::ScanEntries),
            open_micros,
        }
    }

    /// Returns all numbers, in the order in which the manifest stores them.
    pub(crate) fn numbers(&self) -> [u64; 8] {
        let Self { writes, deletes, written_bytes, gets, gets_found, scans, .. } = *self;
        let Self { scan_entries, open_micros, .. } = *self;
        [writes, deletes, written_bytes, gets, gets_found, scans, scan_entries, open_micros]
    }

    /// Returns counts made of the numbers that `next` returns, in this order.
    pub(crate) fn of_numbers(mut next: impl FnMut() -> u64) -> Self {
        Self {
            writes: next(),
            deletes: next(),
            written_bytes: next(),
            gets: next(),
            gets_found: next(),
            scans: next(),
            scan_entries: next(),
            open_micros: next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_in_their_places() {
        let mut number = 0;
        let counts = OperationCounts::of_numbers(|| {
            number += 1;
            number
        });
        assert_eq!(counts.numbers(), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!((counts.writes, counts.scan_entries, counts.total()), (1, 7, 1 + 4 + 6));
        assert_eq!(counts.since(&OperationCounts::default()), counts);
        assert_eq!(OperationCounts::default().since(&counts), OperationCounts::default());
    }
}
