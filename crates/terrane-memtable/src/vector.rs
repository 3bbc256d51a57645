//! An array of entries in the order of arrival (memory buffer paper, §2.1).
//!
//! An insert copies the entry into the arena and appends a pointer: no search, no link, and the
//! least memory of all kinds. The array doubles when it is full, which copies it; a preallocated
//! array doubles only once it exceeds its allocation.
//!
//! Reads need a sorted view. By default sorted entries stay sorted, and a read sorts the entries
//! added since the last read; with [`VectorQuery::Copy`] every read copies and sorts everything, as
//! RocksDB's vector does until it is frozen, which is what the paper measured.
//!
//! With [`VectorQuery::Scan`], lookups sort nothing: they search the entries added since a range
//! was last read, comparing two hash bytes per entry. Each lookup takes a few microseconds where
//! sorting takes milliseconds, which suits workloads with few lookups.

use std::sync::Arc;

use crate::arena::Arena;
use crate::entry::{Entry, SeqNo};
use crate::key_span::KeySpan;
use crate::ordered::{EntryLog, SortedView, ViewPosition};
use crate::pool::Pool;
use crate::readers::ReaderView;
use crate::skiplist::{Layout, Node, NodeRef};
use crate::structure::{InsertOutcome, ReadBounds, Settings, Structure, StructurePosition};
use crate::sync::{AtomicUsize, Ordering};

/// How reads of a vector order its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VectorQuery {
    /// Sorted entries stay sorted; a read sorts the entries added since the last sort.
    #[default]
    Resort,
    /// Every read copies and sorts everything, until the memtable is frozen.
    Copy,
    /// Lookups search the unsorted entries; only ranges sort.
    Scan,
}

/// The settings of a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorConfig {
    /// Bytes that are allocated in advance.
    pub prealloc_bytes: usize,
    /// How reads order the entries.
    pub query: VectorQuery,
}

impl Settings for VectorConfig {
    type Structure = Vector;

    const EXAMPLES: &'static [(&'static str, Self)] = &[
        ("as usual", Self { prealloc_bytes: 0, query: VectorQuery::Resort }),
        ("preallocated", Self { prealloc_bytes: 100_000, query: VectorQuery::Resort }),
        ("preallocated, large", Self { prealloc_bytes: 3_000_000, query: VectorQuery::Resort }),
        ("that copies", Self { prealloc_bytes: 0, query: VectorQuery::Copy }),
        ("preallocated that copies", Self { prealloc_bytes: 5000, query: VectorQuery::Copy }),
        ("that scans", Self { prealloc_bytes: 0, query: VectorQuery::Scan }),
        ("preallocated that scans", Self { prealloc_bytes: 9000, query: VectorQuery::Scan }),
    ];

    const SMALLEST: Self = Self { prealloc_bytes: 0, query: VectorQuery::Resort };

    fn usual(_entries: usize) -> Self {
        Self { prealloc_bytes: 0, query: VectorQuery::Resort }
    }

    fn build(self, pool: Arc<Pool>, _span: impl FnOnce() -> Option<KeySpan>) -> Vector {
        Vector::new(self.prealloc_bytes, self.query, pool)
    }
}

/// One in this many preallocated bytes is for pointers, which suffices for entries of 40 bytes and
/// more. With smaller entries, the array of pointers may still double.
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
    fn new(prealloc_bytes: usize, query: VectorQuery, pool: Arc<Pool>) -> Self {
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

    fn copies(&self) -> bool {
        self.query == VectorQuery::Copy && self.is_frozen.load(Ordering::Relaxed) == 0
    }

    fn view(&self) -> Arc<SortedView> {
        if self.copies() { self.log.copy() } else { self.log.view() }
    }
}

impl Structure for Vector {
    type Position = VectorPosition;

    #[inline]
    fn insert(&self, entry: &Entry<'_>, _view: &ReaderView<'_>) -> InsertOutcome {
        self.log.push(Node::allocate(&self.arena, Layout::Plain, 0, entry));
        InsertOutcome::default()
    }

    fn get(&self, key: &[u8], seq: SeqNo) -> Option<Entry<'_>> {
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

    fn usage(&self) -> (usize, usize) {
        let (used, allocated) = self.arena.usage();
        let (log_used, log_allocated) = self.log.usage();
        (used + log_used, allocated + log_allocated)
    }

    fn freeze(&self) {
        // Relaxed: a reader that misses it sorts once more than necessary.
        self.is_frozen.store(1, Ordering::Relaxed);
        self.log.view();
    }
}

/// A position in a sorted view of a vector, or on no entry.
#[derive(Default)]
pub(crate) struct VectorPosition(Option<ViewPosition>);

impl StructurePosition<Vector> for VectorPosition {
    #[inline]
    unsafe fn entry<'a>(&'a self, _vector: &'a Vector) -> Option<Entry<'a>> {
        self.0.as_ref()?.entry()
    }

    fn seek_first(&mut self, vector: &Vector) {
        self.0 = Some(ViewPosition::first(vector.view()));
    }

    fn seek_last(&mut self, vector: &Vector) {
        self.0 = Some(ViewPosition::last(vector.view()));
    }

    fn seek(&mut self, vector: &Vector, key: &[u8], seq: SeqNo, _bounds: &ReadBounds) {
        self.0 = Some(ViewPosition::at_or_after(vector.view(), key, seq));
    }

    fn seek_before(&mut self, vector: &Vector, key: &[u8], seq: SeqNo, _bounds: &ReadBounds) {
        self.0 = Some(ViewPosition::before(vector.view(), key, seq));
    }

    #[inline]
    unsafe fn next(&mut self, _vector: &Vector, _bounds: &ReadBounds) {
        if let Some(position) = &mut self.0 {
            position.next();
        }
    }

    unsafe fn previous(&mut self, _vector: &Vector, _bounds: &ReadBounds) {
        if let Some(position) = &mut self.0 {
            position.previous();
        }
    }
}
