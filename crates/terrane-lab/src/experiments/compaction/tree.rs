//! A tree that is loaded and read serially: the writer also runs every job that is due before its
//! next write (§4.1: compactions come before writes), and the clock advances by a millisecond an
//! operation. Every count is therefore the same in every run; only times differ.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rand_xoshiro::Xoshiro256PlusPlus;
use terrane::storage::{MemoryStorage, Storage};
use terrane::{Background, CacheWarming, Db, Design, Durability, ManualClock, Options, ReadMode};
use terrane_policy::{TableId, TreeShape};
use terrane_workload::distribution::IndexChooser;
use terrane_workload::{Distribution, Latency};

use super::sizes::{CompactionSizes, KeySet, VALUE_BYTES, below};
use crate::interrupt;
use crate::passing_storage::PassingStorage;

const STEP: Duration = Duration::from_millis(1);

/// Lookups and ranges whose pages are counted: enough for three digits.
const PAGED_LOOKUPS_MAX: usize = 20_000;
const PAGED_RANGES: usize = 40;

/// Filters are rounded up to whole cache lines, which shows in small tables.
const FILTER_LINE_BITS: f64 = 512.0;

/// What is loaded.
pub(super) struct LoadPlan {
    pub(super) design: Design,
    /// Updates for each insert.
    pub(super) updates: usize,
    /// Whether most updates are of a tenth of the key space.
    pub(super) is_skewed: bool,
    /// Deletes per hundred operations.
    pub(super) deletes_percent: usize,
    /// Whether lookups of existing keys are interleaved with the writes of the second half.
    pub(super) is_interleaved: bool,
    pub(super) value_bytes: usize,
    /// The memory budget of the database.
    pub(super) budget: u64,
    /// Whether its files are on a disk, though not synced. Storage in memory keeps removed files until
    /// the next sync, which takes too much memory for a large tree.
    pub(super) is_on_disk: bool,
    pub(super) cache_warming: CacheWarming,
}

impl LoadPlan {
    pub(super) fn inserts(design: Design) -> Self {
        Self {
            budget: (8 * design.buffer_bytes).max(1 << 20),
            is_on_disk: false,
            design,
            updates: 0,
            is_skewed: false,
            deletes_percent: 0,
            is_interleaved: false,
            value_bytes: VALUE_BYTES,
            cache_warming: CacheWarming::None,
        }
    }
}

/// The metrics of §4.2 after a load.
#[derive(Debug, Clone)]
pub(super) struct LoadStats {
    pub(super) user_bytes: u64,
    pub(super) bytes_read: u64,
    pub(super) bytes_written: u64,
    pub(super) flushes: u64,
    pub(super) compactions: u64,
    /// Compactions that only moved tables to another level.
    pub(super) move_compactions: u64,
    /// Times of the compactions that rewrote tables.
    pub(super) jobs: Latency,
    pub(super) writes: Latency,
    pub(super) lookups: Latency,
    /// Pages read per interleaved lookup.
    pub(super) lookup_pages: f64,
    /// Cache misses of those lookups: data blocks, index blocks, filters.
    pub(super) misses: (u64, u64, u64),
    /// Bytes that flushes and compactions inserted into the cache.
    pub(super) warmed_bytes: u64,
    /// Time that writes spent waiting for compactions.
    pub(super) stall: Duration,
    /// Bytes of tables beyond the valid entries, as a share of those.
    pub(super) space_amplification: f64,
    pub(super) tombstones: u64,
    pub(super) oldest_tombstone: Duration,
    pub(super) levels: usize,
    pub(super) files: usize,
    samples: u32,
    /// Sorted runs, on average over the second half.
    pub(super) mean_runs: f64,
    /// Space amplification, on average over the second half.
    pub(super) mean_space: f64,
    /// Filter bits per key of the tables at the end: those of the level that each table was written
    /// for, rounded up to whole cache lines.
    pub(super) filter_bits: f64,
    /// Tables written; each is a file that is created, synced and later removed.
    pub(super) tables_made: u64,
    /// Bytes moved by each compaction that rewrote tables, and the time it took.
    pub(super) moved_by_jobs: Vec<(u64, Duration)>,
    /// The most bytes that compactions moved before one write continued.
    pub(super) most_before_a_write: u64,
}

