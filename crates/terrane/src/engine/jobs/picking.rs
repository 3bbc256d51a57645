//! Asks policy which job a tree needs next.
//!
//! Policy decides under the lock of the jobs of a tree, so that no two jobs take the same table.
//! The read counts of tables are collected only for designs that depend on them.

use std::sync::Arc;
use std::time::Duration;

use terrane_memtable::Fragment;
use terrane_policy::forecast::CompactionCost;
use terrane_policy::refilled;
use terrane_policy::{
    Compaction, Cursors, Design, Forecast, PickContext, ScheduledMerge, TableAccesses, TableId,
    TreeShape, forecast, next_due_micros, pick,
};

use crate::base::error::{Error, Result};
use crate::base::types::SeqNo;
use crate::engine::catalog::Catalog;
use crate::engine::context::{Context, Registration, TreeSet};
use crate::engine::merge::covered;
use crate::engine::pipeline::Pipeline;
use crate::engine::tree::{DroppableTables, Tree, TreeJobs};
use crate::engine::version::Version;

/// The maximum time that a thread sleeps while it waits for a compaction that time alone makes due.
/// It is limited because the clock may be changed meanwhile.
const SLEEP_MAX: Duration = Duration::from_secs(10);

/// What the engine collects for one decision and passes in a [`PickContext`].
#[derive(Debug)]
pub(super) struct PickInputs {
    pub(super) in_progress: Vec<Compaction>,
    accesses: TableAccesses,
    now_micros: u64,
    oldest_snapshot: Option<SeqNo>,
    oldest_snapshot_micros: Option<u64>,
    delete_persistence_micros: Option<u64>,
    join_bytes_max: Option<u64>,
}

impl PickInputs {
    pub(super) fn context<'a>(
        &'a self,
        shape: &'a TreeShape,
        design: &'a Design,
        cursors: &'a Cursors,
    ) -> PickContext<'a> {
        PickContext {
            shape,
            design,
            in_progress: &self.in_progress,
            cursors,
            accesses: &self.accesses,
            now_micros: self.now_micros,
            oldest_snapshot: self.oldest_snapshot,
            oldest_snapshot_micros: self.oldest_snapshot_micros,
            delete_persistence_micros: self.delete_persistence_micros,
            join_bytes_max: self.join_bytes_max,
        }
    }
}

/// A tree that is registered for background work.
pub(super) struct ListedTree {
    pub(super) tree: Arc<Tree>,
    registration: Registration,
}

/// Finds the jobs of trees.
#[derive(Debug)]
pub(crate) struct Picker {
    context: Arc<Context>,
    pipeline: Arc<Pipeline>,
    catalog: Arc<Catalog>,
}

impl Picker {
    pub(super) fn new(
        context: &Arc<Context>,
        pipeline: &Arc<Pipeline>,
        catalog: &Arc<Catalog>,
    ) -> Self {
        let (context, pipeline) = (Arc::clone(context), Arc::clone(pipeline));
        Self { context, pipeline, catalog: Arc::clone(catalog) }
    }

    pub(super) fn pick_inputs(
        &self,
        version: &Version,
        jobs: &TreeJobs,
        design: &Design,
    ) -> PickInputs {
        let accesses = if design.strategy.looks_at_accesses() {
            version.tables().iter().map(|(id, table)| (*id, table.access())).collect()
        } else {
            TableAccesses::default()
        };
        PickInputs {
            in_progress: jobs.busy(version.shape()),
            accesses,
            now_micros: self.context.clock.now_micros(),
            oldest_snapshot: self.pipeline.snapshots().first().copied(),
            oldest_snapshot_micros: self.pipeline.snapshot_clock().oldest(),
            delete_persistence_micros: self.context.settings.tombstone_age_micros(),
            join_bytes_max: jobs.join_bytes_max,
        }
    }

