//! Every metric, each declared once.
//!
//! Each line defines the field, its documentation, the counter that threads increment, the entry in
//! [`Stats::metrics`] - and so in text, JSON, OpenMetrics and `docs/metrics.md` - and the part of
//! [`Stats::since`]. To add a metric, add a line and increment its counter. Distributions of durations are
//! declared in `latencies.rs`.

use super::counters::Counters;
use super::latencies::Latencies;
use super::metric::{Metric, MetricGroup, MetricKind, MetricUnit, MetricValue, metrics};
use super::values::{CurrentStall, Failure, LevelStats};
use crate::base::durability::Durability;
use crate::base::error::Error;

metrics! {
    /// Counters since the database was opened, and current sizes.
    Stats {
        /// Operations written, counting each operation of a batch.
        writes: u64 = Counter(Writes) Count "writes";
        /// Deletes of keys and of ranges among the writes.
        deletes: u64 = Counter(Deletes) Count "deletes";
        /// User bytes written: the lengths of keys and values as passed in.
        user_bytes_written: u64 = Counter(UserBytesWritten) Bytes "user_bytes_written";
        /// Point lookups, counting each key of a `multi_get`.
        gets: u64 = Counter(Gets) Count "gets";
        /// Point lookups that found a value.
        gets_found: u64 = Counter(GetsFound) Count "gets_found";
        /// Iterators and other scans started.
        scans: u64 = Counter(Scans) Count "scans";
        /// Entries that iterators moved to.
        scan_entries: u64 = Counter(ScanEntries) Count "scan_entries";
        /// Deleted keys that iterators stepped over one at a time, which makes them slow. Keys
        /// skipped in bulk do not count.
        scan_dead_keys: u64 = Counter(ScanDeadKeys) Count "scan_dead_keys";
        /// Data blocks searched by point lookups, cached or not.
        get_blocks: u64 = Counter Count "get_blocks";
        /// Filters probed by point lookups.
        filter_probes: u64 = Counter(FilterProbes) Count "filter_probes";
        /// Filter probes that excluded the key.
        filter_negatives: u64 = Counter(FilterNegatives) Count "filter_negatives";
        /// Filter probes that did not exclude a key that the table lacks.
        filter_false_positives: u64 = Counter(FilterFalsePositives) Count "filter_false_positives";
        /// Tables that should have bypassed the page cache but went through it because the file
        /// system does not support direct I/O.
        direct_refused: u64 = Counter(DirectRefused) Count "direct_refused";
        /// Bytes read from tables by readers.
        table_bytes_read: u64 = Counter(TableBytesRead) Bytes "table_bytes_read";
        /// Bytes of values read from value files.
        value_bytes_read: u64 = Counter(ValueBytesRead) Bytes "value_bytes_read";
        /// Blocks of tables and values that reads, flushes or compactions found damaged or missing, each time
        /// that they found them.
        damaged_reads: u64 = Counter(DamagedReads) Count "damaged_reads";
        /// Bytes written to the log.
        log_bytes_written: u64 = Counter(LogBytesWritten) Bytes "log_bytes_written";
        /// Bytes of log files that are kept only for readers of changes, by `keep_changes`.
        log_kept_bytes: u64 = Gauge Bytes "log_kept_bytes";
        /// Syncs of the log.
        log_syncs: u64 = Counter(LogSyncs) Count "log_syncs";
        /// Time that writers waited for a file of the log: for a new one, or for the header of one to be synced.
        /// Other threads do both ahead of need, unless writers fill a file faster than the device can sync one.
        log_wait_micros: u64 = Counter(LogWaitMicros) Micros "log_wait_micros";
        /// Bytes written to manifests.
        manifest_bytes_written: u64 = Counter(ManifestBytesWritten) Bytes "manifest_bytes_written";
        /// Memtables flushed.
        flushes: u64 = Counter(Flushes) Count "flushes";
        /// Bytes written by flushes.
        flush_bytes_written: u64 = Counter(FlushBytesWritten) Bytes "flush_bytes_written";
        /// Wall time of flushes.
        flush_micros: u64 = Counter(FlushMicros) Micros "flush_micros";
        /// Flushes that merged with level 0 or were added to one of its runs, under `flush=merge`.
        flushes_merged: u64 = Counter(FlushesMerged) Count "flushes_merged";
        /// Flushes that made a new run under `flush=merge`, because the tables that they overlap
        /// were claimed by a compaction, about to be compacted, or too large.
        flushes_apart: u64 = Counter(FlushesApart) Count "flushes_apart";
        /// Ingests added to trees.
        ingests: u64 = Counter(Ingests) Count "ingests";
        /// Bytes of the keys and values that were ingested, as passed in.
        ingested_bytes: u64 = Counter(IngestedBytes) Bytes "ingested_bytes";
        /// Bytes of the tables and value files of ingests.
        ingest_bytes_written: u64 = Counter(IngestBytesWritten) Bytes "ingest_bytes_written";
        /// Compactions that rewrote data.
        compactions: u64 = Counter(Compactions) Count "compactions";
        /// Compactions that only moved tables (the compaction paper's pseudo-compactions).
        move_compactions: u64 = Counter(MoveCompactions) Count "move_compactions";
        /// Tables that changed level without being rewritten.
        trivial_moves: u64 = Counter(TrivialMoves) Count "trivial_moves";
        /// Bytes read by compactions and by flushes that merge.
        compaction_bytes_read: u64 = Counter(CompactionBytesRead) Bytes "compaction_bytes_read";
        /// Bytes written by compactions.
        compaction_bytes_written: u64 = Counter(CompactionBytesWritten) Bytes
            "compaction_bytes_written";
        /// Collections of value files, which also count as compactions.
        collections: u64 = Counter(Collections) Count "collections";
        /// Joins of small tables of the last level, which also count as compactions.
        joins: u64 = Counter(Joins) Count "joins";
        /// Bytes of value files written by compactions, mostly for relocated values. They are part
        /// of `compaction_bytes_written`.
        value_bytes_relocated: u64 = Counter(ValueBytesRelocated) Bytes "value_bytes_relocated";
        /// Processor time of compactions that rewrote data, 0 if the operating system does not
        /// report it; the rest of their wall time is mostly waiting for storage.
        compaction_cpu_micros: u64 = Counter(CompactionCpuMicros) Micros "compaction_cpu_micros";
        /// The part of `compaction_cpu_micros` before a merge: taking locks, listing snapshots, and
        /// choosing the tables to merge together.
        compaction_planning_cpu_micros: u64 = Counter(CompactionPlanningCpuMicros) Micros
            "compaction_planning_cpu_micros";
        /// The part of `compaction_cpu_micros` after a merge: syncing the directory, and changing the
        /// manifest and the tree. Between the two parts, tables are read, merged, written and synced.
        compaction_installing_cpu_micros: u64 = Counter(CompactionInstallingCpuMicros) Micros
            "compaction_installing_cpu_micros";
        /// Values that compaction filters removed.
        compaction_filter_removed: u64 = Counter(CompactionFilterRemoved) Count "compaction_filter_removed";
        /// Values that compaction filters replaced.
        compaction_filter_replaced: u64 = Counter(CompactionFilterReplaced) Count "compaction_filter_replaced";
        /// Tables dropped unread because a range tombstone covered them or all of their values had expired.
        tables_dropped: u64 = Counter(TablesDropped) Count "tables_dropped";
        /// Writes replayed from the log when the database was opened.
        replayed_writes: u64 = Gauge Count "replayed_writes";
        /// Log records dropped when the database was opened, because a power failure lost records
        /// before them.
        dropped_log_records: u64 = Gauge Count "dropped_log_records";
        /// Bytes of all tables.
        table_bytes: u64 = Gauge [Stored] Bytes "table_bytes";
        /// Value files of all trees.
        value_files: u64 = Gauge [Stored] Count "value_files";
        /// Bytes of values in value files, with their records.
        value_bytes: u64 = Gauge [Stored] Bytes "value_bytes";
        /// Bytes of values in value files to which tables point. The rest is garbage, or values that
        /// are not flushed.
        value_live_bytes: u64 = Gauge [Stored] Bytes "value_live_bytes";
        /// Point entries of all tables, including tombstones and old versions.
        table_entries: u64 = Gauge [Stored] Count "table_entries";
        /// Point tombstones of all tables.
        table_tombstones: u64 = Gauge [Stored] Count "table_tombstones";
        /// Range tombstones of all tables.
        table_range_tombstones: u64 = Gauge [Stored] Count "table_range_tombstones";
        /// Entries of all tables whose values expire or have expired.
        table_expiring: u64 = Gauge [Stored] Count "table_expiring";
        /// Time since the oldest remaining tombstone was flushed; `None` without tombstones.
        oldest_tombstone_micros: Option<u64> = Gauge [Stored] Micros "oldest_tombstone_micros";
        /// Tables of all trees.
        tables: u64 = Gauge [Stored] Count "tables";
        /// Sorted runs of all trees.
        sorted_runs: u64 = Gauge [Stored] Count "sorted_runs";
        /// Levels of the deepest tree, down to its last level with tables.
        levels: u64 = Gauge [Stored] Count "levels";
        /// Table files that are open.
        open_files: u64 = Gauge Count "open_files";
        /// Table files closed because `open_files` allows no more. Many per second mean that reads
        /// open files again and again, and that the option is too small.
        open_files_closed: u64 = Counter Count "open_files_closed";
        /// Sequence numbers pinned by snapshots.
        snapshots: usize = Gauge Count "snapshots";
    } and {
        /// The durability of writes that do not choose one.
        durability: Durability;
        /// Block cache hits and misses.
        cache: CacheStats;
        /// FloDB memtables.
        membuffer: MembufferStats;
        /// Write stalls.
        stalls: StallStats;
        /// Memory by holder.
        memory: MemoryStats;
        /// Distributions of durations.
        latencies: Latencies;
        /// Reads and compactions by level, summed over all trees. The eighth entry counts for all
        /// deeper levels as well.
        by_level: Vec<LevelStats>;
        /// The error that stops writes or background work, if any.
        error: Option<Error>;
        /// All failures that last, by cause: the error above, and the last damage that a read found.
        failures: Vec<Failure>;
    }

    /// Hits and misses of the block cache by kind of block.
    #[derive(Copy, PartialEq, Eq)]
    CacheStats {
        /// Data blocks found in the cache.
        data_hits: u64 = Counter(DataUses) Count "cache_data_hits";
        /// Data blocks read because the cache lacked them.
        data_misses: u64 = Counter Count "cache_data_misses";
        /// Point lookups answered by a record in memory whose data block is not.
        record_hits: u64 = Counter(RecordHits) Count "cache_record_hits";
        /// Bytes of the cache that such records take.
        record_bytes: u64 = Gauge Bytes "cache_record_bytes";
        /// Index blocks found in the cache.
        index_hits: u64 = Counter Count "cache_index_hits";
        /// Index blocks read because the cache lacked them.
        index_misses: u64 = Counter Count "cache_index_misses";
        /// Filters found in the cache.
        filter_hits: u64 = Counter Count "cache_filter_hits";
        /// Filters read because the cache lacked them.
        filter_misses: u64 = Counter Count "cache_filter_misses";
        /// Blocks that flushes and compactions inserted into the cache.
        warmed: u64 = Counter(CacheWarmed) Count "cache_warmed";
        /// Bytes of the blocks that flushes and compactions inserted into the cache.
        warmed_bytes: u64 = Counter(CacheWarmedBytes) Bytes "cache_warmed_bytes";
    } and {}

    /// Work of FloDB memtables.
    #[derive(Copy, PartialEq, Eq)]
    MembufferStats {
        /// Operations that completed in a Membuffer; the others went to its lower level directly.
        writes: u64 = Counter(MembufferWrites) Count "membuffer_writes";
        /// Versions overwritten in place.
        updates_in_place: u64 = Counter(UpdatesInPlace) Count "updates_in_place";
        /// Versions that drain threads moved to a lower level, without those that scans and flushes
        /// moved.
        drained: u64 = Counter(Drained) Count "membuffer_drained";
        /// Time that drain threads spent moving versions.
        drain_micros: u64 = Counter(DrainMicros) Micros "membuffer_drain_micros";
        /// Point lookups repeated because their version was overwritten in place.
        gets_retried: u64 = Counter(GetsRetried) Count "gets_retried";
        /// Scans restarted because they met a newer version, under `scan=restart`.
        scan_restarts: u64 = Counter(ScanRestarts) Count "scan_restarts";
        /// Scans that blocked writers after too many restarts, under `scan=restart`.
        scan_fallbacks: u64 = Counter(ScanFallbacks) Count "scan_fallbacks";
        /// Moments for which scans drained the Membuffer, to start or to restart, under
        /// `scan=restart`.
        scan_masters: u64 = Counter(ScanMasters) Count "scan_masters";
        /// Moments of running scans that other scans shared, to start or to restart, under
        /// `scan=restart`.
        scan_piggybacks: u64 = Counter(ScanPiggybacks) Count "scan_piggybacks";
        /// Moments of finished scans that later scans reused, under `scan=restart`.
        scan_reuses: u64 = Counter(ScanReuses) Count "scan_reuses";
    } and {}

    /// Write stalls by cause.
    #[derive(PartialEq)]
    StallStats {
        /// Writes that were stopped or delayed.
        writes: u64 = Counter(StalledWrites) Count "stalled_writes";
        /// Time writers were stopped because level 0 had too many runs.
        level0_runs_micros: u64 = Counter(StallRunsMicros) Micros "stall_level0_runs_micros";
        /// Time writers were stopped because some level had too many runs.
        level_runs_micros: u64 = Counter(StallLevelRunsMicros) Micros "stall_level_runs_micros";
        /// Time writers were stopped because all levels together had too many runs.
        total_runs_micros: u64 = Counter(StallTotalRunsMicros) Micros "stall_total_runs_micros";
        /// Time writers were stopped because too many immutable memtables awaited their flush.
        immutable_memtables_micros: u64 = Counter(StallMemtablesMicros) Micros
            "stall_immutable_memtables_micros";
        /// Time writers were stopped because the tree was out of shape.
        compactions_due_micros: u64 = Counter(StallShapeMicros) Micros
            "stall_compactions_due_micros";
        /// Time writers were stopped because value files took too much space.
        value_space_micros: u64 = Counter(StallValuesMicros) Micros "stall_value_space_micros";
        /// Time writers were stopped because memtables took all that they may of the memory budget.
        memory_budget_micros: u64 = Counter(StallMemoryMicros) Micros
            "stall_memory_budget_micros";
        /// Time by which writers were delayed.
        delay_micros: u64 = Counter(DelayMicros) Micros "stall_delay_micros";
    } and {
        /// The current stall of each keyspace that has one.
        now: Vec<CurrentStall>;
    }

    /// Memory by holder.
    #[derive(Copy, PartialEq, Eq)]
    MemoryStats {
        /// The memory budget.
        budget_bytes: u64 = Gauge Bytes "memory_budget_bytes";
        /// Memory of memtables, including memory kept for the next ones.
        memtable_bytes: u64 = Gauge Bytes "memtable_bytes";
        /// Memory of replaced memtables that iterators, snapshots and values still use.
        kept_memtable_bytes: u64 = Gauge Bytes "kept_memtable_bytes";
        /// Memory of the buffer pool without pinned blocks: blocks and records in the cache, and room
        /// for more.
        cache_bytes: u64 = Gauge Bytes "cache_bytes";
        /// Blocks pinned by iterators and values that are not in the cache.
        pinned_bytes: u64 = Gauge Bytes "pinned_bytes";
        /// Memory of open tables without their blocks: range tombstones, samples of indexes, and a
        /// word per block.
        open_table_bytes: u64 = Gauge Bytes "open_table_bytes";
        /// Buffers of flushes, compactions and ingests.
        job_bytes: u64 = Gauge Bytes "job_bytes";
        /// Writes of open transactions, and the keys that they have read.
        transaction_bytes: u64 = Gauge Bytes "transaction_bytes";
    } and {}
}

