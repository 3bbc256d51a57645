//! A tree that is loaded and asked, serially: whoever writes also carries out every job that is due,
//! before the next write (§4.1: compactions come before writes). Time is a clock that moves by a
//! millisecond an operation. So every count is the same in every run; only times differ.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rand_xoshiro::Xoshiro256PlusPlus;
use terrane::policy::{TableId, TreeShape};
use terrane::storage::{MemoryStorage, Storage};
use terrane::{Background, CacheWarming, Db, Design, Durability, ManualClock, Options, ReadMode};
use terrane_workload::distribution::IndexChooser;
use terrane_workload::{Distribution, Latency};

use super::setting::{Keys, Setting, VALUE_BYTES, below};
use crate::interrupt;
use crate::passing_storage::PassingStorage;

const STEP: Duration = Duration::from_millis(1);

/// Lookups and ranges whose pages are counted: enough for figures of three digits.
const PAGED_LOOKUPS_MAX: usize = 20_000;
const PAGED_RANGES: usize = 40;

/// Filters are whole lines of so many bits, which small tables notice.
const FILTER_LINE_BITS: f64 = 512.0;

/// What is written.
pub(super) struct Load {
    pub(super) design: Design,
    /// Updates for each insert.
    pub(super) updates: usize,
    /// Whether most of them are of keys that lie together.
    pub(super) is_skewed: bool,
    /// Deletes in a hundred operations.
    pub(super) deletes_percent: usize,
    /// Whether lookups of keys that are there come between the writes of the second half.
    pub(super) is_interleaved: bool,
    pub(super) value_bytes: usize,
    /// The memory for all of it.
    pub(super) budget: u64,
    /// Whether its files are on a disk, though not synced. In memory, files that were removed stay
    /// until something is synced, which a large tree has no room for.
    pub(super) is_on_disk: bool,
    pub(super) cache_warming: CacheWarming,
}

impl Load {
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
pub(super) struct Work {
    pub(super) user_bytes: u64,
    pub(super) bytes_read: u64,
    pub(super) bytes_written: u64,
    pub(super) compactions: u64,
    /// Compactions that only moved tables.
    pub(super) move_compactions: u64,
    /// Compactions that rewrote something.
    pub(super) jobs: Latency,
    pub(super) writes: Latency,
    pub(super) lookups: Latency,
    /// Pages that a lookup between writes reads.
    pub(super) lookup_pages: f64,
    /// Data blocks, indexes and filters that such lookups did not find in the cache.
    pub(super) misses: (u64, u64, u64),
    /// Bytes that flushes and compactions put into the cache.
    pub(super) warmed_bytes: u64,
    /// Time that writes waited for compactions.
    pub(super) stall: Duration,
    /// Bytes of tables beyond those of valid entries, for each of these.
    pub(super) space_amplification: f64,
    pub(super) tombstones: u64,
    pub(super) oldest_tombstone: Duration,
    pub(super) levels: usize,
    pub(super) files: usize,
    /// Sorted runs, and bytes of tables beyond those of valid entries for each of these, on average
    /// over the second half.
    samples: u32,
    pub(super) mean_runs: f64,
    pub(super) mean_space: f64,
    /// Filter bits that the tables of the tree in the end have for a key: those of the level that
    /// each was written for, in whole lines.
    pub(super) filter_bits: f64,
    /// Tables that were written: each is a file that is made, synced and removed again.
    pub(super) tables_made: u64,
    /// What each compaction that rewrote something moved, and how long it took.
    pub(super) moved_by_jobs: Vec<(u64, Duration)>,
    /// The most that was moved before one write could go on.
    pub(super) most_before_a_write: u64,
}

impl Work {
    /// Bytes that compactions read and wrote, for each byte that was written.
    pub(super) fn moved(&self) -> f64 {
        (self.bytes_read + self.bytes_written) as f64 / self.user_bytes as f64
    }

    /// Bytes that a compaction moves on average.
    pub(super) fn mean_job(&self) -> f64 {
        let bytes: u64 = self.moved_by_jobs.iter().map(|(bytes, _)| bytes).sum();
        bytes as f64 / self.moved_by_jobs.len().max(1) as f64
    }

    /// Bytes that the largest compaction moved.
    pub(super) fn largest_job(&self) -> f64 {
        self.moved_by_jobs.iter().map(|(bytes, _)| *bytes).max().unwrap_or(0) as f64
    }

    /// The median time that a compaction takes for a byte, in nanoseconds.
    pub(super) fn nanos_per_byte(&self) -> f64 {
        let each = |(bytes, took): &(u64, Duration)| took.as_nanos() as f64 / *bytes as f64;
        let mut times: Vec<f64> = self.moved_by_jobs.iter().map(each).collect();
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied().unwrap_or(0.0)
    }

