//! The merges with the least input left, of a limited number of trees.

use super::merge::Merge;

/// Which trees run, and their smallest `most` merges, all at the same speed.
pub(super) fn shares(merges: &[Merge], most: usize, places: usize) -> Vec<f64> {
    let trees = running_trees(merges, places.max(1));
    let mut chosen: Vec<u64> = Vec::new();
    for tree in trees {
        let mut own: Vec<&Merge> = merges.iter().filter(|merge| merge.tree == tree).collect();
        // Of two that have as much left, that which runs goes on: nothing is gained by a change.
        own.sort_by_key(|merge| (merge.remaining_bytes, !merge.is_running, merge.id));
        chosen.extend(own.iter().take(most).map(|merge| merge.id));
    }
    let share = 1.0 / chosen.len().max(1) as f64;
    let of = |merge: &Merge| if chosen.contains(&merge.id) { share } else { 0.0 };
    merges.iter().map(of).collect()
}

/// The trees that have a place: those that had one, and then those with the most merges.
fn running_trees(merges: &[Merge], places: usize) -> Vec<u32> {
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
    trees.iter().take(places).map(|entry| entry.3).collect()
}
