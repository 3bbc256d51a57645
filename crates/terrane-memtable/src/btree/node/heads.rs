//! Searches of the heads of a node.
//!
//! A node names the [`Heads`] that computed its heads, because the heads of a tree change
//! ([`super::super::learning`]). A search computes the head of its key as the node does.

use std::cmp::Ordering::{Greater, Less};
use std::hint::select_unpredictable;
use std::ops::Range;
use std::ptr::{self, NonNull};

use super::super::heads::Heads;
use super::{SLOTS, TreeNodeGuard, TreeNodeRef};
use crate::entry::SeqNo;
use crate::prefetch::prefetch;
use crate::skiplist::NodeRef;
use crate::sync::Ordering;

/// The entry that a search looks for, or the place where it would be.
#[derive(Clone, Copy)]
pub(crate) struct SearchTarget<'k> {
    /// The head of the key, as `heads` computes it.
    head: u64,
    heads: *const Heads,
    pub(crate) key: &'k [u8],
    pub(crate) seq: SeqNo,
}

/// A target, and the head that its key has in a node.
#[derive(Clone, Copy)]
pub(crate) struct NodeTarget<'t> {
    pub(crate) head: u64,
    pub(crate) target: &'t SearchTarget<'t>,
}

impl NodeTarget<'_> {
    /// Compares an entry with the target.
    #[inline]
    pub(super) fn compare(self, entry: NodeRef<'_>) -> std::cmp::Ordering {
        entry.compare(self.target.key, self.target.seq)
    }
}

impl<'k> SearchTarget<'k> {
    #[inline]
    pub(crate) fn new(heads: &Heads, key: &'k [u8], seq: SeqNo) -> Self {
        Self { head: heads.of(key), heads, key, seq }
    }
}

