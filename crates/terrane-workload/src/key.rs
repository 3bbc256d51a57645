//! Computes keys from indexes.
//!
//! All keys of a run have the same size. Index `i` owns two slots, `2i` for its key and `2i + 1` for
//! a key that is never written. A slot determines the first eight bytes of a key, or all bytes of a
//! shorter key, by one of three rules:
//!
//! - [`KeyOrder::Hashed`]: a [bijection](crate::mix) of the slot, as raw big-endian bytes. Writing
//!   indexes in order writes keys in random order, and the keys are uniform over all byte strings.
//!   The remaining bytes are derived from the first eight.
//! - [`KeyOrder::Ordered`]: the slot itself, big-endian, then zeros. Index order is key order.
//! - [`KeyOrder::Skewed`]: the first two bytes follow a distribution over the key space, and the next
//!   six are a bijection of the slot, so keys are clustered and still distinct. The compaction
//!   paper's generator treats the first two characters this way.
//!
//! All rules are injective, so distinct indexes have distinct keys, and missing keys are never
//! written. Keys do not depend on the seed, so a later run can use the data of an earlier one.

mod placement;

use crate::error::OptionsError;
use crate::mix::Mix;

pub use placement::Placement;

/// The number of key bytes that the slot determines.
const SLOT_BYTES: usize = 8;
/// The number of leading bytes that hold the position of a [skewed](KeyOrder::Skewed) key.
const PLACE_BYTES: usize = 2;

/// How key order relates to index order.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum KeyOrder {
    /// Keys are a uniform hash of the index.
    #[default]
    Hashed,
    /// Keys ascend with the index.
    Ordered,
    /// Keys are a hash of the index, clustered by a distribution.
    Skewed(Placement),
}

impl KeyOrder {
    /// Returns how many bytes of a key hold its position.
    fn place_bytes(self) -> usize {
        match self {
            Self::Hashed | Self::Ordered => 0,
            Self::Skewed(_) => PLACE_BYTES,
        }
    }
}

/// The keys of a run: a bijection from indexes to byte strings of one size.
#[derive(Debug, Clone, Copy)]
pub struct KeySpace {
    order: KeyOrder,
    key_size_bytes: usize,
    count: u64,
    mix: Mix,
}

impl KeySpace {
    /// Returns the keys of `count` indexes, each of `key_size_bytes`.
    ///
    /// # Errors
    /// The keys have no bytes, or too few for `count` distinct keys and as many missing keys.
    pub fn new(order: KeyOrder, key_size_bytes: usize, count: u64) -> Result<Self, OptionsError> {
        if key_size_bytes == 0 {
            return Err(OptionsError::new("key_size_bytes", "keys need at least one byte"));
        }
        let place_bytes = order.place_bytes();
        if key_size_bytes <= place_bytes {
            let reason = "skewed keys need at least three bytes";
            return Err(OptionsError::new("key_size_bytes", reason));
        }
        let slot_bits = 8 * (key_size_bytes.min(SLOT_BYTES) - place_bytes) as u32;
        let space = Self { order, key_size_bytes, count, mix: Mix::new(slot_bits) };
        if count > space.capacity() {
            let reason = format!(
                "{key_size_bytes} bytes hold at most {} distinct keys; {count} are required",
                space.capacity()
            );
            return Err(OptionsError::new("key_size_bytes", reason));
        }
        Ok(space)
    }

    /// Returns the number of indexes that the run loads.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the number of indexes that have distinct keys; the indexes from `count` on are for
    /// inserts.
    pub fn capacity(&self) -> u64 {
        self.mix.mask() / 2 + 1
    }

    /// Returns the size of every key, in bytes.
    pub fn key_size_bytes(&self) -> usize {
        self.key_size_bytes
    }

    /// Writes the key of `index` to `key`, whose length must be the size of the keys.
    #[inline]
    pub fn write_key(&self, index: u64, key: &mut [u8]) {
        debug_assert!(index < self.capacity());
        self.write_slot(2 * index, key);
    }

    /// Writes a missing key to `key`: no index has it, and it lies between keys of indexes. Distinct
    /// indexes have distinct missing keys.
    #[inline]
    pub fn write_missing_key(&self, index: u64, key: &mut [u8]) {
        debug_assert!(index < self.capacity());
        self.write_slot(2 * index + 1, key);
    }

    #[inline]
    fn write_slot(&self, slot: u64, key: &mut [u8]) {
        debug_assert_eq!(key.len(), self.key_size_bytes);
        let head = match self.order {
            KeyOrder::Hashed => self.mix.apply(slot),
            KeyOrder::Ordered => slot,
            KeyOrder::Skewed(placement) => {
                let bytes = self.key_size_bytes.min(SLOT_BYTES) - PLACE_BYTES;
                u64::from(placement.place_of(slot)) << (8 * bytes) | self.mix.apply(slot)
            }
        };
        let Some((first, rest)) = key.split_first_chunk_mut::<SLOT_BYTES>() else {
            let bytes = head.to_be_bytes();
            let start = SLOT_BYTES - key.len();
            key.copy_from_slice(&bytes[start..]);
            return;
        };
        *first = head.to_be_bytes();
        match self.order {
            KeyOrder::Hashed | KeyOrder::Skewed(_) => write_tail(head, rest),
            KeyOrder::Ordered => rest.fill(0),
        }
    }

