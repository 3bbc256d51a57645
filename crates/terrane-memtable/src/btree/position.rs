//! A position in a B-link tree that does not borrow the tree.

use std::ptr::NonNull;

use super::BTree;
use super::node::{LeafEntry, NodeChanged, TreeNode, TreeNodeRef};
use crate::entry::{Entry, SeqNo};
use crate::prefetch::prefetch;
use crate::skiplist::{Node, NodeRef, Pin};
use crate::structure::{ReadBounds, StructurePosition};

/// The number of entries that a walk prefetches ahead: each is a cache miss, and they arrive in
/// parallel.
const ENTRIES_AHEAD: usize = 8;

/// An entry of a tree and the place where it was found, or no entry. All methods take the tree that
/// the position was created with, which keeps the entry alive.
///
/// Invariant 1: entry and leaf lie in the arena of that tree, and the entry is pinned or has no
/// versions, so it is not refilled.
#[derive(Debug, Clone, Default)]
pub(crate) struct BTreePosition(Option<CachedSlot>);

#[derive(Debug, Clone)]
struct CachedSlot {
    record: NonNull<Node>,
    leaf: NonNull<TreeNode>,
    /// The entry is at `index` of the leaf while its counter is `version`.
    version: u64,
    index: usize,
    /// Dropped before the tree, which the owner of the position keeps alive.
    pin: Pin,
}

// SAFETY: the pointers are followed only by methods that borrow the tree, which is `Send` and
// `Sync`, and by the pin, whose count is atomic.
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
            pin: slot.pin,
        }))
    }

    /// Returns a pin of the entry.
    pub(crate) fn pin(&self) -> Pin {
        self.0.as_ref().map_or(Pin::NONE, |slot| slot.pin.clone())
    }

    /// Returns the position of the next entry.
    ///
    /// # Safety
    /// All calls on this position have passed this very tree.
    #[inline]
    pub(crate) unsafe fn after(&self, tree: &BTree) -> Self {
        let Some(place) = &self.0 else { return Self(None) };
        // SAFETY: the caller passes the tree of the position (invariant 1 of this type).
        let leaf: TreeNodeRef<'_> = unsafe { TreeNodeRef::new(place.leaf) };
        if let Ok(next) = tree.step(leaf, place.version, place.index + 1) {
            return Self::of(next);
        }
        // SAFETY: the caller passes the tree of the position (invariant 1 of this type).
        let record: NodeRef<'_> = unsafe { NodeRef::new(place.record) };
        // The leaf has changed: search for the first entry after this one.
        match record.seq().checked_sub(1) {
            Some(older) => Self::of(tree.first_at_or_after(record.key(), older)),
            None => {
                let mut after = record.key().to_vec();
                after.push(0);
                Self::of(tree.first_at_or_after(&after, crate::entry::MAX_SEQ))
            }
        }
    }

    /// Returns the position of the previous entry.
    ///
    /// # Safety
    /// All calls on this position have passed this very tree.
    pub(crate) unsafe fn before(&self, tree: &BTree) -> Self {
        let Some(place) = &self.0 else { return Self(None) };
        // SAFETY: the caller passes the tree of the position (invariant 1 of this type).
        let leaf: TreeNodeRef<'_> = unsafe { TreeNodeRef::new(place.leaf) };
        let before = place.index.checked_sub(1);
        if let Some(Ok(slot)) = before.map(|index| tree.step(leaf, place.version, index)) {
            return Self::of(slot);
        }
        // SAFETY: the caller passes the tree of the position (invariant 1 of this type).
        let record: NodeRef<'_> = unsafe { NodeRef::new(place.record) };
        Self::of(tree.last_before(record.key(), record.seq()))
    }
}

impl StructurePosition<BTree> for BTreePosition {
    #[inline]
    unsafe fn entry<'a>(&'a self, _tree: &'a BTree) -> Option<Entry<'a>> {
        // SAFETY: the caller passes the tree of the position (invariant 1 of this type).
        self.0.as_ref().map(|place| unsafe { NodeRef::new(place.record) }.entry())
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
        // SAFETY: the caller passes the tree of the position.
        *self = unsafe { self.after(tree) };
    }

    unsafe fn previous(&mut self, tree: &BTree, _bounds: &ReadBounds) {
        // SAFETY: the caller passes the tree of the position.
        *self = unsafe { self.before(tree) };
    }
}

impl BTree {
    /// Returns the entry at `index` of a leaf whose counter was `version`; if the leaf has no such
    /// entry, the first entry to the right of the leaf.
    #[inline]
    fn step<'a>(
        &'a self,
        leaf: TreeNodeRef<'a>,
        version: u64,
        index: usize,
    ) -> Result<Option<LeafEntry<'a>>, NodeChanged> {
        if index < leaf.len() {
            let found = leaf.pin_entry(index, version, self.layout)?;
            let ahead = leaf.entry_address(index + ENTRIES_AHEAD);
            leaf.check(version)?;
            if let Some(ahead) = ahead {
                prefetch(ahead.cast());
            }
            return Ok(found.map(|(record, pin)| LeafEntry { leaf, version, index, record, pin }));
        }
        let right = leaf.right();
        leaf.check(version)?;
        let Some(leaf) = right else { return Ok(None) };
        loop {
            let version = leaf.read_version();
            let Ok(found) = leaf.pin_entry(0, version, self.layout) else { continue };
            for index in 1..ENTRIES_AHEAD {
                if let Some(ahead) = leaf.entry_address(index) {
                    prefetch(ahead.cast());
                }
            }
            if leaf.check(version).is_ok() {
                let slot = |(record, pin)| LeafEntry { leaf, version, index: 0, record, pin };
                return Ok(found.map(slot));
            }
        }
    }
}
