//! A tree on which compactions are simulated without data.

use std::sync::Arc;

use super::values::{part_of_refs, refs_after, relocated_bytes, relocated_refs};
use crate::compaction::{Compaction, InputGroup, Placement};
use crate::design::{Design, Values};
use crate::key_range::KeyRange;
use crate::shape::{
    AddedTable, RunId, SeqNo, ShapeEdit, ShapeError, TableInfo, TreeShape, ValueFileId,
    ValueFileInfo, ValueFileUsage,
};

/// The work of one compaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompactionCost {
    /// Tables that are merged into others.
    pub tables_rewritten: u64,
    /// Tables that move without being rewritten.
    pub tables_moved: u64,
    /// Bytes read, including relocated values; also the maximum number of bytes written.
    pub bytes_rewritten: u64,
}

impl CompactionCost {
    /// Returns the work of `job` on `shape`.
    pub fn of(job: &Compaction, shape: &TreeShape) -> Self {
        let mut cost = Self::default();
        for group in job.groups(shape) {
            match group {
                InputGroup::Keep(_) => {}
                InputGroup::Move(_) => cost.tables_moved += 1,
                InputGroup::Merge(tables) => {
                    cost.tables_rewritten += tables.len() as u64;
                    cost.bytes_rewritten +=
                        tables.iter().map(|table| table.size_bytes).sum::<u64>();
                    cost.bytes_rewritten += relocated_bytes(job, &tables);
                }
            }
        }
        cost
    }
}

/// A tree on which compactions are simulated without data.
#[derive(Debug, Clone)]
pub struct SimulatedTree {
    /// The tree.
    pub shape: TreeShape,
    /// The creation time of new tables.
    pub now_micros: u64,
    /// Tombstones newer than this are kept.
    pub oldest_snapshot: Option<SeqNo>,
    /// Where relocated values go.
    pub values: Values,
    table_bytes: u64,
    next: u64,
}

impl SimulatedTree {
    /// Returns a tree whose merges write tables of the design's size, as far as the bounds of
    /// inputs allow cuts.
    pub fn of(shape: TreeShape, design: &Design) -> Self {
        let tables = shape.places().map(|place| place.table.id.0.max(place.run.0));
        let files = shape.value_files.iter().map(|file| file.id.0);
        let next = tables.chain(files).max().unwrap_or(0).max(1000);
        Self {
            shape,
            now_micros: 0,
            oldest_snapshot: None,
            table_bytes: design.table_bytes.max(1),
            values: design.values,
            next,
        }
    }

    /// Returns a number that no table or run has yet.
    pub fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Applies a compaction.
    ///
    /// # Errors
    /// Returns an error if the compaction is unsound: its result breaks an invariant of shapes.
    pub fn carry_out(&mut self, job: &Compaction) -> Result<CompactionCost, ShapeError> {
        let cost = CompactionCost::of(job, &self.shape);
        let run = match job.output.placement {
            Placement::Join(run) => run,
            Placement::NewRun => RunId(self.number()),
        };
        let mut edit = ShapeEdit::default();
        let level = job.output.level;
        for group in job.groups(&self.shape) {
            match group {
                InputGroup::Keep(_) => {}
                InputGroup::Move(table) => {
                    edit.removed.push(table.id);
                    edit.added.push(AddedTable { level, run, table });
                }
                InputGroup::Merge(tables) => {
                    edit.removed.extend(tables.iter().map(|table| table.id));
                    let file = self.new_value_file(job, &tables);
                    let made = self.merged(job, &tables, file.as_deref());
                    edit.value_files.extend(file);
                    edit.added.extend(made.into_iter().map(|table| AddedTable {
                        level,
                        run,
                        table,
                    }));
                }
            }
        }
        self.shape = self.shape.apply(&edit)?;
        self.remove_dead_value_files()?;
        Ok(cost)
    }