    /// Returns the trees of a set.
    pub(super) fn trees_of(&self, set: &TreeSet) -> Vec<ListedTree> {
        let listed = set.list();
        let trees = self.catalog.trees();
        let found = listed.into_iter().filter_map(|(id, registration)| {
            let tree = Arc::clone(trees.get(&id)?);
            Some(ListedTree { tree, registration })
        });
        found.collect()
    }

    /// Removes a tree that needs no compaction from the trees that are looked at, unless something
    /// other than a new state of the tree may make a compaction due: the time, reads, the end of a
    /// job, or the release of a snapshot.
    fn note_no_compaction(&self, jobs: &TreeJobs, listed: &ListedTree, inputs: &PickInputs) {
        let ListedTree { tree, registration } = listed;
        let strategy = &tree.design().strategy;
        let may_become_due = strategy.looks_at_time()
            || strategy.looks_at_accesses()
            || self.context.settings.tombstone_age_micros().is_some()
            || jobs.is_busy()
            || !jobs.ingesting.is_empty()
            || !jobs.unreadable.is_empty()
            || !jobs.damaged_values.is_empty()
            || inputs.oldest_snapshot.is_some();
        if !may_become_due {
            self.context.attention.compactions.remove_if_unchanged(tree.id, *registration);
        }
    }

    /// Returns the compaction that a registered tree needs next, among those that can run now.
    pub(super) fn listed_compaction(
        &self,
        listed: &ListedTree,
        jobs: &TreeJobs,
    ) -> Option<Compaction> {
        let (found, inputs) = self.pick_for(&listed.tree, jobs);
        if found.is_none() {
            self.note_no_compaction(jobs, listed, &inputs);
        }
        found
    }

    /// Returns the compaction that a tree needs next, among those that can run now.
    pub(super) fn next_compaction(&self, tree: &Tree, jobs: &TreeJobs) -> Option<Compaction> {
        self.pick_for(tree, jobs).0
    }

    /// Returns the compaction that a tree needs next, and the inputs of the decision.
    fn pick_for(&self, tree: &Tree, jobs: &TreeJobs) -> (Option<Compaction>, PickInputs) {
        let (state, design) = (tree.state(), tree.design());
        let inputs = self.pick_inputs(&state.version, jobs, &design);
        let shape = jobs.collectable(state.version.shape());
        let found = pick(&inputs.context(&shape, &design, &jobs.cursors));
        (found, inputs)
    }

    /// Returns the compaction that a tree would need next if all of its tables were readable.
    pub(super) fn wanted_compaction(&self, tree: &Tree, jobs: &TreeJobs) -> Option<Compaction> {
        let state = tree.state();
        let design = tree.design();
        let shape = jobs.collectable(state.version.shape());
        let inputs = self.pick_inputs(&state.version, jobs, &design);
        let inputs = PickInputs { in_progress: jobs.ending(&shape), ..inputs };
        pick(&inputs.context(&shape, &design, &jobs.cursors))
    }

    /// Returns the compactions that another design would cause, without running them.
    pub(crate) fn forecast(&self, tree: &Tree, design: &Design) -> Result<Forecast> {
        design.validate()?;
        let state = tree.state();
        let jobs = tree.jobs();
        let inputs = self.pick_inputs(&state.version, &jobs, design);
        let cursors = jobs.cursors.clone();
        drop(jobs);
        let context = inputs.context(state.version.shape(), design, &cursors);
        let context = PickContext { in_progress: &[], ..context };
        Ok(forecast(&context, &tree.design(), self.context.settings.compaction_threads))
    }

    /// Returns the time until time alone makes a compaction of some tree due.
    pub(super) fn time_to_due(&self) -> Option<Duration> {
        let trees = self.trees_of(&self.context.attention.compactions);
        let times = trees.iter().filter_map(|listed| self.time_to_due_of(&listed.tree)).min();
        times.map(|time| time.min(SLEEP_MAX))
    }

