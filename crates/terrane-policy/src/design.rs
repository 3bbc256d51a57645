//! A design: every choice about one tree, as a value with a text form.
//!
//! A design says which memory buffer takes writes, how the tree is kept in shape, how its tables
//! are written, and when writers have to wait. It is stored with the tree that follows it.
//!
//! The text form is a name or an eagerness, then what differs from it:
//!
//! ```text
//! 1-leveling T=10 L0=4 base=256MiB; granularity=file; movement=least-overlap; filter=10
//! ```
//!
//! Parts are separated by `;`, and within the first part by spaces. See [`Design`] for all keys.

pub mod flodb;
mod per_level;
#[cfg(test)]
mod tests;
mod text;

use std::fmt;

use crate::admission::Constraint;
use crate::strategy::{Eagerness, Strategy};
use flodb::FloDb;
pub use per_level::PerLevel;

/// Which structure takes writes in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemtableKind {
    /// A concurrent B-link tree: neighbouring keys share nodes, so that inserts and lookups miss
    /// the cache a few times only.
    BTree,
    /// A concurrent skip-list.
    SkipList {
        /// One in `branching` nodes of a height also has the next height; 2 to 16.
        branching: u8,
        /// The largest height of a node; 1 to 20.
        height: u8,
    },
    /// A hash table in front of a concurrent skip-list.
    FloDb(FloDb),
}

impl MemtableKind {
    /// The skip-list that is used unless its settings are given.
    ///
    /// Branching 4 costs 1.33 links a node; with the next key's head beside each link, a search
    /// visits few nodes that it does not pass.
    pub const SKIP_LIST: MemtableKind = MemtableKind::SkipList { branching: 4, height: 12 };
}

/// How the blocks of a table are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not at all.
    None,
    /// LZ4 block format.
    Lz4,
}

/// Every choice about one tree.
///
/// | key in text | field | unit | default |
/// |---|---|---|---|
/// | (first word) | `strategy.eagerness` | | |
/// | `T` | `strategy.size_ratio` | | 10 |
/// | `L0` | `strategy.level0_runs` | runs | 1, 4 or T by eagerness |
/// | `base` | `strategy.base_bytes` | bytes | T times the capacity of level 0 |
/// | `trigger` | `strategy.triggers` | list with `+` | `level-saturation+run-count` |
/// | `granularity` | `strategy.granularity` | | by eagerness |
/// | `movement` | `strategy.movement` | list with `+` | `least-overlap` |
/// | `memtable` | `memtable` | `btree`, `skiplist` or `flodb` | `btree` |
/// | `buffer` | `buffer_bytes` | bytes | 64MiB |
/// | `table` | `table_bytes` | bytes | 32MiB |
/// | `block` | `block_bytes` | bytes | 4KiB |
/// | `filter` | `filter_bits` | bits per key, by level | 10 |
/// | `compression` | `compression` | by level | `none` |
/// | `delay`, `stop`, `buffers` | `constraint` | runs, runs, buffers | 12, 24, 3 |
///
/// What differs by level is a list with `,`; its last value holds for all deeper levels.
#[derive(Debug, Clone, PartialEq)]
pub struct Design {
    /// How the tree is kept in shape.
    pub strategy: Strategy,
    /// What takes writes in memory.
    pub memtable: MemtableKind,
    /// Bytes of data and metadata at which a memtable is full.
    pub buffer_bytes: u64,
    /// Target size of a table file, in bytes.
    pub table_bytes: u64,
    /// Target size of a data block before compression, in bytes.
    pub block_bytes: u32,
    /// Bloom filter bits per key for each level; 0 for no filter. May be fractional.
    pub filter_bits: PerLevel<f64>,
    /// Compression of data blocks for each level.
    pub compression: PerLevel<Compression>,
    /// When writers are delayed or stopped.
    pub constraint: Constraint,
}

impl Design {
    /// The usual design of an eagerness.
    pub fn new(eagerness: Eagerness) -> Self {
        Self {
            strategy: Strategy::new(eagerness),
            memtable: MemtableKind::BTree,
            buffer_bytes: 64 << 20,
            table_bytes: 32 << 20,
            block_bytes: 4 << 10,
            filter_bits: PerLevel::all(10.0),
            compression: PerLevel::all(Compression::None),
            constraint: Constraint { delay_runs: 12, stop_runs: 24, stop_buffers: 3 },
        }
    }

    /// The capacity of a level in bytes.
    pub fn capacity_bytes(&self, level: usize) -> u64 {
        self.strategy.capacity_bytes(level, self.buffer_bytes)
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Lz4 => "lz4",
        })
    }
}
