//! A bucket in the order of arrival: entries are put in front, and lookups look at all of them.
//!
//! An insert follows no link but the first. In each node stands, where an ordered list keeps the
//! head of the next key, the newest sequence number of all nodes behind it: a lookup that has found
//! a version at least as new stops there, so that a key that is written again and again is found in
//! one step. Older versions, and other keys in the bucket of such a one, may be far behind: after
//! so many steps a lookup gives up, and the order of all entries answers; where no order is kept,
//! it goes on to the end, which takes less than making one.

use std::ptr::{self, NonNull};

use crate::entry::SeqNo;
use crate::skiplist::{Node, NodeRef};
use crate::sync::{AtomicPtr, Ordering, pin_fence};

/// Nodes that a lookup follows at most where an order is kept: as long as a search of that takes.
pub(super) const STEPS_MAX: usize = if cfg!(loom) { 2 } else { 32 };

/// A chain of nodes, the newest first. Its nodes have one link, and lie in an arena that outlives
/// it.
pub(super) struct Chain {
    newest: AtomicPtr<Node>,
}

/// The chain is too long to be followed to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChainTooLong;

impl Chain {
    pub(super) fn new() -> Self {
        Self { newest: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Puts a node in front.
    ///
    /// # Safety
    /// The node has one link, is in no list yet, and lies in an arena that outlives the chain.
    pub(super) unsafe fn push(&self, node: NonNull<Node>) {
        // SAFETY: passed on.
        let own = unsafe { NodeRef::new(node) }.link(0);
        // Acquire: the node in front is looked at.
        let mut first = self.newest.load(Ordering::Acquire);
        loop {
            // SAFETY: passed on, for the node that was put there.
            let next = NonNull::new(first).map(|first| unsafe { NodeRef::new(first) });
            let newest = next.map_or(0, |next| next.seq().max(next.link(0).load().1));
            // Relaxed: no one else sees the node before the exchange.
            own.next.store(first, Ordering::Relaxed);
            own.head.store(newest, Ordering::Relaxed);
            // Sequentially consistent: whoever then looks at the stage of the walk over all chains
            // and finds it not begun has put its node where that walk sees it.
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

    /// All nodes that are there now.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeRef<'_>> {
        // Sequentially consistent, as in `push`.
        let first = NonNull::new(self.newest.load(Ordering::SeqCst));
        // SAFETY: by `push`.
        let first = first.map(|first| unsafe { NodeRef::new(first) });
        std::iter::successors(first, |node| node.next())
    }

    /// The newest version of `key` that is not newer than `seq`, if so many nodes tell.
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
