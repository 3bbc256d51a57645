//! A place in a B-link tree, without the tree.

use std::ptr::NonNull;

use super::BTree;
use super::node::{LeafEntry, NodeChanged, TreeNode, TreeNodeRef};
use crate::entry::{Entry, SeqNo};
use crate::prefetch::prefetch;
use crate::skiplist::{Node, NodeRef};

/// How many entries ahead a walk asks for: an entry is a cache miss, and they can be had at once.
const ENTRIES_AHEAD: usize = 8;

/// An entry of some tree, with the place where it was found; or no entry.
///
/// All methods take the tree that the position was made with, which is what keeps it alive.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BTreePosition(Option<CachedSlot>);

#[derive(Debug, Clone, Copy)]
struct CachedSlot {
    record: NonNull<Node>,
    leaf: NonNull<TreeNode>,
    /// The entry is at `index` of the leaf, as long as its counter is this.
    version: u64,
    index: usize,
}

// SAFETY: a position is used only together with its tree, which is `Send` and `Sync`.
unsafe impl Send for BTreePosition {}
// SAFETY: as for `Send`.
unsafe impl Sync for BTreePosition {}

impl BTreePosition {
    fn of(slot: Option<LeafEntry<'_>>) -> Self {
        Self(slot.map(|slot| CachedSlot {
            record: slot.record.as_ptr(),
            leaf: slot.leaf.as_ptr(),
            version: slot.version,
            index: slot.index,
        }))
    }

    pub(crate) fn first(tree: &BTree) -> Self {
        Self::of(tree.first())
    }

    pub(crate) fn last(tree: &BTree) -> Self {
        Self::of(tree.last())
    }

    pub(crate) fn at_or_after(tree: &BTree, key: &[u8], seq: SeqNo) -> Self {
        Self::of(tree.first_at_or_after(key, seq))
    }

    pub(crate) fn before(tree: &BTree, key: &[u8], seq: SeqNo) -> Self {
        Self::of(tree.last_before(key, seq))
    }

    pub(crate) fn is_valid(self) -> bool {
        self.0.is_some()
    }

    /// The entry here.
    ///
    /// # Safety
    /// `tree` is the tree that the position was made with.
    pub(crate) unsafe fn entry(self, tree: &BTree) -> Option<Entry<'_>> {
        let _ = tree;
        // SAFETY: records live as long as their tree.
        self.0.map(|place| unsafe { NodeRef::new(place.record) }.entry())
    }

    /// The next entry.
    ///
    /// # Safety
    /// `tree` is the tree that the position was made with.
    pub(crate) unsafe fn next(self, tree: &BTree) -> Self {
        let Some(place) = self.0 else { return self };
        // SAFETY: nodes live as long as their tree.
        let leaf: TreeNodeRef<'_> = unsafe { TreeNodeRef::new(place.leaf) };
        if let Ok(next) = step(leaf, place.version, place.index + 1) {
            return Self::of(next);
        }
        // SAFETY: records live as long as their tree.
        let record: NodeRef<'_> = unsafe { NodeRef::new(place.record) };
        // The entry has another place now: the next one is the first after it.
        match record.seq().checked_sub(1) {
            Some(older) => Self::of(tree.first_at_or_after(record.key(), older)),
            None => {
                let mut after = record.key().to_vec();
                after.push(0);
                Self::of(tree.first_at_or_after(&after, crate::entry::MAX_SEQ))
            }
        }
    }

    /// The entry before.
    ///
    /// # Safety
    /// `tree` is the tree that the position was made with.
    pub(crate) unsafe fn previous(self, tree: &BTree) -> Self {
        let Some(place) = self.0 else { return self };
        // SAFETY: nodes live as long as their tree.
        let leaf: TreeNodeRef<'_> = unsafe { TreeNodeRef::new(place.leaf) };
        let before = place.index.checked_sub(1);
        if let Some(Ok(slot)) = before.map(|index| step(leaf, place.version, index)) {
            return Self::of(slot);
        }
        // SAFETY: records live as long as their tree.
        let record: NodeRef<'_> = unsafe { NodeRef::new(place.record) };
        Self::of(tree.last_before(record.key(), record.seq()))
    }
}

/// The entry at `index` of a leaf whose counter was `version`, or the first one to its right.
fn step(
    leaf: TreeNodeRef<'_>,
    version: u64,
    index: usize,
) -> Result<Option<LeafEntry<'_>>, NodeChanged> {
    if index < leaf.len() {
        let record = leaf.entry(index);
        let ahead = leaf.entry(index + ENTRIES_AHEAD);
        leaf.check(version)?;
        if let Some(ahead) = ahead {
            prefetch(ahead.as_ptr().as_ptr().cast());
        }
        return Ok(record.map(|record| LeafEntry { leaf, version, index, record }));
    }
    let right = leaf.right();
    leaf.check(version)?;
    let Some(right) = right else { return Ok(None) };
    loop {
        let version = right.read_version();
        let record = right.entry(0);
        for index in 1..ENTRIES_AHEAD {
            if let Some(ahead) = right.entry(index) {
                prefetch(ahead.as_ptr().as_ptr().cast());
            }
        }
        if right.check(version).is_ok() {
            return Ok(record.map(|record| LeafEntry { leaf: right, version, index: 0, record }));
        }
    }
}
