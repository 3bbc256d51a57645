//! What the tree did during a workload, and what it looks like after it: the metrics of the
//! compaction paper (§4.2) that are not latencies of operations.

use serde::Serialize;
use terrane::{LevelStats, Stats, Times};

use crate::json::JsonTimes;

/// What the tree did, and holds.
#[derive(Debug, Clone)]
pub(super) struct TreeWork {
    /// Bytes that compactions wrote for each byte of the user; `None` where nothing was written.
    pub(super) rewrite_amplification: Option<f64>,
    pub(super) compaction_bytes_read: u64,
    pub(super) compaction_bytes_written: u64,
    /// Compactions that only moved tables.
    pub(super) move_compactions: u64,
    pub(super) compaction_times: Times,
    pub(super) compaction_cpu_micros: u64,
    pub(super) cache_misses: Misses,
    pub(super) by_level: Vec<LevelStats>,
    pub(super) tombstones: u64,
    pub(super) oldest_tombstone_micros: Option<u64>,
    pub(super) levels: u64,
    pub(super) sorted_runs: u64,
    pub(super) tables: u64,
    /// Tables that were to go around the page cache, and could not.
    pub(super) direct_refused: u64,
}

/// Blocks that the cache did not have, by kind.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Misses {
    pub(super) data: u64,
    pub(super) index: u64,
    pub(super) filter: u64,
}

impl TreeWork {
    /// The work between two reports.
    pub(super) fn between(before: &Stats, now: &Stats) -> Self {
        let done = now.since(before);
        let written = done.compaction_bytes_written;
        let per_user_byte = written as f64 / done.user_bytes_written as f64;
        Self {
            rewrite_amplification: (done.user_bytes_written > 0).then_some(per_user_byte),
            compaction_bytes_read: done.compaction_bytes_read,
            compaction_bytes_written: written,
            move_compactions: done.move_compactions,
            compaction_cpu_micros: done.compaction_cpu_micros,
            cache_misses: Misses {
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
            compaction_times: done.compaction_times,
            by_level: done.by_level,
        }
    }

    /// The share of their time that compactions were on a processor; `None` without compactions.
    pub(super) fn compaction_cpu_share(&self) -> Option<f64> {
        let micros = self.compaction_times.sum_micros();
        (micros > 0).then(|| self.compaction_cpu_micros as f64 / micros as f64)
    }
}

/// The same as programs get it.
#[derive(Debug, Serialize)]
pub(super) struct JsonWork {
    /// What the compaction paper calls write amplification: without flushes.
    rewrite_amplification: Option<f64>,
    compaction_bytes_read: u64,
    compaction_bytes_written: u64,
    move_compactions: u64,
    compaction_millis: JsonTimes,
    compaction_cpu_share: Option<f64>,
    cache_misses: Misses,
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
    cache_misses: Misses,
}

impl JsonWork {
    /// What is to be written.
    pub(super) fn of(work: &TreeWork) -> Self {
        let level = |(level, read): (usize, &LevelStats)| JsonLevel {
            level,
            get_blocks: read.get_blocks,
            cache_misses: Misses {
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
