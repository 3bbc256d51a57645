//! Gathers what a database has counted, and what it holds now.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use terrane_policy::Admission;

use super::{CacheStats, HeldUp, LevelStats, MembufferStats, MemoryStats, StallStats, Stats};
use crate::engine::{Engine, Opened, pressure_of};
use crate::stats::{CachePart, Counter, LEVELS_COUNTED};

impl Stats {
    pub(crate) fn of(engine: &Engine, opened: &Opened) -> Self {
        let count = |counter| engine.counters.get(counter);
        let held = Held::of(engine);
        let by_level = levels_stats(engine, held.levels);
        Self {
            durability: engine.durability(),
            writes: count(Counter::Writes),
            user_bytes_written: count(Counter::UserBytesWritten),
            gets: count(Counter::Gets),
            gets_found: count(Counter::GetsFound),
            scans: count(Counter::Scans),
            get_blocks: by_level.iter().map(|level| level.get_blocks).sum(),
            filter_probes: count(Counter::FilterProbes),
            filter_negatives: count(Counter::FilterNegatives),
            filter_false_positives: count(Counter::FilterFalsePositives),
            cache: cache_stats(engine, &by_level),
            direct_refused: count(Counter::DirectRefused),
            table_bytes_read: count(Counter::TableBytesRead),
            log_bytes_written: count(Counter::LogBytesWritten),
            log_syncs: count(Counter::LogSyncs),
            manifest_bytes_written: count(Counter::ManifestBytesWritten),
            flushes: count(Counter::Flushes),
            flush_bytes_written: count(Counter::FlushBytesWritten),
            flush_micros: count(Counter::FlushMicros),
            flushes_merged: count(Counter::FlushesMerged),
            flushes_apart: count(Counter::FlushesApart),
            compactions: count(Counter::Compactions),
            move_compactions: count(Counter::MoveCompactions),
            trivial_moves: count(Counter::TrivialMoves),
            compaction_bytes_read: count(Counter::CompactionBytesRead),
            compaction_bytes_written: count(Counter::CompactionBytesWritten),
            compaction_times: engine.counters.compaction_times.times(),
            compaction_cpu_micros: count(Counter::CompactionCpuMicros),
            tables_dropped: count(Counter::TablesDropped),
            membuffer: membuffer_stats(engine),
            stalls: stall_stats(engine),
            memory: memory_stats(engine),
            table_bytes: held.bytes,
            table_entries: held.entries,
            table_tombstones: held.tombstones,
            table_range_tombstones: held.range_tombstones,
            oldest_tombstone_micros: held
                .oldest_tombstone
                .map(|since| engine.clock.now_micros().saturating_sub(since)),
            tables: held.tables,
            sorted_runs: held.runs,
            levels: held.levels as u64,
            by_level,
            snapshots: engine.snapshots.list().len(),
            replayed_writes: opened.replayed_batches,
            dropped_log_records: opened.dropped_records,
            error: engine.health.problem().or_else(|| engine.damage()),
        }
    }
}

/// What the tables of all trees hold.
#[derive(Debug, Default)]
struct Held {
    bytes: u64,
    entries: u64,
    tombstones: u64,
    range_tombstones: u64,
    oldest_tombstone: Option<u64>,
    tables: u64,
    runs: u64,
    levels: usize,
}

impl Held {
    fn of(engine: &Engine) -> Self {
        let mut held = Self::default();
        for tree in engine.trees().values() {
            let version = Arc::clone(&tree.state().version);
            let shape = version.shape();
            held.runs += shape.run_count() as u64;
            let last = shape.levels.iter().rposition(|level| level.table_count() > 0);
            held.levels = held.levels.max(last.map_or(0, |last| last + 1));
            for table in shape.tables() {
                held.tables += 1;
                held.bytes += table.size_bytes;
                held.entries += table.entries;
                held.tombstones += table.tombstones;
                held.range_tombstones += table.range_tombstones;
                let oldest = [held.oldest_tombstone, table.oldest_tombstone_micros];
                held.oldest_tombstone = oldest.into_iter().flatten().min();
            }
        }
        held
    }
}

