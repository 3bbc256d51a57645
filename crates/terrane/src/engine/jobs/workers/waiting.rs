//! Callers that wait for jobs, and run them if background work is inline.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use terrane_policy::{
    Compaction, KeyRange, PickContext, Reason, ValueFileId, manual, manual_collection, manual_join,
};

use super::Jobs;
use super::threads::PanicGuard;
use crate::base::cancel::{self, Cancel};
use crate::base::error::{Error, Result};
use crate::base::event::FlushReason;
use crate::engine::context::{BackgroundFailure, JobKind};
use crate::engine::tree::{JobId, Tree};

impl Jobs {
    /// Runs one job in the calling thread. Returns false if no job is due.
    pub(crate) fn run_one_job(&self) -> Result<bool> {
        let _guard = PanicGuard::of_caller(&self.context, &self.catalog);
        let done = self.try_one_job();
        if !matches!(done, Ok(false)) {
            // Other callers may wait for the job, and any threads may now have work.
            self.context.signals.notify_done();
        }
        match done {
            // The tree was dropped; the database is still open.
            Err(Error::Closed) if self.context.health.check_open().is_ok() => Ok(true),
            other => other,
        }
    }

    fn try_one_job(&self) -> Result<bool> {
        let _caller = self.context.signals.enter_caller();
        self.context.health.check_open()?;
        self.pipeline.create_requested();
        self.catalog.retry_removals();
        self.rotate_aged_memtables();
        self.switch_memtables();
        if let Some(trees) = self.flusher.pick() {
            return self.flusher.run(&trees).map(|()| true);
        }
        if let Some((tree, tables)) = self.picker.next_drop() {
            return self.drop_tables(&tree, &tables).map(|()| true);
        }
        let Some(job) = self.compactor.pick() else {
            self.report_late_deletes();
            return Ok(false);
        };
        match self.compactor.run(job) {
            // The tree has noted the damage and does not pick these tables again.
            Err(Error::Corruption(_)) => Ok(true),
            other => other.map(|()| true),
        }
    }

    /// Waits until `is_done` holds, and runs jobs meanwhile if background work is inline.
    ///
    /// # Errors
    /// [`Error::DiskFull`] if a job of these kinds has failed with this error since the wait began.
    fn wait_until(
        &self,
        kinds: &[JobKind],
        cancel: Option<&Cancel>,
        is_done: impl Fn() -> Result<bool>,
    ) -> Result<()> {
        let health = &self.context.health;
        let before = health.failures();
        loop {
            let seen = self.context.signals.done();
            if is_done()? {
                return Ok(());
            }
            health.check_writable()?;
            cancel::check(cancel)?;
            let mut failures = kinds.iter().filter_map(|kind| health.failure_of(*kind));
            let full = failures.find_map(|failure| match failure {
                BackgroundFailure { error: error @ Error::DiskFull(_), number }
                    if number > before =>
                {
                    Some(error)
                }
                _ => None,
            });
            if let Some(error) = full {
                return Err(error);
            }
            self.wait_or_work(seen)?;
        }
    }

    /// Waits until a job has ended after `seen`, the value of [`Signals::done`] before the caller
    /// looked for work. If background work is inline, runs a job instead, unless other threads are
    /// already running all due jobs.
    ///
    /// [`Signals::done`]: crate::engine::context::Signals::done
    pub(super) fn wait_or_work(&self, seen: u64) -> Result<()> {
        if self.context.is_inline() {
            if self.run_one_job()? {
                return Ok(());
            }
        } else {
            self.context.signals.wake();
        }
        self.context.signals.wait_for_done(seen);
        Ok(())
    }

    /// Flushes the memtables of trees. Returns when all their current entries are in tables.
    pub(crate) fn flush(&self, trees: &[Arc<Tree>], cancel: Option<&Cancel>) -> Result<()> {
        self.context.health.check_writable()?;
        let mut targets = Vec::new();
        {
            let mut writer = self.pipeline.lock();
            for tree in trees {
                if !tree.state().active.memtable.is_empty() {
                    self.pipeline.rotate(&mut writer, tree, FlushReason::Requested);
                }
                let newest = tree.state().immutables.first().map(|newest| newest.last_seq);
                targets.extend(newest.map(|last_seq| (Arc::clone(tree), last_seq)));
            }
        }
        // Finished trees are removed, so that the waits for very many trees take linear time.
        let targets = RefCell::new(targets);
        let is_flushed = || {
            let mut targets = targets.borrow_mut();
            while let Some((tree, last_seq)) = targets.last() {
                let is_left = tree.state().immutables.iter().any(|one| one.last_seq <= *last_seq);
                if is_left && !tree.is_dropped() {
                    return Ok(false);
                }
                targets.pop();
            }
            Ok(true)
        };
        self.wait_until(&[JobKind::Flush], cancel, is_flushed)
    }

    /// Compacts all entries in `range` into the last level that contains any of them, then collects
    /// the value files of the range that contain garbage, and joins its small tables.
    pub(crate) fn compact_range(
        &self,
        tree: &Arc<Tree>,
        range: &KeyRange,
        cancel: Option<&Cancel>,
    ) -> Result<()> {
        self.flush(std::slice::from_ref(tree), cancel)?;
        let mut files = value_files_of(tree, range);
        self.compact_levels(tree, range, cancel)?;
        // A merge leaves garbage in the files of the values that it drops, and tables outside the
        // range may also refer to these files.
        files.extend(value_files_of(tree, range));
        let files: Vec<ValueFileId> = files.into_iter().collect();
        if !files.is_empty() {
            // Files stay if a table that refers to them cannot be read.
            self.run_all(tree, |context| manual_collection(context, &files), cancel)?;
        }
        self.run_all(tree, |context| manual_join(context, range), cancel)
    }

