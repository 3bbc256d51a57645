//! Builds data blocks.

use super::sizes::Sizes;
use super::{HEAD_BYTES, WIDE_OFFSETS, head_of_suffix, kind_bits_of};
use crate::base::codec::put_varint;
use crate::base::types::{EntryKind, SeqNo};

/// Collects sorted entries and encodes them as a block.
#[derive(Debug, Default)]
pub(crate) struct BlockBuilder {
    entries: Vec<Pending>,
    /// Keys and values, one after the other.
    bytes: Vec<u8>,
    sizes: Sizes,
}

#[derive(Debug, Clone, Copy)]
struct Pending {
    start: usize,
    key_len: usize,
    value_len: usize,
    seq: SeqNo,
    kind: EntryKind,
}

impl BlockBuilder {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns an upper bound of the size of the block, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.sizes.bound()
    }

    /// Returns the key added last.
    pub(crate) fn last_key(&self) -> Option<&[u8]> {
        self.entries.last().map(|entry| self.key(entry))
    }

    /// Adds an entry after all others.
    pub(crate) fn add(&mut self, key: &[u8], seq: SeqNo, kind: EntryKind, value: &[u8]) {
        self.add_within(usize::MAX, key, seq, kind, value);
    }

    /// Does the same if the block is then at most `size_max` bytes long; returns false otherwise.
    pub(crate) fn add_within(
        &mut self,
        size_max: usize,
        key: &[u8],
        seq: SeqNo,
        kind: EntryKind,
        value: &[u8],
    ) -> bool {
        let first = self.entries.first().map(|entry| self.key(entry));
        let sizes = self.sizes.with(first, (key, seq), kind, value.len());
        if sizes.bound() > size_max {
            return false;
        }
        self.sizes = sizes;
        let (key_len, value_len) = (key.len(), value.len());
        self.entries.push(Pending { start: self.bytes.len(), key_len, value_len, seq, kind });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        true
    }

    fn key(&self, entry: &Pending) -> &[u8] {
        &self.bytes[entry.start..entry.start + entry.key_len]
    }

    fn value(&self, entry: &Pending) -> &[u8] {
        let start = entry.start + entry.key_len;
        &self.bytes[start..start + entry.value_len]
    }

    /// Appends the block to `out` and starts over. At least one entry must have been added.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        let Sizes { prefix_len, smallest_seq, largest_kind, .. } = self.sizes;
        let wide = self.sizes.is_wide();
        let (kind_bits, wide_kinds) = kind_bits_of(largest_kind);
        let shape = prefix_len as u32 | wide_kinds | if wide { WIDE_OFFSETS } else { 0 };
        out.extend_from_slice(&(self.entries.len() as u32).to_le_bytes());
        out.extend_from_slice(&shape.to_le_bytes());
        for entry in &self.entries {
            let suffix = &self.key(entry)[prefix_len..];
            out.extend_from_slice(&head_of_suffix(suffix).to_le_bytes());
        }
        let offsets = out.len();
        out.resize(offsets + self.entries.len() * if wide { 4 } else { 2 }, 0);
        put_varint(out, smallest_seq);
        if let Some(first) = self.entries.first() {
            out.extend_from_slice(&self.key(first)[..prefix_len]);
        }
        let start = out.len();
        for (index, entry) in self.entries.iter().enumerate() {
            let offset = out.len() - start;
            if wide {
                let at = offsets + index * 4;
                out[at..at + 4].copy_from_slice(&(offset as u32).to_le_bytes());
            } else {
                let at = offsets + index * 2;
                out[at..at + 2].copy_from_slice(&(offset as u16).to_le_bytes());
            }
            let suffix = &self.key(entry)[prefix_len..];
            let seq = entry.seq - smallest_seq;
            put_entry_head(out, seq << kind_bits | entry.kind as u64, suffix);
            out.extend_from_slice(self.value(entry));
        }
        self.entries.clear();
        self.bytes.clear();
        self.sizes = Sizes::default();
    }

    /// Appends a block with one entry, except for the value of the entry, which the caller writes
    /// after it. This avoids copying a large value into a block first.
    pub(crate) fn single(key: &[u8], seq: SeqNo, kind: EntryKind, out: &mut Vec<u8>) {
        out.extend_from_slice(&1u32.to_le_bytes());
        let (_, wide_kinds) = kind_bits_of(kind);
        out.extend_from_slice(&(key.len() as u32 | WIDE_OFFSETS | wide_kinds).to_le_bytes());
        out.extend_from_slice(&head_of_suffix(&[]).to_le_bytes());
        out.extend_from_slice(&0u32.to_le_bytes());
        put_varint(out, seq);
        out.extend_from_slice(key);
        put_entry_head(out, kind as u64, &[]);
    }
}

/// Appends the part of an entry before its value.
fn put_entry_head(out: &mut Vec<u8>, seq_and_kind: u64, suffix: &[u8]) {
    put_varint(out, seq_and_kind);
    put_varint(out, suffix.len() as u64);
    out.extend_from_slice(suffix.get(HEAD_BYTES..).unwrap_or_default());
}
