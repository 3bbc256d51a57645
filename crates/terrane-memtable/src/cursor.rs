//! A position in a memtable that keeps the memtable alive.

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::btree::BTreePosition;
use crate::entry::{Entry, MAX_SEQ, SeqNo};
use crate::flodb::FloDbPosition;
use crate::hash::{HashPosition, ReadBounds};
use crate::memtable::{Kind, Memtable};
use crate::ordered::ViewPosition;
use crate::pinned::PinnedValue;
use crate::skiplist::ListPosition;

/// Walks a memtable in order: by key, and within a key from new to old.
///
/// A cursor sees all entries that were there when it was last [sought](Cursor::seek), and may see
/// those inserted since, if they lie ahead of it; readers that want a fixed view skip entries above
/// their sequence number.
pub struct Cursor {
    /// A position in this very memtable, by all the methods below.
    position: Position,
    /// What will be asked for.
    range: ReadBounds,
    memtable: Arc<Memtable>,
}

/// A position in one of the kinds, or nowhere.
enum Position {
    Nowhere,
    SkipList(ListPosition),
    BTree(BTreePosition),
    Vector(ViewPosition),
    Hashed(HashPosition),
    FloDb(FloDbPosition),
}

/// Moves to what each kind answers.
macro_rules! seek {
    ($self:ident, $list:ident => $in_list:expr, $tree:ident => $in_tree:expr,
     $vector:ident => $in_vector:expr, $table:ident => $in_table:expr,
     $flodb:ident => $in_flodb:expr) => {
        $self.position = match &$self.memtable.kind {
            Kind::SkipList($list) => Position::SkipList($in_list),
            Kind::BTree($tree) => Position::BTree($in_tree),
            Kind::Vector($vector) => Position::Vector($in_vector),
            Kind::Hashed($table) => Position::Hashed($in_table),
            Kind::FloDb($flodb) => Position::FloDb($in_flodb),
        }
    };
}

impl Cursor {
    pub(crate) fn new(memtable: Arc<Memtable>) -> Self {
        Self { position: Position::Nowhere, range: ReadBounds::default(), memtable }
    }

    pub(crate) fn of_drained(memtable: Arc<Memtable>) -> Self {
        let mut cursor = Self::new(memtable);
        if let Kind::FloDb(flodb) = &cursor.memtable.kind {
            cursor.position = Position::FloDb(FloDbPosition::drained_only(flodb));
        }
        cursor
    }

    /// The memtable.
    pub fn memtable(&self) -> &Arc<Memtable> {
        &self.memtable
    }

    /// Promises that no key before `first` and none from `end` on will be asked for: the cursor
    /// may be off the end where only such keys follow. It lets a hashed memtable answer from one
    /// bucket.
    pub fn limit_to(&mut self, first: Option<&[u8]>, end: Option<&[u8]>) {
        if let Kind::Hashed(_) = &self.memtable.kind {
            self.range = ReadBounds { first: first.map(Into::into), end: end.map(Into::into) };
        }
    }

    /// Whether the cursor is on an entry.
    #[inline]
    pub fn is_valid(&self) -> bool {
        match &self.position {
            Position::Nowhere => false,
            Position::SkipList(position) => position.is_valid(),
            Position::BTree(position) => position.is_valid(),
            Position::Vector(position) => position.is_valid(),
            Position::Hashed(position) => position.is_valid(),
            Position::FloDb(position) => position.is_valid(),
        }
    }

    /// The entry under the cursor.
    #[inline]
    pub fn entry(&self) -> Option<Entry<'_>> {
        match (&self.memtable.kind, &self.position) {
            // SAFETY: the position was made with this list.
            (Kind::SkipList(list), Position::SkipList(position)) => unsafe { position.entry(list) },
            // SAFETY: the position was made with this tree.
            (Kind::BTree(tree), Position::BTree(position)) => unsafe { position.entry(tree) },
            (_, Position::Vector(position)) => position.entry(),
            // SAFETY: the position was made with this table.
            (Kind::Hashed(table), Position::Hashed(position)) => unsafe { position.entry(table) },
            // SAFETY: the position was made with this memtable.
            (Kind::FloDb(flodb), Position::FloDb(position)) => unsafe { position.entry(flodb) },
            _ => None,
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
        let from = self.in_flodb();
        seek!(self, list => ListPosition::first(list), tree => BTreePosition::first(tree),
            vector => vector.first(), table => HashPosition::first(table),
            flodb => from.first(flodb));
    }