    fn time_to_due_of(&self, tree: &Arc<Tree>) -> Option<Duration> {
        let design = tree.design();
        let has_deadlines = self.context.settings.tombstone_age_micros().is_some();
        if !design.strategy.looks_at_time() && !has_deadlines {
            return None;
        }
        let state = tree.state();
        let jobs = tree.jobs();
        let inputs = self.pick_inputs(&state.version, &jobs, &design);
        let due = next_due_micros(&inputs.context(state.version.shape(), &design, &jobs.cursors))?;
        Some(Duration::from_micros(due.saturating_sub(inputs.now_micros).max(1000)))
    }

    /// Returns the trees that need a compaction which can run now, and these compactions.
    pub(super) fn due_compactions(&self) -> (Vec<Arc<Tree>>, Vec<ScheduledMerge>) {
        let listed = self.trees_of(&self.context.attention.compactions).into_iter();
        let due = listed.filter_map(|listed| {
            let jobs = listed.tree.jobs();
            let compaction = self.listed_compaction(&listed, &jobs)?;
            let merge = self.scheduler_view(&listed.tree, &jobs, &compaction);
            Some((Arc::clone(&listed.tree), merge))
        });
        due.unzip()
    }

    /// Returns a compaction as the scheduler sees it before it begins.
    pub(super) fn scheduler_view(
        &self,
        tree: &Tree,
        jobs: &TreeJobs,
        compaction: &Compaction,
    ) -> ScheduledMerge {
        let state = tree.state();
        ScheduledMerge {
            id: 0,
            tree: tree.id.0,
            scheduler: tree.design().scheduler,
            remaining_bytes: CompactionCost::of(compaction, state.version.shape()).bytes_rewritten,
            refilled: self.refilled(tree, jobs, compaction),
            is_running: false,
        }
    }

    /// Returns how far the input level of a compaction is refilled; 0 unless the scheduler uses it.
    pub(super) fn refilled(&self, tree: &Tree, jobs: &TreeJobs, compaction: &Compaction) -> f64 {
        let design: &Design = &tree.design();
        if !design.scheduler.info().looks_at_levels {
            return 0.0;
        }
        let state = tree.state();
        let inputs = self.pick_inputs(&state.version, jobs, design);
        refilled(&inputs.context(state.version.shape(), design, &jobs.cursors), compaction)
    }

    /// Returns tables of a tree that can be dropped because range tombstones cover them or all of
    /// their values have expired, and registers them in the tree's jobs.
    pub(super) fn next_drop(&self) -> Option<(Arc<Tree>, Vec<TableId>)> {
        self.trees_of(&self.context.attention.drops).iter().find_map(
            |ListedTree { tree, .. }| {
                let mut jobs = tree.jobs_with_covered();
                let due = self.due_drop(&jobs);
                if due.is_empty() {
                    return None;
                }
                jobs.dropping.extend(&due);
                self.context.signals.begin_job();
                Some((Arc::clone(tree), due))
            },
        )
    }

    /// Returns the tables of a tree that range tombstones in its memtables, with sequence numbers up to
    /// `visible`, cover, and registers them in the tree's jobs. Leaves out memtables with tombstones that
    /// are not in the log: a crash could lose the tombstone after the tables are gone.
    pub(super) fn claim_covered_by_memtables(&self, tree: &Tree, visible: SeqNo) -> Vec<TableId> {
        let mut jobs = tree.jobs();
        // Loaded with the lock: no job that changes the version is unregistered meanwhile.
        let state = tree.state();
        let active = (&state.active.memtable, state.active.has_unlogged_range());
        let immutables = state.immutables.iter();
        let immutables = immutables.map(|one| (&one.memtable, one.has_unlogged_range()));
        let is_visible =
            |seqs: &[SeqNo]| seqs.iter().copied().filter(|seq| *seq <= visible).collect();
        let fragments: Vec<Vec<Fragment>> = [active]
            .into_iter()
            .chain(immutables)
            .filter(|(_, has_unlogged)| !has_unlogged)
            .map(|(memtable, _)| memtable.range_tombstones())
            .filter(|tombstones| !tombstones.is_empty())
            .map(|tombstones| tombstones.fragments_of(is_visible))
            .collect();
        if fragments.is_empty() {
            return Vec::new();
        }
        let sets: Vec<Vec<&Fragment>> = fragments.iter().map(|set| set.iter().collect()).collect();
        let snapshots = self.pipeline.snapshots_awaiting_release();
        let tables = state.version.shape().levels.iter().flat_map(|level| &level.runs);
        let covered = tables.flat_map(|run| &run.tables).filter_map(|table| covered(&sets, table));
        let due: Vec<TableId> = covered
            .filter(|table| table.is_unseen(&snapshots) && is_free(&jobs, table.id))
            .map(|table| table.id)
            .collect();
        if !due.is_empty() {
            jobs.dropping.extend(&due);
            self.context.signals.begin_job();
        }
        due
    }

