//! The counters of a running database.
//!
//! Counting must not slow down the counted operations: each thread increments one of [`STRIPES`]
//! copies, so that threads rarely share a cache line. Reading a counter sums the copies.

use std::sync::atomic::{AtomicU64, Ordering};

use super::latencies::DurationCounters;
use super::metrics::Counter;
use super::stripe::{STRIPES, stripe_of_thread};

/// The number of levels with counters of their own; the last level includes all deeper levels.
pub(crate) const LEVELS_COUNTED: usize = 8;

#[repr(align(128))]
#[derive(Debug)]
struct Stripe {
    counters: [AtomicU64; Counter::COUNT],
    /// Data blocks searched by point lookups, by level.
    get_blocks: [AtomicU64; LEVELS_COUNTED],
}

/// A kind of block in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum BlockKind {
    Data,
    Index,
    Filter,
}

const BLOCK_KINDS: usize = BlockKind::Filter as usize + 1;

impl BlockKind {
    /// Returns the name of the kind for errors.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Data => "data block",
            Self::Index => "index",
            Self::Filter => "filter",
        }
    }
}

/// All counters of a database.
#[derive(Debug)]
pub(crate) struct Counters {
    stripes: Box<[Stripe]>,
    /// Cache misses by level. Not striped, because each miss reads from storage.
    cache_misses: [[AtomicU64; LEVELS_COUNTED]; BLOCK_KINDS],
    /// Compactions that rewrote data, by input level.
    compactions: [AtomicU64; LEVELS_COUNTED],
    /// Durations by kind of work.
    pub(crate) durations: DurationCounters,
}

fn zeros<const N: usize>() -> [AtomicU64; N] {
    std::array::from_fn(|_| AtomicU64::new(0))
}

impl Default for Counters {
    fn default() -> Self {
        let stripe = |_| Stripe { counters: zeros(), get_blocks: zeros() };
        Self {
            stripes: (0..STRIPES).map(stripe).collect(),
            cache_misses: std::array::from_fn(|_| zeros()),
            compactions: zeros(),
            durations: DurationCounters::default(),
        }
    }
}

impl Counters {
    #[inline]
    pub(crate) fn add(&self, counter: Counter, amount: u64) {
        if let Some(Stripe { counters, .. }) = self.stripes.get(stripe_of_thread()) {
            // Relaxed: no other memory access depends on a counter.
            counters[counter as usize].fetch_add(amount, Ordering::Relaxed);
        }
    }

    /// Does the same as [`Counters::add`], for amounts that are usually zero.
    #[inline]
    pub(crate) fn add_some(&self, counter: Counter, amount: u64) {
        if amount > 0 {
            self.add(counter, amount);
        }
    }

    /// Counts a data block of `level` searched by a point lookup.
    #[inline]
    pub(crate) fn add_get_block(&self, level: u8) {
        if let Some(Stripe { get_blocks, .. }) = self.stripes.get(stripe_of_thread()) {
            let level = usize::from(level).min(LEVELS_COUNTED - 1);
            get_blocks[level].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a cache miss for a block of a table in `level`.
    #[cold]
    pub(crate) fn add_cache_miss(&self, kind: BlockKind, level: u8) {
        let level = usize::from(level).min(LEVELS_COUNTED - 1);
        self.cache_misses[kind as usize][level].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a compaction that rewrote data of `level`.
    pub(crate) fn add_compaction(&self, level: usize) {
        self.compactions[level.min(LEVELS_COUNTED - 1)].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of compactions that rewrote data of `level`.
    pub(crate) fn compactions(&self, level: usize) -> u64 {
        self.compactions.get(level).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Returns the number of data blocks of `level` that point lookups searched.
    pub(crate) fn get_blocks(&self, level: usize) -> u64 {
        let values = self.stripes.iter().filter_map(|stripe| stripe.get_blocks.get(level));
        values.map(|value| value.load(Ordering::Relaxed)).sum()
    }

    /// Returns the number of cache misses for blocks of tables in `level`.
    pub(crate) fn cache_misses(&self, kind: BlockKind, level: usize) -> u64 {
        let count = self.cache_misses[kind as usize].get(level);
        count.map_or(0, |count| count.load(Ordering::Relaxed))
    }

    pub(crate) fn get(&self, counter: Counter) -> u64 {
        let values = self.stripes.iter().map(|stripe| &stripe.counters[counter as usize]);
        values.map(|value| value.load(Ordering::Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_add_up() {
        let counters = Counters::default();
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| (0..100).for_each(|_| counters.add(Counter::Gets, 2)));
            }
        });
        assert_eq!(counters.get(Counter::Gets), 4000);
        assert_eq!(counters.get(Counter::Writes), 0);
    }
}
