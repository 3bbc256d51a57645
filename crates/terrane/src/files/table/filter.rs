//! Bloom filters in blocks of one cache line (Putze, Sanders, Singler 2007).
//!
//! All bits of a key are within one line of 64 bytes, so a probe costs one cache miss. Bits per key
//! may be fractional; the number of probes follows from them.
//!
//! ```text
//! +---------+-----+-------------+--------+
//! | line 0  | ... | line n - 1  | probes |
//! | 64 B    |     | 64 B        | u8     |
//! +---------+-----+-------------+--------+
//! ```

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use crate::base::codec::{DecodeError, Decoded};
use crate::base::turns;

const LINE_BYTES: usize = 64;
const LINE_BITS: f64 = 512.0;

/// The smallest number of hashes by which the list of a table's hashes grows.
const HASHES_MIN: usize = 256;

/// The number of hashes that a background thread adds to a filter before it may give way.
const HASHES_PER_STEP: usize = 4096;

/// Returns the hash of a key, which is the same in all filters.
#[inline]
pub(crate) fn filter_hash(key: &[u8]) -> u64 {
    xxh3_64(key)
}

/// Appends a hash to those of a table.
#[inline]
pub(super) fn push_hash(hashes: &mut Vec<u64>, hash: u64) {
    if hashes.len() == hashes.capacity() {
        // Grows in smaller steps than usual, because a large table has megabytes of hashes.
        hashes.reserve_exact((hashes.len() / 4).max(HASHES_MIN));
    }
    hashes.push(hash);
}

/// Builds the filter of a set of hashes; `None` for zero bits per key. Each key sets `probes` bits, or
/// by default the number with the fewest false positives.
pub(super) fn build(hashes: &[u64], bits_per_key: f64, probes: Option<u8>) -> Option<Vec<u8>> {
    let wanted_bits = hashes.len() as f64 * bits_per_key;
    if wanted_bits < 1.0 {
        return None;
    }
    let lines = (wanted_bits / LINE_BITS).ceil().max(1.0) as usize;
    let probes = probes.unwrap_or_else(|| probes_for(bits_per_key));
    let mut filter = vec![0u8; lines * LINE_BYTES + 1];
    for hashes in hashes.chunks(HASHES_PER_STEP) {
        for &hash in hashes {
            let line = line_of(hash, lines);
            for bit in bits_of(hash, probes) {
                if let Some(byte) = filter.get_mut(line * LINE_BYTES + bit / 8) {
                    *byte |= 1 << (bit % 8);
                }
            }
        }
        turns::give_way();
    }
    if let Some(last) = filter.last_mut() {
        *last = probes;
    }
    Some(filter)
}

/// Returns ln 2 times the bits per key. For many bits the number is slightly smaller, because the
/// bits of a key collide within a line.
fn probes_for(bits_per_key: f64) -> u8 {
    let ideal = bits_per_key * std::f64::consts::LN_2;
    let crowded = if bits_per_key > 8.0 { ideal * 0.9 } else { ideal };
    crowded.round().clamp(1.0, 16.0) as u8
}

#[inline]
fn line_of(hash: u64, lines: usize) -> usize {
    // The upper half of the product maps hashes evenly to any number of lines.
    ((u128::from(hash) * lines as u128) >> 64) as usize
}

/// Returns the bytes of the line for a key's hash in a filter of `len` bytes.
#[inline]
pub(super) fn line_within(len: usize, hash: u64) -> Range<usize> {
    let start = line_of(hash, len / LINE_BYTES) * LINE_BYTES;
    start..start + LINE_BYTES
}

/// Returns the bit positions within a line. They come from the part of the hash that does not
/// select the line.
#[inline]
fn bits_of(hash: u64, probes: u8) -> impl Iterator<Item = usize> {
    let mut state = hash as u32;
    (0..probes).map(move |_| {
        state = state.wrapping_mul(0x9e37_79b1).rotate_left(15);
        (state >> 23) as usize
    })
}

/// A filter in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filter<'a> {
    lines: &'a [u8],
    probes: u8,
}

impl<'a> Filter<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Decoded<Self> {
        let bad = DecodeError::new("filter", bytes.len());
        let (&probes, lines) = bytes.split_last().ok_or(bad)?;
        if lines.is_empty() || !lines.len().is_multiple_of(LINE_BYTES) || probes == 0 {
            return Err(bad);
        }
        Ok(Self { lines, probes })
    }

    /// Returns true if the set may contain the key with this hash. There are no false negatives.
    #[inline]
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        let line = line_of(hash, self.lines.len() / LINE_BYTES) * LINE_BYTES;
        let Some(line) = self.lines.get(line..line + LINE_BYTES) else { return true };
        bits_of(hash, self.probes).all(|bit| line[bit / 8] & (1 << (bit % 8)) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u64) -> u64 {
        filter_hash(&number.to_be_bytes())
    }

    /// Returns the share of absent keys that pass the filter.
    fn false_positives(keys: u64, bits_per_key: f64, probes: Option<u8>) -> f64 {
        let hashes: Vec<u64> = (0..keys).map(hash).collect();
        let bytes = build(&hashes, bits_per_key, probes).unwrap();
        let filter = Filter::parse(&bytes).unwrap();
        assert!(hashes.iter().all(|&hash| filter.may_contain(hash)));
        let absent = 100_000;
        let passed = (keys..keys + absent).filter(|&key| filter.may_contain(hash(key))).count();
        passed as f64 / absent as f64
    }

    #[test]
    fn false_positives_are_as_rare_as_the_bits_pay_for() {
        for (bits, expected) in
            [(0.5, 0.87), (2.0, 0.40), (5.0, 0.10), (10.0, 0.0125), (16.0, 0.0015)]
        {
            let rate = false_positives(20_000, bits, None);
            assert!(rate <= expected * 1.15, "{bits} bits: {rate}");
        }
    }

    #[test]
    fn a_given_number_of_probes_is_used() {
        let rate = false_positives(20_000, 0.5, Some(3));
        assert!(rate > 0.98, "Dent's filters let 99 % through: {rate}");
        assert_eq!(build(&[1, 2, 3], 10.0, Some(5)).unwrap().last(), Some(&5));
    }

    #[test]
    fn few_keys_and_few_bits_still_make_a_filter() {
        assert!(build(&[], 10.0, None).is_none());
        assert!(build(&[1], 0.0, None).is_none());
        assert!(false_positives(3, 10.0, None) < 0.05);
    }

    #[test]
    fn broken_filters_are_refused() {
        for bytes in [&[][..], &[6], &[0; 64], &[0; 65], &[7; 64]] {
            assert!(Filter::parse(bytes).is_err());
        }
        assert!(Filter::parse(&[[1u8; 64].as_slice(), &[6]].concat()).is_ok());
    }

    #[test]
    fn the_build_of_a_large_filter_is_ready_to_give_way() {
        let hashes: Vec<u64> = (0..2 * HASHES_PER_STEP as u64 + 1).collect();
        let before = turns::STEPS.get();
        assert!(build(&hashes, 10.0, None).is_some());
        assert_eq!(turns::STEPS.get() - before, 3);
    }
}
