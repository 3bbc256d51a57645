//! The figures of `stats` in JSON.

use serde::Serialize;
use terrane::{LevelStats, Stats};

use crate::json::{JsonTimes, SCHEMA};

/// What a database has done since it was opened, and what it holds.
#[derive(Debug, Serialize)]
pub(super) struct JsonStats {
    schema: u32,
    durability: String,
    writes: u64,
    user_bytes_written: u64,
    gets: u64,
    gets_found: u64,
    scans: u64,
    write_amplification: f64,
    read_amplification: f64,
    storage_bytes_written: u64,
    storage_bytes_read: u64,
    log_bytes_written: u64,
    log_syncs: u64,
    filter_probes: u64,
    filter_negatives: u64,
    filter_false_positives: u64,
    flushes: u64,
    flush_bytes_written: u64,
    compactions: u64,
    trivial_moves: u64,
    compaction_bytes_read: u64,
    compaction_bytes_written: u64,
    tables_dropped: u64,
    table_bytes: u64,
    table_entries: u64,
    table_tombstones: u64,
    table_range_tombstones: u64,
    memory_bytes: u64,
    memory_budget_bytes: u64,
    memtable_bytes: u64,
    cache_bytes: u64,
    stalled_writes: u64,
    stall_micros: u64,
    /// What holds writers up now.
    stalls_now: Vec<String>,
    snapshots: usize,
    replayed_writes: u64,
    dropped_log_records: u64,
    error: Option<String>,
    rewrite_amplification: f64,
    move_compactions: u64,
    compaction_millis: JsonTimes,
    compaction_cpu_micros: u64,
    cache_data_misses: u64,
    cache_index_misses: u64,
    cache_filter_misses: u64,
    levels_read: Vec<JsonLevel>,
    oldest_tombstone_micros: Option<u64>,
    levels: u64,
    sorted_runs: u64,
    tables: u64,
}

/// What was read of a level.
#[derive(Debug, Serialize)]
struct JsonLevel {
    get_blocks: u64,
    cache_data_misses: u64,
    cache_index_misses: u64,
    cache_filter_misses: u64,
}

impl JsonLevel {
    fn of(level: &LevelStats) -> Self {
        Self {
            get_blocks: level.get_blocks,
            cache_data_misses: level.data_misses,
            cache_index_misses: level.index_misses,
            cache_filter_misses: level.filter_misses,
        }
    }
}

impl JsonStats {
    /// The figures to be written.
    pub(super) fn of(stats: &Stats) -> Self {
        Self {
            schema: SCHEMA,
            durability: stats.durability.to_string(),
            writes: stats.writes,
            user_bytes_written: stats.user_bytes_written,
            gets: stats.gets,
            gets_found: stats.gets_found,
            scans: stats.scans,
            write_amplification: stats.write_amplification(),
            read_amplification: stats.read_amplification(),
            storage_bytes_written: stats.storage_bytes_written(),
            storage_bytes_read: stats.storage_bytes_read(),
            log_bytes_written: stats.log_bytes_written,
            log_syncs: stats.log_syncs,
            filter_probes: stats.filter_probes,
            filter_negatives: stats.filter_negatives,
            filter_false_positives: stats.filter_false_positives,
            flushes: stats.flushes,
            flush_bytes_written: stats.flush_bytes_written,
            compactions: stats.compactions,
            trivial_moves: stats.trivial_moves,
            compaction_bytes_read: stats.compaction_bytes_read,
            compaction_bytes_written: stats.compaction_bytes_written,
            tables_dropped: stats.tables_dropped,
            table_bytes: stats.table_bytes,
            table_entries: stats.table_entries,
            table_tombstones: stats.table_tombstones,
            table_range_tombstones: stats.table_range_tombstones,
            memory_bytes: stats.memory.total_bytes(),
            memory_budget_bytes: stats.memory.budget_bytes,
            memtable_bytes: stats.memory.memtable_bytes,
            cache_bytes: stats.memory.cache_bytes,
            stalled_writes: stats.stalls.writes,
            stall_micros: stats.stalls.total_micros(),
            stalls_now: stats.stalls.now.iter().map(ToString::to_string).collect(),
            snapshots: stats.snapshots,
            replayed_writes: stats.replayed_writes,
            dropped_log_records: stats.dropped_log_records,
            error: stats.error.as_ref().map(ToString::to_string),
            rewrite_amplification: stats.rewrite_amplification(),
            move_compactions: stats.move_compactions,
            compaction_millis: JsonTimes::of(&stats.compaction_times),
            compaction_cpu_micros: stats.compaction_cpu_micros,
            cache_data_misses: stats.cache.data_misses,
            cache_index_misses: stats.cache.index_misses,
            cache_filter_misses: stats.cache.filter_misses,
            levels_read: stats.by_level.iter().map(JsonLevel::of).collect(),
            oldest_tombstone_micros: stats.oldest_tombstone_micros,
            levels: stats.levels,
            sorted_runs: stats.sorted_runs,
            tables: stats.tables,
        }
    }
}
