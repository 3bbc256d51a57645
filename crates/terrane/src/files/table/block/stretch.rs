//! Entries of a block that a scan returns one after the other, decoded together.
//!
//! Most entries of a scan come from the same block as the ones before them. To decode several at once keeps the
//! places of the parts of the block in registers, and a step to the next one is an addition.

use std::cell::Cell;
use std::ops::Range;

use terrane_memtable::prefetch_line;

use super::cursor::BlockCursor;
use super::key_buffer::{self, INLINE_BYTES};
use super::usual::{ABOVE_BASE_MAX, Packed, UsualHead};
use super::{Block, HEAD_BYTES, LINE_BYTES, Layout};
use crate::base::types::{EntryKind, MAX_SEQ, SeqNo};
use crate::files::buffer::BlockRef;
use crate::files::value::Value;

/// The maximum number of entries.
const COUNT_MAX: usize = 16;

/// The maximum number of entries at the beginning of a scan. It grows by half with each stretch that has as many, so
/// that short scans decode few entries that they do not return.
const COUNT_FIRST: usize = 2;

/// The minimum number of entries that are prefetched after a stretch: otherwise those of the next one.
const AHEAD_MIN: usize = 8;

thread_local! {
    /// The entries of a dropped stretch, kept because short scans would otherwise spend much of their time on
    /// allocation.
    static SPARE: Cell<Option<Box<Entries>>> = const { Cell::new(None) };
}

/// With at most this base, every sequence number of a block is valid.
const BASE_MAX: SeqNo = MAX_SEQ - ABOVE_BASE_MAX;

/// The bits of a kind that is a value, whatever the number of bits of kinds.
const VALUE_BITS: u64 = 1;

/// Consecutive entries of a block with different keys, each a value that a reader sees.
///
/// The cursor that decodes them moves to the last of them, and the reader steps through them.
#[derive(Debug)]
pub(crate) struct Stretch {
    /// The number of entries to which the reader has stepped; the current entry is the last of them.
    at: usize,
    /// The number of entries.
    count: usize,
    /// The maximum number of entries of the next stretch.
    limit: usize,
    /// Allocated by the first stretch of a scan.
    entries: Option<Box<Entries>>,
}

/// The decoded entries, and the block that they are in.
#[derive(Debug)]
struct Entries {
    /// `None` while the scan may not use it, so that it is not kept in memory.
    block: Option<BlockRef>,
    /// The entry of the block up to which entries have been prefetched.
    prefetched: usize,
    /// The first `prefixed` of them begin with the prefix of the block.
    prefixed: usize,
    keys: [[u8; INLINE_BYTES]; COUNT_MAX],
    places: [Place; COUNT_MAX],
}

/// The length of a key, and where its value is in the block.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    key_len: u32,
    value_start: u32,
    value_end: u32,
}

impl Default for Stretch {
    fn default() -> Self {
        Self { at: 0, count: 0, limit: COUNT_FIRST, entries: None }
    }
}

impl Stretch {
    /// Removes the entries, and releases the block. The next stretch is short.
    #[inline]
    pub(crate) fn reset(&mut self) {
        self.clear();
        self.limit = COUNT_FIRST;
        if let Some(entries) = &mut self.entries {
            entries.block = None;
        }
    }

    /// Returns true if the scan has had a stretch.
    #[inline]
    pub(crate) fn was_used(&self) -> bool {
        self.entries.is_some()
    }

    /// Removes the entries. The next stretch continues a scan.
    #[inline]
    pub(crate) fn clear(&mut self) {
        (self.at, self.count) = (0, 0);
    }

    /// Returns true if entries are left.
    #[inline]
    pub(crate) fn has_next(&self) -> bool {
        self.at < self.count
    }

    /// Moves to the next entry, if there is one.
    #[inline]
    pub(crate) fn step(&mut self) {
        if self.has_next() {
            self.at += 1;
        }
    }

    /// Returns the number of entries after the current one, if the reader is on one.
    pub(crate) fn left(&self) -> Option<usize> {
        (self.at > 0).then(|| self.count - self.at)
    }

    #[inline]
    fn current(&self) -> Option<(&Entries, usize)> {
        let slot = self.at.checked_sub(1)?;
        Some((self.entries.as_deref()?, slot))
    }

    /// Returns the current key.
    #[inline]
    pub(crate) fn key(&self) -> Option<&[u8]> {
        let (entries, slot) = self.current()?;
        entries.keys.get(slot)?.get(..entries.places.get(slot)?.key_len as usize)
    }

