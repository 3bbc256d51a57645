//! Inserting several entries whose searches go down side by side.
//!
//! A search waits at each node for memory, and nothing else can be done meanwhile: where to go next
//! is in that memory. Searches of several keys know nothing of each other, so that all of them wait
//! for the memory of a level at the same time. Nearby keys are not needed for that, as they are for
//! [`super::multi_insert`].

use super::node::{SearchTarget, TreeNodeRef};
use super::{BTree, NodeRef};
use crate::entry::Entry;

/// As many searches as processors wait for lines at a time.
pub(crate) const GROUP: usize = 12;

impl BTree {
    /// Adds versions, which are as if they came one after the other, or in any other order. No two
    /// versions of a key may have the same sequence number.
    pub(crate) fn insert_all(&self, entries: &[Entry<'_>]) {
        for group in entries.chunks(GROUP) {
            self.insert_group(group);
        }
    }

    fn insert_group(&self, group: &[Entry<'_>]) {
        let root = self.root();
        let mut searches = [(SearchTarget { head: 0, key: &[], seq: 0 }, root); GROUP];
        for (search, entry) in searches.iter_mut().zip(group) {
            search.0 = SearchTarget::new(entry.key, entry.seq);
        }
        let searches = &mut searches[..group.len()];
        while step_all(searches) {}
        for ((target, leaf), entry) in searches.iter().zip(group) {
            let &Entry { key, seq, kind, value } = entry;
            let record = self.allocate(&Entry { key, seq, kind, value });
            leaf.prefetch_entry(target.head);
            // SAFETY: made in this tree's arena.
            let entry = unsafe { NodeRef::new(record) };
            // An entry before it in the group may have split the leaf: it is found to the right.
            self.insert_into(self.lock_from(*leaf, target), target, entry);
        }
    }
}

/// Goes a level down, or to the right, with each search that is not at a leaf; false once all are.
fn step_all(searches: &mut [(SearchTarget<'_>, TreeNodeRef<'_>)]) -> bool {
    let mut has_moved = false;
    for (target, node) in searches {
        let level = node.level();
        if level == 0 {
            continue;
        }
        has_moved = true;
        // A node that has changed under the search is searched again.
        if let Ok(next) = BTree::step_down(*node, target) {
            *node = next;
            node.prefetch();
            // Its level is not known before its memory is there; as a rule it is a leaf.
            if level == 1 {
                node.prefetch_entries();
            }
        }
    }
    has_moved
}
