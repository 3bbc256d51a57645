//! A bucket in the order of arrival: inserts prepend, and lookups visit every node.
//!
//! An insert visits only the first node. In the field where a sorted list stores the head of the
//! next key, a node stores the newest sequence number of all nodes behind it. A lookup that has
//! found a version at least as new stops there, so it finds a key that is written repeatedly in one
//! step. Older versions of that key, and other keys of the bucket, may be far behind. After a
//! bounded number of steps, a lookup gives up and uses the sorted view; without a kept view, it
//! visits all nodes, which is cheaper than creating one.
//!
//! Invariant 1: nodes of a chain lie in an arena that outlives it, have one link and no versions,
//! because [`Chain::push`] requires it.

use std::ptr::{self, NonNull};

use crate::entry::SeqNo;
use crate::skiplist::{Node, NodeRef};
use crate::sync::{AtomicPtr, Ordering, pin_fence};

/// The maximum number of nodes that a lookup visits if a view is kept: visiting them costs about as
/// much as a search of the view.
pub(super) const STEPS_MAX: usize = if cfg!(loom) { 2 } else { 32 };

/// A chain of nodes, the last inserted first.
pub(super) struct Chain {
    newest: AtomicPtr<Node>,
}

/// The chain has more nodes than the lookup may visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChainTooLong;

impl Chain {
    pub(super) fn new() -> Self {
        Self { newest: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Prepends a node.
    ///
    /// # Safety
    /// The node has one link and no versions, is in no list yet, and lies in an arena that outlives
    /// the chain.
    pub(super) unsafe fn push(&self, node: NonNull<Node>) {
        // SAFETY: the caller guarantees the arena, and that the node is never refilled.
        let own = unsafe { NodeRef::new(node) }.link(0);
        // Acquire, here and on a failed exchange, pairs with the release of the exchange: the first
        // node is seen filled.
        let mut first = self.newest.load(Ordering::Acquire);
        loop {
            // SAFETY: `first` was prepended by `push` (invariant 1).
            let next = NonNull::new(first).map(|first| unsafe { NodeRef::new(first) });
            let newest = next.map_or(0, |next| next.seq().max(next.link(0).load().1));
            // Relaxed: the exchange below publishes the node.
            own.next.store(first, Ordering::Relaxed);
            own.head.store(newest, Ordering::Relaxed);
            // SeqCst: a writer that then loads the stage of the walk and finds it not begun has
            // prepended its node before the walk loads `newest`, so the walk sees it. As a release,
            // it pairs with the acquires above and in `nodes`.
            let put = self.newest.compare_exchange(
                first,
                node.as_ptr(),
                Ordering::SeqCst,
                Ordering::Acquire,
            );
            match put {
                Ok(_) => break,
                Err(other) => first = other,
            }
        }
        pin_fence();
    }

    /// Iterates over the nodes that are in the chain now.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeRef<'_>> {
        // SeqCst: ordered with the exchange in `push` and with the stage of the walk; acquires the
        // node.
        let first = NonNull::new(self.newest.load(Ordering::SeqCst));
        // SAFETY: `first` was prepended by `push` (invariant 1).
        let first = first.map(|first| unsafe { NodeRef::new(first) });
        std::iter::successors(first, |node| node.next())
    }

    /// Returns the newest version of `key` at or below `seq`, or an error if it takes more than
    /// `steps_max` nodes to decide.
    pub(super) fn get(
        &self,
        key: &[u8],
        seq: SeqNo,
        steps_max: usize,
    ) -> Result<Option<NodeRef<'_>>, ChainTooLong> {
        let mut found: Option<NodeRef<'_>> = None;
        for (step, node) in self.nodes().enumerate() {
            if step == steps_max {
                return Err(ChainTooLong);
            }
            let is_newer = found.is_none_or(|found| found.seq() < node.seq());
            if node.seq() <= seq && is_newer && node.key() == key {
                found = Some(node);
            }
            let (_, newest_behind) = node.link(0).load();
            if found.is_some_and(|found| found.seq() >= newest_behind) {
                break;
            }
        }
        Ok(found)
    }
}
