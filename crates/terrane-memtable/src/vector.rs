//! An array of entries in the order of arrival (memory buffer paper, §2.1).
//!
//! An insert copies the entry into the arena and appends a pointer: no search, no link, and the
//! least memory of all kinds. The array doubles when it is full, which takes the time to copy it; a
//! preallocated array does not while it holds no more than it was allocated for.
//!
//! Reads need a sorted view. By default sorted entries stay sorted, and a read sorts the entries
//! added since the last one; with [`VectorQuery::Copy`] every read copies and sorts everything, as
//! RocksDB's vector does until it is frozen, which is what the paper measured.
//!
//! With [`VectorQuery::Scan`], lookups sort nothing: they search the entries added since a range
//! was last read, by two bytes of a hash per entry. That takes a few microseconds where sorting
//! takes milliseconds, at every lookup, and suits workloads with few lookups.

use std::sync::Arc;

use crate::arena::Arena;
use crate::entry::{Entry, SeqNo};
use crate::ordered::{EntryLog, SortedView, ViewPosition};
use crate::pool::Pool;
use crate::skiplist::{Layout, Node, NodeRef};
use crate::sync::{AtomicUsize, Ordering};

/// How reads of a vector order its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VectorQuery {
    /// Sorted entries stay sorted; a read sorts the ones added since.
    #[default]
    Resort,
    /// Every read copies and sorts everything, until the memtable is frozen.
    Copy,
    /// Lookups search the unsorted entries; only ranges sort.
    Scan,
}

/// One in this many preallocated bytes is for pointers, which suffices for entries of 40 bytes and
/// more. With smaller ones, the array of pointers doubles after all.
const SHARE_OF_POINTERS: usize = 8;

/// The array.
pub(crate) struct Vector {
    /// Declared before the arena it points into, so that it is dropped first.
    log: EntryLog,
    arena: Arena,
    query: VectorQuery,
    /// 1 once the memtable is frozen.
    is_frozen: AtomicUsize,
}

impl Vector {
    /// Creates an empty array with `prealloc_bytes` for entries and pointers to them.
    pub(crate) fn new(prealloc_bytes: usize, query: VectorQuery, pool: Arc<Pool>) -> Self {
        let pointers_bytes = prealloc_bytes / SHARE_OF_POINTERS;
        let arena = Arena::with_capacity(prealloc_bytes - pointers_bytes, pool);
        let capacity = pointers_bytes / size_of::<usize>();
        let log = match query {
            // SAFETY: nodes are allocated without versions in the arena of this vector, which is
            // dropped after the log; cursors hold the memtable with the views that they use.
            VectorQuery::Resort | VectorQuery::Copy => unsafe { EntryLog::new(capacity) },
            // SAFETY: nodes are allocated without versions in the arena of this vector, which is
            // dropped after the log; cursors hold the memtable with the views that they use.
            VectorQuery::Scan => unsafe { EntryLog::searchable(capacity) },
        };
        Self { log, arena, query, is_frozen: AtomicUsize::new(0) }
    }

    /// Inserts a version.
    pub(crate) fn insert(&self, contents: &Entry<'_>) {
        self.log.push(Node::allocate(&self.arena, Layout::Plain, 0, contents));
    }

    /// Returns the newest version of `key` at or below `seq`.
    pub(crate) fn get(&self, key: &[u8], seq: SeqNo) -> Option<Entry<'_>> {
        let node: NodeRef<'_> = match self.query {
            VectorQuery::Scan => self.log.search(key, seq)?,
            VectorQuery::Copy if self.copies() => {
                let slot = self.log.copy().get(key, seq)?;
                // SAFETY: the slot names a node of this vector's arena, which `self` keeps.
                unsafe { slot.node() }
            }
            VectorQuery::Copy | VectorQuery::Resort => self.log.get(key, seq)?,
        };
        Some(node.entry())
    }

    /// Sorts all entries for good, because no more are inserted.
    pub(crate) fn freeze(&self) {
        // Relaxed: a reader that misses it sorts once more than necessary.
        self.is_frozen.store(1, Ordering::Relaxed);
        self.log.view();
    }

    fn copies(&self) -> bool {
        self.query == VectorQuery::Copy && self.is_frozen.load(Ordering::Relaxed) == 0
    }

    fn view(&self) -> Arc<SortedView> {
        if self.copies() { self.log.copy() } else { self.log.view() }
    }

    /// Returns the bytes in use and the bytes allocated.
    pub(crate) fn usage(&self) -> (usize, usize) {
        let (used, allocated) = self.arena.usage();
        let (log_used, log_allocated) = self.log.usage();
        (used + log_used, allocated + log_allocated)
    }

    pub(crate) fn first(&self) -> ViewPosition {
        ViewPosition::first(self.view())
    }

    pub(crate) fn last(&self) -> ViewPosition {
        ViewPosition::last(self.view())
    }

    pub(crate) fn at_or_after(&self, key: &[u8], seq: SeqNo) -> ViewPosition {
        ViewPosition::at_or_after(self.view(), key, seq)
    }

    pub(crate) fn before(&self, key: &[u8], seq: SeqNo) -> ViewPosition {
        ViewPosition::before(self.view(), key, seq)
    }
}
