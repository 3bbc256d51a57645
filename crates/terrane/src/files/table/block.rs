//! Data blocks: sorted entries, and arrays for searching them.
//!
//! ```text
//! +-------+-------+--------------+---------------+----------+--------+---------+
//! | count | shape | heads        | offsets       | base seq | prefix | entries |
//! | u32   | u32   | count × u32  | count × u16/32| varint   |        |         |
//! +-------+-------+--------------+---------------+----------+--------+---------+
//! entry:  | seq - base, kind | suffix length | suffix from byte 4 on | value |
//!         | varint           | varint        |                       |       |
//! ```
//!
//! - `shape`: the length of the prefix in bits 0 to 28; bit 29 is set if kinds take three bits; bit 30
//!   is set if they take two; bit 31 is set if offsets are 32 bits wide.
//! - `prefix`: the common prefix of all keys of the block; the rest of a key is its suffix.
//! - `heads`: the first four bytes of each suffix, padded with zeros, as a big-endian number (stored
//!   little-endian). A search reads these few adjacent cache lines and then one entry. Entries do not repeat
//!   the head bytes.
//! - `offsets`: the start of each entry, relative to the first; an entry ends where the next one
//!   starts.
//! - sequence number and kind: `(seq - base) << 1 | kind`, kind 1 for a value, 0 for a tombstone. In a
//!   block with separated values `(seq - base) << 2 | kind`, kind 2 for the place of a value. In a block
//!   with values that expire or with operands `(seq - base) << 3 | kind`, kind 3 for a value that expires,
//!   which begins with its expiry time, and kind 4 for an operand.
//!
//! Every length and offset is checked against the block before use, so that no block makes a reader
//! panic, even with a valid checksum.

mod builder;
mod cursor;
mod heads;
mod key_buffer;
mod search;
mod sizes;
mod stretch;
#[cfg(test)]
mod tests;
mod usual;
mod usual_find;

pub(crate) use builder::BlockBuilder;
pub(crate) use cursor::BlockCursor;
use heads::{HEAD_BYTES, head_of_suffix};
pub(crate) use stretch::Stretch;
pub(super) use usual_find::{VersionAt, find_usual};

use std::ops::Range;

use terrane_memtable::prefetch_line;

use crate::base::codec::{DecodeError, Decoded, Reader, short_varint};
use crate::base::expiry::EXPIRY_BYTES;
use crate::base::types::{EntryKind, MAX_KEY_LEN, MAX_SEQ, SeqNo};

const LINE_BYTES: usize = 64;

pub(super) const WIDE_OFFSETS: u32 = 1 << 31;
pub(super) const WIDE_KINDS: u32 = 1 << 30;
pub(super) const WIDER_KINDS: u32 = 1 << 29;
const FLAGS: u32 = WIDE_OFFSETS | WIDE_KINDS | WIDER_KINDS;

/// Returns the number of bits that kinds up to `largest` take, and the flag that states it.
fn kind_bits_of(largest: EntryKind) -> (u32, u32) {
    match largest {
        EntryKind::Tombstone | EntryKind::Value => (1, 0),
        EntryKind::Separated => (2, WIDE_KINDS),
        EntryKind::Expiring | EntryKind::Operand => (WIDEST_KIND_BITS, WIDER_KINDS),
    }
}

/// Returns the number of bits that kinds take in a block of this shape; `None` if it is no valid shape.
#[inline]
fn kind_bits_in(shape: u32) -> Option<u32> {
    match (shape & WIDER_KINDS != 0, shape & WIDE_KINDS != 0) {
        (false, false) => Some(1),
        (false, true) => Some(2),
        (true, false) => Some(WIDEST_KIND_BITS),
        (true, true) => None,
    }
}

/// Returns the length of an offset.
#[inline]
fn offset_bytes(wide: bool) -> usize {
    if wide { size_of::<u32>() } else { size_of::<u16>() }
}

/// The number of bits of kinds in a block with values that expire or with operands.
const WIDEST_KIND_BITS: u32 = 3;

/// The offsets of a block's parts, kept with the bytes so that cursors need not parse again.
#[derive(Debug, Clone, Default)]
pub(super) struct Layout {
    count: usize,
    heads: usize,
    offsets: usize,
    wide: bool,
    /// The number of bits that the kind of an entry takes: 1 to 3.
    kind_bits: u32,
    base_seq: SeqNo,
    prefix: Range<usize>,
    entries: Range<usize>,
}

