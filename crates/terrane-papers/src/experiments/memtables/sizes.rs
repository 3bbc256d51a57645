//! Sizes, and the memtables of both modes.

use terrane_policy::{MemtableKind, OrderedView, VectorQuery};

use terrane_lab::memtable::Load;

/// Entries of 64 bytes (§3.1), their numbers (§3.2 to §3.5), and the lookups between inserts
/// (§3.3).
pub(super) const ENTRY_BYTES: usize = 64;
const ENTRIES: f64 = 140_000.0;
const ENTRIES_FOOTPRINT: f64 = 1_500_000.0;
const ENTRIES_FLUSHED: f64 = 1_000_000.0;
const LOOKUPS: usize = 200;

/// The best prefix length and number of buckets of the paper (Fig. 4).
pub(super) const PREFIX: u8 = 6;
const BUCKETS: f64 = 100_000.0;

/// The height of RocksDB's skip-lists in buckets.
const HEIGHT_PUBLISHED: u8 = 4;

/// The implementations of memtables that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BufferMode {
    /// The paper's implementations: queries copy and sort.
    Published,
    /// Our implementations.
    Ours,
}

impl BufferMode {
    pub(crate) const ALL: [Self; 2] = [Self::Published, Self::Ours];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Ours => "ours",
        }
    }
}

/// A memtable with a short name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamedMemtable {
    pub(crate) name: &'static str,
    pub(crate) kind: MemtableKind,
}

/// The sizes of a run.
pub(super) struct BufferSizes {
    pub(super) scale: f64,
    pub(super) rounds: usize,
    pub(super) seed: u64,
    pub(super) load: Load,
}

impl BufferSizes {
    pub(super) fn new(scale: f64, rounds: usize, seed: u64) -> Self {
        let load = Load::new((ENTRIES * scale) as usize, ENTRY_BYTES, seed);
        Self { scale, rounds, seed, load }
    }

    /// Returns the number of lookups between inserts.
    pub(super) fn lookups(&self) -> usize {
        LOOKUPS.min(self.load.len() / 10)
    }

    pub(super) fn entries_footprint(&self) -> usize {
        (ENTRIES_FOOTPRINT * self.scale) as usize
    }

    pub(super) fn entries_flushed(&self) -> u64 {
        (ENTRIES_FLUSHED * self.scale) as u64
    }

    /// Returns the paper's number of buckets.
    pub(super) fn buckets(&self) -> u32 {
        ((BUCKETS * self.scale) as u32).max(1)
    }

    /// Returns the space for all entries: 16 bytes for each header, 8 for each pointer, and slack,
    /// because the space is split between headers and pointers.
    pub(super) fn prealloc_bytes(&self) -> u64 {
        (self.load.len() * (ENTRY_BYTES + 28)) as u64
    }

    /// Returns the memtables of a mode: vectors, skip-list, hash skip-list, hash linked-list, and
    /// in our mode also the kinds that the paper does not have.
    pub(super) fn kinds(&self, mode: BufferMode) -> Vec<NamedMemtable> {
        let query = query(mode);
        let vector = |prealloc_bytes| MemtableKind::Vector { prealloc_bytes, query };
        let mut kinds = vec![
            NamedMemtable { name: "vector", kind: vector(0) },
            NamedMemtable { name: "vector, preallocated", kind: vector(self.prealloc_bytes()) },
            NamedMemtable { name: "skip-list", kind: MemtableKind::SKIP_LIST },
            NamedMemtable {
                name: "hash skip-list",
                kind: hash_skip_list(mode, PREFIX, self.buckets()),
            },
            NamedMemtable {
                name: "hash linked-list",
                kind: hash_linked_list(mode, PREFIX, self.buckets()),
            },
        ];
        if mode == BufferMode::Ours {
            let scanned = MemtableKind::Vector { prealloc_bytes: 0, query: VectorQuery::Scan };
            kinds.push(NamedMemtable { name: "vector that scans", kind: scanned });
            kinds.push(NamedMemtable { name: "hash vector", kind: hash_vector(self.buckets()) });
            kinds.push(NamedMemtable { name: "B-link tree", kind: MemtableKind::BTree });
        }
        kinds
    }
}

/// Returns how a vector answers queries in a mode.
pub(super) fn query(mode: BufferMode) -> VectorQuery {
    match mode {
        BufferMode::Published => VectorQuery::Copy,
        BufferMode::Ours => VectorQuery::Resort,
    }
}

fn view(mode: BufferMode) -> OrderedView {
    match mode {
        BufferMode::Published => OrderedView::Copy,
        BufferMode::Ours => OrderedView::Kept,
    }
}

pub(super) fn hash_skip_list(mode: BufferMode, prefix: u8, buckets: u32) -> MemtableKind {
    let height = match mode {
        BufferMode::Published => HEIGHT_PUBLISHED,
        BufferMode::Ours => 12,
    };
    MemtableKind::HashSkipList { prefix, buckets, height, view: view(mode) }
}

/// The whole key chooses the bucket.
pub(super) fn hash_vector(buckets: u32) -> MemtableKind {
    MemtableKind::HashVector { prefix: u8::MAX, buckets, view: OrderedView::Kept }
}

/// Lists never become skip-lists, because the paper has no threshold.
pub(crate) fn hash_linked_list(mode: BufferMode, prefix: u8, buckets: u32) -> MemtableKind {
    MemtableKind::HashLinkedList { prefix, buckets, threshold: 0, view: view(mode) }
}

/// Returns the kinds without their names.
pub(super) fn plain(kinds: &[NamedMemtable]) -> Vec<MemtableKind> {
    kinds.iter().map(|kind| kind.kind).collect()
}

/// Returns the measurement of the named memtable.
pub(super) fn of<T: Copy>(kinds: &[NamedMemtable], values: &[T], name: &str) -> Option<T> {
    let at = kinds.iter().position(|kind| kind.name == name)?;
    values.get(at).copied()
}

/// Returns the least time of all rounds.
pub(super) fn least(rounds: &[f64]) -> f64 {
    rounds.iter().copied().fold(f64::INFINITY, f64::min)
}
