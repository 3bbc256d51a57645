//! A concurrent skip-list (Pugh 1990) that only grows.
//!
//! Each link carries, beside the next node, the head of that node's key. A search follows a link
//! only when the heads cannot tell, so most nodes that it does not pass cost no cache miss. With
//! links this rich a small branching factor costs memory, a large one steps.
//!
//! Writers link a node from height 0 up, each with one compare-and-exchange; a reader that comes
//! from above may miss a node on an upper height and find it on a lower one. A node counts as
//! inserted once it is linked at height 0.
//!
//! Ascending keys, as in a bulk load, do not search: the last node of every height is remembered
//! as a hint, and a key beyond the last one is appended there.
//!
//! Left out on purpose: removal, and with it every scheme to reclaim nodes.

mod list;
mod multi_insert;
mod node;
mod position;
mod versions;

use std::cmp::Ordering::Less;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use crate::arena::Arena;
use crate::entry::{Entry, SeqNo};
use crate::pool::Pool;
use crate::sync::{AtomicPtr, Ordering};
use list::Splice;
pub(crate) use list::{List, MAX_HEIGHT};
pub(crate) use node::{Layout, Node, NodeRef};
pub(crate) use position::ListPosition;
pub(crate) use versions::{Older, Pin, Temperature, Versions, versions_of};

/// The concurrent skip-list.
pub(crate) struct SkipList {
    arena: Arena,
    list: List,
    /// For each height, a node near its end: a hint for appending.
    last: [AtomicPtr<Node>; MAX_HEIGHT],
    branching: u64,
    max_height: usize,
    layout: Layout,
}

// SAFETY: nodes live in the arena, which the list owns, and change only through atomics.
unsafe impl Send for SkipList {}
// SAFETY: as for `Send`.
unsafe impl Sync for SkipList {}

/// The version that was asked for is gone, and a newer one is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Overwritten;

impl SkipList {
    /// An empty list in which one in `branching` nodes of a height has the next one too.
    pub(crate) fn new(branching: u8, max_height: u8, layout: Layout, pool: Arc<Pool>) -> Self {
        let arena = Arena::new(pool);
        // SAFETY: the arena is dropped with the list, whose nodes are made in it.
        let list = unsafe { List::new(&arena, layout, MAX_HEIGHT) };
        Self {
            arena,
            list,
            last: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            branching: u64::from(branching.max(2)),
            max_height: usize::from(max_height).clamp(1, MAX_HEIGHT),
            layout,
        }
    }

    /// Bytes handed out, and bytes taken from the allocator.
    pub(crate) fn usage(&self) -> (usize, usize) {
        self.arena.usage()
    }

    /// Adds a version. No two versions of a key may have the same sequence number.
    pub(crate) fn insert(&self, contents: &Entry<'_>) {
        // SAFETY: made for this list, and linked once.
        unsafe { self.link(self.allocate(contents)) };
    }

    /// A node that is not in the list yet. Its height follows from the sequence number.
    pub(crate) fn allocate(&self, contents: &Entry<'_>) -> NonNull<Node> {
        let height = random_height(contents.seq, self.branching, self.max_height);
        Node::allocate(&self.arena, self.layout, height, contents)
    }

    /// Writes a node anew that is not in the list.
    ///
    /// # Safety
    /// The node was made by [`SkipList::allocate`], no one else reads it, and it has room for the
    /// contents.
    pub(crate) unsafe fn rewrite(&self, node: NonNull<Node>, contents: &Entry<'_>) {
        // SAFETY: passed on.
        unsafe { Node::fill(node, self.layout, contents) };
    }

    /// Puts a node into the list.
    ///
    /// # Safety
    /// The node was made by [`SkipList::allocate`], and is linked for the first time.
    pub(crate) unsafe fn link(&self, node: NonNull<Node>) {
        // SAFETY: made in this list's arena.
        let inserted = unsafe { NodeRef::new(node) };
        let (key, seq) = (inserted.key(), inserted.seq());
        self.list.grow(&self.arena, inserted.height());
        let mut splice = match self.splice_at_end(key, seq) {
            Some(splice) => splice,
            None => self.list.splice(key, seq),
        };
        self.link_at(inserted, &mut splice);
    }

    /// Puts a node, for which the list has grown, where `splice` says or after it.
    fn link_at(&self, inserted: NodeRef<'_>, splice: &mut Splice) {
        let (node, height) = (inserted.as_ptr(), inserted.height());
        self.list.link(node, height, inserted.key(), inserted.seq(), splice);
        for (next, hint) in splice.next.iter().zip(&self.last).take(height) {
            if next.is_null() {
                hint.store(node.as_ptr(), Ordering::Release);
            }
        }
    }

    /// The newest version of `key` that is not newer than `seq`.
    pub(crate) fn get(&self, key: &[u8], seq: SeqNo) -> Option<Entry<'_>> {
        let node = self.list.first_at_or_after(key, seq)?;
        (node.key() == key).then(|| node.entry())
    }

    /// As [`SkipList::get`], where versions may have been forgotten: an error if the one that is
    /// asked for may have been.
    pub(crate) fn get_unless_reclaimed(
        &self,
        key: &[u8],
        seq: SeqNo,
    ) -> Result<Option<NodeRef<'_>>, Overwritten> {
        debug_assert!(self.layout == Layout::Versioned);
        let (previous, next) = self.list.around(key, seq);
        // SAFETY: the layout says so.
        let older = unsafe { previous.versions() }.older();
        // The next newer version, if there is one.
        if matches!(older, Older::Reclaimed) && previous.key() == key {
            return Err(Overwritten);
        }
        Ok(next.filter(|node| node.key() == key))
    }

    /// The first key of all.
    pub(crate) fn first_key(&self) -> Option<&[u8]> {
        self.list.first().map(NodeRef::key)
    }

    /// The last key of all.
    pub(crate) fn last_key(&self) -> Option<&[u8]> {
        self.list.last().map(NodeRef::key)
    }

    /// The splice of a key beyond all others, by the hints; `None` if it is not, or if the hints
    /// are behind.
    ///
    /// The hints are read before the last node is seen to have none after it: so all of them were
    /// in the list when that node was its end, and none of them is beyond `key`. One that is
    /// behind makes inserting fail at that height, which then searches on from it.
    fn splice_at_end(&self, key: &[u8], seq: SeqNo) -> Option<Splice> {
        let last = self.list.deref(self.last[0].load(Ordering::Acquire))?;
        if last.compare(key, seq) != Less {
            return None;
        }
        let mut previous = [last.as_ptr(); MAX_HEIGHT];
        for (level, (previous, hint)) in previous.iter_mut().zip(&self.last).enumerate().skip(1) {
            // A height without a hint has no nodes, or none that is known of.
            *previous = NonNull::new(hint.load(Ordering::Acquire))
                .unwrap_or_else(|| self.list.head_of_level(level));
        }
        let is_end = last.link(0).load().0.is_null();
        is_end.then_some(Splice { previous, next: [ptr::null_mut(); MAX_HEIGHT] })
    }
}

/// A height that follows from the sequence number, so that a run can be repeated: one in
/// `branching` nodes of a height has the next one too.
pub(crate) fn random_height(seq: SeqNo, branching: u64, max_height: usize) -> usize {
    let mut bits = mix(seq);
    let mut height = 1;
    while height < max_height && bits.is_multiple_of(branching) {
        bits /= branching;
        height += 1;
    }
    height
}

/// The finaliser of SplitMix64: neighbouring numbers give unrelated bits.
pub(crate) fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
