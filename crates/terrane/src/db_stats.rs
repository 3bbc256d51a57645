//! What a database has done, and what it holds.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use terrane_policy::{Admission, Pressure, StallCause};

use crate::durability::Durability;
use crate::engine::{Engine, Opened, pressure_of};
use crate::error::Error;
use crate::human::human;
use crate::stats::{CachePart, Counter, LEVELS_COUNTED, Times};

/// Counters since the database was opened, and sizes now.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Stats {
    /// The durability that writes have unless they say otherwise.
    pub durability: Durability,
    /// Operations written, each of a batch counted.
    pub writes: u64,
    /// Keys and values written, in bytes, as the user gave them.
    pub user_bytes_written: u64,
    /// Point lookups.
    pub gets: u64,
    /// Point lookups that found a value.
    pub gets_found: u64,
    /// Iterators made.
    pub scans: u64,
    /// Data blocks looked into by point lookups.
    pub get_blocks: u64,
    /// Filters asked, filters that said no, and filters that wrongly said maybe.
    pub filter_probes: u64,
    /// Filters that said no.
    pub filter_negatives: u64,
    /// Filters that said maybe for a key that was not there.
    pub filter_false_positives: u64,
    /// The block cache, for data, index and filter blocks.
    pub cache: CacheStats,
    /// Tables that were to be read or written around the page cache, and went through it because
    /// the file system cannot do otherwise.
    pub direct_refused: u64,
    /// Bytes read from tables for readers.
    pub table_bytes_read: u64,
    /// Bytes written to the log.
    pub log_bytes_written: u64,
    /// Syncs of the log.
    pub log_syncs: u64,
    /// Bytes written to manifests.
    pub manifest_bytes_written: u64,
    /// Memtables flushed.
    pub flushes: u64,
    /// Bytes written by flushes.
    pub flush_bytes_written: u64,
    /// Time spent in flushes, in microseconds.
    pub flush_micros: u64,
    /// Compactions that rewrote something.
    pub compactions: u64,
    /// Compactions that only moved tables: pseudo-compactions, as the compaction paper has it.
    pub move_compactions: u64,
    /// Tables that moved without being rewritten.
    pub trivial_moves: u64,
    /// Bytes read by compactions.
    pub compaction_bytes_read: u64,
    /// Bytes written by compactions.
    pub compaction_bytes_written: u64,
    /// How long compactions that rewrote something took, each from its first read to the manifest.
    pub compaction_times: Times,
    /// Processor time of them, in microseconds: what is left of their time they waited, for storage
    /// above all. 0 where the operating system does not tell.
    pub compaction_cpu_micros: u64,
    /// Tables dropped unread because a range tombstone covered them.
    pub tables_dropped: u64,
    /// FloDB's memtables.
    pub membuffer: MembufferStats,
    /// What held writers up.
    pub stalls: StallStats,
    /// Who holds memory.
    pub memory: MemoryStats,
    /// Bytes of all tables.
    pub table_bytes: u64,
    /// Point entries of all tables, tombstones and old versions included.
    pub table_entries: u64,
    /// Point tombstones of all tables.
    pub table_tombstones: u64,
    /// Range tombstones of all tables.
    pub table_range_tombstones: u64,
    /// How long ago the oldest tombstone that is left was flushed, in microseconds; `None` if there
    /// is none.
    pub oldest_tombstone_micros: Option<u64>,
    /// Tables of all trees.
    pub tables: u64,
    /// Sorted runs of all trees.
    pub sorted_runs: u64,
    /// Levels of the deepest tree, down to the last one that holds anything.
    pub levels: u64,
    /// What was read of each level and merged out of it, of all trees together: as many as there are
    /// levels, or were.
    /// The eighth stands for all from there on.
    pub by_level: Vec<LevelStats>,
    /// Sequence numbers that snapshots hold.
    pub snapshots: usize,
    /// Writes that were read back from the log when the database was opened.
    pub replayed_writes: u64,
    /// Records of the log that could not be kept when the database was opened, as earlier ones
    /// were lost with the power.
    pub dropped_log_records: u64,
    /// What is wrong, if anything.
    pub error: Option<Error>,
}

/// What was read of the tables of a level, and merged out of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LevelStats {
    /// Data blocks looked into by point lookups.
    pub get_blocks: u64,
    /// Data blocks that the cache did not have.
    pub data_misses: u64,
    /// Index blocks that the cache did not have.
    pub index_misses: u64,
    /// Filters that the cache did not have.
    pub filter_misses: u64,
    /// Compactions that rewrote something and took from the level; those of the whole tree count for
    /// the first level that they took from.
    pub compactions: u64,
}

/// Hits and misses of the block cache by kind of block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Data blocks found.
    pub data_hits: u64,
    /// Data blocks read.
    pub data_misses: u64,
    /// Index blocks found.
    pub index_hits: u64,
    /// Index blocks read.
    pub index_misses: u64,
    /// Filters found.
    pub filter_hits: u64,
    /// Filters read.
    pub filter_misses: u64,
    /// Blocks that flushes and compactions put in.
    pub warmed: u64,
    /// Bytes of them.
    pub warmed_bytes: u64,
}

