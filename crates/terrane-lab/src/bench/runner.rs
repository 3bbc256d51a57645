//! Runs the workloads of a plan on one design.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::host::resources;
use anyhow::{Result, anyhow};
use terrane::{Db, OpenMode, Options, Stats, TreeView};
use terrane_workload::{Report, Store, Workload, run};

use super::contents::Contents;
use super::meter::WorkloadMeter;
use super::plan::{BenchPlan, loads};
use super::row::{Measurement, WorkloadRow};
use crate::host::interrupt;
use crate::host::progress;
use crate::input::named_design::NamedDesign;
use terrane_workload::TerraneStore;

/// A database under benchmark.
pub(super) struct WorkloadRunner<'a> {
    plan: &'a BenchPlan,
    design: &'a NamedDesign,
    options: Options,
    dir: PathBuf,
    store: TerraneStore,
    contents: Contents,
    repetition: u32,
    /// The position of the first workload among all workloads of the benchmark, and the total
    /// number.
    step: (usize, usize),
}

/// The results of one design.
pub struct DesignRun {
    /// The name of the design.
    pub name: String,
    /// A row per workload.
    pub rows: Vec<WorkloadRow>,
    /// The final tree.
    pub view: TreeView,
    /// The statistics since the last load began.
    pub stats: Stats,
}

impl<'a> WorkloadRunner<'a> {
    /// Creates a database.
    pub(super) fn open_new(
        plan: &'a BenchPlan,
        design: &'a NamedDesign,
        dir: PathBuf,
    ) -> Result<Self> {
        let options = plan.engine.clone().open_mode(OpenMode::MustBeNew);
        let options = options.design(design.design.clone());
        let store = TerraneStore { db: options.open(&dir)? };
        let contents = Contents::EMPTY;
        Ok(Self { plan, design, options, dir, store, contents, repetition: 1, step: (1, 1) })
    }

    /// Opens a database loaded earlier.
    pub(super) fn open_loaded(
        plan: &'a BenchPlan,
        design: &'a NamedDesign,
        dir: PathBuf,
    ) -> Result<Self> {
        let options = plan.engine.clone().open_mode(OpenMode::MustExist);
        let store = TerraneStore { db: options.open(&dir)? };
        let contents = Contents::found_in(&store.db, &plan.run)?.ok_or_else(|| {
            anyhow!(
                "{} does not hold {} loaded keys of {} bytes; give the --num and --key-size that \
                 it was loaded with",
                dir.display(),
                plan.run.num,
                plan.run.key_size_bytes
            )
        })?;
        Ok(Self { plan, design, options, dir, store, contents, repetition: 1, step: (1, 1) })
    }

    /// Sets the repetition number.
    pub(super) fn repetition(self, repetition: u32) -> Self {
        Self { repetition, ..self }
    }

    /// Sets the position of the first workload in the benchmark, from 1, and the total number of
    /// workloads.
    pub(super) fn step(self, place: usize, total: usize) -> Self {
        Self { step: (place, total), ..self }
    }

    /// Returns the log directory of the current database.
    pub(super) fn log_dir(&self) -> PathBuf {
        self.db().log_path().to_owned()
    }

    fn db(&self) -> &Db {
        &self.store.db
    }

    /// Runs all workloads, and passes each row to `on_row`.
    pub(super) fn run(
        mut self,
        on_row: &mut dyn FnMut(&WorkloadRow) -> Result<()>,
    ) -> Result<DesignRun> {
        let mut rows = Vec::new();
        for &workload in &self.plan.workloads {
            self.prepare(workload)?;
            let row = self.measure(workload)?;
            on_row(&row)?;
            rows.push(row);
            self.step.0 += 1;
        }
        let (view, stats) = (self.db().tree(), self.db().stats());
        let name = self.name();
        self.store.db.close()?;
        Ok(DesignRun { name, rows, view, stats })
    }

    fn name(&self) -> String {
        match self.options_are_of_new() {
            true => self.design.name.clone(),
            false => "as it is".to_owned(),
        }
    }

    fn options_are_of_new(&self) -> bool {
        self.design.design == self.db().design()
    }

    /// Loads the keys that a workload needs.
    fn prepare(&mut self, workload: Workload) -> Result<()> {
        if loads(workload) {
            return if self.contents == Contents::EMPTY { Ok(()) } else { self.start_over() };
        }
        if let (None, Some(load)) = (self.contents.loaded, workload.loaded_by()) {
            if self.contents != Contents::EMPTY {
                self.start_over()?;
            }
            let options = self.plan.run_of(load);
            let label = format!("loading for {workload}");
            run(&self.store, load, &options, &WorkloadMeter::new(label, self.db()))?;
            self.settle()?;
            self.contents = self.contents.after(load, &options);
        }
        Ok(())
    }

    /// Replaces the database with an empty one.
    fn start_over(&mut self) -> Result<()> {
        let log_dir = self.log_dir();
        self.db().clone().close()?;
        interrupt::wait_if_ending();
        interrupt::remove_database(&self.dir, &log_dir);
        self.store = TerraneStore { db: self.options.open(&self.dir)? };
        self.contents = Contents::EMPTY;
        Ok(())
    }

    fn settle(&self) -> Result<Duration> {
        let spinner = progress::spinner("settling");
        let begin = Instant::now();
        self.store.settle()?;
        spinner.finish_and_clear();
        Ok(begin.elapsed())
    }

    fn measure(&mut self, workload: Workload) -> Result<WorkloadRow> {
        let mut options = self.plan.run_of(workload);
        if let (false, Some(order)) = (loads(workload), self.contents.loaded) {
            options.key_order = order;
        }
        resources::reset_peak_memory();
        let (stats_before, seconds_before) = (self.db().stats(), resources::processor_seconds());
        let (place, total) = self.step;
        let label = format!("[{place}/{total}] {workload} on {}", self.name());
        let meter = WorkloadMeter::new(label, self.db());
        let report = run(&self.store, workload, &options, &meter)?;
        let settled = if workload.writes() { Some(self.settle()?) } else { None };
        let stats = self.db().stats();
        let seconds = resources::processor_seconds();
        let peak_memory_bytes = resources::peak_memory_bytes();
        // Count wrong answers before `contents` includes this workload, because a mix accounts for
        // its own deletes.
        let wrong_answers = self.wrong_answers(&report);
        self.contents = self.contents.after(workload, &options);
        let live = self.contents.live(&self.store.db)?;
        meter.done(&report, settled);
        Ok(WorkloadRow::of(Measurement {
            design: self.name(),
            design_text: self.db().design().to_string(),
            repetition: self.repetition,
            wrong_answers,
            report,
            settled,
            stats_before,
            stats,
            live,
            peak_memory_bytes,
            processor_seconds: seconds.zip(seconds_before).map(|(now, before)| now - before),
        }))
    }

    /// Returns the number of wrong answers. After deletes, a lookup may find nothing.
    fn wrong_answers(&self, report: &Report) -> u64 {
        let missed = if self.contents.has_deletes { report.not_found } else { 0 };
        report.failures() - missed
    }
}
