//! A design: every choice about one tree, as a value with a text form.
//!
//! A design decides which memtable buffers writes, how the tree is compacted, how its tables are
//! written, and when writers stall. It is stored with its tree.
//!
//! The text form is a name of the [`crate::catalogue`] or an eagerness, followed by the settings that
//! differ from it:
//!
//! ```text
//! 1-leveling T=10 L0=4 base=256MiB; granularity=file; movement=least-overlap; filter=10
//! ```
//!
//! Parts are separated by `;`, and within the first part by spaces. [`Design`] lists all keys. For
//! other syntaxes, [`Design::settings`] returns the parts and [`Design::from_settings`] accepts them.

mod constraint;
mod filters;
pub mod flodb;
mod flush_mode;
mod memtable;
mod per_level;
mod scaled_capacities;
mod scaling;
mod settings;
mod summary;
#[cfg(test)]
mod tests;
mod text;
mod validate;
mod values;

use std::fmt;

use crate::scheduler::Scheduler;
use crate::strategy::{Eagerness, Strategy};
pub use constraint::{Bound, Constraint, Limit, NEVER, Stall, Violation};
pub use filters::FilterAllocation;
pub use flush_mode::FlushMode;
pub use memtable::{MemtableKind, OrderedView, VectorQuery};
pub use per_level::PerLevel;
pub use summary::Difference;
pub use values::{ValueSeparation, Values};

/// How the blocks of a table are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not at all.
    None,
    /// LZ4 block format.
    Lz4,
    /// Zstandard. Every build of the engine reads it; only builds with the feature `zstd` write it.
    Zstd,
}

/// All choices about one tree. To build a design, parse a text or call [`Design::new`], and set
/// fields.
///
/// | key in text | field | unit | default |
/// |---|---|---|---|
/// | (first word) | `strategy.eagerness` | | |
/// | `T` | `strategy.size_ratio` | | 10 |
/// | `L0` | `strategy.level0_runs` | runs | 1, 4 or T by eagerness |
/// | `base` | `strategy.base_bytes` | bytes | T times the capacity of level 0 |
/// | `runs` | `strategy.eagerness`, as a hybrid | runs of levels 1, 2, …, [`Runs`](crate::strategy::Runs) | by eagerness |
/// | `growth` | `strategy.growth` | [`Growth`](crate::strategy::Growth) | `fixed` |
/// | `scaling` | `L0`, `runs` and `growth` in Cassandra's notation: `T4,L10,N` | | |
/// | `trigger` | `strategy.triggers` | list with `+`, by level | `level-saturation+run-count` |
/// | `granularity` | `strategy.granularity` | by level | by eagerness |
/// | `movement` | `strategy.movement` | list with `+`, or `none`, by level | `least-overlap` |
/// | `memtable` | `memtable` | a [`MemtableKind`] | `btree` |
/// | `buffer` | `buffer_bytes` | bytes | 64MiB |
/// | `flush` | `flush` | a [`FlushMode`]: `new` or `merge` | `new` |
/// | `table` | `table_bytes` | bytes | 32MiB |
/// | `block` | `block_bytes` | bytes | 4KiB |
/// | `filter` | `filter_bits`, `filter_allocation` | bits per key, by level, or `monkey(10)` | 10 |
/// | `probes` | `filter_probes` | bits that a key sets in a filter, or `auto` | `auto` |
/// | `compression` | `compression` | by level | `none` |
/// | `values` | `values` | [`Values`]: `inline` or `separate(1KiB)`, with the settings of a [`ValueSeparation`] | `inline` |
/// | `delay`, `stop`, `buffers` | `constraint` | runs or `never`, buffers | 12, 24, 3 |
/// | `limit` | `constraint.limit` | [`Limit`]: `level0`, `local(2x)`, `global(2x)`, `global(50)` | `level0` |
/// | `violation` | `constraint.violation` | `spread`, `slow-down`, `stop` or `none` | `stop` |
/// | `stall` | `constraint.stall` | `runs` or `full` | `runs` |
/// | `max-rate` | `constraint.max_rate` | operations a second, or `none` | `none` |
/// | `scheduler` | `scheduler` | a [`Scheduler`] | `fair` |
/// | `tombstone-weight` | `strategy.tombstone_weight` | values | 0 |
/// | `intake` | `strategy.intake` | `all` or `exact` | `all` |
///
/// Settings that differ by level are lists with `,`; the last value applies to all deeper levels.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Design {
    /// How the tree is compacted.
    pub strategy: Strategy,
    /// The structure that buffers writes.
    pub memtable: MemtableKind,
    /// Bytes of data and metadata at which a memtable is full.
    pub buffer_bytes: u64,
    /// How flushes treat the runs of level 0.
    pub flush: FlushMode,
    /// Target size of a table file, in bytes.
    pub table_bytes: u64,
    /// Target size of a data block before compression, in bytes.
    pub block_bytes: u32,
    /// Bloom filter bits per key for each level; 0 for no filter. May be fractional.
    pub filter_bits: PerLevel<f64>,
    /// Whether the bits are given for each level or are an average to allocate to levels.
    pub filter_allocation: FilterAllocation,
    /// The number of bits that a key sets in a filter, 1 to 16; `None` for the number that gives the
    /// fewest false positives.
    pub filter_probes: Option<u8>,
    /// Compression of data blocks for each level.
    pub compression: PerLevel<Compression>,
    /// Where values are stored.
    pub values: Values,
    /// When writers are delayed or stopped.
    pub constraint: Constraint,
    /// How merges share the bandwidth.
    pub scheduler: Scheduler,
}

/// The default scheduler.
pub(crate) const DEFAULT_SCHEDULER: Scheduler = Scheduler::Fair;

impl Design {
    /// Returns the default design of an eagerness.
    pub fn new(eagerness: Eagerness) -> Self {
        Self {
            strategy: Strategy::new(eagerness),
            memtable: MemtableKind::BTree,
            buffer_bytes: 64 << 20,
            flush: FlushMode::New,
            table_bytes: 32 << 20,
            block_bytes: 4 << 10,
            filter_bits: PerLevel::all(10.0),
            filter_allocation: FilterAllocation::Given,
            filter_probes: None,
            compression: PerLevel::all(Compression::None),
            values: Values::Inline,
            constraint: Constraint {
                delay_runs: 12,
                stop_runs: 24,
                stop_buffers: 3,
                stall: Stall::Runs,
                limit: Limit::Level0,
                violation: Violation::Stop,
                max_rate: None,
            },
            scheduler: DEFAULT_SCHEDULER,
        }
    }

    /// Returns the capacity of a level in bytes, if `last_level` is the deepest one in use.
    pub fn capacity_bytes(&self, level: usize, last_level: usize) -> u64 {
        self.strategy.capacity_bytes(level, last_level, self.buffer_bytes)
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        })
    }
}