    /// Returns the current value.
    #[inline]
    pub(crate) fn value(&self) -> Option<&[u8]> {
        let (entries, slot) = self.current()?;
        entries.block.as_ref()?.get(entries.places.get(slot)?.value())
    }

    /// Returns the current value, pinned instead of copied.
    pub(crate) fn pin_value(&self) -> Option<Value> {
        let (entries, slot) = self.current()?;
        Some(Value::of_block(entries.block.as_ref()?.view(), entries.places.get(slot)?.value()))
    }
}

/// Returns the maximum number of entries of the stretch after one that had `limit`.
fn grown(limit: usize) -> usize {
    (limit + limit.div_ceil(2)).min(COUNT_MAX)
}

impl Drop for Stretch {
    /// Keeps the memory for the next scan of this thread.
    #[inline]
    fn drop(&mut self) {
        if let Some(mut entries) = self.entries.take() {
            entries.block = None;
            // If the thread is exiting, the memory is freed instead.
            let _ = SPARE.try_with(|cell| cell.set(Some(entries)));
        }
    }
}

impl Place {
    #[inline]
    fn value(&self) -> Range<usize> {
        self.value_start as usize..self.value_end as usize
    }
}

impl Entries {
    /// Returns the entries of a stretch, of which the first `limit` begin with the prefix of `block`.
    #[inline]
    fn of<'a>(
        entries: &'a mut Option<Box<Self>>,
        block: &BlockRef,
        (prefix, limit): (&[u8; INLINE_BYTES], usize),
    ) -> &'a mut Self {
        let entries = entries.get_or_insert_with(Self::new);
        if !entries.block.as_ref().is_some_and(|own| own.is(block)) {
            entries.block = Some(block.clone());
            (entries.prefetched, entries.prefixed) = (0, 0);
        }
        if entries.prefixed < limit {
            entries
                .keys
                .iter_mut()
                .take(limit)
                .skip(entries.prefixed)
                .for_each(|key| *key = *prefix);
            entries.prefixed = limit;
        }
        entries
    }

    /// Prefetches those of some entries of the block that have not been prefetched.
    #[inline(always)]
    fn prefetch(&mut self, block: Block<'_>, indexes: Range<usize>) {
        let end = indexes.end.min(block.len());
        Parts::prefetch(block, self.prefetched.max(indexes.start)..end);
        self.prefetched = end;
    }

    #[inline(never)]
    fn new() -> Box<Self> {
        if let Some(spare) = SPARE.try_with(Cell::take).unwrap_or_default() {
            return spare;
        }
        let (keys, places) = ([[0; INLINE_BYTES]; COUNT_MAX], [Place::default(); COUNT_MAX]);
        Box::new(Self { block: None, prefetched: 0, prefixed: 0, keys, places })
    }
}

/// The parts of a block with short offsets that a stretch is decoded from.
#[derive(Clone, Copy)]
struct Parts<'a> {
    /// The heads and the offsets of the entries that may belong to the stretch.
    heads: &'a [[u8; HEAD_BYTES]],
    offsets: &'a [[u8; 2]],
    entries: &'a [u8],
    /// The offset of the end of the last one of them.
    end: usize,
}

impl<'a> Parts<'a> {
    /// Returns the parts for the entries `first..end`; `None` if offsets are wide, or if there are no such entries.
    #[inline(always)]
    fn of(block: Block<'a>, first: usize, end: usize) -> Option<Self> {
        let Layout { count, heads, offsets, wide, entries, .. } = block.layout;
        let heads = block.bytes.get(*heads..*offsets)?.as_chunks().0.get(first..end)?;
        let all_offsets = block.bytes.get(*offsets..entries.start)?.as_chunks().0;
        let entries = block.bytes.get(entries.start..)?;
        let last = if end == *count { entries.len() } else { offset(*all_offsets.get(end)?) };
        let offsets = all_offsets.get(first..end)?;
        (!wide && first < end).then_some(Self { heads, offsets, entries, end: last })
    }

    /// Prefetches the entries at some indexes.
    #[inline(always)]
    fn prefetch(block: Block<'a>, indexes: Range<usize>) {
        let all = block.bytes.get(block.layout.offsets..).unwrap_or_default().as_chunks().0;
        let start = block.bytes.as_ptr().wrapping_add(block.layout.entries.start);
        for at in all.get(indexes).unwrap_or_default() {
            prefetch_line(start.wrapping_add(offset(*at)));
            prefetch_line(start.wrapping_add(offset(*at) + LINE_BYTES));
        }
    }
}

