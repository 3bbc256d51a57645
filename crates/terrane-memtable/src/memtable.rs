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
use crate::flodb::{FloDb, FloDbConfig, InsertOutcome, KeySpan};
use crate::hash::{BucketForm, HashView, Hashed, ListHeights, TableShape};
use crate::memory::MemoryUse;
use crate::padded::Padded;
use crate::pinned::PinnedValue;
use crate::pool::Pool;
use crate::range_tombstones::RangeTombstones;
use crate::skiplist::{Layout, MAX_HEIGHT, Overwritten, SkipList};
use crate::sync::{AtomicUsize, Ordering};
use crate::vector::{Vector, VectorQuery};

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
    /// An array in the order of arrival.
    Vector {
        /// Bytes that are taken in advance.
        prealloc_bytes: usize,
        /// How reads find their order.
        query: VectorQuery,
    },
    /// A skip-list in each bucket of a hash table.
    HashSkipList {
        /// The first bytes of a key, by which its bucket is chosen.
        prefix: usize,
        /// The number of buckets; at least 1.
        buckets: usize,
        /// The largest height of a node; 1 to 20.
        height: u8,
        /// What is read where a range leaves a prefix.
        view: HashView,
    },
    /// A sorted linked list in each bucket of a hash table.
    HashLinkedList {
        /// The first bytes of a key, by which its bucket is chosen.
        prefix: usize,
        /// The number of buckets; at least 1.
        buckets: usize,
        /// The length from which on a list becomes a skip-list; 0 for never.
        threshold: usize,
        /// What is read where a range leaves a prefix.
        view: HashView,
    },
    /// Entries in the order of arrival in each bucket of a hash table.
    HashVector {
        /// The first bytes of a key, by which its bucket is chosen.
        prefix: usize,
        /// The number of buckets; at least 1.
        buckets: usize,
        /// What is read where a range leaves a prefix.
        view: HashView,
    },
    /// FloDB's two levels: a hash table in front of an ordered structure.
    FloDb(FloDbConfig),
}

/// What a memtable says of a key.
#[derive(Debug, Clone)]
pub enum Lookup {
    /// This version is the newest that is not newer than what was asked for.
    Found(SeqNo, EntryKind, PinnedValue),
    /// There is none.
    Absent,
    /// The version may have been forgotten, as a newer one took its place: to be asked again with
    /// a newer sequence number. Only [`Memtable::update`] forgets versions.
    Overwritten,
}

/// The links of the head of an empty bucket's skip-list: with a quarter of the nodes at each
/// height, enough for a few hundred nodes.
const HEAD_HEIGHT: usize = 4;

/// A write buffer. Shared by reference; all methods may be called from any thread at any time.
#[derive(Debug)]
pub struct Memtable {
    pub(crate) kind: Kind,
    range_tombstones: RangeTombstones,
    /// Apart from what readers and writers only read.
    counts: Padded<EntryCounts>,
    /// What it used before anything was inserted, and what it took for its front level later.
    empty_bytes: AtomicUsize,
}

/// What every insert changes.
#[derive(Debug)]
struct EntryCounts {
    data_bytes: AtomicUsize,
    entries: AtomicUsize,
}

impl EntryCounts {
    fn new() -> Self {
        Self { data_bytes: AtomicUsize::new(0), entries: AtomicUsize::new(0) }
    }
}

pub(crate) enum Kind {
    SkipList(SkipList),
    BTree(BTree),
    Vector(Vector),
    Hashed(Hashed),
    FloDb(FloDb),
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::SkipList(_) => f.write_str("skiplist"),
            Self::BTree(_) => f.write_str("btree"),
            Self::Vector(_) => f.write_str("vector"),
            Self::Hashed(_) => f.write_str("hashed"),
            Self::FloDb(_) => f.write_str("flodb"),
        }
    }
}

impl Memtable {
    /// An empty memtable, whose memory comes from `pool` and goes back there.
    pub fn new(config: Config, pool: &Arc<Pool>) -> Arc<Self> {
        Self::with_span(config, pool, || Some(KeySpan::all()))
    }

    /// As [`Memtable::new`], to learn where its keys lie: a kind that wants to know that does
    /// without its front level until [`Memtable::learn`].
    pub fn new_to_learn(config: Config, pool: &Arc<Pool>) -> Arc<Self> {
        Self::with_span(config, pool, || None)
    }

