//! Secondary keys of a record, and index entries.
//!
//! A secondary key is a number that follows from the first bytes of a value, so that an update
//! changes it. An entry is the secondary key and then the primary one, without a value.

/// Bytes of a secondary key.
pub(super) const SECONDARY_BYTES: usize = 8;
/// As much of a value is looked at.
const LOOKED_AT: usize = 64;

/// The secondary key of a kind.
pub(super) fn secondary_of(value: &[u8], kind: u32) -> u64 {
    // FNV-1a, and a last step that makes high bits depend on all.
    let seed = 0xcbf2_9ce4_8422_2325 ^ u64::from(kind).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = value.iter().take(LOOKED_AT).fold(seed, step);
    (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// The entry of a record in an index.
pub(super) fn entry_key(secondary: u64, primary: &[u8]) -> Vec<u8> {
    [&secondary.to_be_bytes()[..], primary].concat()
}

/// What an entry says: the secondary key, and that of the record.
pub(super) fn primary_of(entry: &[u8]) -> Option<(u64, &[u8])> {
    let (secondary, primary) = entry.split_first_chunk()?;
    Some((u64::from_be_bytes(*secondary), primary))
}
