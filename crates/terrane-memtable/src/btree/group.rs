//! Inserts several entries whose searches descend in parallel.
//!
//! A search stalls on memory at each node, because the next step depends on the memory. Searches of
//! different keys are independent, so their stalls on a level overlap. Unlike
//! [`super::multi_insert`], this does not need keys that are close to each other.

use super::node::{SearchTarget, TreeNodeRef};
use super::{BTree, NodeRef};
use crate::entry::Entry;

/// The number of searches that descend in parallel: about as many as a core can have cache misses
/// outstanding.
pub(crate) const GROUP: usize = 12;

impl BTree {
    /// Inserts versions, in any order among themselves. No two versions of a key may have the same
    /// sequence number.
    pub(crate) fn insert_groups(&self, entries: &[Entry<'_>]) {
        for group in entries.chunks(GROUP) {
            self.insert_group(group);
        }
    }

    fn insert_group(&self, group: &[Entry<'_>]) {
        let root = self.root();
        let mut searches = [(SearchTarget { head: 0, key: &[], seq: 0 }, root); GROUP];
        for (search, entry) in searches.iter_mut().zip(group) {
            search.0 = self.target(entry.key, entry.seq);
        }
        let searches = &mut searches[..group.len()];
        while step_all(searches) {}
        for ((target, leaf), entry) in searches.iter().zip(group) {
            let &Entry { key, seq, kind, value } = entry;
            let record = self.allocate(&Entry { key, seq, kind, value });
            leaf.prefetch_entry(target.head);
            // SAFETY: `allocate` made the node in this tree's arena, and no one else knows it, so
            // it is never refilled.
            let entry = unsafe { NodeRef::new(record) };
            // An earlier entry of the group may have split the leaf; `lock_from` moves right.
            self.insert_into(self.lock_from(*leaf, target), target, entry, None);
        }
    }
}

/// Moves each search that is not at a leaf one level down or to the right. Returns false once all
/// are at leaves.
fn step_all(searches: &mut [(SearchTarget<'_>, TreeNodeRef<'_>)]) -> bool {
    let mut has_moved = false;
    for (target, node) in searches {
        let level = node.level();
        if level == 0 {
            continue;
        }
        has_moved = true;
        // If the node changed during the step, the next round retries it.
        if let Ok(next) = BTree::step_down(*node, target) {
            *node = next;
            node.prefetch();
            // The next node's level has not arrived from memory yet; below level 1 it is a leaf,
            // unless the step went right.
            if level == 1 {
                node.prefetch_entries();
            }
        }
    }
    has_moved
}
