//! Write buffers of an LSM tree: concurrent, multi-version, allocated from an arena.
//!
//! A [`Memtable`] takes entries `(key, sequence number, kind, value)` from many threads concurrently
//! and serves reads meanwhile. It is dropped as a whole once its contents are on disk and its last
//! reader is gone. Entries are neither changed nor removed, which keeps reads without locks simple:
//! a pointer to an entry stays valid. Only FloDB reclaims versions that no reader needs, and pins
//! the ones that are being read.
//!
//! Entries are ordered bytewise by key and, within a key, from new to old. Range tombstones are
//! kept apart from the entries, whatever the kind.
//!
//! Apart from this crate, only the engine's module that maps files into memory has unsafe code. The
//! SAFETY comments of this crate cite the following rules as "crate rule N", and the numbered
//! invariants of their module:
//! 1. Memory of an arena is freed only with the arena, and every pointer into an arena is kept with
//!    an owner or a borrow that keeps the arena alive.
//! 2. Header, key and value of a node are written only while no other thread can read them. Every
//!    kind but FloDB fills a node before it publishes it, and never again. FloDB also refills nodes
//!    that it has reclaimed; there the rule holds because of the invariants of `skiplist::versions`
//!    and `flodb::membuffer`.
//! 3. A pointer to a node is published with release ordering and loaded with acquire ordering
//!    before it is followed, so the node is seen filled.
//!
//! | module | one line |
//! |---|---|
//! | `arena`, `pool` | a bump allocator for many threads; memory for the next memtable |
//! | `pages` | memory from the operating system |
//! | `head`, `key_span` | the first bytes of a key as an integer; the range of the expected keys |
//! | `skiplist` | the concurrent skip-list, and sorted lists in an arena owned elsewhere |
//! | `hash` | lists or chains in the buckets of a hash table |
//! | `flodb` | a hash table in front of the B-link tree or the skip-list |
//! | `vector` | an array in the order of arrival |
//! | `ordered` | sorted views of an unsorted structure |
//! | `btree` | the concurrent B-link tree |
//! | `range_tombstones` | fragments of deleted ranges |
//! | `readers` | which versions readers can see |
//! | `scan_pause` | the pause of writers during a scan of FloDB |
//! | `structure` | the interface of a kind |
//! | `kinds` | the registration of the kinds |
//! | `memtable` | a memtable of any kind |
//! | `prefetch`, `padded` | prefetching; values with cache lines of their own |
//! | `cursor`, `pinned` | positions and values that keep their memtable alive |

mod arena;
mod btree;
mod cursor;
mod entry;
mod entry_counts;
mod flodb;
mod hash;
mod head;
mod key_span;
mod kinds;
mod memory;
mod memtable;
mod ordered;
mod padded;
mod pages;
mod pinned;
mod pool;
mod prefetch;
mod range_tombstones;
mod readers;
mod scan_pause;
mod skiplist;
mod stripe;
mod structure;
mod sync;
mod vector;

pub use btree::BTreeConfig;
pub use cursor::Cursor;
pub use entry::{Entry, EntryKind, MAX_KEY_LEN, MAX_SEQ, MAX_VALUE_LEN, SeqNo};
pub use flodb::{DrainInsert, FloDbConfig, LowerLevel, Update};
pub use hash::{HashLinkedListConfig, HashSkipListConfig, HashVectorConfig, HashView};
pub use head::head_of;
pub use kinds::Config;
pub use memory::MemoryUse;
pub use memtable::{ExpectedKeys, Lookup, Memtable};
pub use padded::Padded;
pub use pages::Pages;
pub use pinned::PinnedValue;
pub use pool::{Pool, PoolLimits};
pub use prefetch::{prefetch_line, prefetch_lines};
pub use range_tombstones::{Fragment, RangeTombstones};
pub use readers::{Readers, SeqBounds};
pub use scan_pause::FrontPause;
pub use skiplist::SkipListConfig;
pub use structure::{FrontLevel, InsertOutcome};
pub use vector::{VectorConfig, VectorQuery};