    /// Returns the time until all values of a table expire and the table can be dropped. Ignores
    /// tables whose values have already expired, because a snapshot keeps them.
    pub(super) fn time_to_drop(&self) -> Option<Duration> {
        let trees = self.trees_of(&self.context.attention.drops);
        let trees = trees.iter().map(|listed| &listed.tree);
        let mut expiring = trees.filter(|tree| tree.state().version.has_expiry()).peekable();
        expiring.peek()?;
        let now = self.context.clock.now_micros();
        let first = expiring.filter_map(|tree| {
            let jobs = tree.jobs_with_covered();
            let times = jobs.droppable.expiring.iter().map(|table| table.from_micros);
            times.filter(|&from| from > now).min()
        });
        let time = Duration::from_micros(first.min()?.saturating_sub(now).max(1000));
        Some(time.min(SLEEP_MAX))
    }

    /// Returns the tables that are covered or whose values have expired, except those that a
    /// snapshot sees or a job has claimed.
    fn due_drop(&self, jobs: &TreeJobs) -> Vec<TableId> {
        let DroppableTables { tables: covered, expiring, .. } = &jobs.droppable;
        if covered.is_empty() && expiring.is_empty() {
            return Vec::new();
        }
        let snapshots = self.pipeline.snapshots_awaiting_release();
        let expired_micros = self.pipeline.snapshot_clock().oldest_or_now();
        let covered = covered.iter().filter(|table| table.is_unseen(&snapshots));
        let expired = expiring.iter().filter(|table| table.from_micros <= expired_micros);
        let due = covered.map(|table| table.id).chain(expired.map(|table| table.id));
        let mut due: Vec<_> = due.filter(|&id| is_free(jobs, id)).collect();
        due.sort_unstable();
        due.dedup();
        due
    }

    /// Returns true if no job of a tree is running, and no flush or drop is due.
    pub(super) fn is_quiet(&self, tree: &Tree, jobs: &TreeJobs) -> bool {
        tree.state().immutables.is_empty() && !jobs.is_busy() && self.due_drop(jobs).is_empty()
    }

    /// Returns the error of an unreadable table if it blocks a tree, because no job that would
    /// resume stalled writers is running or can run.
    pub(super) fn blocking_damage(&self, tree: &Arc<Tree>) -> Option<Error> {
        if tree.jobs().unreadable.is_empty() {
            return None;
        }
        let jobs = tree.jobs_with_covered();
        if !self.is_quiet(tree, &jobs) || self.next_compaction(tree, &jobs).is_some() {
            return None;
        }
        // No job can run, so the wait would never end, whichever table blocks the tree.
        let damage = self.wanted_compaction(tree, &jobs).and_then(|wanted| jobs.damage_to(&wanted));
        damage.or_else(|| jobs.unreadable.values().next().cloned())
    }
}

/// Returns true if a table can be dropped: it is readable, and no job takes or drops it.
fn is_free(jobs: &TreeJobs, id: TableId) -> bool {
    !jobs.dropping.contains(&id)
        && !jobs.unreadable.contains_key(&id)
        && !jobs.running().any(|job| job.takes(id))
}

#[cfg(test)]
mod tests;
