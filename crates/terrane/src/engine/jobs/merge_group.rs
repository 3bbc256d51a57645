//! Merges tables that share keys into new tables. Splits the merge into several subcompactions if
//! it is large enough, each in its own thread (Dent §2.3.4: every thread merges its part of all
//! runs).
//!
//! A subcompaction is a range of keys. All versions of a key are in one range, and range tombstones
//! are clipped to it, so each subcompaction by itself follows the rules of a merge. The tables that
//! the subcompactions write, taken in the order of the ranges, differ from those of a
//! single-threaded merge only in where they are cut. The gate treats all subcompactions of a merge
//! as one merge: they pause and continue together.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use terrane_memtable::Fragment;
use terrane_policy::{KeyRange, TableInfo, TreeShape};

use super::compact::Compactor;
use super::merge_io::{JobBuffers, MergeScope, chosen_runs, fragments_of};
use super::pacer::JobPacer;
use super::subcompactions::{Sample, Subcompaction, subcompactions};
use crate::base::clock::thread_cpu_time;
use crate::base::compaction_filter::FilterCounts;
use crate::base::error::{Error, Result};
use crate::base::turns;
use crate::base::types::MAX_SEQ;
use crate::engine::context::JobGrant;
use crate::engine::cursor::{MergeCursor, RunCursor, Source};
use crate::engine::merge::{
    Chunk, DamagedValues, DropRules, Filtering, OlderTables, Output, clipped, merge,
};
use crate::engine::version::{OpenRun, Version};
use crate::files::table::{FinishedTable, Table, Warmer};
use crate::files::value_file::FinishedValueFile;

/// The number of sampled keys per subcompaction. A merge is cut only at sampled keys.
const SAMPLES_PER_SUBCOMPACTION: u64 = 16;

/// The memory that each subcompaction should have. A merge with less is not split further.
const SUBCOMPACTION_BYTES: usize = 1 << 20;

/// The result of merging a group of tables.
#[derive(Debug, Default)]
pub(super) struct MergedGroup {
    pub(super) tables: Vec<FinishedTable>,
    pub(super) value_files: Vec<FinishedValueFile>,
    /// Value files with values that could not be read.
    pub(super) damaged: DamagedValues,
    pub(super) filtered: FilterCounts,
    /// The size of the tables that were read, in bytes.
    pub(super) read_bytes: u64,
    /// The processor time of the job's helper threads, without the thread that runs it.
    pub(super) helpers_cpu: Duration,
}

/// The state that all subcompactions of a merge share.
struct GroupMerge<'a, 'p> {
    compactor: &'a Compactor,
    pacer: Mutex<&'a mut JobPacer<'p>>,
    /// A subcompaction has failed, so the others stop.
    has_failed: AtomicBool,
    version: &'a Version,
    tables: &'a [Arc<TableInfo>],
    runs: Vec<Arc<OpenRun>>,
    fragments: Vec<Fragment>,
    scope: &'a MergeScope,
    /// Values that expire up to this time have expired for all readers.
    expired_micros: u64,
    buffers: JobBuffers,
}

/// The files that a subcompaction wrote.
struct MergedFiles {
    tables: Vec<FinishedTable>,
    value_files: Vec<FinishedValueFile>,
    damaged: DamagedValues,
    filtered: FilterCounts,
}

/// The result of a subcompaction, and the files that it created, which are listed even if it
/// failed.
struct SubcompactionResult {
    files: Result<MergedFiles>,
    paths: Vec<PathBuf>,
    cpu: Duration,
}

