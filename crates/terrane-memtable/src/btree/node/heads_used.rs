//! The heads that a node has, and leaves that are replaced because their tree has learned better ones.

use super::{TreeNodeGuard, TreeNodeRef};
use crate::sync::Ordering;

/// Which of the heads of its tree a node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadsUsed {
    /// Those with which the tree was created.
    Initial,
    /// Those that the tree learned from its first keys.
    Learned,
}

impl TreeNodeRef<'_> {
    #[inline]
    pub(crate) fn heads_used(self) -> HeadsUsed {
        self.node().heads_used
    }

    /// Returns true if the leaf was replaced by one with learned heads. A caller that holds its lock knows
    /// that this does not change.
    #[inline]
    pub(crate) fn is_replaced(self) -> bool {
        // Relaxed: the lock of the leaf orders it for writers, and the counter for readers, which have loaded it.
        self.node().is_replaced.load(Ordering::Relaxed)
    }
}

impl TreeNodeGuard<'_> {
    /// Marks a leaf as replaced. Readers that have found it search again, and so do positions in it.
    pub(crate) fn set_replaced(&mut self) {
        self.has_changed = true;
        self.node.node().is_replaced.store(true, Ordering::Relaxed);
    }
}
