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

mod node;
mod path;
mod position;
mod versions;

use std::cmp::Ordering::Less;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use crate::arena::Arena;
use crate::entry::{Entry, EntryKind, SeqNo};
use crate::head::head_of;
use crate::pool::Pool;
use crate::sync::{AtomicPtr, AtomicUsize, Ordering};
pub(crate) use node::{Contents, Layout, Node, NodeRef};
pub(crate) use position::Position;
pub(crate) use versions::{Older, Pin, Versions, versions_of};

/// The largest height of any node.
pub(crate) const MAX_HEIGHT: usize = 20;

/// The concurrent skip-list.
pub(crate) struct SkipList {
    arena: Arena,
    /// A node before all others, of the largest height, with an empty key.
    head: NonNull<Node>,
    /// Heights in use; searches start below it.
    height: AtomicUsize,
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

/// For each height, the last node before a key and what its link names.
struct Splice {
    previous: [NonNull<Node>; MAX_HEIGHT],
    next: [*mut Node; MAX_HEIGHT],
}

impl SkipList {
    /// An empty list in which one in `branching` nodes of a height has the next one too.
    pub(crate) fn new(branching: u8, max_height: u8, layout: Layout, pool: Arc<Pool>) -> Self {
        let arena = Arena::new(pool);
        let nothing = Contents { key: &[], seq: 0, kind: EntryKind::Tombstone, value: &[] };
        let head = Node::allocate(&arena, layout, MAX_HEIGHT, &nothing);
        Self {
            arena,
            head,
            height: AtomicUsize::new(1),
            last: std::array::from_fn(|_| AtomicPtr::new(head.as_ptr())),
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
    pub(crate) fn insert(&self, contents: &Contents<'_>) {
        // SAFETY: made for this list, and linked once.
        unsafe { self.link(self.allocate(contents)) };
    }

    /// A node that is not in the list yet. Its height follows from the sequence number.
    pub(crate) fn allocate(&self, contents: &Contents<'_>) -> NonNull<Node> {
        let height = self.random_height(contents.seq);
        Node::allocate(&self.arena, self.layout, height, contents)
    }

    /// Writes a node anew that is not in the list.
    ///
    /// # Safety
    /// The node was made by [`SkipList::allocate`], no one else reads it, and it has room for the
    /// contents.
    pub(crate) unsafe fn rewrite(&self, node: NonNull<Node>, contents: &Contents<'_>) {
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
        let mut splice = match self.splice_at_end(key, seq) {
            Some(splice) => splice,
            None => self.splice(key, seq, head_of(key)),
        };
        self.link_at(inserted, &mut splice);
    }

    /// Puts a node into the list where `splice` says, or after it.
    fn link_at(&self, inserted: NodeRef<'_>, splice: &mut Splice) {
        let (key, seq, node) = (inserted.key(), inserted.seq(), inserted.as_ptr());
        let (head, height) = (head_of(key), inserted.height());
        // Relaxed: a searcher that sees the old height only takes more steps.
        self.height.fetch_max(height, Ordering::Relaxed);
        for level in 0..height {
            loop {
                let (previous, next) = (splice.previous[level], splice.next[level]);
                // SAFETY: the splice holds nodes of this list.
                let link = unsafe { NodeRef::new(previous) }.link(level);
                // The bound of the link before is one for the link after, see `Link::head`.
                let bound = link.head.load(Ordering::Relaxed);
                let own = inserted.link(level);
                own.next.store(next, Ordering::Relaxed);
                own.head.store(if next.is_null() { u64::MAX } else { bound }, Ordering::Relaxed);
                if link.insert(next, node, head) {
                    break;
                }
                // SAFETY: as above.
                let previous = unsafe { NodeRef::new(previous) };
                (splice.previous[level], splice.next[level]) =
                    self.advance(previous, level, key, seq, head);
            }
            if splice.next[level].is_null() {
                self.last[level].store(node.as_ptr(), Ordering::Release);
            }
        }
    }

    /// The newest version of `key` that is not newer than `seq`.
    pub(crate) fn get(&self, key: &[u8], seq: SeqNo) -> Option<Entry<'_>> {
        let node = self.first_at_or_after(key, seq)?;
        (node.key() == key).then(|| node.entry())
    }

    /// As [`SkipList::get`], where versions may have been forgotten: an error if the one that is
    /// asked for may have been.
    pub(crate) fn get_unless_forgotten(
        &self,
        key: &[u8],
        seq: SeqNo,
    ) -> Result<Option<NodeRef<'_>>, Overwritten> {
        debug_assert!(self.layout == Layout::Versioned);
        let head = head_of(key);
        let mut previous = self.head();
        for level in (1..self.height.load(Ordering::Relaxed)).rev() {
            // SAFETY: `advance` returns nodes of this list.
            previous = unsafe { NodeRef::new(self.advance(previous, level, key, seq, head).0) };
        }
        let (previous, next) = self.advance(previous, 0, key, seq, head);
        // SAFETY: a node of this list.
        let previous = unsafe { NodeRef::new(previous) };
        // SAFETY: the layout says so.
        let older = unsafe { previous.versions() }.older();
        // The next newer version, if there is one.
        if matches!(older, Older::Forgotten) && previous.key() == key {
            return Err(Overwritten);
        }
        Ok(self.deref(next).filter(|node| node.key() == key))
    }

