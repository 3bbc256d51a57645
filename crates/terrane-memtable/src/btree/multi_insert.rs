//! Inserting entries that come in order, each from where the one before went: what FloDB's
//! multi-insert (paper, §4.3) is in a B-link tree.
//!
//! The entry after one that went to a leaf belongs to that leaf or to its right, whatever happens
//! to the leaf meanwhile: where it begins never changes. So it is looked for there and in the next
//! leaf before the tree is searched from its root. The nearer the keys, the more of them find their
//! leaf in the cache.

use std::ptr::NonNull;

use super::node::{NodeChanged, SearchTarget, TreeNodeRef};
use super::{BTree, Node, NodeRef};

/// The leaf that the last entry went to, or one to its left.
pub(crate) struct TreeMultiInsert<'a> {
    tree: &'a BTree,
    leaf: Option<TreeNodeRef<'a>>,
}

impl BTree {
    /// A place to insert from, one entry after the other.
    pub(crate) fn multi_insert(&self) -> TreeMultiInsert<'_> {
        TreeMultiInsert { tree: self, leaf: None }
    }
}

impl<'a> TreeMultiInsert<'a> {
    /// Puts an entry into the tree, which comes after all that this path has inserted.
    ///
    /// # Safety
    /// It was made by [`BTree::allocate`] of this tree, and is linked for the first time.
    pub(crate) unsafe fn link(&mut self, record: NonNull<Node>) {
        // SAFETY: made in this tree's arena.
        let entry: NodeRef<'a> = unsafe { NodeRef::new(record) };
        let target = SearchTarget::new(entry.key(), entry.seq());
        let near = self.leaf.and_then(|leaf| near(leaf, &target));
        let leaf = near.unwrap_or_else(|| {
            let leaf = self.tree.descend(&target, 0);
            leaf.prefetch_entries();
            leaf
        });
        let leaf = self.tree.lock_from(leaf, &target);
        self.leaf = Some(leaf.node);
        self.tree.insert_into(leaf, &target, entry);
    }
}

/// The leaf of a target that belongs to a leaf or to its right, if it is not further than the next
/// one.
fn near<'a>(leaf: TreeNodeRef<'a>, target: &SearchTarget<'_>) -> Option<TreeNodeRef<'a>> {
    let is_beyond = |leaf: TreeNodeRef<'a>| -> Result<bool, NodeChanged> {
        let version = leaf.read_version();
        let is_beyond = leaf.is_beyond(target);
        leaf.check(version)?;
        Ok(is_beyond)
    };
    if !is_beyond(leaf).ok()? {
        return Some(leaf);
    }
    leaf.right().filter(|right| is_beyond(*right) == Ok(false))
}
