//! Fills a [`Stats`] from the counters and trees of an engine.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use terrane_policy::Admission;

use crate::base::stats::{BlockKind, Counter, LEVELS_COUNTED, MetricGroup};
use crate::base::stats::{
    CacheStats, CurrentStall, Failure, Latencies, LevelStats, MembufferStats, MemoryStats,
    StallStats, Stats,
};
use crate::engine::{Engine, Opened, pressure_of};

impl Stats {
    /// Collects the metrics of a running database.
    pub(crate) fn of(engine: &Engine, opened: &Opened) -> Self {
        let counters = &engine.context.counters;
        if let Err(error) = engine.context.health.check_process() {
            // A process that was forked has only the counters: locks may be held for ever.
            return Self { error: Some(error), ..Self::counted(counters) };
        }
        let totals = TableTotals::of(engine);
        let files = engine.context.tables.open_files.counts();
        let by_level = levels_stats(engine, totals.levels);
        Self {
            durability: engine.context.settings.durability,
            get_blocks: by_level.iter().map(|level| level.get_blocks).sum(),
            cache: cache_stats(engine, &by_level),
            membuffer: MembufferStats::counted(counters),
            stalls: StallStats { now: current_stalls(engine), ..StallStats::counted(counters) },
            memory: memory_stats(engine),
            latencies: Latencies::counted(&counters.durations),
            table_bytes: totals.bytes,
            value_files: totals.value_files,
            value_bytes: totals.value_bytes,
            value_live_bytes: totals.value_live_bytes,
            table_entries: totals.entries,
            table_tombstones: totals.tombstones,
            table_range_tombstones: totals.range_tombstones,
            table_expiring: totals.expiring,
            oldest_tombstone_micros: totals
                .oldest_tombstone
                .map(|since| engine.context.clock.now_micros().saturating_sub(since)),
            tables: totals.tables,
            sorted_runs: totals.runs,
            levels: totals.levels as u64,
            by_level,
            open_files: files.open,
            open_files_closed: files.closed,
            log_kept_bytes: engine.retained_log_bytes(),
            snapshots: engine.pipeline.snapshots().len(),
            replayed_writes: opened.replayed_batches,
            dropped_log_records: opened.dropped_records,
            error: engine.context.health.problem().or_else(|| engine.catalog.damage()),
            failures: failures(engine),
            ..Self::counted(counters)
        }
    }
}

/// Returns the failures that last. Damage lasts until the database is opened again, because a file that was
/// damaged once is not to be trusted although another read of it succeeds.
fn failures(engine: &Engine) -> Vec<Failure> {
    let problems = engine.context.health.problems().into_iter();
    let damage = engine.catalog.damage().or_else(|| engine.context.tables.last_damage());
    problems.chain(damage).map(Failure::of).collect()
}

/// Sums over the tables and value files of all trees.
#[derive(Debug, Default)]
struct TableTotals {
    bytes: u64,
    entries: u64,
    tombstones: u64,
    range_tombstones: u64,
    expiring: u64,
    oldest_tombstone: Option<u64>,
    tables: u64,
    runs: u64,
    levels: usize,
    value_files: u64,
    value_bytes: u64,
    value_live_bytes: u64,
}

impl TableTotals {
    fn of(engine: &Engine) -> Self {
        let mut totals = Self::default();
        for tree in engine.catalog.trees().values() {
            let version = Arc::clone(&tree.state().version);
            let shape = version.shape();
            totals.runs += shape.run_count() as u64;
            let last = shape.levels.iter().rposition(|level| level.table_count() > 0);
            totals.levels = totals.levels.max(last.map_or(0, |last| last + 1));
            totals.value_files += shape.value_files.len() as u64;
            totals.value_bytes += shape.value_bytes();
            for table in shape.tables() {
                totals.value_live_bytes += table.value_bytes();
                totals.tables += 1;
                totals.bytes += table.size_bytes;
                totals.entries += table.entries;
                totals.tombstones += table.tombstones;
                totals.range_tombstones += table.range_tombstones;
                totals.expiring += table.expiry.map_or(0, |expiry| expiry.entries);
                let oldest = [totals.oldest_tombstone, table.oldest_tombstone_micros];
                totals.oldest_tombstone = oldest.into_iter().flatten().min();
            }
        }
        totals
    }
}

