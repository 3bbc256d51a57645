//! The metrics of a load.

use std::time::Duration;

/// The metrics of §4.2 after a load.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct LoadStats {
    pub(in super::super) user_bytes: u64,
    pub(in super::super) bytes_read: u64,
    pub(in super::super) bytes_written: u64,
    pub(in super::super) flushes: u64,
    pub(in super::super) compactions: u64,
    /// Compactions that only moved tables to another level.
    pub(in super::super) move_compactions: u64,
    /// Lookups between the writes.
    pub(in super::super) lookups: u64,
    /// Pages read per lookup between the writes.
    pub(in super::super) lookup_pages: f64,
    /// Cache misses of the lookups between the writes: data blocks, index blocks, filters.
    pub(in super::super) misses: (u64, u64, u64),
    /// Bytes that flushes and compactions inserted into the cache.
    pub(in super::super) warmed_bytes: u64,
    /// Invalid entries, tombstones included, per valid entry.
    pub(in super::super) space_overhead: f64,
    pub(in super::super) tombstones: u64,
    pub(in super::super) oldest_tombstone: Duration,
    /// Levels with tables at the end.
    pub(in super::super) levels: usize,
    pub(in super::super) files: usize,
    /// The number of samples in the means below.
    pub(super) samples: u32,
    /// Sorted runs, on average over the second half.
    pub(in super::super) mean_runs: f64,
    /// Table bytes beyond the valid entries, per byte of valid entries, on average over the second
    /// half.
    pub(in super::super) mean_space: f64,
    /// The share of its capacity that level 1 contains, on average over the second half.
    pub(in super::super) mean_fill: f64,
    /// Filter bits per key at the end, by the level that each table was written
    /// for, rounded up to whole cache lines.
    pub(in super::super) filter_bits: f64,
    /// Tables written, each of which is created, synced and later removed.
    pub(in super::super) tables_made: u64,
    /// Bytes moved by each compaction that rewrote tables.
    pub(in super::super) moved_by_jobs: Vec<u64>,
    /// The time of these compactions.
    pub(in super::super) compacting: Duration,
    /// The maximum number of bytes that compactions moved before one write continued.
    pub(in super::super) most_before_a_write: u64,
}

impl LoadStats {
    /// Returns the bytes that compactions read and wrote per byte that the user wrote.
    pub(in super::super) fn moved(&self) -> f64 {
        (self.bytes_read + self.bytes_written) as f64 / self.user_bytes as f64
    }

    /// Returns the bytes that a compaction moved on average.
    pub(in super::super) fn mean_job(&self) -> f64 {
        let bytes: u64 = self.moved_by_jobs.iter().sum();
        bytes as f64 / self.moved_by_jobs.len() as f64
    }

    /// Returns the bytes that `percent` of the compactions did not exceed.
    pub(in super::super) fn job_percentile(&self, percent: usize) -> f64 {
        let mut all = self.moved_by_jobs.clone();
        all.sort_unstable();
        let at = (all.len() * percent / 100).min(all.len().saturating_sub(1));
        all.get(at).copied().unwrap_or(0) as f64
    }

    /// Returns the bytes that compactions wrote per byte that the user wrote.
    pub(in super::super) fn write_amplification(&self) -> f64 {
        self.bytes_written as f64 / self.user_bytes as f64
    }
}
