//! Drops tables that range tombstones cover whole, by an edit alone: nothing is read but the
//! tombstones, and nothing is written. See [`crate::merge::covered`] for why that is sound.
//!
//! Tables that a compaction is taking are left to it; those that are being dropped are entered in
//! the tree's jobs, so that no compaction takes them meanwhile. That a compaction in progress does
//! not know of the drop is harmless: it keeps tombstones for older tables that are gone.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, Weak};

use terrane_policy::TableId;

use crate::engine::catalog::install::Installed;
use crate::engine::tree::TreeJobs;
use crate::engine::{Engine, Tree};
use crate::error::Result;
use crate::event::Event;
use crate::merge::{CoveredTable, covered_tables};
use crate::stats::Counter;
use crate::version::Version;

/// The tables of a version that are covered, found once for each version.
#[derive(Debug, Default)]
pub(crate) struct Covered {
    of: Weak<Version>,
    tables: Vec<CoveredTable>,
}

impl Covered {
    fn is_of(&self, version: &Arc<Version>) -> bool {
        // The version that it was found for may be gone, its address is not given to another.
        std::ptr::eq(self.of.as_ptr(), Arc::as_ptr(version))
    }

    fn find(version: &Arc<Version>) -> Self {
        let fragments_of =
            |id| version.tables().get(&id).map(|table| table.fragments()).transpose();
        // Tombstones that cannot be read cover nothing; who needs them tells of the error.
        let tables = covered_tables(version.shape(), fragments_of).unwrap_or_default();
        Self { of: Arc::downgrade(version), tables }
    }
}

impl Engine {
    /// Tables of some tree that can be dropped; they are entered in the tree's jobs.
    pub(crate) fn find_drop(&self) -> Option<(Arc<Tree>, Vec<TableId>)> {
        let trees = self.trees();
        trees.values().find_map(|tree| {
            let mut jobs = self.lock_jobs_with_covered(tree);
            let due = self.due_drop(&jobs);
            jobs.dropping.extend(&due);
            (!due.is_empty()).then(|| (Arc::clone(tree), due))
        })
    }

    /// Drops what was found.
    pub(crate) fn drop_tables(&self, tree: &Arc<Tree>, tables: &[TableId]) -> Result<()> {
        let dropped = self.install(tree, |_| {
            let mut installed = Installed::default();
            for table in tables {
                installed.remove(tree.id, *table);
                installed.obsolete.push(*table);
            }
            Ok(installed)
        });
        tree.jobs().dropping.retain(|table| !tables.contains(table));
        dropped?;
        self.counters.add(Counter::TablesDropped, tables.len() as u64);
        let (keyspace, tables) = (tree.name.to_string(), tables.len() as u64);
        self.events.emit(Event::TablesDropped { keyspace, tables });
        self.tell_room();
        Ok(())
    }

    /// The tree's jobs, with the covered tables of its current version.
    pub(crate) fn lock_jobs_with_covered<'a>(&self, tree: &'a Tree) -> MutexGuard<'a, TreeJobs> {
        loop {
            let version = Arc::clone(&tree.state().version);
            let is_known = {
                let jobs = tree.jobs();
                !version.has_range_tombstones() || jobs.covered.is_of(&version)
            };
            // Reads tables, which is not done under a lock.
            let found = (!is_known).then(|| Covered::find(&version));
            let mut jobs = tree.jobs();
            if let Some(found) = found {
                jobs.covered = found;
            }
            if !version.has_range_tombstones() {
                jobs.covered = Covered::default();
            }
            // As long as the jobs are locked, no table that is no one's input leaves the version.
            if Arc::ptr_eq(&version, &tree.state().version) {
                return jobs;
            }
        }
    }

    /// The covered tables that no snapshot sees, and no job takes.
    pub(crate) fn due_drop(&self, jobs: &TreeJobs) -> Vec<TableId> {
        let covered = &jobs.covered.tables;
        if covered.is_empty() {
            return Vec::new();
        }
        // Before the snapshots are listed: one that is released later finds the wish.
        self.work.wants_fewer_snapshots.store(true, Ordering::Release);
        let snapshots = self.snapshots.list();
        let is_free = |id| {
            !jobs.dropping.contains(&id)
                && !jobs.unreadable.contains_key(&id)
                && !jobs.compactions.iter().chain(&jobs.flushing).any(|job| job.takes(id))
        };
        let due = covered.iter().filter(|table| table.is_unseen(&snapshots) && is_free(table.id));
        due.map(|table| table.id).collect()
    }

    /// Lets go of a sequence number that a snapshot held, and looks at what it was in the way of.
    pub(crate) fn release_snapshot(&self, seq: crate::types::SeqNo) {
        self.snapshots.release(seq);
        if self.work.wants_fewer_snapshots.swap(false, Ordering::AcqRel) {
            self.work.wake();
        }
    }
}
