//! A simulated tree with everything that a decision depends on.

use std::sync::Arc;

use crate::access::TableAccesses;
use crate::compaction::{Compaction, MEMTABLE};
use crate::design::Design;
use crate::flush::{self, FlushPlan};
use crate::forecast::SimulatedTree;
use crate::key_range::KeyRange;
use crate::pick::{Cursors, PickContext, pick};
use crate::shape::{AddedTable, RunId, SeqNo, ShapeEdit, TableId, TableInfo, TreeShape};
use crate::soundness::{self, Unsound};

/// A tree with its design and the rest of a [`PickContext`].
#[derive(Debug, Clone)]
pub(super) struct TestTree {
    pub(super) shape: TreeShape,
    pub(super) design: Design,
    pub(super) cursors: Cursors,
    pub(super) accesses: TableAccesses,
    pub(super) now_micros: u64,
    pub(super) oldest_snapshot: Option<SeqNo>,
    pub(super) delete_persistence_micros: Option<u64>,
    played: SimulatedTree,
}

impl TestTree {
    pub(super) fn new(shape: TreeShape, design: Design) -> Self {
        Self {
            played: SimulatedTree::of(shape.clone(), &design),
            shape,
            design,
            cursors: Cursors::default(),
            accesses: TableAccesses::default(),
            now_micros: 0,
            oldest_snapshot: None,
            delete_persistence_micros: None,
        }
    }

    pub(super) fn input<'a>(&'a self, in_progress: &'a [Compaction]) -> PickContext<'a> {
        PickContext {
            shape: &self.shape,
            design: &self.design,
            in_progress,
            cursors: &self.cursors,
            accesses: &self.accesses,
            now_micros: self.now_micros,
            oldest_snapshot: self.oldest_snapshot,
            oldest_snapshot_micros: None,
            delete_persistence_micros: self.delete_persistence_micros,
            join_bytes_max: None,
        }
    }

    pub(super) fn pick(&self, in_progress: &[Compaction]) -> Option<Compaction> {
        pick(&self.input(in_progress))
    }

    pub(super) fn carry_out(&mut self, job: &Compaction) {
        self.played.now_micros = self.now_micros;
        self.played.oldest_snapshot = self.oldest_snapshot;
        self.played.values = self.design.values;
        self.played.shape = self.shape.clone();
        self.played.carry_out(job).unwrap();
        self.shape = self.played.shape.clone();
    }

    /// Plans a flush.
    pub(super) fn plan_flush(
        &self,
        in_progress: &[Compaction],
        range: &KeyRange,
        bytes: u64,
    ) -> FlushPlan {
        flush::plan(&self.input(in_progress), range, bytes)
    }

    /// Carries out a merging flush if it is sound.
    pub(super) fn carry_out_flush(&mut self, merge: &Compaction) -> Result<(), Unsound> {
        let shape = flush::with_memtable(&self.shape, merge);
        soundness::check(&shape, merge)?;
        // The memtable needs a real table number now.
        let number = TableId(self.played.number());
        let named = |table: &mut Arc<TableInfo>| {
            if table.id == MEMTABLE {
                Arc::make_mut(table).id = number;
            }
        };
        let mut merge = merge.clone();
        merge.inputs.iter_mut().flat_map(|input| &mut input.tables).for_each(named);
        self.shape = shape;
        let runs = self.shape.levels.iter_mut().flat_map(|level| &mut level.runs);
        runs.flat_map(|run| &mut run.tables).for_each(named);
        self.carry_out(&merge);
        Ok(())
    }

    /// Flushes a table over `range` as the newest run of level 0.
    pub(super) fn flush(&mut self, range: KeyRange, bytes: u64) {
        let mut table = TableInfo::new(self.played.number(), range, bytes);
        table.created_micros = self.now_micros;
        self.flush_table(table);
    }

    /// Adds a table as the newest run of level 0.
    pub(super) fn flush_table(&mut self, table: TableInfo) {
        let run = RunId(self.played.number());
        let added = vec![AddedTable { level: 0, run, table: Arc::new(table) }];
        self.shape = self.shape.apply(&ShapeEdit { added, ..ShapeEdit::default() }).unwrap();
    }
}
