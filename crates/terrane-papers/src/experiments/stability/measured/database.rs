//! A database before, during and after its phase.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use terrane::storage::DiskStorage;
use terrane::{Db, Design, IoBudget, Options, ReadMode};
use terrane_lab::host::passing_storage::PassingStorage;
use terrane_policy::strategy::Intake;
use terrane_policy::{Eagerness, Limit, Scheduler, Violation, share_of_limit};
use terrane_workload::stability::{
    Clock, Load, PhaseOptions, PhaseReport, Query, ReaderReport, Schedule, Watch, Window, run_phase,
};
use terrane_workload::{Glance, IndexedStore, Indexes, Store, TerraneStore};

use super::sizes::{KEY_BYTES, RECORD_BYTES, StabilitySizes, time};
use crate::experiments::stability::phase::PhaseMeasurement;
use crate::experiments::stability::plan::{Arrivals, PhaseDisk, ResolvedPhase};
use crate::experiments::stability::scale::StabilityScale;

/// The maximum number of concurrent merges: as many as there are levels.
const MERGE_SLOTS: usize = 10;
/// Short log files, because the logs of many databases exist at once.
const LOG_SEGMENT_BYTES: u64 = 1 << 20;
/// Memory of a database without its memtables.
const MEMORY_BUDGET: u64 = 32 << 20;
/// All records are loaded in this many memtables.
const LOADED_IN: u64 = 16;
/// The number of windows in a curve.
const WINDOWS: f64 = 60.0;

fn parsed(phase: &ResolvedPhase) -> Result<Design> {
    phase.design.parse().with_context(|| format!("in the design '{}'", phase.design))
}

/// Returns the design of the tree that a phase starts from: it has the levels of the phase's
/// design, but loading never stalls. Large memtables make the load fast; tiering keeps the phase's
/// memtable, because the sizes of its levels follow from it.
pub(super) fn base_design(phase: &ResolvedPhase, sizes: &StabilitySizes) -> Result<Design> {
    let mut design = parsed(phase)?;
    design.strategy.base_bytes = Some(design.capacity_bytes(1, 1));
    if design.strategy.eagerness != Eagerness::Tiering {
        let large = sizes.data_bytes() as u64 / LOADED_IN;
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

/// A database that is open, settled and ready for its phase.
pub(super) struct PhaseDatabase {
    store: Box<dyn Store>,
    db: Db,
}

/// The options of every database.
pub(super) fn options() -> Options {
    let options = Options::new().compaction_threads(MERGE_SLOTS).memory_budget(MEMORY_BUDGET);
    options.log_segment_bytes(LOG_SEGMENT_BYTES).storage(Arc::new(PassingStorage))
}

/// The options of a phase: files that are synced and read from the disk, if it has one.
fn options_on(disk: Option<PhaseDisk>) -> Options {
    let Some(PhaseDisk { sync_bytes, .. }) = disk else { return options() };
    let options = options().sync_bytes(sync_bytes).read_mode(ReadMode::Direct);
    options.storage(Arc::new(DiskStorage))
}

/// Returns the records of a database, with secondary indexes if there are any.
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

impl PhaseDatabase {
    /// Opens the database of a phase, sets its design, waits until the tree settles, and sets its I/O
    /// budget.
    pub(super) fn prepare(
        phase: &ResolvedPhase,
        sizes: &StabilitySizes,
        dir: &Path,
    ) -> Result<Self> {
        let db = options_on(phase.disk).open(dir)?;
        let (base, design) = (base_design(phase, sizes)?, parsed(phase)?);
        let store: Box<dyn Store> = match phase.indexes {
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
        let budget = phase.disk.map_or(sizes.budget(), |disk| disk.budget);
        db.set_io_budget(IoBudget::Total(budget))?;
        Ok(Self { store, db })
    }

    /// Runs the phase.
    pub(super) fn run(
        self,
        phase: &ResolvedPhase,
        sizes: &StabilitySizes,
        clock: &dyn Clock,
    ) -> Result<PhaseMeasurement> {
        let full = sizes.seconds();
        let options = PhaseOptions {
            load: match phase.arrivals {
                Arrivals::Closed => Load::Closed,
                Arrivals::Constant(rate) => Load::Open(Schedule::constant(rate)),
                Arrivals::Burst { low, low_length, high, high_length } => {
                    Load::Open(Schedule::burst(low, low_length * full, high, high_length * full))
                }
            },
            duration: time(full * phase.length),
            warm_up: if phase.has_warm_up { time(sizes.warm_up()) } else { Duration::ZERO },
            writers: phase.writers,
            readers: u32::from(phase.query.is_some()),
            query: phase.query.unwrap_or(Query::Point),
            run: sizes.run(phase.is_skewed),
        };
        let levels = LevelSizes { db: &self.db, sums: RefCell::default(), share: Cell::new(0.0) };
        let report = run_phase(&*self.store, &options, clock, &levels)?;
        let shapes = (levels.means(), levels.share.get());
        drop(self.store);
        self.db.close()?;
        Ok(measurement(&report, shapes))
    }
}

/// Samples the sizes of levels in the second half of a phase, and the ratio of runs to their limit in
/// the whole phase.
struct LevelSizes<'a> {
    db: &'a Db,
    /// The number of samples, and the sums of bytes.
    sums: RefCell<(u32, Vec<f64>)>,
    /// The maximum of the counted runs divided by their limit.
    share: Cell<f64>,
}

impl LevelSizes<'_> {
    fn means(&self) -> Vec<f64> {
        let (count, sums) = &*self.sums.borrow();
        sums.iter().map(|sum| sum / f64::from((*count).max(1))).collect()
    }
}

impl Watch for LevelSizes<'_> {
    fn look(&self, elapsed: Duration, total: Duration, _glance: &Glance) {
        let shape = self.db.tree().shape;
        self.share.set(self.share.get().max(share_of_limit(&shape, &self.db.design())));
        if elapsed < total / 2 {
            return;
        }
        let (count, sums) = &mut *self.sums.borrow_mut();
        *count += 1;
        sums.resize(sums.len().max(shape.levels.len()), 0.0);
        for (sum, level) in sums.iter_mut().zip(&shape.levels) {
            *sum += level.size_bytes() as f64;
        }
    }
}

