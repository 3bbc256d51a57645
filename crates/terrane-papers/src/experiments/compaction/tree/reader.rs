//! Lookups and ranges of a tree, and the pages that they read.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use terrane::{Db, Options, Stats};
use terrane_workload::distribution::IndexChooser;
use terrane_workload::{Distribution, Latency};

use super::super::sizes::{KeySet, below};

/// Percentiles are recorded for at most this many lookups, because the statistics cost more than a
/// lookup in memory.
const COUNTED_MAX: usize = 10_000;

/// A tree that is open for reading.
pub(in super::super) struct Reader<'a> {
    db: Db,
    keys: &'a KeySet,
    /// The keys that uniform lookups may find. Other distributions draw from all keys in order.
    existing: &'a [u32],
    page_bytes: f64,
    random: Xoshiro256PlusPlus,
}

/// The mean costs of reads.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct ReadCost {
    pub(in super::super) latency: Latency,
    pub(in super::super) pages: f64,
    pub(in super::super) pages_p90: f64,
    /// Data blocks searched, cached or not.
    pub(in super::super) blocks: f64,
    pub(in super::super) data_misses: f64,
    pub(in super::super) index_misses: f64,
    pub(in super::super) filter_misses: f64,
    /// The share of the filters of tables without the key that did not exclude it.
    pub(in super::super) false_positives: f64,
}

impl ReadCost {
    /// Returns the mean of several costs with the same number of reads each.
    pub(in super::super) fn mean(all: &[Self]) -> Self {
        let mut mean = Self::default();
        let share = 1.0 / all.len().max(1) as f64;
        for one in all {
            mean.latency.add(&one.latency);
            mean.pages += share * one.pages;
            mean.pages_p90 += share * one.pages_p90;
            mean.blocks += share * one.blocks;
            mean.data_misses += share * one.data_misses;
            mean.index_misses += share * one.index_misses;
            mean.filter_misses += share * one.filter_misses;
            mean.false_positives += share * one.false_positives;
        }
        mean
    }
}

impl<'a> Reader<'a> {
    pub(in super::super) fn open(
        options: &Options,
        dir: &Path,
        cache_bytes: u64,
        (keys, existing): (&'a KeySet, &'a [u32]),
    ) -> Result<Self> {
        // A database opened for reading gives half of its memory to the cache.
        let options = options.clone().memory_budget((2 * cache_bytes).max(1 << 20));
        let db = options.open_read_only(dir)?;
        let page_bytes = f64::from(db.design().block_bytes);
        Ok(Self { db, keys, existing, page_bytes, random: Xoshiro256PlusPlus::seed_from_u64(6) })
    }

    /// Makes `count` lookups, `empty_percent` of which request missing keys.
    pub(in super::super) fn look_up(
        &mut self,
        empty_percent: usize,
        distribution: Distribution,
        count: usize,
    ) -> Result<ReadCost> {
        let existing = match distribution {
            Distribution::Uniform => self.existing,
            _ => &self.keys.sorted,
        };
        ensure!(!existing.is_empty(), "there is nothing to look up yet");
        let mut chooser = IndexChooser::new(distribution, existing.len() as u64, 0);
        let mut cost = ReadCost::default();
        let mut pages = Vec::with_capacity(count);
        let before = self.db.stats();
        let mut read = before.table_bytes_read;
        for _ in 0..count {
            let is_empty = below(&mut self.random, 100) < empty_percent;
            let key = if is_empty {
                self.keys.missing(&mut self.random)
            } else {
                let at = usize::try_from(chooser.choose(&mut self.random)).unwrap_or(0);
                existing[at]
            };
            let started = Instant::now();
            let found = self.db.get(key.to_be_bytes())?;
            cost.latency.record(started.elapsed());
            ensure!(found.is_some() != is_empty, "a wrong answer for key {key}");
            if count <= COUNTED_MAX {
                let now = self.db.stats().table_bytes_read;
                pages.push((now - read) as f64 / self.page_bytes);
                read = now;
            }
        }
        pages.sort_by(f64::total_cmp);
        cost.pages_p90 = pages.get(pages.len() * 9 / 10).copied().unwrap_or(0.0);
        cost.count(&before, &self.db.stats(), count, self.page_bytes);
        Ok(cost)
    }

    /// Reads `count` ranges of `length` entries each.
    pub(in super::super) fn scan(&mut self, length: usize, count: usize) -> Result<ReadCost> {
        let sorted = &self.keys.sorted;
        let length = length.min(sorted.len() / 2).max(1);
        let mut cost = ReadCost::default();
        let before = self.db.stats();
        for _ in 0..count {
            let at = below(&mut self.random, sorted.len() - length);
            let (first, last) = (sorted[at].to_be_bytes(), sorted[at + length].to_be_bytes());
            let started = Instant::now();
            let mut range = self.db.range(first..last)?;
            let mut entries = 0;
            while range.advance()? {
                entries += 1;
            }
            cost.latency.record(started.elapsed());
            ensure!(entries == length, "a range has {entries} entries, not {length}");
        }
        cost.count(&before, &self.db.stats(), count, self.page_bytes);
        Ok(cost)
    }
}

impl ReadCost {
    fn count(&mut self, before: &Stats, after: &Stats, reads: usize, page_bytes: f64) {
        let each = |now: u64, before: u64| (now - before) as f64 / reads.max(1) as f64;
        self.pages = each(after.table_bytes_read, before.table_bytes_read) / page_bytes;
        self.blocks = each(after.get_blocks, before.get_blocks);
        let wrong = (after.filter_false_positives - before.filter_false_positives) as f64;
        let right = (after.filter_negatives - before.filter_negatives) as f64;
        self.false_positives = wrong / (wrong + right).max(1.0);
        let (now, before) = (&after.cache, &before.cache);
        self.data_misses = each(now.data_misses, before.data_misses);
        self.index_misses = each(now.index_misses, before.index_misses);
        self.filter_misses = each(now.filter_misses, before.filter_misses);
    }
}