/// A metric that is a sum of others: name, kind, unit, help, and the sum.
type Sum = (&'static str, MetricKind, MetricUnit, &'static str, fn(&Stats) -> u64);

/// Sums of other metrics that reports show as well.
const SUMS: [Sum; 4] = [
    (
        "storage_bytes_written",
        MetricKind::Counter,
        MetricUnit::Bytes,
        "Bytes written to storage: log, tables and manifests.",
        Stats::storage_bytes_written,
    ),
    (
        "storage_bytes_read",
        MetricKind::Counter,
        MetricUnit::Bytes,
        "Bytes of tables read by readers, flushes and compactions.",
        Stats::storage_bytes_read,
    ),
    (
        "stall_micros",
        MetricKind::Counter,
        MetricUnit::Micros,
        "Time that writers lost to stalls of all causes.",
        |stats| stats.stalls.total_micros(),
    ),
    ("memory_bytes", MetricKind::Gauge, MetricUnit::Bytes, "Memory of all holders.", |stats| {
        stats.memory.total_bytes()
    }),
];

impl Stats {
    /// Returns every metric with its name, kind, unit, meaning and value.
    ///
    /// Write and read amplification are ratios of these; reads by level and distributions of
    /// durations have fields of their own ([`Stats::by_level`], [`Stats::latencies`]).
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// for metric in db.stats().metrics() {
    ///     println!("{} = {:?}", metric.name, metric.value);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn metrics(&self) -> Vec<Metric> {
        let mut metrics = Vec::new();
        self.append_metrics(&mut metrics);
        self.cache.append_metrics(&mut metrics);
        self.membuffer.append_metrics(&mut metrics);
        self.stalls.append_metrics(&mut metrics);
        self.memory.append_metrics(&mut metrics);
        let sum = |(name, kind, unit, help, of): (_, _, _, _, fn(&Self) -> u64)| Metric {
            name,
            kind,
            unit,
            help,
            is_stored: false,
            value: Some(of(self)),
        };
        metrics.extend(SUMS.map(sum));
        metrics
    }

    /// Returns the metrics that come from the files, which a read-only opening reports too. Other metrics
    /// of a read-only opening concern that opening alone.
    pub fn stored_metrics(&self) -> Vec<Metric> {
        let mut metrics = self.metrics();
        metrics.retain(|metric| metric.is_stored);
        metrics
    }

    /// Returns the growth of each counter since `earlier`, which the same opening of the database
    /// reported before; gauges keep their current values.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let before = |level: usize| earlier.by_level.get(level).copied().unwrap_or_default();
        let levels = self.by_level.iter().enumerate();
        Self {
            cache: self.cache.metrics_since(&earlier.cache),
            membuffer: self.membuffer.metrics_since(&earlier.membuffer),
            stalls: self.stalls.metrics_since(&earlier.stalls),
            memory: self.memory.metrics_since(&earlier.memory),
            latencies: self.latencies.since(&earlier.latencies),
            by_level: levels.map(|(level, now)| now.since(&before(level))).collect(),
            ..self.metrics_since(earlier)
        }
    }
}
