//! Merges tables that share keys into new ones, where that is worth it in parts that have a thread
//! each (Dent §2.3.4: every thread merges its part of all runs).
//!
//! A part is a range of keys. All versions of a key are in one part, range tombstones are cut where
//! parts are, and so each part follows the rules of a merge by itself; their tables one after the
//! other are what a merge in one thread makes, but for where they are cut. The parts of a merge are
//! one to the gate: they rest together, and go on together.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use terrane_memtable::{Fragment, RangeTombstones};
use terrane_policy::{Compaction, KeyRange, TableId, TableInfo, TreeShape};

use crate::clock::thread_cpu_time;
use crate::engine::Engine;
use crate::engine::jobs::flush::job_memory;
use crate::engine::jobs::progress::Pace;
use crate::engine::jobs::subcompactions::{Part, Sample, parts};
use crate::error::{Error, Result};
use crate::iter::{MergeCursor, RunCursor, Source};
use crate::memory::Charge;
use crate::merge::{Chunk, DropRules, OlderTables, Output, clipped, covered, merge};
use crate::stats::Counter;
use crate::table::{FinishedTable, Table, Warmer};
use crate::types::{MAX_SEQ, SeqNo};
use crate::version::{OpenRun, Version};

/// The most that is read of a run at a time, and the least, however little memory there is.
const PIECE_BYTES_MAX: usize = 512 << 10;
const PIECE_BYTES_MIN: usize = 16 << 10;

/// Places that a merge may be cut at, for each of its parts.
const SAMPLES_PER_PART: u64 = 16;

/// What became of a group.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    pub(crate) made: Vec<FinishedTable>,
    /// Bytes of the tables that were read.
    pub(crate) read_bytes: u64,
    /// Processor time of threads that helped.
    pub(crate) helpers_cpu: Duration,
}

/// What all parts of a merge have in common.
struct Group<'a, 'p> {
    engine: &'a Engine,
    pace: Mutex<&'a mut Pace<'p>>,
    /// A part failed: the others need not go on.
    is_over: AtomicBool,
    version: &'a Version,
    tables: &'a [Arc<TableInfo>],
    runs: Vec<Arc<OpenRun>>,
    fragments: Vec<Fragment>,
    snapshots: &'a [SeqNo],
    piece_bytes: usize,
}

/// What became of a part. Files may have been begun even if it failed.
struct Outcome {
    made: Result<Vec<FinishedTable>>,
    paths: Vec<PathBuf>,
    cpu: Duration,
}

impl Engine {
    /// Merges the tables of a group. The files that were begun are added to `paths`, also if that
    /// fails.
    pub(crate) fn merge_group(
        &self,
        pace: &mut Pace<'_>,
        version: &Arc<Version>,
        tables: &[Arc<TableInfo>],
        snapshots: &[SeqNo],
        paths: &mut Vec<PathBuf>,
    ) -> Result<Merged> {
        // Memory is taken when the merge can make use of it.
        pace.go_on(Chunk::default())?;
        let fragments = fragments_of(version, tables)?;
        let read = self.not_covered(tables, &fragments, snapshots);
        let runs = chosen_runs(version, pace.compaction, &read);
        let design = pace.tree.design();
        let parts = self.parts_of(&runs, design.table_bytes)?;
        let piece_bytes =
            piece_bytes(self.settings.memory_budget_bytes(), runs.len() * parts.len());
        let held = runs.iter().map(|run| piece_bytes.min(largest_table_bytes(run))).sum::<usize>();
        let taken = (held + job_memory(&design)) * parts.len();
        let _charge = Charge::new(&self.ledger, |ledger| &ledger.jobs, taken);
        // The job's memory comes from the cache, before it is taken.
        self.size_cache();
        let is_read = |table: &&Arc<TableInfo>| read.contains(&table.id);
        let read_bytes = tables.iter().filter(is_read).map(|table| table.size_bytes).sum();
        let group = Group {
            engine: self,
            pace: Mutex::new(pace),
            is_over: AtomicBool::new(false),
            version,
            tables,
            runs,
            fragments,
            snapshots,
            piece_bytes,
        };
        let outcomes = if self.is_inline() {
            parts.iter().map(|part| group.merge(part)).collect()
        } else {
            group.merge_in_threads(&parts)
        };
        let mut merged = Merged { read_bytes, ..Merged::default() };
        let mut failed: Option<Error> = None;
        // The first one is that of this thread.
        for (number, outcome) in outcomes.into_iter().enumerate() {
            paths.extend(outcome.paths);
            if number > 0 && !self.is_inline() {
                merged.helpers_cpu += outcome.cpu;
            }
            match outcome.made {
                Ok(made) => merged.made.extend(made),
                // The others were only told to stop.
                Err(error)
                    if failed.as_ref().is_none_or(|before| matches!(before, Error::Closed)) =>
                {
                    failed = Some(error);
                }
                Err(_) => {}
            }
        }
        failed.map_or(Ok(merged), Err)
    }

