//! Runs the compactions that policy picks.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use terrane_policy::compaction::InputGroup;
use terrane_policy::forecast::CompactionCost;
use terrane_policy::{Compaction, Placement, Reason, RunId, TableInfo, soundness};

use super::gate::{Gate, Pass};
use super::late_deletes::report_late_deletes;
use super::merge_io::{MergeIo, MergeScope};
use super::pacer::{JobPacer, await_memory};
use super::picking::Picker;
use super::record::{JobSummary, written_bytes};
use crate::base::cancel::Cancel;
use crate::base::clock::CpuLaps;
use crate::base::compaction_filter::FilterCounts;
use crate::base::error::{Error, Result};
use crate::base::event::{Event, enter_job};
use crate::base::stats::{Counter, Timed};
use crate::engine::catalog::{Catalog, VersionEdit};
use crate::engine::context::{Context, JobGrant, JobKind};
use crate::engine::merge::DamagedValues;
use crate::engine::pipeline::Pipeline;
use crate::engine::tree::{JobId, Tree, TreeJobs};
use crate::engine::version::Version;
use crate::files::manifest::{Change, JobRecord, describe};
use crate::files::table::FinishedTable;
use crate::files::value_file::FinishedValueFile;

/// A compaction that was picked, and is registered in the jobs of its tree and at the gate.
#[derive(Debug)]
pub(crate) struct CompactionJob<'a> {
    id: JobId,
    tree: Arc<Tree>,
    compaction: Arc<Compaction>,
    pass: Pass<'a>,
    memory: JobGrant,
    /// Cancels the compaction, if the caller that requested it can do so.
    cancel: Option<&'a Cancel>,
}

/// The result of a compaction.
#[derive(Debug, Default)]
struct CompactionResult {
    /// Tables that only moved to another run.
    moved: Vec<Arc<TableInfo>>,
    /// Tables that were merged into new ones, or dropped.
    consumed: Vec<Arc<TableInfo>>,
    tables: Vec<FinishedTable>,
    value_files: Vec<FinishedValueFile>,
    /// Value files with values that could not be read.
    damaged: DamagedValues,
    filtered: FilterCounts,
    /// The size of the tables that were read, in bytes.
    read_bytes: u64,
    /// The processor time of the job's helper threads, without the thread that runs it.
    helpers_cpu: Duration,
}

/// The processor time of a compaction, by phase.
#[derive(Clone, Copy)]
struct CompactionCpu {
    /// Taking locks, listing snapshots, and deciding which tables to merge together.
    planning: Duration,
    /// Reading, merging, writing and syncing tables, in all threads.
    merging: Duration,
    /// Syncing the directory, and changing the manifest and the version.
    installing: Duration,
}

/// Runs compactions.
#[derive(Debug)]
pub(crate) struct Compactor {
    pub(super) context: Arc<Context>,
    pub(super) catalog: Arc<Catalog>,
    pub(super) pipeline: Arc<Pipeline>,
    pub(super) io: MergeIo,
    picker: Arc<Picker>,
    gate: Arc<Gate>,
}

impl Compactor {
    pub(super) fn new(
        context: &Arc<Context>,
        pipeline: &Arc<Pipeline>,
        catalog: &Arc<Catalog>,
        picker: &Arc<Picker>,
        gate: &Arc<Gate>,
    ) -> Self {
        Self {
            context: Arc::clone(context),
            catalog: Arc::clone(catalog),
            pipeline: Arc::clone(pipeline),
            io: MergeIo::new(context, catalog),
            picker: Arc::clone(picker),
            gate: Arc::clone(gate),
        }
    }