/// What FloDB's memtables did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MembufferStats {
    /// Operations that completed in a Membuffer; the others went to a list at once.
    pub writes: u64,
    /// Versions that were overwritten in place.
    pub updates_in_place: u64,
    /// Versions that draining threads moved to the lists; scans and flushes move others.
    pub drained: u64,
    /// Time that they took for it, in microseconds.
    pub drain_micros: u64,
    /// Point lookups that were made again, as what they looked for was overwritten in place.
    pub gets_retried: u64,
    /// Scans that began again, as they met something newer; with `scan=restart`, as all below.
    pub scan_restarts: u64,
    /// Scans that did so too often, and stopped writers.
    pub scan_fallbacks: u64,
    /// Scans that took the moment of another.
    pub scan_piggybacks: u64,
}

/// What held writers up, by cause.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StallStats {
    /// Writers that had to wait or were slowed down.
    pub writes: u64,
    /// Time writers waited because level 0 held too many runs, in microseconds.
    pub level0_runs_micros: u64,
    /// Time writers waited because some level held too many runs, in microseconds.
    pub level_runs_micros: u64,
    /// Time writers waited because all levels together held too many runs, in microseconds.
    pub total_runs_micros: u64,
    /// Time writers waited because too many memtables were full, in microseconds.
    pub immutable_memtables_micros: u64,
    /// Time writers waited because the tree was out of shape, in microseconds.
    pub compactions_due_micros: u64,
    /// Time by which writers were slowed down, in microseconds.
    pub delay_micros: u64,
    /// What holds writers up now, for each tree that does.
    pub now: Vec<HeldUp>,
}

/// What holds the writers of a keyspace up.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldUp {
    /// The keyspace.
    pub keyspace: Arc<str>,
    /// Whether writers wait once the write buffer is full; otherwise they are slowed down.
    pub stops: bool,
    /// The cause, what was measured, and the thresholds.
    pub pressure: Pressure,
    /// How long it has been so.
    pub since: Duration,
}

impl fmt::Display for HeldUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { keyspace, stops, pressure, since } = self;
        let how = if *stops { "stopped" } else { "delayed" };
        let seconds = since.as_secs_f64();
        write!(f, "{keyspace}: {how} by {pressure} for {seconds:.1} s; ")?;
        write!(f, "until {}", pressure.until())
    }
}

impl StallStats {
    /// All time that writers lost, in microseconds.
    pub fn total_micros(&self) -> u64 {
        self.runs_micros()
            + self.immutable_memtables_micros
            + self.compactions_due_micros
            + self.delay_micros
    }

    /// Time writers waited because of runs, however they are counted, in microseconds.
    pub fn runs_micros(&self) -> u64 {
        self.level0_runs_micros + self.level_runs_micros + self.total_runs_micros
    }

    /// The time lost to a cause, in microseconds.
    pub fn micros(&self, cause: StallCause) -> u64 {
        match cause {
            StallCause::Level0Runs => self.level0_runs_micros,
            StallCause::LevelRuns => self.level_runs_micros,
            StallCause::TotalRuns => self.total_runs_micros,
            StallCause::ImmutableMemtables => self.immutable_memtables_micros,
            StallCause::CompactionsDue => self.compactions_due_micros,
        }
    }
}

/// Who holds memory, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// The bound for all of it.
    pub budget_bytes: u64,
    /// Memtables, the memory kept for the next ones included.
    pub memtable_bytes: u64,
    /// Blocks in the cache.
    pub cache_bytes: u64,
    /// Blocks that iterators and values hold and the cache does not.
    pub pinned_bytes: u64,
    /// Buffers of flushes and compactions.
    pub job_bytes: u64,
}

