//! The lower level: what the Membuffer is drained into, and cursors walk.

use std::ptr::NonNull;
use std::sync::Arc;

use crate::btree::{BTree, BTreePosition};
use crate::entry::{Entry, SeqNo};
use crate::pool::Pool;
use crate::skiplist::{Layout, ListPosition, Node, NodeRef, Overwritten, SkipList};

/// DrainScope structure the lower level is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LowerLevel {
    /// The concurrent B-link tree.
    BTree,
    /// The concurrent skip-list, as in the paper.
    SkipList,
}

/// Branching and height of the list.
const BRANCHING: u8 = 4;
const HEIGHT: u8 = 12;

/// The lower level. Its nodes have versions, so that they can wait in the Membuffer.
pub(super) enum Lower {
    BTree(BTree),
    SkipList(SkipList),
}

impl Lower {
    pub(super) fn new(level: LowerLevel, pool: Arc<Pool>) -> Self {
        match level {
            LowerLevel::BTree => Self::BTree(BTree::new(Layout::Versioned, pool)),
            LowerLevel::SkipList => {
                Self::SkipList(SkipList::new(BRANCHING, HEIGHT, Layout::Versioned, pool))
            }
        }
    }

    /// Adds a version. No two versions of a key may have the same sequence number.
    pub(super) fn insert(&self, contents: &Entry<'_>) {
        match self {
            Self::BTree(tree) => tree.insert(contents),
            Self::SkipList(list) => list.insert(contents),
        }
    }

    /// A node that is not linked yet.
    #[inline]
    pub(super) fn allocate(&self, contents: &Entry<'_>) -> NonNull<Node> {
        match self {
            Self::BTree(tree) => tree.allocate(contents),
            Self::SkipList(list) => list.allocate(contents),
        }
    }

    /// Writes a node anew that is not linked.
    ///
    /// # Safety
    /// The node was made by [`Lower::allocate`], no one else reads it, and it has room for the
    /// contents.
    pub(super) unsafe fn rewrite(&self, node: NonNull<Node>, contents: &Entry<'_>) {
        match self {
            // SAFETY: passed on.
            Self::BTree(tree) => unsafe { tree.rewrite(node, contents) },
            // SAFETY: passed on.
            Self::SkipList(list) => unsafe { list.rewrite(node, contents) },
        }
    }

    /// Puts a node where it belongs.
    ///
    /// # Safety
    /// The node was made by [`Lower::allocate`] of this level, and is linked for the first time.
    pub(super) unsafe fn link(&self, node: NonNull<Node>) {
        match self {
            // SAFETY: passed on.
            Self::BTree(tree) => unsafe { tree.link(node) },
            // SAFETY: passed on.
            Self::SkipList(list) => unsafe { list.link(node) },
        }
    }

    /// Puts nodes where they belong, each searched for from where the one before went, and tells of
    /// each once it is there.
    ///
    /// # Safety
    /// The nodes were made by [`Lower::allocate`] of this level, are linked for the first time, and
    /// come in order.
    pub(super) unsafe fn link_in_order(
        &self,
        nodes: impl Iterator<Item = NonNull<Node>>,
        is_linked: impl Fn(NonNull<Node>),
    ) {
        match self {
            Self::BTree(tree) => {
                let mut path = tree.multi_insert();
                for node in nodes {
                    // SAFETY: passed on.
                    unsafe { path.link(node) };
                    is_linked(node);
                }
            }
            Self::SkipList(list) => {
                let mut path = list.multi_insert();
                for node in nodes {
                    // SAFETY: passed on.
                    unsafe { path.link(node) };
                    is_linked(node);
                }
            }
        }
    }