impl TreeNodeRef<'_> {
    /// Returns a target with the head that its key has in this node.
    #[inline]
    pub(crate) fn target<'t>(self, target: &'t SearchTarget<'_>) -> NodeTarget<'t> {
        // Acquire pairs with the releases in `replace_heads` and `link`: the heads are seen
        // initialized.
        let own = self.node().heads_of.load(Ordering::Acquire);
        // SAFETY: nodes name heads of their tree, which live as long as it does (invariant 4 of `node`).
        let late = || unsafe { &*own }.of_late(target.key);
        let head = if ptr::eq(own, target.heads) { target.head } else { late() };
        NodeTarget { head, target }
    }

    /// Returns which entries have the head of the target.
    #[inline]
    pub(crate) fn equal_heads(self, target: NodeTarget<'_>) -> Range<usize> {
        let start = self.lower_bound(target.head);
        let is_equal = |at| at < self.len() && self.head(at) == target.head;
        // Usually there is one.
        match (is_equal(start), is_equal(start + 1)) {
            (false, _) => start..start,
            (true, false) => start..start + 1,
            (true, true) => start..self.upper_bound(target.head).max(start),
        }
    }

    /// Returns whether all heads in the first or in the last half of a full node are equal.
    #[inline]
    pub(crate) fn is_blind(self) -> bool {
        let middle = self.head(SLOTS / 2);
        self.head(0) == middle || self.head(SLOTS - 1) == middle
    }

    /// Returns the counter and the number of heads below the target's. Prefetches the first entry with the
    /// head of the target, if there is one, because an insert compares keys with it.
    #[inline]
    pub(crate) fn look_ahead(self, target: &SearchTarget<'_>) -> (u64, usize) {
        // First, because a change may give the node other heads.
        let version = self.version();
        let target = self.target(target);
        let from = self.lower_bound(target.head);
        if from < SLOTS && self.head(from) == target.head {
            self.prefetch_at(from);
        }
        (version, from)
    }

    /// Returns true if the target is at or beyond the high entry and so belongs to the right.
    #[inline]
    pub(crate) fn is_beyond(self, target: NodeTarget<'_>) -> bool {
        let node = self.node();
        let head = node.high_head.load(Ordering::Relaxed);
        if target.head < head {
            return false;
        }
        let high = self.record(&node.high);
        high.is_some_and(|high| target.head > head || target.compare(high) != Greater)
    }

    /// Returns true if the right neighbour may begin with versions of the target's key.
    #[inline]
    pub(crate) fn continues_right(self, target: NodeTarget<'_>) -> bool {
        target.head == self.node().high_head.load(Ordering::Relaxed)
            && self.high().is_some_and(|high| high.key() == target.target.key)
    }

    /// Returns true if the target is beyond the high entry, and is not the high entry itself.
    #[inline]
    pub(crate) fn is_after_high(self, target: NodeTarget<'_>) -> bool {
        let high = self.record(&self.node().high);
        high.is_some_and(|high| target.compare(high) == Less)
    }

    /// Returns true if the entry at `index` is the target. Heads decide most cases, and are
    /// adjacent in memory.
    #[inline]
    pub(crate) fn is_at(self, index: usize, target: NodeTarget<'_>) -> bool {
        index < self.len()
            && self.head(index) == target.head
            && self.entry(index).is_some_and(|entry| target.compare(entry).is_eq())
    }

    /// Returns whether the entry at an index exists and is before the target.
    #[inline]
    pub(crate) fn is_before(self, index: usize, target: NodeTarget<'_>) -> bool {
        self.entry(index).is_some_and(|entry| target.compare(entry) == Less)
    }

    /// Returns the number of entries before the target.
    #[inline]
    pub(crate) fn count_before(self, target: NodeTarget<'_>) -> usize {
        self.count_before_from(target, self.lower_bound(target.head))
    }

    /// As [`Self::count_before`], if `from` heads are known to be below the target's.
    #[inline]
    pub(crate) fn count_before_from(self, target: NodeTarget<'_>, mut from: usize) -> usize {
        let is_before = |at| self.is_before(at, target);
        // Among equal heads, entries decide. Usually only one entry has the head, or the target is the
        // newest version of its key; but keys with a long common prefix fill a node with equal heads.
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
    pub(crate) fn head(self, index: usize) -> u64 {
        self.node().heads[index].load(Ordering::Relaxed)
    }

    /// Returns the number of heads below `head`.
    #[inline]
    pub(crate) fn lower_bound(self, head: u64) -> usize {
        self.count_heads(|other| other < head)
    }

    /// Returns the number of heads up to `head`.
    #[inline]
    pub(super) fn upper_bound(self, head: u64) -> usize {
        self.count_heads(|other| other <= head)
    }

    /// Returns the number of heads for which `is_before` holds; they come first.
    #[inline]
    fn count_heads(self, is_before: impl Fn(u64) -> bool) -> usize {
        // The remainder never changes an index; it lets the compiler omit bounds checks.
        let is_before = |index: usize| is_before(self.head(index % SLOTS));
        let (mut from, mut len) = (0, self.len());
        // The answer is `from` to `from + len`. Which half it is in cannot be predicted; without a branch on it,
        // the number of steps depends on the length alone.
        while len > 1 {
            let half = len / 2;
            from = select_unpredictable(is_before(from + half - 1), from + half, from);
            len -= half;
        }
        from + usize::from(len == 1 && is_before(from))
    }
}

impl TreeNodeGuard<'_> {
    /// Gives the node the newest heads of its tree.
    #[inline]
    pub(crate) fn renew_heads(&mut self, newest: NonNull<Heads>) {
        if self.node.node().heads_of.load(Ordering::Relaxed) != newest.as_ptr() {
            self.replace_heads(newest);
        }
    }

    #[cold]
    fn replace_heads(&mut self, newest: NonNull<Heads>) {
        self.has_changed = true;
        // SAFETY: heads of the tree live as long as it does (invariant 4 of `node`).
        let heads = unsafe { newest.as_ref() };
        let (node, len) = (self.node.node(), self.node.len());
        if !cfg!(any(loom, miri)) {
            // The entries arrive in parallel.
            let entries = node.entries[..len].iter();
            entries.for_each(|entry| prefetch(entry.load(Ordering::Relaxed).cast()));
        }
        for (index, head) in node.heads[..len].iter().enumerate() {
            if let Some(entry) = self.node.entry(index) {
                head.store(heads.of(entry.key()), Ordering::Relaxed);
            }
        }
        if let Some(high) = self.node.high() {
            node.high_head.store(heads.of(high.key()), Ordering::Relaxed);
        }
        // Release, so that a search that finds the heads sees them initialized.
        node.heads_of.store(newest.as_ptr(), Ordering::Release);
    }
}
