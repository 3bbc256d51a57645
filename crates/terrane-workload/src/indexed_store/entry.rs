//! Secondary keys of a record, and index entries.
//!
//! A secondary key is a number derived from the first bytes of a value, so an update changes it. An
//! entry is the secondary key followed by the primary key, without a value.

/// The size of a secondary key, in bytes.
pub(super) const SECONDARY_BYTES: usize = 8;
/// The number of leading bytes of a value that determine its secondary keys.
const HASHED_BYTES_MAX: usize = 64;

/// Returns the secondary key of a value for one index.
pub(super) fn secondary_of(value: &[u8], kind: u32) -> u64 {
    // FNV-1a, followed by a final step that makes the high bits depend on all input bits.
    let seed = 0xcbf2_9ce4_8422_2325 ^ u64::from(kind).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = value.iter().take(HASHED_BYTES_MAX).fold(seed, step);
    (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// Returns the entry of a record in an index.
pub(super) fn entry_key(secondary: u64, primary: &[u8]) -> Vec<u8> {
    [&secondary.to_be_bytes()[..], primary].concat()
}

/// Splits an entry into the secondary key and the primary key.
pub(super) fn primary_of(entry: &[u8]) -> Option<(u64, &[u8])> {
    let (secondary, primary) = entry.split_first_chunk()?;
    Some((u64::from_be_bytes(*secondary), primary))
}
