//! One phase of one design: a database that is there when it begins, and what came out.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use terrane::policy::strategy::Intake;
use terrane::policy::{Eagerness, Limit, Scheduler, Violation};
use terrane::{Db, Design, IoBudget, Options};
use terrane_workload::stability::{
    Clock, Load, PhaseOptions, PhaseReport, Query, Schedule, Watch, run_phase,
};
use terrane_workload::{Glance, IndexedStore, Indexes, Store, TerraneStore};

use super::setting::{KEY_BYTES, RECORD_BYTES, Setting, time};
use crate::passing_storage::PassingStorage;

/// Merges that may go on at the same time: as many as there are levels.
const PLACES: usize = 10;
/// Log files of this length, as those of many databases are there at once.
const LOG_SEGMENT_BYTES: u64 = 1 << 20;
/// Memory of a database beside its memtables.
const MEMORY_BUDGET: u64 = 32 << 20;

/// A phase that is wanted.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Trial {
    /// The design, as text.
    pub(super) design: String,
    pub(super) load: Load,
    pub(super) writers: u32,
    pub(super) is_skewed: bool,
    pub(super) query: Option<Query>,
    pub(super) indexes: Option<Indexes>,
    pub(super) seconds: f64,
    pub(super) warm_up: f64,
    /// Tells apart what is otherwise the same.
    pub(super) round: usize,
}

impl Trial {
    /// As fast as the engine takes writes.
    pub(super) fn closed(setting: &Setting, design: impl Into<String>) -> Self {
        Self {
            design: design.into(),
            load: Load::Closed,
            writers: 1,
            is_skewed: false,
            query: None,
            indexes: None,
            seconds: setting.seconds(),
            warm_up: setting.warm_up(),
            round: 0,
        }
    }

    /// The paper's testing phase of a design: fair shares, exact merges, no greatest rate.
    pub(super) fn testing(setting: &Setting, design: &str) -> Self {
        Self::closed(setting, format!("{design}; scheduler=fair"))
    }

    /// Writes come by a schedule.
    pub(super) fn scheduled(
        setting: &Setting,
        design: impl Into<String>,
        schedule: Schedule,
    ) -> Self {
        let load = Load::Open(schedule);
        Self { load, warm_up: 0.0, ..Self::closed(setting, design) }
    }

    /// So many writes come in a second.
    pub(super) fn open(setting: &Setting, design: impl Into<String>, rate: f64) -> Self {
        Self::scheduled(setting, design, Schedule::constant(rate.max(1.0)))
    }

    /// The design of the database that it begins with. Its levels are those of its own design, and
    /// loading waits for nothing. Large memtables have it loaded quickly, unless levels gather runs,
    /// which are as large as what they come from.
    pub(super) fn base(&self, setting: &Setting) -> Result<Design> {
        let mut design = self.parsed()?;
        design.strategy.base_bytes = Some(design.capacity_bytes(1, 1));
        if design.strategy.eagerness != Eagerness::Tiering {
            let large = setting.data_bytes() as u64 / LOADED_IN;
            design.buffer_bytes = design.buffer_bytes.max(large);
        }
        design.constraint.stop_buffers = 3;
        design.scheduler = Scheduler::Fair;
        design.strategy.intake = Intake::Exact;
        design.constraint.limit = Limit::Level0;
        design.constraint.violation = Violation::None;
        design.constraint.max_rate = None;
        Ok(design)
    }

    pub(super) fn parsed(&self) -> Result<Design> {
        self.design.parse().with_context(|| format!("in the design '{}'", self.design))
    }
}

/// Memtables that all records are loaded in.
const LOADED_IN: u64 = 16;

/// What came out of a phase.
#[derive(Debug)]
pub(super) struct Phase {
    pub(super) report: PhaseReport,
    /// Mean bytes of each level in the second half.
    pub(super) level_bytes: Vec<f64>,
}

/// A database, ready for its phase.
pub(super) struct Ready {
    store: Box<dyn Store>,
    db: Db,
}

/// The options of every database.
pub(super) fn options() -> Options {
    let options = Options::new().compaction_threads(PLACES).memory_budget(MEMORY_BUDGET);
    options.log_segment_bytes(LOG_SEGMENT_BYTES).storage(Arc::new(PassingStorage))
}

