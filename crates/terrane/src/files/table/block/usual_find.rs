//! Looks a key up in a block in few instructions, without a [`Layout`](super::Layout), if block and entry are as most
//! are: kinds of one bit, short offsets and lengths, and a head that no other entry has.

use std::ops::Range;

use terrane_memtable::prefetch_line;

use super::heads::{HEAD_BYTES, head_of_suffix, lower_bound};
use super::usual::UsualHead;
use super::{FLAGS, LINE_BYTES};
use crate::base::bytes::{after_prefix, is_same};
use crate::base::codec::short_varint;
use crate::base::types::{EntryKind, MAX_KEY_LEN, MAX_SEQ, SeqNo};

/// A version in a block.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::files::table) struct VersionAt {
    pub(in crate::files::table) seq: SeqNo,
    pub(in crate::files::table) kind: EntryKind,
    /// Where its value is in the block.
    pub(in crate::files::table) value: Range<usize>,
}

/// Returns the newest version of `key` at or below `seq`, or `Some(None)` if the block has none. Returns `None` if
/// block or entry are unusual or damaged. `low` is as in [`Block::find`](super::Block::find).
#[inline(always)]
pub(in crate::files::table) fn find_usual(
    block: &[u8],
    low: Option<usize>,
    key: &[u8],
    seq: SeqNo,
) -> Option<Option<VersionAt>> {
    let (header, rest) = block.split_first_chunk::<8>()?;
    let header = u64::from_le_bytes(*header);
    let (count, shape) = (header as u32 as usize, (header >> 32) as u32);
    if count == 0 || shape & FLAGS != 0 || shape as usize > MAX_KEY_LEN {
        return None;
    }
    let (heads, rest) = rest.split_at_checked(count.checked_mul(HEAD_BYTES)?)?;
    let (offsets, rest) = rest.split_at_checked(count * 2)?;
    let (base_seq, base_len) = short_varint(u64::from_le_bytes(*rest.first_chunk()?))?;
    if base_seq > MAX_SEQ {
        return None;
    }
    let (prefix, entries) = rest.get(base_len..)?.split_at_checked(shape as usize)?;
    let Some(suffix) = after_prefix(key, prefix) else { return Some(None) };
    let head = head_of_suffix(suffix);
    let offsets = offsets.as_chunks::<2>().0;
    let start_of = |index: usize| offsets.get(index).map(|at| usize::from(u16::from_le_bytes(*at)));
    let low = low.unwrap_or_else(|| {
        let low = lower_bound(heads, head);
        if let Some(start) = start_of(low) {
            let start = entries.as_ptr().wrapping_add(start);
            prefetch_line(start);
            prefetch_line(start.wrapping_add(LINE_BYTES));
        }
        low
    });
    let heads = heads.as_chunks::<HEAD_BYTES>().0;
    let has_head =
        |index: usize| heads.get(index).is_some_and(|at| u32::from_le_bytes(*at) == head);
    if !has_head(low) {
        return Some(None);
    }
    if has_head(low + 1) {
        return None;
    }
    let (start, end) = (start_of(low)?, start_of(low + 1).unwrap_or(entries.len()));
    let entry = UsualHead::at(entries, start)?;
    let entry_seq = base_seq + entry.packed.seq_above_base(1);
    if entry_seq > MAX_SEQ {
        return None;
    }
    let (rest, value) = (entries.get(entry.rest..entry.value)?, entry.value..end);
    entries.get(value.clone())?;
    let is_same_key = entry.suffix_len == suffix.len()
        && is_same(suffix.get(HEAD_BYTES..).unwrap_or_default(), rest);
    if !is_same_key || entry_seq > seq {
        return Some(None);
    }
    let kind = if entry.packed.kind(1) == 1 { EntryKind::Value } else { EntryKind::Tombstone };
    let base = block.len() - entries.len();
    Some(Some(VersionAt { seq: entry_seq, kind, value: base + value.start..base + value.end }))
}
