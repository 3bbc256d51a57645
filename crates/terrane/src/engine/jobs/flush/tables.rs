//! Writes a memtable, and the tables that are merged with it, into new tables.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use terrane_memtable::{Fragment, RangeTombstones};
use terrane_policy::TableInfo;

use super::logged_values::{FoundValues, LoggedSegments, LoggedValueFinder};
use super::syncs::sync_all;
use super::target::FlushTarget;
use super::{FlushPace, Flusher};
use crate::base::error::{Error, Result};
use crate::base::stats::Counter;
use crate::base::types::SeqNo;
use crate::engine::context::Context;
use crate::engine::cursor::{MergeCursor, RunCursor, Source};
use crate::engine::jobs::gate::Stopped;
use crate::engine::jobs::merge_io::{JobBuffers, chosen_runs, fragments_of};
use crate::engine::jobs::record::written_bytes;
use crate::engine::merge::{
    Chunk, DamagedValues, DropRules, OlderTables, Output, ValueOutputConfig, merge,
};
use crate::engine::tree::{ImmutableMemtable, Tree};
use crate::engine::version::OpenRun;
use crate::files::table::{FinishedTable, ReadsMeanwhile, UnsyncedFile, Warmer};
use crate::files::value_file::FinishedValueFile;

/// The tables that a flush wrote.
pub(super) struct WrittenTables {
    pub(super) tables: Vec<FinishedTable>,
    /// The files of the tables, until they are synced.
    unsynced: Vec<UnsyncedFile>,
    pub(super) value_files: Vec<FinishedValueFile>,
    /// The log segments from which values were taken.
    pub(super) segments: LoggedSegments,
    /// Value files with values that could not be read.
    pub(super) damaged: DamagedValues,
    /// The size of the tables that were read, in bytes.
    pub(super) read_bytes: u64,
}

impl Flusher {
    /// Returns the reads of the database since the previous flush of a tree.
    fn reads_meanwhile(&self, tree: &Tree, immutable: &ImmutableMemtable) -> ReadsMeanwhile {
        let blocks = immutable.filled_bytes() / u64::from(tree.design().block_bytes.max(1));
        ReadsMeanwhile { reads: tree.recent_reads.take(&self.context.counters), blocks }
    }

    /// Writes a frozen memtable, and the tables that are merged with it, without making the tables
    /// durable. Adds the files that it creates to `paths`, even if it fails.
    pub(super) fn write_tables(
        &self,
        (tree, immutable): (&Tree, &ImmutableMemtable),
        target: &FlushTarget<'_>,
        pace: FlushPace,
        paths: &mut Vec<PathBuf>,
    ) -> Result<WrittenTables> {
        let Context { settings, tables: environment, counters, .. } = &*self.context;
        let replaced = target.replaced();
        let snapshots = self.pipeline.snapshots();
        let rules = DropRules::new(snapshots.clone(), OlderTables::new(target.older_tables()));
        let rules = rules
            .expiring_up_to(self.pipeline.snapshot_clock().oldest_or_now())
            .combining(tree.functions.merge_operator().get());
        let fragments = deleted_ranges(immutable, target, &replaced, &rules)?;
        let (runs, read_bytes) = self.runs_read(target, &replaced, &fragments, &snapshots);
        let Self { context, pipeline, catalog, .. } = self;
        let finder = LoggedValueFinder { context, pipeline, catalog };
        let FoundValues { logged, mut segments, moved } = finder.find(tree, immutable, paths)?;
        if !moved.is_empty() {
            self.context.check_room(immutable.pointed_bytes())?;
        }
        let design = tree.design();
        // The number of flush threads bounds the flushes, except those of ingests.
        let mut memory = context.flush_memory.begin_at_once();
        let granted = memory.request(JobBuffers::wanted_bytes(&runs, &design));
        let buffers = JobBuffers::within(granted, &runs, &design);
        memory.charge(buffers.bytes + logged.memory_bytes());
        self.catalog.resize_cache_after_job();
        let warming = settings.cache_warming;
        let warmer = match runs.is_empty() {
            true => Warmer::of_flush(environment, warming, self.reads_meanwhile(tree, immutable)),
            false => {
                let read = runs.iter().flat_map(|run| run.tables());
                Warmer::of_compaction(environment, warming, read)
            }
        };
        let heat = warmer.as_ref().and_then(Warmer::heat);
        let mut sources = vec![Source::Memtable(immutable.memtable.cursor())];
        sources.extend(runs.into_iter().map(|run| {
            Source::Run(RunCursor::read_ahead(run, buffers.chunk_bytes, heat.cloned()))
        }));
        let mut input = MergeCursor::new(sources);
        input.seek_first()?;
        let now = self.context.clock.now_micros();
        let since = replaced.iter().filter_map(|table| table.dead_since(None));
        let since = since.filter(|&since| since <= now);
        let since = since.chain(immutable.since_micros).min();
        let parts_bytes_max = buffers.parts_bytes_max;
        let mut config = self.io.output_config(tree, 0, Vec::new(), since, parts_bytes_max);
        config.warmer = warmer;
        let values = self.io.value_config(tree, target.version.values(), &moved);
        let values = ValueOutputConfig { logged, ..values };
        let mut output = Output::new(config, values).leaving_unsynced();
        let mut proceed = self.progress(tree, immutable, pace, target.merge().is_some());
        let tables = merge(input, None, fragments, rules, &mut output, &mut proceed);
        paths.extend_from_slice(output.paths());
        let tables = tables?;
        let unused = segments.keep_used(&tables);
        let unused: Vec<_> = unused.iter().map(|name| self.context.dir.join(name)).collect();
        paths.retain(|path| !unused.contains(path));
        self.catalog.remove_files(unused);
        let (value_files, damaged) = (output.take_value_files(), output.take_damaged());
        counters.add(Counter::FlushBytesWritten, written_bytes(&tables, &value_files));
        self.io.count_refused(&tables);
        let unsynced = output.take_unsynced();
        Ok(WrittenTables { tables, unsynced, value_files, segments, damaged, read_bytes })
    }