    /// An empty memtable that takes the place of `before`: it expects keys such as that one holds,
    /// or learns where they lie.
    pub fn new_after(before: &Self, config: Config, pool: &Arc<Pool>) -> Arc<Self> {
        Self::with_span(config, pool, || match &before.kind {
            Kind::FloDb(flodb) => Some(flodb.span()),
            Kind::SkipList(_) | Kind::BTree(_) | Kind::Vector(_) | Kind::Hashed(_) => None,
        })
    }

    fn with_span(
        config: Config,
        pool: &Arc<Pool>,
        span: impl FnOnce() -> Option<KeySpan>,
    ) -> Arc<Self> {
        let kind = match config {
            Config::SkipList { branching, height } => {
                let pool = Arc::clone(pool);
                Kind::SkipList(SkipList::new(branching, height, Layout::Plain, pool))
            }
            Config::BTree => Kind::BTree(BTree::new(Layout::Plain, Arc::clone(pool))),
            Config::Vector { prealloc_bytes, query } => {
                Kind::Vector(Vector::new(prealloc_bytes, query, Arc::clone(pool)))
            }
            Config::HashSkipList { prefix, buckets, height, view } => {
                let max = usize::from(height).clamp(1, MAX_HEIGHT);
                let heights = ListHeights { head: max.min(HEAD_HEIGHT), max, tall_from: 0 };
                let shape = TableShape { prefix, buckets, form: BucketForm::List(heights) };
                Kind::Hashed(Hashed::new(shape, view, Arc::clone(pool)))
            }
            Config::HashLinkedList { prefix, buckets, threshold, view } => {
                let max = if threshold == 0 { 1 } else { MAX_HEIGHT };
                let heights = ListHeights { head: 1, max, tall_from: threshold };
                let shape = TableShape { prefix, buckets, form: BucketForm::List(heights) };
                Kind::Hashed(Hashed::new(shape, view, Arc::clone(pool)))
            }
            Config::HashVector { prefix, buckets, view } => {
                let shape = TableShape { prefix, buckets, form: BucketForm::Chain };
                Kind::Hashed(Hashed::new(shape, view, Arc::clone(pool)))
            }
            Config::FloDb(config) => Kind::FloDb(FloDb::new(config, span(), Arc::clone(pool))),
        };
        let memtable = Self {
            kind,
            range_tombstones: RangeTombstones::new(),
            counts: Padded(EntryCounts::new()),
            empty_bytes: AtomicUsize::new(0),
        };
        let mut empty_bytes = memtable.memory().used_bytes();
        if let Kind::Hashed(table) = &memtable.kind {
            // What a design spends on buckets, it has less of for entries.
            empty_bytes -= table.table_bytes();
        }
        memtable.empty_bytes.store(empty_bytes, Ordering::Relaxed);
        Arc::new(memtable)
    }

    /// Adds a version of `key`, written at `seq`. No two versions of a key may have the same
    /// sequence number, and none may be added twice.
    ///
    /// # Panics
    /// When the key, the value or the sequence number is larger than the limits of this crate.
    pub fn insert(&self, key: &[u8], seq: SeqNo, kind: EntryKind, value: &[u8]) {
        self.update(key, seq, kind, value, || 0);
    }

    /// As [`Memtable::insert`], and may forget versions that no one asks for, where the kind does
    /// so. `horizon` answers a sequence number that is visible, and not above any that is or will
    /// be read at; only readers that took a sequence number before this call and are not counted
    /// there may ask for less, and must be ready for [`Lookup::Overwritten`].
    ///
    /// # Panics
    /// When the key, the value or the sequence number is larger than the limits of this crate.
    #[inline]
    pub fn update(
        &self,
        key: &[u8],
        seq: SeqNo,
        kind: EntryKind,
        value: &[u8],
        horizon: impl FnOnce() -> SeqNo,
    ) -> InsertOutcome {
        assert!(key.len() <= MAX_KEY_LEN && value.len() <= MAX_VALUE_LEN && seq <= MAX_SEQ);
        match &self.kind {
            Kind::SkipList(list) => list.insert(&Entry { key, seq, kind, value }),
            Kind::BTree(tree) => tree.insert(&Entry { key, seq, kind, value }),
            Kind::Vector(vector) => vector.insert(&Entry { key, seq, kind, value }),
            Kind::Hashed(table) => table.insert(&Entry { key, seq, kind, value }),
            Kind::FloDb(flodb) => {
                // It counts itself.
                return flodb.insert(&Entry { key, seq, kind, value }, horizon);
            }
        }
        // Relaxed: counters order nothing.
        self.counts.data_bytes.fetch_add(key.len() + value.len(), Ordering::Relaxed);
        self.counts.entries.fetch_add(1, Ordering::Relaxed);
        InsertOutcome::default()
    }

