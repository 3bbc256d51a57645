//! A cursor over a data block. It pins the block.

use std::ops::Range;

use super::{Block, Layout};
use crate::block_ref::BlockRef;
use crate::codec::Decoded;
use crate::types::{EntryKind, SeqNo};
use crate::value::Value;

/// A cursor over the entries of one block, in both directions.
///
/// It assembles the key of the current entry in a buffer and decodes the parts once, so that
/// accessors cost nothing.
#[derive(Debug, Default)]
pub(crate) struct BlockCursor {
    block: Option<BlockRef>,
    layout: Layout,
    /// The index of the current entry; [`Layout::count`] if the cursor is not on an entry.
    index: usize,
    /// The key of the current entry. It always begins with the prefix of the block.
    key: Vec<u8>,
    seq: SeqNo,
    kind: Option<EntryKind>,
    value: Range<usize>,
}

impl BlockCursor {
    /// Selects another block; the cursor is then not on an entry.
    pub(crate) fn set(&mut self, block: BlockRef) -> Decoded<()> {
        self.kind = None;
        self.layout = Layout::parse(&block)?;
        self.index = self.layout.count;
        self.key.clear();
        self.key.extend_from_slice(Block::new(&block, &self.layout).prefix());
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
        &self.key
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
        let pin = |block| Value::of_block(block, self.value.clone());
        self.block.as_ref().map_or_else(Value::empty, pin)
    }

    pub(crate) fn seek_first(&mut self) -> Decoded<()> {
        self.go_to(0)
    }

    pub(crate) fn seek_last(&mut self) -> Decoded<()> {
        self.go_to(self.layout.count.saturating_sub(1))
    }

    /// Moves to the first entry at or after `(key, seq)`.
    pub(crate) fn seek(&mut self, key: &[u8], seq: SeqNo) -> Decoded<()> {
        let Some(block) = &self.block else { return Ok(()) };
        let index = Block::new(block, &self.layout).search(key, seq)?;
        self.go_to(index)
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Decoded<()> {
        self.go_to(self.index + 1)
    }

    /// Moves forward to the first entry of the block that does not have the current key.
    #[inline]
    pub(crate) fn next_key(&mut self) -> Decoded<()> {
        let Some(bytes) = &self.block else { return Ok(()) };
        let block = Block::new(bytes, &self.layout);
        let mut index = self.index + 1;
        while index < self.layout.count && block.same_key(self.index, index)? {
            index += 1;
        }
        self.go_to(index)
    }

    pub(crate) fn previous(&mut self) -> Decoded<()> {
        match self.index {
            0 => {
                self.kind = None;
                Ok(())
            }
            index => self.go_to(index - 1),
        }
    }

    #[inline]
    fn go_to(&mut self, index: usize) -> Decoded<()> {
        self.kind = None;
        let Some(bytes) = &self.block else { return Ok(()) };
        if index >= self.layout.count {
            self.index = self.layout.count;
            return Ok(());
        }
        let block = Block::new(bytes, &self.layout);
        let entry = block.entry(index)?;
        entry.write_suffix(self.layout.prefix.len(), &mut self.key);
        self.index = index;
        self.seq = entry.seq;
        self.value = entry.value_start..entry.value_start + entry.value.len();
        self.kind = Some(entry.kind);
        Ok(())
    }
}