    /// Picks a compaction that a tree needs and that the gate lets begin at once. If there are
    /// several trees, policy orders them by their next compactions.
    pub(crate) fn pick(&self) -> Option<CompactionJob<'_>> {
        let trees = self.catalog.trees();
        if trees.len() == 1 {
            return trees.values().find_map(|tree| self.try_begin(tree));
        }
        let (trees, candidates) = self.picker.due_compactions();
        let order = self.gate.order(&candidates).into_iter();
        // The lock of the jobs was released in between, so the compaction is picked again.
        order.filter_map(|at| trees.get(at)).find_map(|tree| self.try_begin(tree))
    }

    /// Begins the compaction that a tree needs next if the gate would let it run at once.
    fn try_begin(&self, tree: &Arc<Tree>) -> Option<CompactionJob<'_>> {
        let mut jobs = tree.jobs();
        let compaction = self.picker.next_compaction(tree, &jobs)?;
        let merge = self.picker.scheduler_view(tree, &jobs, &compaction);
        let level = compaction.from_level();
        if !self.gate.takes(&merge, level) {
            return None;
        }
        let memory = &self.context.compaction_memory;
        let memory = match self.context.is_inline() {
            true => memory.begin_at_once(),
            // The end of another compaction wakes this thread.
            false => memory.try_begin()?,
        };
        jobs.cursors.advance(&compaction);
        let (id, compaction) = self.begin(tree, &mut jobs, compaction);
        let pass = self.gate.enter(id, merge, level);
        Some(CompactionJob { id, tree: Arc::clone(tree), compaction, pass, memory, cancel: None })
    }

    /// Gives a compaction an id and registers it in the jobs of its tree. The caller then runs it.
    pub(crate) fn begin(
        &self,
        tree: &Tree,
        jobs: &mut TreeJobs,
        compaction: Compaction,
    ) -> (JobId, Arc<Compaction>) {
        let (id, compaction) = (self.gate.next_job(), Arc::new(compaction));
        jobs.begin(id, &compaction);
        // The tree is looked at again when the job has ended, even if the job fails.
        tree.register_for_compactions();
        self.context.signals.begin_job();
        (id, compaction)
    }

    /// Runs a registered compaction in the calling thread, as soon as the gate admits it.
    pub(crate) fn run_in_caller(
        &self,
        tree: &Arc<Tree>,
        (id, compaction): (JobId, Arc<Compaction>),
        cancel: Option<&Cancel>,
    ) -> Result<()> {
        let _caller = self.context.signals.enter_caller();
        // Before the gate, which could pause the compactions for whose memory this one waits.
        let memory = await_memory(&self.context, tree, cancel).inspect_err(|_| {
            tree.jobs().end(id);
            self.context.signals.end_job();
            // The memory that it waited for is free for the threads.
            self.context.signals.wake();
        })?;
        let merge = self.picker.scheduler_view(tree, &tree.jobs(), &compaction);
        let pass = self.gate.enter(id, merge, compaction.from_level());
        self.run(CompactionJob { id, tree: Arc::clone(tree), compaction, pass, memory, cancel })
    }

    /// Runs a compaction to its end and removes it from the jobs of its tree.
    pub(crate) fn run(&self, job: CompactionJob<'_>) -> Result<()> {
        let CompactionJob { id, tree, compaction, pass, mut memory, cancel } = job;
        let _span = enter_job("compaction", tree.name());
        let is_retried = self.context.health.failure_of(JobKind::Compaction).is_some();
        let begun = (!is_retried).then(|| self.report_begin(&tree, &compaction));
        let result = self.execute(&tree, &compaction, (&pass, cancel), &mut memory);
        drop((pass, memory));
        tree.retired().drop_unused();
        if result.is_ok() || !is_retried {
            self.report_end(&tree, &compaction, begun, &result);
        }
        report_inactive_filter(&self.context, &tree);
        let mut jobs = tree.jobs();
        jobs.end(id);
        if let Err(error) = &result {
            jobs.note_damage(&compaction, error);
        }
        drop(jobs);
        self.context.signals.end_job();
        report_late_deletes(&self.context, &tree);
        // Callers may wait for another caller's compaction, which may also leave work for the
        // threads.
        self.context.signals.notify_done();
        self.catalog.notify_stalled_writers();
        result.map(drop)
    }

    fn execute(
        &self,
        tree: &Arc<Tree>,
        compaction: &Compaction,
        (pass, cancel): (&Pass<'_>, Option<&Cancel>),
        memory: &mut JobGrant,
    ) -> Result<JobRecord> {
        let start = Instant::now();
        let mut laps = CpuLaps::begin();
        let version = Arc::clone(&tree.state().version);
        // A tree that was dropped meanwhile has no tables.
        if tree.is_dropped() {
            return Err(Error::Closed);
        }
        let shape = version.shape();
        if let Err(error) = soundness::check(shape, compaction) {
            return Err(Error::internal(format!("unsound compaction {compaction}: {error}")));
        }
        let cost = CompactionCost::of(compaction, shape);
        self.context.check_room(cost.bytes_rewritten)?;
        let mut paths = Vec::new();
        let mut outcome = CompactionResult::default();
        let mut pacer =
            JobPacer::new(&self.context, &self.picker, tree, (compaction, shape), (pass, cancel));
        let filter = tree.functions.active_filter();
        // Registered from before the snapshots are listed until the result is installed.
        let _filtering = filter.as_ref().map(|_| self.catalog.filtering.begin(tree));
        let scope = MergeScope { snapshots: self.pipeline.snapshots(), filter };
        let inputs = (compaction.groups(shape), &scope);
        let planning = laps.lap();
        let done =
            self.process_groups(&mut pacer, &version, inputs, memory, (&mut outcome, &mut paths));
        let merging = laps.lap() + outcome.helpers_cpu;
        let CompactionResult { consumed, tables, value_files, read_bytes, .. } = &outcome;
        let read_bytes = *read_bytes;
        let summary =
            JobSummary { tree, compaction, cost, consumed, tables, value_files, read_bytes, start };
        let record = summary.to_record(&self.context);
        let installed = done.and_then(|()| {
            if !tables.is_empty() {
                self.context.sync_dir()?;
            }
            self.install(tree, compaction, &outcome, &record)
        });
        if let Err(error) = installed {
            self.catalog.abandon(paths);
            return Err(error);
        }
        pacer.end();
        if !consumed.is_empty() {
            tree.dead().clear();
        }
        tree.note_damaged_values(&outcome.damaged);
        tree.jobs().note_join(compaction, tables.len());
        let cpu = CompactionCpu { planning, merging, installing: laps.lap() };
        self.count(compaction, &outcome, start.elapsed(), cpu);
        Ok(record)
    }

    fn install(
        &self,
        tree: &Arc<Tree>,
        compaction: &Compaction,
        result: &CompactionResult,
        record: &JobRecord,
    ) -> Result<()> {
        self.catalog.install(tree, |manifest| {
            let run = match compaction.output.placement {
                Placement::Join(run) => run,
                Placement::NewRun => RunId(manifest.take_run_number()),
            };
            let state = manifest.state().keyspaces.get(&tree.id);
            let present = state.map(|state| state.tables.clone()).unwrap_or_default();
            let mut edit = VersionEdit::default();
            let level = compaction.output.level;
            for table in &result.moved {
                let record = present.get(&table.id).cloned();
                let record = record.ok_or_else(|| Error::internal("a moved table vanished"))?;
                edit.move_to(tree.id, level, run, record);
            }
            for table in &result.consumed {
                edit.remove(tree.id, table.id);
            }
            result.value_files.iter().for_each(|file| edit.add_value_file(tree.id, file));
            for table in &result.tables {
                edit.add(tree.id, level, run, table);
            }
            edit.changes.push(Change::Job(record.clone()));
            Ok(edit)
        })
    }

    fn report_begin(&self, tree: &Tree, compaction: &Compaction) -> u64 {
        let cost = CompactionCost::of(compaction, tree.state().version.shape());
        self.context.events.emit(Event::JobBegun {
            keyspace: tree.name().to_string(),
            what: describe(compaction),
            why: compaction.reason.to_string(),
            predicted_bytes: cost.bytes_rewritten,
        })
    }

    fn report_end(
        &self,
        tree: &Tree,
        compaction: &Compaction,
        begun: Option<u64>,
        result: &Result<JobRecord>,
    ) {
        let record = result.as_ref().ok();
        let number = |of: fn(&JobRecord) -> u64| record.map_or(0, of);
        self.context.events.emit(Event::JobEnded {
            begun,
            keyspace: tree.name().to_string(),
            what: describe(compaction),
            why: compaction.reason.to_string(),
            tables_rewritten: number(|record| record.tables_rewritten),
            tables_moved: number(|record| record.tables_moved),
            predicted_bytes: number(|record| record.predicted_bytes),
            read_bytes: number(|record| record.read_bytes),
            written_bytes: number(|record| record.written_bytes),
            took_micros: number(|record| record.took_micros),
            failure: result.as_ref().err().map(ToString::to_string),
        });
    }

    fn count(
        &self,
        compaction: &Compaction,
        result: &CompactionResult,
        took: Duration,
        cpu: CompactionCpu,
    ) {
        let counters = &self.context.counters;
        self.io.count_refused(&result.tables);
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        counters.add(Counter::TrivialMoves, result.moved.len() as u64);
        if result.consumed.is_empty() {
            counters.add(Counter::MoveCompactions, 1);
        } else {
            counters.add(Counter::Compactions, 1);
            counters.add_compaction(compaction.from_level());
            counters.add(Counter::CompactionFilterRemoved, result.filtered.removed);
            counters.add(Counter::CompactionFilterReplaced, result.filtered.replaced);
            counters.durations.note(Timed::Compaction, took);
            let CompactionCpu { planning, merging, installing } = cpu;
            counters.add(Counter::CompactionCpuMicros, micros(planning + merging + installing));
            counters.add(Counter::CompactionPlanningCpuMicros, micros(planning));
            counters.add(Counter::CompactionInstallingCpuMicros, micros(installing));
            let written = written_bytes(&result.tables, &result.value_files);
            counters.add(Counter::CompactionBytesWritten, written);
            let values = result.value_files.iter().map(|file| file.size_bytes).sum();
            counters.add(Counter::ValueBytesRelocated, values);
            match compaction.reason {
                Reason::Collection { .. } => {
                    counters.add(Counter::Collections, 1);
                    counters.durations.note(Timed::Collection, took);
                }
                Reason::Join { .. } => counters.add(Counter::Joins, 1),
                _ => {}
            }
        }
    }

    fn process_groups(
        &self,
        pacer: &mut JobPacer<'_>,
        version: &Arc<Version>,
        (groups, scope): (Vec<InputGroup>, &MergeScope),
        memory: &mut JobGrant,
        (result, paths): (&mut CompactionResult, &mut Vec<PathBuf>),
    ) -> Result<()> {
        for group in groups {
            match group {
                InputGroup::Keep(_) => {}
                InputGroup::Move(table) => result.moved.push(table),
                InputGroup::Merge(tables) => {
                    let merged = self.merge_group(pacer, version, &tables, scope, memory, paths)?;
                    result.tables.extend(merged.tables);
                    result.value_files.extend(merged.value_files);
                    result.damaged.extend(merged.damaged);
                    result.filtered.add(merged.filtered);
                    result.read_bytes += merged.read_bytes;
                    result.helpers_cpu += merged.helpers_cpu;
                    result.consumed.extend(tables);
                }
            }
        }
        Ok(())
    }
}

/// Emits an event if the tree's filter is inactive, unless such an event was already emitted.
/// Called when the database is opened for writing, and after every compaction.
pub(crate) fn report_inactive_filter(context: &Context, tree: &Tree) {
    let Some(filter) = tree.functions.compaction_filter() else { return };
    if let Some(reason) = filter.unreported_reason() {
        let (keyspace, filter) = (tree.name().to_string(), filter.name().to_owned());
        context.events.emit(Event::CompactionFilterInactive { keyspace, filter, reason });
    }
}
