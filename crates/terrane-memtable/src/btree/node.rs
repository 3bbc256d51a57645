//! Nodes of the B-link tree, and how they are read while they change.
//!
//! A node is a sorted array of entries, each with the head of its key. An inner node has a child
//! before its first entry and one behind each; the entry is the first of that child's subtree. Every
//! node knows the node to its right, and the first entry of that: its *high* entry, which is not in
//! it. What is sought beyond the high entry is sought to the right.
//!
//! A node changes only while it is locked. The lock is the lowest bit of a counter that rises with
//! each change: who reads remembers the counter, reads, and looks whether it is still the same.
//! Everything in a node that changes is an atomic, so that reading what is being written is only
//! useless, not undefined; and every pointer that was ever in a node stays good, as nothing is
//! freed before the arena.
//!
//! Invariants:
//! 1. `entries[..len]` are sorted, and `heads[i]` is the head of `entries[i]`, whenever the counter
//!    is even.
//! 2. Pointers in slots, children, `right` and `high` are null or point into the arena.
//! 3. `len <= SLOTS`; the first entry of a node that is not the leftmost never changes.

use std::cmp::Ordering::{Greater, Less};
use std::marker::PhantomData;
use std::mem::offset_of;
use std::ptr::{self, NonNull};

use crate::arena::Arena;
use crate::entry::SeqNo;
use crate::head::head_of;
use crate::prefetch::{LINE_BYTES, prefetch};
use crate::skiplist::{Node, NodeRef};
use crate::sync::{AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence, relax};

/// Entries in a node.
#[cfg(not(any(loom, miri)))]
pub(super) const SLOTS: usize = 64;
/// Few, so that the small tests of loom and Miri see splits.
#[cfg(any(loom, miri))]
pub(super) const SLOTS: usize = 3;

/// A node; an inner one is followed by its children.
#[repr(C)]
pub(super) struct TreeNode {
    /// Twice the number of changes, plus one while it is being changed.
    version: AtomicU64,
    len: AtomicUsize,
    /// The node to the right; null for the last one.
    right: AtomicPtr<TreeNode>,
    /// The first entry of the node to the right; null for the last one.
    high: AtomicPtr<Node>,
    high_head: AtomicU64,
    /// 0 for a leaf.
    level: usize,
    heads: [AtomicU64; SLOTS],
    entries: [AtomicPtr<Node>; SLOTS],
}

/// An inner node.
#[repr(C)]
struct InnerNode {
    node: TreeNode,
    children: [AtomicPtr<TreeNode>; SLOTS + 1],
}

/// What is sought: a place in the order of entries.
#[derive(Clone, Copy)]
pub(super) struct SearchTarget<'k> {
    pub(super) head: u64,
    pub(super) key: &'k [u8],
    pub(super) seq: SeqNo,
}

impl<'k> SearchTarget<'k> {
    #[inline]
    pub(super) fn new(key: &'k [u8], seq: SeqNo) -> Self {
        Self { head: head_of(key), key, seq }
    }
}

impl TreeNode {
    fn new(level: usize) -> Self {
        Self {
            version: AtomicU64::new(0),
            len: AtomicUsize::new(0),
            right: AtomicPtr::new(ptr::null_mut()),
            high: AtomicPtr::new(ptr::null_mut()),
            high_head: AtomicU64::new(u64::MAX),
            level,
            heads: std::array::from_fn(|_| AtomicU64::new(0)),
            entries: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
        }
    }

    /// A node without entries.
    pub(super) fn allocate(arena: &Arena, level: usize) -> NonNull<TreeNode> {
        if level == 0 {
            let node = arena.allocate(size_of::<TreeNode>()).cast::<TreeNode>();
            // SAFETY: freshly allocated for a node, and aligned to 8.
            unsafe { node.write(TreeNode::new(0)) };
            return node;
        }
        let inner = arena.allocate(size_of::<InnerNode>()).cast::<InnerNode>();
        let children = std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut()));
        // SAFETY: freshly allocated for an inner node, and aligned to 8.
        unsafe { inner.write(InnerNode { node: TreeNode::new(level), children }) };
        inner.cast()
    }
}

