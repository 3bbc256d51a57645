//! Reads of entries in leaves that writers may be changing.

use std::cmp::Ordering::Less;
use std::ptr::NonNull;

use super::{NodeChanged, NodeTarget, SearchTarget, TreeNodeRef};
use crate::skiplist::{Layout, Node, NodeRef, Pin};
use crate::sync::{Ordering, fence};

/// An entry of a leaf, with its index while the leaf's counter is `version`.
pub(crate) struct LeafEntry<'a> {
    pub(crate) leaf: TreeNodeRef<'a>,
    pub(crate) version: u64,
    pub(crate) index: usize,
    pub(crate) record: NodeRef<'a>,
    /// Keeps the entry from being refilled.
    pub(crate) pin: Pin,
}

/// An entry, and the pin that keeps it from being refilled.
pub(crate) type PinnedEntry<'a> = (NodeRef<'a>, Pin);

impl<'a> LeafEntry<'a> {
    pub(crate) fn into_pinned(self) -> PinnedEntry<'a> {
        (self.record, self.pin)
    }

    /// Returns the previous entry if its head is that of the target. Returns an error if it is in another
    /// leaf, or if this leaf has changed.
    pub(crate) fn before(
        &self,
        target: &SearchTarget<'_>,
    ) -> Result<Option<PinnedEntry<'a>>, NodeChanged> {
        let before = self.index.checked_sub(1).ok_or(NodeChanged)?;
        if self.leaf.head(before) != self.leaf.target(target).head {
            self.leaf.check(self.version)?;
            return Ok(None);
        }
        self.leaf.pin_entry(before, self.version, Layout::Versioned)
    }
}

impl<'a> TreeNodeRef<'a> {
    /// Returns the address of the entry at `index`, for prefetching.
    #[inline]
    pub(crate) fn entry_address(self, index: usize) -> Option<*mut Node> {
        // Relaxed: the pointer is not followed.
        Some(self.node().entries.get(index)?.load(Ordering::Relaxed)).filter(|node| !node.is_null())
    }

    /// Returns the entry at `index` of a leaf that writers may be changing, with a pin if entries
    /// have versions. Returns an error if a versioned leaf has changed since its counter was
    /// `version`; for other leaves, the caller checks.
    #[inline]
    pub(crate) fn pin_entry(
        self,
        index: usize,
        version: u64,
        layout: Layout,
    ) -> Result<Option<PinnedEntry<'a>>, NodeChanged> {
        let Some(slot) = self.node().entries.get(index).filter(|_| index < self.len()) else {
            return Ok(None);
        };
        // Acquire, as in `record`.
        let Some(record) = NonNull::new(slot.load(Ordering::Acquire)) else { return Ok(None) };
        let pin = match layout {
            Layout::Plain => Pin::NONE,
            Layout::Versioned => {
                let is_unchanged = || {
                    // As in `check`. SeqCst: this is the reader's second step of invariant 3 of
                    // `Versions`; a writer changes the counter before it frees the entry.
                    fence(Ordering::Acquire);
                    self.node().version.load(Ordering::SeqCst) == version
                };
                // SAFETY: entries of a versioned tree have versions, and lie in its arena
                // (invariant 2).
                unsafe { Pin::new(record, is_unchanged) }.ok_or(NodeChanged)?
            }
        };
        // SAFETY: the entry has no versions, or is pinned; it lies in the tree's arena (invariant 2).
        Ok(Some((unsafe { NodeRef::new(record) }, pin)))
    }

    /// As [`Self::count_before`], for a leaf that writers may be changing; see [`Self::pin_entry`].
    #[inline]
    pub(crate) fn count_before_in(
        self,
        target: NodeTarget<'_>,
        version: u64,
        layout: Layout,
    ) -> Result<usize, NodeChanged> {
        if layout == Layout::Plain {
            return Ok(self.count_before(target));
        }
        let mut from = self.lower_bound(target.head);
        let mut end = self.upper_bound(target.head);
        // A pin is expensive, so equal heads are searched by bisection.
        while from < end {
            let middle = from.midpoint(end);
            let Some((entry, _pin)) = self.pin_entry(middle, version, layout)? else { break };
            if target.compare(entry) == Less {
                from = middle + 1;
            } else {
                end = middle;
            }
        }
        Ok(from)
    }
}
