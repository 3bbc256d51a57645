//! The background jobs of one tree, and the tables that no job may take.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use terrane_policy::compaction::Input;
use terrane_policy::{
    Compaction, Cursors, Output, Placement, Reason, TableId, TreeShape, ValueFileState,
};

use super::droppable_tables::DroppableTables;
use crate::base::error::Error;
use crate::engine::merge::DamagedValues;
use crate::engine::version::Version;
use crate::files::table::TableFileId;

/// Identifies a compaction from the moment at which it is picked until it ends. The scheduler uses
/// the same id. Ids are assigned in the order in which jobs are picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JobId(pub(crate) u64);

/// A compaction that was picked and has not ended.
#[derive(Debug)]
pub(crate) struct RunningCompaction {
    pub(crate) id: JobId,
    pub(crate) compaction: Arc<Compaction>,
}

/// The jobs of a tree that are in progress.
#[derive(Debug, Default)]
pub(crate) struct TreeJobs {
    pub(crate) is_flushing: bool,
    /// The merge of the flush in progress, if it merges.
    pub(crate) flushing: Option<Compaction>,
    pub(crate) compactions: Vec<RunningCompaction>,
    /// The places that an ingest is about to take, represented as compactions.
    pub(crate) ingesting: Vec<Compaction>,
    pub(crate) cursors: Cursors,
    /// Tables that could not be read, with the errors. No job takes them.
    pub(crate) unreadable: BTreeMap<TableId, Error>,
    /// Value files with values that could not be read, with the errors. They are not collected.
    pub(crate) damaged_values: DamagedValues,
    /// Tables that are being dropped because range tombstones cover them.
    pub(crate) dropping: Vec<TableId>,
    pub(crate) droppable: DroppableTables,
    /// Which deletes are currently late, and were reported by an event.
    pub(crate) late_deletes: LateDeletes,
    /// The most bytes that a join of small tables takes; see [`Self::note_join`].
    pub(crate) join_bytes_max: Option<u64>,
}

/// Which deletes of a tree are not persistent in time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LateDeletes {
    /// A tombstone has not reached the entries that it deletes.
    pub(crate) tombstones: bool,
    /// A dead value is still in its file.
    pub(crate) values: bool,
}

impl TreeJobs {
    /// Registers a compaction that was picked.
    pub(crate) fn begin(&mut self, id: JobId, compaction: &Arc<Compaction>) {
        self.compactions.push(RunningCompaction { id, compaction: Arc::clone(compaction) });
    }

    /// Notes that a compaction left `tables` tables. If it was a join, and its output was cut into as many
    /// tables as before, it would be repeated for ever, so the next joins take at most half as much.
    pub(crate) fn note_join(&mut self, compaction: &Compaction, tables: usize) {
        let is_futile = tables >= compaction.tables().count();
        if matches!(compaction.reason, Reason::Join { .. }) && is_futile {
            self.join_bytes_max = Some(compaction.input_bytes() / 2);
        }
    }

    /// Removes a compaction that has ended.
    pub(crate) fn end(&mut self, id: JobId) {
        self.compactions.retain(|running| running.id != id);
    }