    /// Returns the file for the relocated values of a merge; `None` if they go to its tables.
    fn new_value_file(
        &mut self,
        job: &Compaction,
        tables: &[Arc<TableInfo>],
    ) -> Option<Arc<ValueFileInfo>> {
        let bytes = relocated_bytes(job, tables);
        if bytes == 0 || self.values == Values::Inline {
            return None;
        }
        let mut file = ValueFileInfo::new(self.number(), bytes);
        file.values = relocated_refs(job, tables).map(|used| used.values).sum();
        file.created_micros = self.now_micros;
        Some(Arc::new(file))
    }

    fn remove_dead_value_files(&mut self) -> Result<(), ShapeError> {
        let dead = self.shape.value_usage().into_iter().filter(ValueFileUsage::is_dead);
        let removed_value_files: Vec<ValueFileId> = dead.map(|usage| usage.file.id).collect();
        if !removed_value_files.is_empty() {
            let edit = ShapeEdit { removed_value_files, ..ShapeEdit::default() };
            self.shape = self.shape.apply(&edit)?;
        }
        Ok(())
    }

    /// Splits the hull of `tables` at their bounds. Drops tombstones that have no older data below
    /// them.
    fn merged(
        &mut self,
        job: &Compaction,
        tables: &[Arc<TableInfo>],
        file: Option<&ValueFileInfo>,
    ) -> Vec<Arc<TableInfo>> {
        let Some(hull) = KeyRange::hull_of(tables.iter().map(|table| &table.range)) else {
            return Vec::new();
        };
        let sum = |of: fn(&TableInfo) -> u64| tables.iter().map(|table| of(table)).sum::<u64>();
        let inlined = if file.is_some() { 0 } else { relocated_bytes(job, tables) };
        let bytes = sum(|table| table.size_bytes) + inlined;
        let mut cuts: Vec<Arc<[u8]>> =
            tables.iter().map(|table| table.range.start.clone()).collect();
        cuts.sort();
        cuts.dedup();
        cuts.retain(|cut| *cut != hull.start);
        let wanted = usize::try_from(bytes / self.table_bytes).unwrap_or(usize::MAX);
        if wanted < cuts.len() {
            // The cuts are spread evenly; otherwise the last table would span most keys.
            cuts = (1..=wanted).map(|cut| cuts[cut * cuts.len() / (wanted + 1)].clone()).collect();
        }
        let pieces = cuts.len() as u64 + 1;
        let largest_seq = tables.iter().map(|table| table.largest_seq).max().unwrap_or(0);
        let smallest_seq = tables.iter().map(|table| table.smallest_seq).min().unwrap_or(0);
        let is_pinned = self.oldest_snapshot.is_some_and(|oldest| largest_seq > oldest);
        let refs = refs_after(job, tables, file.map(|file| file.id));
        let mut start = hull.start.clone();
        let mut made = Vec::new();
        for (number, end) in cuts.into_iter().map(Some).chain([hull.end]).enumerate() {
            let range = KeyRange { start: start.clone(), end: end.clone() };
            let keeps = is_pinned || !job.is_bottom(&range, &self.shape);
            let mut table = TableInfo::new(self.number(), range, bytes / pieces);
            table.entries = sum(|table| table.entries) / pieces;
            table.created_micros = self.now_micros;
            table.value_refs = part_of_refs(&refs, number as u64, pieces);
            (table.smallest_seq, table.largest_seq) = (smallest_seq, largest_seq);
            if keeps && tables.iter().any(|table| table.has_tombstones()) {
                table.tombstones = sum(|table| table.tombstones).div_ceil(pieces);
                table.range_tombstones = sum(|table| table.range_tombstones).div_ceil(pieces);
                let oldest = tables.iter().filter_map(|table| table.oldest_tombstone_micros).min();
                table.oldest_tombstone_micros = oldest;
            }
            made.push(Arc::new(table));
            start = end.unwrap_or(start);
        }
        made
    }
}