    /// Whether [`Memtable::insert_all`] is cheaper than one insert after the other.
    pub fn takes_groups(&self) -> bool {
        matches!(self.kind, Kind::BTree(_))
    }

    /// As [`Memtable::insert`] of each: searches of several keys wait for memory at the same time.
    ///
    /// # Panics
    /// As [`Memtable::insert`].
    pub fn insert_all(&self, entries: &[Entry<'_>]) {
        let Kind::BTree(tree) = &self.kind else {
            for &Entry { key, seq, kind, value } in entries {
                self.insert(key, seq, kind, value);
            }
            return;
        };
        let mut bytes = 0;
        for Entry { key, seq, value, .. } in entries {
            assert!(key.len() <= MAX_KEY_LEN && value.len() <= MAX_VALUE_LEN && *seq <= MAX_SEQ);
            bytes += key.len() + value.len();
        }
        tree.insert_all(entries);
        // Relaxed: counters order nothing.
        self.counts.data_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.counts.entries.fetch_add(entries.len(), Ordering::Relaxed);
    }

    /// Whether [`Memtable::learn`] would be of use by now.
    pub fn wants_to_learn(&self) -> bool {
        match &self.kind {
            Kind::FloDb(flodb) => flodb.wants_membuffer(),
            Kind::SkipList(_) | Kind::BTree(_) | Kind::Vector(_) | Kind::Hashed(_) => false,
        }
    }

    /// Sees where its keys lie, and begins to use its front level if it waited for that. To be
    /// called while no entry is being inserted, and if all that come later have sequence numbers
    /// above those that are there; others may read meanwhile, below those that come later.
    pub fn learn(&self) {
        if let Kind::FloDb(flodb) = &self.kind {
            self.empty_bytes.fetch_add(flodb.enable_membuffer(), Ordering::Relaxed);
        }
    }

    /// Asks for the memory that [`Memtable::update`] of this key begins with, where the kind knows
    /// it at once: for who has something else to do before.
    #[inline]
    pub fn prefetch(&self, key: &[u8]) {
        match &self.kind {
            Kind::FloDb(flodb) => flodb.prefetch(key),
            Kind::SkipList(_) | Kind::BTree(_) | Kind::Vector(_) | Kind::Hashed(_) => {}
        }
    }

    /// Asks for what [`Memtable::update`] goes on with, once that has come.
    #[inline]
    pub fn prefetch_version(&self, key: &[u8]) {
        match &self.kind {
            Kind::FloDb(flodb) => flodb.prefetch_version(key),
            Kind::SkipList(_) | Kind::BTree(_) | Kind::Vector(_) | Kind::Hashed(_) => {}
        }
    }

    /// Moves what a front level holds to where cursors walk, as far as it is full; for threads that
    /// do so in the background. Answers how many versions were moved.
    pub fn drain(&self) -> usize {
        match &self.kind {
            Kind::FloDb(flodb) => flodb.drain_some(),
            Kind::SkipList(_) | Kind::BTree(_) | Kind::Vector(_) | Kind::Hashed(_) => 0,
        }
    }

    /// Whether [`Memtable::drain`] would make room.
    pub fn wants_drain(&self) -> bool {
        match &self.kind {
            Kind::FloDb(flodb) => flodb.wants_drain(),
            Kind::SkipList(_) | Kind::BTree(_) | Kind::Vector(_) | Kind::Hashed(_) => false,
        }
    }

    /// As [`Memtable::drain`], but everything. Cursors need not wait for that: they drain what
    /// they come to.
    pub fn drain_all(&self) {
        if let Kind::FloDb(flodb) = &self.kind {
            flodb.drain_all();
        }
    }

    /// How many versions were drained, so far.
    pub fn drained(&self) -> usize {
        match &self.kind {
            Kind::FloDb(flodb) => flodb.drained(),
            Kind::SkipList(_) | Kind::BTree(_) | Kind::Vector(_) | Kind::Hashed(_) => 0,
        }
    }

    /// Whether [`Memtable::update`] forgets versions: then who reads several times at one sequence
    /// number must be counted in the horizon.
    pub fn forgets(&self) -> bool {
        matches!(self.kind, Kind::FloDb(_))
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
    /// tombstones are not considered, and a version that was forgotten is not there.
    #[inline]
    pub fn get(&self, key: &[u8], seq: SeqNo) -> Option<Entry<'_>> {
        match &self.kind {
            Kind::SkipList(list) => list.get(key, seq),
            Kind::BTree(tree) => tree.get(key, seq),
            Kind::Vector(vector) => vector.get(key, seq),
            Kind::Hashed(table) => table.get(key, seq),
            Kind::FloDb(flodb) => flodb.get_permanent(key, seq),
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
        match self.look_up(key, seq) {
            Lookup::Found(seq, kind, value) => Some((seq, kind, value)),
            Lookup::Absent | Lookup::Overwritten => None,
        }
    }

    /// As [`Memtable::cursor`], over what was drained already: what a front level holds is not
    /// there.
    pub fn cursor_of_drained(self: &Arc<Self>) -> Cursor {
        Cursor::of_drained(Arc::clone(self))
    }

    /// As [`Memtable::get_pinned`], and tells a version that was forgotten from one that never was.
    #[inline]
    pub fn look_up(self: &Arc<Self>, key: &[u8], seq: SeqNo) -> Lookup {
        if let Kind::FloDb(flodb) = &self.kind {
            return match flodb.get(key, seq) {
                Ok(None) => Lookup::Absent,
                Err(Overwritten) => Lookup::Overwritten,
                Ok(Some((node, pin))) => {
                    let entry = node.entry();
                    // SAFETY: the entry was found in this memtable, and is pinned if need be.
                    let value = unsafe { PinnedValue::with_pin(self, entry.value, pin) };
                    Lookup::Found(entry.seq, entry.kind, value)
                }
            };
        }
        let Some(entry) = self.get(key, seq) else { return Lookup::Absent };
        // SAFETY: the entry was found in this memtable, which never changes one.
        let value = unsafe { PinnedValue::new(self, entry.value) };
        Lookup::Found(entry.seq, entry.kind, value)
    }

    /// The number of entries; range tombstones do not count, nor what was forgotten.
    pub fn len(&self) -> usize {
        self.counts().0
    }

    /// Entries that are there, and their bytes of keys and values.
    fn counts(&self) -> (usize, usize) {
        match &self.kind {
            Kind::FloDb(flodb) => flodb.counts(),
            Kind::SkipList(_) | Kind::BTree(_) | Kind::Vector(_) | Kind::Hashed(_) => {
                let bytes = self.counts.data_bytes.load(Ordering::Relaxed);
                (self.counts.entries.load(Ordering::Relaxed), bytes)
            }
        }
    }

    /// Whether it holds neither entries nor range tombstones.
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && self.range_tombstones.is_empty()
    }

    /// Tells it that no more entries come. What is not in order yet is sorted now, by the caller;
    /// otherwise the first reader of a range would have to.
    pub fn freeze(&self) {
        if let Kind::Vector(vector) = &self.kind {
            vector.freeze();
        }
    }

    /// The bytes in use beyond those of an empty memtable, but with those of a table of buckets:
    /// what its size is limited by. An empty one answers 0, so that however low the limit is, it
    /// takes at least one entry.
    pub fn filled_bytes(&self) -> usize {
        if self.is_empty() {
            return 0;
        }
        self.memory().used_bytes().saturating_sub(self.empty_bytes.load(Ordering::Relaxed))
    }

    /// What its memory is used for.
    pub fn memory(&self) -> MemoryUse {
        let (used, allocated) = match &self.kind {
            Kind::SkipList(list) => list.usage(),
            Kind::BTree(tree) => tree.usage(),
            Kind::Vector(vector) => vector.usage(),
            Kind::Hashed(table) => table.usage(),
            Kind::FloDb(flodb) => flodb.usage(),
        };
        let (_, data_bytes) = self.counts();
        let tombstones = self.range_tombstones.bytes();
        MemoryUse {
            data_bytes,
            metadata_bytes: used.saturating_sub(data_bytes) + tombstones + size_of::<Self>(),
            unused_bytes: allocated.saturating_sub(used),
        }
    }
}
