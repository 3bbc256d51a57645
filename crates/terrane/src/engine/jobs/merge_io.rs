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
/// scarce. Larger chunks hardly reduce the cost per byte.
const CHUNK_BYTES_MAX: usize = 512 << 10;
const CHUNK_BYTES_MIN: usize = 16 << 10;

/// The buffers of a table writer besides its sink: a block, its compressed form, and the state of the
/// compression.
const BLOCK_BUFFER_BYTES: usize = 64 << 10;

/// The minimum memory for the parts of a table that its writer keeps until its end.
const PARTS_BYTES_MIN: usize = 128 << 10;

/// What those parts take per key, and the assumed size of an entry: see `TableWriter::parts_bytes`.
const PARTS_BYTES_PER_KEY: usize = 18;
const ENTRY_BYTES_GUESS: usize = 100;

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
        parts_bytes_max: usize,
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
            parts_bytes_max,
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

/// The sizes of the buffers of a job, for each thread that merges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JobBuffers {
    /// The size of a read from a run.
    pub(super) chunk_bytes: usize,
    /// The limit for the parts of a table that its writer keeps; a table ends when it is reached.
    pub(super) parts_bytes_max: usize,
    /// All buffers together.
    pub(super) bytes: usize,
}

impl JobBuffers {
    /// Divides `granted` bytes among the buffers of a merge of `runs`; the smallest buffers may take
    /// more. A value that moves is in a separate block, which the buffer pool counts.
    pub(super) fn within(granted: usize, runs: &[Arc<OpenRun>], design: &Design) -> Self {
        let largest: Vec<usize> = runs.iter().map(|run| largest_table_bytes(run)).collect();
        Self::for_tables(granted, &largest, design)
    }

    /// Does the same for a job that reads no tables.
    pub(super) fn of_output(granted: usize, design: &Design) -> Self {
        Self::for_tables(granted, &[], design)
    }

    /// Returns the bytes that leave nothing to wish for.
    pub(super) fn wanted_bytes(runs: &[Arc<OpenRun>], design: &Design) -> usize {
        let chunks = |bytes: usize| CHUNK_BYTES_MAX.min(bytes) + index_bytes(bytes, design);
        let read: usize = runs.iter().map(|run| chunks(largest_table_bytes(run))).sum();
        let entries = usize::try_from(design.table_bytes).unwrap_or(usize::MAX) / ENTRY_BYTES_GUESS;
        let parts = entries.saturating_mul(PARTS_BYTES_PER_KEY).max(PARTS_BYTES_MIN);
        writer_bytes(design).saturating_add(parts).saturating_add(read)
    }

    fn for_tables(granted: usize, largest: &[usize], design: &Design) -> Self {
        let indexes: usize = largest.iter().map(|bytes| index_bytes(*bytes, design)).sum();
        let writer = writer_bytes(design);
        let rest = granted.saturating_sub(writer + indexes);
        let wished: usize = largest.iter().map(|bytes| CHUNK_BYTES_MAX.min(*bytes)).sum();
        // A third for the parts of the new table, and all that the chunks do not need.
        let parts_bytes_max = (rest / 3).max(rest.saturating_sub(wished)).max(PARTS_BYTES_MIN);
        let for_chunks = rest.saturating_sub(parts_bytes_max) / largest.len().max(1);
        let chunk_bytes = for_chunks.clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
        let chunks: usize = largest.iter().map(|bytes| chunk_bytes.min(*bytes)).sum();
        let bytes = writer + indexes + parts_bytes_max + chunks;
        Self { chunk_bytes, parts_bytes_max, bytes }
    }
}

/// The index of a table of this size, which a merge keeps while it reads the table.
fn index_bytes(table_bytes: usize, design: &Design) -> usize {
    let block_bytes = usize::try_from(design.block_bytes).unwrap_or(usize::MAX);
    table_bytes / block_bytes.max(1) * INDEX_ENTRY_BYTES
}

fn largest_table_bytes(run: &OpenRun) -> usize {
    let sizes = run.tables().iter().map(|table| table.info().size_bytes);
    sizes.max().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0)
}

/// The buffers of the writers of tables and of value files.
fn writer_bytes(design: &Design) -> usize {
    let value_writer = design.values.separation().map_or(0, |_| SINK_BYTES);
    SINK_BYTES + BLOCK_BUFFER_BYTES + value_writer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_fit_into_what_is_granted_unless_they_are_the_smallest() {
        let design = "leveling; values=separate(64)".parse().unwrap();
        let plain = "leveling".parse().unwrap();
        let wanted = JobBuffers::wanted_bytes(&[], &plain);
        assert_eq!(JobBuffers::wanted_bytes(&[], &design), wanted + SINK_BYTES);
        for runs in [0, 1, 2, 10] {
            let largest = vec![32 << 20; runs];
            for granted in [4 << 20, 8 << 20, 64 << 20] {
                let buffers = JobBuffers::for_tables(granted, &largest, &plain);
                let JobBuffers { chunk_bytes, parts_bytes_max, bytes } = buffers;
                // Ten runs need 160 KiB for chunks and 2.5 MiB for indexes.
                assert!(bytes <= granted, "{runs} runs, {granted}: {buffers:?}");
                assert!(parts_bytes_max * 3 >= granted - granted / 2 || runs == 10);
                assert!((CHUNK_BYTES_MIN..=CHUNK_BYTES_MAX).contains(&chunk_bytes));
            }
            let least = JobBuffers::for_tables(0, &largest, &plain);
            assert_eq!(
                (least.chunk_bytes, least.parts_bytes_max),
                (CHUNK_BYTES_MIN, PARTS_BYTES_MIN)
            );
        }
    }

    #[test]
    fn what_chunks_do_not_need_goes_to_the_table() {
        let plain = "leveling".parse().unwrap();
        let small = JobBuffers::for_tables(64 << 20, &[100 << 10; 2], &plain);
        assert!(small.parts_bytes_max > 63 << 20, "{small:?}");
        assert_eq!(JobBuffers::for_tables(16 << 20, &[], &plain).bytes, 16 << 20);
    }
}
