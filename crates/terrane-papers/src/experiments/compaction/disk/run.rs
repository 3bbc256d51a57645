//! One load in a database of its own, on disk with direct I/O, timed.
//!
//! Files are not synced: a sync takes equally long for a table of any size, so syncs would take
//! most of the time with our small tables, unlike with the paper's tables.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rand_xoshiro::Xoshiro256PlusPlus;
use terrane::{CacheWarming, Db, Durability, Options, ReadMode, Times, WriteMode};
use terrane_lab::host::interrupt;
use terrane_lab::host::passing_storage::PassingStorage;
use terrane_workload::Latency;

use super::super::setting::Setting;
use super::super::sizes::{CompactionSizes, KeySet, below};
use super::super::tree::{LoadPlan, Operation, Operations, Reader, Values};

/// A load on disk.
pub(super) struct DiskLoad<'a> {
    keys: &'a KeySet,
    plan: LoadPlan,
    dir: PathBuf,
    db: Db,
    operations: Operations<'a>,
    values: Values,
    random: Xoshiro256PlusPlus,
    written: usize,
    /// The time of all writes and lookups, and of the compactions after them.
    took: Duration,
    timed: Timed,
}

/// The times of a load.
#[derive(Debug, Clone, Default)]
pub(super) struct Timed {
    pub(super) seconds: f64,
    pub(super) writes: Latency,
    /// Lookups between the writes, of existing and of missing keys.
    pub(super) existing: Latency,
    pub(super) missing: Latency,
    /// The mean size of the block cache at these lookups.
    pub(super) cache_bytes: f64,
    pub(super) compactions: Times,
    /// Processor time of the compactions.
    pub(super) cpu_micros: f64,
    pub(super) moved_bytes: f64,
    /// Seconds for which writes were stopped.
    pub(super) stalled: f64,
    /// Tables that the file system refused to read or write directly.
    pub(super) refused: f64,
}

impl<'a> DiskLoad<'a> {
    pub(super) fn new(
        sizes: &CompactionSizes,
        keys: &'a KeySet,
        setting: &Setting,
        strategy: &str,
        dir: &Path,
    ) -> Result<Self> {
        // Opening a table reads its filter and index into RocksDB's cache (TA VII).
        Self::with_warming(sizes, keys, setting, (strategy, CacheWarming::Meta), dir)
    }

    pub(super) fn with_warming(
        sizes: &CompactionSizes,
        keys: &'a KeySet,
        setting: &Setting,
        (strategy, cache_warming): (&str, CacheWarming),
        dir: &Path,
    ) -> Result<Self> {
        interrupt::wait_if_ending();
        let plan = LoadPlan { cache_warming, ..setting.load(strategy)? };
        let dir = dir.join("disk");
        let db = Options::new()
            .design(plan.design.clone())
            .durability(Durability::Process)
            .read_mode(ReadMode::Direct)
            .write_mode(WriteMode::Direct)
            .memory_budget(plan.budget)
            .cache_warming(plan.cache_warming)
            .compaction_threads(1)
            .storage(Arc::new(PassingStorage))
            .open(&dir)?;
        Ok(Self {
            keys,
            dir,
            db,
            operations: Operations::new(sizes, keys, plan.mix),
            values: Values::new(sizes),
            random: sizes.random(8),
            written: 0,
            took: Duration::ZERO,
            timed: Timed::default(),
            plan,
        })
    }

    /// Makes all writes and waits until the tree settles.
    pub(super) fn run(mut self) -> Result<Self> {
        self.write(usize::MAX)?;
        self.settle()?;
        Ok(self)
    }

    /// Makes the next writes until `end` writes have been made in total, or none are left.
    pub(super) fn write(&mut self, end: usize) -> Result<()> {
        let all = self.plan.mix.operations;
        let begun = Instant::now();
        while self.written < end {
            let Some(operation) = self.operations.next() else { break };
            let started;
            match operation {
                Operation::Put(key) => {
                    let value = self.values.next(self.plan.value_bytes);
                    started = Instant::now();
                    self.db.put(key.to_be_bytes(), value)?;
                }
                Operation::Delete(key) => {
                    started = Instant::now();
                    self.db.delete(key.to_be_bytes())?;
                }
            }
            self.timed.writes.record(started.elapsed());
            self.written += 1;
            if self.written >= all / 2 {
                self.look_up()?;
            }
        }
        self.took += begun.elapsed();
        Ok(())
    }

    /// Makes a lookup in the given share of the calls, of existing and of missing keys in turn.
    fn look_up(&mut self) -> Result<()> {
        if below(&mut self.random, 100) >= self.plan.lookups_percent {
            return Ok(());
        }
        let live = &self.operations.live;
        let timed = &mut self.timed;
        let is_empty = timed.existing.samples() > timed.missing.samples();
        let key = match is_empty {
            true => self.keys.missing(&mut self.random),
            false => live[below(&mut self.random, live.len())],
        };
        let started = Instant::now();
        let found = self.db.get(key.to_be_bytes())?;
        let latency = if is_empty { &mut timed.missing } else { &mut timed.existing };
        latency.record(started.elapsed());
        ensure!(found.is_some() != is_empty, "a wrong answer for key {key}");
        let count = timed.existing.samples() + timed.missing.samples();
        if count % 100 == 1 {
            let now = self.db.stats().memory.cache_bytes as f64;
            timed.cache_bytes += (now - timed.cache_bytes) / (count / 100 + 1) as f64;
        }
        Ok(())
    }

    /// Waits until no compaction is due.
    pub(super) fn settle(&mut self) -> Result<()> {
        let started = Instant::now();
        self.db.wait_for_compactions()?;
        self.took += started.elapsed();
        Ok(())
    }

    /// Opens the tree for reading, with an empty cache of `cache_bytes`.
    pub(super) fn reader(&self, cache_bytes: u64) -> Result<Reader<'_>> {
        let options = Options::new().read_mode(ReadMode::Direct);
        Reader::open(&options, &self.dir, cache_bytes, (self.keys, &self.operations.live))
    }

    /// Returns the times, and removes the tree.
    pub(super) fn close(mut self) -> Result<Timed> {
        let stats = self.db.stats();
        let timed = &mut self.timed;
        timed.seconds = self.took.as_secs_f64();
        timed.cpu_micros = stats.compaction_cpu_micros as f64;
        let moved = stats.compaction_bytes_read + stats.compaction_bytes_written;
        timed.moved_bytes = (moved as f64).max(1.0);
        timed.stalled = stats.stalls.total_micros() as f64 / 1e6;
        timed.refused = stats.direct_refused as f64;
        timed.compactions = stats.latencies.compaction;
        self.db.close()?;
        std::fs::remove_dir_all(&self.dir)?;
        Ok(self.timed)
    }
}
