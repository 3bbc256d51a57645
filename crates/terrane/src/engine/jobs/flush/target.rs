//! Where a flush puts a memtable, and a hold on what it merges it with.
//!
//! Policy is asked under the lock of the tree's jobs, as for compactions, and its answer is entered
//! there: no compaction takes what a flush takes, and no table of it is dropped. The hold ends with
//! the flush, however that ends.

use std::sync::Arc;

use terrane_policy::flush::{plan, with_memtable};
use terrane_policy::{
    Apart, Compaction, FlushPlan, KeyRange, Placement, RunId, TableInfo, soundness,
};

use crate::engine::tree::FullBuffer;
use crate::engine::{Engine, Tree};
use crate::error::{Error, Result};
use crate::iter::{MergeCursor, Source};
use crate::version::Version;

/// Where a flush puts a memtable.
pub(crate) struct Target<'a> {
    tree: &'a Tree,
    /// The tree that it was found for.
    pub(crate) version: Arc<Version>,
    plan: FlushPlan,
    /// Why it was not merged after all.
    failed: Option<String>,
}

impl Drop for Target<'_> {
    fn drop(&mut self) {
        self.tree.jobs().flushing = None;
    }
}

impl Target<'_> {
    /// What is merged, if anything is: the memtable comes first.
    pub(crate) fn merge(&self) -> Option<&Compaction> {
        match &self.plan {
            FlushPlan::Merge(merge) => Some(merge),
            FlushPlan::NewRun(_) => None,
        }
    }

    /// Tables of level 0 that are merged with the memtable.
    pub(crate) fn taken(&self) -> Vec<Arc<TableInfo>> {
        let inputs = self.merge().into_iter().flat_map(|merge| &merge.inputs);
        let tables = inputs.filter(|input| !input.is_memtable()).flat_map(|input| &input.tables);
        tables.cloned().collect()
    }

    /// The run of level 0 that takes the result, if it is one that is there.
    pub(crate) fn run(&self) -> Option<RunId> {
        match self.merge()?.output.placement {
            Placement::Join(run) => Some(run),
            Placement::NewRun => None,
        }
    }

    /// Tables that are older than the result, run by run.
    pub(crate) fn older_tables(&self) -> Vec<Vec<Arc<TableInfo>>> {
        if let Some(merge) = self.merge() {
            return merge.older_tables(self.version.shape());
        }
        let tables = |run: &Arc<crate::version::OpenRun>| {
            run.tables().iter().map(|table| Arc::clone(table.info())).collect()
        };
        self.version.runs().iter().map(tables).collect()
    }

    /// Merging failed by `error`: a new run takes the memtable alone, and what could not be read is
    /// left alone from now on.
    pub(crate) fn merge_failed(&mut self, error: &Error) {
        let FlushPlan::Merge(merge) = &mut self.plan else { return };
        merge.inputs.retain(|input| !input.is_memtable());
        let mut jobs = self.tree.jobs();
        jobs.leave_alone(merge, error);
        jobs.flushing = None;
        drop(jobs);
        self.failed = Some(format!("merging it failed: {error}"));
        self.plan = FlushPlan::NewRun(Apart::Busy);
    }

    /// Whether the design would rather have had the memtable merged.
    pub(crate) fn is_fallback(&self) -> bool {
        matches!(&self.plan, FlushPlan::NewRun(apart) if apart.is_fallback())
    }

    /// Why it was not, in that case.
    pub(crate) fn apart(&self) -> Option<String> {
        match &self.plan {
            FlushPlan::NewRun(apart) if apart.is_fallback() => {
                Some(self.failed.clone().unwrap_or_else(|| apart.to_string()))
            }
            _ => None,
        }
    }
}

impl Engine {
    /// Where the flush of a memtable that is in order puts it.
    pub(crate) fn flush_target<'a>(&self, tree: &'a Tree, full: &FullBuffer) -> Result<Target<'a>> {
        let design = tree.design();
        // What nothing follows from is not looked for.
        let range = match design.flush {
            terrane_policy::FlushMode::New => None,
            terrane_policy::FlushMode::Merge => range_of(full)?,
        };
        let mut jobs = tree.jobs();
        let version = Arc::clone(&tree.state().version);
        let shape = version.shape();
        let plan = match range {
            None => FlushPlan::NewRun(Apart::Design),
            Some(range) => {
                let around = self.surroundings(&version, &jobs, &design);
                let bytes = full.memtable.memory().data_bytes as u64;
                plan(&around.input(shape, &design, &jobs.cursors), &range, bytes)
            }
        };
        if let FlushPlan::Merge(merge) = &plan {
            if let Err(error) = soundness::check(&with_memtable(shape, merge), merge) {
                return Err(Error::internal(format!("unsound flush {merge}: {error}")));
            }
            jobs.flushing = Some(merge.clone());
        }
        drop(jobs);
        Ok(Target { tree, version, plan, failed: None })
    }
}

/// The keys of a memtable and the ranges that it deletes; `None` if there are none.
fn range_of(full: &FullBuffer) -> Result<Option<KeyRange>> {
    let deleted = full.memtable.range_tombstones().fragments();
    let mut ranges: Vec<KeyRange> = deleted
        .iter()
        .map(|fragment| KeyRange::new(&fragment.start, fragment.end.as_deref()))
        .collect();
    let mut cursor = MergeCursor::new(vec![Source::Memtable(full.memtable.cursor())]);
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
