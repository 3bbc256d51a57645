//! A sorted list of nodes with towers of links, without the arena that they lie in.
//!
//! The skip-list is one such list, a hashed memtable has one in each bucket. So that a list of a
//! few nodes costs little, its head has few links; a second head, with all of them, is made when a
//! node is first taller than that.
//!
//! Invariants:
//! 1. All nodes lie in an arena that outlives the list, by [`List::new`].
//! 2. `tall` is null, or a node of the largest height that is set once, before `height` exceeds
//!    the height of `head`.

use std::cmp::Ordering::Less;
use std::ptr::{self, NonNull};

use super::node::{Layout, Node, NodeRef};
use crate::arena::Arena;
use crate::entry::{Entry, EntryKind, SeqNo};
use crate::head::head_of;
use crate::sync::{AtomicPtr, AtomicUsize, Ordering};

/// The largest height of any node.
pub(crate) const MAX_HEIGHT: usize = 20;

/// What a head holds.
const NOTHING: Entry<'static> = Entry { key: &[], seq: 0, kind: EntryKind::Tombstone, value: &[] };

/// A sorted list.
pub(crate) struct List {
    /// A node before all others, with an empty key.
    head: NonNull<Node>,
    /// Such a node for the levels that `head` has no links for.
    tall: AtomicPtr<Node>,
    /// Heights in use; searches start below it.
    height: AtomicUsize,
}

/// For each height, the last node before a key and what its link names.
pub(crate) struct Splice {
    pub(super) previous: [NonNull<Node>; MAX_HEIGHT],
    pub(super) next: [*mut Node; MAX_HEIGHT],
}

impl List {
    /// An empty list whose head has `height` links.
    ///
    /// # Safety
    /// The arena outlives the list and every position in it, and all nodes that are inserted lie
    /// in it and have the same layout.
    pub(crate) unsafe fn new(arena: &Arena, layout: Layout, height: usize) -> Self {
        let head = Node::allocate(arena, layout, height, &NOTHING);
        let tall = AtomicPtr::new(ptr::null_mut());
        Self { head, tall, height: AtomicUsize::new(1) }
    }

    /// Sees to it that nodes of `height` can be inserted.
    pub(crate) fn grow(&self, arena: &Arena, height: usize) {
        if height > self.head().height() && self.tall.load(Ordering::Relaxed).is_null() {
            let tall = Node::allocate(arena, self.head().layout(), MAX_HEIGHT, &NOTHING);
            // Release: what follows it sees a node that is written. If another thread was faster,
            // its node is as good.
            let _ = self.tall.compare_exchange(
                ptr::null_mut(),
                tall.as_ptr(),
                Ordering::Release,
                Ordering::Relaxed,
            );
        }
        // Release pairs with the acquire in `height`: who sees the new height sees the head that it
        // needs. Who sees the old height only takes more steps.
        self.height.fetch_max(height, Ordering::Release);
    }

    pub(super) fn height(&self) -> usize {
        self.height.load(Ordering::Acquire)
    }

