//! `greedy`, `greedy(2)`: the merges with the least input left, of a limited number of trees
//! (performance-stability §5.1.4, Theorem 2).

use crate::scheduler::merge::{MergeDemand, SchedulerInfo};

pub(super) static INFO: SchedulerInfo = SchedulerInfo {
    name: "greedy",
    aliases: &[],
    most: 64,
    looks_at_levels: false,
    changes_with_progress: |merges| merges > 1,
    shares,
};

/// The smallest `most` merges of each running tree get equal shares.
fn shares(merges: &[MergeDemand], most: u32, slots: usize) -> Vec<f64> {
    let mut chosen: Vec<u64> = Vec::new();
    for tree in running_trees(merges, slots.max(1)) {
        let mut own: Vec<&MergeDemand> = merges.iter().filter(|merge| merge.tree == tree).collect();
        // Of two merges with the same input left, the running one goes on: a switch gains nothing.
        own.sort_by_key(|merge| (merge.remaining_bytes, !merge.is_running, merge.id));
        chosen.extend(own.iter().take(most.max(1) as usize).map(|merge| merge.id));
    }
    let share = 1.0 / chosen.len().max(1) as f64;
    let of = |merge: &MergeDemand| if chosen.contains(&merge.id) { share } else { 0.0 };
    merges.iter().map(of).collect()
}

/// Returns the trees that have a slot: first the trees that already run merges, then the trees with
/// the most merges.
fn running_trees(merges: &[MergeDemand], slots: usize) -> Vec<u32> {
    let mut trees: Vec<(bool, usize, u64, u32)> = Vec::new();
    for merge in merges {
        match trees.iter_mut().find(|entry| entry.3 == merge.tree) {
            Some((runs, count, first, _)) => {
                *runs |= merge.is_running;
                *count += 1;
                *first = (*first).min(merge.id);
            }
            None => trees.push((merge.is_running, 1, merge.id, merge.tree)),
        }
    }
    trees.sort_by_key(|(runs, count, first, _)| (!runs, usize::MAX - count, *first));
    trees.iter().take(slots).map(|entry| entry.3).collect()
}
