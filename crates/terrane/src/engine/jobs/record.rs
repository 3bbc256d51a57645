//! A job's record in the manifest.

use std::sync::Arc;
use std::time::Instant;

use terrane_policy::forecast::CompactionCost;
use terrane_policy::{Compaction, TableInfo};

use crate::engine::context::Context;
use crate::engine::tree::Tree;
use crate::files::manifest::{JobRecord, describe};
use crate::files::table::FinishedTable;
use crate::files::value_file::FinishedValueFile;

/// The inputs and outputs of a compaction, or of a flush that merges.
pub(super) struct JobSummary<'a> {
    pub(super) tree: &'a Tree,
    pub(super) compaction: &'a Compaction,
    /// The predicted cost.
    pub(super) cost: CompactionCost,
    /// Tables that were merged into new ones, or dropped.
    pub(super) consumed: &'a [Arc<TableInfo>],
    pub(super) tables: &'a [FinishedTable],
    pub(super) value_files: &'a [FinishedValueFile],
    pub(super) read_bytes: u64,
    pub(super) start: Instant,
}

impl JobSummary<'_> {
    /// Returns the record of the job, which ends now.
    pub(super) fn to_record(&self, context: &Context) -> JobRecord {
        let now = context.clock.now_micros();
        let oldest = self.consumed.iter().filter_map(|table| table.dead_since(None)).min();
        let oldest = oldest.filter(|&since| since <= now);
        let keeps_tombstones = self.tables.iter().any(|table| table.info.has_tombstones());
        JobRecord {
            keyspace: self.tree.id,
            ended_micros: now,
            took_micros: u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX),
            tables_rewritten: self.cost.tables_rewritten,
            tables_moved: self.cost.tables_moved,
            predicted_bytes: self.cost.bytes_rewritten,
            read_bytes: self.read_bytes,
            written_bytes: written_bytes(self.tables, self.value_files),
            persisted_micros: oldest
                .filter(|_| !keeps_tombstones)
                .map(|since| now.saturating_sub(since)),
            what: describe(self.compaction),
            why: self.compaction.reason.to_string(),
        }
    }
}

/// Returns the total size of tables and value files, in bytes.
pub(super) fn written_bytes(tables: &[FinishedTable], value_files: &[FinishedValueFile]) -> u64 {
    let table_bytes: u64 = tables.iter().map(|table| table.info.size_bytes).sum();
    table_bytes + value_files.iter().map(|file| file.size_bytes).sum::<u64>()
}
