//! Nodes of the B-link tree, and optimistic reads of them.
//!
//! A node is a sorted array of entries, each with the head of its key. An inner node has one child
//! before its first entry and one after each entry. Its entries are *separators*: nothing in the
//! subtree of the child after a separator is smaller than it. Every node links to its right
//! neighbour and names the separator of that neighbour: its *high* entry, which is not in the node. A
//! search beyond the high entry moves right. The separator of a leaf is its first entry at the time
//! of the split, or a copy of that if entries are removed.
//!
//! A node changes only while it is locked. The lock is the lowest bit of a version counter that
//! rises with each change. A reader loads the counter, reads, and checks that the counter is
//! unchanged. All parts of a node that change are atomics, so a read of a node that is being
//! changed returns useless values, not undefined ones; and every pointer that was ever in a node
//! stays valid, because the arena frees nothing.
//!
//! Invariants:
//! 1. `entries[..len]` are sorted, and `heads[i]` is the head of `entries[i]`, whenever the counter
//!    is even.
//! 2. Pointers in entries, children, `right` and `high` are null or name nodes of the tree's arena.
//!    Entries without versions are never removed or refilled, and neither are separators, which have
//!    none in a tree that removes entries. Entries of a leaf that have versions are read with its lock,
//!    or with a pin ([`TreeNodeRef::pin_entry`]).
//! 3. `len <= SLOTS`. The separator of a node never changes, because smaller entries go to its left
//!    neighbour. A leaf that had an entry has one, because the last one of a leaf is not removed.

mod guard;
mod heads_used;
mod pinned;
mod prefetching;

use std::cmp::Ordering::{Greater, Less};
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::{self, NonNull};

use crate::arena::Arena;
use crate::entry::SeqNo;
use crate::skiplist::{Node, NodeRef};
use crate::sync::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence, relax};
pub(super) use guard::TreeNodeGuard;
pub(super) use heads_used::HeadsUsed;
pub(super) use pinned::LeafEntry;
pub(crate) use pinned::PinnedEntry;

/// The maximum number of entries in a node.
#[cfg(not(any(loom, miri)))]
pub(super) const SLOTS: usize = 64;
/// Few, so that the small tests of loom and Miri split nodes.
#[cfg(any(loom, miri))]
pub(super) const SLOTS: usize = 3;

/// A node; in an inner node, children follow.
#[repr(C)]
pub(super) struct TreeNode {
    /// Twice the number of changes, plus one during a change.
    version: AtomicU64,
    len: AtomicUsize,
    /// The right neighbour; null for the last node.
    right: AtomicPtr<TreeNode>,
    /// The separator of the right neighbour; null for the last node.
    high: AtomicPtr<Node>,
    high_head: AtomicU64,
    /// 0 for a leaf. Written before the node is published, and never again, as is `heads_used`.
    level: u32,
    heads_used: HeadsUsed,
    /// The leaf was replaced by one with learned heads: no entries are added to it. Changes once, while the
    /// leaf is locked.
    is_replaced: AtomicBool,
    heads: [AtomicU64; SLOTS],
    entries: [AtomicPtr<Node>; SLOTS],
}

/// An inner node.
#[repr(C)]
struct InnerNode {
    node: TreeNode,
    children: [AtomicPtr<TreeNode>; SLOTS + 1],
}

/// The entry that a search looks for, or the place where it would be.
#[derive(Clone, Copy)]
pub(super) struct SearchTarget<'k> {
    pub(super) head: u64,
    pub(super) key: &'k [u8],
    pub(super) seq: SeqNo,
}

impl TreeNode {
    fn new(level: u32, heads_used: HeadsUsed) -> Self {
        Self {
            version: AtomicU64::new(0),
            len: AtomicUsize::new(0),
            right: AtomicPtr::new(ptr::null_mut()),
            high: AtomicPtr::new(ptr::null_mut()),
            high_head: AtomicU64::new(u64::MAX),
            level,
            heads_used,
            is_replaced: AtomicBool::new(false),
            heads: std::array::from_fn(|_| AtomicU64::new(0)),
            entries: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
        }
    }

