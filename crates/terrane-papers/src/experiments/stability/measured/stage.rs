//! Runs phases in parallel, each on its own database.
//!
//! Trees of the same shape are loaded once: each phase begins with a checkpoint, which shares their
//! tables. All databases are open and settled before the first phase begins.

use std::path::{Path, PathBuf};
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread::scope;

use anyhow::{Result, anyhow};
use indicatif::ProgressBar;
use terrane::{Design, OpenMode};
use terrane_lab::host::interrupt;
use terrane_workload::stability::SystemClock;
use terrane_workload::{Indexes, Silent, Workload};

use super::database::{PhaseDatabase, base_design, options, store_of};
use super::sizes::StabilitySizes;
use crate::experiments::stability::phase::PhaseMeasurement;
use crate::experiments::stability::plan::{PhasePlayer, ResolvedPhase, Stage};

/// The number of databases to prepare in parallel.
const PREPARING: usize = 4;

/// Runs all phases of a stage in parallel.
pub(super) struct ParallelPlayer<'a> {
    sizes: &'a StabilitySizes,
    dir: &'a Path,
    spinner: &'a ProgressBar,
}

impl<'a> ParallelPlayer<'a> {
    pub(super) fn new(sizes: &'a StabilitySizes, dir: &'a Path, spinner: &'a ProgressBar) -> Self {
        Self { sizes, dir, spinner }
    }

    fn run(
        &self,
        phases: &[ResolvedPhase],
        prepared: Vec<Mutex<Option<PhaseDatabase>>>,
    ) -> Result<Vec<PhaseMeasurement>> {
        let begin = Barrier::new(prepared.len());
        scope(|scope| {
            let threads: Vec<_> = prepared
                .into_iter()
                .zip(phases)
                .map(|(prepared, phase)| {
                    let begin = &begin;
                    scope.spawn(move || {
                        begin.wait();
                        let prepared =
                            prepared.into_inner().unwrap_or_else(PoisonError::into_inner);
                        let prepared = prepared.ok_or_else(|| anyhow!("a database is missing"))?;
                        prepared.run(phase, self.sizes, &SystemClock::sleeping())
                    })
                })
                .collect();
            let joined = threads.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            joined.collect()
        })
    }
}

impl PhasePlayer for ParallelPlayer<'_> {
    fn play(&mut self, stage: Stage, phases: &[ResolvedPhase]) -> Result<Vec<PhaseMeasurement>> {
        let name = match stage {
            Stage::Testing => "testing phases".to_owned(),
            Stage::Running => "running phases".to_owned(),
            Stage::Queries => "queries".to_owned(),
            Stage::Round(round) => format!("the default design, round {}", round + 1),
            Stage::Disk(number) => format!("phase {} on a disk", number + 1),
        };
        self.spinner.set_message(format!("{name}: {} databases", phases.len()));
        let mut bases: Vec<BaseTree> = Vec::new();
        for (at, phase) in phases.iter().enumerate() {
            let design = base_design(phase, self.sizes)?;
            let same =
                |base: &&mut BaseTree| base.design == design && base.indexes == phase.indexes;
            match bases.iter_mut().find(same) {
                Some(base) => base.phases.push(at),
                None => bases.push(BaseTree { design, indexes: phase.indexes, phases: vec![at] }),
            }
        }
        let dir = |at: usize| self.dir.join(format!("phase-{at}"));
        side_by_side(&bases, |number, base| {
            let path = self.dir.join(format!("base-{number}"));
            base.load(self.sizes, &path, base.phases.iter().map(|at| dir(*at)))
        })?;
        let prepared: Vec<Mutex<Option<PhaseDatabase>>> =
            phases.iter().map(|_| Mutex::new(None)).collect();
        side_by_side(phases, |at, phase| {
            let database = PhaseDatabase::prepare(phase, self.sizes, &dir(at))?;
            *prepared[at].lock().unwrap_or_else(PoisonError::into_inner) = Some(database);
            Ok(())
        })?;
        let measured = self.run(phases, prepared);
        for at in 0..phases.len() {
            interrupt::wait_if_ending();
            interrupt::remove(&dir(at));
        }
        measured
    }
}

/// A loaded tree that phases start from.
struct BaseTree {
    design: Design,
    indexes: Option<Indexes>,
    /// The phases that start from it.
    phases: Vec<usize>,
}

impl BaseTree {
    /// Loads the tree and leaves a checkpoint for every phase.
    fn load(
        &self,
        sizes: &StabilitySizes,
        path: &Path,
        copies: impl Iterator<Item = PathBuf>,
    ) -> Result<()> {
        let options = options().open_mode(OpenMode::MustBeNew).design(self.design.clone());
        let db = options.open(path)?;
        let store = store_of(&db, self.indexes, &self.design)?;
        terrane_workload::run(&*store, Workload::FillRandom, &sizes.run(false), &Silent)?;
        store.settle()?;
        for copy in copies {
            db.checkpoint(copy)?;
        }
        drop(store);
        db.close()?;
        interrupt::wait_if_ending();
        interrupt::remove(path);
        Ok(())
    }
}

/// Calls `work` for each item, [`PREPARING`] at a time, up to the first error.
fn side_by_side<T: Sync>(
    things: &[T],
    work: impl Fn(usize, &T) -> Result<()> + Sync,
) -> Result<()> {
    let next = Mutex::new(things.iter().enumerate());
    let take = || next.lock().unwrap_or_else(PoisonError::into_inner).next();
    scope(|scope| {
        let worker = || {
            while let Some((at, thing)) = take() {
                work(at, thing)?;
            }
            Ok(())
        };
        let threads: Vec<_> = (0..PREPARING).map(|_| scope.spawn(worker)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })
}
