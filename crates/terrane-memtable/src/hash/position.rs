//! A position in a hashed memtable: in a bucket, or in a sorted view.

use std::ptr::NonNull;

use super::{Buckets, Hashed};
use crate::entry::{Entry, SeqNo};
use crate::ordered::ViewPosition;
use crate::skiplist::{Node, NodeRef};
use crate::structure::{ReadBounds, StructurePosition};

/// An entry of a hashed memtable, or none. All methods take the table it was created with, which
/// keeps the entry alive.
///
/// Invariant 1: a `Bucket` node is in a list of that table, so it lives as long as the table and is
/// never refilled (invariants 1 and 3 of [`super`]).
#[derive(Default)]
pub(crate) enum HashPosition {
    #[default]
    Nothing,
    /// In the list of the entry's prefix.
    ListBucket(NonNull<Node>),
    /// In a sorted view of one prefix, as of an earlier time.
    Prefix(ViewPosition),
    /// In a sorted view of all entries, as of an earlier time.
    Ordered(ViewPosition),
}

// SAFETY: the pointers are followed only by methods that borrow the table, which is `Send` and
// `Sync`.
unsafe impl Send for HashPosition {}
// SAFETY: the pointers are followed only by methods that borrow the table, which is `Send` and
// `Sync`.
unsafe impl Sync for HashPosition {}

impl HashPosition {
    /// Seeks the first entry at or after `(key, seq)`.
    fn at_or_after(table: &Hashed, key: &[u8], seq: SeqNo, bounds: &ReadBounds) -> Self {
        let found = match &table.places {
            Buckets::Lists(places, _) => {
                let list = table.list(table.place(places, key));
                let found = list.and_then(|list| list.first_at_or_after(key, seq));
                Self::in_prefix(table, found, key)
            }
            Buckets::Chains(chains) => {
                let prefix = table.ordered_prefix(table.place(chains, key), key);
                Self::in_view(ViewPosition::at_or_after(prefix, key, seq))
            }
        };
        found.unwrap_or_else(|| {
            if table.prefix(key).is_last_before(bounds.end.as_deref()) {
                return Self::Nothing;
            }
            Self::Ordered(ViewPosition::at_or_after(table.ordered(), key, seq))
        })
    }

    /// Seeks the last entry before `(key, seq)`.
    fn before(table: &Hashed, key: &[u8], seq: SeqNo, bounds: &ReadBounds) -> Self {
        let found = match &table.places {
            Buckets::Lists(places, _) => {
                let list = table.list(table.place(places, key));
                let found = list.and_then(|list| list.last_before(key, seq));
                Self::in_prefix(table, found, key)
            }
            Buckets::Chains(chains) => {
                let prefix = table.ordered_prefix(table.place(chains, key), key);
                Self::in_view(ViewPosition::before(prefix, key, seq))
            }
        };
        found.unwrap_or_else(|| {
            if table.prefix(key).is_first_from(bounds.first.as_deref()) {
                return Self::Nothing;
            }
            Self::Ordered(ViewPosition::before(table.ordered(), key, seq))
        })
    }

    /// Returns a position on `node`, if it has the prefix of `key`.
    fn in_prefix(table: &Hashed, node: Option<NodeRef<'_>>, key: &[u8]) -> Option<Self> {
        let node = node.filter(|node| table.prefix(key).is_of(node.key()))?;
        Some(Self::ListBucket(node.as_ptr()))
    }

    /// Returns the position in a view of one prefix, if it is on an entry.
    fn in_view(position: ViewPosition) -> Option<Self> {
        position.is_valid().then_some(Self::Prefix(position))
    }

    /// Returns the position after `node`, which is the last node of its prefix.
    #[cold]
    fn after_prefix(table: &Hashed, node: NodeRef<'_>, bounds: &ReadBounds) -> Self {
        if table.prefix(node.key()).is_last_before(bounds.end.as_deref()) {
            return Self::Nothing;
        }
        let mut next = ViewPosition::at_or_after(table.ordered(), node.key(), node.seq());
        let is_here = |entry: Entry<'_>| (entry.key, entry.seq) == (node.key(), node.seq());
        if next.entry().is_some_and(is_here) {
            next.next();
        }
        Self::Ordered(next)
    }
}

impl StructurePosition<Hashed> for HashPosition {
    const USES_BOUNDS: bool = true;

    #[inline]
    unsafe fn entry<'a>(&'a self, _table: &'a Hashed) -> Option<Entry<'a>> {
        match self {
            Self::Nothing => None,
            // SAFETY: the caller passes the table of the position (invariant 1 of this type).
            Self::ListBucket(node) => Some(unsafe { NodeRef::new(*node) }.entry()),
            Self::Ordered(position) | Self::Prefix(position) => position.entry(),
        }
    }

    fn seek_first(&mut self, table: &Hashed) {
        *self = Self::Ordered(ViewPosition::first(table.ordered()));
    }

    fn seek_last(&mut self, table: &Hashed) {
        *self = Self::Ordered(ViewPosition::last(table.ordered()));
    }

    fn seek(&mut self, table: &Hashed, key: &[u8], seq: SeqNo, bounds: &ReadBounds) {
        *self = Self::at_or_after(table, key, seq, bounds);
    }

    fn seek_before(&mut self, table: &Hashed, key: &[u8], seq: SeqNo, bounds: &ReadBounds) {
        *self = Self::before(table, key, seq, bounds);
    }

    #[inline]
    unsafe fn next(&mut self, table: &Hashed, bounds: &ReadBounds) {
        match self {
            Self::Nothing => {}
            Self::Ordered(position) => position.next(),
            Self::Prefix(position) => {
                let Some(here) = position.slot() else { return };
                position.next();
                if !position.is_valid() {
                    // SAFETY: the view was created from nodes of this table, which lives and never
                    // refills them.
                    *self = Self::after_prefix(table, unsafe { here.node() }, bounds);
                }
            }
            Self::ListBucket(node) => {
                // SAFETY: the caller passes the table of the position (invariant 1 of this type).
                let node: NodeRef<'_> = unsafe { NodeRef::new(*node) };
                *self = Self::in_prefix(table, node.next(), node.key())
                    .unwrap_or_else(|| Self::after_prefix(table, node, bounds));
            }
        }
    }

    unsafe fn previous(&mut self, table: &Hashed, bounds: &ReadBounds) {
        match self {
            Self::Nothing => {}
            Self::Ordered(position) => position.previous(),
            Self::Prefix(position) => {
                let Some(here) = position.slot() else { return };
                position.previous();
                if !position.is_valid() {
                    // SAFETY: the view was created from nodes of this table, which lives and never
                    // refills them.
                    let here: NodeRef<'_> = unsafe { here.node() };
                    *self = Self::before(table, here.key(), here.seq(), bounds);
                }
            }
            Self::ListBucket(node) => {
                // SAFETY: the caller passes the table of the position (invariant 1 of this type).
                let node: NodeRef<'_> = unsafe { NodeRef::new(*node) };
                *self = Self::before(table, node.key(), node.seq(), bounds);
            }
        }
    }
}