impl Layout {
    #[inline]
    pub(super) fn parse(block: &[u8]) -> Decoded<Self> {
        Self::parse_usual(block).map_or_else(|| Self::parse_any(block), Ok)
    }

    /// Does the same in few instructions, for a block that is not damaged and whose base sequence number is
    /// followed by at least a few bytes.
    #[inline(always)]
    fn parse_usual(block: &[u8]) -> Option<Self> {
        let heads = size_of::<u64>();
        let word = u64::from_le_bytes(*block.first_chunk()?);
        let (count, shape) = (word as u32 as usize, (word >> 32) as u32);
        let (wide, kind_bits) = (shape & WIDE_OFFSETS != 0, kind_bits_in(shape)?);
        let prefix_len = (shape & !FLAGS) as usize;
        // A count of 32 bits: the products do not overflow 64 bits.
        let offsets = heads as u64 + count as u64 * HEAD_BYTES as u64;
        let base_at = usize::try_from(offsets + count as u64 * offset_bytes(wide) as u64).ok()?;
        let (base_seq, base_len) =
            short_varint(u64::from_le_bytes(*block.get(base_at..)?.first_chunk()?))?;
        let prefix_start = base_at + base_len;
        let entries = prefix_start + prefix_len;
        let is_whole = entries <= block.len() && count > 0;
        if !is_whole || base_seq > MAX_SEQ || prefix_len > MAX_KEY_LEN {
            return None;
        }
        let (prefix, entries) = (prefix_start..entries, entries..block.len());
        let offsets = offsets as usize;
        Some(Self { count, heads, offsets, wide, kind_bits, base_seq, prefix, entries })
    }

    #[cold]
    fn parse_any(block: &[u8]) -> Decoded<Self> {
        let mut reader = Reader::new(block);
        let count = reader.u32("entry count")? as usize;
        let shape = reader.u32("block shape")?;
        let wide = shape & WIDE_OFFSETS != 0;
        let kind_bits = kind_bits_in(shape).ok_or_else(|| reader.error("block shape"))?;
        let prefix_len = (shape & !FLAGS) as usize;
        let heads = reader.position();
        let too_many = reader.error("entry count");
        reader.bytes(count.checked_mul(HEAD_BYTES).ok_or(too_many)?, "heads")?;
        let offsets = reader.position();
        reader.bytes(count.checked_mul(offset_bytes(wide)).ok_or(too_many)?, "offsets")?;
        let base_seq = reader.varint("base sequence number")?;
        let prefix_start = reader.position();
        reader.bytes(prefix_len, "prefix")?;
        let entries = reader.position();
        if count == 0 || base_seq > MAX_SEQ || prefix_len > MAX_KEY_LEN {
            return Err(reader.error("block header"));
        }
        let prefix = prefix_start..entries;
        let entries = entries..block.len();
        Ok(Self { count, heads, offsets, wide, kind_bits, base_seq, prefix, entries })
    }
}

/// A parsed data block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block<'a> {
    bytes: &'a [u8],
    layout: &'a Layout,
}

/// An entry of a block, its key in two parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RawEntry<'a> {
    pub(super) seq: SeqNo,
    pub(super) kind: EntryKind,
    head: u32,
    suffix_len: usize,
    rest: &'a [u8],
    /// The offset of `rest` in the block.
    rest_start: usize,
    pub(super) value: &'a [u8],
    /// The offset of the value in the block.
    pub(super) value_start: usize,
}

impl<'a> Block<'a> {
    #[inline]
    pub(super) fn new(bytes: &'a [u8], layout: &'a Layout) -> Self {
        Self { bytes, layout }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.layout.count
    }

    fn error(&self, what: &'static str, at: usize) -> DecodeError {
        DecodeError::new(what, at)
    }

