//! A sorted list of nodes with towers of links, without the arena that owns them.
//!
//! The skip-list is one such list, and a hashed memtable has one in each bucket. The head of a list
//! has few links, so that a list of a few nodes costs little; a second head with all links is
//! allocated for the first node that is taller.
//!
//! Invariants:
//! 1. All nodes lie in an arena that outlives the list, because callers of [`List::new`] guarantee
//!    it.
//! 2. `tall` is null, or a node of the largest height. It is set once, before `height` exceeds the
//!    height of `head`.
//! 3. A linked node is not refilled: it has no versions, or is permanent because FloDB makes a node
//!    permanent before it links it (see [`super::versions`]).

use std::cmp::Ordering::Less;
use std::ptr::{self, NonNull};

use super::node::{Layout, Node, NodeRef};
use crate::arena::Arena;
use crate::entry::{Entry, EntryKind, SeqNo};
use crate::head::head_of;
use crate::sync::{AtomicPtr, AtomicUsize, Ordering};

/// The largest height of any node.
pub(crate) const MAX_HEIGHT: usize = 20;

/// The contents of a head.
const NOTHING: Entry<'static> = Entry { key: &[], seq: 0, kind: EntryKind::Tombstone, value: &[] };

/// A sorted list.
pub(crate) struct List {
    /// A node before all others, with an empty key.
    head: NonNull<Node>,
    /// A second head, for the levels above the height of `head`.
    tall: AtomicPtr<Node>,
    /// The number of levels in use; searches start on the highest.
    height: AtomicUsize,
}

/// For each height, the last node before a key, and the node that its link names.
pub(crate) struct Splice {
    pub(super) previous: [NonNull<Node>; MAX_HEIGHT],
    pub(super) next: [*mut Node; MAX_HEIGHT],
}

impl List {
    /// # Safety
    /// The arena outlives the list and every position in it. All nodes that are inserted lie in it,
    /// have the same layout, and are not refilled once they are linked.
    pub(crate) unsafe fn new(arena: &Arena, layout: Layout, height: usize) -> Self {
        let head = Node::allocate(arena, layout, height, &NOTHING);
        let tall = AtomicPtr::new(ptr::null_mut());
        Self { head, tall, height: AtomicUsize::new(1) }
    }

    /// Prepares the list for nodes of `height`.
    pub(crate) fn grow(&self, arena: &Arena, height: usize) {
        if height > self.head().height() && self.tall.load(Ordering::Relaxed).is_null() {
            let tall = Node::allocate(arena, self.head().layout(), MAX_HEIGHT, &NOTHING);
            // Release pairs with the acquire in `begin`: the head is seen filled. If another thread
            // was faster, its head serves as well. Relaxed for the check above, because a stale
            // null only costs an allocation.
            let _ = self.tall.compare_exchange(
                ptr::null_mut(),
                tall.as_ptr(),
                Ordering::Release,
                Ordering::Relaxed,
            );
        }
        // Release pairs with the acquire in `height`: a search that sees the new height sees the
        // head that it needs (invariant 2). One that sees the old height only takes more steps.
        self.height.fetch_max(height, Ordering::Release);
    }

    pub(super) fn height(&self) -> usize {
        // Acquire pairs with the release in `grow`.
        self.height.load(Ordering::Acquire)
    }

