//! Maps a key to its partition of the Membuffer.
//!
//! A partition is a range of keys, so that versions that are drained together lie close together in
//! the lower level, and a scan drains only the partitions it reaches. The paper's implementation
//! takes the most significant bits of a key, which divides keys evenly if they are spread evenly
//! over all byte strings. Most keys are not: they share a prefix and use few byte values. So the
//! partition follows from the position of a key between the smallest and the largest key of the
//! previous memtable, after their common prefix. The first memtable of a tree learns the span from
//! its own first keys; a memtable that is used alone takes the most significant bits.
//!
//! Invariant: of two keys, the larger one never has the smaller partition, because both steps of
//! [`KeySpan::partition`], clamping and scaling, are monotonic in the key.

use crate::head::head_of;

/// The range in which keys are expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeySpan {
    /// The common prefix of the expected keys.
    prefix: Vec<u8>,
    /// The known prefixes of the expected keys.
    prefixes: Vec<Vec<u8>>,
    /// The heads of the smallest and the largest key, after the prefix.
    low: u64,
    high: u64,
    /// The number of leading zeros in the difference between these two heads.
    shift: u32,
    /// 2^64 divided by the upper half of the shifted distance plus one, rounded down.
    scale: u64,
}

impl KeySpan {
    /// Returns the span of all keys.
    pub(crate) fn all() -> Self {
        Self::new(Vec::new(), 0, u64::MAX)
    }

    /// Returns the span of the keys from `first` to `last`.
    pub(crate) fn between(first: &[u8], last: &[u8]) -> Self {
        let shared = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        let (low, high) = (head_of(&first[shared..]), head_of(&last[shared..]));
        Self::new(first[..shared].to_vec(), low, high)
    }

    /// Adds prefixes with which the expected keys begin.
    pub(crate) fn with_prefixes(self, prefixes: Vec<Vec<u8>>) -> Self {
        Self { prefixes, ..self }
    }

    /// Returns the known prefixes with which the expected keys begin, in order. None begins with another
    /// one.
    pub(crate) fn prefixes(&self) -> &[Vec<u8>] {
        &self.prefixes
    }

    fn new(prefix: Vec<u8>, low: u64, high: u64) -> Self {
        let width = high.saturating_sub(low).max(1);
        let shift = width.leading_zeros();
        let scale = ((1_u128 << 64) / u128::from(((width << shift) >> 32) + 1)) as u64;
        Self { prefix, prefixes: Vec::new(), low, high, shift, scale }
    }

    /// Returns which of `parts` equal partitions of the span `key` belongs to.
    #[inline(always)]
    pub(crate) fn partition(&self, key: &[u8], parts: usize) -> usize {
        let prefix = &self.prefix[..];
        let head = match key.split_at_checked(prefix.len()) {
            // A short prefix is compared faster inline than by a call.
            Some((start, rest)) if start.iter().eq(prefix) => head_of(rest),
            _ if key < prefix => return 0,
            _ => return parts - 1,
        };
        if head <= self.low {
            return 0;
        }
        if head >= self.high {
            return parts - 1;
        }
        // The position as a fraction of 2^64. The upper half of the shifted offset is below the
        // divisor of `scale`, so the product fits.
        let place = (((head - self.low) << self.shift) >> 32) * self.scale;
        ((u128::from(place) * parts as u128) >> 64) as usize
    }
}

#[cfg(all(test, not(any(loom, miri))))] // No unsafe code, and much arithmetic.
mod tests {
    use super::*;
    use terrane_testkit::Rng;

    #[test]
    fn parts_are_the_most_significant_bits_of_any_keys() {
        let span = KeySpan::all();
        assert_eq!(span.partition(b"", 4), 0);
        assert_eq!(span.partition(&[0x3f, 0xff], 4), 0);
        assert_eq!(span.partition(&[0x40], 4), 1);
        assert_eq!(span.partition(&[0xbf], 4), 2);
        assert_eq!(span.partition(&[0xff; 20], 4), 3);
        assert_eq!(span.partition(b"anything", 1), 0);
    }

    #[test]
    fn parts_of_keys_that_begin_alike_are_even() {
        let key = |number: u32| format!("user{number:08}").into_bytes();
        let span = KeySpan::between(&key(0), &key(9_999_999));
        let mut counts = [0; 8];
        for number in (0..10_000_000).step_by(1000) {
            counts[span.partition(&key(number), 8)] += 1;
        }
        assert!(counts.iter().all(|count| (800..=2500).contains(count)), "{counts:?}");
    }

    #[test]
    fn parts_never_fall() {
        let mut rng = Rng::new(terrane_testkit::seed_from_env(3));
        let random = |rng: &mut Rng| -> Vec<u8> {
            (0..rng.index(12)).map(|_| *rng.pick(b"\0ab\x7f\xff")).collect()
        };
        for _ in 0..2000 {
            let mut keys: Vec<Vec<u8>> = (0..20).map(|_| random(&mut rng)).collect();
            keys.sort();
            let (first, last) = (rng.index(20), rng.index(20));
            let span = KeySpan::between(&keys[first.min(last)], &keys[first.max(last)]);
            let parts = 1 << rng.index(7);
            let of_keys: Vec<usize> = keys.iter().map(|key| span.partition(key, parts)).collect();
            assert!(of_keys.is_sorted(), "{span:?} {parts} {keys:?} {of_keys:?}");
            assert!(of_keys.iter().all(|part| *part < parts));
        }
    }
}
