//! Writes immutable memtables into tables of level 0.
//!
//! | module | one line |
//! |---|---|
//! | `logged_values` | takes large values from the log |
//! | `target` | the run that a flush writes to, and its claim on that run's tables |
//! | `tables` | writes the memtable, and the tables merged with it, into new tables |

mod logged_values;
mod tables;
mod target;

use std::cmp::Reverse;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use terrane_policy::forecast::CompactionCost;
use terrane_policy::memtable_choice::MemtableSelection;
use terrane_policy::{RunId, TableInfo, Turns};

use super::gate::Gate;
use super::merge_io::MergeIo;
use super::picking::Picker;
use super::record::{JobSummary, written_bytes};
use crate::base::error::{Error, Result};
use crate::base::event::{Event, enter_job};
use crate::base::stats::{Counter, Timed};
use crate::engine::catalog::{Catalog, VersionEdit, discards};
use crate::engine::context::{Context, JobKind};
use crate::engine::pipeline::{Pipeline, broken, report_map_refusal};
use crate::engine::tree::{ImmutableMemtable, Tree};
use crate::files::manifest::{Change, JobRecord, ValueFileRecord};
use crate::files::table::FinishedTable;
use crate::files::value_file::FinishedValueFile;
use tables::WrittenTables;
use target::FlushTarget;

/// A waiting tree is passed by at most this many flushes of trees that are closer to stopping their
/// writers, and then by at most one flush of each other tree.
const PASSES_MAX: u32 = 2;

/// The result of a flush.
#[derive(Debug, Default)]
struct FlushResult {
    tables: Vec<FinishedTable>,
    value_files: Vec<FinishedValueFile>,
    /// The number of tables of level 0 that were merged into `tables`, and the bytes read from
    /// them.
    merged: u64,
    read_bytes: u64,
    /// Why the flush created a new run although the design merges flushes with level 0.
    new_run_reason: Option<String>,
}

/// The changes of a flush.
#[derive(Debug, Default)]
struct FlushEdit<'a> {
    /// The run of level 0 that the tables join; `None` for a new run.
    run: Option<RunId>,
    tables: &'a [FinishedTable],
    value_files: &'a [FinishedValueFile],
    /// The log segments to which the tables refer, as recorded in the manifest.
    segments: Vec<&'a ValueFileRecord>,
    /// The tables that the new tables replace.
    replaced: &'a [Arc<TableInfo>],
    record: Option<JobRecord>,
}

/// How a flush shares the I/O budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FlushPace {
    /// It waits until the budget allows more.
    Budget,
    /// It takes what it needs.
    AtOnce,
}

/// Flushes memtables.
#[derive(Debug)]
pub(crate) struct Flusher {
    context: Arc<Context>,
    pipeline: Arc<Pipeline>,
    catalog: Arc<Catalog>,
    io: MergeIo,
    picker: Arc<Picker>,
    gate: Arc<Gate>,
    /// How often each waiting tree was passed by flushes of other trees.
    turns: Mutex<Turns>,
    /// The number of trees that were picked and are being flushed.
    running: AtomicUsize,
}

impl Flusher {
    fn lock_turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn new(
        context: &Arc<Context>,
        pipeline: &Arc<Pipeline>,
        catalog: &Arc<Catalog>,
        picker: &Arc<Picker>,
        gate: &Arc<Gate>,
    ) -> Self {
        Self {
            context: Arc::clone(context),
            pipeline: Arc::clone(pipeline),
            catalog: Arc::clone(catalog),
            io: MergeIo::new(context, catalog),
            picker: Arc::clone(picker),
            gate: Arc::clone(gate),
            turns: Mutex::default(),
            running: AtomicUsize::new(0),
        }
    }

