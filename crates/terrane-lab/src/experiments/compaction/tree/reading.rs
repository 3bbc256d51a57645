//! Lookups and ranges of a loaded tree, and the pages that they read.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use terrane::{Background, Options, ReadMode};
use terrane_workload::distribution::IndexChooser;
use terrane_workload::{Distribution, Latency};

use super::super::sizes::below;
use super::{LoadedTree, LookupCost, PageCounts};

/// The maximum number of lookups whose pages are counted: enough for three digits.
const PAGED_LOOKUPS_MAX: usize = 20_000;
const PAGED_RANGES: usize = 40;

impl LoadedTree<'_> {
    /// Reopens the tree for reading only, with an empty cache of `cache_bytes`.
    pub(in super::super) fn read_with_cache(mut self, cache_bytes: u64) -> Result<Self> {
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
    pub(in super::super) fn lookup_pages(&self, empty_percent: usize) -> Result<PageCounts> {
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
    pub(in super::super) fn scan_pages(&self, entries: usize) -> Result<f64> {
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
    pub(in super::super) fn look_up(
        &self,
        empty_percent: usize,
        distribution: Distribution,
    ) -> Result<LookupCost> {
        self.look_up_often(empty_percent, distribution, self.sizes.lookups())
    }

    /// Times `lookups` lookups.
    pub(in super::super) fn look_up_often(
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

    /// Returns the median time of ranges over a share of all keys, in microseconds.
    pub(in super::super) fn scan(&self, selectivity: f64) -> Result<f64> {
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
}