impl LoadStats {
    /// Bytes that compactions read and wrote per byte that the user wrote.
    pub(super) fn moved(&self) -> f64 {
        (self.bytes_read + self.bytes_written) as f64 / self.user_bytes as f64
    }

    /// Bytes that a compaction moved on average.
    pub(super) fn mean_job(&self) -> f64 {
        let bytes: u64 = self.moved_by_jobs.iter().map(|(bytes, _)| bytes).sum();
        bytes as f64 / self.moved_by_jobs.len().max(1) as f64
    }

    /// Bytes that the largest compaction moved.
    pub(super) fn largest_job(&self) -> f64 {
        self.moved_by_jobs.iter().map(|(bytes, _)| *bytes).max().unwrap_or(0) as f64
    }

    /// The median time of compactions per byte, in nanoseconds.
    pub(super) fn nanos_per_byte(&self) -> f64 {
        let each = |(bytes, took): &(u64, Duration)| took.as_nanos() as f64 / *bytes as f64;
        let mut times: Vec<f64> = self.moved_by_jobs.iter().map(each).collect();
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied().unwrap_or(0.0)
    }

    /// Bytes that compactions wrote per byte that the user wrote.
    pub(super) fn write_amplification(&self) -> f64 {
        self.bytes_written as f64 / self.user_bytes as f64
    }
}

/// What lookups cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct LookupCost {
    /// The median time.
    pub(super) micros: f64,
    /// Pages read per lookup.
    pub(super) pages: f64,
    /// Data blocks searched per lookup, cached or not.
    pub(super) blocks: f64,
}

/// Pages read per lookup.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageCounts {
    pub(super) mean: f64,
    pub(super) p90: f64,
}

/// A loaded tree.
pub(super) struct LoadedTree<'a> {
    sizes: &'a CompactionSizes,
    keys: &'a KeySet,
    dir: PathBuf,
    storage: Arc<dyn Storage>,
    is_on_disk: bool,
    db: Db,
    clock: Arc<ManualClock>,
    pool: Vec<u8>,
    live: Vec<u32>,
    page_bytes: u32,
    /// Bytes that compactions have moved so far.
    moved_so_far: u64,
    /// Filter bits per key of each table seen so far, by the level it was written for.
    bits: BTreeMap<TableId, f64>,
    /// Flushes and compactions when the tables were last recorded.
    jobs_recorded: u64,
    pub(super) stats: LoadStats,
}

impl<'a> LoadedTree<'a> {
    /// Loads a new tree. Its files are in memory or not synced, because syncs would take most of the
    /// time and vary between runs.
    pub(super) fn load(
        sizes: &'a CompactionSizes,
        keys: &'a KeySet,
        load: &LoadPlan,
        dir: &Path,
    ) -> Result<Self> {
        interrupt::wait_if_ending();
        let clock = Arc::new(ManualClock::new(1));
        let storage: Arc<dyn Storage> = if load.is_on_disk {
            Arc::new(PassingStorage)
        } else {
            Arc::new(MemoryStorage::new(sizes.seed))
        };
        let db = Options::new()
            .design(load.design.clone())
            .durability(Durability::None)
            .read_mode(ReadMode::Cached)
            .memory_budget(load.budget)
            .cache_warming(load.cache_warming)
            .background(Background::Inline)
            .clock(clock.clone())
            .storage(Arc::clone(&storage))
            .open(dir)?;
        let mut random = sizes.random(2);
        let pool = (0..1 << 16).map(|_| below(&mut random, 256) as u8).collect();
        let stats = LoadStats {
            user_bytes: 0,
            bytes_read: 0,
            bytes_written: 0,
            flushes: 0,
            compactions: 0,
            move_compactions: 0,
            jobs: Latency::new(),
            writes: Latency::new(),
            lookups: Latency::new(),
            lookup_pages: 0.0,
            misses: (0, 0, 0),
            warmed_bytes: 0,
            stall: Duration::ZERO,
            space_amplification: 0.0,
            tombstones: 0,
            oldest_tombstone: Duration::ZERO,
            levels: 0,
            files: 0,
            samples: 0,
            mean_runs: 0.0,
            mean_space: 0.0,
            filter_bits: 0.0,
            tables_made: 0,
            moved_by_jobs: Vec::new(),
            most_before_a_write: 0,
        };
        let page_bytes = load.design.block_bytes;
        let live = Vec::new();
        let bits = BTreeMap::new();
        let mut tree = Self {
            sizes,
            keys,
            dir: dir.to_owned(),
            storage,
            is_on_disk: load.is_on_disk,
            db,
            clock,
            pool,
            live,
            page_bytes,
            moved_so_far: 0,
            bits,
            jobs_recorded: 0,
            stats,
        };
        tree.write(load)?;
        tree.finish(load)?;
        Ok(tree)
    }

