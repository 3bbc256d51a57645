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
    /// What came between two statistics.
    pub(super) fn between(before: &Stats, now: &Stats) -> Self {
        let user_bytes = now.user_bytes_written - before.user_bytes_written;
        let written = now.compaction_bytes_written - before.compaction_bytes_written;
        Self {
            rewrite_amplification: (user_bytes > 0).then(|| written as f64 / user_bytes as f64),
            compaction_bytes_read: now.compaction_bytes_read - before.compaction_bytes_read,
            compaction_bytes_written: written,
            move_compactions: now.move_compactions - before.move_compactions,
            compaction_times: now.compaction_times.since(&before.compaction_times),
            compaction_cpu_micros: now.compaction_cpu_micros - before.compaction_cpu_micros,
            cache_misses: Misses {
                data: now.cache.data_misses - before.cache.data_misses,
                index: now.cache.index_misses - before.cache.index_misses,
                filter: now.cache.filter_misses - before.cache.filter_misses,
            },
            by_level: by_level(&before.by_level, &now.by_level),
            tombstones: now.table_tombstones + now.table_range_tombstones,
            oldest_tombstone_micros: now.oldest_tombstone_micros,
            levels: now.levels,
            sorted_runs: now.sorted_runs,
            tables: now.tables,
            direct_refused: now.direct_refused - before.direct_refused,
        }
    }

    /// The share of their time that compactions were on a processor; `None` without compactions.
    pub(super) fn compaction_cpu_share(&self) -> Option<f64> {
        let micros = self.compaction_times.sum_micros();
        (micros > 0).then(|| self.compaction_cpu_micros as f64 / micros as f64)
    }
}

fn by_level(before: &[LevelStats], now: &[LevelStats]) -> Vec<LevelStats> {
    let earlier = |level: usize| before.get(level).copied().unwrap_or_default();
    let since = |(level, now): (usize, &LevelStats)| {
        let (mut since, before) = (*now, earlier(level));
        since.get_blocks -= before.get_blocks;
        since.data_misses -= before.data_misses;
        since.index_misses -= before.index_misses;
        since.filter_misses -= before.filter_misses;
        since.compactions -= before.compactions;
        since
    };
    now.iter().enumerate().map(since).collect()
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
