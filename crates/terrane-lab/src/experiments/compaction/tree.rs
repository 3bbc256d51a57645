//! A tree that is loaded and read serially: the writer also runs every job that is due before its
//! next write (§4.1: compactions come before writes), and the clock advances by a millisecond per
//! operation. Every count is therefore the same in every run; only times differ.
//!
//! | module | one line |
//! |---|---|
//! | [`writing`] | the load: writes, background jobs, and the metrics of both |
//! | [`reading`] | lookups and ranges of the loaded tree |
//! | [`stats`] | the metrics |

mod reading;
mod stats;
mod writing;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use terrane::storage::{MemoryStorage, Storage};
use terrane::{Background, CacheWarming, Db, Design, Durability, ManualClock, Options, ReadMode};
use terrane_policy::TableId;

use super::sizes::{CompactionSizes, KeySet, VALUE_BYTES, below};
use crate::interrupt;
use crate::passing_storage::PassingStorage;
pub(super) use stats::{LoadStats, LookupCost, PageCounts};

const STEP: Duration = Duration::from_millis(1);

/// The writes of a load, and the database that receives them.
pub(super) struct LoadPlan {
    pub(super) design: Design,
    /// The number of updates for each insert.
    pub(super) updates: usize,
    /// Whether most updates hit a tenth of the key space.
    pub(super) is_skewed: bool,
    /// Deletes per hundred operations.
    pub(super) deletes_percent: usize,
    /// Whether lookups of existing keys are interleaved with the writes of the second half.
    pub(super) is_interleaved: bool,
    pub(super) value_bytes: usize,
    /// The memory budget of the database.
    pub(super) budget: u64,
    /// True if the files of the database are on disk, without syncs. In-memory storage keeps
    /// removed files until the next sync, which takes too much memory for a large tree.
    pub(super) is_on_disk: bool,
    pub(super) cache_warming: CacheWarming,
}

impl LoadPlan {
    pub(super) fn inserts(design: Design) -> Self {
        Self {
            budget: (8 * design.buffer_bytes).max(1 << 20),
            is_on_disk: false,
            design,
            updates: 0,
            is_skewed: false,
            deletes_percent: 0,
            is_interleaved: false,
            value_bytes: VALUE_BYTES,
            cache_warming: CacheWarming::None,
        }
    }
}

/// A loaded tree.
pub(super) struct LoadedTree<'a> {
    sizes: &'a CompactionSizes,
    keys: &'a KeySet,
    dir: PathBuf,
    storage: Arc<dyn Storage>,
    is_on_disk: bool,
    db: Db,
    clock: Arc<ManualClock>,
    pool: Vec<u8>,
    live: Vec<u32>,
    page_bytes: u32,
    /// Bytes that compactions have moved so far.
    moved_so_far: u64,
    /// Filter bits per key of each table seen so far, by the level it was written for.
    bits: BTreeMap<TableId, f64>,
    /// Flushes and compactions when the tables were last recorded.
    jobs_recorded: u64,
    pub(super) stats: LoadStats,
}

impl<'a> LoadedTree<'a> {
    /// Loads a new tree. Its files are in memory or not synced, because syncs would take most of the
    /// time and vary between runs.
    pub(super) fn load(
        sizes: &'a CompactionSizes,
        keys: &'a KeySet,
        load: &LoadPlan,
        dir: &Path,
    ) -> Result<Self> {
        interrupt::wait_if_ending();
        let clock = Arc::new(ManualClock::new(1));
        let storage: Arc<dyn Storage> = if load.is_on_disk {
            Arc::new(PassingStorage)
        } else {
            Arc::new(MemoryStorage::new(sizes.seed))
        };
        let db = open(load, &storage, &clock, dir)?;
        let mut random = sizes.random(2);
        let pool = (0..1 << 16).map(|_| below(&mut random, 256) as u8).collect();
        let mut tree = Self {
            sizes,
            keys,
            dir: dir.to_owned(),
            storage,
            is_on_disk: load.is_on_disk,
            db,
            clock,
            pool,
            live: Vec::new(),
            page_bytes: load.design.block_bytes,
            moved_so_far: 0,
            bits: BTreeMap::new(),
            jobs_recorded: 0,
            stats: LoadStats::default(),
        };
        tree.write(load)?;
        tree.finish(load)?;
        Ok(tree)
    }

    /// Closes the tree and removes its files.
    pub(super) fn close(self) -> Result<LoadStats> {
        self.db.close()?;
        if self.is_on_disk {
            std::fs::remove_dir_all(&self.dir)?;
        }
        Ok(self.stats)
    }
}

fn open(
    load: &LoadPlan,
    storage: &Arc<dyn Storage>,
    clock: &Arc<ManualClock>,
    dir: &Path,
) -> Result<Db> {
    let db = Options::new()
        .design(load.design.clone())
        .durability(Durability::None)
        .read_mode(ReadMode::Cached)
        .memory_budget(load.budget)
        .cache_warming(load.cache_warming)
        .background(Background::Inline)
        .clock(clock.clone())
        .storage(Arc::clone(storage))
        .open(dir)?;
    Ok(db)
}