    /// Bytes that compactions wrote, for each byte that was written.
    pub(super) fn write_amplification(&self) -> f64 {
        self.bytes_written as f64 / self.user_bytes as f64
    }
}

/// What lookups cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    /// The median.
    pub(super) micros: f64,
    /// Pages read per lookup.
    pub(super) read_amplification: f64,
    /// Data blocks looked into per lookup, cached or not.
    pub(super) blocks: f64,
}

/// Pages that lookups read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pages {
    pub(super) mean: f64,
    pub(super) p90: f64,
}

/// A tree that was loaded.
pub(super) struct Tree<'a> {
    setting: &'a Setting,
    keys: &'a Keys,
    dir: PathBuf,
    storage: Arc<dyn Storage>,
    is_on_disk: bool,
    db: Db,
    clock: Arc<ManualClock>,
    pool: Vec<u8>,
    live: Vec<u32>,
    page_bytes: u32,
    /// Bytes that compactions have moved.
    moved_so_far: u64,
    /// Filter bits of a key of each table that was ever seen, by the level it was written for.
    bits: BTreeMap<TableId, f64>,
    /// Flushes and compactions after which tables were looked at.
    jobs_noted: u64,
    pub(super) work: Work,
}

impl<'a> Tree<'a> {
    /// Loads a new tree. Its files are in memory, or not synced: syncs of a disk would be most of the
    /// time, and differ from run to run.
    pub(super) fn load(
        setting: &'a Setting,
        keys: &'a Keys,
        load: &Load,
        dir: &Path,
    ) -> Result<Self> {
        interrupt::wait_if_ending();
        let clock = Arc::new(ManualClock::new(1));
        let storage: Arc<dyn Storage> = if load.is_on_disk {
            Arc::new(PassingStorage)
        } else {
            Arc::new(MemoryStorage::new(setting.seed))
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
        let mut random = setting.random(2);
        let pool = (0..1 << 16).map(|_| below(&mut random, 256) as u8).collect();
        let work = Work {
            user_bytes: 0,
            bytes_read: 0,
            bytes_written: 0,
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
            setting,
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
            jobs_noted: 0,
            work,
        };
        tree.write(load)?;
        tree.finish(load)?;
        Ok(tree)
    }

    fn write(&mut self, load: &Load) -> Result<()> {
        let operations = self.keys.inserted.len();
        let inserts = operations / (1 + load.updates);
        let mut random = self.setting.random(3);
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
            self.do_jobs(&load.design)?;
            self.work.writes.record(started.elapsed());
            if number >= operations / 2 && number % (operations / 200).max(1) == 0 {
                self.sample(load);
            }
            // A tenth as many lookups as writes, all when the upper levels are full (§5.1.3).
            if load.is_interleaved && number >= operations / 2 && number % 5 == 0 {
                let key = self.live[below(&mut random, self.live.len())];
                let started = Instant::now();
                ensure!(self.db.get(key.to_be_bytes())?.is_some(), "key {key} is missing");
                self.work.lookups.record(started.elapsed());
            }
        }
        Ok(())
    }

    /// A key to be updated: any of them, or mostly one of the tenth that comes first.
    fn updated(&self, load: &Load, random: &mut Xoshiro256PlusPlus) -> u32 {
        let is_hot = |key: &u32| *key < u32::MAX / 10;
        let any = |random: &mut _| self.live[below(random, self.live.len())];
        if !load.is_skewed || below(random, 10) == 0 {
            return any(random);
        }
        let drawn = (0..100).map(|_| any(random)).find(is_hot);
        drawn.unwrap_or(self.live[0])
    }

    /// What the tree is like at the moment; one of a hundred.
    fn sample(&mut self, load: &Load) {
        let shape = self.db.tree().shape;
        let live_bytes = (self.live.len() * (4 + load.value_bytes)) as f64;
        self.work.samples += 1;
        let weight = 1.0 / f64::from(self.work.samples);
        let work = &mut self.work;
        work.mean_runs += weight * (shape.run_count() as f64 - work.mean_runs);
        let space = shape.size_bytes() as f64 / live_bytes - 1.0;
        work.mean_space += weight * (space - work.mean_space);
    }