    #[inline]
    fn head(&self) -> NodeRef<'_> {
        // SAFETY: invariant 1; a head is never refilled.
        unsafe { NodeRef::new(self.head) }
    }

    #[inline]
    pub(crate) fn deref(&self, node: *mut Node) -> Option<NodeRef<'_>> {
        // SAFETY: `node` is null or comes from a link of this list, so its arena lives (invariant
        // 1) and it is not refilled (invariant 3).
        NonNull::new(node).map(|node| unsafe { NodeRef::new(node) })
    }

    /// The first head, which has a link of `level` because `level` is below its height.
    pub(super) fn head_of_level(&self, level: usize) -> NonNull<Node> {
        debug_assert!(level < self.head().height());
        self.head
    }

    /// The head from which a search of `height` levels starts.
    #[inline]
    fn begin(&self, height: usize) -> NodeRef<'_> {
        let head = self.head();
        if height <= head.height() {
            return head;
        }
        // Acquire pairs with the release in `grow`. `tall` is set by now (invariant 2).
        self.deref(self.tall.load(Ordering::Acquire)).unwrap_or(head)
    }

    /// Returns the node from which a search continues on `level` after it reached `previous` on the
    /// level above.
    #[inline]
    fn below<'a>(&'a self, previous: NodeRef<'a>, level: usize) -> NodeRef<'a> {
        // The tall head has links for all levels, but only those above the first head's are in use.
        // Relaxed: the pointer is only compared, and `begin` acquired it.
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

    /// Links a node of this list's arena at every level below its `height`, for which the list has
    /// [grown](Self::grow). Corrects `splice` where other inserts have outdated it.
    pub(crate) fn link(
        &self,
        node: NonNull<Node>,
        height: usize,
        key: &[u8],
        seq: SeqNo,
        splice: &mut Splice,
    ) {
        let head = head_of(key);
        // SAFETY: the node lies in this list's arena (invariant 1), and only this thread can refill
        // it before it is linked, which it does not.
        let inserted = unsafe { NodeRef::new(node) };
        for level in 0..height {
            loop {
                let (previous, next) = (splice.previous[level], splice.next[level]);
                // SAFETY: a splice holds linked nodes or heads of this list (invariants 1 and 3).
                let link = unsafe { NodeRef::new(previous) }.link(level);
                // The bound of the previous link also bounds the new one, see `Link::head`. Relaxed
                // here and below: the exchange in `insert` publishes the node's own link.
                let bound = link.head.load(Ordering::Relaxed);
                let own = inserted.link(level);
                own.next.store(next, Ordering::Relaxed);
                own.head.store(if next.is_null() { u64::MAX } else { bound }, Ordering::Relaxed);
                if link.insert(next, node, head) {
                    break;
                }
                // SAFETY: a splice holds linked nodes or heads of this list (invariants 1 and 3).
                let previous = unsafe { NodeRef::new(previous) };
                (splice.previous[level], splice.next[level]) =
                    self.advance(previous, level, key, seq, head);
            }
        }
    }

    /// Returns the first node at or after `(key, seq)`.
    pub(crate) fn first_at_or_after(&self, key: &[u8], seq: SeqNo) -> Option<NodeRef<'_>> {
        self.around(key, seq).1
    }

    /// Returns the last node before `(key, seq)`, or the head, and the first node not before it.
    pub(super) fn around(&self, key: &[u8], seq: SeqNo) -> (NodeRef<'_>, Option<NodeRef<'_>>) {
        let (head, height) = (head_of(key), self.height());
        let mut previous = self.begin(height);
        for level in (1..height).rev() {
            previous = self.below(previous, level);
            // SAFETY: `advance` returns a linked node or a head of this list (invariants 1 and 3).
            previous = unsafe { NodeRef::new(self.advance(previous, level, key, seq, head).0) };
        }
        previous = self.below(previous, 0);
        let (previous, next) = self.advance(previous, 0, key, seq, head);
        // SAFETY: `advance` returns a linked node or a head of this list (invariants 1 and 3).
        (unsafe { NodeRef::new(previous) }, self.deref(next))
    }

    /// Returns the last node before `(key, seq)`.
    pub(crate) fn last_before(&self, key: &[u8], seq: SeqNo) -> Option<NodeRef<'_>> {
        let (head, height) = (head_of(key), self.height());
        let mut previous = self.begin(height);
        for level in (0..height).rev() {
            previous = self.below(previous, level);
            // SAFETY: `advance` returns a linked node or a head of this list (invariants 1 and 3).
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

    /// Walks `level` from `previous`, which is before `(key, seq)`. Returns the last node before it
    /// and the node its link names.
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

    /// Finds the position of `(key, seq)` at every height.
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
            // SAFETY: `advance` returns a linked node or a head of this list (invariants 1 and 3).
            previous = unsafe { NodeRef::new(before) };
        }
        splice
    }
}