/// Returns the statistics of the levels that have tables now, and of deeper levels that were read
/// or compacted before.
fn levels_stats(engine: &Engine, levels: usize) -> Vec<LevelStats> {
    let counters = &engine.context.counters;
    let of = |level| LevelStats {
        get_blocks: counters.get_blocks(level),
        data_misses: counters.cache_misses(BlockKind::Data, level),
        index_misses: counters.cache_misses(BlockKind::Index, level),
        filter_misses: counters.cache_misses(BlockKind::Filter, level),
        compactions: counters.compactions(level),
    };
    let mut all: Vec<_> = (0..LEVELS_COUNTED).map(of).collect();
    let read = all.iter().rposition(|level| *level != LevelStats::default());
    all.truncate(levels.max(read.map_or(0, |last| last + 1)));
    all
}

fn cache_stats(engine: &Engine, by_level: &[LevelStats]) -> CacheStats {
    let sum = |count: fn(&LevelStats) -> u64| by_level.iter().map(count).sum::<u64>();
    let (data_misses, index_misses) =
        (sum(|level| level.data_misses), sum(|level| level.index_misses));
    let (filter_misses, get_blocks) =
        (sum(|level| level.filter_misses), sum(|level| level.get_blocks));
    let counters = &engine.context.counters;
    // A hit is a use without a miss: counting uses is cheaper, because point lookups count them
    // anyway. Each use of a block counts as a use of the index that led to it.
    let counted = CacheStats::counted(counters);
    let uses = counted.data_hits + get_blocks;
    CacheStats {
        data_hits: uses.saturating_sub(data_misses + counted.record_hits),
        record_bytes: engine.context.tables.hot_records.bytes() as u64,
        data_misses,
        index_hits: uses.saturating_sub(index_misses),
        index_misses,
        filter_hits: counters.get(Counter::FilterProbes).saturating_sub(filter_misses),
        filter_misses,
        ..counted
    }
}

fn current_stalls(engine: &Engine) -> Vec<CurrentStall> {
    let trees = engine.catalog.trees();
    let stalls = trees.values().filter_map(|tree| {
        let state = tree.state();
        Some(CurrentStall {
            keyspace: Arc::clone(tree.name()),
            stops: matches!(state.admission, Admission::Stop(_)),
            pressure: pressure_of(&state.admission)?,
            since: state.stalled_since.map(|since| since.elapsed()).unwrap_or_default(),
        })
    });
    let memtables = &engine.context.memtables;
    let for_memory = memtables.short_since().into_iter().flat_map(|since| {
        let waited_for = trees.values().filter(|tree| !tree.state().immutables.is_empty());
        waited_for.map(move |tree| CurrentStall {
            keyspace: Arc::clone(tree.name()),
            stops: true,
            pressure: memtables.pressure(),
            since: since.elapsed(),
        })
    });
    stalls.chain(for_memory).collect()
}

fn memory_stats(engine: &Engine) -> MemoryStats {
    let context = &*engine.context;
    let (ledger, memtables) = (&context.ledger, &context.memtables);
    let (in_trees, pool) = (engine.catalog.tree_memtables(), context.tables.buffer.bytes());
    let kept = memtables.kept_bytes_beside(in_trees);
    // Hot records pin the blocks that contain them.
    let pinned = pool.pinned.saturating_sub(context.tables.hot_records.bytes());
    MemoryStats {
        budget_bytes: context.settings.memory_budget_bytes(),
        memtable_bytes: (in_trees.bytes + memtables.pool().free_bytes()) as u64,
        kept_memtable_bytes: kept as u64,
        cache_bytes: (pool.allocated - pinned) as u64,
        pinned_bytes: (pinned + pool.standalone) as u64,
        open_table_bytes: ledger.tables.load(Ordering::Relaxed) as u64,
        job_bytes: ledger.jobs.load(Ordering::Relaxed) as u64,
        transaction_bytes: ledger.transactions.load(Ordering::Relaxed) as u64,
    }
}