    /// Allocates a node without entries.
    pub(super) fn allocate(arena: &Arena, level: u32, heads_used: HeadsUsed) -> NonNull<TreeNode> {
        if level == 0 {
            let node = arena.allocate(size_of::<TreeNode>()).cast::<TreeNode>();
            // SAFETY: the allocation is new, has the size of a node, and is aligned to 8.
            unsafe { node.write(TreeNode::new(0, heads_used)) };
            return node;
        }
        let inner = arena.allocate(size_of::<InnerNode>()).cast::<InnerNode>();
        let children = std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut()));
        let node = TreeNode::new(level, heads_used);
        // SAFETY: the allocation is new, has the size of an inner node, and is aligned to 8.
        unsafe { inner.write(InnerNode { node, children }) };
        inner.cast()
    }
}

/// A node of a tree whose arena lives for `'a`.
#[derive(Clone, Copy)]
pub(super) struct TreeNodeRef<'a> {
    node: NonNull<TreeNode>,
    arena: PhantomData<&'a Arena>,
}

/// A node changed while it was read; the values read are invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeChanged;

impl<'a> TreeNodeRef<'a> {
    /// # Safety
    /// `node` was allocated by [`TreeNode::allocate`] in an arena that lives for `'a`.
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
        // SAFETY: by the contract of `new` the arena lives for `'a`, and shared nodes change only
        // by atomic operations.
        unsafe { self.node.as_ref() }
    }

    #[inline]
    pub(super) fn level(self) -> u32 {
        self.node().level
    }

    #[inline]
    fn children(self) -> &'a [AtomicPtr<TreeNode>; SLOTS + 1] {
        debug_assert!(self.level() > 0);
        // SAFETY: `allocate` makes every node above level 0 an inner one, and callers request
        // children only of nodes above level 0, whose level never changes.
        let inner: &'a InnerNode = unsafe { self.node.cast::<InnerNode>().as_ref() };
        &inner.children
    }

    /// Returns which entries have this head.
    #[inline]
    pub(super) fn equal_heads(self, head: u64) -> Range<usize> {
        let start = self.lower_bound(head);
        let is_any = start < self.len() && self.head(start) == head;
        start..if is_any { self.upper_bound(head).max(start) } else { start }
    }

    /// Waits until the node is not being changed, and returns its counter.
    #[inline]
    pub(super) fn read_version(self) -> u64 {
        let mut tries = 0;
        loop {
            // Acquire pairs with the release in `TreeNodeGuard::drop`: the changes that the counter
            // includes are seen.
            let version = self.node().version.load(Ordering::Acquire);
            if version.is_multiple_of(2) {
                return version;
            }
            relax(&mut tries);
        }
    }

    /// Returns an error if the node has changed since its counter was `version`.
    #[inline]
    pub(super) fn check(self, version: u64) -> Result<(), NodeChanged> {
        // Acquire pairs with the release fence in `lock`: if one of the reads before saw a change,
        // the counter is seen to be at least the odd one of that change.
        fence(Ordering::Acquire);
        let now = self.node().version.load(Ordering::Relaxed);
        if now == version { Ok(()) } else { Err(NodeChanged) }
    }

    /// Locks the node. Concurrent readers retry if it changes.
    pub(super) fn lock(self) -> TreeNodeGuard<'a> {
        let version = &self.node().version;
        let mut tries = 0;
        loop {
            let current = version.load(Ordering::Relaxed);
            let lock = || {
                // Acquire pairs with the release in `TreeNodeGuard::drop`: the changes of earlier
                // holders are seen.
                // SeqCst: this is the writer's first step of invariant 3 of `Versions`.
                version.compare_exchange_weak(
                    current,
                    current + 1,
                    Ordering::SeqCst,
                    Ordering::Relaxed,
                )
            };
            if current.is_multiple_of(2) && lock().is_ok() {
                // Release pairs with the acquire fence in `check`: no change is seen before the odd
                // counter.
                fence(Ordering::Release);
                return TreeNodeGuard { node: self, version: current, has_changed: false };
            }
            relax(&mut tries);
        }
    }

    #[inline]
    pub(super) fn len(self) -> usize {
        // `min` never changes the value (invariant 3); it lets the compiler omit bounds checks.
        // Relaxed: `check` validates the value.
        self.node().len.load(Ordering::Relaxed).min(SLOTS)
    }

    #[inline]
    fn record(self, slot: &AtomicPtr<Node>) -> Option<NodeRef<'a>> {
        // Acquire pairs with the releases in `TreeNodeGuard` that stored the entry: it is seen
        // filled.
        let record = NonNull::new(slot.load(Ordering::Acquire))?;
        // SAFETY: the pointer comes from a node of this tree, so it names a node of the arena. It is
        // a separator, or has no versions, or the caller holds the lock of the leaf (invariant 2).
        Some(unsafe { NodeRef::new(record) })
    }

    #[inline]
    pub(super) fn entry(self, index: usize) -> Option<NodeRef<'a>> {
        self.record(self.node().entries.get(index)?)
    }

    #[inline]
    pub(super) fn right(self) -> Option<TreeNodeRef<'a>> {
        // Acquire pairs with the release in `link`: the neighbour is seen initialized.
        let right = NonNull::new(self.node().right.load(Ordering::Acquire))?;
        // SAFETY: `right` names a node of this tree's arena (invariant 2).
        Some(unsafe { TreeNodeRef::new(right) })
    }

    /// Returns the child of an inner node that follows its first `index` entries.
    #[inline]
    pub(super) fn child(self, index: usize) -> Option<TreeNodeRef<'a>> {
        // Acquire pairs with the releases in `TreeNodeGuard` that stored the child: it is seen
        // initialized.
        let child = NonNull::new(self.children().get(index)?.load(Ordering::Acquire))?;
        // SAFETY: children name nodes of this tree's arena (invariant 2).
        Some(unsafe { TreeNodeRef::new(child) })
    }

    /// Returns true if the target is at or beyond the high entry and so belongs to the right.
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

    /// Returns true if versions of the target's key may begin the right neighbour.
    #[inline]
    pub(super) fn continues_right(self, target: &SearchTarget<'_>) -> bool {
        target.head == self.node().high_head.load(Ordering::Relaxed)
            && self.high().is_some_and(|high| high.key() == target.key)
    }

    /// Returns the high entry.
    #[inline]
    pub(super) fn high(self) -> Option<NodeRef<'a>> {
        self.record(&self.node().high)
    }

    /// Returns true if the target is beyond the high entry, and is not the high entry itself.
    #[inline]
    pub(super) fn is_after_high(self, target: &SearchTarget<'_>) -> bool {
        let high = self.record(&self.node().high);
        high.is_some_and(|high| high.compare(target.key, target.seq) == Less)
    }

    /// Returns true if the entry at `index` is the target. Heads decide most cases, and are
    /// adjacent in memory.
    #[inline]
    pub(super) fn is_at(self, index: usize, target: &SearchTarget<'_>) -> bool {
        index < self.len()
            && self.head(index) == target.head
            && self.entry(index).is_some_and(|entry| entry.compare(target.key, target.seq).is_eq())
    }

    /// Returns whether there is an entry at an index that is before the target.
    #[inline]
    pub(super) fn is_before(self, index: usize, target: &SearchTarget<'_>) -> bool {
        let entry = self.entry(index);
        entry.is_some_and(|entry| entry.compare(target.key, target.seq) == Less)
    }

    /// Returns the number of entries before the target.
    #[inline]
    pub(super) fn count_before(self, target: &SearchTarget<'_>) -> usize {
        let mut from = self.lower_bound(target.head);
        let is_before = |at| self.is_before(at, target);
        // Entries decide among equal heads. Mostly there is one, or the target is its newest version; but
        // keys with a long common prefix fill a node with equal heads.
        if from < self.len() && self.head(from) == target.head && is_before(from) {
            from += 1;
            let mut end = self.upper_bound(target.head);
            while from < end {
                let middle = from.midpoint(end);
                if is_before(middle) { from = middle + 1 } else { end = middle }
            }
        }
        from
    }

    #[inline]
    pub(super) fn head(self, index: usize) -> u64 {
        self.node().heads[index].load(Ordering::Relaxed)
    }

    /// Returns the number of heads below `head`.
    #[inline]
    fn lower_bound(self, head: u64) -> usize {
        self.count_heads(|other| other < head)
    }

    /// Returns the number of heads up to `head`.
    #[inline]
    fn upper_bound(self, head: u64) -> usize {
        self.count_heads(|other| other <= head)
    }

    /// Returns the number of heads that are before a place in their order.
    #[inline]
    fn count_heads(self, is_before: impl Fn(u64) -> bool) -> usize {
        let (mut from, mut len) = (0, self.len());
        while len > 0 {
            let half = len / 2;
            let is_before = is_before(self.head(from + half));
            from = if is_before { from + half + 1 } else { from };
            len = if is_before { len - half - 1 } else { half };
        }
        from
    }
}