    /// The newest version of `key` that is not newer than `seq`; an error if it may have been
    /// forgotten.
    pub(super) fn get(&self, key: &[u8], seq: SeqNo) -> Result<Option<NodeRef<'_>>, Overwritten> {
        match self {
            Self::BTree(tree) => tree.get_unless_reclaimed(key, seq),
            Self::SkipList(list) => list.get_unless_reclaimed(key, seq),
        }
    }

    pub(super) fn first_key(&self) -> Option<&[u8]> {
        match self {
            Self::BTree(tree) => tree.first_key(),
            Self::SkipList(list) => list.first_key(),
        }
    }

    pub(super) fn last_key(&self) -> Option<&[u8]> {
        match self {
            Self::BTree(tree) => tree.last_key(),
            Self::SkipList(list) => list.last_key(),
        }
    }

    /// Bytes handed out, and bytes taken from the allocator.
    pub(super) fn usage(&self) -> (usize, usize) {
        match self {
            Self::BTree(tree) => tree.usage(),
            Self::SkipList(list) => list.usage(),
        }
    }
}

/// An entry of the lower level, or no entry.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum LowerPosition {
    #[default]
    Nowhere,
    BTree(BTreePosition),
    SkipList(ListPosition),
}

impl LowerPosition {
    pub(super) fn first(lower: &Lower) -> Self {
        match lower {
            Lower::BTree(tree) => Self::BTree(BTreePosition::first(tree)),
            Lower::SkipList(list) => Self::SkipList(ListPosition::first(list)),
        }
    }

    pub(super) fn last(lower: &Lower) -> Self {
        match lower {
            Lower::BTree(tree) => Self::BTree(BTreePosition::last(tree)),
            Lower::SkipList(list) => Self::SkipList(ListPosition::last(list)),
        }
    }

    pub(super) fn at_or_after(lower: &Lower, key: &[u8], seq: SeqNo) -> Self {
        match lower {
            Lower::BTree(tree) => Self::BTree(BTreePosition::at_or_after(tree, key, seq)),
            Lower::SkipList(list) => Self::SkipList(ListPosition::at_or_after(list, key, seq)),
        }
    }

    pub(super) fn before(lower: &Lower, key: &[u8], seq: SeqNo) -> Self {
        match lower {
            Lower::BTree(tree) => Self::BTree(BTreePosition::before(tree, key, seq)),
            Lower::SkipList(list) => Self::SkipList(ListPosition::before(list, key, seq)),
        }
    }

    pub(super) fn is_valid(self) -> bool {
        match self {
            Self::Nowhere => false,
            Self::BTree(position) => position.is_valid(),
            Self::SkipList(position) => position.is_valid(),
        }
    }

    /// # Safety
    /// `lower` is what the place was made with.
    pub(super) unsafe fn entry(self, lower: &Lower) -> Option<Entry<'_>> {
        match (self, lower) {
            // SAFETY: passed on.
            (Self::BTree(position), Lower::BTree(tree)) => unsafe { position.entry(tree) },
            // SAFETY: passed on.
            (Self::SkipList(position), Lower::SkipList(list)) => unsafe { position.entry(list) },
            _ => None,
        }
    }

    /// # Safety
    /// `lower` is what the place was made with.
    pub(super) unsafe fn next(self, lower: &Lower) -> Self {
        match (self, lower) {
            (Self::BTree(position), Lower::BTree(tree)) => {
                // SAFETY: passed on.
                Self::BTree(unsafe { position.next(tree) })
            }
            (Self::SkipList(position), Lower::SkipList(list)) => {
                // SAFETY: passed on.
                Self::SkipList(unsafe { position.next(list) })
            }
            _ => Self::Nowhere,
        }
    }

    /// # Safety
    /// `lower` is what the place was made with.
    pub(super) unsafe fn previous(self, lower: &Lower) -> Self {
        match (self, lower) {
            (Self::BTree(position), Lower::BTree(tree)) => {
                // SAFETY: passed on.
                Self::BTree(unsafe { position.previous(tree) })
            }
            (Self::SkipList(position), Lower::SkipList(list)) => {
                // SAFETY: passed on.
                Self::SkipList(unsafe { position.previous(list) })
            }
            _ => Self::Nowhere,
        }
    }
}
