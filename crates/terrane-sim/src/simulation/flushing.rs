//! Flushes: their start, their cost and their end.

use std::cmp::Reverse;

use terrane_policy::{Admission, Compaction, FlushPlan, TableAccesses, flush};

use super::jobs::RunningFlush;
use super::state::FullMemtable;
use super::tracing::traced;
use super::{Simulation, StopAt};
use crate::machine::JobCost;
use crate::trace::TraceKind;
use crate::tree::SimulatedTree;

/// A tree that waits for a flush is passed over by at most this many flushes of trees that are closer
/// to stopping their writers, and then by one flush of each other tree, as in the engine.
const PASSES_MAX: u32 = 2;

impl Simulation<'_> {
    /// Replaces full memtables, except in trees whose writers are stopped.
    pub(super) fn replace_memtables(&mut self) {
        let is_last = self.goal == StopAt::Loaded && self.left_to_load() < 0.5;
        for at in 0..self.trees.len() {
            let tree = &self.trees[at];
            let is_full = tree.active >= self.buffer_writes(tree) * (1.0 - 1e-12);
            let tree = &mut self.trees[at];
            if tree.active > 0.0
                && (is_full || is_last)
                && !matches!(tree.admission, Admission::Stop(_))
            {
                let made = (tree.active_from, self.now);
                tree.immutable.push_back(FullMemtable { writes: tree.active, made });
                tree.active = 0.0;
                tree.admit();
                let waiting = tree.immutable.len();
                self.trace(at, || TraceKind::MemtableFull(waiting));
            }
        }
    }

    /// Starts flushes of the oldest immutable memtables, one per tree, up to the number of threads.
    /// Trees that were passed over often come first, then trees that are closest to stopping their
    /// writers.
    pub(super) fn begin_flushes(&mut self) {
        let waits = |at: &usize| !self.trees[*at].immutable.is_empty();
        let waiting: Vec<usize> = (0..self.trees.len()).filter(waits).collect();
        let mut order = waiting.clone();
        if self.trees.len() > 1 {
            self.flush_turns.note_waiting(waiting.iter().map(|at| *at as u32));
            order.sort_by_cached_key(|at| {
                let tree = &self.trees[*at];
                let stop_at = u64::from(tree.design.constraint.stop_buffers.max(1));
                let fullness = tree.immutable.len() as u64 * 1000 / stop_at;
                let passed = self.flush_turns.passed(*at as u32);
                (Reverse(passed.saturating_sub(PASSES_MAX - 1)), Reverse(fullness))
            });
        }
        let running = self.trees.iter().filter(|tree| tree.flushing.is_some()).count();
        let free = self.setup.flush_threads.max(1).saturating_sub(running);
        order.retain(|at| self.trees[*at].flushing.is_none());
        for at in order.into_iter().take(free) {
            self.begin_flush(at);
        }
    }

    fn begin_flush(&mut self, at: usize) {
        let tree = &mut self.trees[at];
        let Some(&FullMemtable { writes, made }) = tree.immutable.front() else { return };
        let content = match self.goal {
            StopAt::Loaded => tree.tree.keys().after_load(writes),
            StopAt::Time(_) => {
                let content = tree.tree.write(writes, made, &self.setup.workload.mix).at(self.now);
                // In an empty tree, tombstones have nothing to hide.
                let is_empty = tree.tree.shape().levels.is_empty();
                if is_empty { content.without_tombstones() } else { content }
            }
        };
        let bytes = tree.tree.size_of(&content).0 + tree.tree.value_bytes_of(&content);
        let processor_seconds = writes * self.setup.machine.costs.flush_seconds;
        let mut work = JobCost { read_bytes: 0.0, written_bytes: bytes, processor_seconds };
        let upto = self.departed as u64 + 1;
        let seqs = (upto.saturating_sub(writes as u64), upto);
        let (costs, now) = (&self.setup.machine.costs, self.now);
        let merge = self
            .flush_merge(at, writes)
            .map(|merge| self.trees[at].tree.plan_flush(merge, &content, seqs, costs, now));
        if let Some(merge) = &merge {
            work = merge.work;
            work.processor_seconds += processor_seconds;
        }
        if self.is_traced() {
            let merge = merge.as_ref().map(|merge| traced(&merge.compaction));
            let written_bytes = work.written_bytes;
            self.trace(at, || TraceKind::FlushBegan { merge, written_bytes });
        }
        self.trees[at].flushing =
            Some(RunningFlush { content, work, seqs, merge, done: 0.0, began: self.now });
    }

    /// Returns the merge with level 0 that policy plans for a flush of `writes` writes, if any.
    fn flush_merge(&mut self, at: usize, writes: f64) -> Option<Compaction> {
        // Like the engine, count all versions in the memtable, not distinct keys.
        let bytes = writes * self.bytes_per_write();
        let accesses = TableAccesses::default();
        let tree = &self.trees[at];
        let in_progress = tree.taken();
        let input = tree.input(&accesses, &in_progress, self.now);
        let FlushPlan::Merge(merge) = flush::plan(&input, &SimulatedTree::all_keys(), bytes as u64)
        else {
            return None;
        };
        if self.setup.check {
            let shape = flush::with_memtable(tree.tree.shape(), &merge);
            self.check_soundness(&shape, &merge);
        }
        Some(merge)
    }

    pub(super) fn complete_flushes(&mut self, micros: u64) {
        for at in 0..self.trees.len() {
            let tree = &mut self.trees[at];
            let Some(flushing) = tree.flushing.take_if(|flushing| flushing.done >= 1.0) else {
                continue;
            };
            self.outcome.totals.ended_bytes += flushing.work.written_bytes;
            tree.times.note_flush(self.now - flushing.began, tree.design.buffer_bytes);
            match flushing.merge {
                None => tree.tree.add_run(0, &flushing.content, flushing.seqs, micros),
                Some(merge) => {
                    self.outcome.totals.flushes_merged += 1;
                    self.finish(at, merge, micros);
                }
            }
            let tree = &mut self.trees[at];
            tree.immutable.pop_front();
            tree.has_changed = true;
            self.flush_turns.note_end(at as u32);
            self.outcome.totals.flushes += 1;
            self.outcome.trees[at].flushes += 1;
            let changes = self.trees[at].tree.take_changes();
            self.trace(at, || TraceKind::FlushEnded(changes));
        }
    }
}
