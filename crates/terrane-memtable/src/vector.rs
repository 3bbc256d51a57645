//! An array of entries in the order of their arrival (memory buffer paper, §2.1).
//!
//! An insert copies the entry into the arena and appends a pointer: no search, no link, and the
//! least memory of all kinds. The array doubles when it is full, which takes the time to copy it;
//! one that is preallocated does not, as long as it holds what it was made for.
//!
//! Reads need an order. By default what is sorted stays sorted, and a read sorts what came since
//! the last one; with [`VectorQuery::Copy`] every read copies and sorts everything, as RocksDB's
//! vector does until it is frozen, which is what the paper measured.
//!
//! With [`VectorQuery::Scan`] lookups of keys sort nothing: they search all that came since the
//! last range was read, by two bytes of a hash for each entry. That takes a few microseconds where
//! sorting takes milliseconds, and is paid at every lookup: it is for few of them.

use std::sync::Arc;

use crate::arena::Arena;
use crate::entry::{Entry, SeqNo};
use crate::ordered::{EntryLog, SortedView, ViewPosition};
use crate::pool::Pool;
use crate::skiplist::{Layout, Node, NodeRef};
use crate::sync::{AtomicUsize, Ordering};

/// How reads of a vector find their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VectorQuery {
    /// What is sorted stays sorted; a read sorts what came since.
    #[default]
    Resort,
    /// Every read copies and sorts everything, until the memtable is frozen.
    Copy,
    /// Lookups search what is not sorted; only ranges sort.
    Scan,
}

/// One in so many preallocated bytes is for pointers: enough for entries of 40 bytes and more.
/// Smaller ones make the array of pointers double after all.
const SHARE_OF_POINTERS: usize = 8;

/// The array.
pub(crate) struct Vector {
    /// Before the arena, which it points into.
    log: EntryLog,
    arena: Arena,
    query: VectorQuery,
    /// 1 once no more entries come.
    is_frozen: AtomicUsize,
}

impl Vector {
    /// An empty array with room for `prealloc_bytes` of entries and pointers to them.
    pub(crate) fn new(prealloc_bytes: usize, query: VectorQuery, pool: Arc<Pool>) -> Self {
        let pointers_bytes = prealloc_bytes / SHARE_OF_POINTERS;
        let arena = Arena::with_capacity(prealloc_bytes - pointers_bytes, pool);
        let capacity = pointers_bytes / size_of::<usize>();
        let log = match query {
            // SAFETY: nodes are made in the arena, which is dropped after the log and which cursors
            // keep together with their positions.
            VectorQuery::Resort | VectorQuery::Copy => unsafe { EntryLog::new(capacity) },
            // SAFETY: as above.
            VectorQuery::Scan => unsafe { EntryLog::searchable(capacity) },
        };
        Self { log, arena, query, is_frozen: AtomicUsize::new(0) }
    }

    /// Adds a version.
    pub(crate) fn insert(&self, contents: &Entry<'_>) {
        self.log.push(Node::allocate(&self.arena, Layout::Plain, 0, contents));
    }

    /// The newest version of `key` that is not newer than `seq`.
    pub(crate) fn get(&self, key: &[u8], seq: SeqNo) -> Option<Entry<'_>> {
        let node: NodeRef<'_> = match self.query {
            VectorQuery::Scan => self.log.search(key, seq)?,
            VectorQuery::Copy if self.copies() => {
                let slot = self.log.copy().get(key, seq)?;
                // SAFETY: the arena is this vector's.
                unsafe { slot.node() }
            }
            VectorQuery::Copy | VectorQuery::Resort => self.log.get(key, seq)?,
        };
        Some(node.entry())
    }

    /// No more entries come: sorts them for good.
    pub(crate) fn freeze(&self) {
        // Relaxed: who does not see it sorts once more than it had to.
        self.is_frozen.store(1, Ordering::Relaxed);
        self.log.view();
    }

    fn copies(&self) -> bool {
        self.query == VectorQuery::Copy && self.is_frozen.load(Ordering::Relaxed) == 0
    }

    fn view(&self) -> Arc<SortedView> {
        if self.copies() { self.log.copy() } else { self.log.view() }
    }

    /// Bytes in use, and bytes taken from the allocator.
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