#[inline(always)]
fn offset(bytes: [u8; 2]) -> usize {
    usize::from(u16::from_le_bytes(bytes))
}

/// Decodes the entry between two offsets, if it is a value which is stored in its block and does not expire.
#[inline(always)]
fn value_at(entries: &[u8], start: usize, end: usize, kind_bits: u32) -> Option<UsualHead> {
    let entry = UsualHead::at(entries, start)?;
    let is_whole = entry.value <= end && end <= entries.len();
    (is_whole && entry.packed.kind(kind_bits) == VALUE_BITS).then_some(entry)
}

impl BlockCursor {
    /// Decodes the entries after the current one as a stretch: each of another key than the one before it, which is
    /// below `below` by the first eight bytes, or fewer, and a value that was written at or before `seq` and does not
    /// expire. Without `seq`, the reader sees the whole block. Returns false, and stays where it is, if the next entry is
    /// not one. Otherwise the stretch is on its first entry, and the cursor moves to its last one.
    #[inline(never)]
    pub(crate) fn stretch(
        &mut self,
        stretch: &mut Stretch,
        below: u64,
        seq: Option<SeqNo>,
    ) -> bool {
        stretch.clear();
        let Some(block_ref) = &self.block else { return false };
        let Some((prefix, prefix_len)) = self.key.short_prefix() else { return false };
        let block = Block::new(block_ref, &self.layout);
        let first = self.index + 1;
        let end = first.saturating_add(stretch.limit).min(block.len());
        let Some(parts) = Parts::of(block, first, end) else { return false };
        let below = self.key.head_below(below);
        let begins = parts.heads.first().is_some_and(|head| {
            let head = u32::from_le_bytes(*head);
            head != self.head && u64::from(head) < below
        });
        if !begins || self.layout.base_seq > BASE_MAX {
            return false;
        }
        let prefix = (prefix, stretch.limit);
        let entries = Entries::of(&mut stretch.entries, block_ref, prefix);
        entries.prefetch(block, first..end.saturating_add(grown(stretch.limit).max(AHEAD_MIN)));
        let Layout { kind_bits, base_seq, entries: Range { start: base, .. }, .. } = self.layout;
        let (mut head, mut packed) = (self.head, Packed::default());
        let mut count = 0;
        let mut starts = parts.offsets.iter().map(|bytes| offset(*bytes));
        let mut start = starts.next().unwrap_or_default();
        let slots = entries.keys.iter_mut().zip(&mut entries.places);
        for (entry_head, (key, place)) in parts.heads.iter().zip(slots) {
            let entry_head = u32::from_le_bytes(*entry_head);
            let end = starts.next().unwrap_or(parts.end);
            let Some(entry) = value_at(parts.entries, start, end, kind_bits) else { break };
            let rest = parts.entries.get(entry.rest..).unwrap_or_default();
            if entry_head == head || u64::from(entry_head) >= below {
                break;
            }
            if seq.is_some_and(|seq| base_seq + entry.packed.seq_above_base(kind_bits) > seq) {
                break;
            }
            let after = key.get_mut(prefix_len..).unwrap_or_default();
            let rest_len = entry.value - entry.rest;
            if key_buffer::copy_suffix(after, entry_head, rest_len, rest).is_none() {
                break;
            }
            // Blocks are shorter than 4 GiB.
            let [value_start, value_end] = [entry.value, end].map(|at| (base + at) as u32);
            let key_len = (prefix_len + entry.suffix_len) as u32;
            *place = Place { key_len, value_start, value_end };
            (head, packed, start) = (entry_head, entry.packed, end);
            count += 1;
        }
        let may_grow = first + count == end;
        stretch.limit = if may_grow { grown(stretch.limit) } else { count.max(COUNT_FIRST) };
        let Some(last) = count.checked_sub(1) else { return false };
        let place = entries.places[last];
        self.key.set_short(&entries.keys[last], place.key_len as usize);
        (self.kind, self.value) = (Some(EntryKind::Value), place.value());
        self.seq = base_seq + packed.seq_above_base(kind_bits);
        (self.head, self.index) = (head, first + last);
        (stretch.at, stretch.count) = (1, count);
        true
    }
}
