//! Values that identify their key and have a given compressibility.
//!
//! A value is a slice of a pool filled before the run, so a value of 16 KiB costs as much to generate
//! as one of 100 bytes. Its first eight bytes, or all of a shorter value, are the [tag](tag_of) of its
//! key, with which a reader verifies that the engine returned the right value. The tag is written into
//! the pool, and restored before the next value is generated.
//!
//! The pool consists of chunks of 100 bytes: random bytes, followed by a repetition of them. A codec
//! finds the repetition in every chunk, so blocks of values compress like single chunks.

mod size;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

pub use size::ValueSize;

/// Small compared with a second-level cache, so that values do not evict the engine's data from the
/// cache.
const POOL_BYTES_MIN: usize = 256 << 10;
const PIECE_BYTES: usize = 100;
const TAG_BYTES: usize = 8;

/// Returns the first eight bytes of a key as an integer that sorts like the key; shorter keys are
/// padded with zeros.
#[inline]
pub fn key_prefix(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    let mut bytes = [0; 8];
    bytes[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(bytes)
}

/// Returns the first bytes of the value of `key`. They differ from the first bytes of the key, so
/// that an engine that returns keys as values fails the check.
#[inline]
pub fn tag_of(key: &[u8]) -> [u8; TAG_BYTES] {
    (key_prefix(key) ^ 0x5bf0_3635_b9a1_7c49).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()
}

/// Checks values against their keys.
#[derive(Debug, Clone, Copy)]
pub struct ValueCheck {
    size: ValueSize,
}

impl ValueCheck {
    /// Returns a checker for values whose sizes are in `size`.
    pub fn new(size: ValueSize) -> Self {
        Self { size }
    }

    /// Returns true if `value` has a valid size and begins with the tag of `key`.
    #[inline]
    pub fn accepts(self, key: &[u8], value: &[u8]) -> bool {
        let tag = tag_of(key);
        let begins_right = match value.first_chunk::<TAG_BYTES>() {
            Some(first) => *first == tag,
            None => *value == tag[..value.len()],
        };
        begins_right && self.size.contains(value.len())
    }
}

/// Generates values one at a time, without allocating.
#[derive(Debug)]
pub struct Values {
    pool: Vec<u8>,
    size: ValueSize,
    next: usize,
    /// The position of the tag of the latest value, and the pool bytes that it overwrote.
    covered: (usize, [u8; TAG_BYTES]),
}

impl Values {
    /// Returns a source of values with sizes in `size`; the fraction `compressibility` of their bytes, 0
    /// to 1, repeats earlier ones.
    pub fn new(size: ValueSize, compressibility: f64, seed: u64) -> Self {
        let bytes = POOL_BYTES_MIN.max(4 * size.max_bytes()).max(TAG_BYTES);
        let pool = pool(bytes, compressibility, seed);
        let covered = (0, first_tag_bytes(&pool));
        Self { pool, size, next: 0, covered }
    }

    /// Returns a value for `key`, with a size drawn from `rng`.
    #[inline]
    pub fn value_for(&mut self, key: &[u8], rng: &mut Xoshiro256PlusPlus) -> &[u8] {
        let size = self.size.draw(rng);
        let (covered_at, covered) = self.covered;
        self.pool[covered_at..covered_at + TAG_BYTES].copy_from_slice(&covered);
        if self.next + size.max(TAG_BYTES) > self.pool.len() {
            self.next = 0;
        }
        let start = self.next;
        self.next += size;
        let value = &mut self.pool[start..];
        self.covered = (start, first_tag_bytes(value));
        value[..TAG_BYTES].copy_from_slice(&tag_of(key));
        &value[..size]
    }
}

#[inline]
fn first_tag_bytes(bytes: &[u8]) -> [u8; TAG_BYTES] {
    bytes.first_chunk().copied().unwrap_or_default()
}

/// Returns a pool of `bytes` bytes. In each chunk, the fraction `compressibility` repeats the other
/// bytes.
fn pool(bytes: usize, compressibility: f64, seed: u64) -> Vec<u8> {
    let fresh = ((1.0 - compressibility.clamp(0.0, 1.0)) * PIECE_BYTES as f64).round() as usize;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut pool = vec![b'x'; bytes];
    if fresh == 0 {
        return pool;
    }
    for piece in pool.chunks_mut(PIECE_BYTES) {
        let fresh = fresh.min(piece.len());
        rng.fill_bytes(&mut piece[..fresh]);
        for place in fresh..piece.len() {
            piece[place] = piece[place - fresh];
        }
    }
    pool
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rng() -> Xoshiro256PlusPlus {
        Xoshiro256PlusPlus::seed_from_u64(7)
    }

    #[test]
    fn values_have_their_size_and_pass_only_the_check_of_their_key() {
        let mut rng = rng();
        for size in [1, 4, 7, 8, 9, 100, 16 << 10, 1 << 20] {
            let size = ValueSize::fixed(size);
            let mut values = Values::new(size, 0.5, 1);
            let check = ValueCheck::new(size);
            for key in 0..500u64 {
                let (key, other) = (key.to_be_bytes(), (key + 1).to_be_bytes());
                let value = values.value_for(&key, &mut rng);
                assert_eq!(value.len(), size.max_bytes());
                assert!(check.accepts(&key, value));
                assert!(size.max_bytes() < 4 || !check.accepts(&other, value));
                assert!(!check.accepts(&key, &value[1..]));
            }
        }
    }

    #[test]
    fn values_of_a_range_of_sizes_take_all_of_them() {
        let size: ValueSize = "10..13".parse().unwrap();
        let mut values = Values::new(size, 0.5, 1);
        let mut seen = [0u32; 16];
        let mut rng = rng();
        for _ in 0..4000 {
            seen[values.value_for(b"k", &mut rng).len()] += 1;
        }
        assert_eq!(seen.iter().sum::<u32>(), seen[10..=13].iter().sum());
        assert!(seen[10..=13].iter().all(|count| (850..1150).contains(count)), "{seen:?}");
    }

    #[test]
    fn tags_leave_no_trace_in_the_pool() {
        let mut values = Values::new(ValueSize::fixed(100), 0.5, 1);
        let before = values.pool.clone();
        let mut rng = rng();
        for key in 0..10_000u64 {
            values.value_for(&key.to_be_bytes(), &mut rng);
        }
        let (at, covered) = values.covered;
        values.pool[at..at + TAG_BYTES].copy_from_slice(&covered);
        assert_eq!(values.pool, before);
    }

    /// Returns the share of bytes that differ from the byte that a repetition would copy.
    fn fresh_share(compressibility: f64) -> f64 {
        let fresh = ((1.0 - compressibility) * 100.0) as usize;
        let pool = pool(100_000, compressibility, 3);
        let repeats: usize = pool
            .chunks(PIECE_BYTES)
            .map(|piece| (fresh..piece.len()).filter(|&i| piece[i] == piece[i - fresh]).count())
            .sum();
        1.0 - repeats as f64 / pool.len() as f64
    }

    #[test]
    fn the_pool_repeats_the_given_fraction() {
        assert!((fresh_share(0.5) - 0.5).abs() < 1e-9);
        assert!((fresh_share(0.25) - 0.75).abs() < 1e-9);
        let random = pool(100_000, 0.0, 3);
        let mut counts = [0u32; 256];
        random.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        assert!(counts.iter().all(|count| (250..550).contains(count)), "{counts:?}");
        assert!(pool(1000, 1.0, 3).iter().all(|byte| *byte == b'x'));
    }

    #[test]
    fn key_prefixes_order_like_keys() {
        let keys: [&[u8]; 5] = [b"", b"a", b"ab", b"abcdefgh", b"b"];
        assert!(keys.is_sorted_by_key(|key| key_prefix(key)));
    }
}