/// A node of a tree whose arena lives for `'a`.
#[derive(Clone, Copy)]
pub(super) struct TreeNodeRef<'a> {
    node: NonNull<TreeNode>,
    arena: PhantomData<&'a Arena>,
}

/// A node was changed while it was read; what was read is worth nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeChanged;

/// Where a search in a leaf has come to.
#[derive(Clone, Copy)]
pub(super) struct LeafEntry<'a> {
    pub(super) leaf: TreeNodeRef<'a>,
    pub(super) version: u64,
    pub(super) index: usize,
    pub(super) record: NodeRef<'a>,
}

impl<'a> LeafEntry<'a> {
    /// The entry before this one, unless its head is another than `head`. An error if it is in
    /// another leaf, or if this leaf has changed.
    pub(super) fn before(self, head: u64) -> Result<Option<NodeRef<'a>>, NodeChanged> {
        let before = self.index.checked_sub(1).ok_or(NodeChanged)?;
        let is_other = self.leaf.head(before) != head;
        let entry = if is_other { None } else { self.leaf.entry(before) };
        self.leaf.check(self.version)?;
        Ok(entry)
    }
}

impl<'a> TreeNodeRef<'a> {
    /// # Safety
    /// `node` was made by [`TreeNode::allocate`] in an arena that lives for `'a`.
    #[inline]
    pub(super) unsafe fn new(node: NonNull<TreeNode>) -> Self {
        Self { node, arena: PhantomData }
    }

    #[inline]
    pub(super) fn as_ptr(self) -> NonNull<TreeNode> {
        self.node
    }

