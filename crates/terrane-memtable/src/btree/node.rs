//! Nodes of the B-link tree, and optimistic reads of them.
//!
//! A node is a sorted array of entries, each with the head of its key. An inner node has one child
//! before its first entry and one after each entry. Its entries are *separators*: nothing in the
//! subtree of the child after a separator is smaller than the separator. Every node links to its
//! right neighbour and names the separator of that neighbour: its *high* entry, which is not in the
//! node. A search beyond the high entry moves right. The separator of a leaf is its first entry at
//! the time of the split, or a copy of that if entries are removed.
//!
//! A node changes only while it is locked. The lock is the lowest bit of a version counter that
//! rises with each change. A reader loads the counter, reads, and checks that the counter is
//! unchanged. All parts of a node that change are atomics, so a read of a node during a change
//! returns useless values, but is not undefined behaviour; and every pointer that was ever in a
//! node stays valid, because the arena frees nothing.
//!
//! Invariants:
//! 1. `entries[..len]` are sorted, and `heads[i]` is the head of `entries[i]` as `heads_of`
//!    computes it, whenever the counter is even.
//! 2. Pointers in entries, children, `right` and `high` are null or name nodes of the tree's arena.
//!    Entries without versions are never removed or refilled. Neither are separators, which have no
//!    versions in a tree that removes entries. Entries of a leaf that have versions are read under
//!    its lock, or with a pin ([`TreeNodeRef::pin_entry`]).
//! 3. `len <= SLOTS`. The separator of a node never changes, because smaller entries go to its left
//!    neighbour. A leaf that had an entry keeps one, because its last remaining entry is not removed.
//! 4. `heads_of` names heads of the node's tree, which live as long as it does.

mod guard;
mod heads;
mod pinned;

use std::marker::PhantomData;
use std::mem::offset_of;
use std::ptr::{self, NonNull};

use super::heads::Heads;
use crate::arena::Arena;
use crate::prefetch::{LINE_BYTES, prefetch};
use crate::skiplist::{Node, NodeRef};
use crate::sync::{AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence, relax};
pub(super) use guard::TreeNodeGuard;
pub(super) use heads::{NodeTarget, SearchTarget};
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
    /// 0 for a leaf. Written before the node is published, and never again.
    level: usize,
    /// The `Heads` that computed `heads` and `high_head`.
    heads_of: AtomicPtr<Heads>,
    heads: [AtomicU64; SLOTS],
    entries: [AtomicPtr<Node>; SLOTS],
}

/// An inner node.
#[repr(C)]
struct InnerNode {
    node: TreeNode,
    children: [AtomicPtr<TreeNode>; SLOTS + 1],
}

impl TreeNode {
    fn new(level: usize, heads: NonNull<Heads>) -> Self {
        Self {
            version: AtomicU64::new(0),
            len: AtomicUsize::new(0),
            right: AtomicPtr::new(ptr::null_mut()),
            high: AtomicPtr::new(ptr::null_mut()),
            high_head: AtomicU64::new(u64::MAX),
            level,
            heads_of: AtomicPtr::new(heads.as_ptr()),
            heads: std::array::from_fn(|_| AtomicU64::new(0)),
            entries: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
        }
    }

    /// Allocates a node without entries.
    pub(super) fn allocate(
        arena: &Arena,
        level: usize,
        heads: NonNull<Heads>,
    ) -> NonNull<TreeNode> {
        if level == 0 {
            let node = arena.allocate(size_of::<TreeNode>()).cast::<TreeNode>();
            // SAFETY: the allocation is new, has the size of a node, and is aligned to 8.
            unsafe { node.write(TreeNode::new(0, heads)) };
            return node;
        }
        let inner = arena.allocate(size_of::<InnerNode>()).cast::<InnerNode>();
        let children = std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut()));
        // SAFETY: the allocation is new, has the size of an inner node, and is aligned to 8.
        unsafe { inner.write(InnerNode { node: TreeNode::new(level, heads), children }) };
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
    pub(super) fn level(self) -> usize {
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

    /// Prefetches the part of the node that a search reads.
    #[inline]
    pub(super) fn prefetch(self) {
        // Nodes are not aligned to cache lines, so the last part may straddle two.
        let node = self.node.as_ptr().cast::<u8>().cast_const();
        // Half-open, because the compiler does not unroll loops over inclusive ranges.
        for line in 0..offset_of!(TreeNode, entries) / LINE_BYTES + 1 {
            prefetch(node.wrapping_add(line * LINE_BYTES));
        }
    }

    /// Prefetches the part of a leaf that an insert changes and a search does not read.
    #[inline]
    pub(super) fn prefetch_entries(self) {
        let node = self.node.as_ptr().cast::<u8>().cast_const();
        for line in
            offset_of!(TreeNode, entries) / LINE_BYTES + 1..size_of::<TreeNode>() / LINE_BYTES + 1
        {
            prefetch(node.wrapping_add(line * LINE_BYTES));
        }
    }

    /// Prefetches the entry at an index, if there is one.
    #[inline]
    pub(super) fn prefetch_at(self, index: usize) {
        // The entry may have changed since; it is only a hint.
        if let Some(entry) = self.node().entries.get(index) {
            prefetch(entry.load(Ordering::Relaxed).cast());
        }
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

    /// Returns the counter, which is odd while the node is being changed.
    #[inline]
    pub(super) fn version(self) -> u64 {
        // Acquire: as in `read_version`.
        self.node().version.load(Ordering::Acquire)
    }

    /// Returns an error if the node has changed since its counter was `version`.
    #[inline]
    pub(super) fn check(self, version: u64) -> Result<(), NodeChanged> {
        // Acquire pairs with the release fence in `lock`: if an earlier read saw a change, this
        // load sees at least the odd counter of that change.
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

    /// Returns the high entry.
    #[inline]
    pub(super) fn high(self) -> Option<NodeRef<'a>> {
        self.record(&self.node().high)
    }
}
