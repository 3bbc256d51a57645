//! Counters of everything that a database does.
//!
//! Counting must not cost what it measures: each thread adds to one of a few stripes, so that
//! threads do not fight over a cache line, and reading sums the stripes up.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Counter {
    /// Operations written, each of a batch.
    Writes,
    /// Keys and values written, in bytes.
    UserBytesWritten,
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
    /// Data blocks looked into by point lookups.
    GetBlocks,
    /// Iterators and other scans begun.
    Scans,
    /// Filters asked by point lookups.
    FilterProbes,
    /// Filters that said no.
    FilterNegatives,
    /// Filters that said maybe for a key that was not there.
    FilterFalsePositives,
    /// Data blocks found in the cache.
    CacheDataHits,
    /// Data blocks read because the cache did not have them.
    CacheDataMisses,
    /// Index blocks found in the cache.
    CacheIndexHits,
    /// Index blocks read because the cache did not have them.
    CacheIndexMisses,
    /// Filters found in the cache.
    CacheFilterHits,
    /// Filters read because the cache did not have them.
    CacheFilterMisses,
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
    /// Compactions that rewrote something.
    Compactions,
    /// Tables that moved without being rewritten.
    TrivialMoves,
    /// Bytes read by compactions; of mapped tables, bytes of blocks that they went through.
    CompactionBytesRead,
    /// Bytes written by compactions.
    CompactionBytesWritten,
    /// Wall time of compactions, in microseconds.
    CompactionMicros,
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

#[repr(align(128))]
#[derive(Debug)]
struct Stripe([AtomicU64; COUNTERS]);

/// All counters of a database.
#[derive(Debug)]
pub(crate) struct Counters {
    stripes: Box<[Stripe]>,
}

impl Default for Counters {
    fn default() -> Self {
        let stripe = |_| Stripe(std::array::from_fn(|_| AtomicU64::new(0)));
        Self { stripes: (0..STRIPES).map(stripe).collect() }
    }
}

impl Counters {
    #[inline]
    pub(crate) fn add(&self, counter: Counter, amount: u64) {
        if let Some(Stripe(counters)) = self.stripes.get(stripe_of_thread()) {
            // Relaxed: counters order nothing.
            counters[counter as usize].fetch_add(amount, Ordering::Relaxed);
        }
    }

    pub(crate) fn get(&self, counter: Counter) -> u64 {
        let values = self.stripes.iter().map(|stripe| &stripe.0[counter as usize]);
        values.map(|value| value.load(Ordering::Relaxed)).sum()
    }
}

#[inline]
fn stripe_of_thread() -> usize {
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
