//! Replaces memtables so that deletes become persistent in time.
//!
//! Deleted data leaves all files within `delete_persistence`: policy moves tombstones down by age,
//! this module flushes memtables before their deletes are too old, and the catalog frees the log. A
//! tenth of the time is reserved for the memtable, a tenth for running the last compactions, and
//! the levels share the rest. The age of a delete counts from the first entry of its memtable.
//! After a crash it counts from the beginning of the log segment that contains the delete, which is
//! earlier. Deletes that became due while the database was closed are handled as soon as it is
//! opened.

use std::time::Duration;

use super::Jobs;
use crate::base::event::FlushReason;
use crate::engine::tree::Tree;

impl Jobs {
    /// Replaces memtables whose deletes may be too old, and frees the part of the log that contains
    /// these deletes.
    pub(super) fn rotate_aged_memtables(&self) {
        let has_deadlines = self.context.settings.memtable_age_micros().is_some();
        if !has_deadlines || self.context.health.check_writable().is_err() {
            return;
        }
        // The segment ends first, so that the memtables that replace aged memtables need no part of
        // it.
        self.catalog.end_aged_segment();
        let trees = self.catalog.trees();
        for tree in trees.values().filter(|tree| self.has_aged_memtable(tree)) {
            let mut writer = self.pipeline.lock();
            // Checked again with the lock, because a writer may have replaced the memtable.
            if self.has_aged_memtable(tree) && !tree.is_dropped() {
                self.pipeline.rotate(&mut writer, tree, FlushReason::DeleteAge);
            }
        }
        self.catalog.release_idle_log();
    }

    /// Returns true if the active memtable of any tree must be replaced because of its age.
    pub(super) fn has_aged_memtables(&self) -> bool {
        self.context.settings.memtable_age_micros().is_some()
            && self.catalog.trees().values().any(|tree| self.has_aged_memtable(tree))
    }

    /// Returns true if the active memtable of a tree must be replaced because of its age.
    fn has_aged_memtable(&self, tree: &Tree) -> bool {
        self.time_to_rotation(tree).is_some_and(|left| left.is_zero())
    }

    /// Returns the time until a memtable or a log segment is too old.
    pub(super) fn time_to_aged(&self) -> Option<Duration> {
        // A database that accepts no writes rotates no memtables.
        self.context.health.check_writable().ok()?;
        let has_deadlines = self.context.settings.memtable_age_micros().is_some();
        let trees = self.catalog.trees();
        let trees = trees.values().filter(|_| has_deadlines);
        let memtables = trees.filter_map(|tree| self.time_to_rotation(tree)).min();
        [memtables, self.catalog.time_to_log_work()].into_iter().flatten().min()
    }

    fn time_to_rotation(&self, tree: &Tree) -> Option<Duration> {
        let age = self.context.settings.memtable_age_micros()?;
        let state = tree.state();
        let is_empty = state.active.memtable.is_empty();
        let now = || self.context.clock.now_micros();
        if !is_empty {
            // If replay did not note the time of the entries, their age counts from now.
            state.active.note_entry(now);
        }
        // Computed from the elapsed time, which does not overflow at either end of the clock.
        let elapsed = now().saturating_sub(state.active.since_micros()?);
        let left = Duration::from_micros(age.saturating_sub(elapsed));
        // The time of a first entry is noted shortly before the entry is inserted.
        Some(left).filter(|left| !is_empty || !left.is_zero())
    }
}
