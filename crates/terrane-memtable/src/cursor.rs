//! A position in a memtable that keeps the memtable alive.

use std::sync::Arc;

use crate::entry::{Entry, MAX_SEQ, SeqNo};
use crate::memtable::{Kind, Memtable};
use crate::pinned::PinnedValue;
use crate::skiplist::Position;

/// Walks a memtable in order: by key, and within a key from new to old.
///
/// A cursor sees entries that are inserted while it is in use, if they lie ahead of it; readers
/// that want a fixed view skip entries above their sequence number. Stepping back costs a search.
#[derive(Debug)]
pub struct Cursor {
    memtable: Arc<Memtable>,
    /// A position in this very memtable, by all the methods below.
    position: Position,
}

impl Cursor {
    pub(crate) fn new(memtable: Arc<Memtable>) -> Self {
        Self { memtable, position: Position::default() }
    }

    /// The memtable.
    pub fn memtable(&self) -> &Arc<Memtable> {
        &self.memtable
    }

    /// Whether the cursor is on an entry.
    #[inline]
    pub fn is_valid(&self) -> bool {
        self.position.is_valid()
    }

    /// The entry under the cursor.
    #[inline]
    pub fn entry(&self) -> Option<Entry<'_>> {
        match &self.memtable.kind {
            // SAFETY: the position was made with this list.
            Kind::SkipList(list) => unsafe { self.position.entry(list) },
        }
    }

    /// The value under the cursor, kept alive without being copied.
    pub fn pin_value(&self) -> Option<PinnedValue> {
        let entry = self.entry()?;
        // SAFETY: the entry is one of this memtable's.
        Some(unsafe { PinnedValue::new(&self.memtable, entry.value) })
    }

    /// Moves to the first entry.
    pub fn seek_first(&mut self) {
        self.position = match &self.memtable.kind {
            Kind::SkipList(list) => Position::first(list),
        };
    }

    /// Moves to the last entry.
    pub fn seek_last(&mut self) {
        self.position = match &self.memtable.kind {
            Kind::SkipList(list) => Position::last(list),
        };
    }

    /// Moves to the first entry at or after `key` as of `seq`: versions of `key` that are newer
    /// than `seq` come before it.
    pub fn seek(&mut self, key: &[u8], seq: SeqNo) {
        self.position = match &self.memtable.kind {
            Kind::SkipList(list) => Position::at_or_after(list, key, seq),
        };
    }

    /// Moves to the last entry of the keys before `key`.
    pub fn seek_before(&mut self, key: &[u8]) {
        self.position = match &self.memtable.kind {
            Kind::SkipList(list) => Position::before(list, key, MAX_SEQ),
        };
    }

    /// Moves to the next entry; off the end after the last one.
    #[inline]
    pub fn next(&mut self) {
        self.position = match &self.memtable.kind {
            // SAFETY: the position was made with this list.
            Kind::SkipList(list) => unsafe { self.position.next(list) },
        };
    }

    /// Moves to the entry before; off the end before the first one.
    pub fn previous(&mut self) {
        self.position = match &self.memtable.kind {
            // SAFETY: the position was made with this list.
            Kind::SkipList(list) => unsafe { self.position.previous(list) },
        };
    }
}