    #[inline]
    fn node(self) -> &'a TreeNode {
        // SAFETY: by `new`, and nodes change only through their atomics.
        unsafe { self.node.as_ref() }
    }

    #[inline]
    pub(super) fn level(self) -> usize {
        self.node().level
    }

    #[inline]
    fn children(self) -> &'a [AtomicPtr<TreeNode>; SLOTS + 1] {
        debug_assert!(self.level() > 0);
        // SAFETY: `allocate` makes nodes above level 0 as inner ones.
        let inner: &'a InnerNode = unsafe { self.node.cast::<InnerNode>().as_ref() };
        &inner.children
    }

    /// Asks for the part of the node that a search looks at.
    #[inline]
    pub(super) fn prefetch(self) {
        // Nodes lie anywhere in lines: what begins in one ends in the next.
        let node = self.node.as_ptr().cast::<u8>().cast_const();
        for line in 0..=offset_of!(TreeNode, entries) / LINE_BYTES {
            prefetch(node.wrapping_add(line * LINE_BYTES));
        }
    }

    /// Asks for the part of a leaf that changes with an insert, beside what a search looks at.
    #[inline]
    pub(super) fn prefetch_entries(self) {
        let node = self.node.as_ptr().cast::<u8>().cast_const();
        for line in
            offset_of!(TreeNode, entries) / LINE_BYTES + 1..=size_of::<TreeNode>() / LINE_BYTES
        {
            prefetch(node.wrapping_add(line * LINE_BYTES));
        }
    }

    /// Asks for the first entry with this head, if there is one: what is inserted beside it is
    /// compared with it.
    #[inline]
    pub(super) fn prefetch_entry(self, head: u64) {
        if cfg!(any(loom, miri)) {
            // Nothing comes of it there.
            return;
        }
        let at = self.lower_bound(head);
        if at < SLOTS && self.head(at) == head {
            // Whatever is there by now: it is only a hint.
            prefetch(self.node().entries[at].load(Ordering::Relaxed).cast());
        }
    }

    /// The counter, once the node is not being changed.
    #[inline]
    pub(super) fn read_version(self) -> u64 {
        let mut tries = 0;
        loop {
            // Acquire: what was changed before is seen.
            let version = self.node().version.load(Ordering::Acquire);
            if version.is_multiple_of(2) {
                return version;
            }
            relax(&mut tries);
        }
    }

    /// Whether what was read since the counter was `version` holds.
    #[inline]
    pub(super) fn check(self, version: u64) -> Result<(), NodeChanged> {
        // The reads before must be done before the counter is read again.
        fence(Ordering::Acquire);
        let now = self.node().version.load(Ordering::Relaxed);
        if now == version { Ok(()) } else { Err(NodeChanged) }
    }

    /// Locks the node. Whoever reads it meanwhile will read again.
    pub(super) fn lock(self) -> TreeNodeGuard<'a> {
        let version = &self.node().version;
        let mut tries = 0;
        loop {
            let current = version.load(Ordering::Relaxed);
            let lock = || {
                version.compare_exchange_weak(
                    current,
                    current + 1,
                    Ordering::Acquire,
                    Ordering::Relaxed,
                )
            };
            if current.is_multiple_of(2) && lock().is_ok() {
                // No change may be seen before the odd counter is.
                fence(Ordering::Release);
                return TreeNodeGuard { node: self, version: current, has_changed: false };
            }
            relax(&mut tries);
        }
    }

    #[inline]
    pub(super) fn len(self) -> usize {
        // No more than there are slots, also while it is being changed.
        self.node().len.load(Ordering::Relaxed).min(SLOTS)
    }

    #[inline]
    fn record(self, slot: &AtomicPtr<Node>) -> Option<NodeRef<'a>> {
        // Acquire pairs with the release that put the record there.
        let record = NonNull::new(slot.load(Ordering::Acquire))?;
        // SAFETY: invariant 2.
        Some(unsafe { NodeRef::new(record) })
    }

    #[inline]
    pub(super) fn entry(self, index: usize) -> Option<NodeRef<'a>> {
        self.record(self.node().entries.get(index)?)
    }

    #[inline]
    pub(super) fn right(self) -> Option<TreeNodeRef<'a>> {
        let right = NonNull::new(self.node().right.load(Ordering::Acquire))?;
        // SAFETY: invariant 2.
        Some(unsafe { TreeNodeRef::new(right) })
    }

    /// The child of an inner node that is behind `index` entries.
    #[inline]
    pub(super) fn child(self, index: usize) -> Option<TreeNodeRef<'a>> {
        let child = NonNull::new(self.children().get(index)?.load(Ordering::Acquire))?;
        // SAFETY: invariant 2.
        Some(unsafe { TreeNodeRef::new(child) })
    }

    /// Whether the target is at or beyond the high entry: then it belongs to the right.
    #[inline]
    pub(super) fn is_beyond(self, target: &SearchTarget<'_>) -> bool {
        let node = self.node();
        let head = node.high_head.load(Ordering::Relaxed);
        if target.head < head {
            return false;
        }
        let high = self.record(&node.high);
        high.is_some_and(|high| {
            target.head > head || high.compare(target.key, target.seq) != Greater
        })
    }

    /// Whether the target is beyond the high entry, and not that entry itself.
    #[inline]
    pub(super) fn is_after_high(self, target: &SearchTarget<'_>) -> bool {
        let high = self.record(&self.node().high);
        high.is_some_and(|high| high.compare(target.key, target.seq) == Less)
    }

    /// Whether the entry at `index` is the target. Most are told by their head, which is near.
    #[inline]
    pub(super) fn is_at(self, index: usize, target: &SearchTarget<'_>) -> bool {
        index < self.len()
            && self.head(index) == target.head
            && self.entry(index).is_some_and(|entry| entry.compare(target.key, target.seq).is_eq())
    }

    /// How many entries are before the target.
    #[inline]
    pub(super) fn count_before(self, target: &SearchTarget<'_>) -> usize {
        let mut at = self.lower_bound(target.head);
        let len = self.len();
        // Among equal heads the entries decide; there are rarely more than one.
        while at < len && self.head(at) == target.head {
            match self.entry(at) {
                Some(entry) if entry.compare(target.key, target.seq) == Less => at += 1,
                _ => break,
            }
        }
        at
    }

    #[inline]
    fn head(self, index: usize) -> u64 {
        self.node().heads[index].load(Ordering::Relaxed)
    }

    /// How many heads are below `head`.
    #[inline]
    fn lower_bound(self, head: u64) -> usize {
        let (mut from, mut len) = (0, self.len());
        while len > 0 {
            let half = len / 2;
            let is_below = self.head(from + half) < head;
            from = if is_below { from + half + 1 } else { from };
            len = if is_below { len - half - 1 } else { half };
        }
        from
    }
}

