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
/// Halves the heads until few are left, then counts among these without branches.
#[inline]
pub(super) fn lower_bound(heads: &[u8], target: u32) -> usize {
    let count = heads.len() / HEAD_BYTES;
    let Some(last_window) = count.checked_sub(COUNTED) else { return below(heads, target) };
    let (mut from, mut len) = (0, count);
    while len > COUNTED {
        let half = len / 2;
        // A branch would be mispredicted half of the time.
        let is_below = head_at(heads, from + half) < target;
        from = std::hint::select_unpredictable(is_below, from + half, from);
        len -= half;
    }
    // All heads before `from` are below the target, and so is every head before an earlier window.
    let from = from.min(last_window);
    let window = heads.get(from * HEAD_BYTES..).and_then(<[u8]>::first_chunk);
    from + window.map_or(0, |window: &[u8; COUNTED * HEAD_BYTES]| below(window, target))
}

/// The number of heads that are counted: as many as fit into a cache line.
const COUNTED: usize = 16;

#[inline(always)]
fn below(heads: &[u8], target: u32) -> usize {
    let below = heads
        .chunks_exact(HEAD_BYTES)
        .map(|bytes| u32::from(u32::from_le_bytes(bytes.try_into().unwrap_or_default()) < target));
    below.sum::<u32>() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heads_below_a_number_are_counted() {
        for count in 0..140u32 {
            let heads: Vec<u8> =
                (0..count).flat_map(|number| (number / 3 * 10).to_le_bytes()).collect();
            for target in 0..count * 4 + 20 {
                let expected = (0..count).filter(|number| number / 3 * 10 < target).count();
                assert_eq!(lower_bound(&heads, target), expected, "{target} in {count}");
            }
        }
    }
}
