//! Compactions and merging flushes: planned at their start, applied at their end.

use std::sync::Arc;

use terrane_policy::compaction::InputGroup;
use terrane_policy::shape::ShapeError;
use terrane_policy::{Compaction, Placement, RunId, TableId, TableInfo};

use super::cut::ContentRange;
use super::{SimulatedTree, width};
use crate::keys::Content;
use crate::machine::{JobCost, MachineCosts};

/// A compaction with its cost and its result, planned at its start.
#[derive(Debug, Clone)]
pub(crate) struct PlannedCompaction {
    pub(crate) compaction: Compaction,
    pub(crate) work: JobCost,
    /// The bytes of merged tables; moved tables cost nothing.
    pub(crate) input_bytes: f64,
    /// The bytes of relocated values, which are part of the cost.
    pub(crate) relocated_bytes: f64,
    removed: Vec<TableId>,
    moved: Vec<Arc<TableInfo>>,
    made: Vec<(ContentRange, [u64; 4])>,
}

/// Returns the time of the oldest tombstone or expired value of the tables, in microseconds.
fn oldest_tombstone(tables: &[Arc<TableInfo>]) -> u64 {
    tables.iter().filter_map(|table| table.dead_since(None)).min().unwrap_or(u64::MAX)
}

impl SimulatedTree {
    /// Plans a compaction that begins at time `now`, in seconds: its cost and its output.
    pub(crate) fn plan(
        &self,
        compaction: Compaction,
        costs: &MachineCosts,
        now: f64,
    ) -> PlannedCompaction {
        let mut begun = PlannedCompaction {
            work: JobCost::default(),
            input_bytes: 0.0,
            relocated_bytes: 0.0,
            removed: Vec::new(),
            moved: Vec::new(),
            made: Vec::new(),
            compaction,
        };
        let level = begun.compaction.output.level;
        for group in begun.compaction.groups(&self.shape) {
            match group {
                InputGroup::Keep(_) => {}
                InputGroup::Move(table) => begun.moved.push(table),
                InputGroup::Merge(tables) => {
                    let pieces = self.merged(&begun.compaction, &tables, level, now);
                    let seqs = (
                        tables.iter().map(|table| table.smallest_seq).min().unwrap_or(0),
                        tables.iter().map(|table| table.largest_seq).max().unwrap_or(0),
                    );
                    let oldest = oldest_tombstone(&tables);
                    for table in &tables {
                        begun.input_bytes += table.size_bytes as f64;
                        begun.work.processor_seconds += table.entries as f64 * costs.merge_seconds;
                        begun.removed.push(table.id);
                    }
                    let relocated = self.fresh_bytes(&pieces);
                    begun.input_bytes += relocated;
                    begun.relocated_bytes += relocated;
                    begun.work.written_bytes += relocated;
                    for piece in pieces {
                        let part = width(piece.start, piece.end);
                        begun.work.written_bytes += self.bytes_of(&piece.content, part);
                        begun.made.push((piece, [seqs.0, seqs.1, 0, oldest]));
                    }
                }
            }
        }
        begun.work.read_bytes = begun.input_bytes;
        begun
    }

    /// Plans a flush of `content` that merges with tables of level 0 and begins at time `now`, in
    /// seconds.
    pub(crate) fn plan_flush(
        &self,
        merge: Compaction,
        content: &Content,
        seqs: (u64, u64),
        costs: &MachineCosts,
        now: f64,
    ) -> PlannedCompaction {
        let taken = merge.inputs.iter().filter(|input| !input.is_memtable());
        let taken: Vec<Arc<TableInfo>> = taken.flat_map(|input| &input.tables).cloned().collect();
        let pieces = self.cut(self.union(&merge, &taken, Some(content), now), &[]);
        let from = taken.iter().map(|table| table.smallest_seq).min().unwrap_or(seqs.0);
        let read_bytes = taken.iter().map(|table| table.size_bytes as f64).sum();
        let entries: f64 = taken.iter().map(|table| table.entries as f64).sum();
        let bytes =
            |piece: &ContentRange| self.bytes_of(&piece.content, width(piece.start, piece.end));
        let oldest = oldest_tombstone(&taken);
        let work = JobCost {
            read_bytes,
            written_bytes: pieces.iter().map(bytes).sum::<f64>() + self.fresh_bytes(&pieces),
            processor_seconds: entries * costs.merge_seconds,
        };
        let made = pieces.into_iter().map(|piece| (piece, [from.min(seqs.0), seqs.1, 0, oldest]));
        PlannedCompaction {
            compaction: merge,
            work,
            input_bytes: read_bytes,
            relocated_bytes: 0.0,
            removed: taken.iter().map(|table| table.id).collect(),
            moved: Vec::new(),
            made: made.collect(),
        }
    }

    /// Applies a planned compaction to the tree.
    ///
    /// # Errors
    /// With `check`, returns an error if the resulting shape is invalid.
    pub(crate) fn finish(
        &mut self,
        begun: PlannedCompaction,
        micros: u64,
        check: bool,
    ) -> Result<(), ShapeError> {
        let level = begun.compaction.output.level;
        let run = match begun.compaction.output.placement {
            Placement::Join(run) => run,
            Placement::NewRun => RunId(self.take_run()),
        };
        let moved: Vec<TableId> = begun.moved.iter().map(|table| table.id).collect();
        self.remove(&begun.compaction, &begun.removed);
        self.remove(&begun.compaction, &moved);
        for id in &begun.removed {
            self.contents.remove(id);
        }
        for table in begun.moved {
            self.insert(level, run, table);
        }
        let (mut pieces, seqs): (Vec<ContentRange>, Vec<[u64; 4]>) = begun.made.into_iter().unzip();
        self.write_values(&mut pieces, micros);
        for (piece, [from, upto, _, oldest]) in pieces.into_iter().zip(seqs) {
            self.put(level, run, piece, [from, upto, micros, oldest.min(micros)]);
        }
        self.remove_dead_value_files();
        if check { self.shape.check() } else { Ok(()) }
    }
}
