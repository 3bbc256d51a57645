//! Keys and values.

/// The entries of a database whose tables are read.
pub(crate) const ENTRIES: u64 = 20_000;

pub(crate) const VALUE: [u8; 100] = [7; 100];

/// Returns the key with this number. Keys with ascending numbers are in no order. The keys from [`ENTRIES`]
/// on are absent and lie between the others.
pub(crate) fn key(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}
