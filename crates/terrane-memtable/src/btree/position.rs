//! A position in a B-link tree that does not borrow the tree.

use std::ptr::NonNull;

use super::BTree;
use super::node::{LeafEntry, NodeChanged, TreeNode, TreeNodeRef};
use crate::entry::{Entry, SeqNo};
use crate::prefetch::prefetch;
use crate::skiplist::{Node, NodeRef};
use crate::structure::{ReadBounds, StructurePosition};

/// The number of entries that a walk prefetches ahead: each is a cache miss, and they arrive in
/// parallel.
const ENTRIES_AHEAD: usize = 8;

/// An entry of a tree and the place where it was found, or no entry. All methods take the tree that
/// the position was created with, which keeps the entry alive.
///
/// Invariant 1: entry and leaf lie in the arena of that tree, and the entry is in the tree, so it
/// is not refilled (invariant 2 of [`super::node`]).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BTreePosition(Option<CachedSlot>);

#[derive(Debug, Clone, Copy)]
struct CachedSlot {
    record: NonNull<Node>,
    leaf: NonNull<TreeNode>,
    /// The entry is at `index` of the leaf while its counter is `version`.
    version: u64,
    index: usize,
}

// SAFETY: the pointers are followed only by methods that borrow the tree, which is `Send` and
// `Sync`.
unsafe impl Send for BTreePosition {}
// SAFETY: the pointers are followed only by methods that borrow the tree, which is `Send` and
// `Sync`.
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
}

impl StructurePosition<BTree> for BTreePosition {
    #[inline]
    fn is_valid(&self) -> bool {
        self.0.is_some()
    }

    #[inline]
    unsafe fn entry<'a>(&'a self, _tree: &'a BTree) -> Option<Entry<'a>> {
        // SAFETY: the caller passes the tree of the position (invariant 1 of this type).
        self.0.map(|place| unsafe { NodeRef::new(place.record) }.entry())
    }

    fn seek_first(&mut self, tree: &BTree) {
        *self = Self::of(tree.first());
    }

    fn seek_last(&mut self, tree: &BTree) {
        *self = Self::of(tree.last());
    }

    fn seek(&mut self, tree: &BTree, key: &[u8], seq: SeqNo, _bounds: &ReadBounds) {
        *self = Self::of(tree.first_at_or_after(key, seq));
    }

    fn seek_before(&mut self, tree: &BTree, key: &[u8], seq: SeqNo, _bounds: &ReadBounds) {
        *self = Self::of(tree.last_before(key, seq));
    }

    #[inline]
    unsafe fn next(&mut self, tree: &BTree, _bounds: &ReadBounds) {
        let Some(place) = self.0 else { return };
        // SAFETY: the caller passes the tree of the position (invariant 1 of this type).
        let leaf: TreeNodeRef<'_> = unsafe { TreeNodeRef::new(place.leaf) };
        if let Ok(next) = step(leaf, place.version, place.index + 1) {
            *self = Self::of(next);
            return;
        }
        // SAFETY: the caller passes the tree of the position (invariant 1 of this type).
        let record: NodeRef<'_> = unsafe { NodeRef::new(place.record) };
        // The leaf has changed: search for the first entry after this one.
        *self = match record.seq().checked_sub(1) {
            Some(older) => Self::of(tree.first_at_or_after(record.key(), older)),
            None => {
                let mut after = record.key().to_vec();
                after.push(0);
                Self::of(tree.first_at_or_after(&after, crate::entry::MAX_SEQ))
            }
        };
    }

    unsafe fn previous(&mut self, tree: &BTree, _bounds: &ReadBounds) {
        let Some(place) = self.0 else { return };
        // SAFETY: the caller passes the tree of the position (invariant 1 of this type).
        let leaf: TreeNodeRef<'_> = unsafe { TreeNodeRef::new(place.leaf) };
        let before = place.index.checked_sub(1);
        if let Some(Ok(slot)) = before.map(|index| step(leaf, place.version, index)) {
            *self = Self::of(slot);
            return;
        }
        // SAFETY: the caller passes the tree of the position (invariant 1 of this type).
        let record: NodeRef<'_> = unsafe { NodeRef::new(place.record) };
        *self = Self::of(tree.last_before(record.key(), record.seq()));
    }
}

/// Returns the entry at `index` of a leaf whose counter was `version`; if the leaf has no such
/// entry, the first entry to the right of the leaf.
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