    fn write(&mut self, load: &LoadPlan) -> Result<()> {
        let operations = self.keys.inserted.len();
        let inserts = operations / (1 + load.updates);
        let mut random = self.sizes.random(3);
        let mut next = 0;
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
                    self.updated(load, &mut random)
                };
                let at = below(&mut random, self.pool.len() - load.value_bytes);
                started = Instant::now();
                self.db.put(key.to_be_bytes(), &self.pool[at..at + load.value_bytes])?;
            }
            self.clock.advance(STEP);
            self.run_due_jobs(&load.design)?;
            self.stats.writes.record(started.elapsed());
            if number >= operations / 2 && number % (operations / 200).max(1) == 0 {
                self.sample(load);
            }
            // A tenth as many lookups as writes, once the upper levels are full (§5.1.3).
            if load.is_interleaved && number >= operations / 2 && number % 5 == 0 {
                let key = self.live[below(&mut random, self.live.len())];
                let started = Instant::now();
                ensure!(self.db.get(key.to_be_bytes())?.is_some(), "key {key} is missing");
                self.stats.lookups.record(started.elapsed());
            }
        }
        Ok(())
    }

    /// A key to update: a uniform choice, or mostly one of the first tenth of the key space.
    fn updated(&self, load: &LoadPlan, random: &mut Xoshiro256PlusPlus) -> u32 {
        let is_hot = |key: &u32| *key < u32::MAX / 10;
        let any = |random: &mut _| self.live[below(random, self.live.len())];
        if !load.is_skewed || below(random, 10) == 0 {
            return any(random);
        }
        let drawn = (0..100).map(|_| any(random)).find(is_hot);
        drawn.unwrap_or(self.live[0])
    }

    /// Adds the current shape of the tree to the means over about a hundred samples.
    fn sample(&mut self, load: &LoadPlan) {
        let shape = self.db.tree().shape;
        let live_bytes = (self.live.len() * (4 + load.value_bytes)) as f64;
        self.stats.samples += 1;
        let weight = 1.0 / f64::from(self.stats.samples);
        let loaded = &mut self.stats;
        loaded.mean_runs += weight * (shape.run_count() as f64 - loaded.mean_runs);
        let space = shape.size_bytes() as f64 / live_bytes - 1.0;
        loaded.mean_space += weight * (space - loaded.mean_space);
    }

    /// Runs every job that is due.
    fn run_due_jobs(&mut self, design: &Design) -> Result<()> {
        let mut before_write = 0;
        loop {
            let started = Instant::now();
            let is_done = !self.db.run_background_job()?;
            self.record_tables(design);
            if is_done {
                let most = &mut self.stats.most_before_a_write;
                *most = before_write.max(*most);
                return Ok(());
            }
            let took = started.elapsed();
            let stats = self.db.stats();
            if stats.compactions > self.stats.compactions {
                let moved = stats.compaction_bytes_read + stats.compaction_bytes_written;
                let bytes = moved - self.moved_so_far;
                self.moved_so_far = moved;
                before_write += bytes;
                self.stats.compactions = stats.compactions;
                self.stats.moved_by_jobs.push((bytes, took));
                self.stats.jobs.record(took);
                self.stats.stall += took;
            }
        }
    }

    /// Records the filter bits of new tables, because a table may later move to a level with others.
    fn record_tables(&mut self, design: &Design) {
        let stats = self.db.stats();
        let jobs = stats.flushes + stats.compactions;
        if jobs == self.jobs_recorded {
            return;
        }
        self.jobs_recorded = jobs;
        let shape = self.db.tree().shape;
        let last = shape.last_level();
        for place in shape.places() {
            if let Entry::Vacant(new) = self.bits.entry(place.table.id) {
                new.insert(design.filter_bits_at(place.level, last));
                self.stats.tables_made += 1;
            }
        }
    }

    /// Filter bits of a key on average.
    fn filter_bits(&self, shape: &TreeShape) -> f64 {
        let (mut keys, mut bits) = (0.0, 0.0);
        for table in shape.tables() {
            let wanted = self.bits.get(&table.id).map_or(0.0, |bits| table.entries as f64 * bits);
            bits += (wanted / FILTER_LINE_BITS).ceil() * FILTER_LINE_BITS;
            keys += table.entries as f64;
        }
        bits / f64::max(keys, 1.0)
    }

    fn finish(&mut self, load: &LoadPlan) -> Result<()> {
        self.db.flush()?;
        self.run_due_jobs(&load.design)?;
        let (stats, view) = (self.db.stats(), self.db.tree());
        let live_bytes = (self.live.len() * (4 + load.value_bytes)) as f64;
        let shape = &view.shape;
        let now = self.keys.inserted.len() as u64 * STEP.as_micros() as u64 + 1;
        let oldest = shape.tables().filter_map(|table| table.oldest_tombstone_micros).min();
        let filter_bits = self.filter_bits(shape);
        let loaded = &mut self.stats;
        loaded.filter_bits = filter_bits;
        loaded.user_bytes = stats.user_bytes_written;
        loaded.bytes_read = stats.compaction_bytes_read;
        loaded.bytes_written = stats.compaction_bytes_written;
        loaded.flushes = stats.flushes;
        // During the load, only the lookups read through the cache.
        let lookups = loaded.lookups.samples().max(1) as f64;
        loaded.lookup_pages = stats.table_bytes_read as f64 / f64::from(self.page_bytes) / lookups;
        let cache = &stats.cache;
        loaded.misses = (cache.data_misses, cache.index_misses, cache.filter_misses);
        loaded.warmed_bytes = cache.warmed_bytes;
        loaded.compactions = stats.compactions;
        loaded.move_compactions = stats.move_compactions;
        loaded.space_amplification = stats.table_bytes as f64 / live_bytes - 1.0;
        loaded.tombstones = stats.table_tombstones;
        loaded.oldest_tombstone =
            Duration::from_micros(oldest.map_or(0, |since| now.saturating_sub(since)));
        loaded.levels = shape.levels.iter().filter(|level| level.table_count() > 0).count();
        loaded.files = shape.table_count();
        Ok(())
    }

    /// Reopens the tree for reading only, with an empty cache of `cache_bytes`.
    pub(super) fn read_with_cache(mut self, cache_bytes: u64) -> Result<Self> {
        self.db.close()?;
        // A database opened for reading gives half of its memory to the cache.
        self.db = Options::new()
            .read_mode(ReadMode::Cached)
            .memory_budget(2 * cache_bytes)
            .background(Background::Inline)
            .clock(self.clock.clone())
            .storage(Arc::clone(&self.storage))
            .open_read_only(&self.dir)?;
        Ok(self)
    }

    fn pages_read(&self) -> f64 {
        self.db.stats().table_bytes_read as f64 / f64::from(self.page_bytes)
    }

    /// Counts the pages that uniform lookups read once the cache is warm; `empty_percent` of them
    /// request missing keys.
    pub(super) fn lookup_pages(&self, empty_percent: usize) -> Result<PageCounts> {
        let mut random = self.sizes.random(6);
        let sorted = &self.keys.sorted;
        let counted = (sorted.len() / 10).min(PAGED_LOOKUPS_MAX);
        let mut pages = Vec::with_capacity(counted);
        for number in 0..counted + counted / 4 {
            let is_empty = below(&mut random, 100) < empty_percent;
            let key = if is_empty {
                self.keys.missing(&mut random)
            } else {
                sorted[below(&mut random, sorted.len())]
            };
            let before = self.pages_read();
            let found = self.db.get(key.to_be_bytes())?;
            ensure!(found.is_some() != is_empty, "a wrong answer for key {key}");
            if number >= counted / 4 {
                pages.push(self.pages_read() - before);
            }
        }
        pages.sort_by(f64::total_cmp);
        let mean = pages.iter().sum::<f64>() / pages.len().max(1) as f64;
        Ok(PageCounts { mean, p90: pages.get(pages.len() * 9 / 10).copied().unwrap_or(0.0) })
    }

    /// Counts the pages that a range of `entries` entries reads.
    pub(super) fn scan_pages(&self, entries: usize) -> Result<f64> {
        let mut random = self.sizes.random(7);
        let sorted = &self.keys.sorted;
        let length = entries.min(sorted.len() / 2).max(1);
        let before = self.pages_read();
        for _ in 0..PAGED_RANGES {
            let at = below(&mut random, sorted.len() - length);
            let (first, last) = (sorted[at].to_be_bytes(), sorted[at + length].to_be_bytes());
            let mut range = self.db.range(first..last)?;
            let mut count = 0;
            while range.advance()? {
                count += 1;
            }
            ensure!(count == length, "a range has {count} entries, not {length}");
        }
        Ok((self.pages_read() - before) / PAGED_RANGES as f64)
    }

    /// Times lookups, `empty_percent` of which request missing keys.
    pub(super) fn look_up(
        &self,
        empty_percent: usize,
        distribution: Distribution,
    ) -> Result<LookupCost> {
        self.look_up_often(empty_percent, distribution, self.sizes.lookups())
    }

    /// Times `lookups` lookups.
    pub(super) fn look_up_often(
        &self,
        empty_percent: usize,
        distribution: Distribution,
        lookups: usize,
    ) -> Result<LookupCost> {
        let mut random = self.sizes.random(4);
        let sorted = &self.keys.sorted;
        let mut chooser = IndexChooser::new(distribution, sorted.len() as u64, 0);
        let mut latency = Latency::new();
        let before = self.db.stats();
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
        let after = self.db.stats();
        let bytes = after.table_bytes_read - before.table_bytes_read;
        Ok(LookupCost {
            micros: latency.percentile_micros(50.0),
            pages: bytes as f64 / f64::from(self.page_bytes) / lookups as f64,
            blocks: (after.get_blocks - before.get_blocks) as f64 / lookups as f64,
        })
    }

    /// The median time of ranges over a share of all keys, in microseconds.
    pub(super) fn scan(&self, selectivity: f64) -> Result<f64> {
        let mut random = self.sizes.random(5);
        let sorted = &self.keys.sorted;
        let length = ((sorted.len() as f64 * selectivity) as usize).max(1);
        let mut latency = Latency::new();
        for _ in 0..(self.sizes.lookups() / length).clamp(20, 1000) {
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
        Ok(latency.percentile_micros(50.0))
    }

    /// Closes the tree and removes its files.
    pub(super) fn close(self) -> Result<LoadStats> {
        self.db.close()?;
        if self.is_on_disk {
            std::fs::remove_dir_all(&self.dir)?;
        }
        Ok(self.stats)
    }
}
