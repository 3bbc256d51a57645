//! What a database has done, and what it holds.
//!
//! | module | one line |
//! |---|---|
//! | `gather` | from the counters and trees of an engine |
//! | `show` | for people |

mod gather;
mod show;

use std::sync::Arc;
use std::time::Duration;

use terrane_policy::{Pressure, StallCause};

use crate::durability::Durability;
use crate::error::Error;
use crate::stats::Times;

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
    /// Flushes that merged with level 0, or went into a run of it, as `flush=merge` has them.
    pub flushes_merged: u64,
    /// Flushes that made a new run although the design has them merge: what they would have merged
    /// was in use, about to be compacted, or too much.
    pub flushes_apart: u64,
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