    /// Moves to the last entry.
    pub fn seek_last(&mut self) {
        let from = self.in_flodb();
        seek!(self, list => ListPosition::last(list), tree => BTreePosition::last(tree),
            vector => vector.last(), table => HashPosition::last(table),
            flodb => from.last(flodb));
    }

    /// Moves to the first entry at or after `key` as of `seq`: versions of `key` that are newer
    /// than `seq` come before it.
    pub fn seek(&mut self, key: &[u8], seq: SeqNo) {
        let from = self.in_flodb();
        seek!(self, list => ListPosition::at_or_after(list, key, seq),
            tree => BTreePosition::at_or_after(tree, key, seq),
            vector => vector.at_or_after(key, seq),
            table => HashPosition::at_or_after(table, key, seq, &self.range),
            flodb => from.at_or_after(flodb, key, seq));
    }

    /// Moves to the last entry of the keys before `key`.
    pub fn seek_before(&mut self, key: &[u8]) {
        let from = self.in_flodb();
        seek!(self, list => ListPosition::before(list, key, MAX_SEQ),
            tree => BTreePosition::before(tree, key, MAX_SEQ),
            vector => vector.before(key, MAX_SEQ),
            table => HashPosition::before(table, key, MAX_SEQ, &self.range),
            flodb => from.before(flodb, key));
    }

    /// Moves to the next entry; off the end after the last one.
    #[inline]
    pub fn next(&mut self) {
        match (&self.memtable.kind, &mut self.position) {
            (Kind::SkipList(list), Position::SkipList(position)) => {
                // SAFETY: the position was made with this list.
                *position = unsafe { position.next(list) };
            }
            (Kind::BTree(tree), Position::BTree(position)) => {
                // SAFETY: the position was made with this tree.
                *position = unsafe { position.next(tree) };
            }
            (_, Position::Vector(position)) => position.next(),
            (Kind::Hashed(table), Position::Hashed(position)) => {
                // SAFETY: the position was made with this table.
                unsafe { position.next(table, &self.range) };
            }
            (Kind::FloDb(flodb), Position::FloDb(position)) => {
                // SAFETY: the position was made with this memtable.
                *position = unsafe { position.next(flodb) };
            }
            _ => {}
        }
    }

    /// Moves to the first entry of the next key; off the end after the last one.
    #[inline]
    pub fn next_key(&mut self) {
        let Some(key) = self.entry().map(|entry| NonNull::from(entry.key)) else { return };
        // SAFETY: keys lie in the memory of the memtable, which is kept, and are never written
        // again.
        let key: &[u8] = unsafe { key.as_ref() };
        self.next();
        while self.entry().is_some_and(|entry| entry.key == key) {
            self.next();
        }
    }

    /// Moves to the entry before; off the end before the first one.
    pub fn previous(&mut self) {
        match (&self.memtable.kind, &mut self.position) {
            (Kind::SkipList(list), Position::SkipList(position)) => {
                // SAFETY: the position was made with this list.
                *position = unsafe { position.previous(list) };
            }
            (Kind::BTree(tree), Position::BTree(position)) => {
                // SAFETY: the position was made with this tree.
                *position = unsafe { position.previous(tree) };
            }
            (_, Position::Vector(position)) => position.previous(),
            (Kind::Hashed(table), Position::Hashed(position)) => {
                // SAFETY: the position was made with this table.
                unsafe { position.previous(table, &self.range) };
            }
            (Kind::FloDb(flodb), Position::FloDb(position)) => {
                // SAFETY: the position was made with this memtable.
                *position = unsafe { position.previous(flodb) };
            }
            _ => {}
        }
    }

    /// The position in a FloDB memtable, which knows whether it may drain; elsewhere a new one.
    #[inline]
    fn in_flodb(&self) -> FloDbPosition {
        match self.position {
            Position::FloDb(position) => position,
            _ => FloDbPosition::default(),
        }
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("entry", &self.entry()).finish_non_exhaustive()
    }
}
