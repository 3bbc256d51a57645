//! Settings under which the same operations must have the same results.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use terrane::storage::{DiskStorage, MemoryStorage, Storage};
use terrane::{
    Background, CacheWarming, Clock, Db, Design, Durability, IoBudget, KeepChanges, ManualClock,
    Options, ReadMode, WriteMode, WritePath,
};
use terrane_policy::design::FilterAllocation;
use terrane_policy::flodb::ScanMoment;
use terrane_policy::strategy::{Eagerness, Granularity, Trigger};
use terrane_policy::{FlushMode, MemtableKind, Stall, TriggerKind, catalogue};
use terrane_testkit::Rng;

#[derive(Debug, Clone)]
pub struct Config {
    pub design: Design,
    pub durability: Durability,
    pub read_mode: ReadMode,
    pub write_mode: WriteMode,
    pub write_path: WritePath,
    pub cache_warming: CacheWarming,
    pub background: Background,
    pub memory_budget: u64,
    pub log_segment_bytes: u64,
    pub log_bytes_max: u64,
    pub log_dir: &'static str,
    pub flush_threads: usize,
    pub compaction_threads: usize,
    pub merge_threads: usize,
    pub io_budget: IoBudget,
    pub read_threads: usize,
    pub delete_persistence: Option<Duration>,
    pub clock: Arc<ManualClock>,
}

/// The memtable kinds of all designs that this process has drawn at random.
static DRAWN_MEMTABLES: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());

/// Checks that every kind of memtable was drawn at least once.
pub fn check_memtables_drawn() {
    let drawn = DRAWN_MEMTABLES.lock().unwrap();
    let missing: Vec<_> =
        MemtableKind::EXAMPLES.iter().filter(|kind| !drawn.contains(**kind)).collect();
    assert!(missing.is_empty(), "{missing:?} were never drawn");
}

/// A design that flushes and compacts after a few kilobytes.
pub fn small_design(rng: &mut Rng) -> Design {
    loop {
        let memtable = *rng.pick(MemtableKind::EXAMPLES);
        let design = any_small_design(rng, memtable);
        if design.validate().is_ok() {
            DRAWN_MEMTABLES.lock().unwrap().insert(memtable);
            return design;
        }
    }
}

const COMPRESSIONS: &[&str] = match cfg!(feature = "zstd") {
    true => &["none", "lz4", "none,lz4", "zstd", "none,lz4,zstd"],
    false => &["none", "lz4", "none,lz4"],
};

fn any_small_design(rng: &mut Rng, memtable: &str) -> Design {
    let mut design = (rng.pick(catalogue::ALL).design)();
    design.memtable = memtable.parse().unwrap();
    // A restarting scan may share the moment of an older scan, so it may miss later writes that the
    // model has. Fresh scans see them; `tests/linearizability` covers the other settings.
    if let MemtableKind::FloDb(flodb) = &mut design.memtable {
        flodb.moment = ScanMoment::Fresh;
    }
    choose_tables(rng, &mut design);
    choose_strategy(rng, &mut design);
    choose_limits(rng, &mut design);
    // Only for designs in which level 0 may have more than one run and has no policy of its own.
    let mut merging = design.clone();
    merging.flush = FlushMode::Merge;
    if rng.percent(40) && merging.validate().is_ok() {
        return merging;
    }
    design
}

/// Chooses sizes, filters, compression and where values are stored.
fn choose_tables(rng: &mut Rng, design: &mut Design) {
    design.buffer_bytes = *rng.pick(&[1 << 10, 1 << 12, 1 << 14]);
    design.table_bytes = *rng.pick(&[1 << 10, 1 << 12, 1 << 16]);
    design.block_bytes = *rng.pick(&[64, 100, 1000, 4096]);
    if rng.percent(70) {
        design.filter_bits = rng.pick(&["10", "0", "0.5,10", "20,5,0"]).parse().unwrap();
        design.filter_allocation = FilterAllocation::Given;
    }
    design.compression = rng.pick(COMPRESSIONS).parse().unwrap();
    design.filter_probes = *rng.pick(&[None, None, Some(1), Some(3), Some(16)]);
    if rng.percent(50) {
        let values = [
            "separate(32,file=1KiB)",
            "separate(40,garbage=10%,space=1.05,file=2KiB)",
            "separate(64,garbage=100%,file=64KiB)",
            "separate(1KiB,space=2)",
        ];
        design.values = rng.pick(&values).parse().unwrap();
    }
}

