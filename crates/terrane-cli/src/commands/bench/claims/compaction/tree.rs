//! A tree that is loaded and asked, serially: whoever writes also carries out every job that is due,
//! before the next write (§4.1: compactions come before writes). Time is a clock that moves by a
//! millisecond an operation. So every count is the same in every run; only times differ.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use terrane::storage::MemoryStorage;
use terrane::{Background, Db, Design, Durability, ManualClock, Options, ReadMode};
use terrane_workload::distribution::IndexChooser;
use terrane_workload::{Distribution, Latency};

use super::setting::{Keys, Setting, VALUE_BYTES, below};
use crate::commands::bench::process;
use crate::interrupt;

const STEP: Duration = Duration::from_millis(1);

/// What is written.
pub(super) struct Load {
    pub(super) design: Design,
    /// Updates for each insert.
    pub(super) updates: usize,
    /// Deletes in a hundred operations.
    pub(super) deletes_percent: usize,
    /// Whether lookups of keys that are there come between the writes of the second half.
    pub(super) is_interleaved: bool,
    pub(super) value_bytes: usize,
}

impl Load {
    pub(super) fn inserts(design: Design) -> Self {
        let value_bytes = VALUE_BYTES;
        Self { design, updates: 0, deletes_percent: 0, is_interleaved: false, value_bytes }
    }
}

/// The metrics of §4.2 after a load.
#[derive(Debug, Clone)]
pub(super) struct Work {
    pub(super) user_bytes: u64,
    pub(super) bytes_read: u64,
    pub(super) bytes_written: u64,
    pub(super) compactions: u64,
    pub(super) trivial_moves: u64,
    /// Compactions that rewrote something.
    pub(super) jobs: Latency,
    pub(super) writes: Latency,
    pub(super) lookups: Latency,
    /// Time that writes waited for compactions.
    pub(super) stall: Duration,
    /// Bytes of tables beyond those of valid entries, for each of these.
    pub(super) space_amplification: f64,
    pub(super) tombstones: u64,
    pub(super) oldest_tombstone: Duration,
    pub(super) levels: usize,
    pub(super) files: usize,
    pub(super) processor_share: f64,
}

impl Work {
    /// Bytes that compactions read and wrote, for each byte that was written.
    pub(super) fn moved(&self) -> f64 {
        (self.bytes_read + self.bytes_written) as f64 / self.user_bytes as f64
    }

    /// Bytes that compactions wrote, for each byte that was written.
    pub(super) fn write_amplification(&self) -> f64 {
        self.bytes_written as f64 / self.user_bytes as f64
    }
}

/// What lookups cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub(super) micros: f64,
    pub(super) p90: f64,
    /// Pages read per lookup.
    pub(super) read_amplification: f64,
}

/// A tree that was loaded.
pub(super) struct Tree<'a> {
    setting: &'a Setting,
    keys: &'a Keys,
    db: Db,
    clock: Arc<ManualClock>,
    pool: Vec<u8>,
    live: Vec<u32>,
    page_bytes: u32,
    pub(super) work: Work,
}

impl<'a> Tree<'a> {
    /// Loads a new tree. Its files are in memory: syncs of a disk would be most of the
    /// time, and differ from run to run.
    pub(super) fn load(
        setting: &'a Setting,
        keys: &'a Keys,
        load: &Load,
        dir: &Path,
    ) -> Result<Self> {
        interrupt::wait_if_ending();
        let clock = Arc::new(ManualClock::new(1));
        let db = Options::new()
            .design(load.design.clone())
            .durability(Durability::None)
            .read_mode(ReadMode::Cached)
            .memory_budget((8 * load.design.buffer_bytes).max(1 << 20))
            .background(Background::Inline)
            .clock(clock.clone())
            .storage(Arc::new(MemoryStorage::new(setting.seed)))
            .open(dir)?;
        let mut random = setting.random(2);
        let pool = (0..1 << 16).map(|_| below(&mut random, 256) as u8).collect();
        let work = Work {
            user_bytes: 0,
            bytes_read: 0,
            bytes_written: 0,
            compactions: 0,
            trivial_moves: 0,
            jobs: Latency::new(),
            writes: Latency::new(),
            lookups: Latency::new(),
            stall: Duration::ZERO,
            space_amplification: 0.0,
            tombstones: 0,
            oldest_tombstone: Duration::ZERO,
            levels: 0,
            files: 0,
            processor_share: 0.0,
        };
        let page_bytes = load.design.block_bytes;
        let mut tree = Self { setting, keys, db, clock, pool, live: Vec::new(), page_bytes, work };
        tree.write(load)?;
        tree.finish(load)?;
        Ok(tree)
    }

