//! Many inserts one after the other (multi-insert: FloDB paper, §4.3, Algorithm 1).
//!
//! Nodes that come in order are each searched for from where the one before went: up from the
//! lowest height until a link passes the key, and down from there. The nearer the keys, the fewer
//! steps. Inserts of others go on meanwhile; since nothing is ever removed, a node that was before
//! a key once is so for ever, and a path that others have overtaken only takes more steps.
//!
//! As printed, the algorithm tries an exchange that failed again with a new place, but leaves the
//! node's own link at the old one, which drops what others put in between; and it leaves the loop
//! over the heights after the first of them. Here every try sets the node's link first.

use std::cmp::Ordering::Less;
use std::ptr::NonNull;

use super::list::{List, MAX_HEIGHT, Splice};
use super::{Node, NodeRef, SkipList};
use crate::entry::SeqNo;
use crate::head::head_of;

/// Where the last insert went.
pub(crate) struct ListMultiInsert<'a> {
    list: &'a SkipList,
    splice: Option<Splice>,
}

impl SkipList {
    /// A place to insert from, one node after the other.
    pub(crate) fn multi_insert(&self) -> ListMultiInsert<'_> {
        ListMultiInsert { list: self, splice: None }
    }
}

impl ListMultiInsert<'_> {
    /// Puts a node into the list, which comes after all that this path has inserted.
    ///
    /// # Safety
    /// The node was made by [`SkipList::allocate`] of this list, and is linked for the first time.
    pub(crate) unsafe fn link(&mut self, node: NonNull<Node>) {
        // SAFETY: made in this list's arena.
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
    /// The splice of `(key, seq)`, from that of an entry before it; of a list whose head has all
    /// links.
    fn follow(&self, mut splice: Splice, key: &[u8], seq: SeqNo, head: u64) -> Splice {
        debug_assert!(self.head_of_level(MAX_HEIGHT - 1) == self.head_of_level(0));
        let height = self.height();
        let mut top = 0;
        while top < height {
            // SAFETY: the splice holds nodes of this list.
            let previous = unsafe { NodeRef::new(splice.previous[top]) };
            let (next, bound) = previous.link(top).load();
            if bound > head {
                break;
            }
            match self.deref(next) {
                Some(node) if node.compare(key, seq) == Less => {
                    splice.previous[top] = node.as_ptr();
                }
                _ => break,
            }
            top += 1;
        }
        let mut above: Option<NodeRef<'_>> = None;
        for level in (0..=top.min(height - 1)).rev() {
            // SAFETY: as above.
            let own = unsafe { NodeRef::new(splice.previous[level]) };
            // The further of the two: where the height above has come to, if it has moved, may be
            // beyond where this one was.
            let start = above.filter(|above| self.is_after(*above, own)).unwrap_or(own);
            let (before, next) = self.advance(start, level, key, seq, head);
            let has_moved = before != own.as_ptr();
            // SAFETY: `advance` returns nodes of this list.
            above = has_moved.then(|| unsafe { NodeRef::new(before) });
            splice.previous[level] = before;
            splice.next[level] = next;
        }
        splice
    }

    /// Whether a node comes after another; the head comes before all.
    fn is_after(&self, node: NodeRef<'_>, other: NodeRef<'_>) -> bool {
        !self.is_head(node)
            && (self.is_head(other) || other.compare(node.key(), node.seq()) == Less)
    }
}
