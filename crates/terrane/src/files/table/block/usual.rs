//! Decodes the entries of a block that have short offsets and lengths, which most have, in few
//! instructions.

use super::{Block, HEAD_BYTES, RawEntry, kind_of, may_expire};
use crate::base::codec::short_varint;
use crate::base::types::{EntryKind, MAX_SEQ};

impl<'a> Block<'a> {
    /// Returns the entry at an index if its offsets and lengths are short and it is not damaged. One load reads both
    /// offsets, and a second one reads everything before the key.
    #[inline(always)]
    pub(in crate::files::table) fn usual_entry(&self, index: usize) -> Option<RawEntry<'a>> {
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
        let value_start = rest_start + suffix_len.saturating_sub(HEAD_BYTES);
        let seq = layout.base_seq + (packed >> layout.kind_bits);
        if suffix_len >= 0x80 || seq > MAX_SEQ {
            return None;
        }
        let kind = kind_of(packed & ((1 << layout.kind_bits) - 1))?;
        let rest = self.bytes.get(rest_start..value_start)?;
        let value = self.bytes.get(value_start..end)?;
        if kind == EntryKind::Expiring && !may_expire(layout, value) {
            return None;
        }
        let head = self.head(index);
        Some(RawEntry { seq, kind, head, suffix_len, rest, rest_start, value, value_start })
    }
}