    fn write(&mut self, load: &Load) -> Result<()> {
        let operations = self.keys.inserted.len();
        let inserts = operations / (1 + load.updates);
        let mut random = self.setting.random(3);
        let mut next = 0;
        let (processor, begin) = (process::processor_seconds(), Instant::now());
        for number in 0..operations {
            let is_delete = below(&mut random, 100) < load.deletes_percent;
            let is_insert = next < inserts && below(&mut random, 1 + load.updates) == 0;
            let started;
            if is_delete && !self.live.is_empty() {
                let at = below(&mut random, self.live.len());
                let key = self.live.swap_remove(at);
                started = Instant::now();
                self.db.delete(key.to_be_bytes())?;
            } else {
                let key = if is_insert || self.live.is_empty() {
                    next += 1;
                    self.live.push(self.keys.inserted[next - 1]);
                    self.keys.inserted[next - 1]
                } else {
                    self.live[below(&mut random, self.live.len())]
                };
                let at = below(&mut random, self.pool.len() - load.value_bytes);
                started = Instant::now();
                self.db.put(key.to_be_bytes(), &self.pool[at..at + load.value_bytes])?;
            }
            self.clock.advance(STEP);
            self.do_jobs()?;
            self.work.writes.record(started.elapsed());
            // A tenth as many lookups as writes, all when the upper levels are full (§5.1.3).
            if load.is_interleaved && number >= operations / 2 && number % 5 == 0 {
                let key = self.live[below(&mut random, self.live.len())];
                let started = Instant::now();
                ensure!(self.db.get(key.to_be_bytes())?.is_some(), "key {key} is missing");
                self.work.lookups.record(started.elapsed());
            }
        }
        let processor = process::processor_seconds().zip(processor);
        let processor = processor.map_or(0.0, |(now, before)| now - before);
        self.work.processor_share = processor / begin.elapsed().as_secs_f64();
        Ok(())
    }

    /// Everything that is due.
    fn do_jobs(&mut self) -> Result<()> {
        loop {
            let started = Instant::now();
            if !self.db.run_background_job()? {
                return Ok(());
            }
            let took = started.elapsed();
            let compactions = self.db.stats().compactions;
            if compactions > self.work.compactions {
                self.work.compactions = compactions;
                self.work.jobs.record(took);
                self.work.stall += took;
            }
        }
    }

    fn finish(&mut self, load: &Load) -> Result<()> {
        self.db.flush()?;
        self.do_jobs()?;
        let (stats, view) = (self.db.stats(), self.db.tree());
        let live_bytes = (self.live.len() * (4 + load.value_bytes)) as f64;
        let shape = &view.shape;
        let now = self.keys.inserted.len() as u64 * STEP.as_micros() as u64 + 1;
        let oldest = shape.tables().filter_map(|table| table.oldest_tombstone_micros).min();
        let work = &mut self.work;
        work.user_bytes = stats.user_bytes_written;
        work.bytes_read = stats.compaction_bytes_read;
        work.bytes_written = stats.compaction_bytes_written;
        work.compactions = stats.compactions;
        work.trivial_moves = stats.trivial_moves;
        work.space_amplification = stats.table_bytes as f64 / live_bytes - 1.0;
        work.tombstones = stats.table_tombstones;
        work.oldest_tombstone =
            Duration::from_micros(oldest.map_or(0, |since| now.saturating_sub(since)));
        work.levels = shape.levels.iter().filter(|level| level.table_count() > 0).count();
        work.files = shape.table_count();
        Ok(())
    }

    /// Lookups, of which `empty_percent` are of keys that are not there.
    pub(super) fn ask(&self, empty_percent: usize, distribution: Distribution) -> Result<Asked> {
        let mut random = self.setting.random(4);
        let sorted = &self.keys.sorted;
        let mut chooser = IndexChooser::new(distribution, sorted.len() as u64, 0);
        let lookups = self.setting.lookups();
        let mut latency = Latency::new();
        let before = self.db.stats().table_bytes_read;
        for _ in 0..lookups {
            let is_empty = below(&mut random, 100) < empty_percent;
            let key = if is_empty {
                self.keys.missing(&mut random)
            } else {
                sorted[usize::try_from(chooser.choose(&mut random)).unwrap_or(0)]
            };
            let started = Instant::now();
            let found = self.db.get(key.to_be_bytes())?;
            latency.record(started.elapsed());
            ensure!(found.is_some() != is_empty, "a wrong answer for key {key}");
        }
        let bytes = self.db.stats().table_bytes_read - before;
        Ok(Asked {
            micros: latency.mean_micros(),
            p90: latency.percentile_micros(90.0),
            read_amplification: bytes as f64 / f64::from(self.page_bytes) / lookups as f64,
        })
    }

    /// The mean time of ranges that hold a share of all keys, in microseconds.
    pub(super) fn scan(&self, selectivity: f64) -> Result<f64> {
        let mut random = self.setting.random(5);
        let sorted = &self.keys.sorted;
        let length = ((sorted.len() as f64 * selectivity) as usize).max(1);
        let mut latency = Latency::new();
        for _ in 0..(self.setting.lookups() / length).clamp(20, 1000) {
            let at = below(&mut random, sorted.len() - length);
            let (first, last) = (sorted[at].to_be_bytes(), sorted[at + length].to_be_bytes());
            let started = Instant::now();
            let mut range = self.db.range(first..last)?;
            let mut count = 0;
            while range.advance()? {
                count += 1;
            }
            latency.record(started.elapsed());
            ensure!(count == length, "a range has {count} entries, not {length}");
        }
        Ok(latency.mean_micros())
    }

    /// Closes it.
    pub(super) fn close(self) -> Result<Work> {
        self.db.close()?;
        Ok(self.work)
    }
}
