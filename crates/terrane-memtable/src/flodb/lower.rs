//! The lower level: the ordered structure that the Membuffer is drained into and cursors walk.
//!
//! Invariants:
//! 1. All nodes lie in the arena of the level, and have versions.
//! 2. A node in the skip-list is not refilled. `link` and `link_in_order` require that it is
//!    permanent, and a node that `insert` made is in no Membuffer (invariants 1 and 4 of
//!    `Versions`).
//! 3. The B-link tree removes hidden versions from its leaves and frees them. A position and a
//!    lookup pin the entry that they return.

use std::ptr::NonNull;
use std::sync::Arc;

use super::free_nodes::{FreeNodes, suits};
use crate::btree::position::BTreePosition;
use crate::btree::{BTree, PinnedEntry, Reclaim};
use crate::entry::{Entry, SeqNo};
use crate::pool::Pool;
use crate::readers::ReaderView;
use crate::skiplist::{
    Layout, ListPosition, Node, NodeRef, Older, Pin, SkipList, Temperature, versions_of,
};
use crate::structure::{Hold, Overwritten, ReadBounds, Structure, StructurePosition};
use crate::sync::{AtomicUsize, Ordering};

/// The structure of the lower level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LowerLevel {
    /// The concurrent B-link tree.
    BTree,
    /// The concurrent skip-list, as in the paper.
    SkipList,
}

/// The branching factor of the skip-list, and the maximum height of its nodes.
const BRANCHING: u8 = 4;
const HEIGHT: u8 = 12;

/// The lower level, whose nodes have versions so that they can wait in the Membuffer.
pub(super) struct Lower {
    structure: LowerStructure,
    pub(super) free: FreeNodes,
    /// Versions reclaimed in the tree and by drains since the last [`Lower::take_overwritten`].
    overwritten: AtomicUsize,
}

enum LowerStructure {
    BTree(BTree),
    SkipList(SkipList),
}

impl Lower {
    pub(super) fn new(level: LowerLevel, pool: Arc<Pool>) -> Self {
        let structure = match level {
            LowerLevel::BTree => LowerStructure::BTree(BTree::new(Layout::Versioned, pool)),
            LowerLevel::SkipList => {
                LowerStructure::SkipList(SkipList::new(BRANCHING, HEIGHT, Layout::Versioned, pool))
            }
        };
        Self { structure, free: FreeNodes::new(), overwritten: AtomicUsize::new(0) }
    }

    /// Inserts a version, and reclaims older ones of its key that `view` says are hidden. Returns
    /// whether an older one remains. No two versions of a key may have the same sequence number.
    pub(super) fn insert(&self, contents: &Entry<'_>, view: &ReaderView<'_>) -> bool {
        let node = self.allocate(contents);
        // SAFETY: `allocate` returns nodes with versions, whose arena this level keeps.
        unsafe { versions_of(node) }.init(Older::NONE, Temperature::Cold);
        match &self.structure {
            LowerStructure::BTree(tree) => {
                // SAFETY: `allocate` made the node in `tree`; it is in no Membuffer and not linked.
                unsafe { tree.link(node, Reclaim { view, free: &|node| self.free_node(node) }) }
                    .has_older
            }
            LowerStructure::SkipList(list) => {
                // SAFETY: `allocate` made the node in `list`; it is in no Membuffer, so it is not
                // refilled, and linked once.
                unsafe { list.link(node) };
                false
            }
        }
    }

    /// Reclaims the versions of `key` that are older than its version `seq` and that `view` says are
    /// hidden.
    pub(super) fn reclaim_hidden(&self, key: &[u8], seq: SeqNo, view: &ReaderView<'_>) {
        if let LowerStructure::BTree(tree) = &self.structure {
            tree.remove_older(key, seq, Reclaim { view, free: &|node| self.free_node(node) });
        }
    }

    /// Returns a node that is not linked, filled with `contents`: a refilled free one, or a new one.
    #[inline]
    pub(super) fn allocate(&self, contents: &Entry<'_>) -> NonNull<Node> {
        match (self.free.pop(contents.data_bytes()), &self.structure) {
            (Some(node), LowerStructure::BTree(tree)) => {
                // SAFETY: this level allocated the node in `tree`. `pop` returned it, so it is
                // unreachable, was seen free after that (invariant 2 of `Versions`), and has room.
                unsafe { tree.rewrite(node, contents) };
                node
            }
            (Some(node), LowerStructure::SkipList(list)) => {
                // SAFETY: as above, and this level allocated the node in `list`.
                unsafe { list.rewrite(node, contents) };
                node
            }
            (None, LowerStructure::BTree(tree)) => tree.allocate(contents),
            (None, LowerStructure::SkipList(list)) => list.allocate(contents),
        }
    }

