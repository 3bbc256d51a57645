//! Decides whose turn it is among trees that share threads and bandwidth.
//!
//! Fair service is an invariant: while a tree needs a merge but none of its merges has a share, at most
//! [`Scheduler::merges_waited_max`] merges of other trees with the same scheduler end, plus any that
//! had begun before its turn came. Without it, a tree that is always busy could stop the writers of
//! another tree forever. The invariant follows from three rules:
//!
//! 1. A tree is *passed over* by every merge of another tree that ends while it needs a merge. The
//!    count returns to 0 when one of its own merges ends.
//! 2. A tree that was passed over as often as its scheduler tolerates is overdue. Overdue trees precede
//!    all others, most often passed over first, both when a merge begins and when slots are assigned.
//! 3. Of two trees, the one passed over more often stays ahead until it is served, because every end
//!    counts for both. Therefore at most one merge of each other tree ends before an overdue tree has a
//!    share, and none of the tree whose merge made it overdue.
//!
//! Trees with different schedulers share the bandwidth in proportion to their number, so none of them
//! waits for the other.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::merge::MergeDemand;
use super::{ScheduledMerge, Scheduler, count_trees};

/// How often each tree that needs a job was passed over by jobs of other trees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turns {
    passed: BTreeMap<u32, u32>,
}

impl Turns {
    /// Notes which trees need a job now. Trees not in `trees` no longer wait.
    pub fn note_waiting(&mut self, trees: impl IntoIterator<Item = u32>) {
        let passed = std::mem::take(&mut self.passed);
        let count_of = |tree| (tree, passed.get(&tree).copied().unwrap_or(0));
        self.passed = trees.into_iter().map(count_of).collect();
    }

    /// Notes that a job of `tree` has ended.
    pub fn note_end(&mut self, tree: u32) {
        self.note_ends([tree]);
    }

    /// Notes that one job of several trees has ended.
    pub fn note_ends(&mut self, trees: impl IntoIterator<Item = u32>) {
        let ended: BTreeSet<u32> = trees.into_iter().collect();
        for (other, passed) in &mut self.passed {
            *passed = if ended.contains(other) { 0 } else { passed.saturating_add(1) };
        }
    }

    /// Returns how often a tree was passed over.
    pub fn passed(&self, tree: u32) -> u32 {
        self.passed.get(&tree).copied().unwrap_or(0)
    }

    /// Returns the indexes of `candidates`, which are merges of different trees that could begin, in
    /// the order in which the mechanism should try to begin them: first overdue trees, then trees with
    /// many merges, counting their `begun` merges.
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

    /// Returns each merge's share of the bandwidth, in the order of `merges`. Shares are not negative,
    /// and add up to 1 unless there are no merges. With `greedy`, at most `slots` trees run merges
    /// concurrently.
    ///
    /// The trees of each scheduler together get bandwidth in proportion to their number.
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
    /// Returns the maximum number of other trees' merges that end while one of `trees` trees with this
    /// scheduler needs a merge but has no share; see [`Turns`].
    pub fn merges_waited_max(self, trees: u32) -> u32 {
        trees.checked_sub(2).map_or(0, |others| self.info().passes_max + others)
    }

    /// Returns by how much a tree that was passed over `passed` times is overdue; 0 if it is not
    /// overdue.
    fn overdue(self, passed: u32) -> u32 {
        (passed + 1).saturating_sub(self.info().passes_max)
    }
}
