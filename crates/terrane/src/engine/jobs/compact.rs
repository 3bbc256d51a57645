//! Carries out what policy picked.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use terrane_policy::compaction::Group;
use terrane_policy::forecast::Cost;
use terrane_policy::{
    Compaction, KeyRange, PickInput, Placement, RunId, TableId, TableInfo, TreeShape, manual,
    soundness,
};

use crate::clock::thread_cpu_time;
use crate::engine::catalog::install::Installed;
use crate::engine::jobs::gate::Pass;
use crate::engine::jobs::progress::Pace;
use crate::engine::tree::TreeJobs;
use crate::engine::{Engine, JobKind, Tree};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::manifest::{Change, JobRecord, describe};
use crate::stats::Counter;
use crate::table::FinishedTable;
use crate::version::Version;

/// What a compaction did with its inputs.
#[derive(Debug, Default)]
struct Outcome {
    /// Tables that only change place.
    moved: Vec<Arc<TableInfo>>,
    /// Tables that are merged into new ones, or dropped.
    consumed: Vec<Arc<TableInfo>>,
    made: Vec<FinishedTable>,
    /// Bytes of the tables that were read.
    read_bytes: u64,
    /// Processor time of threads that helped.
    helpers_cpu: Duration,
}

impl Engine {
    /// Carries out a compaction that was entered in the tree's jobs, and takes it out of them.
    pub(crate) fn compact(
        &self,
        tree: &Arc<Tree>,
        compaction: &Compaction,
        pass: Pass<'_>,
    ) -> Result<()> {
        let is_retried = self.health.trouble(JobKind::Compaction).is_some();
        let begun = (!is_retried).then(|| self.tell_begin(tree, compaction));
        let result = self.carry_out(tree, compaction, &pass);
        drop(pass);
        tree.retired().let_go();
        if result.is_ok() || !is_retried {
            self.tell_end(tree, compaction, begun, &result);
        }
        let mut jobs = tree.jobs();
        jobs.compactions.retain(|other| other != compaction);
        if let Err(error) = &result {
            jobs.leave_alone(compaction, error);
        }
        drop(jobs);
        self.tell_late_deletes(tree);
        // Also one that a caller asked for may leave something for others to do.
        self.work.wake();
        self.tell_room();
        result.map(drop)
    }

    /// Carries out a compaction in a thread of the caller.
    fn help_to_compact(&self, tree: &Arc<Tree>, compaction: &Compaction) -> Result<()> {
        let _helping = self.work.help();
        if let Err(error) = self.health.check_open() {
            tree.jobs().compactions.retain(|other| other != compaction);
            return Err(error);
        }
        let merge = self.as_merge(tree, &tree.jobs(), compaction);
        let pass = self.gate.enter(merge, compaction.from_level());
        self.compact(tree, compaction, pass)
    }

