//! The head of a key: its first eight bytes as an integer.
//!
//! Comparing keys is the inner loop of a storage engine, and following a pointer to a key is the
//! slow part. Heads compare as their keys do, except that equal heads decide nothing, so a head
//! stored with a pointer answers most comparisons without following it.

/// Returns the first eight bytes of `key`, big-endian, padded with zeros.
///
/// `a < b` implies `head_of(a) <= head_of(b)`, and `head_of(a) < head_of(b)` implies `a < b`.
#[inline]
pub fn head_of(key: &[u8]) -> u64 {
    match key.first_chunk::<8>() {
        Some(first) => u64::from_be_bytes(*first),
        None => head_of_short(key),
    }
}

/// Returns the head of fewer than eight bytes. Reads the start and the end of the bytes as integers
/// that may overlap: copying the bytes one by one and loading them as a word takes several times as
/// long, because the load must wait for the stores.
#[inline]
fn head_of_short(key: &[u8]) -> u64 {
    // Moves the last byte to its place.
    let shift = 8_u32.saturating_sub(key.len() as u32) * 8;
    if let (Some(first), Some(last)) = (key.first_chunk::<4>(), key.last_chunk::<4>()) {
        u64::from(u32::from_be_bytes(*first)) << 32 | u64::from(u32::from_be_bytes(*last)) << shift
    } else if let (Some(first), Some(last)) = (key.first_chunk::<2>(), key.last_chunk::<2>()) {
        u64::from(u16::from_be_bytes(*first)) << 48 | u64::from(u16::from_be_bytes(*last)) << shift
    } else {
        key.first().map_or(0, |byte| u64::from(*byte) << 56)
    }
}

#[cfg(test)]
mod tests {
    use super::head_of;

    #[test]
    fn heads_never_contradict_their_keys() {
        let keys: [&[u8]; 9] =
            [b"", b"\0", b"\0\0", b"a", b"a\0", b"abcdefgh", b"abcdefgh\0", b"abcdefgi", b"b"];
        for (i, a) in keys.iter().enumerate() {
            for b in &keys[i..] {
                assert!(head_of(a) <= head_of(b));
            }
        }
        assert!(head_of(b"abcdefgh") < head_of(b"abcdefgi"));
    }

    #[test]
    fn short_keys_are_filled_up_with_zeros() {
        let bytes = [0x81, 0x92, 0xa3, 0xb4, 0xc5, 0xd6, 0xe7, 0xf8, 0x99];
        for len in 0..=bytes.len() {
            let mut wanted = [0; 8];
            wanted[..len.min(8)].copy_from_slice(&bytes[..len.min(8)]);
            assert_eq!(head_of(&bytes[..len]), u64::from_be_bytes(wanted), "{len} bytes");
        }
    }
}
