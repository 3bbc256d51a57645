//! The heads of a block: the first bytes of the suffixes of its keys, as numbers to compare.

/// The length of a head.
pub(super) const HEAD_BYTES: usize = 4;

/// Returns the first four bytes of a suffix as a number, padded with zeros.
#[inline]
pub(super) fn head_of_suffix(suffix: &[u8]) -> u32 {
    match suffix.first_chunk::<HEAD_BYTES>() {
        Some(first) => u32::from_be_bytes(*first),
        None => (terrane_memtable::head_of(suffix) >> 32) as u32,
    }
}

/// Returns the head at `index`.
#[inline]
fn head_at(heads: &[u8], index: usize) -> u32 {
    let at = index * HEAD_BYTES;
    let bytes = heads.get(at..at + HEAD_BYTES).and_then(|bytes| bytes.try_into().ok());
    u32::from_le_bytes(bytes.unwrap_or_default())
}

/// Returns the number of heads below `target`. The heads must be ascending.
///
/// Narrows large blocks by halving, then counts the rest without branches.
#[inline]
pub(super) fn lower_bound(heads: &[u8], target: u32) -> usize {
    const COUNTED: usize = 64;
    let (mut from, mut len) = (0, heads.len() / HEAD_BYTES);
    while len > COUNTED {
        let half = len / 2;
        if head_at(heads, from + half) < target {
            from += half;
        }
        len -= half;
    }
    let window = heads.get(from * HEAD_BYTES..(from + len) * HEAD_BYTES).unwrap_or_default();
    let below = window
        .chunks_exact(HEAD_BYTES)
        .map(|bytes| u32::from(u32::from_le_bytes(bytes.try_into().unwrap_or_default()) < target));
    from + below.sum::<u32>() as usize
}