    /// Returns the key of `index`.
    pub fn key(&self, index: u64) -> Vec<u8> {
        let mut key = vec![0; self.key_size_bytes];
        self.write_key(index, &mut key);
        key
    }

    /// Returns the missing key of `index`.
    pub fn missing_key(&self, index: u64) -> Vec<u8> {
        let mut key = vec![0; self.key_size_bytes];
        self.write_missing_key(index, &mut key);
        key
    }
}

/// Fills the bytes after the slot with pseudo-random bytes, using one multiplication per eight
/// bytes.
#[inline]
fn write_tail(head: u64, rest: &mut [u8]) {
    // Knuth's multiplier for a 64-bit linear congruential generator.
    const STEP: u64 = 6_364_136_223_846_793_005;
    let mut word = head;
    for piece in rest.chunks_mut(8) {
        word = word.wrapping_mul(STEP).rotate_left(32) ^ head;
        piece.copy_from_slice(&word.to_le_bytes()[..piece.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const SIZES_BYTES: [usize; 9] = [2, 3, 4, 7, 8, 9, 16, 20, 33];

    #[test]
    fn keys_and_missing_keys_are_distinct_at_every_size() {
        for order in [KeyOrder::Hashed, KeyOrder::Ordered] {
            for size in SIZES_BYTES {
                let count = 20_000;
                let space = KeySpace::new(order, size, count).unwrap();
                let mut seen = BTreeSet::new();
                for index in 0..count {
                    let (key, missing) = (space.key(index), space.missing_key(index));
                    assert_eq!((key.len(), missing.len()), (size, size));
                    assert!(seen.insert(key), "{order:?}, {size} bytes: key {index} twice");
                    assert!(seen.insert(missing), "{order:?}, {size} bytes: key {index} exists");
                }
            }
        }
    }

    #[test]
    fn skewed_keys_are_distinct_too() {
        for placement in ["normal:0.1", "zipf:0.99", "zipf:1"] {
            let order = placement.parse::<Placement>().unwrap().key_order();
            for size in [4, 7, 8, 9, 16, 33] {
                let count = 20_000;
                let space = KeySpace::new(order, size, count).unwrap();
                let mut seen = BTreeSet::new();
                for index in 0..count {
                    assert!(seen.insert(space.key(index)), "{size} bytes: key {index} twice");
                    assert!(seen.insert(space.missing_key(index)), "{size} bytes: {index} exists");
                }
            }
            assert!(KeySpace::new(order, 2, 1).is_err());
        }
    }

    #[test]
    fn ordered_keys_ascend_and_missing_keys_lie_between_them() {
        for size in SIZES_BYTES {
            let space = KeySpace::new(KeyOrder::Ordered, size, 1000).unwrap();
            for index in 0..999 {
                assert!(space.key(index) < space.missing_key(index));
                assert!(space.missing_key(index) < space.key(index + 1));
            }
        }
    }

    #[test]
    fn hashed_keys_are_uniform_over_first_bytes_and_in_random_order() {
        for size in [4, 16] {
            let count = 256 * 400;
            let space = KeySpace::new(KeyOrder::Hashed, size, count).unwrap();
            let mut first_bytes = [0u32; 256];
            let mut ascents = 0u32;
            let mut previous = space.key(0);
            for index in 0..count {
                let key = space.key(index);
                first_bytes[usize::from(key[0])] += 1;
                ascents += u32::from(previous < key);
                previous = key;
            }
            // Each of 256 cells has an expected 400 keys: chi-square has mean 255 and deviation 22.6.
            let chi_square: f64 =
                first_bytes.iter().map(|n| (f64::from(*n) - 400.0).powi(2) / 400.0).sum();
            assert!((120.0..390.0).contains(&chi_square), "{size} bytes: {chi_square}");
            let share = f64::from(ascents) / count as f64;
            assert!((share - 0.5).abs() < 0.01, "{size} bytes: {share} of the keys ascend");
        }
    }

    #[test]
    fn keys_too_short_for_their_number_are_rejected() {
        assert!(KeySpace::new(KeyOrder::Hashed, 0, 1).is_err());
        assert!(KeySpace::new(KeyOrder::Hashed, 1, 128).is_ok());
        let error = KeySpace::new(KeyOrder::Hashed, 1, 129).unwrap_err();
        assert_eq!(error.option, "key_size_bytes");
        assert!(KeySpace::new(KeyOrder::Hashed, 8, 1 << 63).is_ok());
    }
}