impl Compactor {
    /// Merges the tables of a group. Adds the files that it creates to `paths`, even if it fails.
    pub(super) fn merge_group(
        &self,
        pacer: &mut JobPacer<'_>,
        version: &Arc<Version>,
        tables: &[Arc<TableInfo>],
        scope: &MergeScope,
        memory: &mut JobGrant,
        paths: &mut Vec<PathBuf>,
    ) -> Result<MergedGroup> {
        // Waits at the gate before it allocates memory, because only a running merge needs the
        // memory.
        pacer.proceed(Chunk::default())?;
        let fragments = fragments_of(version, tables)?;
        let read = self.io.uncovered_tables(tables, &fragments, &scope.snapshots);
        let runs = chosen_runs(version, pacer.compaction, &read);
        let design = pacer.tree.design();
        let count = self.subcompaction_count(&runs, design.table_bytes);
        let wanted = JobBuffers::wanted_bytes(&runs, &design).saturating_mul(count);
        let granted = memory.request(wanted);
        let count = count.min(granted / SUBCOMPACTION_BYTES).max(1);
        let ranges = key_ranges(&runs, count)?;
        let buffers = JobBuffers::within(granted / ranges.len(), &runs, &design);
        memory.charge(buffers.bytes * ranges.len());
        // The cache releases memory before the job allocates its own.
        self.catalog.resize_cache();
        let is_read = |table: &&Arc<TableInfo>| read.contains(&table.id);
        let read_bytes = tables.iter().filter(is_read).map(|table| table.size_bytes).sum();
        let group = GroupMerge {
            compactor: self,
            pacer: Mutex::new(pacer),
            has_failed: AtomicBool::new(false),
            version,
            tables,
            runs,
            fragments,
            scope,
            expired_micros: self.pipeline.snapshot_clock().oldest_or_now(),
            buffers,
        };
        let results = if self.context.is_inline() {
            ranges.iter().map(|range| group.merge(range)).collect()
        } else {
            group.merge_in_threads(&ranges)
        };
        let mut merged = MergedGroup { read_bytes, ..MergedGroup::default() };
        let mut failed: Option<Error> = None;
        for (number, result) in results.into_iter().enumerate() {
            paths.extend(result.paths);
            // The first subcompaction ran in the thread of the job.
            if number > 0 && !self.context.is_inline() {
                merged.helpers_cpu += result.cpu;
            }
            match result.files {
                Ok(files) => {
                    merged.tables.extend(files.tables);
                    merged.value_files.extend(files.value_files);
                    merged.damaged.extend(files.damaged);
                    merged.filtered.add(files.filtered);
                }
                // `Closed` says only that a subcompaction stopped because another one failed.
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

    /// Returns the number of threads that merge `runs`, if memory suffices: each gets at least a
    /// table's worth of bytes.
    fn subcompaction_count(&self, runs: &[Arc<OpenRun>], table_bytes: u64) -> usize {
        let most = total_bytes(runs) / table_bytes.max(1);
        (self.context.settings.merge_threads as u64).min(most).max(1) as usize
    }
}

fn total_bytes(runs: &[Arc<OpenRun>]) -> u64 {
    runs.iter().flat_map(|run| run.tables()).map(|table| table.info().size_bytes).sum()
}

/// Cuts the merge of `runs` into at most `count` key ranges.
fn key_ranges(runs: &[Arc<OpenRun>], count: usize) -> Result<Vec<Subcompaction>> {
    if count < 2 {
        return Ok(vec![Subcompaction::default()]);
    }
    let step = (total_bytes(runs) / (count as u64 * SAMPLES_PER_SUBCOMPACTION)).max(1);
    let mut samples = Vec::new();
    for table in runs.iter().flat_map(|run| run.tables()) {
        samples_of(table, step, &mut samples)?;
    }
    Ok(subcompactions(samples, count))
}

impl GroupMerge<'_, '_> {
    /// Merges the first range in this thread, and each other range in its own thread.
    fn merge_in_threads(&self, ranges: &[Subcompaction]) -> Vec<SubcompactionResult> {
        let Some((first, others)) = ranges.split_first() else { return Vec::new() };
        std::thread::scope(|scope| {
            let spawn = |range| {
                let thread = std::thread::Builder::new().name("terrane-merge".into());
                let merge = move || {
                    turns::take_short_turns();
                    self.merge(range)
                };
                (range, thread.spawn_scoped(scope, merge))
            };
            let begun: Vec<_> = others.iter().map(spawn).collect();
            let mut results = vec![self.merge(first)];
            for (range, thread) in begun {
                results.push(match thread {
                    Ok(thread) => thread.join().unwrap_or_else(|_| Self::panicked()),
                    // The system has no more threads, so this thread merges the range.
                    Err(_) => self.merge(range),
                });
            }
            results
        })
    }

    fn panicked() -> SubcompactionResult {
        let files = Err(Error::internal("a subcompaction panicked; see the panic"));
        SubcompactionResult { files, paths: Vec::new(), cpu: Duration::ZERO }
    }

    fn merge(&self, range: &Subcompaction) -> SubcompactionResult {
        let start = thread_cpu_time();
        let mut paths = Vec::new();
        let mut guard = FailureGuard { merge: self, has_succeeded: false };
        let files = self.merge_range(range, &mut paths);
        guard.has_succeeded = files.is_ok();
        let cpu = thread_cpu_time().zip(start).map(|(now, start)| now.saturating_sub(start));
        SubcompactionResult { files, paths, cpu: cpu.unwrap_or_default() }
    }

    fn merge_range(&self, range: &Subcompaction, paths: &mut Vec<PathBuf>) -> Result<MergedFiles> {
        let Compactor { context, io, .. } = self.compactor;
        let (tree, compaction) = {
            let pacer = self.pacer.lock().unwrap_or_else(PoisonError::into_inner);
            (pacer.tree, pacer.compaction)
        };
        let shape = self.version.shape();
        let tables_read = self.runs.iter().flat_map(|run| run.tables());
        let warming = context.settings.cache_warming;
        let warmer = Warmer::of_compaction(&context.tables, warming, tables_read);
        let heat = warmer.as_ref().and_then(Warmer::heat);
        let sources = self.runs.iter().map(|run| {
            let run = Arc::clone(run);
            Source::Run(RunCursor::read_ahead(run, self.buffers.chunk_bytes, heat.cloned()))
        });
        let mut input = MergeCursor::new(sources);
        match &range.start {
            None => input.seek_first()?,
            Some(start) => input.seek(start, MAX_SEQ)?,
        }
        let older = OlderTables::new(compaction.older_tables(shape));
        let rules = DropRules::new(self.scope.snapshots.clone(), older);
        let filter = self.scope.filter.as_ref();
        let filtering = filter.map(|filter| Filtering::new(filter, self.version.values()));
        let rules = rules
            .expiring_up_to(self.expired_micros)
            .combining(tree.functions.merge_operator().get())
            .filtering(filtering);
        let level = compaction.output.level;
        let grandparents = grandparents(shape, level, self.tables);
        // Values that have expired become tombstones whose age counts from the expiry time.
        let oldest = self.tables.iter().filter_map(|table| table.dead_since(None)).min();
        let oldest = oldest.filter(|&since| since <= context.clock.now_micros());
        let mut config =
            io.output_config(tree, level, grandparents, oldest, self.buffers.parts_bytes_max);
        config.warmer = warmer;
        let values = io.value_config(tree, self.version.values(), &compaction.relocated);
        let mut output = Output::new(config, values);
        let fragments = clipped(&self.fragments, range.start.as_deref(), range.end.as_deref());
        let mut proceed = |chunk: Chunk| {
            // Relaxed: a subcompaction that sees the flag late stops one chunk later.
            if self.has_failed.load(Ordering::Relaxed) {
                return Err(Error::Closed);
            }
            // While one subcompaction waits at the gate with the lock, the others wait here, so
            // that the merge pauses as a whole.
            self.pacer.lock().unwrap_or_else(PoisonError::into_inner).proceed(chunk)
        };
        let end = range.end.as_deref();
        let tables = merge(input, end, fragments, rules, &mut output, &mut proceed);
        paths.extend_from_slice(output.paths());
        let (value_files, damaged) = (output.take_value_files(), output.take_damaged());
        Ok(MergedFiles { tables: tables?, value_files, damaged, filtered: output.filter_counts() })
    }
}

/// On drop, even during a panic, stops the other subcompactions unless this one has succeeded.
struct FailureGuard<'a, 'g, 'p> {
    merge: &'a GroupMerge<'g, 'p>,
    has_succeeded: bool,
}

impl Drop for FailureGuard<'_, '_, '_> {
    fn drop(&mut self) {
        if !self.has_succeeded {
            self.merge.has_failed.store(true, Ordering::Relaxed);
        }
    }
}

/// Appends keys of a table, about `step` bytes apart.
fn samples_of(table: &Table, step: u64, samples: &mut Vec<Sample>) -> Result<()> {
    let (blocks, bytes) = (table.block_count()? as u64, table.info().size_bytes);
    let count = (bytes / step).clamp(1, blocks.max(1));
    for number in 0..count {
        let block = (number * blocks / count) as usize;
        samples.push(Sample { key: table.separator(block)?, bytes: bytes / count });
    }
    Ok(())
}

/// Returns the tables in the level below the output that overlap the keys of the group.
fn grandparents(shape: &TreeShape, level: usize, tables: &[Arc<TableInfo>]) -> Vec<Arc<TableInfo>> {
    let hull = KeyRange::hull_of(tables.iter().map(|table| &table.range));
    let run = shape.level(level + 1).runs.first();
    hull.zip(run).map(|(hull, run)| run.overlapping(&hull).to_vec()).unwrap_or_default()
}