/// A node that is locked by this thread. Unlocked when it is dropped.
pub(super) struct TreeNodeGuard<'a> {
    pub(super) node: TreeNodeRef<'a>,
    version: u64,
    has_changed: bool,
}

impl<'a> TreeNodeGuard<'a> {
    /// Puts an entry at `index`, and in an inner node a child behind it.
    pub(super) fn insert(
        &mut self,
        index: usize,
        head: u64,
        record: NonNull<Node>,
        child: Option<TreeNodeRef<'a>>,
    ) {
        self.has_changed = true;
        let node = self.node.node();
        let len = self.node.len();
        debug_assert!(index <= len && len < SLOTS);
        for at in (index..len).rev() {
            self.copy_slot(at, self.node, at + 1);
        }
        node.heads[index].store(head, Ordering::Relaxed);
        // Release: the record is seen whole by who follows the pointer.
        node.entries[index].store(record.as_ptr(), Ordering::Release);
        if let Some(child) = child {
            let children = self.node.children();
            for at in (index + 1..=len).rev() {
                let moved = children[at].load(Ordering::Relaxed);
                children[at + 1].store(moved, Ordering::Release);
            }
            children[index + 1].store(child.as_ptr().as_ptr(), Ordering::Release);
        }
        node.len.store(len + 1, Ordering::Relaxed);
    }

    /// Copies an entry of this node to a slot of `to`.
    fn copy_slot(&self, from: usize, to: TreeNodeRef<'a>, at: usize) {
        let (source, target) = (self.node.node(), to.node());
        target.heads[at].store(self.node.head(from), Ordering::Relaxed);
        let record = source.entries[from].load(Ordering::Relaxed);
        target.entries[at].store(record, Ordering::Release);
    }

    /// Moves the entries from `middle` on to `right`, which no one else knows yet, and links it to
    /// the right of this node. Returns the first entry of `right` with its head.
    ///
    /// Of an inner node the entry at `middle` is not moved but taken out: its child becomes the
    /// first one of `right`.
    pub(super) fn split(
        &mut self,
        middle: usize,
        right: TreeNodeRef<'a>,
    ) -> Option<(u64, NodeRef<'a>)> {
        self.has_changed = true;
        let (len, is_inner) = (self.node.len(), self.node.level() > 0);
        let (head, high) = (self.node.head(middle), self.node.entry(middle)?);
        let first = middle + usize::from(is_inner);
        for from in first..len {
            self.copy_slot(from, right, from - first);
        }
        if is_inner {
            let (source, target) = (self.node.children(), right.children());
            for from in first..=len {
                let child = source[from].load(Ordering::Relaxed);
                target[from - first].store(child, Ordering::Release);
            }
        }
        right.node().len.store(len - first, Ordering::Relaxed);
        self.node.node().len.store(middle, Ordering::Relaxed);
        self.link(right, head, high);
        Some((head, high))
    }

    /// Links `right`, whose first entry is `high`, between this node and the one to its right.
    pub(super) fn link(&mut self, right: TreeNodeRef<'a>, head: u64, high: NodeRef<'a>) {
        self.has_changed = true;
        let (node, new) = (self.node.node(), right.node());
        new.right.store(node.right.load(Ordering::Relaxed), Ordering::Release);
        new.high.store(node.high.load(Ordering::Relaxed), Ordering::Release);
        new.high_head.store(node.high_head.load(Ordering::Relaxed), Ordering::Relaxed);
        node.high.store(high.as_ptr().as_ptr(), Ordering::Release);
        node.high_head.store(head, Ordering::Relaxed);
        node.right.store(right.as_ptr().as_ptr(), Ordering::Release);
    }

    /// Sets the first child of an inner node that no one else knows yet.
    pub(super) fn set_first_child(&mut self, child: TreeNodeRef<'a>) {
        self.has_changed = true;
        self.node.children()[0].store(child.as_ptr().as_ptr(), Ordering::Release);
    }
}

impl Drop for TreeNodeGuard<'_> {
    fn drop(&mut self) {
        let version = if self.has_changed { self.version + 2 } else { self.version };
        // Release: the changes are seen by who sees the even counter.
        self.node.node().version.store(version, Ordering::Release);
    }
}
