//! Changes of a locked node.

use std::ptr::NonNull;

use super::{SLOTS, TreeNodeRef};
use crate::skiplist::{Node, NodeRef};
use crate::sync::{AtomicPtr, AtomicU64, Ordering};

/// Exclusive right to change a node, released on drop.
pub(crate) struct TreeNodeGuard<'a> {
    pub(crate) node: TreeNodeRef<'a>,
    pub(super) version: u64,
    pub(super) has_changed: bool,
}

impl<'a> TreeNodeGuard<'a> {
    /// Returns whether the node is as it was when its counter was `version`.
    pub(crate) fn is_unchanged_since(&self, version: u64) -> bool {
        self.version == version && !self.has_changed
    }

    /// Inserts an entry at `index`, and in an inner node a child after it.
    pub(crate) fn insert(
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
        // Iterators, because the compiler would check the bounds of each index.
        let heads = node.heads[index..len].iter().zip(&node.heads[index + 1..=len]);
        let entries = node.entries[index..len].iter().zip(&node.entries[index + 1..=len]);
        for ((head, head_after), (entry, entry_after)) in heads.zip(entries).rev() {
            copy(head, head_after);
            copy_pointer(entry, entry_after);
        }
        node.heads[index].store(head, Ordering::Relaxed);
        // Release, for every entry and child stored here and below, pairs with the acquires in
        // `record`, `child` and `right`: a reader that finds the pointer sees its target
        // initialized, even during the change.
        node.entries[index].store(record.as_ptr(), Ordering::Release);
        if let Some(child) = child {
            let children = self.node.children();
            let after = children[index + 1..=len].iter().zip(&children[index + 2..=len + 1]);
            after.rev().for_each(|(child, child_after)| copy_pointer(child, child_after));
            children[index + 1].store(child.as_ptr().as_ptr(), Ordering::Release);
        }
        node.len.store(len + 1, Ordering::Relaxed);
    }

    /// Replaces the entry at `index`, whose head is the same.
    pub(crate) fn replace(&mut self, index: usize, record: NonNull<Node>) {
        self.has_changed = true;
        self.node.node().entries[index].store(record.as_ptr(), Ordering::Release);
    }

    /// Removes the entry at `index` of a leaf that has others.
    pub(crate) fn remove(&mut self, index: usize) {
        self.has_changed = true;
        let len = self.node.len();
        debug_assert!(index < len && len > 1 && self.node.level() == 0);
        let node = self.node.node();
        let heads = node.heads[index + 1..len].iter().zip(&node.heads[index..len - 1]);
        let entries = node.entries[index + 1..len].iter().zip(&node.entries[index..len - 1]);
        for ((head, head_before), (entry, entry_before)) in heads.zip(entries) {
            copy(head, head_before);
            copy_pointer(entry, entry_before);
        }
        self.node.node().len.store(len - 1, Ordering::Relaxed);
    }

    /// Copies an entry of this node to index `at` of `to`.
    fn copy_slot(&self, from: usize, to: TreeNodeRef<'a>, at: usize) {
        let (source, target) = (self.node.node(), to.node());
        copy(&source.heads[from], &target.heads[at]);
        copy_pointer(&source.entries[from], &target.entries[at]);
    }

    /// Moves the entries from `middle` on to `right`, which no other thread knows yet, and links
    /// `right` to the right of this node. Returns the separator of `right`, which `separator` makes
    /// from its first entry.
    ///
    /// In an inner node, the entry at `middle` moves up: its child becomes the first one of
    /// `right`.
    pub(crate) fn split(
        &mut self,
        middle: usize,
        right: TreeNodeRef<'a>,
        separator: impl FnOnce(NodeRef<'a>) -> NodeRef<'a>,
    ) -> Option<NodeRef<'a>> {
        self.has_changed = true;
        let (len, is_inner) = (self.node.len(), self.node.level() > 0);
        let (head, high) = (self.node.head(middle), separator(self.node.entry(middle)?));
        let first = middle + usize::from(is_inner);
        for from in first..len {
            self.copy_slot(from, right, from - first);
        }
        if is_inner {
            let (source, target) = (self.node.children(), right.children());
            for from in first..=len {
                copy_pointer(&source[from], &target[from - first]);
            }
        }
        right.node().len.store(len - first, Ordering::Relaxed);
        self.node.node().len.store(middle, Ordering::Relaxed);
        self.link(right, head, high);
        Some(high)
    }

    /// Links `right`, whose separator is `high` with this head, between this node and its right neighbour. `right`
    /// has, or gets, heads of the same kind as this node.
    pub(crate) fn link(&mut self, right: TreeNodeRef<'a>, head: u64, high: NodeRef<'a>) {
        self.has_changed = true;
        let (node, new) = (self.node.node(), right.node());
        new.right.store(node.right.load(Ordering::Relaxed), Ordering::Release);
        new.high.store(node.high.load(Ordering::Relaxed), Ordering::Release);
        new.high_head.store(node.high_head.load(Ordering::Relaxed), Ordering::Relaxed);
        copy_pointer(&node.heads_of, &new.heads_of);
        node.high.store(high.as_ptr().as_ptr(), Ordering::Release);
        node.high_head.store(head, Ordering::Relaxed);
        node.right.store(right.as_ptr().as_ptr(), Ordering::Release);
    }

    /// Sets the first child of an inner node that no other thread knows yet.
    pub(crate) fn set_first_child(&mut self, child: TreeNodeRef<'a>) {
        self.has_changed = true;
        self.node.children()[0].store(child.as_ptr().as_ptr(), Ordering::Release);
    }
}

fn copy(from: &AtomicU64, to: &AtomicU64) {
    to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// Copies a pointer of a locked node. Release, as in [`TreeNodeGuard::insert`].
fn copy_pointer<T>(from: &AtomicPtr<T>, to: &AtomicPtr<T>) {
    to.store(from.load(Ordering::Relaxed), Ordering::Release);
}

impl Drop for TreeNodeGuard<'_> {
    fn drop(&mut self) {
        let version = if self.has_changed { self.version + 2 } else { self.version };
        // Release pairs with the acquires in `read_version` and `lock`: a thread that sees the even
        // counter sees the changes.
        self.node.node().version.store(version, Ordering::Release);
    }
}
