//! Multi-insert (FloDB paper, §4.3, Algorithm 1): inserts nodes in order, and searches for each
//! from the position of the previous one.
//!
//! The search goes down from the top. At each height it starts from the larger of two predecessors: that of the
//! previous node, and the one that it has just reached one height above. Other threads insert meanwhile. Because
//! no node is ever removed, a node that precedes a key keeps preceding it, so an outdated splice only costs
//! steps.
//!
//! As printed, the algorithm retries a failed exchange at a new place but leaves the node's own
//! link at the old one, which drops nodes that others inserted in between; and it leaves the loop
//! over the heights after the first of them. Here every retry sets the node's link first.

use std::cmp::Ordering::Less;
use std::ptr::NonNull;

use super::list::{List, MAX_HEIGHT, Splice};
use super::{Node, NodeRef, SkipList};
use crate::entry::SeqNo;
use crate::head::head_of;

/// Inserts nodes in ascending order, and remembers the place of the last one.
pub(crate) struct ListMultiInsert<'a> {
    list: &'a SkipList,
    splice: Option<Splice>,
}

impl SkipList {
    /// Starts a multi-insert.
    pub(crate) fn multi_insert(&self) -> ListMultiInsert<'_> {
        ListMultiInsert { list: self, splice: None }
    }
}

impl ListMultiInsert<'_> {
    /// Links a node that comes after all nodes this multi-insert has linked.
    ///
    /// # Safety
    /// The node was allocated by [`SkipList::allocate`] of this list, has no versions or is
    /// permanent, and is linked for the first time.
    pub(crate) unsafe fn link(&mut self, node: NonNull<Node>) {
        // SAFETY: the caller guarantees that the node lies in this list's arena and is not refilled
        // any more.
        let inserted = unsafe { NodeRef::new(node) };
        let (key, seq) = (inserted.key(), inserted.seq());
        let head = head_of(key);
        let list = &self.list.list;
        list.grow(&self.list.arena, inserted.height());
        let mut splice = match self.splice.take() {
            Some(splice) => list.follow(splice, key, seq, head),
            None => list.splice(key, seq),
        };
        self.list.link_at(inserted, &mut splice);
        // The next key comes after this node.
        splice.previous.iter_mut().take(inserted.height()).for_each(|previous| *previous = node);
        self.splice = Some(splice);
    }
}

impl List {
    /// Moves the splice of an earlier entry to `(key, seq)`. The head of the list has all links.
    fn follow(&self, mut splice: Splice, key: &[u8], seq: SeqNo, head: u64) -> Splice {
        debug_assert!(self.head_of_level(MAX_HEIGHT - 1) == self.head_of_level(0));
        let mut above: Option<NodeRef<'_>> = None;
        for level in (0..self.height()).rev() {
            // SAFETY: the splice holds linked nodes or the head of this list (list invariants 1 and
            // 3).
            let own = unsafe { NodeRef::new(splice.previous[level]) };
            // Start from the larger of the two predecessors: the node reached on the level above, if the search
            // moved there, may be beyond the old place on this level.
            let start = above.filter(|above| self.is_after(*above, own)).unwrap_or(own);
            let (before, next) = self.advance(start, level, key, seq, head);
            let has_moved = before != own.as_ptr();
            // SAFETY: `advance` returns a linked node or the head of this list (list invariants 1
            // and 3).
            above = has_moved.then(|| unsafe { NodeRef::new(before) });
            splice.previous[level] = before;
            splice.next[level] = next;
        }
        splice
    }

    /// Returns true if `node` comes after `other`; the head comes before all other nodes.
    fn is_after(&self, node: NodeRef<'_>, other: NodeRef<'_>) -> bool {
        !self.is_head(node)
            && (self.is_head(other) || other.compare(node.key(), node.seq()) == Less)
    }
}
