//! A tree with its memtables and jobs.

use std::borrow::Cow;
use std::collections::VecDeque;

use terrane_policy::{
    Admission, Compaction, Cursors, Design, PickContext, ScheduledMerge, TableAccesses, admit,
    pick, refilled,
};

use super::jobs::{JobTimes, RunningFlush, RunningMerge};
use crate::tree::SimulatedTree;

/// A tree with its memtables and jobs.
#[derive(Debug)]
pub(super) struct TreeState<'a> {
    pub(super) design: &'a Design,
    /// Its share of the writes.
    pub(super) share: f64,
    pub(super) tree: SimulatedTree,
    pub(super) cursors: Cursors,
    /// The number of writes in the active memtable.
    pub(super) active: f64,
    /// When the first of them was written.
    pub(super) active_from: f64,
    /// The immutable memtables, oldest first.
    pub(super) immutable: VecDeque<FullMemtable>,
    pub(super) flushing: Option<RunningFlush>,
    pub(super) merges: Vec<RunningMerge>,
    pub(super) times: JobTimes,
    pub(super) in_progress: Vec<Compaction>,
    pub(super) admission: Admission,
    /// True if the tree or the memtables have changed since policy last decided.
    pub(super) has_changed: bool,
    /// The number of device reads per write, for the current tree.
    pub(super) requests_per_write: f64,
    /// The next time at which all values of a table will have expired.
    pub(super) drop_at: f64,
}

/// An immutable memtable that waits for its flush.
#[derive(Debug, Clone, Copy)]
pub(super) struct FullMemtable {
    pub(super) writes: f64,
    /// When the first and the last of them were written.
    pub(super) made: (f64, f64),
}

impl<'a> TreeState<'a> {
    pub(super) fn new(design: &'a Design, share: f64, tree: SimulatedTree) -> Self {
        Self {
            design,
            share,
            tree,
            cursors: Cursors::default(),
            active: 0.0,
            active_from: 0.0,
            immutable: VecDeque::new(),
            flushing: None,
            merges: Vec::new(),
            times: JobTimes::default(),
            in_progress: Vec::new(),
            admission: Admission::Proceed,
            has_changed: true,
            requests_per_write: 0.0,
            drop_at: f64::INFINITY,
        }
    }

    /// Decides whether writers to the tree proceed.
    pub(super) fn admit(&mut self) {
        self.admission = admit(self.tree.shape(), self.immutable.len(), self.design);
    }

    /// Returns the compaction that the tree needs next, and how far its input level is refilled.
    pub(super) fn pick(&self, now: f64) -> Option<(Compaction, f64)> {
        let accesses = TableAccesses::default();
        let in_progress = self.taken();
        let input = self.input(&accesses, &in_progress, now);
        let compaction = pick(&input)?;
        let looks_at_levels = self.design.scheduler.info().looks_at_levels;
        let refilled = if looks_at_levels { refilled(&input, &compaction) } else { 0.0 };
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
        now: f64,
    ) -> PickContext<'b> {
        PickContext {
            in_progress,
            cursors: &self.cursors,
            accesses,
            now_micros: (now * 1e6) as u64,
            ..PickContext::new(self.tree.shape(), self.design)
        }
    }

    /// Returns the source and target level of the largest merge in progress.
    pub(super) fn largest_merge(&self) -> Option<(usize, usize)> {
        let bytes = |merge: &RunningMerge| merge.begun.input_bytes;
        let largest = self.merges.iter().max_by(|a, b| bytes(a).total_cmp(&bytes(b)))?;
        Some((largest.level, largest.begun.compaction.output.level))
    }

    /// Returns the merges in progress as the scheduler sees them; `number` is the tree's number.
    pub(super) fn as_merges(&self, number: usize) -> impl Iterator<Item = ScheduledMerge> {
        self.merges.iter().map(move |merging| ScheduledMerge {
            id: merging.id,
            tree: number as u32,
            scheduler: self.design.scheduler,
            remaining_bytes: merging.remaining_bytes(),
            refilled: merging.refilled,
            is_running: merging.share > 0.0,
        })
    }
}