    /// Everything that is due.
    fn do_jobs(&mut self, design: &Design) -> Result<()> {
        let mut before_write = 0;
        loop {
            let started = Instant::now();
            let is_done = !self.db.run_background_job()?;
            self.note_tables(design);
            if is_done {
                let most = &mut self.work.most_before_a_write;
                *most = before_write.max(*most);
                return Ok(());
            }
            let took = started.elapsed();
            let stats = self.db.stats();
            if stats.compactions > self.work.compactions {
                let moved = stats.compaction_bytes_read + stats.compaction_bytes_written;
                let bytes = moved - self.moved_so_far;
                self.moved_so_far = moved;
                before_write += bytes;
                self.work.compactions = stats.compactions;
                self.work.moved_by_jobs.push((bytes, took));
                self.work.jobs.record(took);
                self.work.stall += took;
            }
        }
    }

    /// Notes what filters new tables have: later they may move to a level that gives others.
    fn note_tables(&mut self, design: &Design) {
        let stats = self.db.stats();
        let jobs = stats.flushes + stats.compactions;
        if jobs == self.jobs_noted {
            return;
        }
        self.jobs_noted = jobs;
        let shape = self.db.tree().shape;
        let last = shape.last_level();
        for place in shape.places() {
            if let Entry::Vacant(new) = self.bits.entry(place.table.id) {
                new.insert(design.filter_bits_at(place.level, last));
                self.work.tables_made += 1;
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

    fn finish(&mut self, load: &Load) -> Result<()> {
        self.db.flush()?;
        self.do_jobs(&load.design)?;
        let (stats, view) = (self.db.stats(), self.db.tree());
        let live_bytes = (self.live.len() * (4 + load.value_bytes)) as f64;
        let shape = &view.shape;
        let now = self.keys.inserted.len() as u64 * STEP.as_micros() as u64 + 1;
        let oldest = shape.tables().filter_map(|table| table.oldest_tombstone_micros).min();
        let filter_bits = self.filter_bits(shape);
        let work = &mut self.work;
        work.filter_bits = filter_bits;
        work.user_bytes = stats.user_bytes_written;
        work.bytes_read = stats.compaction_bytes_read;
        work.bytes_written = stats.compaction_bytes_written;
        // Nobody else reads through the cache while the tree is loaded.
        let lookups = work.lookups.samples().max(1) as f64;
        work.lookup_pages = stats.table_bytes_read as f64 / f64::from(self.page_bytes) / lookups;
        let cache = &stats.cache;
        work.misses = (cache.data_misses, cache.index_misses, cache.filter_misses);
        work.warmed_bytes = cache.warmed_bytes;
        work.compactions = stats.compactions;
        work.move_compactions = stats.move_compactions;
        work.space_amplification = stats.table_bytes as f64 / live_bytes - 1.0;
        work.tombstones = stats.table_tombstones;
        work.oldest_tombstone =
            Duration::from_micros(oldest.map_or(0, |since| now.saturating_sub(since)));
        work.levels = shape.levels.iter().filter(|level| level.table_count() > 0).count();
        work.files = shape.table_count();
        Ok(())
    }

    /// The same tree to be read only, with an empty cache of so many bytes.
    pub(super) fn read_with_cache(mut self, cache_bytes: u64) -> Result<Self> {
        self.db.close()?;
        // Half of the memory of a database that no one writes to is for its cache.
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

    /// Pages that uniform lookups read, once the cache is warm; `empty_percent` of them are of keys
    /// that are not there.
    pub(super) fn ask_pages(&self, empty_percent: usize) -> Result<Pages> {
        let mut random = self.setting.random(6);
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
        Ok(Pages { mean, p90: pages.get(pages.len() * 9 / 10).copied().unwrap_or(0.0) })
    }

    /// Pages that a range of so many entries reads.
    pub(super) fn scan_pages(&self, entries: usize) -> Result<f64> {
        let mut random = self.setting.random(7);
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

    /// Lookups, of which `empty_percent` are of keys that are not there.
    pub(super) fn ask(&self, empty_percent: usize, distribution: Distribution) -> Result<Asked> {
        self.ask_often(empty_percent, distribution, self.setting.lookups())
    }

    /// The same, of so many lookups.
    pub(super) fn ask_often(
        &self,
        empty_percent: usize,
        distribution: Distribution,
        lookups: usize,
    ) -> Result<Asked> {
        let mut random = self.setting.random(4);
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
        Ok(Asked {
            micros: latency.percentile_micros(50.0),
            read_amplification: bytes as f64 / f64::from(self.page_bytes) / lookups as f64,
            blocks: (after.get_blocks - before.get_blocks) as f64 / lookups as f64,
        })
    }

    /// The median time of ranges that hold a share of all keys, in microseconds.
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
        Ok(latency.percentile_micros(50.0))
    }

    /// Closes it.
    pub(super) fn close(self) -> Result<Work> {
        self.db.close()?;
        if self.is_on_disk {
            std::fs::remove_dir_all(&self.dir)?;
        }
        Ok(self.work)
    }
}
