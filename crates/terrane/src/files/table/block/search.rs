//! Searches in a block: among the heads, then among the entries with the head of the key.

use std::cmp::Ordering::{self, Less};

use terrane_memtable::prefetch_lines;

use super::heads::{HEAD_BYTES, head_of_suffix, lower_bound};
use super::{Block, RawEntry};
use crate::base::bytes::{after_prefix, is_same};
use crate::base::codec::Decoded;
use crate::base::types::SeqNo;

/// The number of cache lines of an entry to prefetch: its key and the start of its value.
const ENTRY_LINES: usize = 3;

impl<'a> Block<'a> {
    /// Returns the part of a key after the prefix of the block. For a key without the prefix, returns the
    /// index of the first entry above it.
    #[inline(always)]
    fn suffix_of<'k>(&self, key: &'k [u8]) -> Result<&'k [u8], usize> {
        after_prefix(key, self.prefix()).ok_or_else(|| self.beside_prefix(key))
    }

    #[cold]
    fn beside_prefix(&self, key: &[u8]) -> usize {
        if *key < *self.prefix() { 0 } else { self.len() }
    }

    /// Returns the index of the first entry whose head is not below the head of `key`. Reads no entry, so that
    /// a caller can prefetch it.
    #[inline]
    pub(in crate::files::table) fn narrow(&self, key: &[u8]) -> usize {
        match self.suffix_of(key) {
            Ok(suffix) => lower_bound(self.heads(), head_of_suffix(suffix)),
            Err(index) => index,
        }
    }

    /// Returns the index of the first entry at or after `(key, seq)`; [`Block::len`] if there is
    /// none. `low` is what [`Block::narrow`] returned for the same key.
    #[inline]
    pub(in crate::files::table) fn search_from(
        &self,
        low: usize,
        key: &[u8],
        seq: SeqNo,
    ) -> Decoded<usize> {
        match self.suffix_of(key) {
            Ok(suffix) => self.search_among(low, (head_of_suffix(suffix), suffix), seq),
            Err(_) => Ok(low),
        }
    }

    /// Does the same for the part of a key after the prefix of the block.
    #[inline(always)]
    fn search_among(
        &self,
        mut low: usize,
        (head, suffix): (u32, &[u8]),
        seq: SeqNo,
    ) -> Decoded<usize> {
        // Entries with the same head are ordered by the rest of the key.
        let mut high = match (self.has_head(low, head), self.has_head(low + 1, head)) {
            (false, _) => low,
            (true, false) => low + 1,
            (true, true) => {
                head.checked_add(1).map_or(self.len(), |next| lower_bound(self.heads(), next))
            }
        };
        while low < high {
            let middle = low.midpoint(high);
            if self.hot_entry(middle)?.compare(head, suffix, seq) == Less {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    #[inline]
    fn has_head(&self, index: usize, head: u32) -> bool {
        index < self.len() && self.head(index) == head
    }

    /// Returns the first entry at or after `(key, seq)` if it has the key `key`. `low` is what
    /// [`Block::narrow`] returned for the same key, if it was called.
    ///
    /// # Errors
    /// The block is damaged, or its entries are out of order. In that case the search can end at an entry newer
    /// than `seq`, which a reader at `seq` must not see.
    #[inline]
    pub(in crate::files::table) fn find(
        &self,
        low: Option<usize>,
        key: &[u8],
        seq: SeqNo,
    ) -> Decoded<Option<RawEntry<'a>>> {
        let Ok(suffix) = self.suffix_of(key) else { return Ok(None) };
        let head = head_of_suffix(suffix);
        let low = low.unwrap_or_else(|| {
            let low = lower_bound(self.heads(), head);
            self.prefetch_at(low);
            low
        });
        if !self.has_head(low, head) {
            return Ok(None);
        }
        if self.has_head(low + 1, head) {
            return self.find_among(low, (head, suffix), seq);
        }
        // Most keys have a head of their own, and one version.
        let entry = self.hot_entry(low)?;
        Ok((entry.seq <= seq && entry.has_suffix(head, suffix)).then_some(entry))
    }

    /// Does the same among several entries with the head of the key.
    #[inline(never)]
    fn find_among(
        &self,
        low: usize,
        (head, suffix): (u32, &[u8]),
        seq: SeqNo,
    ) -> Decoded<Option<RawEntry<'a>>> {
        let index = self.search_among(low, (head, suffix), seq)?;
        if index == self.len() {
            return Ok(None);
        }
        let entry = self.hot_entry(index)?;
        if !entry.has_suffix(head, suffix) {
            return Ok(None);
        }
        if entry.seq > seq {
            return Err(self.error("sequence number of an entry", self.layout.heads));
        }
        Ok(Some(entry))
    }

    /// Prefetches the first entry at or after `key`, as estimated from the heads. Returns what
    /// [`Block::narrow`] returns.
    pub(in crate::files::table) fn prefetch(&self, key: &[u8]) -> usize {
        let low = self.narrow(key);
        let start = self.offset(low);
        let entries = self.bytes.get(self.layout.entries.clone()).unwrap_or_default();
        prefetch_lines(
            start.and_then(|start| entries.get(start..)).unwrap_or_default(),
            ENTRY_LINES,
        );
        low
    }
}

impl RawEntry<'_> {
    /// Compares this entry with `(suffix, seq)`, whose head is `head`.
    #[inline]
    fn compare(&self, head: u32, suffix: &[u8], seq: SeqNo) -> Ordering {
        let rest = suffix.get(HEAD_BYTES..).unwrap_or_default();
        // Heads are padded with zeros, so among equal heads the shorter suffix is smaller.
        self.head
            .cmp(&head)
            .then_with(|| self.rest.cmp(rest))
            .then_with(|| self.suffix_len.cmp(&suffix.len()))
            .then_with(|| seq.cmp(&self.seq))
    }

    /// Returns true if the entry has the suffix, whose head is `head`.
    #[inline]
    fn has_suffix(&self, head: u32, suffix: &[u8]) -> bool {
        suffix.len() == self.suffix_len
            && head == self.head
            && is_same(suffix.get(HEAD_BYTES..).unwrap_or_default(), self.rest)
    }
}
