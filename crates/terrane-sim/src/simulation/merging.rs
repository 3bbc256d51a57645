//! Merges: their start, their shares of the bandwidth, and their completion.

use std::borrow::Cow;

use terrane_policy::forecast::CompactionCost;
use terrane_policy::refilled;
use terrane_policy::{
    Compaction, PickContext, Reason, ScheduledMerge, Scheduler, TableAccesses, TreeShape, allocate,
    pick, soundness,
};

use super::Simulation;
use super::jobs::RunningMerge;
use crate::tree::PlannedCompaction;

/// Shares are decided again after this many bytes of a merge, as by the engine's gate.
const DECIDE_EVERY_BYTES: f64 = (4 << 20) as f64;

/// Shares are decided at most once in this fraction of a window; more decisions would not show.
const DECIDE_PART: f64 = 1.0 / 64.0;

/// A bound on successive compactions that only move tables; no tree needs as many.
const MOVES_MAX: usize = 100_000;

/// Returns the lowest-numbered input level of a compaction.
fn source(compaction: &Compaction) -> usize {
    compaction.inputs.iter().map(|input| input.level).min().unwrap_or(compaction.output.level)
}

impl Simulation<'_> {
    /// Starts the compactions that policy picks, until one would get no share of the bandwidth.
    pub(super) fn schedule(&mut self) {
        self.has_changed = false;
        for _ in 0..MOVES_MAX {
            // The single scheduler gives no share to a second merge.
            if self.setup.design.scheduler == Scheduler::Single && !self.merges.is_empty() {
                return;
            }
            let Some((compaction, refilled)) = self.pick() else { return };
            let input_bytes = CompactionCost::of(&compaction, self.tree.shape()).bytes_rewritten;
            let level = source(&compaction);
            if input_bytes > 0 && !self.takes(input_bytes, level, refilled) {
                return;
            }
            if self.setup.check {
                let shape = self.tree.shape().clone();
                self.check_soundness(&shape, &compaction);
            }
            self.cursors.advance(&compaction);
            let begun = self.tree.plan(compaction, &self.setup.machine.costs);
            if input_bytes == 0 {
                self.outcome.totals.moves += 1;
                self.finish(begun, (self.now * 1e6) as u64);
                continue;
            }
            self.in_progress.push(begun.compaction.clone());
            let id = self.next_merge;
            self.next_merge += 1;
            let began = self.now;
            let merge = RunningMerge { begun, done: 0.0, share: 0.0, id, began, level, refilled };
            self.merges.push(merge);
            self.is_undecided = true;
        }
    }

    fn pick(&self) -> Option<(Compaction, f64)> {
        let accesses = TableAccesses::default();
        let in_progress = self.taken();
        let input = self.input(&accesses, &in_progress);
        let compaction = pick(&input)?;
        let refilled = refilled(&input, &compaction);
        Some((compaction, refilled))
    }

    /// Returns the compactions in progress, including a merging flush.
    pub(super) fn taken(&self) -> Cow<'_, [Compaction]> {
        let flush = self.flushing.as_ref().and_then(|flushing| flushing.merge.as_ref());
        match flush {
            None => Cow::Borrowed(&self.in_progress),
            Some(flush) => {
                let all = self.in_progress.iter().chain([&flush.compaction]);
                Cow::Owned(all.cloned().collect())
            }
        }
    }

    pub(super) fn input<'b>(
        &'b self,
        accesses: &'b TableAccesses,
        in_progress: &'b [Compaction],
    ) -> PickContext<'b> {
        PickContext {
            in_progress,
            cursors: &self.cursors,
            accesses,
            now_micros: (self.now * 1e6) as u64,
            ..PickContext::new(self.tree.shape(), &self.setup.design)
        }
    }

    /// Applies the rule of the engine's gate: a merge may start only if it gets a share at once,
    /// and, if all slots are taken, only if no other merge has the same source level.
    fn takes(&self, remaining_bytes: u64, level: usize, refilled: f64) -> bool {
        let slots = self.setup.machine.slots;
        if self.merges.len() >= slots && self.merges.iter().any(|other| other.level == level) {
            return false;
        }
        let mut merges = self.as_merges();
        merges.push(ScheduledMerge {
            id: self.next_merge,
            tree: 0,
            scheduler: self.setup.design.scheduler,
            remaining_bytes,
            refilled,
            is_running: false,
        });
        allocate(&merges, slots).last().is_some_and(|share| *share > 0.0)
    }

    /// Returns the source and the target level of the largest merge in progress.
    pub(super) fn largest_merge(&self) -> Option<(usize, usize)> {
        let bytes = |merge: &RunningMerge| merge.begun.input_bytes;
        let largest = self.merges.iter().max_by(|a, b| bytes(a).total_cmp(&bytes(b)))?;
        Some((largest.level, largest.begun.compaction.output.level))
    }

    fn as_merges(&self) -> Vec<ScheduledMerge> {
        let merge = |merging: &RunningMerge| ScheduledMerge {
            id: merging.id,
            tree: 0,
            scheduler: self.setup.design.scheduler,
            remaining_bytes: merging.remaining_bytes(),
            refilled: merging.refilled,
            is_running: merging.share > 0.0,
        };
        self.merges.iter().map(merge).collect()
    }

    /// Updates the shares by the scheduler's decision.
    pub(super) fn decide(&mut self) {
        self.is_undecided = false;
        let scheduler = self.setup.design.scheduler;
        if scheduler.info().looks_at_levels {
            let accesses = TableAccesses::default();
            let in_progress = self.taken();
            let input = self.input(&accesses, &in_progress);
            let full: Vec<f64> = self.in_progress.iter().map(|job| refilled(&input, job)).collect();
            for (merge, full) in self.merges.iter_mut().zip(full) {
                merge.refilled = full;
            }
        }
        let shares = allocate(&self.as_merges(), self.setup.machine.slots);
        for (merge, share) in self.merges.iter_mut().zip(shares) {
            merge.share = share;
        }
        self.decide_at = f64::INFINITY;
        if scheduler.changes_with_progress() && self.merges.len() > 1 {
            let machine = &self.setup.machine;
            let rate = machine.budget.unwrap_or(machine.device.bytes_per_second);
            let least = self.setup.window_seconds * DECIDE_PART;
            self.decide_at = self.now + (DECIDE_EVERY_BYTES / rate).max(least);
        }
    }

    pub(super) fn complete_merges(&mut self, micros: u64) {
        while let Some(at) = self.merges.iter().position(|merge| merge.done >= 1.0) {
            let merge = self.merges.remove(at);
            self.in_progress.remove(at);
            self.outcome.totals.merges += 1;
            self.outcome.totals.ended_bytes += merge.begun.work.written_bytes;
            self.outcome.totals.merge_seconds += self.now - merge.began;
            if matches!(merge.begun.compaction.reason, Reason::Collection { .. }) {
                self.outcome.totals.collections += 1;
            }
            self.outcome.totals.collected_bytes += merge.begun.relocated_bytes;
            self.finish(merge.begun, micros);
            self.is_undecided = true;
        }
    }

    pub(super) fn finish(&mut self, begun: PlannedCompaction, micros: u64) {
        self.has_changed = true;
        let done = self.tree.finish(begun, micros, self.setup.check);
        if let Err(error) = done {
            self.outcome.stuck.get_or_insert_with(|| format!("invalid tree shape: {error}"));
        }
    }

    pub(super) fn check_soundness(&mut self, shape: &TreeShape, compaction: &Compaction) {
        if let Err(error) = soundness::check(shape, compaction) {
            let why = || format!("unsound compaction {compaction}: {error}");
            self.outcome.stuck.get_or_insert_with(why);
        }
    }
}