    fn compact_levels(
        &self,
        tree: &Arc<Tree>,
        range: &KeyRange,
        cancel: Option<&Cancel>,
    ) -> Result<()> {
        let mut level = 0;
        loop {
            let seen = self.context.signals.done();
            self.context.health.check_writable()?;
            cancel::check(cancel)?;
            let (job, is_last) = {
                let mut jobs = tree.jobs();
                let state = tree.state();
                let shape = jobs.collectable(state.version.shape());
                let last = shape.last_level();
                if level > last || tree.is_dropped() {
                    return Ok(());
                }
                let design = tree.design();
                let inputs = self.picker.pick_inputs(&state.version, &jobs, &design);
                let context = inputs.context(&shape, &design, &jobs.cursors);
                let job = manual(&context, level, range);
                let alone = PickContext { in_progress: &[], ..context };
                if job.is_none() && manual(&alone, level, range).is_none() {
                    level += 1;
                    continue;
                }
                // A conflicting job will end, but an unreadable table stays unreadable.
                let ending = jobs.ending(&shape);
                let alone = PickContext { in_progress: &ending, ..context };
                let stuck = if job.is_none() { manual(&alone, level, range) } else { None };
                if let Some(error) = stuck.and_then(|stuck| jobs.damage_to(&stuck)) {
                    return Err(error);
                }
                let job = job.map(|job| self.compactor.begin(tree, &mut jobs, filtered(tree, job)));
                (job, level == last && level > 0)
            };
            match job {
                Some((id, compaction)) => {
                    self.run_requested(tree, (id, compaction), cancel)?;
                    if is_last {
                        return Ok(());
                    }
                    level += 1;
                }
                // The conflicting job is already running and will finish.
                None => self.wait_or_work(seen)?,
            }
        }
    }

    /// Runs the compactions that `find` returns, one after the other, until it returns none but for
    /// unreadable tables.
    fn run_all(
        &self,
        tree: &Arc<Tree>,
        find: impl Fn(&PickContext<'_>) -> Option<Compaction>,
        cancel: Option<&Cancel>,
    ) -> Result<()> {
        loop {
            let seen = self.context.signals.done();
            self.context.health.check_writable()?;
            cancel::check(cancel)?;
            let job = {
                let mut jobs = tree.jobs();
                let state = tree.state();
                if tree.is_dropped() {
                    return Ok(());
                }
                let shape = jobs.collectable(state.version.shape());
                let design = tree.design();
                let inputs = self.picker.pick_inputs(&state.version, &jobs, &design);
                let context = inputs.context(&shape, &design, &jobs.cursors);
                let job = find(&context);
                if job.is_none() {
                    let unreadable = jobs.blocked(&shape);
                    let alone = PickContext { in_progress: &unreadable, ..context };
                    if find(&alone).is_none() {
                        return Ok(());
                    }
                }
                job.map(|job| self.compactor.begin(tree, &mut jobs, job))
            };
            match job {
                Some((id, compaction)) => self.run_requested(tree, (id, compaction), cancel)?,
                None => self.wait_or_work(seen)?,
            }
        }
    }

    /// Runs a compaction in the thread of the caller that requested it.
    fn run_requested(
        &self,
        tree: &Arc<Tree>,
        job: (JobId, Arc<Compaction>),
        cancel: Option<&Cancel>,
    ) -> Result<()> {
        let _guard = PanicGuard::of_caller(&self.context, &self.catalog);
        match self.compactor.run_in_caller(tree, job, cancel) {
            Err(Error::Closed) if tree.is_dropped() => Ok(()),
            other => other,
        }
    }

    /// Returns when no flush, drop or compaction is due or running.
    ///
    /// # Errors
    /// [`Error::Corruption`] if a compaction is due but cannot run because a table is unreadable.
    pub(crate) fn wait_for_compactions(&self, cancel: Option<&Cancel>) -> Result<()> {
        let kinds = [JobKind::Flush, JobKind::Drop, JobKind::Compaction];
        self.wait_until(&kinds, cancel, || {
            let attention = &self.context.attention;
            if !attention.flushes.is_empty() || self.has_aged_memtables() {
                return Ok(false);
            }
            let mut damage = None;
            for listed in self.picker.trees_of(&attention.compactions) {
                let tree = &listed.tree;
                let jobs = tree.jobs_with_covered();
                if !self.picker.is_quiet(tree, &jobs)
                    || self.picker.listed_compaction(&listed, &jobs).is_some()
                {
                    return Ok(false);
                }
                let wanted = self.picker.wanted_compaction(tree, &jobs);
                damage = damage.or_else(|| jobs.damage_to(&wanted?));
            }
            for listed in self.picker.trees_of(&attention.drops) {
                if !self.picker.is_quiet(&listed.tree, &listed.tree.jobs_with_covered()) {
                    return Ok(false);
                }
            }
            damage.map_or(Ok(true), Err)
        })
    }
}

/// Extends a requested compaction to the tables that would stay in its output level, if the
/// keyspace has a filter, so that the filter sees them.
fn filtered(tree: &Tree, job: Compaction) -> Compaction {
    match job.reason {
        Reason::Manual { level, .. } if level == job.output.level => {
            let rewrites = tree.functions.active_filter().is_some();
            Compaction { reason: Reason::Manual { level, rewrites }, ..job }
        }
        _ => job,
    }
}

/// Returns the value files to which tables that share keys with `range` refer.
fn value_files_of(tree: &Tree, range: &KeyRange) -> BTreeSet<ValueFileId> {
    let state = tree.state();
    let tables = state.version.shape().tables().filter(|table| table.range.overlaps(range));
    tables.flat_map(|table| table.value_refs.iter()).map(|used| used.file).collect()
}
