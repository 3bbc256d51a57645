//! A hash of keys for the Membuffer. It does not resist adversarial keys, but the only harm is that
//! colliding keys bypass the Membuffer.

use crate::head::head_of;

const FIRST: u64 = 0x9e37_79b9_7f4a_7c15;
const SECOND: u64 = 0xbf58_476d_1ce4_e5b9;

/// Multiplies, and combines the two halves of the product.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

#[inline]
pub(super) fn hash_of(key: &[u8]) -> u64 {
    let mut hash = FIRST ^ (key.len() as u64).wrapping_mul(SECOND);
    let mut chunks = key.chunks_exact(8);
    for chunk in &mut chunks {
        let word = chunk.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        hash = fold(hash ^ word, SECOND);
    }
    let rest = chunks.remainder();
    if !rest.is_empty() {
        hash = fold(hash ^ head_of(rest), SECOND);
    }
    fold(hash ^ FIRST, SECOND | 1)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::hash_of;

    #[test]
    #[cfg_attr(miri, ignore = "arithmetic alone, and much of it")]
    fn neighbours_spread_over_buckets_and_tags() {
        let mut buckets = [0_u32; 64];
        let mut tags = [0_u32; 256];
        for number in 0..64_000_u64 {
            let hash = hash_of(&number.to_be_bytes());
            buckets[(((hash & 0xffff_ffff) * 64) >> 32) as usize] += 1;
            tags[(hash >> 56) as usize] += 1;
        }
        assert!(buckets.iter().all(|count| (850..1150).contains(count)), "{buckets:?}");
        assert!(tags.iter().all(|count| (180..330).contains(count)), "{tags:?}");
        assert_ne!(hash_of(b""), hash_of(b"\0"));
        assert_ne!(hash_of(b"12345678"), hash_of(b"12345678\0"));
    }
}