    /// Fills a reclaimed node with `contents`, unless its room does not suit or it is pinned.
    #[inline]
    pub(super) fn refill(&self, node: NonNull<Node>, contents: &Entry<'_>) -> bool {
        if !suits(node, contents.data_bytes()) {
            return false;
        }
        match &self.structure {
            // SAFETY: callers pass nodes that this level allocated in `tree` and that they made
            // unreachable; it was seen free after that, and has room.
            LowerStructure::BTree(tree) => unsafe { tree.rewrite(node, contents) },
            // SAFETY: as above, and this level allocated the node in `list`.
            LowerStructure::SkipList(list) => unsafe { list.rewrite(node, contents) },
        }
        true
    }

    /// Links a node.
    ///
    /// # Safety
    /// The node was allocated by [`Lower::allocate`] of this level, is permanent, and is not linked.
    pub(super) unsafe fn link(&self, node: NonNull<Node>, view: &ReaderView<'_>) {
        match &self.structure {
            LowerStructure::BTree(tree) => {
                // SAFETY: this level allocated the node in `tree`; the caller guarantees that it is
                // permanent and not linked.
                unsafe { tree.link(node, Reclaim { view, free: &|node| self.free_node(node) }) };
            }
            // SAFETY: this level allocated the node in `list`; the caller guarantees that it is
            // permanent and linked for the first time.
            LowerStructure::SkipList(list) => unsafe { list.link(node) },
        }
    }

    /// Links nodes in order, searches for each from the position of the previous one, and calls
    /// `is_linked` for each once it is linked.
    ///
    /// # Safety
    /// The nodes were allocated by [`Lower::allocate`] of this level, are permanent, are linked for
    /// the first time, and come in ascending order.
    pub(super) unsafe fn link_in_order(
        &self,
        nodes: impl Iterator<Item = NonNull<Node>>,
        view: &ReaderView<'_>,
        is_linked: impl Fn(NonNull<Node>),
    ) {
        match &self.structure {
            LowerStructure::BTree(tree) => {
                let mut path = tree.multi_insert();
                let free = |node: NodeRef<'_>| self.free_node(node);
                for node in nodes {
                    // SAFETY: this level allocated the node in `tree`; the caller guarantees that
                    // nodes are in order, permanent, and not linked.
                    unsafe { path.link(node, Reclaim { view, free: &free }) };
                    is_linked(node);
                }
            }
            LowerStructure::SkipList(list) => {
                let mut path = list.multi_insert();
                for node in nodes {
                    // SAFETY: this level allocated the node in `list`; the caller guarantees that
                    // nodes are in order, permanent, and linked for the first time.
                    unsafe { path.link(node) };
                    is_linked(node);
                }
            }
        }
    }

    /// Returns the newest version of `key` at or below `seq`, or an error if it may have been
    /// reclaimed and is not held.
    pub(super) fn get(
        &self,
        key: &[u8],
        seq: SeqNo,
        hold: Hold,
    ) -> Result<Option<PinnedEntry<'_>>, Overwritten> {
        match &self.structure {
            LowerStructure::BTree(tree) => tree.get_unless_reclaimed(key, seq, hold),
            LowerStructure::SkipList(list) => {
                Ok(list.get_unless_reclaimed(key, seq, hold)?.map(|node| (node, Pin::NONE)))
            }
        }
    }

    pub(super) fn first_key(&self) -> Option<Vec<u8>> {
        match &self.structure {
            LowerStructure::BTree(tree) => tree.first_key(),
            LowerStructure::SkipList(list) => list.first_key(),
        }
    }

    pub(super) fn last_key(&self) -> Option<Vec<u8>> {
        match &self.structure {
            LowerStructure::BTree(tree) => tree.last_key(),
            LowerStructure::SkipList(list) => list.last_key(),
        }
    }

    /// Frees a node that was removed from the tree.
    fn free_node(&self, node: NodeRef<'_>) {
        self.free_version(node.as_ptr(), node.key().len() + node.value().len());
    }

    /// Frees a version that took `bytes` bytes of key and value, and counts it.
    pub(super) fn free_version(&self, node: NonNull<Node>, bytes: usize) {
        self.overwritten.fetch_add(1, Ordering::Relaxed);
        self.free.push(node, bytes);
    }

    /// Returns the number of versions that the tree and drains reclaimed since the last call.
    pub(super) fn take_overwritten(&self) -> usize {
        self.overwritten.swap(0, Ordering::Relaxed)
    }

    /// Returns whether versions that are linked here are overwritten in place.
    pub(super) fn overwrites(&self) -> bool {
        matches!(self.structure, LowerStructure::BTree(_))
    }

    /// Returns the bytes in use and the bytes taken from the allocator.
    pub(super) fn usage(&self) -> (usize, usize) {
        let (used, allocated) = match &self.structure {
            LowerStructure::BTree(tree) => tree.usage(),
            LowerStructure::SkipList(list) => list.usage(),
        };
        let (free, lists) = self.free.usage();
        // Free nodes may be pinned, or have sizes that no version needs any more. So they count as
        // room only up to the bytes in use, and the memtable is flushed eventually.
        let live = used.saturating_sub(free);
        (live.max(used - live) + lists, allocated + lists)
    }
}

