//! Decodes the entries of a block that have short offsets and lengths, which most have, in few
//! instructions.

use super::{Block, HEAD_BYTES, RawEntry, kind_of, may_expire};
use crate::base::codec::varint_of_bits;
use crate::base::types::{EntryKind, MAX_SEQ, SeqNo};

/// What precedes the key of an entry, if its lengths are short. Offsets are those in the given bytes.
pub(super) struct UsualHead {
    pub(super) packed: Packed,
    pub(super) suffix_len: usize,
    /// The offset of the suffix from byte 4 on.
    pub(super) rest: usize,
    /// The offset of the value.
    pub(super) value: usize,
}

impl UsualHead {
    /// Decodes the entry that begins at `start`, with one load. Whether it is whole is left to the caller.
    #[inline(always)]
    pub(super) fn at(bytes: &[u8], start: usize) -> Option<Self> {
        let word = u64::from_le_bytes(*bytes.get(start..)?.first_chunk()?);
        // The highest bit of the last byte of sequence number and kind. The length of the suffix follows in the word.
        let ends = !word & 0x0080_8080_8080_8080;
        let bits = (ends != 0).then(|| ends.trailing_zeros() + 1)?;
        let suffix_len = (word >> bits & 0xff) as usize;
        let rest = start + bits as usize / 8 + 1;
        let value = rest + suffix_len.saturating_sub(HEAD_BYTES);
        (suffix_len < 0x80).then_some(Self {
            packed: Packed { word, bits },
            suffix_len,
            rest,
            value,
        })
    }
}

/// The sequence number and the kind of an entry.
#[derive(Clone, Copy, Default)]
pub(super) struct Packed {
    /// The first bytes of the entry.
    word: u64,
    /// How many bits of them are the varint.
    bits: u32,
}

impl Packed {
    /// Returns the kind, of which a block has `kind_bits`.
    #[inline(always)]
    pub(super) fn kind(self, kind_bits: u32) -> u64 {
        self.word & ((1 << kind_bits) - 1)
    }

    /// Returns the difference to the base of the sequence numbers of the block.
    #[inline(always)]
    pub(super) fn seq_above_base(self, kind_bits: u32) -> u64 {
        varint_of_bits(self.word, self.bits) >> kind_bits
    }
}

/// Differences to the base are smaller.
pub(super) const ABOVE_BASE_MAX: SeqNo = 1 << 49;

impl<'a> Block<'a> {
    /// Returns the entry at an index if its offsets and lengths are short and it is not damaged. One load reads both
    /// offsets.
    #[inline(always)]
    pub(in crate::files::table) fn usual_entry(&self, index: usize) -> Option<RawEntry<'a>> {
        let layout = self.layout;
        if index >= layout.count || layout.wide {
            return None;
        }
        // At least two bytes follow the last offset, because an entry follows.
        let pair = u32::from_le_bytes(self.word(layout.offsets + index * 2)?);
        let base = layout.entries.start;
        let is_last = index + 1 == layout.count;
        let end = if is_last { layout.entries.end } else { base + (pair >> 16) as usize };
        let head = UsualHead::at(self.bytes, base + (pair & 0xffff) as usize)?;
        let seq = layout.base_seq + head.packed.seq_above_base(layout.kind_bits);
        let kind = kind_of(head.packed.kind(layout.kind_bits))?;
        let UsualHead { suffix_len, rest: rest_start, value: value_start, .. } = head;
        let rest = self.bytes.get(rest_start..value_start)?;
        let value = self.bytes.get(value_start..end)?;
        let is_whole = kind != EntryKind::Expiring || may_expire(layout, value);
        if seq > MAX_SEQ || !is_whole {
            return None;
        }
        let head = self.head(index);
        Some(RawEntry { seq, kind, head, suffix_len, rest, rest_start, value, value_start })
    }
}
