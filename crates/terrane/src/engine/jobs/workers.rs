//! The threads of a database, and callers that wait for jobs.
//!
//! Flush threads are separate from compaction threads, so no flush waits for a compaction. Each
//! thread looks for a job and runs it. Without a job, the thread sleeps until a change wakes it.
//! With [`Background::Inline`] the database has no threads, and callers that wait run the jobs.
//!
//! | module | one line |
//! |---|---|
//! | `delete_age` | replaces memtables so that deletes are persistent in time |
//! | `memtable_switch` | switches to another kind of memtable if the current one does not suit the operations |
//! | `outcome` | how a failed job affects the database |
//! | `full_disk` | frees space on a full disk |
//! | `flush_thread`, `compaction_thread`, `drain_thread` | the loops of the threads |
//! | `threads` | starts and ends threads |
//! | `ingesting` | adds the tables of an ingest to a tree |
//! | `waiting` | waits for jobs, or runs them |
//! | `views` | reports running and waiting jobs |
//!
//! [`Background::Inline`]: crate::Background::Inline

mod compaction_thread;
mod delete_age;
mod drain_thread;
mod flush_thread;
mod full_disk;
mod ingesting;
mod memory_thread;
mod memtable_switch;
mod outcome;
mod threads;
mod views;
mod waiting;

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use terrane_policy::{Design, Forecast};

use super::compact::Compactor;
use super::flush::Flusher;
use super::gate::Gate;
use super::picking::Picker;
use crate::base::error::{Error, Result};
use crate::base::event::PredictedChange;
use crate::base::io_budget::IoBudget;
use crate::engine::catalog::Catalog;
use crate::engine::context::Context;
use crate::engine::pipeline::Pipeline;
use crate::engine::tree::Tree;

/// Runs the background jobs of a database.
#[derive(Debug)]
pub(crate) struct Jobs {
    context: Arc<Context>,
    pipeline: Arc<Pipeline>,
    catalog: Arc<Catalog>,
    picker: Arc<Picker>,
    gate: Arc<Gate>,
    pub(crate) flusher: Flusher,
    pub(crate) compactor: Compactor,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// The number of drain threads.
    drain_threads: Mutex<usize>,
}

impl Jobs {
    pub(crate) fn new(
        context: &Arc<Context>,
        pipeline: &Arc<Pipeline>,
        catalog: &Arc<Catalog>,
    ) -> Arc<Self> {
        let (slots, budget) = (context.settings.compaction_threads, context.settings.io_budget);
        let gate = Gate::new(slots, budget, Arc::clone(&context.counters), &context.clock);
        let gate = Arc::new(gate);
        let picker = Arc::new(Picker::new(context, pipeline, catalog));
        Arc::new(Self {
            flusher: Flusher::new(context, pipeline, catalog, &picker, &gate),
            compactor: Compactor::new(context, pipeline, catalog, &picker, &gate),
            context: Arc::clone(context),
            pipeline: Arc::clone(pipeline),
            catalog: Arc::clone(catalog),
            picker,
            gate,
            threads: Mutex::default(),
            drain_threads: Mutex::default(),
        })
    }

    /// Returns the compactions that another design would cause, without running them.
    pub(crate) fn forecast(&self, tree: &Tree, design: &Design) -> Result<Forecast> {
        self.picker.forecast(tree, design)
    }

    /// Changes the design of a tree to the one requested at opening, and reports the forecast with
    /// the change. Does nothing if the tree already has this design.
    pub(crate) fn change_design(&self, tree: &Arc<Tree>, design: &Design) -> Result<()> {
        if *tree.design() == *design {
            return Ok(());
        }
        let forecast = PredictedChange::of(&self.forecast(tree, design)?);
        self.catalog.set_design(tree, design.clone(), Some(forecast))
    }

    /// Returns the error of an unreadable table if it blocks a tree, because no job that would
    /// resume stalled writers is running or can run.
    pub(crate) fn blocking_damage(&self, tree: &Arc<Tree>) -> Option<Error> {
        self.picker.blocking_damage(tree)
    }

    /// Returns the bandwidth of flushes, compactions and ingests.
    pub(crate) fn io_budget(&self) -> IoBudget {
        if !self.context.health.is_of_this_process() {
            // Its lock may be held for ever.
            return IoBudget::default();
        }
        self.gate.budget()
    }

    /// Changes the bandwidth of flushes, compactions and ingests at once.
    pub(crate) fn set_io_budget(&self, budget: IoBudget) -> Result<()> {
        self.context.health.check_process()?;
        if !budget.is_valid() {
            return Err(Error::invalid("io_budget", budget.to_string(), "64 KiB a second or more"));
        }
        self.gate.set_budget(budget);
        Ok(())
    }

    /// Allows jobs again after [`Self::stop_threads`], at unlimited bandwidth, because no readers
    /// or writers remain that a budget would protect.
    pub(crate) fn resume_for_close(&self) {
        self.context.signals.resume();
        self.gate.set_budget(IoBudget::Unlimited);
    }
}
