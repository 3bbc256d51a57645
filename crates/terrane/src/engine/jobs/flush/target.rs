//! The run that a flush writes to, and its claim on the tables that it merges.
//!
//! As for compactions, policy decides under the lock of the tree's jobs, and the merge is
//! registered under the same lock. So no compaction takes a table of the merge, and no table of the
//! merge is dropped as covered. The claim ends with the flush, whatever the result.

use std::sync::Arc;

use terrane_policy::flush::{plan, with_memtable};
use terrane_policy::{
    Compaction, FlushPlan, KeyRange, NewRunReason, Placement, RunId, TableInfo, soundness,
};

use super::Flusher;
use crate::base::error::{Error, Result};
use crate::engine::cursor::{MergeCursor, Source};
use crate::engine::tree::{ImmutableMemtable, Tree};
use crate::engine::version::{OpenRun, Version};

/// The plan of a flush.
pub(super) struct FlushTarget<'a> {
    tree: &'a Tree,
    /// The version for which the flush was planned.
    pub(super) version: Arc<Version>,
    plan: FlushPlan,
    /// The error with which the planned merge failed.
    failed: Option<String>,
}

impl Drop for FlushTarget<'_> {
    fn drop(&mut self) {
        self.tree.jobs().flushing = None;
    }
}

impl FlushTarget<'_> {
    /// The merge of the memtable with tables, if the flush merges. The memtable is its first input.
    pub(super) fn merge(&self) -> Option<&Compaction> {
        match &self.plan {
            FlushPlan::Merge(merge) => Some(merge),
            FlushPlan::NewRun(_) => None,
        }
    }

    /// The tables of level 0 that are merged with the memtable.
    pub(super) fn replaced(&self) -> Vec<Arc<TableInfo>> {
        let inputs = self.merge().into_iter().flat_map(|merge| &merge.inputs);
        let tables = inputs.filter(|input| !input.is_memtable()).flat_map(|input| &input.tables);
        tables.cloned().collect()
    }

    /// The run of level 0 that the result joins; `None` for a new run.
    pub(super) fn run(&self) -> Option<RunId> {
        match self.merge()?.output.placement {
            Placement::Join(run) => Some(run),
            Placement::NewRun => None,
        }
    }

    /// The tables that are older than the result, run by run.
    pub(super) fn older_tables(&self) -> Vec<Vec<Arc<TableInfo>>> {
        if let Some(merge) = self.merge() {
            return merge.older_tables(self.version.shape());
        }
        let tables = |run: &Arc<OpenRun>| {
            run.tables().iter().map(|table| Arc::clone(table.info())).collect()
        };
        self.version.runs().iter().map(tables).collect()
    }

    /// Plans a new run for the memtable alone, after the merge failed with `error`. From now on no
    /// job takes tables that the error shows to be unreadable.
    pub(super) fn fall_back(&mut self, error: &Error) {
        let FlushPlan::Merge(merge) = &mut self.plan else { return };
        merge.inputs.retain(|input| !input.is_memtable());
        let mut jobs = self.tree.jobs();
        jobs.note_damage(merge, error);
        jobs.flushing = None;
        drop(jobs);
        self.failed = Some(format!("merging it failed: {error}"));
        self.plan = FlushPlan::NewRun(NewRunReason::Busy);
    }

    /// Returns true if the memtable gets a new run although the design merges flushes.
    pub(super) fn is_fallback(&self) -> bool {
        matches!(&self.plan, FlushPlan::NewRun(reason) if reason.is_fallback())
    }

    /// The reason for a new run, if [`Self::is_fallback`].
    pub(super) fn new_run_reason(&self) -> Option<String> {
        match &self.plan {
            FlushPlan::NewRun(reason) if reason.is_fallback() => {
                Some(self.failed.clone().unwrap_or_else(|| reason.to_string()))
            }
            _ => None,
        }
    }
}

impl Flusher {
    /// Plans the flush of a frozen memtable, and claims the tables that it merges.
    pub(super) fn target<'a>(
        &self,
        tree: &'a Tree,
        immutable: &ImmutableMemtable,
    ) -> Result<FlushTarget<'a>> {
        let design = tree.design();
        // Only a merge needs the key range.
        let merges = design.flush == terrane_policy::FlushMode::Merge;
        let range = if merges { range_of(immutable)? } else { None };
        let mut jobs = tree.jobs();
        let version = Arc::clone(&tree.state().version);
        let shape = version.shape();
        let plan = match range {
            None => FlushPlan::NewRun(NewRunReason::Design),
            Some(range) => {
                let inputs = self.picker.pick_inputs(&version, &jobs, &design);
                let bytes = immutable.memtable.memory().data_bytes as u64;
                plan(&inputs.context(shape, &design, &jobs.cursors), &range, bytes)
            }
        };
        if let FlushPlan::Merge(merge) = &plan {
            if let Err(error) = soundness::check(&with_memtable(shape, merge), merge) {
                return Err(Error::internal(format!("unsound flush {merge}: {error}")));
            }
            jobs.flushing = Some(merge.clone());
        }
        drop(jobs);
        Ok(FlushTarget { tree, version, plan, failed: None })
    }
}

/// Returns the range of the keys and deleted ranges of a memtable; `None` if it is empty.
fn range_of(immutable: &ImmutableMemtable) -> Result<Option<KeyRange>> {
    let deleted = immutable.memtable.range_tombstones().fragments();
    let mut ranges: Vec<KeyRange> = deleted
        .iter()
        .map(|fragment| KeyRange::new(&fragment.start, fragment.end.as_deref()))
        .collect();
    let mut cursor = MergeCursor::new(vec![Source::Memtable(immutable.memtable.cursor())]);
    cursor.seek_first()?;
    if cursor.is_valid() {
        let first = cursor.key().to_vec();
        cursor.seek_last()?;
        if cursor.is_valid() {
            ranges.push(KeyRange::inclusive(&first, cursor.key()));
        }
    }
    Ok(KeyRange::hull_of(&ranges))
}
