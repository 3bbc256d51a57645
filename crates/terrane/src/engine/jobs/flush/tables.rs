//! Writes a memtable, and the tables that it is merged with, into new tables.

use std::path::PathBuf;
use std::sync::Arc;

use terrane_memtable::{Fragment, RangeTombstones};
use terrane_policy::TableInfo;

use super::target::Target;
use super::{bytes_of, job_memory};
use crate::engine::jobs::gate::Stopped;
use crate::engine::jobs::merge_group::{
    chosen_runs, fragments_of, largest_table_bytes, piece_bytes,
};
use crate::engine::tree::FullBuffer;
use crate::engine::{Engine, Tree};
use crate::error::{Error, Result};
use crate::iter::{MergeCursor, RunCursor, Source};
use crate::memory::Charge;
use crate::merge::{Chunk, DropRules, OlderTables, Output, merge};
use crate::stats::Counter;
use crate::table::{FinishedTable, Warmer};
use crate::types::SeqNo;
use crate::version::OpenRun;

/// What was written.
pub(crate) struct Written {
    pub(crate) tables: Vec<FinishedTable>,
    /// Bytes of the tables that were read for it.
    pub(crate) read_bytes: u64,
}

impl Engine {
    /// Writes a memtable that is in order, and what it is merged with. Files that were begun are
    /// added to `paths`, also if that fails.
    pub(crate) fn write_flush(
        &self,
        tree: &Tree,
        full: &FullBuffer,
        target: &Target<'_>,
        paths: &mut Vec<PathBuf>,
    ) -> Result<Written> {
        let taken = target.taken();
        let snapshots = self.snapshots.list();
        let rules = DropRules::new(snapshots.clone(), OlderTables::new(target.older_tables()));
        let fragments = deleted(full, target, &taken, &rules)?;
        let (runs, read_bytes) = self.runs_read(target, &taken, &fragments, &snapshots);
        let piece_bytes = piece_bytes(self.settings.memory_budget_bytes(), runs.len());
        let held = runs.iter().map(|run| piece_bytes.min(largest_table_bytes(run))).sum::<usize>();
        let design = tree.design();
        let memory = held + job_memory(&design);
        let _charge = Charge::new(&self.ledger, |ledger| &ledger.jobs, memory);
        self.size_cache();
        let warming = self.settings.cache_warming;
        let warmer = match runs.is_empty() {
            true => Warmer::of_flush(&self.tables, warming),
            false => {
                let read = runs.iter().flat_map(|run| run.tables());
                Warmer::of_compaction(&self.tables, warming, read)?
            }
        };
        let heat = warmer.as_ref().and_then(Warmer::heat);
        let mut sources = vec![Source::Memtable(full.memtable.cursor())];
        sources.extend(
            runs.into_iter()
                .map(|run| Source::Run(RunCursor::read_ahead(run, piece_bytes, heat.cloned()))),
        );
        let mut input = MergeCursor::new(sources);
        input.seek_first()?;
        let since = taken.iter().filter_map(|table| table.oldest_tombstone_micros);
        let since = since.chain(full.since_micros).min();
        let mut next_table = || self.next_table();
        let mut config = self.output_config(tree, 0, Vec::new(), since, &mut next_table);
        config.warmer = warmer;
        let mut output = Output::new(config);
        let stop = || self.work.is_stopping();
        let mut go_on = |chunk: Chunk| {
            self.gate.flush(chunk.written_bytes, &stop).map_err(|Stopped| Error::Closed)
        };
        let tables = merge(input, None, fragments, rules, &mut output, &mut go_on);
        paths.extend_from_slice(output.paths());
        let tables = tables?;
        if !tables.is_empty() {
            self.sync_dir()?;
        }
        self.counters.add(Counter::FlushBytesWritten, bytes_of(&tables));
        self.count_refused(&tables);
        Ok(Written { tables, read_bytes })
    }

    /// The taken tables that must be read, as runs, and their bytes.
    fn runs_read(
        &self,
        target: &Target<'_>,
        taken: &[Arc<TableInfo>],
        fragments: &[Fragment],
        snapshots: &[SeqNo],
    ) -> (Vec<Arc<OpenRun>>, u64) {
        let Some(merge) = target.merge() else { return (Vec::new(), 0) };
        let read = self.not_covered(taken, fragments, snapshots);
        let is_read = |table: &&Arc<TableInfo>| read.contains(&table.id);
        let bytes = taken.iter().filter(is_read).map(|table| table.size_bytes).sum();
        (chosen_runs(&target.version, merge, &read), bytes)
    }
}

/// What is deleted by ranges, by the memtable and by what it is merged with.
fn deleted(
    full: &FullBuffer,
    target: &Target<'_>,
    taken: &[Arc<TableInfo>],
    rules: &DropRules,
) -> Result<Vec<Fragment>> {
    let newest = full.memtable.range_tombstones();
    let newest = newest.fragments_of(|seqs| rules.newest_of_each(seqs));
    let older = fragments_of(&target.version, taken)?;
    if older.is_empty() {
        return Ok(newest);
    }
    let all = RangeTombstones::new();
    newest.iter().chain(&older).for_each(|fragment| all.add(fragment));
    Ok(all.fragments())
}