    /// The parts that the merge of `runs` is done in: as many as there are threads for it, each of
    /// a table or more.
    fn parts_of(&self, runs: &[Arc<OpenRun>], table_bytes: u64) -> Result<Vec<Part>> {
        let tables = || runs.iter().flat_map(|run| run.tables());
        let total: u64 = tables().map(|table| table.info().size_bytes).sum();
        let most = total / table_bytes.max(1);
        let count = (self.settings.merge_threads as u64).min(most);
        if count < 2 {
            return Ok(vec![Part::default()]);
        }
        let step = (total / (count * SAMPLES_PER_PART)).max(1);
        let mut samples = Vec::new();
        for table in tables() {
            samples_of(table, step, &mut samples)?;
        }
        Ok(parts(samples, count as usize))
    }

    /// The tables of a group that must be read: not those that newer range tombstones cover whole,
    /// for every reader that could see anything of them.
    pub(crate) fn not_covered(
        &self,
        tables: &[Arc<TableInfo>],
        fragments: &[Fragment],
        snapshots: &[SeqNo],
    ) -> Vec<TableId> {
        let set = [fragments.iter().collect()];
        let is_covered = |table: &&Arc<TableInfo>| {
            covered(&set, table).is_some_and(|covered| covered.is_unseen(snapshots))
        };
        let (covered, read): (Vec<_>, Vec<_>) = tables.iter().partition(is_covered);
        self.counters.add(Counter::TablesDropped, covered.len() as u64);
        read.iter().map(|table| table.id).collect()
    }
}

impl Group<'_, '_> {
    /// Merges the first part in this thread, and each other one in a thread of its own.
    fn merge_in_threads(&self, parts: &[Part]) -> Vec<Outcome> {
        let Some((first, others)) = parts.split_first() else { return Vec::new() };
        std::thread::scope(|scope| {
            let spawn = |part| {
                let thread = std::thread::Builder::new().name("terrane-merge".into());
                (part, thread.spawn_scoped(scope, move || self.merge(part)))
            };
            let begun: Vec<_> = others.iter().map(spawn).collect();
            let mut outcomes = vec![self.merge(first)];
            for (part, thread) in begun {
                outcomes.push(match thread {
                    Ok(thread) => thread.join().unwrap_or_else(|_| Self::panicked()),
                    // As many threads as there may be are there: this one does it.
                    Err(_) => self.merge(part),
                });
            }
            outcomes
        })
    }

    fn panicked() -> Outcome {
        let made = Err(Error::internal("a part of a merge panicked; see the panic"));
        Outcome { made, paths: Vec::new(), cpu: Duration::ZERO }
    }

    fn merge(&self, part: &Part) -> Outcome {
        let start = thread_cpu_time();
        let mut paths = Vec::new();
        // Also a part that panics has the others stop.
        let mut ending = Ending { of: self, is_well: false };
        let made = self.merge_part(part, &mut paths);
        ending.is_well = made.is_ok();
        let cpu = thread_cpu_time().zip(start).map(|(now, start)| now.saturating_sub(start));
        Outcome { made, paths, cpu: cpu.unwrap_or_default() }
    }

