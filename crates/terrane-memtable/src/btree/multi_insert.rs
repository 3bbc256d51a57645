//! Multi-insert in a B-link tree: inserts entries in order, and searches for each from the leaf of
//! the previous one (FloDB paper, §4.3).
//!
//! The next entry belongs to the same leaf or to its right, even if the leaf is split meanwhile,
//! because the separator of a leaf never changes. So this leaf and its right neighbour are tried
//! before a search from the root. The closer the keys, the more of them find their leaf in the
//! cache.

use std::ptr::NonNull;

use super::node::{NodeChanged, SearchTarget, TreeNodeRef};
use super::{BTree, Node, NodeRef, Reclaim};

/// Inserts entries in ascending order; `leaf` is the leaf of the last entry inserted, or a leaf to
/// the left of that leaf.
pub(crate) struct TreeMultiInsert<'a> {
    tree: &'a BTree,
    leaf: Option<TreeNodeRef<'a>>,
}

impl BTree {
    /// Starts a multi-insert.
    pub(crate) fn multi_insert(&self) -> TreeMultiInsert<'_> {
        TreeMultiInsert { tree: self, leaf: None }
    }
}

impl<'a> TreeMultiInsert<'a> {
    /// Links an entry that comes after all entries this multi-insert has linked, and reclaims older
    /// versions of its key that it hides.
    ///
    /// # Safety
    /// As for [`BTree::link`].
    pub(crate) unsafe fn link(&mut self, record: NonNull<Node>, reclaim: Reclaim<'_>) {
        // SAFETY: as in `BTree::link`.
        let entry: NodeRef<'a> = unsafe { NodeRef::new(record) };
        let target = self.tree.target(entry.key(), entry.seq());
        let near = self.leaf.and_then(|leaf| near(leaf, &target));
        let leaf = near.unwrap_or_else(|| {
            let leaf = self.tree.descend(&target, 0);
            leaf.prefetch_entries();
            leaf
        });
        let leaf = self.tree.lock_from(leaf, &target);
        self.leaf = Some(leaf.node);
        let neighbours = self.tree.insert_into(leaf, &target, entry, reclaim);
        self.tree.reclaim_beyond(neighbours, &target, reclaim);
    }
}

/// Returns the leaf to which a target belongs if that is `leaf` or its right neighbour. The target
/// must not belong to the left of `leaf`.
fn near<'a>(leaf: TreeNodeRef<'a>, target: &SearchTarget<'_>) -> Option<TreeNodeRef<'a>> {
    let is_beyond = |leaf: TreeNodeRef<'a>| -> Result<bool, NodeChanged> {
        let version = leaf.read_version();
        let is_beyond = leaf.is_beyond(leaf.target(target));
        leaf.check(version)?;
        Ok(is_beyond)
    };
    if !is_beyond(leaf).ok()? {
        return Some(leaf);
    }
    leaf.right().filter(|right| is_beyond(*right) == Ok(false))
}
