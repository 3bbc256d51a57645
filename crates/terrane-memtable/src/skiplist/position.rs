//! A position in a skip-list that does not borrow the list.

use std::ptr::NonNull;

use super::{Node, NodeRef, SkipList};
use crate::entry::{Entry, SeqNo};
use crate::structure::{ReadBounds, StructurePosition};

/// A linked node of a skip-list, or none. All methods take the list it was created with, which
/// keeps the node alive.
///
/// Invariant 1: the node is linked in that list, so it is not refilled (invariant 3 of
/// [`super::list`]).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ListPosition(Option<NonNull<Node>>);

// SAFETY: the pointer is followed only by methods that borrow the list, which is `Send` and `Sync`.
unsafe impl Send for ListPosition {}
// SAFETY: the pointer is followed only by methods that borrow the list, which is `Send` and `Sync`.
unsafe impl Sync for ListPosition {}

impl ListPosition {
    fn of(node: Option<NodeRef<'_>>) -> Self {
        Self(node.map(NodeRef::as_ptr))
    }

    /// The node, borrowed from the list.
    ///
    /// # Safety
    /// `list` is the list that the position was created with.
    unsafe fn node(self, _list: &SkipList) -> Option<NodeRef<'_>> {
        // SAFETY: the caller passes the list of the position, which owns the node's arena, and the
        // node is not refilled (invariant 1 of this type).
        self.0.map(|node| unsafe { NodeRef::new(node) })
    }
}

impl StructurePosition<SkipList> for ListPosition {
    #[inline]
    unsafe fn entry<'a>(&'a self, list: &'a SkipList) -> Option<Entry<'a>> {
        // SAFETY: the caller guarantees that `list` is the list of the position.
        unsafe { self.node(list) }.map(NodeRef::entry)
    }

    fn seek_first(&mut self, list: &SkipList) {
        *self = Self::of(list.list.first());
    }

    fn seek_last(&mut self, list: &SkipList) {
        *self = Self::of(list.list.last());
    }

    fn seek(&mut self, list: &SkipList, key: &[u8], seq: SeqNo, _bounds: &ReadBounds) {
        *self = Self::of(list.list.first_at_or_after(key, seq));
    }

    fn seek_before(&mut self, list: &SkipList, key: &[u8], seq: SeqNo, _bounds: &ReadBounds) {
        *self = Self::of(list.list.last_before(key, seq));
    }

    #[inline]
    unsafe fn next(&mut self, list: &SkipList, _bounds: &ReadBounds) {
        // SAFETY: the caller guarantees that `list` is the list of the position.
        let node = unsafe { self.node(list) };
        *self = Self::of(node.and_then(NodeRef::next));
    }

    /// Searches from the top, because links lead forward only.
    unsafe fn previous(&mut self, list: &SkipList, _bounds: &ReadBounds) {
        // SAFETY: the caller guarantees that `list` is the list of the position.
        let node = unsafe { self.node(list) };
        *self = Self::of(node.and_then(|node| list.list.last_before(node.key(), node.seq())));
    }
}
