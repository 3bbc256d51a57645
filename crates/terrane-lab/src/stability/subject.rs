//! The stores to evaluate: a database of a design, or an in-memory map for comparison.

use std::path::{Path, PathBuf};

use anyhow::Result;
use terrane::{Db, Design, IoBudget, OpenMode, Options, Stats};
use terrane_policy::TreeShape;
use terrane_workload::stability::Subject;
use terrane_workload::{
    IndexedStore, MemStore, Progress, RunError, RunOptions, Silent, Store, StoreError,
    TerraneStore, Workload, run,
};

use super::counted::EngineCounts;
use super::meter::LoadMeter;
use super::plan::StabilityPlan;
use crate::host::progress;
use crate::input::named_design::NamedDesign;

/// The store that holds the records: a database alone, or a database with secondary indexes.
enum RecordStore {
    Plain(TerraneStore),
    Indexed { store: IndexedStore, record_bytes: usize, key_bytes: usize },
}

impl RecordStore {
    fn store(&self) -> &dyn Store {
        match self {
            Self::Plain(store) => store,
            Self::Indexed { store, .. } => store,
        }
    }

    fn db(&self) -> &Db {
        match self {
            Self::Plain(store) => &store.db,
            Self::Indexed { store, .. } => store.db(),
        }
    }

    fn set_design(&self, design: &Design) -> Result<(), StoreError> {
        match self {
            Self::Plain(store) => {
                let changed = store.db.set_design(design.clone());
                changed.map_err(StoreError::during("change the design"))
            }
            Self::Indexed { store, record_bytes, key_bytes } => {
                store.set_design(design, (*record_bytes, *key_bytes))
            }
        }
    }
}

/// A loaded database. It has the testing design until the running phase starts.
pub(super) struct LoadedDatabase {
    records: RecordStore,
    design: Design,
    /// The write rate limit of flushes and merges during the phases.
    budget: Option<IoBudget>,
    /// The engine's counters when the testing phase started.
    before_testing: Stats,
    /// The counters and the tree when the running phase started.
    before_running: (Stats, TreeShape),
}

impl LoadedDatabase {
    /// Creates and loads a database.
    pub(super) fn load(
        design: &NamedDesign,
        options: &Options,
        dir: &Path,
        plan: &StabilityPlan,
    ) -> Result<Self> {
        let testing = terrane_workload::testing_design(&design.design);
        let options = options.clone().open_mode(OpenMode::MustBeNew);
        let db = options.design(testing.clone()).open(dir)?;
        let records = records(db, plan, &testing)?;
        let label = format!("loading {}", design.name);
        load(records.store(), &plan.phases.run, &LoadMeter::new(label))?;
        Ok(Self {
            records,
            design: design.design.clone(),
            budget: plan.budget,
            before_testing: Stats::default(),
            before_running: (Stats::default(), TreeShape::default()),
        })
    }

    /// Returns the engine's counters of both phases, once both have completed.
    pub(super) fn counts(&self) -> EngineCounts {
        let (before_running, shape) = self.before_running.clone();
        EngineCounts {
            before_testing: self.before_testing.clone(),
            before_running,
            after: self.db().stats(),
            shape,
            budget: self.db().io_budget(),
        }
    }

    /// Closes the database. Returns the directory of its log.
    pub(super) fn close(self) -> Result<PathBuf> {
        let log_dir = self.db().log_path().to_owned();
        self.db().clone().close()?;
        Ok(log_dir)
    }

    fn db(&self) -> &Db {
        self.records.db()
    }

    /// Lets the tree settle without an I/O budget, then sets the budget.
    fn settle(&self) -> Result<(), StoreError> {
        let limit = |budget| {
            self.db().set_io_budget(budget).map_err(StoreError::during("set the I/O budget"))
        };
        if self.budget.is_some() {
            limit(IoBudget::Unlimited)?;
        }
        let spinner = progress::spinner("settling");
        let settled = self.records.store().settle();
        spinner.finish_and_clear();
        settled?;
        self.budget.map_or(Ok(()), limit)
    }
}

impl Subject for LoadedDatabase {
    fn for_testing(&mut self) -> Result<&dyn Store, RunError> {
        self.settle()?;
        self.before_testing = self.db().stats();
        Ok(self.records.store())
    }

    fn for_running(&mut self) -> Result<&dyn Store, RunError> {
        self.records.set_design(&self.design)?;
        self.settle()?;
        self.before_running = (self.db().stats(), TreeShape::clone(&self.db().tree().shape));
        Ok(self.records.store())
    }
}

/// Returns the record store of a database, with the indexes of the plan.
fn records(db: Db, plan: &StabilityPlan, design: &Design) -> Result<RecordStore, StoreError> {
    let Some(indexes) = plan.indexes else { return Ok(RecordStore::Plain(TerraneStore { db })) };
    let (record_bytes, key_bytes) =
        (plan.bytes_per_write() as usize, plan.phases.run.key_size_bytes);
    let store = IndexedStore::new(db, indexes, design, (record_bytes, key_bytes))?;
    Ok(RecordStore::Indexed { store, record_bytes, key_bytes })
}

/// The in-memory map.
pub(super) struct MapSubject {
    store: MemStore,
}

impl MapSubject {
    /// Loads a map.
    pub(super) fn load(records: &RunOptions) -> Result<Self> {
        let store = MemStore::new();
        load(&store, records, &Silent)?;
        Ok(Self { store })
    }
}

impl Subject for MapSubject {
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
