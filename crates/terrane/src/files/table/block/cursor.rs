//! A cursor over a data block. It pins the block.

use std::ops::Range;

use super::key_buffer::KeyBuffer;
use super::{Block, Layout};
use crate::base::codec::Decoded;
use crate::base::types::{EntryKind, SeqNo};
use crate::files::buffer::BlockRef;
use crate::files::value::Value;

/// The number of entries that a cursor prefetches ahead of the current one: each is a cache miss,
/// and they arrive in parallel.
const ENTRIES_AHEAD: usize = 4;

/// A cursor over the entries of one block, in both directions.
///
/// It assembles the key of the current entry in a buffer and decodes the parts once, so that
/// accessors cost nothing.
#[derive(Debug, Default)]
pub(crate) struct BlockCursor {
    pub(super) block: Option<BlockRef>,
    pub(super) layout: Layout,
    /// The index of the current entry; [`Layout::count`] if the cursor is not on an entry.
    pub(super) index: usize,
    /// The key of the current entry. It always begins with the prefix of the block.
    pub(super) key: KeyBuffer,
    /// The first four bytes of the suffix of the key, as in the block.
    pub(super) head: u32,
    pub(super) seq: SeqNo,
    pub(super) kind: Option<EntryKind>,
    pub(super) value: Range<usize>,
}

impl BlockCursor {
    /// Selects another block; the cursor is then not on an entry.
    pub(crate) fn set(&mut self, block: BlockRef) -> Decoded<()> {
        self.kind = None;
        self.layout = Layout::parse(&block)?;
        self.index = self.layout.count;
        self.key.set_prefix(Block::new(&block, &self.layout).prefix());
        self.block = Some(block);
        Ok(())
    }

