//! Overwriting in place: a version that enters a leaf replaces the older versions of its key that it
//! hides.
//!
//! Versions of a key are neighbours in a leaf, newer before older. A version is removed from the leaf
//! if the next newer one is in the same leaf and hides it ([`crate::readers`]), and if that one is
//! the last of its chain in the Membuffer, so that no chain leads to the removed one (invariant 8 of
//! `flodb::membuffer`). The next newer version records the gap.
//!
//! Invariants:
//! 1. The first entry of a leaf that is not the leftmost is never removed: the next newer version of
//!    its key is smaller than it, and therefore in a leaf to the left. So separators, which are such
//!    first entries, are never refilled, and descents need no pins. Such an entry is kept although it
//!    is hidden. If a leaf was split inside the versions of a key, the right half of them is only
//!    visited by writes that enter that leaf, and may stay until the flush.
//! 2. An entry is removed under the lock of its leaf, whose counter changes before the entry is
//!    freed. Readers of a leaf pin an entry and then check the counter ([`super::node`]), so one that
//!    finds it unchanged has pinned the entry before it was freed.
//! 3. `older` of a version that ends its chain changes only under the lock of its leaf.

use super::node::TreeNodeGuard;
use crate::readers::ReaderView;
use crate::skiplist::NodeRef;

/// The maximum number of versions of a key that readers need and that are passed over.
const PASSED_MAX: usize = 8;

/// Says which versions are hidden, and takes those that were removed.
#[derive(Clone, Copy)]
pub(crate) struct Reclaim<'r> {
    pub(crate) view: &'r ReaderView<'r>,
    pub(crate) free: &'r dyn Fn(NodeRef<'_>),
}

/// What an entry found when it entered its leaf.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Neighbours {
    /// The entry took the place of a version that it hides.
    pub(super) is_placed: bool,
    /// An older version of the key is left, because readers may need it.
    pub(crate) has_older: bool,
}

/// Removes the entries from `at` on that are hidden versions of the key of `newer`, which precedes
/// them and has this head. The first of them is replaced by `placed` instead, if there is one.
#[inline]
pub(super) fn remove_hidden<'a>(
    leaf: &mut TreeNodeGuard<'a>,
    (mut at, head): (usize, u64),
    newer: NodeRef<'a>,
    placed: Option<NodeRef<'a>>,
    reclaim: Reclaim<'_>,
) -> Neighbours {
    let (key, mut newer) = (newer.key(), newer);
    let mut neighbours = Neighbours::default();
    let mut passed = 0;
    // Heads tell most keys apart, and are at hand; the entries are not.
    while at < leaf.node.len() && leaf.node.head(at) == head && passed < PASSED_MAX {
        let Some(older) = leaf.node.entry(at).filter(|older| older.key() == key) else { break };
        // SAFETY: only trees whose entries have versions reclaim.
        let newer_links = unsafe { newer.versions() };
        let link = newer_links.older();
        if link.node().is_some() || !reclaim.view.is_hidden(older.seq(), newer.seq()) {
            neighbours.has_older = true;
            (newer, at, passed) = (older, at + 1, passed + 1);
            continue;
        }
        // Before the older version disappears, so that no lookup misses the gap.
        newer_links.set_older(link.with_gap());
        match placed.filter(|_| !neighbours.is_placed && passed == 0) {
            Some(placed) => {
                leaf.replace(at, placed.as_ptr());
                neighbours.is_placed = true;
                at += 1;
            }
            None => leaf.remove(at),
        }
        // SAFETY: as above. The entry was just removed, and is in no chain (see above).
        unsafe { older.versions() }.detach();
        (reclaim.free)(older);
    }
    neighbours
}