    fn merge_part(&self, part: &Part, paths: &mut Vec<PathBuf>) -> Result<Vec<FinishedTable>> {
        let (tree, compaction) = {
            let pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
            (pace.tree, pace.compaction)
        };
        let shape = self.version.shape();
        let tables_read = self.runs.iter().flat_map(|run| run.tables());
        let warming = self.engine.settings.cache_warming;
        let warmer = Warmer::of_compaction(&self.engine.tables, warming, tables_read)?;
        let heat = warmer.as_ref().and_then(Warmer::heat);
        let sources = self.runs.iter().map(|run| {
            let run = Arc::clone(run);
            Source::Run(RunCursor::read_ahead(run, self.piece_bytes, heat.cloned()))
        });
        let mut input = MergeCursor::new(sources.collect());
        match &part.start {
            None => input.seek_first()?,
            Some(start) => input.seek(start, MAX_SEQ)?,
        }
        let older = OlderTables::new(compaction.older_tables(shape));
        let rules = DropRules::new(self.snapshots.to_vec(), older);
        let level = compaction.output.level;
        let grandparents = grandparents(shape, level, self.tables);
        let oldest = self.tables.iter().filter_map(|table| table.oldest_tombstone_micros).min();
        let mut next_table = || self.engine.next_table();
        let mut config =
            self.engine.output_config(tree, level, grandparents, oldest, &mut next_table);
        config.warmer = warmer;
        let mut output = Output::new(config);
        let fragments = clipped(&self.fragments, part.start.as_deref(), part.end.as_deref());
        let mut go_on = |chunk: Chunk| {
            if self.is_over.load(Ordering::Relaxed) {
                return Err(Error::Closed);
            }
            // The others wait here while this one does: a merge rests as a whole.
            self.pace.lock().unwrap_or_else(PoisonError::into_inner).go_on(chunk)
        };
        let end = part.end.as_deref();
        let made = merge(input, end, fragments, rules, &mut output, &mut go_on);
        paths.extend_from_slice(output.paths());
        made
    }
}

/// Has the other parts of a merge stop, unless this one ended well.
struct Ending<'a, 'g, 'p> {
    of: &'a Group<'g, 'p>,
    is_well: bool,
}

impl Drop for Ending<'_, '_, '_> {
    fn drop(&mut self) {
        if !self.is_well {
            self.of.is_over.store(true, Ordering::Relaxed);
        }
    }
}

/// Keys of a table, about `step` bytes apart.
fn samples_of(table: &Table, step: u64, samples: &mut Vec<Sample>) -> Result<()> {
    let (blocks, bytes) = (table.block_count()? as u64, table.info().size_bytes);
    let count = (bytes / step).clamp(1, blocks.max(1));
    for number in 0..count {
        let block = (number * blocks / count) as usize;
        samples.push(Sample { key: table.separator(block)?, bytes: bytes / count });
    }
    Ok(())
}

/// The range tombstones of some tables together.
pub(crate) fn fragments_of(version: &Version, tables: &[Arc<TableInfo>]) -> Result<Vec<Fragment>> {
    let all = RangeTombstones::new();
    for info in tables.iter().filter(|info| info.range_tombstones > 0) {
        let Some(table) = version.tables().get(&info.id) else { continue };
        table.fragments()?.iter().for_each(|fragment| all.add(fragment));
    }
    Ok(all.fragments())
}

/// What is read of each of `runs` at a time. Larger pieces hardly cost less per byte; those of all
/// runs together must leave most of the memory to others.
pub(crate) fn piece_bytes(budget: u64, runs: usize) -> usize {
    let share = usize::try_from(budget / 8).unwrap_or(usize::MAX) / runs.max(1);
    share.clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX)
}

pub(crate) fn largest_table_bytes(run: &OpenRun) -> usize {
    let sizes = run.tables().iter().map(|table| table.info().size_bytes);
    sizes.max().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0)
}

/// The chosen tables as runs, one for each run that has any of them.
pub(crate) fn chosen_runs(
    version: &Version,
    compaction: &Compaction,
    chosen: &[TableId],
) -> Vec<Arc<OpenRun>> {
    let mut runs = Vec::new();
    for input in &compaction.inputs {
        let tables: Vec<Arc<Table>> = input
            .tables
            .iter()
            .filter(|info| chosen.contains(&info.id))
            .filter_map(|info| version.tables().get(&info.id))
            .cloned()
            .collect();
        if !tables.is_empty() {
            let run = Arc::new(OpenRun::of_tables(tables));
            runs.push(run);
        }
    }
    runs
}

/// The tables of the level below the output that share keys with the group.
fn grandparents(shape: &TreeShape, level: usize, tables: &[Arc<TableInfo>]) -> Vec<Arc<TableInfo>> {
    let hull = KeyRange::hull_of(tables.iter().map(|table| &table.range));
    let run = shape.level(level + 1).runs.first();
    hull.zip(run).map(|(hull, run)| run.overlapping(&hull).to_vec()).unwrap_or_default()
}