    /// Returns the compactions in progress, and the merge of a flush.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Compaction> {
        self.compactions.iter().map(|running| &*running.compaction).chain(&self.flushing)
    }

    /// Returns true if any job is in progress.
    pub(crate) fn is_busy(&self) -> bool {
        self.is_flushing || !self.compactions.is_empty() || !self.dropping.is_empty()
    }

    /// Notes the damage that made a compaction fail. From now on no job takes the damaged table.
    pub(crate) fn note_damage(&mut self, compaction: &Compaction, error: &Error) {
        let Error::Corruption(place) = error else { return };
        let name = place.path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        let damaged = TableFileId::of_file_name(name).map(|file| TableId(file.number));
        let tables: Vec<_> = match damaged.filter(|table| compaction.takes(*table)) {
            Some(table) => vec![table],
            // The error does not name an input. All of them are noted, so that the same compaction
            // is not picked again.
            None => compaction.tables().map(|table| table.id).collect(),
        };
        for table in tables {
            self.unreadable.entry(table).or_insert_with(|| error.clone());
        }
    }

    /// Returns the shape of the tree without value files that must not be collected because some of
    /// their values cannot be read.
    pub(crate) fn collectable<'a>(&self, shape: &'a TreeShape) -> Cow<'a, TreeShape> {
        if self.damaged_values.is_empty() {
            return Cow::Borrowed(shape);
        }
        let mut shape = shape.clone();
        let files = shape.value_files.iter_mut();
        for file in files.filter(|file| self.damaged_values.contains_key(&file.id)) {
            Arc::make_mut(file).state = ValueFileState::Unflushed;
        }
        Cow::Owned(shape)
    }

    /// Returns the damage that prevents a compaction: preferably the damage of one of its inputs,
    /// otherwise that of any table.
    pub(crate) fn damage_to(&self, compaction: &Compaction) -> Option<Error> {
        let mut taken = self.unreadable.iter().filter(|(table, _)| compaction.takes(**table));
        taken.next().or_else(|| self.unreadable.iter().next()).map(|(_, error)| error.clone())
    }

    /// Returns every claim with which a new compaction must not conflict: running jobs, tables that
    /// are being dropped, and unreadable tables.
    pub(crate) fn busy(&self, shape: &TreeShape) -> Vec<Compaction> {
        self.claims(shape, |id| self.unreadable.contains_key(id) || self.dropping.contains(id))
    }

    /// Returns the part of [`Self::busy`] that will end: everything except unreadable tables.
    pub(crate) fn ending(&self, shape: &TreeShape) -> Vec<Compaction> {
        self.claims(shape, |id| self.dropping.contains(id))
    }

    /// Returns the part of [`Self::busy`] that will not end: the unreadable tables.
    pub(crate) fn blocked(&self, shape: &TreeShape) -> Vec<Compaction> {
        claims(shape, |id| self.unreadable.contains_key(id))
    }

    /// Returns the running jobs and, for each table for which `is_claimed` holds, a compaction that
    /// takes only this table.
    fn claims(&self, shape: &TreeShape, is_claimed: impl Fn(&TableId) -> bool) -> Vec<Compaction> {
        let running = self.running().chain(&self.ingesting).cloned();
        running.chain(claims(shape, is_claimed)).collect()
    }
}

/// Returns, for each table for which `is_claimed` holds, a compaction that takes only this table.
fn claims(shape: &TreeShape, is_claimed: impl Fn(&TableId) -> bool) -> Vec<Compaction> {
    let claimed = shape.places().filter(|place| is_claimed(&place.table.id));
    let compactions = claimed.map(|place| {
        let (level, run) = (place.level, place.run);
        let inputs = vec![Input { level, run, tables: vec![Arc::clone(place.table)] }];
        let output = Output { level, placement: Placement::Join(run) };
        let reason = Reason::Manual { level, rewrites: false };
        Compaction { inputs, output, relocated: Vec::new(), reason }
    });
    compactions.collect()
}

/// Determines the tables of the current version that can be dropped unread, and locks the jobs of its
/// tree. `version` returns the current version.
pub(super) fn lock_with_covered(
    jobs: &Mutex<TreeJobs>,
    version: impl Fn() -> Arc<Version>,
) -> MutexGuard<'_, TreeJobs> {
    let lock = || jobs.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let current = version();
        let is_known = !DroppableTables::may_exist(&current) || lock().droppable.is_of(&current);
        // Runs without the lock, because it reads tables.
        let found = (!is_known).then(|| DroppableTables::find(&current));
        let mut jobs = lock();
        if let Some(found) = found {
            jobs.droppable = found;
        }
        if !DroppableTables::may_exist(&current) {
            jobs.droppable = DroppableTables::default();
        }
        // While the jobs are locked, only inputs of running jobs leave the version.
        if Arc::ptr_eq(&current, &version()) {
            return jobs;
        }
    }
}
