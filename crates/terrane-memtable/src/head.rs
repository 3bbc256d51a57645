//! The head of a key: its first eight bytes as an integer.
//!
//! Comparing keys is the inner loop of a storage engine, and following a pointer to a key is what
//! makes it slow. Heads compare as their keys do, except that equal heads say nothing, so a head
//! kept beside a pointer answers most comparisons without following it.

/// The first eight bytes of `key`, big-endian, filled up with zeros.
///
/// `a < b` implies `head_of(a) <= head_of(b)`, and `head_of(a) < head_of(b)` implies `a < b`.
#[inline]
pub fn head_of(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    let mut bytes = [0; 8];
    bytes[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(bytes)
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
}
