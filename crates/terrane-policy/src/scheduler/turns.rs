//! Whose turn it is among trees that share threads and bandwidth.
//!
//! Fair service is an invariant: while a tree needs a merge and none of its merges has a share, at
//! most [`Scheduler::merges_waited_max`] merges of other trees with the same scheduler end, plus those
//! that had begun before its turn came. Otherwise a tree that is always busy keeps the writers of
//! another tree stopped forever. The invariant follows from three rules:
//!
//! 1. A tree is *passed* by every merge of another tree that ends while it needs one. The count
//!    returns to 0 when a merge of its own ends.
//! 2. A tree that was passed as often as its scheduler tolerates is overdue. Overdue trees precede all
//!    others, the tree that was passed most often first, both when a merge begins and when slots are
//!    assigned.
//! 3. Of two trees, the one that was passed more often stays ahead until it is served, because every
//!    end passes both. So at most one merge of each other tree ends before an overdue tree has a share,
//!    and none of the tree whose merge made it overdue.
//!
//! Trees with different schedulers share the bandwidth in proportion to their number, so none of them
//! waits for another.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::merge::MergeDemand;
use super::{ScheduledMerge, Scheduler, count_trees};

/// How often each tree that needs a job was passed by jobs of other trees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turns {
    passed: BTreeMap<u32, u32>,
}

impl Turns {
    /// Notes which trees need a job now. Trees that are not among `trees` wait no longer.
    pub fn note_waiting(&mut self, trees: impl IntoIterator<Item = u32>) {
        let passed = std::mem::take(&mut self.passed);
        let count_of = |tree| (tree, passed.get(&tree).copied().unwrap_or(0));
        self.passed = trees.into_iter().map(count_of).collect();
    }

    /// Notes that a job of `tree` has ended.
    pub fn note_end(&mut self, tree: u32) {
        for (other, passed) in &mut self.passed {
            *passed = if *other == tree { 0 } else { passed.saturating_add(1) };
        }
    }

    /// Returns how often a tree was passed.
    pub fn passed(&self, tree: u32) -> u32 {
        self.passed.get(&tree).copied().unwrap_or(0)
    }

    /// Returns the indexes of `candidates`, which are merges of different trees that could begin, in
    /// the order in which the mechanism tries to begin them: first overdue trees, then trees with many
    /// merges, including their `begun` merges.
    pub fn order(&self, candidates: &[ScheduledMerge], begun: &[ScheduledMerge]) -> Vec<usize> {
        let rank = |at: &usize| {
            candidates.get(*at).map(|candidate| {
                let ScheduledMerge { tree, scheduler, .. } = *candidate;
                let passed = self.passed(tree);
                let own = begun.iter().filter(|merge| merge.tree == tree).count();
                (Reverse(scheduler.overdue(passed)), Reverse(own), Reverse(passed), tree)
            })
        };
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        order.sort_by_key(rank);
        order
    }

    /// Returns the share of the bandwidth of each of `merges`, in the same order. Shares are not
    /// negative, and add up to 1 unless there are no merges. With `greedy`, at most `slots` trees run
    /// merges at the same time.
    ///
    /// The trees of each scheduler together get a part of the bandwidth in proportion to their number.
    pub fn shares(&self, merges: &[ScheduledMerge], slots: usize) -> Vec<f64> {
        let mut shares = vec![0.0; merges.len()];
        let mut schedulers: Vec<Scheduler> = merges.iter().map(|merge| merge.scheduler).collect();
        schedulers.sort_unstable();
        schedulers.dedup();
        let trees = count_trees(merges.iter());
        for scheduler in schedulers {
            let is_own = |merge: &&ScheduledMerge| merge.scheduler == scheduler;
            let part = count_trees(merges.iter().filter(is_own)) as f64 / trees.max(1) as f64;
            let own: Vec<usize> =
                (0..merges.len()).filter(|&at| merges[at].scheduler == scheduler).collect();
            let demands: Vec<MergeDemand> =
                own.iter().map(|&at| self.demand(&merges[at])).collect();
            for (&at, share) in own.iter().zip(scheduler.shares(&demands, slots)) {
                shares[at] = part * share;
            }
        }
        shares
    }

    fn demand(&self, merge: &ScheduledMerge) -> MergeDemand {
        let ScheduledMerge { id, tree, scheduler, remaining_bytes, refilled, is_running } = *merge;
        let overdue = scheduler.overdue(self.passed(tree));
        MergeDemand { id, tree, remaining_bytes, refilled, is_running, overdue }
    }
}

impl Scheduler {
    /// Returns the maximum number of merges of other trees that end while one of `trees` trees with
    /// this scheduler needs a merge and none of its merges has a share; see [`Turns`].
    pub fn merges_waited_max(self, trees: u32) -> u32 {
        trees.checked_sub(2).map_or(0, |others| self.info().passes_max + others)
    }

    /// Returns by how much a tree is overdue that was passed `passed` times; 0 if it is not overdue.
    fn overdue(self, passed: u32) -> u32 {
        (passed + 1).saturating_sub(self.info().passes_max)
    }
}
