//! Parts of a report that are more than one number.

use std::sync::Arc;
use std::time::Duration;

use terrane_policy::Pressure;

/// Reads of the tables of one level, and compactions out of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LevelStats {
    /// Data blocks searched by point lookups.
    pub get_blocks: u64,
    /// Cache misses for data blocks.
    pub data_misses: u64,
    /// Cache misses for index blocks.
    pub index_misses: u64,
    /// Cache misses for filters.
    pub filter_misses: u64,
    /// Compactions that rewrote data and whose newest input was in this level.
    pub compactions: u64,
}

impl LevelStats {
    /// Returns each number with its name, as in JSON, and its meaning.
    pub fn numbers(&self) -> [(&'static str, &'static str, u64); 5] {
        let Self { get_blocks, data_misses, index_misses, filter_misses, compactions } = *self;
        [
            ("get_blocks", "Data blocks searched by point lookups, by level.", get_blocks),
            ("cache_data_misses", "Cache misses for data blocks, by level.", data_misses),
            ("cache_index_misses", "Cache misses for index blocks, by level.", index_misses),
            ("cache_filter_misses", "Cache misses for filters, by level.", filter_misses),
            ("compactions", "Compactions that rewrote data, by input level.", compactions),
        ]
    }

    /// Returns the growth since `earlier`.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        Self {
            get_blocks: self.get_blocks.saturating_sub(earlier.get_blocks),
            data_misses: self.data_misses.saturating_sub(earlier.data_misses),
            index_misses: self.index_misses.saturating_sub(earlier.index_misses),
            filter_misses: self.filter_misses.saturating_sub(earlier.filter_misses),
            compactions: self.compactions.saturating_sub(earlier.compactions),
        }
    }
}

/// A current stall of the writers of a keyspace.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CurrentStall {
    /// The keyspace.
    pub keyspace: Arc<str>,
    /// Whether writers stop once the memtable is full; otherwise they are delayed.
    pub stops: bool,
    /// The cause, the measured number, and the thresholds.
    pub pressure: Pressure,
    /// The time since the stall began.
    pub since: Duration,
}
