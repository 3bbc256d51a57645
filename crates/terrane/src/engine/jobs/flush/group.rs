//! Flushes of several trees, which share their syncs and one edit of the manifest.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use terrane_policy::forecast::CompactionCost;
use terrane_policy::{RunId, TableInfo};

use super::report::{FlushReport, FlushResult};
use super::tables::WrittenTables;
use super::target::FlushTarget;
use super::{FlushPace, Flusher, GROUP_MAX};
use crate::base::error::{Error, Result};
use crate::base::event::enter_job;
use crate::base::stats::Counter;
use crate::engine::catalog::{InstallPlan, VersionEdit, discards};
use crate::engine::jobs::record::JobSummary;
use crate::engine::pipeline::{broken, report_map_refusal};
use crate::engine::tree::{ImmutableMemtable, JobEnd, Tree};
use crate::files::manifest::{Change, JobRecord, Manifest};

/// A memtable of a smaller part of its maximum does not say how long flushes take per byte: its syncs take most
/// of the time.
const LARGE_PART: u64 = 4;

/// A flush whose tables are written, but not part of the tree yet.
struct WrittenFlush<'a> {
    tree: &'a Arc<Tree>,
    immutable: Arc<ImmutableMemtable>,
    /// `None` if the design discards memtables.
    written: Option<(FlushTarget<'a>, WrittenTables)>,
    /// The tables of level 0 that were merged with the memtable.
    replaced: Vec<Arc<TableInfo>>,
    paths: Vec<PathBuf>,
    start: Instant,
}

impl Flusher {
    /// Flushes the oldest immutable memtable of each tree, with one edit of the manifest. Only one
    /// flush of a tree may run at a time.
    ///
    /// # Errors
    /// The first failure. The memtables of other trees may have been flushed.
    pub(crate) fn flush_oldest(&self, trees: &[Arc<Tree>]) -> Result<()> {
        let _span = match trees {
            [] => return Ok(()),
            [tree] => enter_job("flush", tree.name()),
            [first, others @ ..] => {
                enter_job("flush", &format!("{} and {} others", first.name(), others.len()))
            }
        };
        let mut failure = None;
        let (mut reports, mut flushes) = (Vec::new(), Vec::new());
        for tree in trees {
            let Some(immutable) = tree.state().immutables.last().cloned() else { continue };
            let report = FlushReport::begin(&self.context, tree, &immutable);
            match self.write(tree, immutable, FlushPace::Budget) {
                Ok(flush) => {
                    reports.push(report);
                    flushes.push(flush);
                }
                Err(error) => {
                    self.context.release_reserve(&error);
                    report.end(Err(&error));
                    failure.get_or_insert(error);
                }
            }
        }
        match self.finish(flushes) {
            Ok(results) => {
                for (report, result) in reports.into_iter().zip(results) {
                    report.end(result.as_ref());
                    failure = failure.or(result.err());
                }
            }
            Err(error) => {
                self.context.release_reserve(&error);
                reports.into_iter().for_each(|report| report.end(Err(&error)));
                failure.get_or_insert(error);
            }
        }
        // The log may have begun a segment since the last flush.
        report_map_refusal(&self.pipeline);
        if let Some(error) = failure {
            trees.iter().for_each(|tree| tree.relief.end_flush(JobEnd::Failed, 0));
            return Err(error);
        }
        self.catalog.fill_reserve(0);
        Ok(())
    }

    /// Flushes all immutable memtables of trees that no other thread flushes.
    pub(crate) fn flush_all(&self, trees: &[Arc<Tree>]) -> Result<()> {
        let is_left = |tree: &&Arc<Tree>| !tree.state().immutables.is_empty();
        let mut waiting: Vec<Arc<Tree>> = trees.iter().filter(is_left).cloned().collect();
        while !waiting.is_empty() {
            waiting.chunks(GROUP_MAX).try_for_each(|group| self.flush_oldest(group))?;
            waiting.retain(|tree| is_left(&tree));
        }
        Ok(())
    }