    fn carry_out(
        &self,
        tree: &Arc<Tree>,
        compaction: &Compaction,
        pass: &Pass<'_>,
    ) -> Result<JobRecord> {
        let start = Instant::now();
        let cpu_start = thread_cpu_time();
        let version = Arc::clone(&tree.state().version);
        // A tree that was dropped since has no tables any more.
        if tree.is_dropped() {
            return Err(Error::Closed);
        }
        let shape = version.shape();
        if let Err(error) = soundness::check(shape, compaction) {
            return Err(Error::internal(format!("unsound compaction {compaction}: {error}")));
        }
        let mut paths = Vec::new();
        let mut outcome = Outcome::default();
        let mut pace = Pace::new(self, tree, compaction, shape, pass);
        let done = self.do_groups(&mut pace, &version, &mut outcome, &mut paths);
        let record = self.record(tree, compaction, &outcome, shape, start);
        let installed = done.and_then(|()| {
            if !outcome.made.is_empty() {
                self.sync_dir()?;
            }
            self.install(tree, |manifest| {
                let run = match compaction.output.placement {
                    Placement::Join(run) => run,
                    Placement::NewRun => RunId(manifest.take_run_number()),
                };
                let state = manifest.state().keyspaces.get(&tree.id);
                let tables = state.map(|state| state.tables.clone()).unwrap_or_default();
                let mut installed = Installed::default();
                let level = compaction.output.level;
                for moved in &outcome.moved {
                    let record = tables.get(&moved.id).cloned();
                    let record = record.ok_or_else(|| Error::internal("a moved table vanished"))?;
                    installed.remove(tree.id, moved.id);
                    installed.place(tree.id, level, run, record);
                }
                for consumed in &outcome.consumed {
                    installed.remove(tree.id, consumed.id);
                    installed.obsolete.push(consumed.id);
                }
                for made in &outcome.made {
                    installed.add(tree.id, level, run, made);
                }
                installed.changes.push(Change::Job(record.clone()));
                Ok(installed)
            })
        });
        if let Err(error) = installed {
            self.abandon(paths);
            return Err(error);
        }
        if !outcome.consumed.is_empty() {
            tree.dead().clear();
        }
        let cpu = thread_cpu_time().zip(cpu_start).map(|(now, before)| now.saturating_sub(before));
        let cpu = cpu.unwrap_or_default() + outcome.helpers_cpu;
        self.count(compaction.from_level(), &outcome, start.elapsed(), cpu);
        Ok(record)
    }

    fn tell_begin(&self, tree: &Tree, compaction: &Compaction) -> u64 {
        let cost = Cost::of(compaction, tree.state().version.shape());
        self.events.emit(Event::JobBegun {
            keyspace: tree.name.to_string(),
            what: describe(compaction),
            why: compaction.reason.to_string(),
            predicted_bytes: cost.bytes_rewritten,
        })
    }

