//! Settings under which the same operations must have the same results.

use std::path::Path;
use std::sync::Arc;

use terrane::policy::catalogue;
use terrane::storage::{DiskStorage, MemoryStorage, Storage};
use terrane::{Background, Db, Design, Durability, ManualClock, Options, ReadMode};
use terrane_testkit::Rng;

#[derive(Debug, Clone)]
pub struct Config {
    pub design: Design,
    pub durability: Durability,
    pub read_mode: ReadMode,
    pub background: Background,
    pub memory_budget: u64,
    pub log_segment_bytes: u64,
    pub log_bytes_max: u64,
    pub compaction_threads: usize,
    pub read_threads: usize,
}

/// A design that flushes and compacts after a few kilobytes.
pub fn small_design(rng: &mut Rng) -> Design {
    let mut design = (rng.pick(catalogue::ALL).design)();
    design.memtable = rng
        .pick(&[
            "btree",
            "skiplist",
            "skiplist(branching=2,height=3)",
            "flodb",
            "flodb(membuffer=90%,partition-bits=0,drain-threads=2)",
            "flodb(membuffer=50%,partition-bits=2,drain-threads=0,insert=single,update=versions)",
        ])
        .parse()
        .unwrap();
    design.buffer_bytes = *rng.pick(&[1 << 10, 1 << 12, 1 << 14]);
    design.table_bytes = *rng.pick(&[1 << 10, 1 << 12, 1 << 16]);
    design.block_bytes = *rng.pick(&[64, 100, 1000, 4096]);
    design.filter_bits = rng.pick(&["10", "0", "0.5,10", "20,5,0"]).parse().unwrap();
    design.compression = rng.pick(&["none", "lz4", "none,lz4"]).parse().unwrap();
    design.strategy.base_bytes = rng.percent(70).then(|| 1 << rng.between(11, 16));
    design.strategy.size_ratio = rng.between(2, 5) as u32;
    design.strategy.level0_runs = rng.between(1, 4) as u32;
    design.strategy.granularity = rng.pick(&["file", "level"]).parse().unwrap();
    design.strategy.movement = vec![rng.pick(&["round-robin", "least-overlap"]).parse().unwrap()];
    design.constraint.delay_runs = design.strategy.level0_runs + rng.between(1, 5) as u32;
    design.constraint.stop_runs = design.constraint.delay_runs + rng.between(1, 10) as u32;
    design.constraint.stop_buffers = rng.between(1, 4) as u32;
    design.validate().unwrap();
    design
}

impl Config {
    pub fn random(rng: &mut Rng) -> Self {
        let interval = Durability::Interval(std::time::Duration::from_millis(1));
        Self {
            design: small_design(rng),
            durability: *rng.pick(&[Durability::Process, interval, Durability::Sync]),
            read_mode: *rng.pick(&[ReadMode::Mapped, ReadMode::Cached, ReadMode::Direct]),
            background: *rng.pick(&[Background::Threads, Background::Inline]),
            memory_budget: *rng.pick(&[1 << 20, 1 << 24]),
            log_segment_bytes: *rng.pick(&[64 << 10, 1 << 20]),
            log_bytes_max: *rng.pick(&[1 << 20, 1 << 30]),
            compaction_threads: rng.between(1, 3) as usize,
            read_threads: *rng.pick(&[0, 0, 1, 3]),
        }
    }

    pub fn options(&self, storage: Arc<dyn Storage>) -> Options {
        Options::new()
            .durability(self.durability)
            .read_mode(self.read_mode)
            .background(self.background)
            .memory_budget(self.memory_budget)
            .log_segment_bytes(self.log_segment_bytes)
            .log_bytes_max(self.log_bytes_max)
            .compaction_threads(self.compaction_threads)
            .read_threads(self.read_threads)
            .storage(storage)
            .clock(Arc::new(ManualClock::new(1_000_000)))
    }

    /// Makes a database in a new directory.
    pub fn create(&self, storage: Arc<dyn Storage>, dir: &Path) -> Db {
        self.options(storage).design(self.design.clone()).open(dir).unwrap()
    }
}

pub fn memory(seed: u64) -> Arc<dyn Storage> {
    Arc::new(MemoryStorage::new(seed))
}

pub fn disk() -> Arc<dyn Storage> {
    Arc::new(DiskStorage)
}
