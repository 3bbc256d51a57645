//! A position in a memtable that keeps the memtable alive.

use std::sync::Arc;

use crate::btree::Position as BTreePosition;
use crate::entry::{Entry, MAX_SEQ, SeqNo};
use crate::flodb::Position as FloDbPosition;
use crate::memtable::{Kind, Memtable};
use crate::pinned::PinnedValue;
use crate::skiplist::Position as SkipListPosition;

/// Walks a memtable in order: by key, and within a key from new to old.
///
/// A cursor sees entries that are inserted while it is in use, if they lie ahead of it; readers
/// that want a fixed view skip entries above their sequence number.
#[derive(Debug)]
pub struct Cursor {
    /// A position in this very memtable, by all the methods below.
    position: Position,
    memtable: Arc<Memtable>,
}

/// A position in one of the kinds.
#[derive(Debug, Clone, Copy)]
enum Position {
    SkipList(SkipListPosition),
    BTree(BTreePosition),
    FloDb(FloDbPosition),
}

/// What a kind and its positions offer; each step is given both together.
macro_rules! step {
    ($self:ident, $list:ident, $tree:ident, $flodb:ident =>
        $in_list:expr, $in_tree:expr, $in_flodb:expr) => {
        $self.position = match &$self.memtable.kind {
            Kind::SkipList($list) => Position::SkipList($in_list),
            Kind::BTree($tree) => Position::BTree($in_tree),
            Kind::FloDb($flodb) => Position::FloDb($in_flodb),
        }
    };
}

fn key_of<'a>(entry: Entry<'a>) -> &'a [u8] {
    entry.key
}

impl Cursor {
    pub(crate) fn new(memtable: Arc<Memtable>) -> Self {
        let position = match &memtable.kind {
            Kind::SkipList(_) => Position::SkipList(SkipListPosition::default()),
            Kind::BTree(_) => Position::BTree(BTreePosition::default()),
            Kind::FloDb(_) => Position::FloDb(FloDbPosition::default()),
        };
        Self { position, memtable }
    }

    pub(crate) fn of_drained(memtable: Arc<Memtable>) -> Self {
        let mut cursor = Self::new(memtable);
        if let Kind::FloDb(flodb) = &cursor.memtable.kind {
            cursor.position = Position::FloDb(FloDbPosition::of_drained(flodb));
        }
        cursor
    }

    /// The memtable.
    pub fn memtable(&self) -> &Arc<Memtable> {
        &self.memtable
    }

    /// Whether the cursor is on an entry.
    #[inline]
    pub fn is_valid(&self) -> bool {
        match self.position {
            Position::SkipList(position) => position.is_valid(),
            Position::BTree(position) => position.is_valid(),
            Position::FloDb(position) => position.is_valid(),
        }
    }

    /// The entry under the cursor.
    #[inline]
    pub fn entry(&self) -> Option<Entry<'_>> {
        self.entry_at(self.position)
    }

    /// The entry at a position that this cursor has, or had.
    #[inline]
    fn entry_at(&self, position: Position) -> Option<Entry<'_>> {
        match (&self.memtable.kind, position) {
            // SAFETY: the position was made with this list.
            (Kind::SkipList(list), Position::SkipList(position)) => unsafe { position.entry(list) },
            // SAFETY: the position was made with this tree.
            (Kind::BTree(tree), Position::BTree(position)) => unsafe { position.entry(tree) },
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
        step!(self, list, tree, flodb => SkipListPosition::first(list), BTreePosition::first(tree),
            from.first(flodb));
    }

    /// Moves to the last entry.
    pub fn seek_last(&mut self) {
        let from = self.in_flodb();
        step!(self, list, tree, flodb => SkipListPosition::last(list), BTreePosition::last(tree),
            from.last(flodb));
    }

    /// Moves to the first entry at or after `key` as of `seq`: versions of `key` that are newer
    /// than `seq` come before it.
    pub fn seek(&mut self, key: &[u8], seq: SeqNo) {
        let from = self.in_flodb();
        step!(self, list, tree, flodb => SkipListPosition::at_or_after(list, key, seq),
            BTreePosition::at_or_after(tree, key, seq), from.at_or_after(flodb, key, seq));
    }

    /// Moves to the last entry of the keys before `key`.
    pub fn seek_before(&mut self, key: &[u8]) {
        let from = self.in_flodb();
        step!(self, list, tree, flodb => SkipListPosition::before(list, key, MAX_SEQ),
            BTreePosition::before(tree, key, MAX_SEQ), from.before(flodb, key));
    }

    /// Moves to the next entry; off the end after the last one.
    #[inline]
    pub fn next(&mut self) {
        let (in_list, in_tree) = self.positions();
        let in_flodb = self.in_flodb();
        // SAFETY: the positions were made with this memtable.
        step!(self, list, tree, flodb => unsafe { in_list.next(list) },
            // SAFETY: as above.
            unsafe { in_tree.next(tree) },
            // SAFETY: as above.
            unsafe { in_flodb.next(flodb) });
    }

    /// Moves to the first entry of the next key; off the end after the last one.
    #[inline]
    pub fn next_key(&mut self) {
        let from = self.position;
        self.next();
        while self.is_valid() && self.entry_at(from).map(key_of) == self.entry().map(key_of) {
            self.next();
        }
    }

    /// Moves to the entry before; off the end before the first one.
    pub fn previous(&mut self) {
        let (in_list, in_tree) = self.positions();
        let in_flodb = self.in_flodb();
        step!(self, list, tree, flodb =>
            // SAFETY: the position was made with this list.
            unsafe { in_list.previous(list) },
            // SAFETY: the position was made with this tree.
            unsafe { in_tree.previous(tree) },
            // SAFETY: the position was made with this memtable.
            unsafe { in_flodb.previous(flodb) });
    }

    /// The position in a FloDB memtable; in others one that is not used.
    #[inline]
    fn in_flodb(&self) -> FloDbPosition {
        match self.position {
            Position::FloDb(position) => position,
            Position::SkipList(_) | Position::BTree(_) => FloDbPosition::default(),
        }
    }

    /// The position, and one on no entry for the kind that the memtable is not.
    #[inline]
    fn positions(&self) -> (SkipListPosition, BTreePosition) {
        match self.position {
            Position::SkipList(position) => (position, BTreePosition::default()),
            Position::BTree(position) => (SkipListPosition::default(), position),
            Position::FloDb(_) => (SkipListPosition::default(), BTreePosition::default()),
        }
    }
}
