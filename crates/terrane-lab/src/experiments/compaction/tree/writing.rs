//! Loads the tree: writes, background jobs, and their metrics.

use std::collections::btree_map::Entry;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rand_xoshiro::Xoshiro256PlusPlus;
use terrane::Design;
use terrane_policy::TreeShape;

use super::super::sizes::below;
use super::{LoadPlan, LoadedTree, STEP};

/// Filters are rounded up to whole cache lines, which shows in small tables.
const FILTER_LINE_BITS: f64 = 512.0;

impl LoadedTree<'_> {
    pub(super) fn write(&mut self, load: &LoadPlan) -> Result<()> {
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
            // Once the upper levels are full, there is one lookup for every ten writes (§5.1.3).
            if load.is_interleaved && number >= operations / 2 && number % 5 == 0 {
                let key = self.live[below(&mut random, self.live.len())];
                let started = Instant::now();
                ensure!(self.db.get(key.to_be_bytes())?.is_some(), "key {key} is missing");
                self.stats.lookups.record(started.elapsed());
            }
        }
        Ok(())
    }

    /// Returns a key to update: a uniform choice, or mostly one of the first tenth of the key space.
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

    /// Records the filter bits of new tables, because a table may later move to a level with another setting.
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

    /// Returns the mean filter bits per key.
    fn filter_bits(&self, shape: &TreeShape) -> f64 {
        let (mut keys, mut bits) = (0.0, 0.0);
        for table in shape.tables() {
            let wanted = self.bits.get(&table.id).map_or(0.0, |bits| table.entries as f64 * bits);
            bits += (wanted / FILTER_LINE_BITS).ceil() * FILTER_LINE_BITS;
            keys += table.entries as f64;
        }
        bits / f64::max(keys, 1.0)
    }

    pub(super) fn finish(&mut self, load: &LoadPlan) -> Result<()> {
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
        let stored = stats.table_bytes + stats.value_bytes;
        loaded.space_amplification = stored as f64 / live_bytes - 1.0;
        loaded.tombstones = stats.table_tombstones;
        loaded.oldest_tombstone =
            Duration::from_micros(oldest.map_or(0, |since| now.saturating_sub(since)));
        loaded.levels = shape.levels.iter().filter(|level| level.table_count() > 0).count();
        loaded.files = shape.table_count();
        Ok(())
    }
}
