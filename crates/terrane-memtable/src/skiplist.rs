//! A concurrent skip-list (Pugh 1990) that only grows.
//!
//! Each link carries the next node and the head of that node's key. A search follows a link only
//! when the heads cannot decide, so most nodes that it does not pass cost no cache miss. With links
//! this large, a small branching factor costs memory and a large one costs steps.
//!
//! Writers link a node from height 0 up, each height with one compare-and-exchange. A search that
//! comes from above may miss a node on an upper height and find it on a lower one. A node counts as
//! inserted once it is linked at height 0.
//!
//! Ascending keys, as in a bulk load, need no search: the list keeps the last node of every height
//! as a hint, and appends a key beyond the last key there.
//!
//! Left out on purpose: removal, and with it every scheme to reclaim linked nodes.

mod list;
mod multi_insert;
mod node;
mod position;
pub(crate) mod versions;

use std::cmp::Ordering::Less;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use crate::arena::Arena;
use crate::entry::{Entry, SeqNo};
use crate::key_span::KeySpan;
use crate::pool::Pool;
use crate::readers::ReaderView;
use crate::structure::{Hold, InsertOutcome, Overwritten, Settings, Structure};
use crate::sync::{AtomicPtr, Ordering};
use list::Splice;
pub(crate) use list::{List, MAX_HEIGHT};
pub(crate) use node::{Layout, Node, NodeRef};
pub(crate) use position::ListPosition;
pub(crate) use versions::{Older, Pin, Temperature, Versions, versions_of};

/// The settings of a skip-list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkipListConfig {
    /// One in `branching` nodes of a height also has the next height; at least 2.
    pub branching: u8,
    /// The largest height of a node; 1 to 20.
    pub height: u8,
}

impl Settings for SkipListConfig {
    type Structure = SkipList;

    const EXAMPLES: &'static [(&'static str, Self)] = &[
        ("as usual", Self { branching: 4, height: 12 }),
        ("of height 1", Self { branching: 2, height: 1 }),
        ("of height 20", Self { branching: 2, height: 20 }),
    ];

    const SMALLEST: Self = Self { branching: 2, height: 2 };

    fn usual(_entries: usize) -> Self {
        Self { branching: 4, height: 12 }
    }

    fn build(self, pool: Arc<Pool>, _span: impl FnOnce() -> Option<KeySpan>) -> SkipList {
        SkipList::new(self.branching, self.height, Layout::Plain, pool)
    }
}

/// The concurrent skip-list.
pub(crate) struct SkipList {
    arena: Arena,
    list: List,
    /// For each height, a linked node near its end: a hint for appending.
    last: [AtomicPtr<Node>; MAX_HEIGHT],
    branching: u64,
    max_height: usize,
    layout: Layout,
}

// SAFETY: the list owns the arena of its nodes (crate rule 1); nodes are filled before they are
// published (crate rule 2) and linked by atomic operations.
unsafe impl Send for SkipList {}
// SAFETY: shared access links nodes by atomic operations only, and a linked node is not refilled
// (list invariant 3).
unsafe impl Sync for SkipList {}