/// Chooses when the tree compacts, which tables, and where to.
fn choose_strategy(rng: &mut Rng, design: &mut Design) {
    design.strategy.base_bytes = rng.percent(70).then(|| 1 << rng.between(11, 16));
    design.strategy.size_ratio = rng.between(2, 5) as u32;
    design.strategy.level0_runs = rng.between(1, 4) as u32;
    if rng.percent(50) {
        let granularities = [
            "file",
            "files(3)",
            "level",
            "run",
            "level,file",
            "file(expand=25)",
            "file(expand=8,move=4)",
        ];
        design.strategy.granularity = rng.pick(&granularities).parse().unwrap();
    }
    if rng.percent(50) {
        let rules =
            ["round-robin", "round-robin-within", "least-overlap", "random", "coldest", "oldest"];
        design.strategy.movement = vec![rng.pick(&rules).parse().unwrap()].into();
    }
    design.strategy.tombstone_weight = if rng.percent(25) { 2 } else { 0 };
    if rng.percent(30) {
        design.strategy.triggers = any_triggers(rng).into();
    }
    if rng.percent(12) {
        let policies = TriggerKind::ALL.iter().filter(|kind| kind.is_size_tiered());
        let texts: Vec<&str> = policies.flat_map(|kind| kind.info().small).copied().collect();
        let policy: Trigger = rng.pick(&texts).parse().unwrap();
        let deletes: Trigger = "tombstone-density(20)".parse().unwrap();
        design.strategy.eagerness = Eagerness::Tiering;
        design.strategy.triggers =
            if rng.percent(50) { vec![policy] } else { vec![deletes, policy] }.into();
        design.strategy.granularity = Granularity::Run.into();
        design.strategy.movement = Vec::new().into();
    }
}

/// Chooses when writers wait, and how merges share the bandwidth.
fn choose_limits(rng: &mut Rng, design: &mut Design) {
    if rng.percent(15) {
        design.constraint.stall = Stall::Full;
    }
    if rng.percent(40) {
        let limits = &mut design.constraint;
        limits.limit =
            rng.pick(&["local(2x)", "global(2x)", "global(4)", "level0"]).parse().unwrap();
        limits.violation = rng.pick(&["slow-down", "stop", "spread", "none"]).parse().unwrap();
        limits.max_rate = rng.percent(10).then_some(2_000_000);
    }
    design.scheduler =
        rng.pick(&["single", "fair", "greedy", "greedy(2)", "gear"]).parse().unwrap();
    design.strategy.intake = rng.pick(&["all", "all", "exact"]).parse().unwrap();
    design.constraint.delay_runs = design.strategy.level0_runs + rng.between(1, 5) as u32;
    design.constraint.stop_runs = design.constraint.delay_runs + rng.between(1, 10) as u32;
    design.constraint.stop_buffers = rng.between(1, 4) as u32;
}

/// Returns some triggers, ending with level saturation.
fn any_triggers(rng: &mut Rng) -> Vec<Trigger> {
    let triggers = [
        "run-count",
        "space-amplification(50)",
        "read-amplification(3)",
        "tombstone-density(20)",
        "read-triggered(10)",
        "tombstone-ttl(3s)",
        "file-staleness(2s,5s)",
        "file-count(2)",
        "level-saturation",
    ];
    let mut chosen: Vec<_> = triggers.iter().filter(|_| rng.percent(40)).collect();
    chosen.push(&"level-saturation");
    chosen.dedup();
    chosen.into_iter().map(|text| text.parse().unwrap()).collect()
}

/// Possible directories of the log.
pub const LOG_DIRS: &[&str] = &["database", "database", "wal", "a/b/wal"];

