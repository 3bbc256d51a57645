//! Decodes the entries of a block that have short offsets and lengths, which most have, in few
//! instructions.

use std::ops::Range;

use super::{Block, HEAD_BYTES, RawEntry, kind_of, may_expire};
use crate::base::codec::short_varint;
use crate::base::types::{EntryKind, MAX_SEQ, SeqNo};

/// The bits of a kind that is a value, whatever the number of bits of kinds.
const VALUE_BITS: u64 = 1;

/// An entry, as offsets in its block.
pub(super) struct UsualEntry {
    pub(super) seq: SeqNo,
    kind_bits: u64,
    pub(super) head: u32,
    pub(super) suffix_len: usize,
    /// The offset of the suffix from byte 4 on.
    pub(super) rest_start: usize,
    pub(super) value: Range<usize>,
}

impl<'a> Block<'a> {
    /// Returns the entry at an index if its offsets and lengths are short and it is not damaged.
    #[inline(always)]
    pub(in crate::files::table) fn usual_entry(&self, index: usize) -> Option<RawEntry<'a>> {
        let UsualEntry { seq, kind_bits, head, suffix_len, rest_start, value } =
            self.usual(index)?;
        let rest = self.bytes.get(rest_start..value.start)?;
        let value_start = value.start;
        let value = self.bytes.get(value)?;
        let kind = kind_of(kind_bits)?;
        if kind == EntryKind::Expiring && !may_expire(self.layout, value) {
            return None;
        }
        Some(RawEntry { seq, kind, head, suffix_len, rest, rest_start, value, value_start })
    }

    /// Does the same for an entry that is a value which is stored in the block and does not expire.
    #[inline(always)]
    pub(super) fn usual_value(&self, index: usize) -> Option<UsualEntry> {
        self.usual(index).filter(|entry| entry.kind_bits == VALUE_BITS)
    }

    /// One load reads both offsets, and a second one reads everything before the key.
    #[inline(always)]
    fn usual(&self, index: usize) -> Option<UsualEntry> {
        let layout = self.layout;
        if index >= layout.count || layout.wide {
            return None;
        }
        // At least two bytes follow the last offset, because an entry follows.
        let pair = u32::from_le_bytes(self.word(layout.offsets + index * 2)?);
        let base = layout.entries.start;
        let start = base + (pair & 0xffff) as usize;
        let is_last = index + 1 == layout.count;
        let end = if is_last { layout.entries.end } else { base + (pair >> 16) as usize };
        let word = u64::from_le_bytes(self.word(start)?);
        let (packed, seq_len) = short_varint(word)?;
        let suffix_len = (word.checked_shr(8 * seq_len as u32)? & 0xff) as usize;
        let rest_start = start + seq_len + 1;
        let value = rest_start + suffix_len.saturating_sub(HEAD_BYTES)..end;
        let seq = layout.base_seq + (packed >> layout.kind_bits);
        let is_whole = value.start <= value.end && value.end <= self.bytes.len();
        if suffix_len >= 0x80 || seq > MAX_SEQ || !is_whole {
            return None;
        }
        let kind_bits = packed & ((1 << layout.kind_bits) - 1);
        let head = self.head(index);
        Some(UsualEntry { seq, kind_bits, head, suffix_len, rest_start, value })
    }
}