impl MemoryStats {
    /// All of it together.
    pub fn total_bytes(&self) -> u64 {
        self.memtable_bytes + self.cache_bytes + self.pinned_bytes + self.job_bytes
    }
}

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

    /// Bytes written to storage: log, tables and manifests.
    pub fn storage_bytes_written(&self) -> u64 {
        self.log_bytes_written
            + self.flush_bytes_written
            + self.compaction_bytes_written
            + self.manifest_bytes_written
    }

    /// Bytes read from storage, or from the page cache in its place.
    pub fn storage_bytes_read(&self) -> u64 {
        self.table_bytes_read + self.compaction_bytes_read
    }

    /// Bytes written to tables per byte that the user wrote, flushes included; the log is not
    /// counted.
    pub fn write_amplification(&self) -> f64 {
        let tables = self.flush_bytes_written + self.compaction_bytes_written;
        ratio(tables, self.user_bytes_written)
    }

    /// How often compactions rewrote what the user wrote: the bytes that they wrote per byte of the
    /// user. This is what the compaction paper calls write amplification (§4.2).
    pub fn rewrite_amplification(&self) -> f64 {
        ratio(self.compaction_bytes_written, self.user_bytes_written)
    }

    /// Data blocks looked into per point lookup, in the cache or not. What the compaction paper calls
    /// read amplification (§4.2) counts pages that were read: `table_bytes_read` over lookups.
    pub fn read_amplification(&self) -> f64 {
        ratio(self.get_blocks, self.gets)
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
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

impl Stats {
    /// What compactions did, and what is in tables.
    fn write_tables(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "compactions         {} ({} read, {} written), {} that only moved ({} tables), {} dropped \
             unread",
            self.compactions,
            human(self.compaction_bytes_read),
            human(self.compaction_bytes_written),
            self.move_compactions,
            self.trivial_moves,
            self.tables_dropped
        )?;
        self.write_times(f)?;
        writeln!(
            f,
            "tables              {} in {}, {} levels, {} runs, {} entries, {} tombstones, {} range \
             tombstones",
            human(self.table_bytes),
            self.tables,
            self.levels,
            self.sorted_runs,
            self.table_entries,
            self.table_tombstones,
            self.table_range_tombstones
        )?;
        if let Some(micros) = self.oldest_tombstone_micros {
            writeln!(f, "oldest tombstone    {:.1} s", micros as f64 / 1e6)?;
        }
        for (number, level) in self.by_level.iter().enumerate() {
            let LevelStats { get_blocks, data_misses, index_misses, filter_misses, compactions } =
                level;
            if *level != LevelStats::default() {
                writeln!(
                    f,
                    "level {number:<13} {compactions} compactions out of it; {get_blocks} blocks for \
                     gets; not in the cache: {data_misses} data, {index_misses} index, \
                     {filter_misses} filter"
                )?;
            }
        }
        Ok(())
    }

    /// How long compactions took, if there were any.
    fn write_times(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = &self.compaction_times;
        if times.count() == 0 {
            return Ok(());
        }
        let millis = |micros: f64| micros / 1e3;
        let at = |percent| millis(times.percentile_micros(percent) as f64);
        writeln!(
            f,
            "  each took         {:.1} ms in the mean, p50 {:.1}, p90 {:.1}, p99 {:.1}, max {:.1}; \
             {:.0} % of it on a processor",
            millis(times.mean_micros()),
            at(50.0),
            at(90.0),
            at(99.0),
            millis(times.max_micros() as f64),
            100.0 * ratio(self.compaction_cpu_micros, times.sum_micros())
        )
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "durability          {}", self.durability)?;
        writeln!(f, "writes              {} ({})", self.writes, human(self.user_bytes_written))?;
        writeln!(f, "gets                {} ({} found)", self.gets, self.gets_found)?;
        writeln!(f, "scans               {}", self.scans)?;
        writeln!(
            f,
            "write amplification {:.2}, {:.2} of it by compactions",
            self.write_amplification(),
            self.rewrite_amplification()
        )?;
        writeln!(f, "read amplification  {:.2} blocks per get", self.read_amplification())?;
        writeln!(
            f,
            "log                 {} written, {} syncs",
            human(self.log_bytes_written),
            self.log_syncs
        )?;
        writeln!(f, "flushes             {} ({})", self.flushes, human(self.flush_bytes_written))?;
        self.write_tables(f)?;
        let memory = &self.memory;
        writeln!(
            f,
            "memory              {} of {}: memtables {}, cache {}, pinned {}, jobs {}",
            human(memory.total_bytes()),
            human(memory.budget_bytes),
            human(memory.memtable_bytes),
            human(memory.cache_bytes),
            human(memory.pinned_bytes),
            human(memory.job_bytes)
        )?;
        if self.cache.warmed > 0 {
            let bytes = human(self.cache.warmed_bytes);
            writeln!(f, "put into the cache  {} blocks ({bytes}) by jobs", self.cache.warmed)?;
        }
        if self.direct_refused > 0 {
            writeln!(
                f,
                "direct              refused by the file system for {} tables, which went through \
                 the page cache",
                self.direct_refused
            )?;
        }
        let membuffer = &self.membuffer;
        if membuffer.writes > 0 {
            writeln!(
                f,
                "membuffer           {} writes ({:.1} %), {} in place, {} drained in {} ms",
                membuffer.writes,
                100.0 * ratio(membuffer.writes, self.writes),
                membuffer.updates_in_place,
                membuffer.drained,
                membuffer.drain_micros / 1000
            )?;
        }
        let stalls = &self.stalls;
        write!(
            f,
            "stalls              {} writes, {} ms (runs {}, memtables {}, delays {})",
            stalls.writes,
            stalls.total_micros() / 1000,
            stalls.runs_micros() / 1000,
            stalls.immutable_memtables_micros / 1000,
            stalls.delay_micros / 1000
        )?;
        for cause in &stalls.now {
            write!(f, "\nnow                 {cause}")?;
        }
        self.error.as_ref().map_or(Ok(()), |error| write!(f, "\nerror               {error}"))
    }
}