/// Of the levels that there are, and of those that were read when they were there.
fn levels_stats(engine: &Engine, levels: usize) -> Vec<LevelStats> {
    let counters = &engine.counters;
    let of = |level| LevelStats {
        get_blocks: counters.get_blocks(level),
        data_misses: counters.cache_misses(CachePart::Data, level),
        index_misses: counters.cache_misses(CachePart::Index, level),
        filter_misses: counters.cache_misses(CachePart::Filter, level),
        compactions: counters.compactions(level),
    };
    let mut all: Vec<_> = (0..LEVELS_COUNTED).map(of).collect();
    let read = all.iter().rposition(|level| *level != LevelStats::default());
    all.truncate(levels.max(read.map_or(0, |last| last + 1)));
    all
}

fn cache_stats(engine: &Engine, by_level: &[LevelStats]) -> CacheStats {
    let count = |counter| engine.counters.get(counter);
    let sum = |misses: fn(&LevelStats) -> u64| by_level.iter().map(misses).sum();
    CacheStats {
        data_hits: count(Counter::CacheDataHits),
        data_misses: sum(|level| level.data_misses),
        index_hits: count(Counter::CacheIndexHits),
        index_misses: sum(|level| level.index_misses),
        filter_hits: count(Counter::CacheFilterHits),
        filter_misses: sum(|level| level.filter_misses),
        warmed: count(Counter::CacheWarmed),
        warmed_bytes: count(Counter::CacheWarmedBytes),
    }
}

fn membuffer_stats(engine: &Engine) -> MembufferStats {
    let count = |counter| engine.counters.get(counter);
    MembufferStats {
        writes: count(Counter::MembufferWrites),
        updates_in_place: count(Counter::UpdatesInPlace),
        drained: count(Counter::Drained),
        drain_micros: count(Counter::DrainMicros),
        gets_retried: count(Counter::GetsRetried),
        scan_restarts: count(Counter::ScanRestarts),
        scan_fallbacks: count(Counter::ScanFallbacks),
        scan_piggybacks: count(Counter::ScanPiggybacks),
    }
}

fn stall_stats(engine: &Engine) -> StallStats {
    let count = |counter| engine.counters.get(counter);
    let trees = engine.trees();
    let now = trees.values().filter_map(|tree| {
        let state = tree.state();
        Some(HeldUp {
            keyspace: Arc::clone(&tree.name),
            stops: matches!(state.admission, Admission::Stop(_)),
            pressure: pressure_of(&state.admission)?,
            since: state.held_since.map(|since| since.elapsed()).unwrap_or_default(),
        })
    });
    StallStats {
        writes: count(Counter::StalledWrites),
        level0_runs_micros: count(Counter::StallRunsMicros),
        level_runs_micros: count(Counter::StallLevelRunsMicros),
        total_runs_micros: count(Counter::StallTotalRunsMicros),
        immutable_memtables_micros: count(Counter::StallMemtablesMicros),
        compactions_due_micros: count(Counter::StallShapeMicros),
        delay_micros: count(Counter::DelayMicros),
        now: now.collect(),
    }
}

fn memory_stats(engine: &Engine) -> MemoryStats {
    let trees = engine.trees();
    let memtables: usize = trees.values().map(|tree| tree.state().memtable_bytes()).sum();
    let blocks = engine.ledger.blocks.load(Ordering::Relaxed) as u64;
    let cached = engine.tables.cache.used_bytes();
    MemoryStats {
        budget_bytes: engine.settings.memory_budget_bytes(),
        memtable_bytes: (memtables + engine.pool.free_bytes()) as u64,
        cache_bytes: cached,
        pinned_bytes: blocks.saturating_sub(cached),
        job_bytes: engine.ledger.jobs.load(Ordering::Relaxed) as u64,
    }
}
