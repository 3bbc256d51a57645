//! Deletes that are persistent in time: the part of it that is before tables.
//!
//! What was deleted is gone from all files within `delete_persistence`: policy has tombstones move
//! down by their age, this has memtables flushed before their deletes are old, and `log_age` has
//! files of the log go. A tenth of the time is for the memtable, a tenth for the last compactions to
//! be done, the rest is shared by levels. Ages are counted from the first entry of the memtable that
//! a delete came into; after a crash, from when the segment of the log was begun that holds it, which
//! is earlier: what became due while the database was closed is done at once when it is opened.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::{Engine, Tree, Write};
use crate::event::{Event, FlushReason};

impl Engine {
    /// Notes when memtables were first written to; called under the writer's lock.
    pub(crate) fn note_entries(&self, write: &Write<'_>) {
        let note = |tree: &Arc<Tree>| {
            if tree.state().active.note_entry(|| self.clock.now_micros()) {
                // The thread that flushes may sleep without a time at which to look again.
                self.work.wake();
            }
        };
        match write {
            Write::One(tree, _) => note(tree),
            Write::Batch(batch) => {
                let trees = self.trees();
                batch.keyspaces().iter().filter_map(|id| trees.get(id)).for_each(note);
            }
        }
    }

    /// Has memtables flushed that may hold deletes which are old, and frees what the log keeps of them.
    pub(crate) fn rotate_aged(&self) {
        if self.settings.memtable_age_micros().is_none() || self.health.check_writable().is_err() {
            return;
        }
        // The segment first: then the memtables that are replaced need nothing of it.
        self.end_aged_segment();
        let trees = self.trees();
        for tree in trees.values().filter(|tree| self.has_aged(tree)) {
            let mut writer = self.lock_writer();
            // Looked at again: someone else may have seen to it.
            if self.has_aged(tree) && !tree.is_dropped() {
                self.rotate(&mut writer, tree, FlushReason::DeleteAge);
            }
        }
        self.let_go_of_log();
    }

    /// Whether the active memtable of a tree is due to be flushed by its age.
    pub(crate) fn has_aged(&self, tree: &Tree) -> bool {
        self.left_of(tree).is_some_and(|left| left.is_zero())
    }

    /// How long until some memtable is due to be flushed by its age, or a file of the log to go.
    pub(crate) fn next_aged(&self) -> Option<Duration> {
        // Where nothing is written any more, nothing becomes due.
        self.health.check_writable().ok()?;
        let memtables = self.trees().values().filter_map(|tree| self.left_of(tree)).min();
        [memtables, self.left_of_log()].into_iter().flatten().min()
    }

    /// Tells of a delete that is in a table for too long, once for as long as there is one. It is
    /// asked about after every job, and whenever a thread that compacts has nothing to do.
    pub(crate) fn tell_late_deletes(&self, tree: &Tree) {
        let Some(threshold_micros) = self.settings.delete_persistence_micros() else { return };
        let now = self.clock.now_micros();
        let state = tree.state();
        let tables = state.version.shape().tables();
        let oldest = tables
            .filter_map(|table| Some((table.oldest_tombstone_micros?, table.id)))
            .min()
            .map(|(since, table)| (now.saturating_sub(since), table))
            .filter(|(age, _)| *age > threshold_micros);
        let was_late = std::mem::replace(&mut tree.jobs().are_deletes_late, oldest.is_some());
        if let (Some((age_micros, table)), false) = (oldest, was_late) {
            let keyspace = tree.name.to_string();
            let table = table.0;
            self.events.emit(Event::DeletesLate { keyspace, table, age_micros, threshold_micros });
        }
    }

    fn left_of(&self, tree: &Tree) -> Option<Duration> {
        let age = self.settings.memtable_age_micros()?;
        let state = tree.state();
        let is_empty = state.active.memtable.is_empty();
        if !is_empty {
            // What was replayed counts from now on.
            state.active.note_entry(|| self.clock.now_micros());
        }
        // An entry is noted a little before it is there.
        let due = state.active.since_micros()?.saturating_add(age);
        let left = Duration::from_micros(due.saturating_sub(self.clock.now_micros()));
        Some(left).filter(|left| !is_empty || !left.is_zero())
    }
}
