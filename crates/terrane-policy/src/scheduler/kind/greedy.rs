//! `greedy`, `greedy(2)`: the merges with the least input left, of a limited number of trees
//! (performance-stability §5.1.4, Theorem 2).

use std::cmp::Reverse;

use crate::scheduler::merge::{MergeDemand, SchedulerInfo};

/// The rule "most merges first" may pass over a tree this many times.
const PASSES_MAX: u32 = 2;

pub(super) static INFO: SchedulerInfo = SchedulerInfo {
    name: "greedy",
    aliases: &[],
    most: 64,
    looks_at_levels: false,
    passes_max: PASSES_MAX,
    changes_with_progress: |merges| merges > 1,
    shares,
};

/// Gives equal shares to the smallest `most` merges of each running tree.
fn shares(merges: &[MergeDemand], most: u32, slots: usize) -> Vec<f64> {
    let mut chosen: Vec<u64> = Vec::new();
    for tree in running_trees(merges, slots.max(1)) {
        let mut own: Vec<&MergeDemand> = merges.iter().filter(|merge| merge.tree == tree).collect();
        // Of two merges with the same input left, the running one continues, because a switch gains
        // nothing.
        own.sort_by_key(|merge| (merge.remaining_bytes, !merge.is_running, merge.id));
        chosen.extend(own.iter().take(most.max(1) as usize).map(|merge| merge.id));
    }
    let share = 1.0 / chosen.len().max(1) as f64;
    let of = |merge: &MergeDemand| if chosen.contains(&merge.id) { share } else { 0.0 };
    merges.iter().map(of).collect()
}

/// The criteria that decide whether a tree gets a slot.
struct Claim {
    tree: u32,
    overdue: u32,
    runs: bool,
    merges: usize,
    first_id: u64,
}

/// Returns the trees that have a slot: first overdue trees, then trees that already run merges, then
/// the trees with the most merges.
fn running_trees(merges: &[MergeDemand], slots: usize) -> Vec<u32> {
    let mut claims: Vec<Claim> = Vec::new();
    for merge in merges {
        let MergeDemand { id, tree, is_running, overdue, .. } = *merge;
        match claims.iter_mut().find(|claim| claim.tree == tree) {
            Some(claim) => {
                claim.runs |= is_running;
                claim.merges += 1;
                claim.first_id = claim.first_id.min(id);
            }
            None => {
                claims.push(Claim { tree, overdue, runs: is_running, merges: 1, first_id: id });
            }
        }
    }
    claims.sort_by_key(|claim| {
        (Reverse(claim.overdue), !claim.runs, Reverse(claim.merges), claim.first_id)
    });
    claims.iter().take(slots).map(|claim| claim.tree).collect()
}
