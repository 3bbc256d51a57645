//! What a decision about compactions depends on, put together.
//!
//! Policy is asked under the lock of a tree's jobs, so that no two threads are given the same
//! tables. How tables were read is only gathered for designs that look at it.

use std::sync::Arc;
use std::time::Duration;

use terrane_policy::{
    Accesses, Compaction, Cursors, Design, Forecast, PickInput, TreeShape, forecast,
    next_due_micros, pick,
};

use crate::engine::jobs::compact::{busy, ending};
use crate::engine::tree::TreeJobs;
use crate::engine::{Engine, Tree};
use crate::error::Result;
use crate::types::SeqNo;
use crate::version::Version;

/// The longest that time is left unlooked at when something will become due by it: the clock may
/// be set.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// All that a decision depends on beside the tree.
#[derive(Debug)]
pub(crate) struct Surroundings {
    pub(crate) in_progress: Vec<Compaction>,
    accesses: Accesses,
    now_micros: u64,
    oldest_snapshot: Option<SeqNo>,
    delete_persistence_micros: Option<u64>,
}

impl Surroundings {
    pub(crate) fn input<'a>(
        &'a self,
        shape: &'a TreeShape,
        design: &'a Design,
        cursors: &'a Cursors,
    ) -> PickInput<'a> {
        PickInput {
            shape,
            design,
            in_progress: &self.in_progress,
            cursors,
            accesses: &self.accesses,
            now_micros: self.now_micros,
            oldest_snapshot: self.oldest_snapshot,
            delete_persistence_micros: self.delete_persistence_micros,
        }
    }
}

impl Engine {
    pub(crate) fn surroundings(
        &self,
        version: &Version,
        jobs: &TreeJobs,
        design: &Design,
    ) -> Surroundings {
        let accesses = if design.strategy.looks_at_accesses() {
            version.tables().iter().map(|(id, table)| (*id, table.access())).collect()
        } else {
            Accesses::default()
        };
        Surroundings {
            in_progress: busy(version.shape(), jobs),
            accesses,
            now_micros: self.clock.now_micros(),
            oldest_snapshot: self.snapshots.list().first().copied(),
            delete_persistence_micros: self.settings.tombstone_age_micros(),
        }
    }

    /// The compaction that a tree needs next, of those that can be done now.
    pub(crate) fn next_compaction(&self, tree: &Tree, jobs: &TreeJobs) -> Option<Compaction> {
        let state = tree.state();
        let design = tree.design();
        let around = self.surroundings(&state.version, jobs, &design);
        pick(&around.input(state.version.shape(), &design, &jobs.cursors))
    }

    /// The compaction that a tree needs next, were all of its tables readable.
    pub(crate) fn wanted_compaction(&self, tree: &Tree, jobs: &TreeJobs) -> Option<Compaction> {
        let state = tree.state();
        let design = tree.design();
        let shape = state.version.shape();
        let around = self.surroundings(&state.version, jobs, &design);
        let around = Surroundings { in_progress: ending(shape, jobs), ..around };
        pick(&around.input(shape, &design, &jobs.cursors))
    }

    /// What another design would do to a tree as it is, without doing it.
    pub(crate) fn forecast(&self, tree: &Tree, design: &Design) -> Result<Forecast> {
        design.validate()?;
        let state = tree.state();
        let jobs = tree.jobs();
        let around = self.surroundings(&state.version, &jobs, design);
        let cursors = jobs.cursors.clone();
        drop(jobs);
        let input = around.input(state.version.shape(), design, &cursors);
        let input = PickInput { in_progress: &[], ..input };
        Ok(forecast(&input, &tree.design(), self.settings.compaction_threads))
    }

    /// How long until time alone makes some compaction due.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        let waits = self.trees().values().filter_map(|tree| self.next_due_of(tree)).min();
        waits.map(|wait| wait.min(LOOK_AGAIN))
    }

    fn next_due_of(&self, tree: &Arc<Tree>) -> Option<Duration> {
        let design = tree.design();
        if !design.strategy.looks_at_time() && self.settings.tombstone_age_micros().is_none() {
            return None;
        }
        let state = tree.state();
        let jobs = tree.jobs();
        let around = self.surroundings(&state.version, &jobs, &design);
        let due = next_due_micros(&around.input(state.version.shape(), &design, &jobs.cursors))?;
        Some(Duration::from_micros(due.saturating_sub(around.now_micros).max(1000)))
    }

    /// Has tables count how they are read, if some design looks at that.
    pub(crate) fn note_designs(&self) {
        let looks = |tree: &Arc<Tree>| tree.design().strategy.looks_at_accesses();
        let counts = self.trees().values().any(looks);
        self.tables.counts_accesses.store(counts, std::sync::atomic::Ordering::Relaxed);
    }
}
