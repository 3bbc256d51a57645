//! A place in a skip-list, without the list.

use std::ptr::NonNull;

use super::{Node, NodeRef, SkipList};
use crate::entry::{Entry, SeqNo};

/// A node of some skip-list, or no node.
///
/// All methods take the list that the position was made with, which is what keeps the node alive.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ListPosition(Option<NonNull<Node>>);

// SAFETY: a position is used only together with its list, which is `Send` and `Sync`.
unsafe impl Send for ListPosition {}
// SAFETY: as for `Send`.
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

    /// The node, for as long as the list lives.
    ///
    /// # Safety
    /// `list` is the list that the position was made with.
    unsafe fn node(self, _list: &SkipList) -> Option<NodeRef<'_>> {
        // SAFETY: nodes live as long as their list.
        self.0.map(|node| unsafe { NodeRef::new(node) })
    }

    /// The entry here.
    ///
    /// # Safety
    /// `list` is the list that the position was made with.
    pub(crate) unsafe fn entry(self, list: &SkipList) -> Option<Entry<'_>> {
        // SAFETY: passed on.
        unsafe { self.node(list) }.map(NodeRef::entry)
    }

    /// The next node.
    ///
    /// # Safety
    /// `list` is the list that the position was made with.
    pub(crate) unsafe fn next(self, list: &SkipList) -> Self {
        // SAFETY: passed on.
        let node = unsafe { self.node(list) };
        Self::of(node.and_then(NodeRef::next))
    }

    /// The node before, by a search from the top.
    ///
    /// # Safety
    /// `list` is the list that the position was made with.
    pub(crate) unsafe fn previous(self, list: &SkipList) -> Self {
        // SAFETY: passed on.
        let node = unsafe { self.node(list) };
        Self::of(node.and_then(|node| list.list.last_before(node.key(), node.seq())))
    }
}
