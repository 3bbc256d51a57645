//! Counts of entries, for structures that do not count them.
//!
//! Each thread adds to one of a few stripes. All accesses are relaxed, because counters order nothing.

use crate::padded::Padded;
use crate::stripe::{STRIPES, stripe_of_thread};
use crate::sync::{AtomicUsize, Ordering};

/// The number of entries and their bytes of keys and values.
#[derive(Debug, Default)]
pub(crate) struct EntryCounts {
    stripes: [Padded<CountsStripe>; STRIPES],
}

#[derive(Debug, Default)]
struct CountsStripe {
    entries: AtomicUsize,
    data_bytes: AtomicUsize,
}

impl EntryCounts {
    #[inline]
    pub(crate) fn add(&self, entries: usize, data_bytes: usize) {
        let stripe = &self.stripes[stripe_of_thread()];
        stripe.data_bytes.fetch_add(data_bytes, Ordering::Relaxed);
        stripe.entries.fetch_add(entries, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> (usize, usize) {
        let sum = |field: fn(&CountsStripe) -> &AtomicUsize| {
            self.stripes.iter().map(|stripe| field(stripe).load(Ordering::Relaxed)).sum()
        };
        (sum(|stripe| &stripe.entries), sum(|stripe| &stripe.data_bytes))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.stripes.iter().all(|stripe| stripe.entries.load(Ordering::Relaxed) == 0)
    }
}