    fn tell_end(
        &self,
        tree: &Tree,
        compaction: &Compaction,
        begun: Option<u64>,
        result: &Result<JobRecord>,
    ) {
        let record = result.as_ref().ok();
        let number = |of: fn(&JobRecord) -> u64| record.map_or(0, of);
        self.events.emit(Event::JobEnded {
            begun,
            keyspace: tree.name.to_string(),
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

    /// What is remembered of a compaction.
    fn record(
        &self,
        tree: &Tree,
        compaction: &Compaction,
        outcome: &Outcome,
        shape: &TreeShape,
        start: Instant,
    ) -> JobRecord {
        let now = self.clock.now_micros();
        let cost = Cost::of(compaction, shape);
        let oldest = outcome.consumed.iter().filter_map(|table| table.oldest_tombstone_micros);
        let keeps = outcome.made.iter().any(|made| made.info.has_tombstones());
        JobRecord {
            keyspace: tree.id,
            ended_micros: now,
            took_micros: u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX),
            tables_rewritten: cost.tables_rewritten,
            tables_moved: cost.tables_moved,
            predicted_bytes: cost.bytes_rewritten,
            read_bytes: outcome.read_bytes,
            written_bytes: outcome.made.iter().map(|made| made.info.size_bytes).sum(),
            persisted_micros: oldest
                .min()
                .filter(|_| !keeps)
                .map(|since| now.saturating_sub(since)),
            what: describe(compaction),
            why: compaction.reason.to_string(),
        }
    }

    fn count(&self, from_level: usize, outcome: &Outcome, took: Duration, cpu: Duration) {
        self.count_refused(&outcome.made);
        let written = outcome.made.iter().map(|table| table.info.size_bytes).sum();
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.counters.add(Counter::TrivialMoves, outcome.moved.len() as u64);
        if outcome.consumed.is_empty() {
            self.counters.add(Counter::MoveCompactions, 1);
        } else {
            self.counters.add(Counter::Compactions, 1);
            self.counters.add_compaction(from_level);
            self.counters.compaction_times.add(micros(took));
            self.counters.add(Counter::CompactionCpuMicros, micros(cpu));
            self.counters.add(Counter::CompactionBytesWritten, written);
        }
    }

    fn do_groups(
        &self,
        pace: &mut Pace<'_>,
        version: &Arc<Version>,
        outcome: &mut Outcome,
        paths: &mut Vec<PathBuf>,
    ) -> Result<()> {
        let (shape, compaction) = (version.shape(), pace.compaction);
        let snapshots = self.snapshots.list();
        for group in compaction.groups(shape) {
            match group {
                Group::Keep(_) => {}
                Group::Move(table) => outcome.moved.push(table),
                Group::Merge(tables) => {
                    let merged = self.merge_group(pace, version, &tables, &snapshots, paths)?;
                    outcome.made.extend(merged.made);
                    outcome.read_bytes += merged.read_bytes;
                    outcome.helpers_cpu += merged.helpers_cpu;
                    outcome.consumed.extend(tables);
                }
            }
        }
        Ok(())
    }

    /// Compacts everything in `range` down to the last level that holds any of it.
    pub(crate) fn compact_range(&self, tree: &Arc<Tree>, range: &KeyRange) -> Result<()> {
        self.flush(std::slice::from_ref(tree))?;
        let mut level = 0;
        loop {
            self.health.check_writable()?;
            let (job, is_last) = {
                let mut jobs = tree.jobs();
                let state = tree.state();
                let shape = state.version.shape();
                let last = shape.last_level();
                if level > last || tree.is_dropped() {
                    return Ok(());
                }
                let design = tree.design();
                let around = self.surroundings(&state.version, &jobs, &design);
                let input = around.input(shape, &design, &jobs.cursors);
                let job = manual(&input, level, range);
                let alone = PickInput { in_progress: &[], ..input };
                if job.is_none() && manual(&alone, level, range).is_none() {
                    level += 1;
                    continue;
                }
                // What is going on comes to its end; a table that cannot be read stays.
                let ending = ending(shape, &jobs);
                let alone = PickInput { in_progress: &ending, ..input };
                let stuck = if job.is_none() { manual(&alone, level, range) } else { None };
                if let Some(error) = stuck.and_then(|stuck| jobs.damage_to(&stuck)) {
                    return Err(error);
                }
                jobs.compactions.extend(job.clone());
                (job, level == last && level > 0)
            };
            match job {
                Some(job) => {
                    match self.help_to_compact(tree, &job) {
                        Err(Error::Closed) if tree.is_dropped() => return Ok(()),
                        other => other?,
                    }
                    if is_last {
                        return Ok(());
                    }
                    level += 1;
                }
                // What is in the way is going on, and will be done with.
                None => self.work_a_little()?,
            }
        }
    }
}

/// Everything that a new compaction must stay clear of: those in progress, a flush that merges, tables that are being
/// dropped, and tables that cannot be read.
pub(crate) fn busy(shape: &TreeShape, jobs: &TreeJobs) -> Vec<Compaction> {
    let is_out = |id: &TableId| jobs.unreadable.contains_key(id) || jobs.dropping.contains(id);
    clear_of(shape, jobs, is_out)
}

/// Of what a new compaction must stay clear of, that which is on its way out.
pub(crate) fn ending(shape: &TreeShape, jobs: &TreeJobs) -> Vec<Compaction> {
    clear_of(shape, jobs, |id| jobs.dropping.contains(id))
}

fn clear_of(
    shape: &TreeShape,
    jobs: &TreeJobs,
    is_out: impl Fn(&TableId) -> bool,
) -> Vec<Compaction> {
    let mut all = jobs.compactions.clone();
    all.extend(jobs.flushing.clone());
    for place in shape.places().filter(|place| is_out(&place.table.id)) {
        let input = terrane_policy::compaction::Input {
            level: place.level,
            run: place.run,
            tables: vec![Arc::clone(place.table)],
        };
        let output =
            terrane_policy::Output { level: place.level, placement: Placement::Join(place.run) };
        let reason = terrane_policy::Reason::Manual { level: place.level };
        all.push(Compaction { inputs: vec![input], output, reason });
    }
    all
}
