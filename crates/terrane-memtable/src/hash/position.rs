//! A place in a hashed memtable: in a bucket, or in an order of all entries.

use std::ptr::NonNull;

use super::{Buckets, Hashed};
use crate::entry::{Entry, SeqNo};
use crate::ordered::ViewPosition;
use crate::skiplist::{Node, NodeRef};

/// The keys that a reader will ask for; without an end, all.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReadBounds {
    /// None before this.
    pub(crate) first: Option<Box<[u8]>>,
    /// None from this on.
    pub(crate) end: Option<Box<[u8]>>,
}

/// An entry of some hashed memtable, or no entry.
///
/// All methods take the table that the position was made with, which is what keeps it alive.
#[derive(Default)]
pub(crate) enum HashPosition {
    #[default]
    Nothing,
    /// In the list of its prefix.
    ListBucket(NonNull<Node>),
    /// In an order of the entries of one prefix, as of a while ago.
    Prefix(ViewPosition),
    /// In an order of all entries, as of a while ago.
    Ordered(ViewPosition),
}

// SAFETY: a position is used only together with its table, which is `Send` and `Sync`.
unsafe impl Send for HashPosition {}
// SAFETY: as for `Send`.
unsafe impl Sync for HashPosition {}

impl HashPosition {
    pub(crate) fn first(table: &Hashed) -> Self {
        Self::Ordered(ViewPosition::first(table.ordered()))
    }

    pub(crate) fn last(table: &Hashed) -> Self {
        Self::Ordered(ViewPosition::last(table.ordered()))
    }

    /// The first entry at or after `(key, seq)`.
    pub(crate) fn at_or_after(table: &Hashed, key: &[u8], seq: SeqNo, range: &ReadBounds) -> Self {
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
            if table.prefix(key).is_last_before(range.end.as_deref()) {
                return Self::Nothing;
            }
            Self::Ordered(ViewPosition::at_or_after(table.ordered(), key, seq))
        })
    }

    /// The last entry before `(key, seq)`.
    pub(crate) fn before(table: &Hashed, key: &[u8], seq: SeqNo, range: &ReadBounds) -> Self {
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
            if table.prefix(key).is_first_from(range.first.as_deref()) {
                return Self::Nothing;
            }
            Self::Ordered(ViewPosition::before(table.ordered(), key, seq))
        })
    }

    /// The node, if it has the prefix of `key`.
    fn in_prefix(table: &Hashed, node: Option<NodeRef<'_>>, key: &[u8]) -> Option<Self> {
        let node = node.filter(|node| table.prefix(key).is_of(node.key()))?;
        Some(Self::ListBucket(node.as_ptr()))
    }

    /// A place in an order of one prefix, if there is an entry.
    fn in_view(position: ViewPosition) -> Option<Self> {
        position.is_valid().then_some(Self::Prefix(position))
    }

    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        match self {
            Self::Nothing => false,
            Self::ListBucket(_) | Self::Prefix(_) => true,
            Self::Ordered(position) => position.is_valid(),
        }
    }

    /// The entry here.
    ///
    /// # Safety
    /// `table` is the one that the position was made with.
    #[inline]
    pub(crate) unsafe fn entry<'a>(&'a self, table: &'a Hashed) -> Option<Entry<'a>> {
        let _ = table;
        match self {
            Self::Nothing => None,
            // SAFETY: nodes live as long as their table.
            Self::ListBucket(node) => Some(unsafe { NodeRef::new(*node) }.entry()),
            Self::Ordered(position) | Self::Prefix(position) => position.entry(),
        }
    }

    /// Moves to the next entry.
    ///
    /// # Safety
    /// `table` is the one that the position was made with.
    #[inline]
    pub(crate) unsafe fn next(&mut self, table: &Hashed, range: &ReadBounds) {
        match self {
            Self::Nothing => {}
            Self::Ordered(position) => position.next(),
            Self::Prefix(position) => {
                let Some(here) = position.slot() else { return };
                position.next();
                if !position.is_valid() {
                    // SAFETY: nodes live as long as their table.
                    *self = Self::after_prefix(table, unsafe { here.node() }, range);
                }
            }
            Self::ListBucket(node) => {
                // SAFETY: nodes live as long as their table.
                let node: NodeRef<'_> = unsafe { NodeRef::new(*node) };
                *self = Self::in_prefix(table, node.next(), node.key())
                    .unwrap_or_else(|| Self::after_prefix(table, node, range));
            }
        }
    }

    /// The entry after `node`, which is the last one of its prefix.
    #[cold]
    fn after_prefix(table: &Hashed, node: NodeRef<'_>, range: &ReadBounds) -> Self {
        if table.prefix(node.key()).is_last_before(range.end.as_deref()) {
            return Self::Nothing;
        }
        let mut next = ViewPosition::at_or_after(table.ordered(), node.key(), node.seq());
        let is_here = |entry: Entry<'_>| (entry.key, entry.seq) == (node.key(), node.seq());
        if next.entry().is_some_and(is_here) {
            next.next();
        }
        Self::Ordered(next)
    }

    /// Moves to the entry before.
    ///
    /// # Safety
    /// `table` is the one that the position was made with.
    pub(crate) unsafe fn previous(&mut self, table: &Hashed, range: &ReadBounds) {
        match self {
            Self::Nothing => {}
            Self::Ordered(position) => position.previous(),
            Self::Prefix(position) => {
                let Some(here) = position.slot() else { return };
                position.previous();
                if !position.is_valid() {
                    // SAFETY: nodes live as long as their table.
                    let here: NodeRef<'_> = unsafe { here.node() };
                    *self = Self::before(table, here.key(), here.seq(), range);
                }
            }
            Self::ListBucket(node) => {
                // SAFETY: nodes live as long as their table.
                let node: NodeRef<'_> = unsafe { NodeRef::new(*node) };
                *self = Self::before(table, node.key(), node.seq(), range);
            }
        }
    }
}