    /// Releases the block.
    pub(crate) fn clear(&mut self) {
        self.block = None;
        self.kind = None;
    }

    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        self.kind.is_some()
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        self.key.as_slice()
    }

    /// Returns the first eight bytes of the key, as in [`terrane_memtable::head_of`].
    #[inline]
    pub(crate) fn head(&self) -> u64 {
        self.key.head()
    }

    /// Returns the number of entries from the current one to the end of the block.
    #[inline]
    pub(crate) fn remaining(&self) -> usize {
        self.layout.count - self.index
    }

    #[inline]
    pub(crate) fn seq(&self) -> SeqNo {
        self.seq
    }

    #[inline]
    pub(crate) fn kind(&self) -> EntryKind {
        self.kind.unwrap_or(EntryKind::Tombstone)
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        self.block.as_ref().and_then(|block| block.get(self.value.clone())).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn pin_value(&self) -> Value {
        let pin = |block: &BlockRef| Value::of_block(block.view(), self.value.clone());
        self.block.as_ref().map_or_else(Value::empty, pin)
    }

    /// Calls `visit` with the encoded pointer of each separated value among the `count` entries after the current one.
    pub(crate) fn separated_after(&self, count: usize, mut visit: impl FnMut(Value)) {
        let Some(bytes) = &self.block else { return };
        let block = Block::new(bytes, &self.layout);
        for index in (self.index + 1..block.len()).take(count) {
            // A damaged entry is reported when the cursor comes to it.
            let Ok(entry) = block.hot_entry(index) else { return };
            if entry.kind == EntryKind::Separated {
                let place = entry.value_start..entry.value_start + entry.value.len();
                visit(Value::of_block(bytes.view(), place));
            }
        }
    }

    pub(crate) fn seek_first(&mut self) -> Decoded<()> {
        if let Some(block) = &self.block {
            let block = Block::new(block, &self.layout);
            (1..=ENTRIES_AHEAD).for_each(|index| block.prefetch_at(index));
        }
        self.go_to(0)
    }

    pub(crate) fn seek_last(&mut self) -> Decoded<()> {
        let last = self.layout.count.saturating_sub(1);
        if let Some(block) = &self.block {
            let block = Block::new(block, &self.layout);
            (last.saturating_sub(ENTRIES_AHEAD)..last).for_each(|index| block.prefetch_at(index));
        }
        self.go_to(last)
    }

    /// Prefetches the first entries at or after `key`. Returns `low` for [`BlockCursor::seek_from`].
    pub(crate) fn narrow(&self, key: &[u8]) -> usize {
        let Some(block) = &self.block else { return 0 };
        let block = Block::new(block, &self.layout);
        let low = block.narrow(key);
        (low..=low + ENTRIES_AHEAD).for_each(|index| block.prefetch_at(index));
        low
    }

    /// Moves to the first entry at or after `(key, seq)`. `low` is what [`BlockCursor::narrow`]
    /// returned for the same key.
    pub(crate) fn seek_from(&mut self, low: usize, key: &[u8], seq: SeqNo) -> Decoded<()> {
        let Some(block) = &self.block else { return Ok(()) };
        let index = Block::new(block, &self.layout).search_from(low, key, seq)?;
        self.go_to(index)
    }

    /// Moves to the first entry at or after `(key, seq)`.
    pub(crate) fn seek(&mut self, key: &[u8], seq: SeqNo) -> Decoded<()> {
        let low = self.narrow(key);
        self.seek_from(low, key, seq)
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Decoded<()> {
        self.walk(|_, index| Ok(index + 1), |index| index + ENTRIES_AHEAD)
    }

    /// Moves forward to the first entry of the block that does not have the current key.
    // Inlined up to `Iter::advance`, because this is the inner loop of scans of several sources, and results
    // would otherwise pass through memory at each call.
    #[inline(always)]
    pub(crate) fn next_key(&mut self) -> Decoded<()> {
        let head = self.head;
        let next = |block: Block<'_>, current: usize| {
            let mut index = current + 1;
            while index < block.len()
                && block.head(index) == head
                && block.same_rest(current, index)?
            {
                index += 1;
            }
            Ok(index)
        };
        self.walk(next, |index| index + ENTRIES_AHEAD)
    }

    /// Moves `count` entries back after [`BlockCursor::stretch`].
    pub(crate) fn step_back(&mut self, count: usize) -> Decoded<()> {
        self.go_to(self.index.saturating_sub(count))
    }

    pub(crate) fn previous(&mut self) -> Decoded<()> {
        if self.index == 0 {
            self.kind = None;
            return Ok(());
        }
        self.walk(|_, index| Ok(index - 1), |index| index.saturating_sub(ENTRIES_AHEAD))
    }

    /// Moves to the entry at `index`, or off the end.
    pub(crate) fn go_to(&mut self, index: usize) -> Decoded<()> {
        self.walk(|_, _| Ok(index), |index| index)
    }

    /// Moves to the entry whose index `next` computes from the current one, or off the end, and
    /// prefetches the entry at the index that `ahead` computes from the new one.
    #[inline(always)]
    fn walk(
        &mut self,
        next: impl FnOnce(Block<'_>, usize) -> Decoded<usize>,
        ahead: impl FnOnce(usize) -> usize,
    ) -> Decoded<()> {
        self.kind = None;
        let Some(bytes) = self.block.as_deref() else { return Ok(()) };
        let block = Block::new(bytes, &self.layout);
        let index = next(block, self.index)?;
        if index >= block.len() {
            self.index = block.len();
            return Ok(());
        }
        block.prefetch_at(ahead(index));
        let entry = block.hot_entry(index)?;
        let rest = bytes.get(entry.rest_start..).unwrap_or_default();
        let key_head = self.key.head_with(entry.head, entry.suffix_len, rest);
        self.key.set_suffix(key_head, entry.head, entry.suffix_len, rest);
        self.head = entry.head;
        self.index = index;
        self.seq = entry.seq;
        self.value = entry.value_start..entry.value_start + entry.value.len();
        self.kind = Some(entry.kind);
        Ok(())
    }
}
