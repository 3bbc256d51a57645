//! The work of a tree during a workload, and its final shape: the metrics of the compaction paper
//! (§4.2) except the latencies of operations.

use serde::Serialize;
use terrane::{LevelStats, Stats, Times};

use crate::output::json::JsonTimes;

/// The work of a tree during a workload, and its final shape.
#[derive(Debug, Clone)]
pub struct TreeWork {
    /// Bytes that compactions wrote per user byte; `None` if nothing was written.
    pub rewrite_amplification: Option<f64>,
    /// Bytes that compactions read.
    pub compaction_bytes_read: u64,
    /// Bytes that compactions wrote.
    pub compaction_bytes_written: u64,
    /// Compactions that only moved tables.
    pub move_compactions: u64,
    /// Durations of compactions.
    pub compaction_times: Times,
    /// Processor time of compactions, in microseconds.
    pub compaction_cpu_micros: u64,
    /// Blocks missing from the cache, by kind.
    pub cache_misses: MissCounts,
    /// Reads and compactions by level.
    pub by_level: Vec<LevelStats>,
    /// Tombstones in tables.
    pub tombstones: u64,
    /// The age of the oldest tombstone, in microseconds.
    pub oldest_tombstone_micros: Option<u64>,
    /// Levels of the tree.
    pub levels: u64,
    /// Sorted runs of the tree.
    pub sorted_runs: u64,
    /// Tables of the tree.
    pub tables: u64,
    /// Tables for which the file system refused direct I/O.
    pub direct_refused: u64,
}

/// Blocks missing from the cache, by kind.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct MissCounts {
    /// Data blocks.
    pub data: u64,
    /// Index blocks.
    pub index: u64,
    /// Filter blocks.
    pub filter: u64,
}

impl TreeWork {
    /// Returns the work between two snapshots of the statistics, and the shape of the tree in the
    /// second snapshot.
    pub fn between(before: &Stats, now: &Stats) -> Self {
        let done = now.since(before);
        let written = done.compaction_bytes_written;
        let per_user_byte = written as f64 / done.user_bytes_written as f64;
        Self {
            rewrite_amplification: (done.user_bytes_written > 0).then_some(per_user_byte),
            compaction_bytes_read: done.compaction_bytes_read,
            compaction_bytes_written: written,
            move_compactions: done.move_compactions,
            compaction_cpu_micros: done.compaction_cpu_micros,
            cache_misses: MissCounts {
                data: done.cache.data_misses,
                index: done.cache.index_misses,
                filter: done.cache.filter_misses,
            },
            tombstones: done.table_tombstones + done.table_range_tombstones,
            oldest_tombstone_micros: done.oldest_tombstone_micros,
            levels: done.levels,
            sorted_runs: done.sorted_runs,
            tables: done.tables,
            direct_refused: done.direct_refused,
            compaction_times: done.latencies.compaction,
            by_level: done.by_level,
        }
    }

    /// Returns the processor time of compactions per duration; `None` without compactions.
    pub fn compaction_cpu_share(&self) -> Option<f64> {
        let micros = self.compaction_times.sum_micros();
        (micros > 0).then(|| self.compaction_cpu_micros as f64 / micros as f64)
    }
}

/// A [`TreeWork`] as part of a line of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct JsonWork {
    /// Write amplification as the compaction paper defines it, without flushes.
    rewrite_amplification: Option<f64>,
    compaction_bytes_read: u64,
    compaction_bytes_written: u64,
    move_compactions: u64,
    compaction_millis: JsonTimes,
    compaction_cpu_share: Option<f64>,
    cache_misses: MissCounts,
    levels_read: Vec<JsonLevel>,
    tombstones: u64,
    oldest_tombstone_seconds: Option<f64>,
    levels: u64,
    sorted_runs: u64,
    tables: u64,
    direct_refused: u64,
}

#[derive(Debug, Serialize)]
struct JsonLevel {
    level: usize,
    get_blocks: u64,
    cache_misses: MissCounts,
}

impl JsonWork {
    /// Converts the work.
    pub(super) fn of(work: &TreeWork) -> Self {
        let level = |(level, read): (usize, &LevelStats)| JsonLevel {
            level,
            get_blocks: read.get_blocks,
            cache_misses: MissCounts {
                data: read.data_misses,
                index: read.index_misses,
                filter: read.filter_misses,
            },
        };
        let thousandths = |value: f64| (value * 1e3).round() / 1e3;
        Self {
            rewrite_amplification: work.rewrite_amplification.map(thousandths),
            compaction_bytes_read: work.compaction_bytes_read,
            compaction_bytes_written: work.compaction_bytes_written,
            move_compactions: work.move_compactions,
            compaction_millis: JsonTimes::of(&work.compaction_times),
            compaction_cpu_share: work.compaction_cpu_share().map(thousandths),
            cache_misses: work.cache_misses,
            levels_read: work.by_level.iter().enumerate().map(level).collect(),
            tombstones: work.tombstones,
            oldest_tombstone_seconds: work
                .oldest_tombstone_micros
                .map(|micros| thousandths(micros as f64 / 1e6)),
            levels: work.levels,
            sorted_runs: work.sorted_runs,
            tables: work.tables,
            direct_refused: work.direct_refused,
        }
    }
}
