//! What is evaluated: a database of a design, or the map in memory that it is held against.

use std::path::Path;

use anyhow::Result;
use terrane::{Db, Design, IoBudget, OpenMode, Options};
use terrane_workload::stability::Subject;
use terrane_workload::{
    MemStore, Progress, RunError, RunOptions, Silent, Store, StoreError, TerraneStore, Workload,
    run,
};

use super::meter::Loading;
use super::plan::{Candidate, testing_design};
use crate::progress;

/// A database that was loaded, in its testing design until it is to run.
pub(super) struct Database {
    store: TerraneStore,
    design: Design,
    /// What flushes and merges may write in a second during the phases.
    budget: Option<IoBudget>,
}

impl Database {
    /// Makes and loads a database.
    pub(super) fn load(
        candidate: &Candidate,
        options: &Options,
        dir: &Path,
        records: &RunOptions,
        budget: Option<IoBudget>,
    ) -> Result<Self> {
        let options = options.clone().open_mode(OpenMode::MustBeNew);
        let options = options.design(testing_design(&candidate.design));
        let store = TerraneStore { db: options.open(dir)? };
        let label = format!("loading {}", candidate.name);
        load(&store, records, &Loading::new(label))?;
        Ok(Self { store, design: candidate.design.clone(), budget })
    }

    /// Closes it.
    pub(super) fn close(self) -> Result<()> {
        Ok(self.store.db.close()?)
    }

    fn db(&self) -> &Db {
        &self.store.db
    }

    /// Brings it to rest as fast as it can, and then to its budget.
    fn settle(&self) -> Result<(), StoreError> {
        let limit =
            |budget| self.db().set_io_budget(budget).map_err(StoreError::during("set its budget"));
        if self.budget.is_some() {
            limit(IoBudget::Unlimited)?;
        }
        let spinner = progress::spinner("settling");
        let settled = self.store.settle();
        spinner.finish_and_clear();
        settled?;
        self.budget.map_or(Ok(()), limit)
    }
}

impl Subject for Database {
    fn for_testing(&mut self) -> Result<&dyn Store, RunError> {
        self.settle()?;
        Ok(&self.store)
    }

    fn for_running(&mut self) -> Result<&dyn Store, RunError> {
        let changed = self.db().set_design(self.design.clone());
        changed.map_err(StoreError::during("change its design"))?;
        self.settle()?;
        Ok(&self.store)
    }
}

/// A map in memory.
pub(super) struct Map {
    store: MemStore,
}

impl Map {
    /// Loads one.
    pub(super) fn load(records: &RunOptions) -> Result<Self> {
        let store = MemStore::new();
        load(&store, records, &Silent)?;
        Ok(Self { store })
    }
}

impl Subject for Map {
    fn for_testing(&mut self) -> Result<&dyn Store, RunError> {
        Ok(&self.store)
    }

    fn for_running(&mut self) -> Result<&dyn Store, RunError> {
        Ok(&self.store)
    }
}

/// Writes every record once, in random order.
fn load(store: &dyn Store, records: &RunOptions, progress: &dyn Progress) -> Result<(), RunError> {
    run(store, Workload::FillRandom, records, progress).map(|_| ())
}
