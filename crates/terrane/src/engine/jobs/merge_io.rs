//! The inputs and outputs of merges.

use std::sync::Arc;

use terrane_memtable::{Fragment, RangeTombstones};
use terrane_policy::{Compaction, Design, TableId, TableInfo, ValueFileId};

use crate::base::compaction_filter::KeyspaceFilter;
use crate::base::error::Result;
use crate::base::stats::Counter;
use crate::base::types::SeqNo;
use crate::engine::catalog::Catalog;
use crate::engine::context::Context;
use crate::engine::merge::{LoggedValues, OutputConfig, ValueOutputConfig, covered};
use crate::engine::tree::Tree;
use crate::engine::version::{OpenRun, Version};
use crate::files::table::{FinishedTable, SINK_BYTES, Table, TableConfig};
use crate::files::value_file::ValueFiles;

/// The maximum size of a read from a run, and the minimum size, which is used when memory is
/// scarce.
const CHUNK_BYTES_MAX: usize = 512 << 10;
const CHUNK_BYTES_MIN: usize = 16 << 10;

/// The approximate index size per block: 21 bytes, and the part of the key that distinguishes the
/// block from the previous one.
const INDEX_ENTRY_BYTES: usize = 32;

/// The snapshots and the filter that decide which entries the merges of a compaction keep.
#[derive(Debug)]
pub(super) struct MergeScope {
    /// The sequence numbers of snapshots, in ascending order.
    pub(super) snapshots: Vec<SeqNo>,
    /// The filter, if the keyspace has an active one. The job is registered as filtering.
    pub(super) filter: Option<Arc<KeyspaceFilter>>,
}

/// What flushes and compactions need to read and write tables.
#[derive(Debug, Clone)]
pub(super) struct MergeIo {
    context: Arc<Context>,
    catalog: Arc<Catalog>,
}

impl MergeIo {
    pub(super) fn new(context: &Arc<Context>, catalog: &Arc<Catalog>) -> Self {
        Self { context: Arc::clone(context), catalog: Arc::clone(catalog) }
    }

    /// Returns the configuration for writing tables of a level.
    pub(super) fn output_config(
        &self,
        tree: &Tree,
        level: usize,
        grandparents: Vec<Arc<TableInfo>>,
        oldest_tombstone_micros: Option<u64>,
    ) -> OutputConfig<'static> {
        let Context { storage, settings, clock, .. } = &*self.context;
        let (design, catalog) = (tree.design(), Arc::clone(&self.catalog));
        OutputConfig {
            storage: Arc::clone(storage),
            table: TableConfig {
                block_bytes: design.block_bytes as usize,
                filter_bits: design
                    .filter_bits_at(level, tree.state().version.shape().last_level()),
                filter_probes: design.filter_probes,
                compression: design.compression.get(level),
                keyspace: tree.id.0,
                sync_bytes: settings.sync_bytes(),
                access: settings.write_mode.access(),
            },
            warmer: None,
            table_bytes: design.table_bytes,
            grandparents,
            next_table: Box::new(move || catalog.next_table()),
            now_micros: clock.now_micros(),
            oldest_tombstone_micros,
        }
    }

    /// Returns the configuration for writing separated values.
    pub(super) fn value_config(
        &self,
        tree: &Tree,
        source: &Arc<ValueFiles>,
        relocated: &[ValueFileId],
    ) -> ValueOutputConfig<'static> {
        let Context { settings, clock, .. } = &*self.context;
        let catalog = Arc::clone(&self.catalog);
        ValueOutputConfig {
            values: tree.design().values,
            source: Arc::clone(source),
            relocated: relocated.to_vec(),
            logged: LoggedValues::default(),
            next_file: Box::new(move || catalog.next_value_file()),
            keyspace: tree.id.0,
            access: settings.write_mode.access(),
            sync_bytes: settings.sync_bytes(),
            now_micros: clock.now_micros(),
        }
    }

    /// Counts tables for which the storage refused direct writes.
    pub(super) fn count_refused(&self, tables: &[FinishedTable]) {
        let refused = tables.iter().filter(|table| table.direct_refused);
        self.context.counters.add(Counter::DirectRefused, refused.count() as u64);
    }

    /// Returns the tables that must be read. A table need not be read if newer range tombstones
    /// cover it entirely for every reader that could see any of its entries.
    pub(super) fn uncovered_tables(
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
        self.context.counters.add(Counter::TablesDropped, covered.len() as u64);
        read.iter().map(|table| table.id).collect()
    }
}

/// Returns the range tombstones of tables, combined.
pub(super) fn fragments_of(version: &Version, tables: &[Arc<TableInfo>]) -> Result<Vec<Fragment>> {
    let all = RangeTombstones::new();
    for info in tables.iter().filter(|info| info.range_tombstones > 0) {
        let Some(table) = version.tables().get(&info.id) else { continue };
        table.fragments()?.iter().for_each(|fragment| all.add(fragment));
    }
    Ok(all.fragments())
}

/// Returns the chosen tables as runs. Runs of the tree without chosen tables are left out.
pub(super) fn chosen_runs(
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

/// Returns the size of a read from each of `runs`. Larger chunks hardly reduce the cost per byte,
/// and the chunks of all runs together must leave most of the memory budget for other uses.
pub(super) fn chunk_bytes(budget: u64, runs: usize) -> usize {
    let share = usize::try_from(budget / 8).unwrap_or(usize::MAX) / runs.max(1);
    share.clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX)
}

/// Returns the memory for the chunks that a merge of `runs` keeps at a time, and for the indexes of
/// the tables that it reads.
pub(super) fn buffered_bytes(runs: &[Arc<OpenRun>], chunk_bytes: usize, design: &Design) -> usize {
    let of_table = |bytes: usize| {
        let blocks = bytes / usize::try_from(design.block_bytes).unwrap_or(usize::MAX).max(1);
        chunk_bytes.min(bytes) + blocks * INDEX_ENTRY_BYTES
    };
    runs.iter().map(|run| of_table(largest_table_bytes(run))).sum()
}

fn largest_table_bytes(run: &OpenRun) -> usize {
    let sizes = run.tables().iter().map(|table| table.info().size_bytes);
    sizes.max().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0)
}

/// Returns the memory that a job needs in addition to its input: the buffers of table writers and
/// value file writers, and the hashes for the filter. A value that moves is in a separate block,
/// which the buffer pool counts.
pub(super) fn output_bytes(design: &Design) -> usize {
    let entries_guess = design.table_bytes / 100;
    let value_writer = design.values.separation().map_or(0, |_| SINK_BYTES);
    (512 << 10) + value_writer + usize::try_from(entries_guess * 8).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_writer_of_value_files_counts() {
        let bytes = |text: &str| output_bytes(&text.parse().unwrap());
        assert_eq!(bytes("leveling; values=separate(64)"), bytes("leveling") + (256 << 10));
    }
}