/// Returns the stall cause that cost writers the most time.
fn main_cause(report: &PhaseReport) -> &str {
    let stalled = report.counters.stalls.iter().filter(|stall| stall.micros > 0);
    stalled.max_by_key(|stall| stall.micros).map_or("nothing", |stall| &stall.cause)
}

fn measurement(
    report: &PhaseReport,
    (level_bytes, limit_share): (Vec<f64>, f64),
) -> PhaseMeasurement {
    let write = |percent| report.write.percentile_micros(percent) / 1e6;
    let window_seconds = (report.seconds + report.warm_up_seconds) / WINDOWS;
    let windows = report.timeline.windows(window_seconds);
    let curve: Vec<f64> = windows.iter().map(Window::per_second).collect();
    // Windows are whole ticks, and may be shorter than requested.
    let window_seconds = windows.get(1).map_or(window_seconds, |window| window.begin_seconds);
    let counters = &report.counters;
    let by_runs = counters.stalls.iter().filter(|stall| stall.cause != "delay");
    let by_runs = by_runs.map(|stall| stall.micros).sum::<u64>();
    let most_runs = report.samples.iter().filter_map(|sample| sample.glance.components).max();
    let readers = report.readers.as_ref();
    PhaseMeasurement {
        rate: report.per_second(),
        p50: write(50.0),
        p99: write(99.0),
        p99_9: write(99.9),
        longest: report.write.max_micros() / 1e6,
        processing_p99: report.processing.percentile_micros(99.0) / 1e6,
        stopped: counters.stall_micros.unwrap_or(0) as f64 / 1e6 / f64::from(report.writers),
        stopped_by_runs: by_runs as f64 / 1e6,
        longest_stall: report.longest_stall_seconds(),
        first_stall: None,
        runs: report.mean_components(0.0, 1.0).unwrap_or(f64::NAN),
        most_runs: most_runs.unwrap_or(0),
        limit_share,
        variation: PhaseMeasurement::variation_of(&curve, window_seconds, report.warm_up_seconds),
        curve,
        window_seconds,
        tree_bytes: level_bytes.iter().sum(),
        level_bytes,
        slowest_second: report.slowest_second_share().unwrap_or(f64::NAN),
        write_amplification: report.write_amplification().unwrap_or(f64::NAN),
        flushes: counters.flushes.unwrap_or(0),
        merges: counters.compactions_by_level.clone(),
        main_cause: main_cause(report).to_owned(),
        query_rate: readers.map(ReaderReport::per_second),
        query_p50: readers.map(|readers| readers.latency.percentile_micros(50.0) / 1e6),
        query_p99: readers.map(|readers| readers.latency.percentile_micros(99.0) / 1e6),
    }
}
