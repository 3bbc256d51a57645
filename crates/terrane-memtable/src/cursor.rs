//! A position in a memtable that keeps the memtable alive.

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::entry::{Entry, EntryKind, MAX_SEQ, SeqNo};
use crate::kinds::AnyPosition;
use crate::memtable::Memtable;
use crate::pinned::PinnedValue;
use crate::structure::ReadBounds;

/// Walks a memtable in order: by key, and within a key from new to old.
///
/// A cursor visits all entries that were inserted before its last [seek](Cursor::seek), and may
/// visit those inserted since if they lie ahead of it. Readers that want a fixed view skip entries
/// above their sequence number.
pub struct Cursor {
    /// Invariant 1: all calls on the position pass the structure of `memtable`, because neither
    /// field is replaced.
    ///
    /// Dropped before the memtable, which its pin needs.
    position: AnyPosition,
    bounds: ReadBounds,
    /// The entry under the cursor, which readers ask for several times.
    ///
    /// Invariant 2: it is what the position returned after its last move. Its bytes are not in the position itself,
    /// and stay where they are until the next move, because the position would lend them that long.
    current: Option<Current>,
    memtable: Arc<Memtable>,
}

/// An [`Entry`] without its lifetime.
#[derive(Clone, Copy)]
struct Current {
    key: NonNull<[u8]>,
    seq: SeqNo,
    kind: EntryKind,
    value: NonNull<[u8]>,
}

// SAFETY: it is only read as an `Entry`, which is `Send`.
unsafe impl Send for Current {}
// SAFETY: see above.
unsafe impl Sync for Current {}

impl Cursor {
    pub(crate) fn new(memtable: Arc<Memtable>) -> Self {
        let position = AnyPosition::new(&memtable.structure);
        Self { position, bounds: ReadBounds::default(), current: None, memtable }
    }

    /// Restores invariant 2 after a move.
    #[inline]
    fn moved(&mut self) {
        // SAFETY: the position belongs to this structure (invariant 1).
        let entry = unsafe { self.position.entry(&self.memtable.structure) };
        self.current = entry.map(|Entry { key, seq, kind, value }| Current {
            key: NonNull::from(key),
            seq,
            kind,
            value: NonNull::from(value),
        });
    }

    /// Returns the memtable.
    pub fn memtable(&self) -> &Arc<Memtable> {
        &self.memtable
    }

    /// Promises that no key before `first` and no key from `end` on is read: the cursor may be
    /// off the end once no key within these bounds follows. It lets a hashed memtable answer from
    /// one bucket.
    pub fn limit_to(&mut self, first: Option<&[u8]>, end: Option<&[u8]>) {
        if self.position.uses_bounds() {
            self.bounds = ReadBounds { first: first.map(Into::into), end: end.map(Into::into) };
        }
    }

    /// Walks only entries behind the [front level](Memtable::front_level) from now on, and drains
    /// nothing. Call it before the first seek.
    pub fn skip_front_level(&mut self) {
        self.position.skip_front_level(&self.memtable.structure);
        self.moved();
    }

    /// Returns whether the cursor is on an entry.
    #[inline]
    pub fn is_valid(&self) -> bool {
        self.current.is_some()
    }

    /// Returns the entry under the cursor.
    #[inline]
    pub fn entry(&self) -> Option<Entry<'_>> {
        let Current { key, seq, kind, value } = self.current?;
        // SAFETY: the cursor has not moved (invariant 2), and cannot while it is borrowed.
        let key = unsafe { key.as_ref() };
        // SAFETY: see above.
        let value = unsafe { value.as_ref() };
        Some(Entry { key, seq, kind, value })
    }

    /// Returns the value under the cursor, kept alive without being copied.
    pub fn pin_value(&self) -> Option<PinnedValue> {
        let entry = self.entry()?;
        // SAFETY: the entry lies in this memtable, and its structure returned the pin that keeps it
        // from being refilled, or none if it is never refilled.
        Some(unsafe { PinnedValue::with_pin(&self.memtable, entry.value, self.position.pin()) })
    }

    /// Moves to the first entry.
    pub fn seek_first(&mut self) {
        self.position.seek_first(&self.memtable.structure);
        self.moved();
    }

    /// Moves to the last entry.
    pub fn seek_last(&mut self) {
        self.position.seek_last(&self.memtable.structure);
        self.moved();
    }

    /// Moves to the first entry at or after `key` as of `seq`: versions of `key` that are newer
    /// than `seq` come before it.
    pub fn seek(&mut self, key: &[u8], seq: SeqNo) {
        self.position.seek(&self.memtable.structure, key, seq, &self.bounds);
        self.moved();
    }

    /// Moves to the last entry of the keys before `key`.
    pub fn seek_before(&mut self, key: &[u8]) {
        self.position.seek_before(&self.memtable.structure, key, MAX_SEQ, &self.bounds);
        self.moved();
    }

    /// Moves to the next entry, or off the end after the last entry.
    #[inline]
    pub fn next(&mut self) {
        // SAFETY: the position belongs to this structure (invariant 1).
        unsafe { self.position.next(&self.memtable.structure, &self.bounds) };
        self.moved();
    }

    /// Moves to the first entry of the next key, or off the end after the last key.
    #[inline]
    pub fn next_key(&mut self) {
        let Some(key) = self.entry().map(|entry| NonNull::from(entry.key)) else { return };
        let _pin = self.position.pin();
        // SAFETY: the key lies in the memtable, which `self` keeps alive. Its entry is either never
        // refilled, or not while the pin exists.
        let key: &[u8] = unsafe { key.as_ref() };
        self.next();
        while self.entry().is_some_and(|entry| entry.key == key) {
            self.next();
        }
    }

    /// Moves to the previous entry, or off the end before the first entry.
    pub fn previous(&mut self) {
        // SAFETY: the position belongs to this structure (invariant 1).
        unsafe { self.position.previous(&self.memtable.structure, &self.bounds) };
        self.moved();
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("entry", &self.entry()).finish_non_exhaustive()
    }
}
