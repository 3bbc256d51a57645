//! A position in a skip-list that does not borrow the list.

use std::ptr::NonNull;

use super::{Node, NodeRef, SkipList};
use crate::entry::{Entry, SeqNo};

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

    pub(crate) fn first(list: &SkipList) -> Self {
        Self::of(list.list.first())
    }

    pub(crate) fn last(list: &SkipList) -> Self {
        Self::of(list.list.last())
    }

    pub(crate) fn at_or_after(list: &SkipList, key: &[u8], seq: SeqNo) -> Self {
        Self::of(list.list.first_at_or_after(key, seq))
    }

    pub(crate) fn before(list: &SkipList, key: &[u8], seq: SeqNo) -> Self {
        Self::of(list.list.last_before(key, seq))
    }

    pub(crate) fn is_valid(self) -> bool {
        self.0.is_some()
    }

    /// The node, borrowed from the list.
    ///
    /// # Safety
    /// `list` is the list that the position was created with.
    unsafe fn node(self, _list: &SkipList) -> Option<NodeRef<'_>> {
        // SAFETY: the caller passes the list of the node, which owns its arena; invariant 1 of this
        // type.
        self.0.map(|node| unsafe { NodeRef::new(node) })
    }

    /// Returns the entry at the position.
    ///
    /// # Safety
    /// `list` is the list that the position was created with.
    pub(crate) unsafe fn entry(self, list: &SkipList) -> Option<Entry<'_>> {
        // SAFETY: the caller guarantees that `list` is the list of the position.
        unsafe { self.node(list) }.map(NodeRef::entry)
    }

    /// Returns the position of the next node.
    ///
    /// # Safety
    /// `list` is the list that the position was created with.
    pub(crate) unsafe fn next(self, list: &SkipList) -> Self {
        // SAFETY: the caller guarantees that `list` is the list of the position.
        let node = unsafe { self.node(list) };
        Self::of(node.and_then(NodeRef::next))
    }

    /// Returns the position of the previous node, by a search from the top.
    ///
    /// # Safety
    /// `list` is the list that the position was created with.
    pub(crate) unsafe fn previous(self, list: &SkipList) -> Self {
        // SAFETY: the caller guarantees that `list` is the list of the position.
        let node = unsafe { self.node(list) };
        Self::of(node.and_then(|node| list.list.last_before(node.key(), node.seq())))
    }
}
