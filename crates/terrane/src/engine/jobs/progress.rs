//! How far a compaction has come, and whether it may go on.

use terrane_policy::forecast::JobCost;
use terrane_policy::refilled;
use terrane_policy::{Compaction, Design, Merge, TableInfo, TreeShape};

use crate::engine::jobs::gate::{Pass, Progress, Stopped};
use crate::engine::tree::TreeJobs;
use crate::engine::{Engine, Tree};
use crate::error::{Error, Result};
use crate::io_budget::IoBudget;
use crate::merge::Chunk;

/// How full the level of a merge is again is looked at after so many bytes, and several times in a
/// small one.
const LOOK_EVERY_BYTES: u64 = 4 << 20;
const LOOKS_LEAST: u64 = 16;

/// A compaction on its way.
pub(crate) struct Pace<'a> {
    engine: &'a Engine,
    pub(crate) tree: &'a Tree,
    pub(crate) compaction: &'a Compaction,
    pass: &'a Pass<'a>,
    total_bytes: u64,
    total_entries: u64,
    entries: u64,
    /// Whether its scheduler wants to know how full the level is again.
    looks_at_level: bool,
    refilled: f64,
    /// Input left when `refilled` was looked at.
    looked_at_bytes: u64,
}

impl<'a> Pace<'a> {
    pub(crate) fn new(
        engine: &'a Engine,
        tree: &'a Tree,
        compaction: &'a Compaction,
        shape: &TreeShape,
        pass: &'a Pass<'a>,
    ) -> Self {
        let total_bytes = JobCost::of(compaction, shape).bytes_rewritten;
        let entries = |table: &std::sync::Arc<TableInfo>| table.entries;
        Self {
            engine,
            tree,
            compaction,
            pass,
            total_bytes,
            total_entries: compaction.tables().map(entries).sum(),
            entries: 0,
            looks_at_level: tree.design().scheduler.info().looks_at_levels,
            refilled: 0.0,
            looked_at_bytes: u64::MAX,
        }
    }

    /// Returns when the compaction may continue after a chunk.
    ///
    /// # Errors
    /// [`Error::Closed`] if the database is being closed or the tree was dropped.
    pub(crate) fn go_on(&mut self, chunk: Chunk) -> Result<()> {
        self.entries += chunk.entries;
        let done = self.entries as f64 / self.total_entries.max(1) as f64;
        let left = (1.0 - done).clamp(0.0, 1.0) * self.total_bytes as f64;
        let remaining_bytes = left as u64;
        let look_every = LOOK_EVERY_BYTES.min(self.total_bytes / LOOKS_LEAST);
        if self.looks_at_level && self.looked_at_bytes.saturating_sub(remaining_bytes) >= look_every
        {
            self.refilled = self.engine.refilled(self.tree, &self.tree.jobs(), self.compaction);
            self.looked_at_bytes = remaining_bytes;
        }
        let (refilled, written_bytes) = (self.refilled, chunk.written_bytes);
        let progress = Progress { remaining_bytes, refilled, written_bytes };
        let should_stop = || self.engine.is_stopping() || self.tree.is_dropped();
        self.pass.go_on(progress, &should_stop).map_err(|Stopped| Error::Closed)
    }
}

impl Engine {
    /// A compaction as schedulers see it before it begins.
    pub(crate) fn as_merge(&self, tree: &Tree, jobs: &TreeJobs, compaction: &Compaction) -> Merge {
        let state = tree.state();
        Merge {
            id: 0,
            tree: tree.id.0,
            scheduler: tree.design().scheduler,
            remaining_bytes: JobCost::of(compaction, state.version.shape()).bytes_rewritten,
            refilled: self.refilled(tree, jobs, compaction),
            is_running: false,
        }
    }

    /// How far the level that a compaction takes from is full again, where the scheduler looks at
    /// that.
    fn refilled(&self, tree: &Tree, jobs: &TreeJobs, compaction: &Compaction) -> f64 {
        let design: &Design = &tree.design();
        if !design.scheduler.info().looks_at_levels {
            return 0.0;
        }
        let state = tree.state();
        let around = self.surroundings(&state.version, jobs, design);
        refilled(&around.input(state.version.shape(), design, &jobs.cursors), compaction)
    }

    /// What flushes and compactions may write.
    pub(crate) fn io_budget(&self) -> IoBudget {
        self.gate.budget()
    }

    /// Gives flushes and compactions another budget, from now on.
    pub(crate) fn set_io_budget(&self, budget: IoBudget) -> Result<()> {
        if !budget.is_valid() {
            return Err(Error::invalid("io_budget", budget.to_string(), "64 KiB a second or more"));
        }
        self.gate.set_budget(budget);
        Ok(())
    }
}