/// The records of a database, with the indexes of a trial.
pub(super) fn store_of(
    db: &Db,
    indexes: Option<Indexes>,
    design: &Design,
) -> Result<Box<dyn Store>> {
    Ok(match indexes {
        None => Box::new(TerraneStore { db: db.clone() }),
        Some(indexes) => Box::new(indexed(db, indexes, design)?),
    })
}

fn indexed(db: &Db, indexes: Indexes, design: &Design) -> Result<IndexedStore> {
    Ok(IndexedStore::new(db.clone(), indexes, design, (RECORD_BYTES, KEY_BYTES))?)
}

impl Ready {
    /// Opens the database of a trial, gives it its design, and brings it to rest and to its budget.
    pub(super) fn new(trial: &Trial, setting: &Setting, dir: &Path) -> Result<Self> {
        let db = options().open(dir)?;
        let (base, design) = (trial.base(setting)?, trial.parsed()?);
        let store: Box<dyn Store> = match trial.indexes {
            None => {
                db.set_design(design)?;
                store_of(&db, None, &base)?
            }
            Some(indexes) => {
                let store = indexed(&db, indexes, &base)?;
                store.set_design(&design, (RECORD_BYTES, KEY_BYTES))?;
                Box::new(store)
            }
        };
        store.settle()?;
        db.set_io_budget(IoBudget::Total(setting.budget()))?;
        Ok(Self { store, db })
    }

    /// Runs the phase.
    pub(super) fn run(self, trial: &Trial, setting: &Setting, clock: &dyn Clock) -> Result<Phase> {
        let options = PhaseOptions {
            load: trial.load,
            duration: time(trial.seconds),
            warm_up: if trial.warm_up > 0.0 { time(trial.warm_up) } else { Duration::ZERO },
            writers: trial.writers,
            readers: u32::from(trial.query.is_some()),
            query: trial.query.unwrap_or(Query::Point),
            run: setting.run(trial.is_skewed),
        };
        let levels = Levels { db: &self.db, sums: RefCell::default() };
        let report = run_phase(&*self.store, &options, clock, &levels)?;
        let level_bytes = levels.means();
        drop(self.store);
        self.db.close()?;
        Ok(Phase { report, level_bytes })
    }
}

/// Looks at the sizes of levels in the second half of a phase.
struct Levels<'a> {
    db: &'a Db,
    /// How often it looked, and bytes.
    sums: RefCell<(u32, Vec<f64>)>,
}

impl Levels<'_> {
    fn means(self) -> Vec<f64> {
        let (count, sums) = self.sums.into_inner();
        sums.into_iter().map(|sum| sum / f64::from(count.max(1))).collect()
    }
}

impl Watch for Levels<'_> {
    fn look(&self, elapsed: Duration, total: Duration, _glance: &Glance) {
        if elapsed < total / 2 {
            return;
        }
        let (count, sums) = &mut *self.sums.borrow_mut();
        *count += 1;
        let shape = self.db.tree().shape;
        sums.resize(sums.len().max(shape.levels.len()), 0.0);
        for (sum, level) in sums.iter_mut().zip(&shape.levels) {
            *sum += level.size_bytes() as f64;
        }
    }
}

impl Phase {
    /// Writes a second.
    pub(super) fn rate(&self) -> f64 {
        self.report.per_second()
    }

    /// The latency of a percentage of the writes from when they came, in seconds.
    pub(super) fn write(&self, percent: f64) -> f64 {
        self.report.write.percentile_micros(percent) / 1e6
    }

    pub(super) fn p99(&self) -> f64 {
        self.write(99.0)
    }

    /// For how long a writer was held up, in seconds.
    pub(super) fn stopped(&self) -> f64 {
        let micros = self.report.counters.stall_micros.unwrap_or(0);
        micros as f64 / 1e6 / f64::from(self.report.writers)
    }

    /// What writers were held up by for longest.
    pub(super) fn main_cause(&self) -> &str {
        let waited = self.report.counters.stalls.iter().filter(|stall| stall.micros > 0);
        waited.max_by_key(|stall| stall.micros).map_or("nothing", |stall| &stall.cause)
    }

    pub(super) fn longest_stall(&self) -> f64 {
        self.report.longest_stall_seconds()
    }

    pub(super) fn runs(&self) -> f64 {
        self.report.mean_components(0.0, 1.0).unwrap_or(0.0)
    }

    pub(super) fn most_runs(&self) -> u64 {
        let samples = self.report.samples.iter();
        samples.filter_map(|sample| sample.glance.components).max().unwrap_or(0)
    }
}
