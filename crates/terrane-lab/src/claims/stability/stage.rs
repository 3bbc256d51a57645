//! Phases that run at the same time, each on a database of its own.
//!
//! Trees of the same shape are loaded once: each phase begins with a checkpoint, which shares their
//! tables. All databases are ready and at rest before the first phase begins.

use std::ops::Index;
use std::path::{Path, PathBuf};
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread::scope;

use anyhow::{Result, anyhow};
use terrane::{Design, OpenMode};
use terrane_workload::stability::SystemClock;
use terrane_workload::{Indexes, Silent, Workload};

use super::setting::Setting;
use super::trial::{Phase, Ready, Trial, options, store_of};
use crate::interrupt;

/// Databases that are made ready at the same time.
const PREPARING: usize = 4;

/// Which phase of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Id(usize);

/// Phases that are to run.
pub(super) struct Stage<'a> {
    setting: &'a Setting,
    dir: &'a Path,
    trials: Vec<Trial>,
}

/// What came out of them.
pub(super) struct Played(Vec<Phase>);

impl Played {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Index<Id> for Played {
    type Output = Phase;

    fn index(&self, Id(at): Id) -> &Phase {
        &self.0[at]
    }
}

impl<'a> Stage<'a> {
    pub(super) fn new(setting: &'a Setting, dir: &'a Path) -> Self {
        Self { setting, dir, trials: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.trials.len()
    }

    /// Another phase; the same one only once.
    pub(super) fn add(&mut self, trial: Trial) -> Id {
        if let Some(at) = self.trials.iter().position(|other| *other == trial) {
            return Id(at);
        }
        self.trials.push(trial);
        Id(self.trials.len() - 1)
    }

    /// Runs them all.
    pub(super) fn play(self) -> Result<Played> {
        let mut bases: Vec<Base> = Vec::new();
        for (at, trial) in self.trials.iter().enumerate() {
            let design = trial.base(self.setting)?;
            let is_same = |base: &&mut Base| base.design == design && base.indexes == trial.indexes;
            match bases.iter_mut().find(is_same) {
                Some(base) => base.trials.push(at),
                None => bases.push(Base { design, indexes: trial.indexes, trials: vec![at] }),
            }
        }
        let dir = |at: usize| self.dir.join(format!("phase-{at}"));
        side_by_side(&bases, |number, base| {
            let path = self.dir.join(format!("base-{number}"));
            base.load(self.setting, &path, base.trials.iter().map(|at| dir(*at)))
        })?;
        let ready: Vec<Mutex<Option<Ready>>> =
            self.trials.iter().map(|_| Mutex::new(None)).collect();
        side_by_side(&self.trials, |at, trial| {
            let made = Ready::new(trial, self.setting, &dir(at))?;
            *ready[at].lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
            Ok(())
        })?;
        let played = self.run(ready);
        for at in 0..self.trials.len() {
            interrupt::wait_if_ending();
            interrupt::remove(&dir(at));
        }
        played.map(Played)
    }

    fn run(&self, ready: Vec<Mutex<Option<Ready>>>) -> Result<Vec<Phase>> {
        let begin = Barrier::new(ready.len());
        scope(|scope| {
            let threads: Vec<_> = ready
                .into_iter()
                .zip(&self.trials)
                .map(|(ready, trial)| {
                    let begin = &begin;
                    scope.spawn(move || {
                        begin.wait();
                        let ready = ready.into_inner().unwrap_or_else(PoisonError::into_inner);
                        let ready = ready.ok_or_else(|| anyhow!("a database was not made"))?;
                        ready.run(trial, self.setting, &SystemClock::sleeping())
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

/// A tree to begin with.
struct Base {
    design: Design,
    indexes: Option<Indexes>,
    /// Phases that begin with it.
    trials: Vec<usize>,
}

impl Base {
    /// Loads it, and leaves a copy for every phase.
    fn load(
        &self,
        setting: &Setting,
        path: &Path,
        copies: impl Iterator<Item = PathBuf>,
    ) -> Result<()> {
        let options = options().open_mode(OpenMode::MustBeNew).design(self.design.clone());
        let db = options.open(path)?;
        let store = store_of(&db, self.indexes, &self.design)?;
        terrane_workload::run(&*store, Workload::FillRandom, &setting.run(false), &Silent)?;
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

/// Does something for each of several things, a few at a time; the first error ends it.
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
