//! Builds data blocks.

use super::{HEAD_BYTES, WIDE_KINDS, WIDE_OFFSETS, head_of_suffix};
use crate::codec::{put_varint, varint_len};
use crate::types::{EntryKind, SeqNo};

/// The header, and an entry's share of the arrays with narrow offsets.
const HEADER_BYTES: usize = 8;
const ARRAY_BYTES: usize = HEAD_BYTES + 2;

/// Collects sorted entries and encodes them as a block.
#[derive(Debug, Default)]
pub(crate) struct BlockBuilder {
    entries: Vec<Pending>,
    /// Keys and values, one after the other.
    bytes: Vec<u8>,
    /// An upper bound of the size of the block.
    size: usize,
    smallest_seq: SeqNo,
    /// The length of the prefix that all keys share.
    prefix_len: usize,
    /// True if the value of some entry is apart.
    has_apart: bool,
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
        self.size
    }

    /// Returns the maximum number of bytes that an entry adds.
    pub(crate) fn entry_size(key: &[u8], value: &[u8]) -> usize {
        // The difference between the sequence number and the base, together with the kind, has at
        // most 58 bits. As a varint it takes at most 9 bytes.
        ARRAY_BYTES + 9 + varint_len(key.len() as u64) + key.len() + value.len()
    }

    /// Returns the key added last.
    pub(crate) fn last_key(&self) -> Option<&[u8]> {
        self.entries.last().map(|entry| self.key(entry))
    }

    /// Adds an entry after all others.
    pub(crate) fn add(&mut self, key: &[u8], seq: SeqNo, kind: EntryKind, value: &[u8]) {
        match self.entries.first() {
            None => {
                self.prefix_len = key.len();
                self.smallest_seq = seq;
                self.size = HEADER_BYTES + 9;
            }
            Some(first) => {
                let first = &self.key(first)[..self.prefix_len];
                self.prefix_len = first.iter().zip(key).take_while(|(a, b)| a == b).count();
                self.smallest_seq = self.smallest_seq.min(seq);
            }
        }
        self.has_apart |= kind == EntryKind::Apart;
        self.size += Self::entry_size(key, value);
        let (key_len, value_len) = (key.len(), value.len());
        self.entries.push(Pending { start: self.bytes.len(), key_len, value_len, seq, kind });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
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
        // Offsets are below the size, which counts every byte of the entries.
        let wide = self.size > usize::from(u16::MAX);
        let (kind_bits, wide_kinds) = kind_bits(self.has_apart);
        let shape = self.prefix_len as u32 | wide_kinds | if wide { WIDE_OFFSETS } else { 0 };
        out.extend_from_slice(&(self.entries.len() as u32).to_le_bytes());
        out.extend_from_slice(&shape.to_le_bytes());
        for entry in &self.entries {
            let suffix = &self.key(entry)[self.prefix_len..];
            out.extend_from_slice(&head_of_suffix(suffix).to_le_bytes());
        }
        let offsets = out.len();
        out.resize(offsets + self.entries.len() * if wide { 4 } else { 2 }, 0);
        put_varint(out, self.smallest_seq);
        if let Some(first) = self.entries.first() {
            out.extend_from_slice(&self.key(first)[..self.prefix_len]);
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
            let suffix = &self.key(entry)[self.prefix_len..];
            let seq = entry.seq - self.smallest_seq;
            put_entry_head(out, seq << kind_bits | entry.kind as u64, suffix);
            out.extend_from_slice(self.value(entry));
        }
        self.entries.clear();
        self.bytes.clear();
        self.size = 0;
        self.has_apart = false;
    }

    /// Appends a block with one entry, except for the value of the entry, which the caller writes
    /// after it. A large value then need not be copied into a block first.
    pub(crate) fn single(key: &[u8], seq: SeqNo, kind: EntryKind, out: &mut Vec<u8>) {
        out.extend_from_slice(&1u32.to_le_bytes());
        let (_, wide_kinds) = kind_bits(kind == EntryKind::Apart);
        out.extend_from_slice(&(key.len() as u32 | WIDE_OFFSETS | wide_kinds).to_le_bytes());
        out.extend_from_slice(&head_of_suffix(&[]).to_le_bytes());
        out.extend_from_slice(&0u32.to_le_bytes());
        put_varint(out, seq);
        out.extend_from_slice(key);
        put_entry_head(out, kind as u64, &[]);
    }
}

/// Returns the number of bits of a kind, and the flag that states it.
fn kind_bits(has_apart: bool) -> (u32, u32) {
    if has_apart { (2, WIDE_KINDS) } else { (1, 0) }
}

/// Appends the part of an entry before its value.
fn put_entry_head(out: &mut Vec<u8>, seq_and_kind: u64, suffix: &[u8]) {
    put_varint(out, seq_and_kind);
    put_varint(out, suffix.len() as u64);
    out.extend_from_slice(suffix.get(HEAD_BYTES..).unwrap_or_default());
}
