//! How merges that go on at the same time share the bandwidth (performance-stability §4.1, §5.1.4).
//!
//! | text | shares | source |
//! |---|---|---|
//! | `single` | all to the merge that was created first, until it ends | LevelDB; §4.1 |
//! | `fair` | the same to each | §5.1.4 |
//! | `greedy` | all to the merge with the least input left | §5.1.4, Theorem 2 |
//! | `greedy(2)` | the same to each of the two with the least input left | |
//! | `gear` | to each what lets it end when its level is full again | bLSM; §4.1 |
//!
//! [`allocate`] is asked whenever a merge is created, ends, or has come some way. It decides about
//! bandwidth of merges only: flushes go before all of them.
//!
//! Trees that share a device share a scheduler as the Asterix system has it: a merge that is
//! *scheduled* has its thread and its files open, but only those *run* that have a share. With
//! `greedy`, a tree runs as many merges as the scheduler says, and keeps its place among the trees
//! that run until one of its merges ends; a place that comes free goes to the tree that has the
//! most merges. A smaller merge takes the place of a larger one of its own tree at once.

mod gear;
mod greedy;
mod kind;
mod merge;
mod model;
#[cfg(test)]
mod tests;

pub use kind::Scheduler;
pub use merge::Merge;
pub use model::{leveling_entries_per_second, tiering_entries_per_second, tolerated_flushes};

/// The share of the bandwidth of each of `merges`, in the same order. Shares are not negative, and
/// their sum is 1 unless there is no merge. No more than `places` trees that are greedy run merges
/// at the same time.
///
/// Trees with another rule of their own have a part of the bandwidth as large as their number.
pub fn allocate(merges: &[Merge], places: usize) -> Vec<f64> {
    let mut shares = vec![0.0; merges.len()];
    let mut rules: Vec<Scheduler> = merges.iter().map(|merge| merge.scheduler).collect();
    rules.sort_unstable();
    rules.dedup();
    let trees = count_trees(merges.iter());
    for rule in rules {
        let of_rule = |merge: &&Merge| merge.scheduler == rule;
        let part = count_trees(merges.iter().filter(of_rule)) as f64 / trees.max(1) as f64;
        let own: Vec<usize> =
            (0..merges.len()).filter(|&at| merges[at].scheduler == rule).collect();
        let of_own: Vec<Merge> = own.iter().map(|&at| merges[at]).collect();
        for (&at, share) in own.iter().zip(rule.shares(&of_own, places)) {
            shares[at] = part * share;
        }
    }
    shares
}

fn count_trees<'a>(merges: impl Iterator<Item = &'a Merge>) -> usize {
    let mut trees: Vec<u32> = merges.map(|merge| merge.tree).collect();
    trees.sort_unstable();
    trees.dedup();
    trees.len()
}

impl Scheduler {
    fn shares(self, merges: &[Merge], places: usize) -> Vec<f64> {
        match self {
            Self::Single => {
                let first = merges.iter().min_by_key(|merge| merge.id).map(|merge| merge.id);
                merges.iter().map(|merge| f64::from(u8::from(Some(merge.id) == first))).collect()
            }
            Self::Fair => vec![1.0 / merges.len() as f64; merges.len()],
            Self::Greedy { merges: most } => greedy::shares(merges, most.max(1) as usize, places),
            Self::Gear => gear::shares(merges),
        }
    }
}
