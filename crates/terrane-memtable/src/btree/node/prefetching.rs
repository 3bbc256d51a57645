//! Prefetching of nodes and entries.

use std::mem::offset_of;

use super::{SLOTS, TreeNode, TreeNodeRef};
use crate::prefetch::{LINE_BYTES, prefetch};
use crate::sync::Ordering;

impl TreeNodeRef<'_> {
    /// Prefetches the part of the node that a search reads.
    #[inline]
    pub(crate) fn prefetch(self) {
        // Nodes are not aligned to cache lines, so the last part may straddle two.
        let node = self.node.as_ptr().cast::<u8>().cast_const();
        for line in 0..=offset_of!(TreeNode, entries) / LINE_BYTES {
            prefetch(node.wrapping_add(line * LINE_BYTES));
        }
    }

    /// Prefetches the part of a leaf that an insert changes and a search does not read.
    #[inline]
    pub(crate) fn prefetch_entries(self) {
        let node = self.node.as_ptr().cast::<u8>().cast_const();
        for line in
            offset_of!(TreeNode, entries) / LINE_BYTES + 1..=size_of::<TreeNode>() / LINE_BYTES
        {
            prefetch(node.wrapping_add(line * LINE_BYTES));
        }
    }

    /// Prefetches the entry at an index, if there is one.
    #[inline]
    pub(crate) fn prefetch_at(self, index: usize) {
        // The entry may have changed since; it is only a hint.
        if let Some(entry) = self.node().entries.get(index) {
            prefetch(entry.load(Ordering::Relaxed).cast());
        }
    }

    /// Prefetches the first entry with this head, if there is one, because an insert compares keys
    /// with it.
    #[inline]
    pub(crate) fn prefetch_entry(self, head: u64) {
        if cfg!(any(loom, miri)) {
            // Prefetching has no effect under loom and Miri.
            return;
        }
        let at = self.lower_bound(head);
        if at < SLOTS && self.head(at) == head {
            // The entry may have changed since; it is only a hint.
            prefetch(self.node().entries[at].load(Ordering::Relaxed).cast());
        }
    }
}
