//! The metrics of a load and of reads.

use std::time::Duration;

use terrane_workload::Latency;

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
    /// Times of the compactions that rewrote tables.
    pub(in super::super) jobs: Latency,
    pub(in super::super) writes: Latency,
    pub(in super::super) lookups: Latency,
    /// Pages read per interleaved lookup.
    pub(in super::super) lookup_pages: f64,
    /// Cache misses of the interleaved lookups: data blocks, index blocks, filters.
    pub(in super::super) misses: (u64, u64, u64),
    /// Bytes that flushes and compactions inserted into the cache.
    pub(in super::super) warmed_bytes: u64,
    /// Time that writes spent waiting for compactions.
    pub(in super::super) stall: Duration,
    /// Table bytes beyond the valid entries, per byte of valid entries.
    pub(in super::super) space_amplification: f64,
    pub(in super::super) tombstones: u64,
    pub(in super::super) oldest_tombstone: Duration,
    pub(in super::super) levels: usize,
    pub(in super::super) files: usize,
    /// The number of samples in the means below.
    pub(super) samples: u32,
    /// Sorted runs, on average over the second half.
    pub(in super::super) mean_runs: f64,
    /// Space amplification, on average over the second half.
    pub(in super::super) mean_space: f64,
    /// Filter bits per key at the end, by the level that each table was written
    /// for, rounded up to whole cache lines.
    pub(in super::super) filter_bits: f64,
    /// Tables written, each of which is created, synced and later removed.
    pub(in super::super) tables_made: u64,
    /// Bytes moved by each compaction that rewrote tables, and the time it took.
    pub(in super::super) moved_by_jobs: Vec<(u64, Duration)>,
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
        let bytes: u64 = self.moved_by_jobs.iter().map(|(bytes, _)| bytes).sum();
        bytes as f64 / self.moved_by_jobs.len().max(1) as f64
    }

    /// Returns the bytes that the largest compaction moved.
    pub(in super::super) fn largest_job(&self) -> f64 {
        self.moved_by_jobs.iter().map(|(bytes, _)| *bytes).max().unwrap_or(0) as f64
    }

    /// Returns the median time of compactions per byte, in nanoseconds.
    pub(in super::super) fn nanos_per_byte(&self) -> f64 {
        let each = |(bytes, took): &(u64, Duration)| took.as_nanos() as f64 / *bytes as f64;
        let mut times: Vec<f64> = self.moved_by_jobs.iter().map(each).collect();
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied().unwrap_or(0.0)
    }

    /// Returns the bytes that compactions wrote per byte that the user wrote.
    pub(in super::super) fn write_amplification(&self) -> f64 {
        self.bytes_written as f64 / self.user_bytes as f64
    }
}

/// The cost of lookups.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct LookupCost {
    /// The median time.
    pub(in super::super) micros: f64,
    /// Pages read per lookup.
    pub(in super::super) pages: f64,
    /// Data blocks searched per lookup, cached or not.
    pub(in super::super) blocks: f64,
}

/// Pages read per lookup.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct PageCounts {
    pub(in super::super) mean: f64,
    pub(in super::super) p90: f64,
}
