//! Carries compactions out without data.

use std::sync::Arc;

use crate::compaction::{Compaction, Group, Placement};
use crate::design::Design;
use crate::key_range::KeyRange;
use crate::pick::{Accesses, Cursors, PickInput, pick};
use crate::shape::{AddedTable, RunId, SeqNo, ShapeEdit, TableInfo, TreeShape};

/// A tree, its design, and all else that a decision depends on.
#[derive(Debug, Clone)]
pub(super) struct Simulation {
    pub(super) shape: TreeShape,
    pub(super) design: Design,
    pub(super) cursors: Cursors,
    pub(super) accesses: Accesses,
    pub(super) now_micros: u64,
    pub(super) oldest_snapshot: Option<SeqNo>,
    pub(super) delete_persistence_micros: Option<u64>,
    next: u64,
}

impl Simulation {
    pub(super) fn new(shape: TreeShape, design: Design) -> Self {
        Self {
            shape,
            design,
            cursors: Cursors::default(),
            accesses: Accesses::default(),
            now_micros: 0,
            oldest_snapshot: None,
            delete_persistence_micros: None,
            next: 1000,
        }
    }

    pub(super) fn input<'a>(&'a self, in_progress: &'a [Compaction]) -> PickInput<'a> {
        PickInput {
            shape: &self.shape,
            design: &self.design,
            in_progress,
            cursors: &self.cursors,
            accesses: &self.accesses,
            now_micros: self.now_micros,
            oldest_snapshot: self.oldest_snapshot,
            delete_persistence_micros: self.delete_persistence_micros,
        }
    }

    pub(super) fn pick(&self, in_progress: &[Compaction]) -> Option<Compaction> {
        pick(&self.input(in_progress))
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Merged groups become tables of at most `table_bytes`.
    pub(super) fn carry_out(&mut self, job: &Compaction) {
        let run = match job.output.placement {
            Placement::Join(run) => run,
            Placement::NewRun => RunId(self.number()),
        };
        let mut edit = ShapeEdit::default();
        let level = job.output.level;
        for group in job.groups(&self.shape) {
            match group {
                Group::Keep(_) => {}
                Group::Move(table) => {
                    edit.removed.push(table.id);
                    edit.added.push(AddedTable { level, run, table });
                }
                Group::Merge(tables) => {
                    edit.removed.extend(tables.iter().map(|table| table.id));
                    for table in self.merged(job, &tables) {
                        edit.added.push(AddedTable { level, run, table });
                    }
                }
            }
        }
        self.shape = self.shape.apply(&edit).unwrap();
    }

    /// Splits the hull of `tables` at their own bounds. Tombstones go where nothing older is left.
    fn merged(&mut self, job: &Compaction, tables: &[Arc<TableInfo>]) -> Vec<Arc<TableInfo>> {
        let hull = KeyRange::hull_of(tables.iter().map(|table| &table.range)).unwrap();
        let bytes: u64 = tables.iter().map(|table| table.size_bytes).sum();
        let mut cuts: Vec<Arc<[u8]>> =
            tables.iter().map(|table| table.range.start.clone()).collect();
        cuts.sort();
        cuts.dedup();
        cuts.retain(|cut| *cut != hull.start);
        let wanted = usize::try_from(bytes / self.design.table_bytes).unwrap();
        cuts.truncate(wanted);
        let pieces = cuts.len() as u64 + 1;
        let sum = |of: fn(&TableInfo) -> u64| tables.iter().map(|table| of(table)).sum::<u64>();
        let largest_seq = tables.iter().map(|table| table.largest_seq).max().unwrap_or(0);
        let is_pinned = self.oldest_snapshot.is_some_and(|oldest| largest_seq > oldest);
        let mut start = hull.start.clone();
        let mut made = Vec::new();
        for end in cuts.into_iter().map(Some).chain([hull.end]) {
            let range = KeyRange { start: start.clone(), end: end.clone() };
            let keeps = is_pinned || !job.is_bottom(&range, &self.shape);
            let mut table = TableInfo::new(self.number(), range, bytes / pieces);
            table.entries = sum(|table| table.entries) / pieces;
            table.created_micros = self.now_micros;
            table.largest_seq = largest_seq;
            table.smallest_seq = tables.iter().map(|table| table.smallest_seq).min().unwrap_or(0);
            if keeps && sum(|table| table.tombstones) > 0 {
                table.tombstones = sum(|table| table.tombstones).div_ceil(pieces);
                let oldest = tables.iter().filter_map(|table| table.oldest_tombstone_micros).min();
                table.oldest_tombstone_micros = oldest;
            }
            made.push(Arc::new(table));
            start = end.unwrap_or(start);
        }
        made
    }

    /// A flush: a table over `range` as the newest run of level 0.
    pub(super) fn flush(&mut self, range: KeyRange, bytes: u64) {
        let mut table = TableInfo::new(self.number(), range, bytes);
        table.created_micros = self.now_micros;
        let run = RunId(self.number());
        let added = vec![AddedTable { level: 0, run, table: Arc::new(table) }];
        self.shape = self.shape.apply(&ShapeEdit { removed: Vec::new(), added }).unwrap();
    }
}