    /// Flushes a memtable for which an ingest waits, without events. All writers wait for the
    /// ingest meanwhile, so the flush does not wait for the I/O budget, but overdraws it.
    pub(in crate::engine::jobs) fn flush_for_ingest(
        &self,
        tree: &Arc<Tree>,
        immutable: &Arc<ImmutableMemtable>,
    ) -> Result<()> {
        let flush = self.write(tree, Arc::clone(immutable), FlushPace::AtOnce);
        let ended = flush.and_then(|flush| self.finish(vec![flush]));
        let ended = ended.and_then(|results| results.into_iter().try_for_each(|one| one.map(drop)));
        if ended.is_err() {
            tree.relief.end_flush(JobEnd::Failed, 0);
        }
        ended?;
        self.context.counters.add(Counter::Flushes, 1);
        Ok(())
    }

    /// Writes the tables of a flush.
    fn write<'a>(
        &self,
        tree: &'a Arc<Tree>,
        immutable: Arc<ImmutableMemtable>,
        pace: FlushPace,
    ) -> Result<WrittenFlush<'a>> {
        // Writers that loaded the memtable before it was replaced may still be inserting.
        if !self.pipeline.wait_visible(immutable.last_seq) {
            return Err(broken(&self.context));
        }
        let (start, mut paths) = (Instant::now(), Vec::new());
        tree.relief.begin_flush(immutable.filled_bytes());
        if discards(&tree.design()) {
            let (written, replaced) = (None, Vec::new());
            return Ok(WrittenFlush { tree, immutable, written, replaced, paths, start });
        }
        self.context.check_room(immutable.memtable.filled_bytes() as u64)?;
        // Sorts the entries of an unordered memtable in this thread, so that no writer has to.
        immutable.memtable.freeze();
        let mut target = self.target(tree, &immutable)?;
        let version = Arc::clone(&target.version);
        let logged = version.values().logged();
        let mut unreadable = logged.unreadable();
        let mut written = self.write_tables((tree, &immutable), &target, pace, &mut paths);
        if target.merge().is_some() {
            // Synced at once, so that the lack of space, which a sync may find, ends in a flush of
            // the memtable alone.
            written = written.and_then(|mut written| {
                self.make_durable(std::iter::once(&mut written)).map(|()| written)
            });
        }
        if let Err(error) = &written
            && target.merge().is_some()
            && !matches!(error, Error::Closed)
        {
            // The memtable is flushed alone, so that the flush needs neither readable tables nor
            // space to rewrite them.
            self.catalog.abandon(std::mem::take(&mut paths));
            target.fall_back(error);
            written = self.write_tables((tree, &immutable), &target, pace, &mut paths);
        }
        while written.is_err() && logged.unreadable() > unreadable {
            // Segments with values that cannot be read are kept this time.
            unreadable = logged.unreadable();
            self.catalog.abandon(std::mem::take(&mut paths));
            written = self.write_tables((tree, &immutable), &target, pace, &mut paths);
        }
        match written {
            Ok(written) => {
                let replaced = target.replaced();
                let written = Some((target, written));
                Ok(WrittenFlush { tree, immutable, written, replaced, paths, start })
            }
            Err(error) => {
                self.catalog.abandon(paths);
                Err(error)
            }
        }
    }

    /// Makes written tables durable and adds them to their trees, by one edit. A flush fails alone
    /// if its tree was dropped.
    fn finish(&self, mut flushes: Vec<WrittenFlush<'_>>) -> Result<Vec<Result<FlushResult>>> {
        if flushes.is_empty() {
            return Ok(Vec::new());
        }
        let written = flushes.iter_mut().filter_map(|flush| flush.written.as_mut());
        let durable = self.make_durable(written.map(|(_, written)| written));
        let installed = durable.and_then(|()| self.install(&flushes));
        let is_installed = installed.inspect_err(|_| {
            let paths = flushes.iter_mut().flat_map(|flush| std::mem::take(&mut flush.paths));
            self.catalog.abandon(paths.collect());
        })?;
        let done = flushes.into_iter().zip(is_installed).map(|(flush, is_installed)| {
            if is_installed {
                return Ok(self.after_install(flush));
            }
            self.catalog.abandon(flush.paths);
            Err(Error::Closed)
        });
        let done = done.collect();
        self.catalog.release_log();
        self.catalog.notify_stalled_writers();
        Ok(done)
    }

    fn after_install(&self, flush: WrittenFlush<'_>) -> FlushResult {
        let bytes = flush.immutable.filled_bytes();
        let is_large = bytes >= flush.tree.buffer_bytes() / LARGE_PART;
        let end = if is_large { JobEnd::Large(flush.start.elapsed()) } else { JobEnd::Small };
        flush.tree.relief.end_flush(end, bytes);
        let WrittenFlush { tree, written, replaced, .. } = flush;
        let Some((target, written)) = written else { return FlushResult::default() };
        let WrittenTables { tables, value_files, segments, damaged, read_bytes, .. } = written;
        if !replaced.is_empty() {
            tree.dead().clear();
        }
        tree.value_segments().replace(segments.unsettled());
        tree.note_damaged_values(&damaged);
        if target.merge().is_some() {
            self.context.counters.add(Counter::FlushesMerged, 1);
        }
        if target.is_fallback() {
            self.context.counters.add(Counter::FlushesApart, 1);
        }
        FlushResult {
            tables,
            value_files,
            read_bytes,
            merged: replaced.len() as u64,
            new_run_reason: target.new_run_reason(),
        }
    }

    /// Returns the record of a flush that merged a memtable with tables.
    fn job_record(&self, flush: &WrittenFlush<'_>) -> Option<JobRecord> {
        let WrittenFlush { tree, written, replaced, start, .. } = flush;
        let (target, written) = written.as_ref()?;
        let merge = target.merge().filter(|_| !replaced.is_empty())?;
        let cost = CompactionCost {
            tables_rewritten: replaced.len() as u64,
            tables_moved: 0,
            bytes_rewritten: merge.input_bytes(),
        };
        let summary = JobSummary {
            tree,
            compaction: merge,
            cost,
            consumed: replaced,
            tables: &written.tables,
            value_files: &written.value_files,
            read_bytes: written.read_bytes,
            start: *start,
        };
        Some(summary.to_record(&self.context))
    }

    fn install(&self, flushes: &[WrittenFlush<'_>]) -> Result<Vec<bool>> {
        // A batch may span several trees. One tree's part must not become durable in a table while
        // the other parts are only in the log and may be lost.
        // Values in the log must be durable before a table refers to them. Readers of changes need
        // the records although the table has the entries.
        let segments = || flushes.iter().filter_map(|flush| flush.written.as_ref());
        let segments = || segments().map(|(_, written)| &written.segments);
        if !self.context.is_inline() {
            segments().for_each(|segments| segments.write_back(&*self.context.storage));
        }
        let keeps_changes = self.context.settings.keep_changes.is_some();
        let needs_log = self.catalog.trees().len() > 1 || keeps_changes;
        if needs_log || segments().any(|segments| segments.changed().next().is_some()) {
            let ends = flushes.iter().map(|flush| flush.immutable.ends).max().unwrap_or_default();
            let synced = self.pipeline.sync_to(ends);
            synced.inspect_err(|error| self.context.health.fail(error.clone()))?;
        }
        let plans = flushes.iter().map(|flush| {
            let record = self.job_record(flush);
            let prepare = move |manifest: &mut Manifest| Ok(flush.edit(manifest, record));
            (flush.tree, Box::new(prepare) as Box<_>)
        });
        self.catalog.install_all(plans.collect::<Vec<InstallPlan<'_>>>())
    }
}

impl WrittenFlush<'_> {
    fn edit(&self, manifest: &mut Manifest, record: Option<JobRecord>) -> VersionEdit {
        let keyspace = self.tree.id;
        let mut edit = VersionEdit::default();
        if let Some((target, written)) = &self.written {
            let run = target.run().unwrap_or_else(|| RunId(manifest.take_run_number()));
            self.replaced.iter().for_each(|table| edit.remove(keyspace, table.id));
            written.value_files.iter().for_each(|file| edit.add_value_file(keyspace, file));
            let segments = written.segments.changed();
            segments.for_each(|file| edit.set_value_file(keyspace, file.clone()));
            written.tables.iter().for_each(|table| edit.add(keyspace, 0, run, table));
        }
        edit.changes.push(Change::Flushed { keyspace, upto: self.immutable.ends });
        edit.changes.push(Change::LastSeq(self.immutable.last_seq));
        edit.changes.extend(record.map(Change::Job));
        edit.flushed = Some(Arc::clone(&self.immutable));
        edit
    }
}