impl SkipList {
    /// Creates an empty list in which one in `branching` nodes of a height also has the next
    /// height.
    pub(crate) fn new(branching: u8, max_height: u8, layout: Layout, pool: Arc<Pool>) -> Self {
        let arena = Arena::new(pool);
        // SAFETY: the list owns the arena and all its nodes are allocated there with `layout`. The
        // contracts of `link` and `multi_insert` keep linked nodes from being refilled.
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

    /// Adds a version. No two versions of a key may have the same sequence number.
    pub(crate) fn insert(&self, contents: &Entry<'_>) {
        // SAFETY: `allocate` made the node in this list's arena; it is linked once, and no one else
        // knows it, so it is never refilled.
        unsafe { self.link(self.allocate(contents)) };
    }

    /// Allocates a node that is not linked. Its height follows from the sequence number.
    pub(crate) fn allocate(&self, contents: &Entry<'_>) -> NonNull<Node> {
        let height = random_height(contents.seq, self.branching, self.max_height);
        Node::allocate(&self.arena, self.layout, height, contents)
    }

    /// Refills a node that is not linked.
    ///
    /// # Safety
    /// The node was allocated by [`SkipList::allocate`] of this list, no other thread reads it
    /// (crate rule 2), and it has room for the contents.
    pub(crate) unsafe fn rewrite(&self, node: NonNull<Node>, contents: &Entry<'_>) {
        // SAFETY: the caller guarantees exclusive access and room, and all nodes of this list have
        // its layout.
        unsafe { Node::fill(node, self.layout, contents) };
    }

    /// Links a node.
    ///
    /// # Safety
    /// The node was allocated by [`SkipList::allocate`] of this list, has no versions or is
    /// permanent, and is linked for the first time.
    pub(crate) unsafe fn link(&self, node: NonNull<Node>) {
        // SAFETY: the caller guarantees that the node lies in this list's arena and is not refilled
        // any more.
        let inserted = unsafe { NodeRef::new(node) };
        let (key, seq) = (inserted.key(), inserted.seq());
        self.list.grow(&self.arena, inserted.height());
        let mut splice = match self.splice_at_end(key, seq) {
            Some(splice) => splice,
            None => self.list.splice(key, seq),
        };
        self.link_at(inserted, &mut splice);
    }

    /// Links a node, for which the list has grown, at `splice` or after it.
    fn link_at(&self, inserted: NodeRef<'_>, splice: &mut Splice) {
        let (node, height) = (inserted.as_ptr(), inserted.height());
        self.list.link(node, height, inserted.key(), inserted.seq(), splice);
        for (next, hint) in splice.next.iter().zip(&self.last).take(height) {
            if next.is_null() {
                // Release pairs with the acquires in `splice_at_end`: the node is seen filled.
                hint.store(node.as_ptr(), Ordering::Release);
            }
        }
    }

    /// As [`Structure::get`], for nodes with versions. Returns an error if the requested version
    /// may have been reclaimed.
    pub(crate) fn get_unless_reclaimed(
        &self,
        key: &[u8],
        seq: SeqNo,
        hold: Hold,
    ) -> Result<Option<NodeRef<'_>>, Overwritten> {
        debug_assert!(self.layout == Layout::Versioned);
        let (previous, next) = self.list.around(key, seq);
        // SAFETY: all nodes of this list, its head included, have its layout, and `Lower`, the only
        // caller, creates its list with `Layout::Versioned`.
        let older = unsafe { previous.versions() }.older();
        // `previous` is the next newer version if it has the same key.
        if hold == Hold::NotHeld && older.has_gap() && previous.key() == key {
            return Err(Overwritten);
        }
        Ok(next.filter(|node| node.key() == key))
    }

    /// Returns the smallest key.
    pub(crate) fn first_key(&self) -> Option<Vec<u8>> {
        self.list.first().map(|first| first.key().to_vec())
    }

    /// Returns the largest key.
    pub(crate) fn last_key(&self) -> Option<Vec<u8>> {
        self.list.last().map(|last| last.key().to_vec())
    }

    /// Builds the splice of a key beyond all others from the hints. Returns `None` if the key is
    /// not beyond all others, or if the hints are outdated.
    ///
    /// The hints are loaded before the last node is seen to have no successor, so all of them were
    /// linked when that node was the end, and none is beyond `key`. At a height whose hint is
    /// outdated, linking fails and searches on from the hint.
    fn splice_at_end(&self, key: &[u8], seq: SeqNo) -> Option<Splice> {
        // Acquire, here and below, pairs with the release in `link_at`.
        let last = self.list.deref(self.last[0].load(Ordering::Acquire))?;
        if last.compare(key, seq) != Less {
            return None;
        }
        let mut previous = [last.as_ptr(); MAX_HEIGHT];
        for (level, (previous, hint)) in previous.iter_mut().zip(&self.last).enumerate().skip(1) {
            // A height without a hint has no nodes that this thread knows of.
            *previous = NonNull::new(hint.load(Ordering::Acquire))
                .unwrap_or_else(|| self.list.head_of_level(level));
        }
        let is_end = last.link(0).load().0.is_null();
        is_end.then_some(Splice { previous, next: [ptr::null_mut(); MAX_HEIGHT] })
    }
}

impl Structure for SkipList {
    type Position = ListPosition;

    #[inline]
    fn insert(&self, entry: &Entry<'_>, _view: &ReaderView<'_>) -> InsertOutcome {
        SkipList::insert(self, entry);
        InsertOutcome::default()
    }

    #[inline]
    fn get(&self, key: &[u8], seq: SeqNo) -> Option<Entry<'_>> {
        let node = self.list.first_at_or_after(key, seq)?;
        (node.key() == key).then(|| node.entry())
    }

    fn usage(&self) -> (usize, usize) {
        self.arena.usage()
    }
}

/// Derives a height from the sequence number, so that runs are repeatable: one in `branching` nodes
/// of a height also has the next height.
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