    /// Returns the tree to flush next, among the trees that no thread is flushing, and marks it as
    /// being flushed. A tree that was passed often comes first, then the tree that is closest to
    /// the number of immutable memtables at which its writers stop.
    pub(super) fn pick(&self) -> Option<Arc<Tree>> {
        let trees = self.catalog.trees();
        let mut waiting: Vec<&Arc<Tree>> =
            trees.values().filter(|tree| !tree.state().immutables.is_empty()).collect();
        let mut turns = self.lock_turns();
        turns.note_waiting(waiting.iter().map(|tree| tree.id.0));
        if waiting.len() > 1 {
            waiting.sort_by_cached_key(|tree| {
                let stop_at = u64::from(tree.design().constraint.stop_buffers.max(1));
                let fullness = tree.state().immutables.len() as u64 * 1000 / stop_at;
                let passed = turns.passed(tree.id.0);
                (Reverse(passed.saturating_sub(PASSES_MAX - 1)), Reverse(fullness))
            });
        }
        drop(turns);
        let begins = |tree: &&Arc<Tree>| {
            let mut jobs = tree.jobs();
            let is_free = !std::mem::replace(&mut jobs.is_flushing, true);
            if is_free {
                self.context.signals.begin_job();
            }
            is_free
        };
        let picked = waiting.iter().find(|tree| begins(tree)).map(|tree| Arc::clone(tree))?;
        // Another thread that found no running flush may have gone back to sleep. A memtable may
        // have become immutable since the trees were listed, so they are checked again after the
        // count has changed. SeqCst: a thread that makes a memtable immutable after this check
        // wakes the flush threads, which then see the count.
        self.running.fetch_add(1, Ordering::SeqCst);
        let waits = |tree: &Arc<Tree>| tree.id != picked.id && !tree.state().immutables.is_empty();
        if trees.values().any(waits) {
            self.context.signals.wake();
        }
        Some(picked)
    }

    /// Returns the number of trees that are being flushed.
    pub(super) fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    /// Returns true if a memtable waits to be flushed, or is being flushed.
    pub(super) fn is_any_due(&self) -> bool {
        self.catalog.trees().values().any(|tree| !tree.state().immutables.is_empty())
    }

    /// Flushes a tree that was picked.
    pub(super) fn run(&self, tree: &Arc<Tree>) -> Result<()> {
        let result = self.flush_oldest(tree);
        self.lock_turns().note_end(tree.id.0);
        self.running.fetch_sub(1, Ordering::SeqCst);
        tree.jobs().is_flushing = false;
        self.context.signals.end_job();
        result
    }

    /// Flushes the oldest immutable memtable of a tree. Only one flush of a tree may run at a time.
    pub(crate) fn flush_oldest(&self, tree: &Arc<Tree>) -> Result<()> {
        let Some(immutable) = tree.state().immutables.last().cloned() else { return Ok(()) };
        if let Some(MemtableSelection { kind, reason, .. }) = tree.take_new_choice() {
            let (keyspace, kind) = (tree.name().to_string(), kind.to_string());
            self.context.events.emit(Event::MemtableChosen { keyspace, kind, reason });
        }
        let _span = enter_job("flush", tree.name());
        let start = Instant::now();
        let is_retried = self.context.health.failure_of(JobKind::Flush).is_some();
        let begun = (!is_retried).then(|| {
            self.context.events.emit(Event::FlushBegun {
                keyspace: tree.name().to_string(),
                reason: immutable.reason,
                entries: immutable.memtable.len() as u64,
                bytes: immutable.memtable.memory().used_bytes() as u64,
            })
        });
        let result = self.flush(tree, &immutable, FlushPace::Budget);
        result.as_ref().err().into_iter().for_each(|error| self.context.release_reserve(error));
        if is_retried && result.is_err() {
            return result.map(drop);
        }
        let took = start.elapsed();
        let took_micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let failure = result.as_ref().err().map(ToString::to_string);
        let (flushed, result) = match result {
            Ok(flushed) => (flushed, Ok(())),
            Err(error) => (FlushResult::default(), Err(error)),
        };
        self.context.events.emit(Event::FlushEnded {
            begun,
            keyspace: tree.name().to_string(),
            tables: flushed.tables.len() as u64,
            written_bytes: written_bytes(&flushed.tables, &flushed.value_files),
            merged_tables: flushed.merged,
            read_bytes: flushed.read_bytes,
            new_run_reason: flushed.new_run_reason,
            took_micros,
            failure,
        });
        // The log may have begun a segment since the last flush.
        report_map_refusal(&self.pipeline);
        result?;
        if !self.context.reserve.is_sized() {
            self.context.fill_reserve(self.catalog.reserve_bytes(0)?);
        }
        self.context.counters.add(Counter::Flushes, 1);
        self.context.counters.add(Counter::FlushMicros, took_micros);
        self.context.counters.durations.note(Timed::Flush, took);
        Ok(())
    }

    /// Flushes a memtable for which an ingest waits, without events. All writers wait for the
    /// ingest meanwhile, so the flush does not wait for the I/O budget, but overdraws it.
    pub(super) fn flush_for_ingest(
        &self,
        tree: &Arc<Tree>,
        immutable: &Arc<ImmutableMemtable>,
    ) -> Result<()> {
        self.flush(tree, immutable, FlushPace::AtOnce)?;
        self.context.counters.add(Counter::Flushes, 1);
        Ok(())
    }

