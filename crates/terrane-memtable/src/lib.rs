//! Write buffers of an LSM tree: concurrent, multi-version, allocated from an arena.
//!
//! A [`Memtable`] takes entries `(key, sequence number, kind, value)` from many threads at once,
//! answers reads meanwhile, and is dropped as a whole once its contents are on disk and its last
//! reader has let go. Nothing in it is ever changed or removed, which is what makes reads without
//! locks simple: what was once found stays where it is. FloDB's alone forgets versions that no one
//! asks for, and pins what is read.
//!
//! Order is bytewise by key and, within a key, from new to old. Range tombstones live beside the
//! entries, in whatever structure holds those.
//!
//! This crate is the one home of unsafe code in Terrane. Its rules:
//! 1. memory is handed out by the arena and freed only with the arena, and every pointer into it
//!    is kept together with a reference that keeps the arena alive;
//! 2. a node is written before it is linked, and never written again except for its links;
//! 3. a link is set with release and followed with acquire ordering.
//!
//! | module | one line |
//! |---|---|
//! | `arena`, `pool` | a bump allocator for many threads; memory for the next one |
//! | `head` | the first bytes of a key as an integer |
//! | `skiplist` | the concurrent skip-list, and lists in an arena of others |
//! | `hash` | sorted lists in the buckets of a hash table |
//! | `flodb` | a hash table in front of the B-link tree or the skip-list |
//! | `vector` | an array in the order of arrival |
//! | `ordered` | entries of an unsorted structure, in order |
//! | `btree` | the concurrent B-link tree |
//! | `range_tombstones` | fragments of deleted ranges |
//! | `memtable` | one interface over the kinds |
//! | `prefetch`, `padded` | asks for memory before it is needed; cache lines of one's own |
//! | `cursor`, `pinned` | positions and values that keep their memtable alive |

mod arena;
mod btree;
mod cursor;
mod entry;
mod flodb;
mod hash;
mod head;
mod memory;
mod memtable;
mod ordered;
mod padded;
mod pinned;
mod pool;
mod prefetch;
mod range_tombstones;
mod skiplist;
mod sync;
mod vector;

pub use cursor::Cursor;
pub use entry::{Entry, EntryKind, MAX_KEY_LEN, MAX_SEQ, MAX_VALUE_LEN, SeqNo};
pub use flodb::{DrainInsert, FloDbConfig, InsertOutcome, LowerLevel, Update};
pub use hash::HashView;
pub use head::head_of;
pub use memory::MemoryUse;
pub use memtable::{Config, Lookup, Memtable};
pub use padded::Padded;
pub use pinned::PinnedValue;
pub use pool::Pool;
pub use prefetch::prefetch_lines;
pub use range_tombstones::{Fragment, RangeTombstones};
pub use vector::VectorQuery;