    /// The first node at or after `(key, seq)`.
    fn first_at_or_after(&self, key: &[u8], seq: SeqNo) -> Option<NodeRef<'_>> {
        let head = head_of(key);
        let mut previous = self.head();
        for level in (1..self.height.load(Ordering::Relaxed)).rev() {
            // SAFETY: `advance` returns nodes of this list.
            previous = unsafe { NodeRef::new(self.advance(previous, level, key, seq, head).0) };
        }
        self.deref(self.advance(previous, 0, key, seq, head).1)
    }

    /// The last node before `(key, seq)`.
    fn last_before(&self, key: &[u8], seq: SeqNo) -> Option<NodeRef<'_>> {
        let head = head_of(key);
        let mut previous = self.head();
        for level in (0..self.height.load(Ordering::Relaxed)).rev() {
            // SAFETY: `advance` returns nodes of this list.
            previous = unsafe { NodeRef::new(self.advance(previous, level, key, seq, head).0) };
        }
        (previous.as_ptr() != self.head).then_some(previous)
    }

    /// The first key of all.
    pub(crate) fn first_key(&self) -> Option<&[u8]> {
        self.first().map(NodeRef::key)
    }

    /// The last key of all.
    pub(crate) fn last_key(&self) -> Option<&[u8]> {
        self.last().map(NodeRef::key)
    }

    fn first(&self) -> Option<NodeRef<'_>> {
        self.deref(self.head().link(0).load().0)
    }

    fn last(&self) -> Option<NodeRef<'_>> {
        let mut previous = self.head();
        for level in (0..self.height.load(Ordering::Relaxed)).rev() {
            while let Some(next) = self.deref(previous.link(level).load().0) {
                previous = next;
            }
        }
        (previous.as_ptr() != self.head).then_some(previous)
    }

    /// From `previous`, which is before `(key, seq)`: the last such node of the level, and what
    /// its link names.
    #[inline]
    fn advance<'a>(
        &'a self,
        mut previous: NodeRef<'a>,
        level: usize,
        key: &[u8],
        seq: SeqNo,
        head: u64,
    ) -> (NonNull<Node>, *mut Node) {
        loop {
            let (next, bound) = previous.link(level).load();
            if bound > head {
                return (previous.as_ptr(), next);
            }
            match self.deref(next) {
                Some(node) if node.compare(key, seq) == Less => previous = node,
                _ => return (previous.as_ptr(), next),
            }
        }
    }

    fn splice(&self, key: &[u8], seq: SeqNo, head: u64) -> Splice {
        let mut splice =
            Splice { previous: [self.head; MAX_HEIGHT], next: [ptr::null_mut(); MAX_HEIGHT] };
        let mut previous = self.head();
        for level in (0..self.height.load(Ordering::Relaxed)).rev() {
            let (before, next) = self.advance(previous, level, key, seq, head);
            splice.previous[level] = before;
            splice.next[level] = next;
            // SAFETY: `advance` returns nodes of this list.
            previous = unsafe { NodeRef::new(before) };
        }
        splice
    }

    /// The splice of a key beyond all others, by the hints; `None` if it is not, or if the hints
    /// are behind.
    ///
    /// The hints are read before the last node is seen to have none after it: so all of them were
    /// in the list when that node was its end, and none of them is beyond `key`. One that is
    /// behind makes inserting fail at that height, which then searches on from it.
    fn splice_at_end(&self, key: &[u8], seq: SeqNo) -> Option<Splice> {
        let last = self.deref(self.last[0].load(Ordering::Acquire))?;
        if last.as_ptr() == self.head || last.compare(key, seq) != Less {
            return None;
        }
        let mut previous = [last.as_ptr(); MAX_HEIGHT];
        for (previous, hint) in previous.iter_mut().zip(&self.last).skip(1) {
            *previous = NonNull::new(hint.load(Ordering::Acquire))?;
        }
        let is_end = last.link(0).load().0.is_null();
        is_end.then_some(Splice { previous, next: [ptr::null_mut(); MAX_HEIGHT] })
    }

    #[inline]
    fn head(&self) -> NodeRef<'_> {
        // SAFETY: made in this list's arena.
        unsafe { NodeRef::new(self.head) }
    }

    #[inline]
    fn deref(&self, node: *mut Node) -> Option<NodeRef<'_>> {
        // SAFETY: links name nodes of this list, or nothing.
        NonNull::new(node).map(|node| unsafe { NodeRef::new(node) })
    }

    /// A height that follows from the sequence number, so that a run can be repeated.
    fn random_height(&self, seq: SeqNo) -> usize {
        let mut bits = mix(seq);
        let mut height = 1;
        while height < self.max_height && bits.is_multiple_of(self.branching) {
            bits /= self.branching;
            height += 1;
        }
        height
    }
}

/// The finaliser of SplitMix64: neighbouring numbers give unrelated bits.
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
