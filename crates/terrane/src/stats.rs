//! Counters of everything that a database does.
//!
//! Counting must not cost what it measures: each thread adds to one of a few stripes, so that
//! threads do not fight over a cache line, and reading sums the stripes up.

mod operations;
mod times;

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

pub use operations::OperationCounts;
pub use times::Times;
pub(crate) use times::TimesCounter;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Counter {
    /// Operations written, each of a batch.
    Writes,
    /// Keys and values written, in bytes.
    UserBytesWritten,
    /// Deletes of keys and of ranges among them.
    Deletes,
    /// Point lookups.
    Gets,
    /// Point lookups that found a value.
    GetsFound,
    /// Point lookups that were made again, as what they looked for was overwritten in place.
    GetsRetried,
    /// Operations that completed in a Membuffer.
    MembufferWrites,
    /// Versions that were overwritten in place.
    UpdatesInPlace,
    /// Versions that threads moved from a Membuffer to the list behind it.
    Drained,
    /// Time that they took for it, in microseconds.
    DrainMicros,
    /// Scans that began again, as they met something newer (`scan=restart`).
    ScanRestarts,
    /// Scans that did so too often, and stopped writers.
    ScanFallbacks,
    /// Scans that took the moment of another.
    ScanPiggybacks,
    /// Iterators and other scans begun.
    Scans,
    /// Entries that iterators went to.
    ScanEntries,
    /// Filters asked by point lookups.
    FilterProbes,
    /// Filters that said no.
    FilterNegatives,
    /// Filters that said maybe for a key that was not there.
    FilterFalsePositives,
    /// Data blocks found in the cache.
    CacheDataHits,
    /// Index blocks found in the cache.
    CacheIndexHits,
    /// Filters found in the cache.
    CacheFilterHits,
    /// Blocks that flushes and compactions put into the cache.
    CacheWarmed,
    /// Bytes of them.
    CacheWarmedBytes,
    /// Tables that were to be read or written around the page cache, and were not.
    DirectRefused,
    /// Bytes read from tables by readers; of mapped tables, bytes whose checksum was verified.
    TableBytesRead,
    /// Bytes written to the log.
    LogBytesWritten,
    /// Syncs of the log.
    LogSyncs,
    /// Bytes written to manifests.
    ManifestBytesWritten,
    /// Memtables flushed.
    Flushes,
    /// Bytes written by flushes.
    FlushBytesWritten,
    /// Flushes that merged with level 0, or went into a run of it.
    FlushesMerged,
    /// Flushes that made a new run where the design would rather have had them merge.
    FlushesApart,
    /// Compactions that rewrote something.
    Compactions,
    /// Compactions that only moved tables.
    MoveCompactions,
    /// Tables that moved without being rewritten.
    TrivialMoves,
    /// Bytes read by compactions, and by flushes that merge; of mapped tables, bytes of blocks that they went through.
    CompactionBytesRead,
    /// Bytes written by compactions.
    CompactionBytesWritten,
    /// Processor time of compactions, in microseconds.
    CompactionCpuMicros,
    /// Wall time of flushes, in microseconds.
    FlushMicros,
    /// Tables dropped unread because a range tombstone covered them.
    TablesDropped,
    /// Time that writers waited because of runs in level 0, in microseconds.
    StallRunsMicros,
    /// Time that writers waited because of runs in some level, in microseconds.
    StallLevelRunsMicros,
    /// Time that writers waited because of runs in all levels together, in microseconds.
    StallTotalRunsMicros,
    /// Time that writers waited because of full memtables, in microseconds.
    StallMemtablesMicros,
    /// Time writers waited for a tree that was out of shape.
    StallShapeMicros,
    /// Time by which writers were slowed down, in microseconds.
    DelayMicros,
    /// Writers that had to wait or slow down.
    StalledWrites,
}

const COUNTERS: usize = Counter::StalledWrites as usize + 1;
const STRIPES: usize = 16;

/// Levels that are counted apart; the last one counts for all below it too.
pub(crate) const LEVELS_COUNTED: usize = 8;

#[repr(align(128))]
#[derive(Debug)]
struct Stripe {
    counters: [AtomicU64; COUNTERS],
    /// Data blocks looked into by point lookups, by level.
    get_blocks: [AtomicU64; LEVELS_COUNTED],
}

/// What may be missing in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum CachePart {
    Data,
    Index,
    Filter,
}

const CACHE_PARTS: usize = CachePart::Filter as usize + 1;

/// All counters of a database.
#[derive(Debug)]
pub(crate) struct Counters {
    stripes: Box<[Stripe]>,
    /// Misses of the cache by level. Not striped: each of them reads from storage.
    cache_misses: [[AtomicU64; LEVELS_COUNTED]; CACHE_PARTS],
    /// Compactions that rewrote something, by the level that they took from.
    compactions: [AtomicU64; LEVELS_COUNTED],
    /// Wall time of compactions that rewrote something.
    pub(crate) compaction_times: TimesCounter,
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
            compaction_times: TimesCounter::default(),
        }
    }
}

impl Counters {
    #[inline]
    pub(crate) fn add(&self, counter: Counter, amount: u64) {
        if let Some(Stripe { counters, .. }) = self.stripes.get(stripe_of_thread()) {
            // Relaxed: counters order nothing.
            counters[counter as usize].fetch_add(amount, Ordering::Relaxed);
        }
    }

    /// As [`Counters::add`], for what most often is nothing.
    #[inline]
    pub(crate) fn add_some(&self, counter: Counter, amount: u64) {
        if amount > 0 {
            self.add(counter, amount);
        }
    }

    /// Counts a data block that a point lookup looks into, of a table of `level`.
    #[inline]
    pub(crate) fn add_get_block(&self, level: u8) {
        if let Some(Stripe { get_blocks, .. }) = self.stripes.get(stripe_of_thread()) {
            let level = usize::from(level).min(LEVELS_COUNTED - 1);
            get_blocks[level].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a block of a table of `level` that the cache did not have.
    #[cold]
    pub(crate) fn add_cache_miss(&self, part: CachePart, level: u8) {
        let level = usize::from(level).min(LEVELS_COUNTED - 1);
        self.cache_misses[part as usize][level].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a compaction that rewrote something, out of `level`.
    pub(crate) fn add_compaction(&self, level: usize) {
        self.compactions[level.min(LEVELS_COUNTED - 1)].fetch_add(1, Ordering::Relaxed);
    }

    /// Compactions that rewrote something, out of a level.
    pub(crate) fn compactions(&self, level: usize) -> u64 {
        self.compactions.get(level).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Data blocks that point lookups looked into in tables of a level.
    pub(crate) fn get_blocks(&self, level: usize) -> u64 {
        let values = self.stripes.iter().filter_map(|stripe| stripe.get_blocks.get(level));
        values.map(|value| value.load(Ordering::Relaxed)).sum()
    }

    /// Blocks of tables of a level that the cache did not have.
    pub(crate) fn cache_misses(&self, part: CachePart, level: usize) -> u64 {
        let count = self.cache_misses[part as usize].get(level);
        count.map_or(0, |count| count.load(Ordering::Relaxed))
    }

    pub(crate) fn get(&self, counter: Counter) -> u64 {
        let values = self.stripes.iter().map(|stripe| &stripe.counters[counter as usize]);
        values.map(|value| value.load(Ordering::Relaxed)).sum()
    }
}

#[inline]
pub(crate) fn stripe_of_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static STRIPE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    STRIPE.with(|stripe| {
        if stripe.get() == usize::MAX {
            stripe.set(NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES);
        }
        stripe.get()
    })
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