    /// Makes tables and their names durable.
    pub(super) fn make_durable<'a>(
        &self,
        written: impl Iterator<Item = &'a mut WrittenTables>,
    ) -> Result<()> {
        let mut has_tables = false;
        let mut files = Vec::new();
        for written in written {
            has_tables |= !written.tables.is_empty();
            files.append(&mut written.unsynced);
        }
        sync_all(files, self.context.is_inline())?;
        if has_tables { self.context.sync_dir() } else { Ok(()) }
    }

    /// Returns the function that reports a chunk, and returns when the flush may continue.
    fn progress<'a>(
        &'a self,
        tree: &'a Tree,
        immutable: &ImmutableMemtable,
        pace: FlushPace,
        merges: bool,
    ) -> impl FnMut(Chunk) -> Result<()> + 'a {
        let (start, mut done) = (Instant::now(), 0);
        let (entries, bytes) = (immutable.memtable.len().max(1), immutable.filled_bytes());
        move |chunk| {
            done += chunk.entries;
            self.proceed(pace, chunk)?;
            // After the wait for the budget, which takes most of the time of a limited flush. The entries of
            // merged tables are not known.
            if !merges {
                tree.relief.note_flushed(start.elapsed(), bytes, done as f64 / entries as f64);
            }
            Ok(())
        }
    }

    fn proceed(&self, pace: FlushPace, chunk: Chunk) -> Result<()> {
        if pace == FlushPace::AtOnce {
            self.gate.charge(chunk.written_bytes);
            return Ok(());
        }
        let stop = || self.context.signals.is_stopping();
        self.gate.flush(chunk.written_bytes, &stop).map_err(|Stopped| Error::Closed)
    }

    /// Returns the replaced tables that must be read, as runs, and their size in bytes.
    fn runs_read(
        &self,
        target: &FlushTarget<'_>,
        replaced: &[Arc<TableInfo>],
        fragments: &[Fragment],
        snapshots: &[SeqNo],
    ) -> (Vec<Arc<OpenRun>>, u64) {
        let Some(merge) = target.merge() else { return (Vec::new(), 0) };
        let read = self.io.uncovered_tables(replaced, fragments, snapshots);
        let is_read = |table: &&Arc<TableInfo>| read.contains(&table.id);
        let bytes = replaced.iter().filter(is_read).map(|table| table.size_bytes).sum();
        (chosen_runs(&target.version, merge, &read), bytes)
    }
}

/// Returns the ranges that are deleted by the memtable and by the tables merged with it.
fn deleted_ranges(
    immutable: &ImmutableMemtable,
    target: &FlushTarget<'_>,
    replaced: &[Arc<TableInfo>],
    rules: &DropRules,
) -> Result<Vec<Fragment>> {
    let newest = immutable.memtable.range_tombstones();
    let newest = newest.fragments_of(|seqs| rules.newest_of_each(seqs));
    let older = fragments_of(&target.version, replaced)?;
    if older.is_empty() {
        return Ok(newest);
    }
    let all = RangeTombstones::new();
    newest.iter().chain(&older).for_each(|fragment| all.add(fragment));
    Ok(all.fragments())
}
