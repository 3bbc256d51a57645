//! The size of a block while its entries are collected.

use super::{HEAD_BYTES, kind_bits_of};
use crate::base::codec::varint_len;
use crate::base::types::{EntryKind, SeqNo};

/// The number of entries and the length of the prefix.
const HEADER_BYTES: usize = 8;

/// Sums over the entries of a block that bound its size. If keys have equal lengths and sequence
/// numbers are far apart, the bound exceeds the size by only a few bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    count: usize,
    /// The length of the prefix that all keys share.
    pub(super) prefix_len: usize,
    pub(super) smallest_seq: SeqNo,
    largest_seq: SeqNo,
    /// The largest kind of an entry, which decides how many bits kinds take.
    pub(super) largest_kind: EntryKind,
    key_bytes: usize,
    shortest_key: usize,
    longest_key: usize,
    value_bytes: usize,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            count: 0,
            prefix_len: 0,
            smallest_seq: 0,
            largest_seq: 0,
            largest_kind: EntryKind::Tombstone,
            key_bytes: 0,
            shortest_key: 0,
            longest_key: 0,
            value_bytes: 0,
        }
    }
}

impl Sizes {
    /// Returns the sums with one more entry. `first` is the first key; `None` if this entry is the
    /// first.
    pub(super) fn with(
        self,
        first: Option<&[u8]>,
        (key, seq): (&[u8], SeqNo),
        kind: EntryKind,
        value_len: usize,
    ) -> Self {
        let Some(first) = first else {
            return Self {
                count: 1,
                prefix_len: key.len(),
                smallest_seq: seq,
                largest_seq: seq,
                largest_kind: kind,
                key_bytes: key.len(),
                shortest_key: key.len(),
                longest_key: key.len(),
                value_bytes: value_len,
            };
        };
        let shared = first[..self.prefix_len].iter().zip(key).take_while(|(a, b)| a == b).count();
        Self {
            count: self.count + 1,
            prefix_len: shared,
            smallest_seq: self.smallest_seq.min(seq),
            largest_seq: self.largest_seq.max(seq),
            largest_kind: self.largest_kind.max(kind),
            key_bytes: self.key_bytes + key.len(),
            shortest_key: self.shortest_key.min(key.len()),
            longest_key: self.longest_key.max(key.len()),
            value_bytes: self.value_bytes + value_len,
        }
    }

    /// Returns an upper bound of the size of the block.
    pub(super) fn bound(&self) -> usize {
        let wider = if self.is_wide() { 2 * self.count } else { 0 };
        self.narrow_bound() + wider
    }

    /// Returns true if the block needs offsets of 32 bits.
    pub(super) fn is_wide(&self) -> bool {
        // Offsets are below the size, which counts every byte of the entries.
        self.narrow_bound() > usize::from(u16::MAX)
    }

    fn narrow_bound(&self) -> usize {
        if self.count == 0 {
            return 0;
        }
        let (kind_bits, _) = kind_bits_of(self.largest_kind);
        let most = (self.largest_seq - self.smallest_seq + 1) << kind_bits;
        let suffix_max = (self.longest_key - self.prefix_len) as u64;
        let each = HEAD_BYTES + 2 + varint_len(most) + varint_len(suffix_max);
        // Heads contain the first bytes of the suffixes, unless a suffix is shorter.
        let in_heads =
            if self.shortest_key >= self.prefix_len + HEAD_BYTES { HEAD_BYTES } else { 0 };
        let rests = self.key_bytes - self.count * (self.prefix_len + in_heads);
        let base = varint_len(self.smallest_seq);
        HEADER_BYTES + base + self.prefix_len + self.count * each + rests + self.value_bytes
    }
}