/// A position in the lower level: on an entry, or on no entry.
#[derive(Debug, Clone, Default)]
pub(super) enum LowerPosition {
    #[default]
    Nowhere,
    BTree(BTreePosition),
    SkipList(ListPosition),
}

impl LowerPosition {
    /// Applies the action that fits the structure of the level to a position on no entry.
    fn sought(
        lower: &Lower,
        in_tree: impl FnOnce(&mut BTreePosition, &BTree),
        in_list: impl FnOnce(&mut ListPosition, &SkipList),
    ) -> Self {
        match &lower.structure {
            LowerStructure::BTree(tree) => {
                let mut position = BTreePosition::default();
                in_tree(&mut position, tree);
                Self::BTree(position)
            }
            LowerStructure::SkipList(list) => {
                let mut position = ListPosition::default();
                in_list(&mut position, list);
                Self::SkipList(position)
            }
        }
    }

    pub(super) fn first(lower: &Lower) -> Self {
        Self::sought(lower, StructurePosition::seek_first, StructurePosition::seek_first)
    }

    pub(super) fn last(lower: &Lower) -> Self {
        Self::sought(lower, StructurePosition::seek_last, StructurePosition::seek_last)
    }

    pub(super) fn at_or_after(lower: &Lower, key: &[u8], seq: SeqNo) -> Self {
        let all = ReadBounds::default();
        Self::sought(
            lower,
            |position, tree| position.seek(tree, key, seq, &all),
            |position, list| position.seek(list, key, seq, &all),
        )
    }

    pub(super) fn before(lower: &Lower, key: &[u8], seq: SeqNo) -> Self {
        let all = ReadBounds::default();
        Self::sought(
            lower,
            |position, tree| position.seek_before(tree, key, seq, &all),
            |position, list| position.seek_before(list, key, seq, &all),
        )
    }

    /// Returns a pin of the entry.
    pub(super) fn pin(&self) -> Pin {
        match self {
            Self::BTree(position) => position.pin(),
            Self::Nowhere | Self::SkipList(_) => Pin::NONE,
        }
    }

    /// # Safety
    /// `lower` is the level that the position was created with.
    pub(super) unsafe fn entry<'a>(&'a self, lower: &'a Lower) -> Option<Entry<'a>> {
        match (self, &lower.structure) {
            // SAFETY: the caller passes the level of the position, whose only tree is `tree`.
            (Self::BTree(position), LowerStructure::BTree(tree)) => unsafe { position.entry(tree) },
            // SAFETY: the caller passes the level of the position, whose only list is `list`.
            (Self::SkipList(position), LowerStructure::SkipList(list)) => unsafe {
                position.entry(list)
            },
            _ => None,
        }
    }

    /// Returns the position of the next entry.
    ///
    /// # Safety
    /// `lower` is the level that the position was created with.
    pub(super) unsafe fn after(&self, lower: &Lower) -> Self {
        match (self, &lower.structure) {
            (Self::BTree(position), LowerStructure::BTree(tree)) => {
                // SAFETY: the caller passes the level of the position, whose only tree is `tree`.
                Self::BTree(unsafe { position.after(tree) })
            }
            (Self::SkipList(position), LowerStructure::SkipList(list)) => {
                let mut next = *position;
                // SAFETY: the caller passes the level of the position, whose only list is `list`.
                unsafe { next.next(list, &ReadBounds::default()) };
                Self::SkipList(next)
            }
            _ => Self::Nowhere,
        }
    }

    /// Returns the position of the previous entry.
    ///
    /// # Safety
    /// `lower` is the level that the position was created with.
    pub(super) unsafe fn before_this(&self, lower: &Lower) -> Self {
        match (self, &lower.structure) {
            (Self::BTree(position), LowerStructure::BTree(tree)) => {
                // SAFETY: the caller passes the level of the position, whose only tree is `tree`.
                Self::BTree(unsafe { position.before(tree) })
            }
            (Self::SkipList(position), LowerStructure::SkipList(list)) => {
                let mut previous = *position;
                // SAFETY: the caller passes the level of the position, whose only list is `list`.
                unsafe { previous.previous(list, &ReadBounds::default()) };
                Self::SkipList(previous)
            }
            _ => Self::Nowhere,
        }
    }
}
