//! Estimates how many distinct keys were written, at a small cost per write.
//!
//! One in 32 hashes sets a bit in a bitmap. The number of set bits gives the number of sampled keys
//! (linear counting), however often each was written, so a key that is written very often counts
//! once. The bitmap can count about 200,000 sampled keys.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of bits.
const BITS: u64 = 1 << 16;

/// One in this many keys is sampled.
const SAMPLED: u64 = 32;

/// A set of sampled keys.
#[derive(Debug, Default)]
pub(super) struct KeyCardinality {
    /// Allocated for the first key, because most trees of a database with very many are idle.
    bits: OnceLock<Box<[AtomicU64]>>,
}

impl KeyCardinality {
    /// Adds the key with this hash.
    #[inline]
    pub(super) fn add(&self, hash: u64) {
        if hash.is_multiple_of(SAMPLED) {
            self.add_sampled(hash / SAMPLED);
        }
    }

    fn add_sampled(&self, hash: u64) {
        let bit = 1 << (hash % 64);
        let bits = self.bits.get_or_init(|| (0..BITS / 64).map(|_| AtomicU64::new(0)).collect());
        if let Some(word) = bits.get((hash / 64 % (BITS / 64)) as usize) {
            // Relaxed, like all accesses here: an estimate orders nothing.
            if word.load(Ordering::Relaxed) & bit == 0 {
                word.fetch_or(bit, Ordering::Relaxed);
            }
        }
    }

    /// Returns the estimated number of keys, and removes all keys.
    pub(super) fn take(&self) -> u64 {
        let Some(bits) = self.bits.get() else { return 0 };
        let words = bits.iter().map(|word| word.swap(0, Ordering::Relaxed).count_ones());
        let empty = BITS - words.map(u64::from).sum::<u64>().min(BITS - 1);
        let sampled = -(BITS as f64) * (empty as f64 / BITS as f64).ln();
        (sampled * SAMPLED as f64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::table::filter_hash;

    #[test]
    fn keys_count_once_however_often_they_are_written() {
        let keys = KeyCardinality::default();
        for (distinct, times) in [(3_000_u64, 50), (40_000, 3), (500_000, 1), (2_000_000, 1)] {
            for _ in 0..times {
                (0..distinct).for_each(|key| keys.add(filter_hash(&key.to_be_bytes())));
            }
            let error = keys.take() as f64 / distinct as f64 - 1.0;
            assert!(error.abs() < 0.25, "{distinct}: {error}");
            assert_eq!(keys.take(), 0);
        }
    }
}