    fn flush(
        &self,
        tree: &Arc<Tree>,
        immutable: &Arc<ImmutableMemtable>,
        pace: FlushPace,
    ) -> Result<FlushResult> {
        // Writers that loaded the memtable before it was replaced may still be inserting.
        if !self.pipeline.wait_visible(immutable.last_seq) {
            return Err(broken(&self.context));
        }
        if discards(&tree.design()) {
            self.install(tree, immutable, FlushEdit::default())?;
            return Ok(FlushResult::default());
        }
        self.context.check_room(immutable.memtable.filled_bytes() as u64)?;
        let start = Instant::now();
        // Sorts the entries of an unordered memtable in this thread, so that no writer has to.
        immutable.memtable.freeze();
        let mut paths = Vec::new();
        let mut target = self.target(tree, immutable)?;
        let mut written = self.write_tables((tree, immutable), &target, pace, &mut paths);
        if let Err(error) = &written
            && target.merge().is_some()
            && !matches!(error, Error::Closed)
        {
            // The memtable is flushed alone, so that the flush needs neither readable tables nor
            // space to rewrite them.
            self.catalog.abandon(std::mem::take(&mut paths));
            target.fall_back(error);
            written = self.write_tables((tree, immutable), &target, pace, &mut paths);
        }
        let installed = written.and_then(|written| {
            let replaced = target.replaced();
            let record = self.job_record(tree, &target, &replaced, &written, start);
            let (run, tables) = (target.run(), &written.tables[..]);
            let value_files = &written.value_files[..];
            if !self.context.is_inline() {
                written.segments.write_back(&*self.context.storage);
            }
            let segments = written.segments.changed().collect();
            let replaced = &replaced[..];
            let edit = FlushEdit { run, tables, value_files, segments, replaced, record };
            self.install(tree, immutable, edit)?;
            Ok(written)
        });
        let WrittenTables { tables, value_files, segments, damaged, read_bytes } =
            installed.inspect_err(|_| self.catalog.abandon(paths))?;
        tree.value_segments().replace(segments.unsettled());
        tree.note_damaged_values(&damaged);
        if target.merge().is_some() {
            self.context.counters.add(Counter::FlushesMerged, 1);
        }
        if target.is_fallback() {
            self.context.counters.add(Counter::FlushesApart, 1);
        }
        Ok(FlushResult {
            tables,
            value_files,
            read_bytes,
            merged: target.replaced().len() as u64,
            new_run_reason: target.new_run_reason(),
        })
    }

    /// Returns the record of a flush that merged a memtable with tables.
    fn job_record(
        &self,
        tree: &Tree,
        target: &FlushTarget<'_>,
        replaced: &[Arc<TableInfo>],
        written: &WrittenTables,
        start: Instant,
    ) -> Option<JobRecord> {
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
            start,
        };
        Some(summary.to_record(&self.context))
    }

    fn install(
        &self,
        tree: &Arc<Tree>,
        immutable: &Arc<ImmutableMemtable>,
        flush: FlushEdit<'_>,
    ) -> Result<()> {
        // A batch may span several trees. One tree's part must not become durable in a table while
        // the other parts are only in the log and may be lost.
        // Values in the log must be durable before a table refers to them. Readers of changes need
        // the records although the table has the entries.
        let keeps_changes = self.context.settings.keep_changes.is_some();
        if self.catalog.trees().len() > 1 || !flush.segments.is_empty() || keeps_changes {
            let synced = self.pipeline.sync_to(immutable.ends);
            synced.inspect_err(|error| self.context.health.fail(error.clone()))?;
        }
        self.catalog.install(tree, |manifest| {
            let run = flush.run.unwrap_or_else(|| RunId(manifest.take_run_number()));
            let mut edit = VersionEdit::default();
            for table in flush.replaced {
                edit.remove(tree.id, table.id);
            }
            flush.value_files.iter().for_each(|file| edit.add_value_file(tree.id, file));
            flush.segments.iter().for_each(|file| edit.set_value_file(tree.id, (*file).clone()));
            for table in flush.tables {
                edit.add(tree.id, 0, run, table);
            }
            let (keyspace, upto) = (tree.id, immutable.ends);
            edit.changes.push(Change::Flushed { keyspace, upto });
            edit.changes.push(Change::LastSeq(immutable.last_seq));
            edit.changes.extend(flush.record.map(Change::Job));
            edit.flushed = Some(Arc::clone(immutable));
            Ok(edit)
        })?;
        if !flush.replaced.is_empty() {
            tree.dead().clear();
        }
        self.catalog.release_log();
        self.catalog.notify_stalled_writers();
        Ok(())
    }
}
