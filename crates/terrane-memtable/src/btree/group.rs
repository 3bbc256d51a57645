//! Looks up or inserts several entries whose searches descend in parallel.
//!
//! A search stalls on memory at each node, because the next step depends on the memory. Searches of
//! different keys are independent, so their stalls on a level overlap. Unlike
//! [`super::multi_insert`], this does not need keys that are close to each other.
//!
//! Among equal heads, entries decide, and each comparison stalls on an entry. Before the searches compare
//! keys in a node, [`probe`] makes the same comparisons for all of them in turn, and prefetches the entry
//! of the next one. Its results are not used, because the nodes may have changed since: it only brings the
//! entries into the cache.

use super::node::{SearchTarget, TreeNodeRef};
use super::{BTree, NodeRef};
use crate::entry::{Entry, SeqNo};

/// The number of searches that descend in parallel: about as many as a core can have cache misses
/// outstanding.
pub(crate) const GROUP: usize = 12;

/// A search, and the node at which it is.
type Search<'k, 'a> = (SearchTarget<'k>, TreeNodeRef<'a>);

impl BTree {
    /// Looks up the newest version of each key at or below `seq`, and calls `found` with the index of the key.
    pub(crate) fn get_groups<'a>(
        &'a self,
        keys: &[&[u8]],
        seq: SeqNo,
        mut found: impl FnMut(usize, Option<Entry<'a>>),
    ) {
        for (at, group) in keys.chunks(GROUP).enumerate() {
            let mut searches = self.searches(group.iter().map(|key| (*key, seq)));
            let searches = &mut searches[..group.len()];
            descend(searches);
            for (index, (target, leaf)) in searches.iter().enumerate() {
                let first = self.first_from(*leaf, target);
                let version = first.filter(|first| first.record.key() == target.key);
                found(at * GROUP + index, version.map(|version| version.record.entry()));
            }
        }
    }

    /// Inserts versions, in any order among themselves. No two versions of a key may have the same
    /// sequence number.
    pub(crate) fn insert_groups(&self, entries: &[Entry<'_>]) {
        for group in entries.chunks(GROUP) {
            self.insert_group(group);
        }
    }

    fn insert_group(&self, group: &[Entry<'_>]) {
        let mut searches = self.searches(group.iter().map(|entry| (entry.key, entry.seq)));
        let searches = &mut searches[..group.len()];
        descend(searches);
        for ((target, leaf), entry) in searches.iter().zip(group) {
            let &Entry { key, seq, kind, value } = entry;
            let record = self.allocate(&Entry { key, seq, kind, value });
            // SAFETY: `allocate` made the node in this tree's arena, and no one else knows it, so
            // it is never refilled.
            let entry = unsafe { NodeRef::new(record) };
            // An earlier entry of the group may have split the leaf; `lock_from` moves right.
            self.insert_into(self.lock_from(*leaf, target), target, entry, None);
        }
    }

    /// Returns searches that begin at the root.
    fn searches<'k>(
        &self,
        keys: impl Iterator<Item = (&'k [u8], SeqNo)>,
    ) -> [Search<'k, '_>; GROUP] {
        let mut searches = [(self.target(&[], 0), self.root()); GROUP];
        for (search, (key, seq)) in searches.iter_mut().zip(keys) {
            search.0 = self.target(key, seq);
        }
        searches
    }
}

/// Moves all searches to leaves, and prefetches what they need there.
fn descend(searches: &mut [Search<'_, '_>]) {
    while step_all(searches) {}
    probe(searches);
}

/// Moves each search that is not at a leaf one level down or to the right. Returns false once all
/// are at leaves.
fn step_all(searches: &mut [Search<'_, '_>]) -> bool {
    // The nodes above are few, so their separators are in the cache.
    if searches.iter().any(|(_, node)| node.level() == 1) {
        probe(searches);
    }
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

/// Prefetches the entries that the searches compare with their keys in their present nodes.
fn probe(searches: &[Search<'_, '_>]) {
    if cfg!(any(loom, miri)) {
        // Prefetching has no effect under loom and Miri.
        return;
    }
    // The entries that may be compared, in the order of `TreeNodeRef::count_before`.
    let mut ranges = [(0, 0, 0); GROUP];
    for ((target, node), range) in searches.iter().zip(&mut ranges) {
        let equal = node.equal_heads(node.target(target));
        node.prefetch_at(equal.start);
        *range = (equal.start, equal.start, equal.end);
    }
    // An entry alone is compared once, when it has arrived.
    let is_open = |&(_, from, end): &(usize, usize, usize)| end - from > 1;
    while ranges.iter().take(searches.len()).any(is_open) {
        for ((target, node), range) in searches.iter().zip(&mut ranges) {
            let (at, from, end) = *range;
            if end <= from {
                continue;
            }
            *range = match (node.is_before(at, node.target(target)), at == from) {
                (true, _) => ((at + 1).midpoint(end), at + 1, end),
                // The target is the first of the equal heads.
                (false, true) => (at, at, at),
                (false, false) => (from.midpoint(at), from, at),
            };
            node.prefetch_at(range.0);
        }
    }
}
