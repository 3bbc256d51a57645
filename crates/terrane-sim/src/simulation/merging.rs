//! Merges: their start, their shares of the bandwidth, and their completion.

use terrane_policy::forecast::CompactionCost;
use terrane_policy::refilled;
use terrane_policy::{
    Compaction, Reason, ScheduledMerge, Scheduler, TableAccesses, TreeShape, soundness,
};

use super::Simulation;
use super::jobs::{RunningMerge, source};
use super::tracing::traced;
use crate::trace::TraceKind;
use crate::tree::PlannedCompaction;

/// Shares are reallocated after this many bytes of a merge, as by the engine's gate.
const DECIDE_EVERY_BYTES: f64 = (4 << 20) as f64;

/// Shares are reallocated at most once in this fraction of a window; more decisions would have no
/// visible effect.
const DECIDE_PART: f64 = 1.0 / 64.0;

/// A bound on successive compactions that only move tables, far above what any tree needs.
const MOVES_MAX: usize = 100_000;

/// The next compaction of a tree.
struct Candidate {
    compaction: Compaction,
    input_bytes: u64,
    refilled: f64,
}

impl Simulation<'_> {
    /// Starts the compactions that policy picks, until none would get a share of the bandwidth.
    pub(super) fn schedule(&mut self) {
        self.trees.iter_mut().for_each(|tree| tree.has_changed = false);
        let mut candidates: Vec<Option<Candidate>> =
            (0..self.trees.len()).map(|at| self.candidate(at)).collect();
        for _ in 0..MOVES_MAX {
            let Some(at) = self.next_to_begin(&candidates) else { return };
            if let Some(candidate) = candidates[at].take() {
                self.begin(at, candidate);
            }
            candidates[at] = self.candidate(at);
        }
    }

    fn candidate(&self, at: usize) -> Option<Candidate> {
        let tree = &self.trees[at];
        // The single scheduler gives no share to a second merge.
        if tree.design.scheduler == Scheduler::Single && !tree.merges.is_empty() {
            return None;
        }
        let (compaction, refilled) = tree.pick(self.now)?;
        let input_bytes = CompactionCost::of(&compaction, tree.tree.shape()).bytes_rewritten;
        Some(Candidate { compaction, input_bytes, refilled })
    }

    /// Returns the tree whose candidate begins first.
    fn next_to_begin(&mut self, candidates: &[Option<Candidate>]) -> Option<usize> {
        let offered: Vec<(usize, &Candidate)> = candidates
            .iter()
            .enumerate()
            .filter_map(|(at, candidate)| Some((at, candidate.as_ref()?)))
            .collect();
        let merges: Vec<ScheduledMerge> =
            offered.iter().map(|(at, candidate)| self.as_merge(*at, candidate)).collect();
        // The engine counts turns only if there are several trees.
        let order = if self.trees.len() > 1 {
            let begun = self.as_merges();
            self.merge_turns.note_waiting(merges.iter().chain(&begun).map(|merge| merge.tree));
            self.merge_turns.order(&merges, &begun)
        } else {
            (0..offered.len()).collect()
        };
        let mut ordered = order.into_iter().filter_map(|number| offered.get(number));
        let begins = |candidate: &Candidate, at: usize| {
            candidate.input_bytes == 0
                || self.takes(self.as_merge(at, candidate), source(&candidate.compaction))
        };
        ordered.find(|(at, candidate)| begins(candidate, *at)).map(|(at, _)| *at)
    }

    fn as_merge(&self, at: usize, candidate: &Candidate) -> ScheduledMerge {
        ScheduledMerge {
            id: self.next_merge,
            tree: at as u32,
            scheduler: self.trees[at].design.scheduler,
            remaining_bytes: candidate.input_bytes,
            refilled: candidate.refilled,
            is_running: false,
        }
    }

    fn begin(&mut self, at: usize, candidate: Candidate) {
        let Candidate { compaction, input_bytes, refilled } = candidate;
        if self.setup.check {
            let shape = self.trees[at].tree.shape().clone();
            self.check_soundness(&shape, &compaction);
        }
        let level = source(&compaction);
        let tree = &mut self.trees[at];
        tree.cursors.advance(&compaction);
        let begun = tree.tree.plan(compaction, &self.setup.machine.costs, self.now);
        let merge = self.is_traced().then(|| traced(&begun.compaction));
        if input_bytes == 0 {
            self.outcome.totals.moves += 1;
            self.finish(at, begun, (self.now * 1e6) as u64);
            if let Some(merge) = merge {
                let changes = self.trees[at].tree.take_changes();
                self.trace(at, || TraceKind::Moved { merge, changes });
            }
            return;
        }
        if let Some(merge) = merge {
            let (job, work) = (self.next_merge, begun.work);
            let (read_bytes, written_bytes) = (work.read_bytes, work.written_bytes);
            let what = TraceKind::MergeBegan { job, merge, read_bytes, written_bytes };
            self.trace(at, || what);
        }
        let tree = &mut self.trees[at];
        tree.in_progress.push(begun.compaction.clone());
        let (id, began) = (self.next_merge, self.now);
        tree.merges.push(RunningMerge {
            begun,
            done: 0.0,
            share: 0.0,
            shown: 0.0,
            id,
            began,
            level,
            refilled,
        });
        self.next_merge += 1;
        self.is_undecided = true;
    }

    /// Applies the rule of the engine's gate: a merge may start only if it gets a share at once,
    /// and, if all slots are taken, only if no other merge of its tree has the same source level.
    fn takes(&self, merge: ScheduledMerge, level: usize) -> bool {
        let slots = self.setup.machine.slots;
        let mut merges = self.as_merges();
        let own = self.trees.get(merge.tree as usize);
        let mut own = own.into_iter().flat_map(|tree| &tree.merges);
        if merges.len() >= slots && own.any(|other| other.level == level) {
            return false;
        }
        merges.push(merge);
        self.merge_turns.shares(&merges, slots).last().is_some_and(|share| *share > 0.0)
    }

    /// Returns the merges of all trees, tree by tree.
    fn as_merges(&self) -> Vec<ScheduledMerge> {
        let trees = self.trees.iter().enumerate();
        trees.flat_map(|(number, tree)| tree.as_merges(number)).collect()
    }

    /// Updates the shares as the schedulers decide.
    pub(super) fn decide(&mut self) {
        self.is_undecided = false;
        for tree in &mut self.trees {
            if !tree.design.scheduler.info().looks_at_levels {
                continue;
            }
            let accesses = TableAccesses::default();
            let in_progress = tree.taken();
            let input = tree.input(&accesses, &in_progress, self.now);
            let full: Vec<f64> = tree.in_progress.iter().map(|job| refilled(&input, job)).collect();
            for (merge, full) in tree.merges.iter_mut().zip(full) {
                merge.refilled = full;
            }
        }
        let shares = self.merge_turns.shares(&self.as_merges(), self.setup.machine.slots);
        let mut shares = shares.into_iter();
        for at in 0..self.trees.len() {
            for number in 0..self.trees[at].merges.len() {
                let Some(share) = shares.next() else { break };
                let merge = &mut self.trees[at].merges[number];
                let (job, done, shown) = (merge.id, merge.done, merge.shown);
                (merge.share, merge.shown) = (share, share);
                if share != shown {
                    self.trace(at, || TraceKind::MergeShare { job, done, share });
                }
            }
        }
        self.decide_at = f64::INFINITY;
        let changes = |scheduler: Scheduler| scheduler.changes_with_progress();
        let count: usize = self.trees.iter().map(|tree| tree.merges.len()).sum();
        if count > 1 && self.trees.iter().any(|tree| changes(tree.design.scheduler)) {
            let machine = &self.setup.machine;
            let rate = machine.budget.unwrap_or(machine.device.bytes_per_second);
            let least = self.setup.window_seconds * DECIDE_PART;
            self.decide_at = self.now + (DECIDE_EVERY_BYTES / rate).max(least);
        }
    }

    pub(super) fn complete_merges(&mut self, micros: u64) {
        for at in 0..self.trees.len() {
            let is_done = |merge: &RunningMerge| merge.done >= 1.0;
            while let Some(number) = self.trees[at].merges.iter().position(is_done) {
                let tree = &mut self.trees[at];
                let merge = tree.merges.remove(number);
                tree.in_progress.remove(number);
                tree.times.note_merge(merge.level, self.now - merge.began, merge.begun.input_bytes);
                // The tree loses its slot: its other merges continue only if they get a new one.
                tree.merges.iter_mut().for_each(|other| other.share = 0.0);
                self.merge_turns.note_end(at as u32);
                self.outcome.trees[at].merges += 1;
                let totals = &mut self.outcome.totals;
                totals.merges += 1;
                totals.ended_bytes += merge.begun.work.written_bytes;
                totals.merge_seconds += self.now - merge.began;
                if matches!(merge.begun.compaction.reason, Reason::Collection { .. }) {
                    totals.collections += 1;
                }
                totals.collected_bytes += merge.begun.relocated_bytes;
                self.finish(at, merge.begun, micros);
                let changes = self.trees[at].tree.take_changes();
                self.trace(at, || TraceKind::MergeEnded { job: merge.id, changes });
                self.is_undecided = true;
            }
        }
    }

    pub(super) fn finish(&mut self, at: usize, begun: PlannedCompaction, micros: u64) {
        let tree = &mut self.trees[at];
        tree.has_changed = true;
        let done = tree.tree.finish(begun, micros, self.setup.check);
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
