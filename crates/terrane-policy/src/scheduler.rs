//! How concurrent merges share bandwidth (performance-stability §4.1, §5.1.4).
//!
//! | text | shares | source |
//! |---|---|---|
//! | `single` | all to the oldest merge, until it ends | LevelDB; §4.1 |
//! | `fair` | equal shares | §5.1.4 |
//! | `greedy` | all to the merge with the least input left | §5.1.4, Theorem 2 |
//! | `greedy(2)` | equal shares to the two merges with the least input left | |
//! | `gear` | each merge's share lets it end just when its level is full again | bLSM; §4.1 |
//!
//! A scheduler is a file with a function of merges, and an entry in the list in `kind.rs`.
//!
//! The mechanism passes the next merge of every tree to [`Turns::order`], which decides which of them
//! begins first, and calls [`Turns::shares`] whenever a merge begins, ends or has made some progress.
//! Both apply only to merges: flushes take precedence over all of them.
//!
//! Trees that share a device share a scheduler, as in AsterixDB: a *begun* merge has its thread and
//! its open files, but only merges with a share *run*. With `greedy`, a tree runs as many merges as
//! the scheduler's argument allows, and keeps its slot until one of its merges ends; a free slot
//! goes to the tree with the most merges. A smaller merge displaces a larger one of its own tree at
//! once. AsterixDB's rule alone starves a tree if another always has more merges; [`Turns`] bounds
//! the wait.

mod kind;
mod merge;
mod model;
#[cfg(test)]
mod tests;
mod turns;

pub use kind::Scheduler;
pub use merge::SchedulerInfo;
pub use model::{leveling_entries_per_second, tiering_entries_per_second, tolerated_flushes};
pub use turns::Turns;

/// A merge that runs or could run, as a scheduler sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScheduledMerge {
    /// Ids increase in the order in which merges are created.
    pub id: u64,
    /// The tree to which the merge belongs.
    pub tree: u32,
    /// The scheduler of its tree.
    pub scheduler: Scheduler,
    /// Input left, in bytes. The output left is not known before the merge ends (§5.1.5).
    pub remaining_bytes: u64,
    /// How far the level from which the merge takes data has refilled, as a fraction of the fullness
    /// at which the level acts; see [`refilled`](crate::pick::refilled).
    pub refilled: f64,
    /// Whether the merge had a share when shares were last allocated.
    pub is_running: bool,
}

/// Returns the shares of merges if no tree has waited for another; see [`Turns::shares`].
pub fn allocate(merges: &[ScheduledMerge], slots: usize) -> Vec<f64> {
    Turns::default().shares(merges, slots)
}

fn count_trees<'a>(merges: impl Iterator<Item = &'a ScheduledMerge>) -> usize {
    let mut trees: Vec<u32> = merges.map(|merge| merge.tree).collect();
    trees.sort_unstable();
    trees.dedup();
    trees.len()
}
