//! Learns the heads of a tree from its first keys.
//!
//! A tree that follows another one expects the prefixes of its keys ([`super::heads`]). The first tree of a keyspace
//! has none to follow, and its heads would decide nothing among keys with a common prefix. So when its first
//! leaf is full, it looks for prefixes in that leaf. If it finds some, it copies the entries to a new leaf whose heads
//! leave the prefixes out, which becomes the root; otherwise it splits the leaf, and never looks again.
//!
//! Invariants:
//! 1. All nodes that are reached from a root have its heads, because a tree learns before its first split and
//!    nodes are split within the same heads.
//! 2. No entry is added to a leaf that was replaced, because a leaf is replaced under its lock, and a writer that
//!    has locked it looks whether it was.
//!
//! A search that loaded the old root before the replacement reads the old leaf. Entries that it misses were
//! inserted after it began.

use super::heads::Heads;
use super::node::{HeadsUsed, SLOTS, SearchTarget, TreeNode, TreeNodeGuard, TreeNodeRef};
use super::{BTree, NodeRef};
use crate::skiplist::Layout;
use crate::sync::Ordering;

impl BTree {
    /// Returns the heads of a node.
    #[inline]
    pub(super) fn heads_in(&self, node: TreeNodeRef<'_>) -> &Heads {
        match node.heads_used() {
            HeadsUsed::Initial => &self.heads,
            // They were set before the node was published.
            HeadsUsed::Learned => self.learned.get().unwrap_or(&self.heads),
        }
    }

    /// Inserts an entry without versions into a leaf or to the right of it, unless the leaf is replaced: then
    /// it searches again.
    #[inline]
    pub(super) fn insert_or_learn<'a>(
        &'a self,
        leaf: TreeNodeRef<'a>,
        target: &SearchTarget<'_>,
        entry: NodeRef<'a>,
    ) {
        let leaf = self.lock_from(leaf, target);
        if leaf.node.is_replaced() || self.is_first_and_full(leaf.node) {
            self.insert_after_learning(leaf, target, entry);
        } else {
            self.insert_into(leaf, target, entry, None);
        }
    }

    /// Returns whether a locked leaf is the only node of the tree, and full.
    #[inline]
    fn is_first_and_full(&self, leaf: TreeNodeRef<'_>) -> bool {
        // A leaf that was split has a right neighbour, also while it is still the root.
        leaf.len() == SLOTS && leaf.right().is_none() && self.root().as_ptr() == leaf.as_ptr()
    }

    /// Inserts an entry into a leaf that was replaced, or is replaced now if there is something to learn.
    #[cold]
    fn insert_after_learning<'a>(
        &'a self,
        mut leaf: TreeNodeGuard<'a>,
        target: &SearchTarget<'_>,
        entry: NodeRef<'a>,
    ) {
        if !leaf.node.is_replaced() && !self.replace(&mut leaf) {
            self.insert_into(leaf, target, entry, None);
            return;
        }
        drop(leaf);
        // The new leaf is not replaced, because a tree learns once.
        let (target, root) = self.search(entry.key(), entry.seq());
        let leaf = self.lock_from(Self::descend(root, &target, 0), &target);
        self.insert_into(leaf, &target, entry, None);
    }

    /// Learns heads from a full leaf, the only one of the tree. Returns true if it was replaced.
    fn replace(&self, leaf: &mut TreeNodeGuard<'_>) -> bool {
        // Entries with versions are removed and refilled, which the copy would not notice.
        let may_learn = self.layout == Layout::Plain
            && self.heads.are_plain()
            && leaf.node.heads_used() == HeadsUsed::Initial;
        if !may_learn {
            return false;
        }
        let entries = || (0..SLOTS).filter_map(|at| leaf.node.entry(at));
        let Some(heads) = Heads::learned(entries().map(NodeRef::key).collect()) else {
            return false;
        };
        let new = TreeNode::allocate(&self.arena, 0, HeadsUsed::Learned);
        // SAFETY: the node was just allocated in this tree's arena.
        let node = unsafe { TreeNodeRef::new(new) };
        let mut guard = node.lock();
        for (at, entry) in entries().enumerate() {
            guard.insert(at, heads.of(entry.key()), entry.as_ptr(), None);
        }
        drop(guard);
        if self.learned.set(heads).is_err() {
            return false;
        }
        leaf.set_replaced();
        // Release pairs with the acquire in `root`: heads and leaf are seen initialized.
        self.root.store(new.as_ptr(), Ordering::Release);
        true
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests {
    use super::*;
    use crate::entry::{Entry, EntryKind, MAX_SEQ};
    use crate::pool::Pool;
    use crate::structure::StructurePosition;

    fn insert(tree: &BTree, key: &str) {
        tree.insert(&Entry { key: key.as_bytes(), seq: 1, kind: EntryKind::Value, value: b"" });
    }

    /// Returns a tree with a full leaf.
    fn full(key: impl Fn(usize) -> String) -> BTree {
        let tree = BTree::new(Layout::Plain, Pool::new(0));
        (0..SLOTS).for_each(|number| insert(&tree, &key(2 * number)));
        tree
    }

    #[test]
    fn full_leaf_of_keys_with_a_common_prefix_is_replaced() {
        let key = |number| format!("user:{number:011}");
        let tree = full(key);
        assert_eq!(tree.root().heads_used(), HeadsUsed::Initial);
        let left = tree.root();
        insert(&tree, &key(7));
        assert!(left.is_replaced());
        assert_eq!((left.len(), tree.root().heads_used()), (SLOTS, HeadsUsed::Learned));
        // The prefix spares the seven digits that fit into a head, so that keys far from these differ as well.
        let head = |number| tree.heads_in(tree.root()).of(key(number).as_bytes());
        assert!([0, 1, 9_999_999].map(head).is_sorted_by(|a, b| a < b));
        for number in [0, 7, 2 * SLOTS - 2] {
            assert!(tree.first_at_or_after(key(number).as_bytes(), MAX_SEQ).is_some());
        }
    }

    #[test]
    fn full_leaf_of_keys_without_a_common_prefix_is_split() {
        let short = |number| format!("{number:03}");
        let long = |number| format!("user{number:04} and more");
        for key in [short, long] {
            let tree = full(key);
            let left = tree.root();
            insert(&tree, &key(7));
            assert!(!left.is_replaced() && left.len() < SLOTS);
            assert_eq!(tree.root().heads_used(), HeadsUsed::Initial);
        }
    }

    #[test]
    fn position_in_a_replaced_leaf_goes_on_in_the_new_one() {
        use crate::btree::position::BTreePosition;
        let key = |number| format!("user:{number:011}");
        let tree = full(key);
        let (mut last, mut first) = (BTreePosition::default(), BTreePosition::default());
        last.seek_last(&tree);
        first.seek_first(&tree);
        insert(&tree, &key(1));
        insert(&tree, &key(2 * SLOTS));
        // SAFETY: the position has been used with this tree only.
        let after = [last, first].map(|position| unsafe { position.after(&tree) });
        let entry = |position: &BTreePosition| {
            // SAFETY: as above.
            let entry = unsafe { position.entry(&tree) };
            entry.map(|entry| entry.key.to_vec())
        };
        let expected = [key(2 * SLOTS), key(1)];
        assert_eq!(after.each_ref().map(entry), expected.map(|key| Some(key.into_bytes())));
    }
}
