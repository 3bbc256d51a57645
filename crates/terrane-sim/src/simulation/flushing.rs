//! Flushes: their start and their cost.

use terrane_policy::{Compaction, FlushPlan, TableAccesses, flush};

use super::jobs::RunningFlush;
use super::{Simulation, StopAt};
use crate::machine::JobCost;
use crate::tree::SimulatedTree;

impl Simulation<'_> {
    /// Starts to write the oldest immutable memtable, unless a flush is in progress.
    pub(super) fn begin_flush(&mut self) {
        if self.flushing.is_some() {
            return;
        }
        let Some(&writes) = self.immutable.front() else { return };
        let content = match self.goal {
            StopAt::Loaded => self.tree.keys().after_load(writes),
            StopAt::Time(_) => self.tree.write(writes, &self.setup.workload.mix),
        };
        let bytes = self.tree.size_of(&content).0 + self.tree.value_bytes_of(&content);
        let processor_seconds = writes * self.setup.machine.costs.flush_seconds;
        let mut work = JobCost { read_bytes: 0.0, written_bytes: bytes, processor_seconds };
        let upto = self.departed as u64 + 1;
        let seqs = (upto.saturating_sub(writes as u64), upto);
        let merge = self
            .flush_merge(writes)
            .map(|merge| self.tree.plan_flush(merge, &content, seqs, &self.setup.machine.costs));
        if let Some(merge) = &merge {
            work = merge.work;
            work.processor_seconds += processor_seconds;
        }
        self.flushing = Some(RunningFlush { content, work, seqs, merge, done: 0.0 });
    }

    /// Returns the merge with level 0 that policy plans for a flush of `writes` writes, if any.
    fn flush_merge(&mut self, writes: f64) -> Option<Compaction> {
        // Like the engine, count all versions in the memtable, not distinct keys.
        let bytes = writes * self.bytes_per_write();
        let accesses = TableAccesses::default();
        let in_progress = self.taken();
        let input = self.input(&accesses, &in_progress);
        let FlushPlan::Merge(merge) = flush::plan(&input, &SimulatedTree::all_keys(), bytes as u64)
        else {
            return None;
        };
        if self.setup.check {
            let shape = flush::with_memtable(self.tree.shape(), &merge);
            self.check_soundness(&shape, &merge);
        }
        Some(merge)
    }
}
