//! A tree that is loaded by one thread: the writer also runs every job that is due before its next
//! write (§4.1: compactions come before writes), and the clock advances by a millisecond per
//! operation. Every count is therefore the same in every run.
//!
//! | module | one line |
//! |---|---|
//! | [`operations`] | the writes |
//! | [`writing`] | the load: writes, background jobs, and the metrics of both |
//! | [`reader`] | lookups and ranges of a tree, with a cache of a given size |
//! | [`stats`] | the metrics |

mod operations;
mod reader;
mod stats;
mod writing;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use rand_xoshiro::Xoshiro256PlusPlus;
use terrane::storage::{MemoryStorage, Storage};
use terrane::{Background, CacheWarming, Db, Design, Durability, ManualClock, Options, ReadMode};
use terrane_policy::TableId;

use super::sizes::{CompactionSizes, KeySet, VALUE_BYTES, below};
pub(super) use operations::{Mix, Operation, Operations};
pub(super) use reader::{ReadCost, Reader};
pub(super) use stats::LoadStats;
use terrane_lab::host::interrupt;
use terrane_lab::host::passing_storage::PassingStorage;

const STEP: Duration = Duration::from_millis(1);
/// A tree of at most this much data keeps its files in memory.
const IN_MEMORY_MAX: u64 = 192 << 20;
/// The storage in memory keeps removed files until the directory is synced, which happens after
/// compactions have moved this much.
const SYNC_AFTER: u64 = 64 << 20;

/// The writes of a load, and the database that receives them.
pub(super) struct LoadPlan {
    pub(super) design: Design,
    pub(super) mix: Mix,
    /// Lookups of existing keys per hundred writes, in the second half.
    pub(super) lookups_percent: usize,
    pub(super) value_bytes: usize,
    /// The memory budget of the database.
    pub(super) budget: u64,
    pub(super) cache_warming: CacheWarming,
}

impl LoadPlan {
    pub(super) fn new(design: Design, mix: Mix) -> Self {
        Self {
            budget: (8 * design.buffer_bytes).max(1 << 20),
            design,
            mix,
            lookups_percent: 0,
            value_bytes: VALUE_BYTES,
            cache_warming: CacheWarming::None,
        }
    }

    /// Returns the total bytes of all keys, each with one value.
    fn data_bytes(&self) -> u64 {
        (self.mix.operations / (1 + self.mix.updates) * (4 + self.value_bytes)) as u64
    }
}

/// A tree during or after its load.
pub(super) struct LoadedTree<'a> {
    keys: &'a KeySet,
    load: LoadPlan,
    dir: PathBuf,
    storage: Arc<dyn Storage>,
    db: Db,
    clock: Arc<ManualClock>,
    values: Values,
    operations: Operations<'a>,
    /// The writes so far.
    written: usize,
    /// The number of live keys that the tables contain.
    flushed: usize,
    random: Xoshiro256PlusPlus,
    /// Bytes that compactions have moved so far.
    moved_so_far: u64,
    /// Bytes that compactions had moved when the directory was synced.
    moved_at_sync: u64,
    /// Filter bits per key of each table seen so far, by the level it was written for.
    bits: BTreeMap<TableId, f64>,
    /// Flushes and compactions when the tables were last recorded.
    jobs_recorded: u64,
    pub(super) stats: LoadStats,
}

/// Values without a pattern, of any length.
pub(super) struct Values {
    pool: Vec<u8>,
    random: Xoshiro256PlusPlus,
}

impl Values {
    pub(super) fn new(sizes: &CompactionSizes) -> Self {
        let mut random = sizes.random(2);
        let pool = (0..1 << 16).map(|_| below(&mut random, 256) as u8).collect();
        Self { pool, random }
    }

    pub(super) fn next(&mut self, bytes: usize) -> &[u8] {
        let at = below(&mut self.random, self.pool.len() - bytes);
        &self.pool[at..at + bytes]
    }
}

impl<'a> LoadedTree<'a> {
    /// Creates an empty tree.
    pub(super) fn create(
        sizes: &CompactionSizes,
        keys: &'a KeySet,
        load: LoadPlan,
        dir: &Path,
    ) -> Result<Self> {
        interrupt::wait_if_ending();
        let clock = Arc::new(ManualClock::new(1));
        let storage: Arc<dyn Storage> = if load.data_bytes() > IN_MEMORY_MAX {
            Arc::new(PassingStorage)
        } else {
            Arc::new(MemoryStorage::new(sizes.seed))
        };
        let db = Options::new()
            .design(load.design.clone())
            .durability(Durability::None)
            .read_mode(ReadMode::Cached)
            .memory_budget(load.budget)
            .cache_warming(load.cache_warming)
            .background(Background::Inline)
            .clock(clock.clone())
            .storage(Arc::clone(&storage))
            .open(dir)?;
        Ok(Self {
            keys,
            dir: dir.to_owned(),
            storage,
            db,
            clock,
            values: Values::new(sizes),
            operations: Operations::new(sizes, keys, load.mix),
            load,
            written: 0,
            flushed: 0,
            random: sizes.random(8),
            moved_so_far: 0,
            moved_at_sync: 0,
            bits: BTreeMap::new(),
            jobs_recorded: 0,
            stats: LoadStats::default(),
        })
    }

    /// Loads a new tree completely.
    pub(super) fn load(
        sizes: &CompactionSizes,
        keys: &'a KeySet,
        load: LoadPlan,
        dir: &Path,
    ) -> Result<Self> {
        let mut tree = Self::create(sizes, keys, load, dir)?;
        tree.write(usize::MAX)?;
        tree.finish()?;
        Ok(tree)
    }

    /// Opens the flushed part of the tree for reading, with an empty cache of `cache_bytes`.
    pub(super) fn reader(&self, cache_bytes: u64) -> Result<Reader<'_>> {
        let options = Options::new().read_mode(ReadMode::Cached).background(Background::Inline);
        let options = options.clock(self.clock.clone()).storage(Arc::clone(&self.storage));
        let existing = &self.operations.live[..self.flushed];
        Reader::open(&options, &self.dir, cache_bytes, (self.keys, existing))
    }

    /// Closes the tree and removes its files.
    pub(super) fn close(self) -> Result<LoadStats> {
        self.db.close()?;
        if self.dir.exists() {
            std::fs::remove_dir_all(&self.dir)?;
        }
        Ok(self.stats)
    }
}
