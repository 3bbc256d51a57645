//! Looks up or inserts several entries whose searches descend in parallel.
//!
//! A search stalls on memory at each node, because the next step depends on the loaded data.
//! Searches of different keys are independent, so their stalls on a level overlap. Unlike
//! [`super::multi_insert`], this does not need keys that are close to each other.
//!
//! In the two lowest levels, [`look`] finds the places of all searches from the heads before any search compares keys.
//! Among equal heads, keys decide, and each comparison stalls on an entry. So `look` also makes these comparisons, one
//! for each search in turn, and prefetches the entry that the same search compares next. If a node changes after that,
//! so does its counter, and the search looks again.

use super::node::{LeafEntry, NodeChanged, SearchTarget, TreeNodeRef};
use super::search::SearchStep;
use super::{BTree, NodeRef};
use crate::entry::{Entry, SeqNo};

/// The number of searches that descend in parallel: about the number of cache misses that a core
/// can have outstanding.
pub(crate) const GROUP: usize = 12;

/// A search and its current node.
#[derive(Clone, Copy)]
struct Search<'k, 'a> {
    target: SearchTarget<'k>,
    node: TreeNodeRef<'a>,
    /// The node's counter when `look` read it, and the number of its heads that were below the target's.
    seen: (u64, usize),
}

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
            for (index, search) in searches.iter().enumerate() {
                let first = self.first_seen(search);
                let version = first.filter(|first| first.record.key() == search.target.key);
                found(at * GROUP + index, version.map(|version| version.record.entry()));
            }
        }
    }

    /// Inserts versions, which may come in any order. No two versions of a key may have the same
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
        for (Search { target, node, seen }, entry) in searches.iter().zip(group) {
            let &Entry { key, seq, kind, value } = entry;
            let record = self.allocate(&Entry { key, seq, kind, value });
            // SAFETY: `allocate` made the node in this tree's arena, and no one else knows it, so
            // it is never refilled.
            let entry = unsafe { NodeRef::new(record) };
            // An earlier entry of the group may have split the leaf.
            self.insert_from(*node, target, entry, *seen);
        }
    }

    /// Returns searches that begin at the root.
    fn searches<'k>(
        &self,
        keys: impl Iterator<Item = (&'k [u8], SeqNo)>,
    ) -> [Search<'k, '_>; GROUP] {
        let (target, node) = (self.target(&[], 0), self.root());
        let mut searches = [Search { target, node, seen: (0, 0) }; GROUP];
        for (search, (key, seq)) in searches.iter_mut().zip(keys) {
            search.target = self.target(key, seq);
        }
        searches
    }

    /// Returns the first entry at or after the target of a search whose place in its leaf was found.
    #[inline]
    fn first_seen<'a>(&'a self, search: &Search<'_, 'a>) -> Option<LeafEntry<'a>> {
        let &Search { target, node: leaf, seen: (version, from) } = search;
        let placed = leaf.target(&target);
        let index = leaf.count_before_from(placed, from);
        match self.seek_at(leaf, placed, (version, index)) {
            Ok(SearchStep::At(slot)) => Some(slot),
            Ok(SearchStep::Continue(right)) => self.first_from(right, &target),
            Ok(SearchStep::End) => None,
            Err(NodeChanged) => self.first_from(leaf, &target),
        }
    }
}

/// Moves all searches to leaves, finds their places there, and prefetches the entries that they need.
fn descend(searches: &mut [Search<'_, '_>]) {
    while step_all(searches) {}
    look(searches);
}

/// Moves each search that is not at a leaf one level down or to the right. Returns false once all
/// are at leaves.
fn step_all(searches: &mut [Search<'_, '_>]) -> bool {
    // The nodes above are few, so their separators are in the cache.
    let is_low = searches.iter().any(|search| search.node.level() == 1);
    if is_low {
        look(searches);
    }
    let mut has_moved = false;
    for Search { target, node, seen } in searches {
        let level = node.level();
        if level == 0 {
            continue;
        }
        has_moved = true;
        let next = match is_low {
            true => BTree::step_from(*node, node.target(target), *seen),
            false => BTree::step_down(*node, target),
        };
        // If the node changed during the step, the next round retries it.
        if let Ok(next) = next {
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

/// Finds the places of the searches in their current nodes, and prefetches the entries that they compare there.
fn look(searches: &mut [Search<'_, '_>]) {
    // The entries that may be compared, in the order of `TreeNodeRef::count_before`.
    let mut ranges = [(0, 0, 0); GROUP];
    for (Search { target, node, seen }, range) in searches.iter_mut().zip(&mut ranges) {
        let version = node.read_version();
        let equal = node.equal_heads(node.target(target));
        *seen = (version, equal.start);
        node.prefetch_at(equal.start);
        *range = (equal.start, equal.start, equal.end);
    }
    if cfg!(any(loom, miri)) {
        // Prefetching has no effect under loom and Miri.
        return;
    }
    // A single entry is compared only later, once it has arrived.
    let is_open = |&(_, from, end): &(usize, usize, usize)| end - from > 1;
    while ranges.iter().take(searches.len()).any(is_open) {
        for (Search { target, node, .. }, range) in searches.iter().zip(&mut ranges) {
            if !is_open(range) {
                continue;
            }
            let (at, from, end) = *range;
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