impl Config {
    pub fn random(rng: &mut Rng) -> Self {
        let interval = Durability::Interval(Duration::from_millis(1));
        Self {
            design: small_design(rng),
            durability: *rng.pick(&[Durability::Process, interval, Durability::Sync]),
            read_mode: *rng.pick(&[ReadMode::Cached, ReadMode::Direct]),
            write_mode: *rng.pick(&[WriteMode::Buffered, WriteMode::Direct]),
            write_path: *rng.pick(&[WritePath::Concurrent, WritePath::Queue]),
            cache_warming: *rng.pick(&[
                CacheWarming::None,
                CacheWarming::Meta,
                CacheWarming::All,
                CacheWarming::Read,
            ]),
            background: *rng.pick(&[Background::Threads, Background::Inline]),
            memory_budget: *rng.pick(&[1 << 20, 1 << 24]),
            log_segment_bytes: *rng.pick(&[64 << 10, 1 << 20]),
            log_bytes_max: *rng.pick(&[1 << 20, 1 << 30]),
            log_dir: *rng.pick(LOG_DIRS),
            flush_threads: rng.between(1, 3) as usize,
            compaction_threads: rng.between(1, 3) as usize,
            merge_threads: *rng.pick(&[1, 2, 5]),
            read_threads: *rng.pick(&[0, 0, 1, 3]),
            io_budget: *rng.pick(&[
                IoBudget::Unlimited,
                IoBudget::Unlimited,
                IoBudget::Total(200 << 20),
                IoBudget::Leftover(200 << 20),
            ]),
            delete_persistence: rng.percent(40).then(|| Duration::from_secs(rng.between(1, 20))),
            clock: Arc::new(ManualClock::new(1_000_000)),
        }
    }

    pub fn options(&self, storage: Arc<dyn Storage>) -> Options {
        let mut options = Options::new();
        // Both options are stored, and they exclude each other.
        if let Some(time) = self.delete_persistence {
            options = options.delete_persistence(time).keep_changes(KeepChanges::NONE);
        } else if self.log_segment_bytes == 64 << 10 {
            options.set("delete_persistence", "never").unwrap();
            options = options.keep_changes(KeepChanges::bytes(1 << 20));
        }
        options
            .durability(self.durability)
            .read_mode(self.read_mode)
            .write_mode(self.write_mode)
            .write_path(self.write_path)
            .cache_warming(self.cache_warming)
            .background(self.background)
            .memory_budget(self.memory_budget)
            .log_segment_bytes(self.log_segment_bytes)
            .log_bytes_max(self.log_bytes_max)
            .log_dir(self.log_dir.into())
            .flush_threads(self.flush_threads)
            .compaction_threads(self.compaction_threads)
            .merge_threads(self.merge_threads)
            .io_budget(self.io_budget)
            .read_threads(self.read_threads)
            .storage(storage)
            .clock(Arc::clone(&self.clock) as Arc<dyn Clock>)
    }

    /// Creates a database in a new directory.
    pub fn create(&self, storage: Arc<dyn Storage>, dir: &Path) -> Db {
        self.options(storage).design(self.design.clone()).open(dir).unwrap()
    }
}

/// Returns a path at which a database will be created: in an existing directory, or in several that do
/// not exist yet. `existing` is absolute, or empty for the current directory.
pub fn new_path(rng: &mut Rng, existing: &Path) -> PathBuf {
    let new = *rng.pick(&["db", "a/db", "a/b/c/db", "./db", "a/../db"]);
    match existing.is_absolute() && rng.percent(50) {
        true => relative(existing).join(new),
        false => existing.join(new),
    }
}

/// Makes an absolute path relative to the current directory, which all tests of the process share.
fn relative(path: &Path) -> PathBuf {
    let names = |path: &Path| -> PathBuf {
        path.components().filter(|part| matches!(part, Component::Normal(_))).collect()
    };
    let current = std::env::current_dir().unwrap();
    let up: PathBuf = names(&current).components().map(|_| Component::ParentDir).collect();
    let path = path.canonicalize().unwrap();
    up.join(names(&path))
}

pub fn memory(seed: u64) -> Arc<dyn Storage> {
    Arc::new(MemoryStorage::new(seed))
}

pub fn disk() -> Arc<dyn Storage> {
    Arc::new(DiskStorage)
}