    #[inline]
    fn prefix(&self) -> &'a [u8] {
        self.bytes.get(self.layout.prefix.clone()).unwrap_or_default()
    }

    #[inline]
    fn heads(&self) -> &'a [u8] {
        let start = self.layout.heads;
        self.bytes.get(start..start + self.layout.count * HEAD_BYTES).unwrap_or_default()
    }

    #[inline]
    fn head(&self, index: usize) -> u32 {
        let at = self.layout.heads + index * HEAD_BYTES;
        self.word(at).map_or(0, u32::from_le_bytes)
    }

    /// Returns the bytes of a number from `at` on.
    #[inline]
    fn word<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.bytes.get(at..)?.first_chunk().copied()
    }

    #[inline]
    fn offset(&self, index: usize) -> Option<usize> {
        if index == self.layout.count {
            return Some(self.layout.entries.len());
        }
        if self.layout.wide {
            let offset = self.word(self.layout.offsets + index * 4);
            offset.map(|offset| u32::from_le_bytes(offset) as usize)
        } else {
            let offset = self.word(self.layout.offsets + index * 2);
            offset.map(|offset| usize::from(u16::from_le_bytes(offset)))
        }
    }

    /// Does the same as [`Block::entry`], for the inner loop of scans.
    // Inlined, because the parts would otherwise pass through memory.
    #[inline(always)]
    fn hot_entry(&self, index: usize) -> Decoded<RawEntry<'a>> {
        self.usual_entry(index).map_or_else(|| self.entry(index), Ok)
    }

    /// Returns the entry at an index, which must be below [`Block::len`].
    #[inline(never)]
    pub(super) fn entry(&self, index: usize) -> Decoded<RawEntry<'a>> {
        let bounds = (self.offset(index), self.offset(index + 1));
        let (Some(start), Some(end)) = bounds else {
            return Err(self.error("entry offset", self.layout.offsets));
        };
        let base = self.layout.entries.start;
        let bytes = self.bytes.get(base + start..base + end);
        let bytes = bytes.ok_or_else(|| self.error("entry offset", base + start))?;
        let mut reader = Reader::new(bytes);
        let packed = reader.varint("sequence number")?;
        let kind_bits = self.layout.kind_bits;
        let seq = self.layout.base_seq + (packed >> kind_bits);
        let kind = kind_of(packed & ((1 << kind_bits) - 1));
        let kind = kind.ok_or_else(|| self.error("kind of an entry", base + start))?;
        let suffix_len = reader.varint("key length")?.min(u64::from(u32::MAX)) as usize;
        let rest_start = base + start + reader.position();
        let rest = reader.bytes(suffix_len.saturating_sub(HEAD_BYTES), "key")?;
        let value_start = base + start + reader.position();
        let value = bytes.get(reader.position()..).unwrap_or_default();
        let is_whole = kind != EntryKind::Expiring || may_expire(self.layout, value);
        if suffix_len > MAX_KEY_LEN || seq > MAX_SEQ || !is_whole {
            return Err(self.error("entry", base + start));
        }
        let head = self.head(index);
        Ok(RawEntry { seq, kind, head, suffix_len, rest, rest_start, value, value_start })
    }

    /// Prefetches the entry at an index, if there is one: two cache lines, which often contain both
    /// the key and the start of its value.
    #[inline]
    fn prefetch_at(&self, index: usize) {
        if index >= self.len() {
            return;
        }
        if let Some(start) = self.offset(index) {
            let start = self.layout.entries.start + start;
            prefetch_line(self.bytes.as_ptr().wrapping_add(start));
            prefetch_line(self.bytes.as_ptr().wrapping_add(start + LINE_BYTES));
        }
    }

    /// Returns true if two entries with the same head have the same key.
    #[inline(never)]
    fn same_rest(&self, a: usize, b: usize) -> Decoded<bool> {
        let (a, b) = (self.entry(a)?, self.entry(b)?);
        Ok(a.suffix_len == b.suffix_len && a.rest == b.rest)
    }
}

/// Returns the kind of an entry.
#[inline]
fn kind_of(bits: u64) -> Option<EntryKind> {
    match bits {
        0 => Some(EntryKind::Tombstone),
        1 => Some(EntryKind::Value),
        2 => Some(EntryKind::Separated),
        3 => Some(EntryKind::Expiring),
        4 => Some(EntryKind::Operand),
        _ => None,
    }
}

/// Returns false if a block has no expiring values, or if a stored value is too short for its expiry time.
#[inline]
fn may_expire(layout: &Layout, stored: &[u8]) -> bool {
    layout.kind_bits == WIDEST_KIND_BITS && stored.len() >= EXPIRY_BYTES
}