    #[inline]
    fn head(&self) -> NodeRef<'_> {
        // SAFETY: invariant 1.
        unsafe { NodeRef::new(self.head) }
    }

    #[inline]
    pub(crate) fn deref(&self, node: *mut Node) -> Option<NodeRef<'_>> {
        // SAFETY: links name nodes of this list, or nothing; invariant 1.
        NonNull::new(node).map(|node| unsafe { NodeRef::new(node) })
    }

    /// The node before all others that has a link of `level`; the level is below the height of the
    /// first head.
    pub(super) fn head_of_level(&self, level: usize) -> NonNull<Node> {
        debug_assert!(level < self.head().height());
        self.head
    }

    /// Where a search that begins below `height` does so.
    #[inline]
    fn begin(&self, height: usize) -> NodeRef<'_> {
        let head = self.head();
        if height <= head.height() {
            return head;
        }
        // Acquire pairs with the release in `grow`. By invariant 2 it is there.
        self.deref(self.tall.load(Ordering::Acquire)).unwrap_or(head)
    }

    /// From where to go on at `level` after `previous` of the level above.
    #[inline]
    fn below<'a>(&'a self, previous: NodeRef<'a>, level: usize) -> NodeRef<'a> {
        // The tall head has links for all levels, but only those above the head's are in use.
        let head = self.head();
        let is_last = level + 1 == head.height();
        if is_last && ptr::eq(previous.as_ptr().as_ptr(), self.tall.load(Ordering::Relaxed)) {
            return head;
        }
        previous
    }

    pub(super) fn is_head(&self, node: NodeRef<'_>) -> bool {
        node.as_ptr() == self.head
    }

    /// Links a node that was made in the arena of this list, with `key`, `seq` and `height`, for
    /// which the list has [grown](Self::grow). The splice is brought up to date where it is not.
    pub(crate) fn link(
        &self,
        node: NonNull<Node>,
        height: usize,
        key: &[u8],
        seq: SeqNo,
        splice: &mut Splice,
    ) {
        let head = head_of(key);
        // SAFETY: made in this list's arena.
        let inserted = unsafe { NodeRef::new(node) };
        for level in 0..height {
            loop {
                let (previous, next) = (splice.previous[level], splice.next[level]);
                // SAFETY: the splice holds nodes of this list.
                let link = unsafe { NodeRef::new(previous) }.link(level);
                // The bound of the link before is one for the link after, see `Link::head`.
                let bound = link.head.load(Ordering::Relaxed);
                let own = inserted.link(level);
                own.next.store(next, Ordering::Relaxed);
                own.head.store(if next.is_null() { u64::MAX } else { bound }, Ordering::Relaxed);
                if link.insert(next, node, head) {
                    break;
                }
                // SAFETY: as above.
                let previous = unsafe { NodeRef::new(previous) };
                (splice.previous[level], splice.next[level]) =
                    self.advance(previous, level, key, seq, head);
            }
        }
    }

    /// The first node at or after `(key, seq)`.
    pub(crate) fn first_at_or_after(&self, key: &[u8], seq: SeqNo) -> Option<NodeRef<'_>> {
        self.around(key, seq).1
    }

    /// The last node before `(key, seq)`, or the head, and the first one at or after it.
    pub(super) fn around(&self, key: &[u8], seq: SeqNo) -> (NodeRef<'_>, Option<NodeRef<'_>>) {
        let (head, height) = (head_of(key), self.height());
        let mut previous = self.begin(height);
        for level in (1..height).rev() {
            previous = self.below(previous, level);
            // SAFETY: `advance` returns nodes of this list.
            previous = unsafe { NodeRef::new(self.advance(previous, level, key, seq, head).0) };
        }
        previous = self.below(previous, 0);
        let (previous, next) = self.advance(previous, 0, key, seq, head);
        // SAFETY: as above.
        (unsafe { NodeRef::new(previous) }, self.deref(next))
    }

    /// The last node before `(key, seq)`.
    pub(crate) fn last_before(&self, key: &[u8], seq: SeqNo) -> Option<NodeRef<'_>> {
        let (head, height) = (head_of(key), self.height());
        let mut previous = self.begin(height);
        for level in (0..height).rev() {
            previous = self.below(previous, level);
            // SAFETY: `advance` returns nodes of this list.
            previous = unsafe { NodeRef::new(self.advance(previous, level, key, seq, head).0) };
        }
        (!self.is_head(previous)).then_some(previous)
    }

    pub(crate) fn first(&self) -> Option<NodeRef<'_>> {
        self.deref(self.head().link(0).load().0)
    }

    pub(crate) fn last(&self) -> Option<NodeRef<'_>> {
        let height = self.height();
        let mut previous = self.begin(height);
        for level in (0..height).rev() {
            previous = self.below(previous, level);
            while let Some(next) = self.deref(previous.link(level).load().0) {
                previous = next;
            }
        }
        (!self.is_head(previous)).then_some(previous)
    }

    /// From `previous`, which is before `(key, seq)`: the last such node of the level, and what
    /// its link names.
    #[inline]
    pub(super) fn advance<'a>(
        &'a self,
        mut previous: NodeRef<'a>,
        level: usize,
        key: &[u8],
        seq: SeqNo,
        head: u64,
    ) -> (NonNull<Node>, *mut Node) {
        loop {
            let (next, bound) = previous.link(level).load();
            if bound > head {
                return (previous.as_ptr(), next);
            }
            match self.deref(next) {
                Some(node) if node.compare(key, seq) == Less => previous = node,
                _ => return (previous.as_ptr(), next),
            }
        }
    }

    /// Where `(key, seq)` belongs, at every height.
    pub(crate) fn splice(&self, key: &[u8], seq: SeqNo) -> Splice {
        let (head, height) = (head_of(key), self.height());
        let mut splice =
            Splice { previous: [self.head; MAX_HEIGHT], next: [ptr::null_mut(); MAX_HEIGHT] };
        let mut previous = self.begin(height);
        for level in (0..height).rev() {
            previous = self.below(previous, level);
            let (before, next) = self.advance(previous, level, key, seq, head);
            splice.previous[level] = before;
            splice.next[level] = next;
            // SAFETY: `advance` returns nodes of this list.
            previous = unsafe { NodeRef::new(before) };
        }
        splice
    }
}
