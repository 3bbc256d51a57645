//! One interface over all kinds of memtable.
//!
//! A kind is one file with a structure that implements `insert`, `get`, `usage` and positions, and
//! one line in each `match` here. All kinds follow the same rules, which the conformance tests
//! hold them to: entries are seen in key order, new before old within a key; a version that was
//! inserted before a read began is found by it; nothing is changed or removed.

use std::sync::Arc;

use crate::btree::BTree;
use crate::cursor::Cursor;
use crate::entry::{Entry, EntryKind, MAX_KEY_LEN, MAX_SEQ, MAX_VALUE_LEN, SeqNo};
use crate::memory::MemoryUse;
use crate::pinned::PinnedValue;
use crate::pool::Pool;
use crate::range_tombstones::RangeTombstones;
use crate::skiplist::SkipList;
use crate::sync::{AtomicUsize, Ordering};

/// Which structure holds the entries, with its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Config {
    /// The concurrent skip-list.
    SkipList {
        /// One in `branching` nodes of a height also has the next height; at least 2.
        branching: u8,
        /// The largest height of a node; 1 to 20.
        height: u8,
    },
    /// The concurrent B-link tree.
    BTree,
}

/// A write buffer. Shared by reference; all methods may be called from any thread at any time.
#[derive(Debug)]
pub struct Memtable {
    pub(crate) kind: Kind,
    range_tombstones: RangeTombstones,
    data_bytes: AtomicUsize,
    entries: AtomicUsize,
    /// What it used before anything was inserted.
    empty_bytes: usize,
}

pub(crate) enum Kind {
    SkipList(SkipList),
    BTree(BTree),
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::SkipList(_) => f.write_str("skiplist"),
            Self::BTree(_) => f.write_str("btree"),
        }
    }
}

impl Memtable {
    /// An empty memtable, whose memory comes from `pool` and goes back there.
    pub fn new(config: Config, pool: &Arc<Pool>) -> Arc<Self> {
        let kind = match config {
            Config::SkipList { branching, height } => {
                Kind::SkipList(SkipList::new(branching, height, Arc::clone(pool)))
            }
            Config::BTree => Kind::BTree(BTree::new(Arc::clone(pool))),
        };
        let mut memtable = Self {
            kind,
            range_tombstones: RangeTombstones::new(),
            data_bytes: AtomicUsize::new(0),
            entries: AtomicUsize::new(0),
            empty_bytes: 0,
        };
        memtable.empty_bytes = memtable.memory().used_bytes();
        Arc::new(memtable)
    }

    /// Adds a version of `key`, written at `seq`. No two versions of a key may have the same
    /// sequence number, and none may be added twice.
    ///
    /// # Panics
    /// When the key, the value or the sequence number is larger than the limits of this crate.
    pub fn insert(&self, key: &[u8], seq: SeqNo, kind: EntryKind, value: &[u8]) {
        assert!(key.len() <= MAX_KEY_LEN && value.len() <= MAX_VALUE_LEN && seq <= MAX_SEQ);
        match &self.kind {
            Kind::SkipList(list) => list.insert(key, seq, kind, value),
            Kind::BTree(tree) => tree.insert(key, seq, kind, value),
        }
        // Relaxed: counters order nothing.
        self.data_bytes.fetch_add(key.len() + value.len(), Ordering::Relaxed);
        self.entries.fetch_add(1, Ordering::Relaxed);
    }

    /// Deletes all versions of all keys in `[start, end)` that are older than `seq`; without an
    /// end, of all keys from `start` on. It is part of a batch that began at `first`, which readers
    /// see whole or not at all; see [`RangeTombstones::insert`].
    ///
    /// # Panics
    /// When a key or the sequence number is larger than the limits of this crate.
    pub fn insert_range_tombstone(
        &self,
        start: &[u8],
        end: Option<&[u8]>,
        seq: SeqNo,
        first: SeqNo,
    ) {
        // An end may be the successor of a longest key.
        let end_len = end.map_or(0, <[u8]>::len);
        assert!(start.len() <= MAX_KEY_LEN + 1 && end_len <= MAX_KEY_LEN + 1 && seq <= MAX_SEQ);
        self.range_tombstones.insert(start, end, seq, first);
    }

    /// The newest version of `key` that is not newer than `seq`, tombstones included. Range
    /// tombstones are not considered.
    #[inline]
    pub fn get(&self, key: &[u8], seq: SeqNo) -> Option<Entry<'_>> {
        match &self.kind {
            Kind::SkipList(list) => list.get(key, seq),
            Kind::BTree(tree) => tree.get(key, seq),
        }
    }

    /// The deleted ranges.
    pub fn range_tombstones(&self) -> &RangeTombstones {
        &self.range_tombstones
    }

    /// A cursor, on no entry yet.
    pub fn cursor(self: &Arc<Self>) -> Cursor {
        Cursor::new(Arc::clone(self))
    }

    /// As [`Memtable::get`], with the value kept alive without being copied.
    pub fn get_pinned(
        self: &Arc<Self>,
        key: &[u8],
        seq: SeqNo,
    ) -> Option<(SeqNo, EntryKind, PinnedValue)> {
        let entry = self.get(key, seq)?;
        // SAFETY: the entry was found in this memtable.
        let value = unsafe { PinnedValue::new(self, entry.value) };
        Some((entry.seq, entry.kind, value))
    }

    /// The number of entries; range tombstones do not count.
    pub fn len(&self) -> usize {
        self.entries.load(Ordering::Relaxed)
    }

    /// Whether it holds neither entries nor range tombstones.
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && self.range_tombstones.is_empty()
    }

    /// The bytes in use beyond those of an empty memtable: what its size is limited by. An empty
    /// one answers 0, so that however low the limit is, it takes at least one entry.
    pub fn filled_bytes(&self) -> usize {
        self.memory().used_bytes().saturating_sub(self.empty_bytes)
    }

    /// What its memory is used for.
    pub fn memory(&self) -> MemoryUse {
        let (used, allocated) = match &self.kind {
            Kind::SkipList(list) => list.usage(),
            Kind::BTree(tree) => tree.usage(),
        };
        let data_bytes = self.data_bytes.load(Ordering::Relaxed);
        let tombstones = self.range_tombstones.bytes();
        MemoryUse {
            data_bytes,
            metadata_bytes: used.saturating_sub(data_bytes) + tombstones + size_of::<Self>(),
            unused_bytes: allocated.saturating_sub(used),
        }
    }
}
