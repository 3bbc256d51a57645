//! Loads the tree: writes, background jobs, and their metrics.

use std::collections::btree_map::Entry;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use terrane_policy::TreeShape;

use super::super::sizes::below;
use super::{LoadedTree, Operation, STEP, SYNC_AFTER};

/// Filters are rounded up to whole cache lines, which shows in small tables.
const FILTER_LINE_BITS: f64 = 512.0;

impl LoadedTree<'_> {
    /// Makes the next writes until `end` writes have been made in total, or none are left.
    pub(in super::super) fn write(&mut self, end: usize) -> Result<()> {
        let all = self.load.mix.operations;
        while self.written < end {
            let Some(operation) = self.operations.next() else { return Ok(()) };
            match operation {
                Operation::Put(key) => {
                    let value = self.values.next(self.load.value_bytes);
                    self.db.put(key.to_be_bytes(), value)?;
                }
                Operation::Delete(key) => self.db.delete(key.to_be_bytes())?,
            }
            self.clock.advance(STEP);
            self.written += 1;
            self.run_due_jobs()?;
            if self.written >= all / 2 {
                if self.written.is_multiple_of((all / 200).max(1)) {
                    self.sample();
                }
                self.look_up()?;
            }
        }
        Ok(())
    }

    /// Makes a lookup of an existing key in the given share of the calls. The writer's lookups begin
    /// once the upper levels are full (§5.1.3).
    fn look_up(&mut self) -> Result<()> {
        if below(&mut self.random, 100) < self.load.lookups_percent {
            let live = &self.operations.live;
            let key = live[below(&mut self.random, live.len())];
            ensure!(self.db.get(key.to_be_bytes())?.is_some(), "key {key} is missing");
            self.stats.lookups += 1;
        }
        Ok(())
    }

    fn live_bytes(&self) -> f64 {
        (self.operations.live.len() * (4 + self.load.value_bytes)) as f64
    }

    /// Adds the current shape of the tree to the means over about a hundred samples.
    fn sample(&mut self) {
        let shape = self.db.tree().shape;
        let live_bytes = self.live_bytes();
        let design = &self.load.design;
        let last = shape.last_level();
        let stats = &mut self.stats;
        stats.samples += 1;
        let weight = 1.0 / f64::from(stats.samples);
        stats.mean_runs += weight * (shape.run_count() as f64 - stats.mean_runs);
        let space = shape.size_bytes() as f64 / live_bytes - 1.0;
        stats.mean_space += weight * (space - stats.mean_space);
        if let Some(first) = shape.levels.get(1) {
            let fill = first.size_bytes() as f64 / design.capacity_bytes(1, last) as f64;
            stats.mean_fill += weight * (fill - stats.mean_fill);
        }
    }

    /// Runs every job that is due.
    fn run_due_jobs(&mut self) -> Result<()> {
        let mut before_write = 0;
        loop {
            let started = Instant::now();
            let is_done = !self.db.run_background_job()?;
            if is_done {
                let most = &mut self.stats.most_before_a_write;
                *most = before_write.max(*most);
                return Ok(());
            }
            let took = started.elapsed();
            self.record_tables();
            before_write += self.record_compaction(took);
            if self.moved_so_far - self.moved_at_sync > SYNC_AFTER {
                self.storage.sync_dir(&self.dir)?;
                self.moved_at_sync = self.moved_so_far;
            }
        }
    }

    /// Records the last compaction if it rewrote tables. Returns the bytes that it moved.
    fn record_compaction(&mut self, took: Duration) -> u64 {
        let stats = self.db.stats();
        if stats.compactions == self.stats.compactions {
            return 0;
        }
        let moved = stats.compaction_bytes_read + stats.compaction_bytes_written;
        let bytes = moved - self.moved_so_far;
        self.moved_so_far = moved;
        self.stats.compactions = stats.compactions;
        self.stats.moved_by_jobs.push(bytes);
        self.stats.compacting += took;
        bytes
    }

    /// Records the filter bits of new tables, because a table may later move to a level with another setting.
    fn record_tables(&mut self) {
        let stats = self.db.stats();
        let jobs = stats.flushes + stats.compactions;
        if jobs == self.jobs_recorded {
            return;
        }
        self.jobs_recorded = jobs;
        // The write that filled the memtable may be in the next memtable.
        self.flushed = self.operations.live.len().saturating_sub(1);
        let shape = self.db.tree().shape;
        let last = shape.last_level();
        for place in shape.places() {
            if let Entry::Vacant(new) = self.bits.entry(place.table.id) {
                new.insert(self.load.design.filter_bits_at(place.level, last));
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

    /// Flushes the tree and records its metrics.
    pub(in super::super) fn finish(&mut self) -> Result<()> {
        self.db.flush()?;
        self.run_due_jobs()?;
        self.flushed = self.operations.live.len();
        let (now, view) = (self.db.stats(), self.db.tree());
        let shape = &view.shape;
        let time = self.written as u64 * STEP.as_micros() as u64 + 1;
        let oldest = shape.tables().filter_map(|table| table.oldest_tombstone_micros).min();
        let filter_bits = self.filter_bits(shape);
        let live = self.operations.live.len() as f64;
        let stats = &mut self.stats;
        stats.filter_bits = filter_bits;
        stats.user_bytes = now.user_bytes_written;
        stats.bytes_read = now.compaction_bytes_read;
        stats.bytes_written = now.compaction_bytes_written;
        stats.flushes = now.flushes;
        // During the load, only the lookups read through the cache.
        let lookups = stats.lookups.max(1) as f64;
        let page = f64::from(self.load.design.block_bytes);
        stats.lookup_pages = now.table_bytes_read as f64 / page / lookups;
        let cache = &now.cache;
        stats.misses = (cache.data_misses, cache.index_misses, cache.filter_misses);
        stats.warmed_bytes = cache.warmed_bytes;
        stats.compactions = now.compactions;
        stats.move_compactions = now.move_compactions;
        stats.space_overhead = now.table_entries as f64 / live - 1.0;
        stats.tombstones = now.table_tombstones;
        stats.oldest_tombstone =
            Duration::from_micros(oldest.map_or(0, |since| time.saturating_sub(since)));
        stats.levels = shape.levels.iter().filter(|level| level.table_count() > 0).count();
        stats.files = shape.table_count();
        Ok(())
    }
}
