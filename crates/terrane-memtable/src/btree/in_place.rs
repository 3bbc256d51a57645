//! Overwriting in place: a version that enters a leaf replaces the older versions of its key that it
//! hides.
//!
//! Versions of a key are neighbours, newer before older. A version is removed from its leaf if the
//! next newer one hides it ([`crate::readers`]) and is in the same leaf or at the end of the left
//! neighbour. The newer version must also be the last of its chain in the Membuffer, so that no chain
//! leads to the removed one (invariant 8 of `flodb::membuffer`), and it records the gap. If the
//! versions of a key are split between two leaves, those in the right leaf are removed, under both
//! locks, once the newer version is in the left leaf. A walk that left the left leaf before the newer
//! version arrived there reads at an older sequence number. It holds that number, so the older
//! version is kept.
//!
//! Invariants:
//! 1. Separators are copies that are never refilled, so descents need no pins. They stay when the
//!    entries that they were copied from are removed, so a leaf may begin with a larger entry than its
//!    separator, and a search for the entry before a target may have to continue in the left
//!    neighbour. The last entry left in a leaf is not removed, so that neighbour has one.
//! 2. An entry is removed under the lock of its leaf, whose counter changes before the entry is
//!    freed. Readers of a leaf pin an entry and then check the counter ([`super::node`]), so a reader
//!    that finds the counter unchanged pinned the entry before it was freed.
//! 3. `older` of a version that ends its chain changes only under the lock of its leaf.

use super::node::TreeNodeGuard;
use crate::readers::ReaderView;
use crate::skiplist::NodeRef;

/// The maximum number of a key's versions that are passed over because readers need them.
const PASSED_MAX: usize = 8;

/// Decides which versions are hidden, and receives the removed ones.
#[derive(Clone, Copy)]
pub(crate) struct Reclaim<'r> {
    pub(crate) view: &'r ReaderView<'r>,
    pub(crate) free: &'r dyn Fn(NodeRef<'_>),
}

/// The outcome of placing an entry in its leaf.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Neighbours {
    /// The entry took the place of a version that it hides.
    pub(super) is_placed: bool,
    /// The right neighbour of the leaf may begin with older versions of the key.
    pub(super) is_continued: bool,
    /// An older version of the key remains, because readers may need it.
    pub(crate) has_older: bool,
}

/// Removes the hidden versions of `newer`'s key among the entries from `at` on. `newer` precedes
/// them and has this head. If `placed` is given, it replaces the first of them.
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
    // Heads distinguish most keys without a cache miss on the entries.
    while at < leaf.node.len() && leaf.node.head(at) == head && passed < PASSED_MAX {
        let Some(older) = leaf.node.entry(at).filter(|older| older.key() == key) else { break };
        // SAFETY: only trees whose entries have versions reclaim.
        let newer_links = unsafe { newer.versions() };
        let link = newer_links.older();
        let placed = placed.filter(|_| !neighbours.is_placed && passed == 0);
        let is_needed = placed.is_none() && leaf.node.len() == 1;
        if is_needed
            || link.node().is_some()
            || !reclaim.view.is_hidden(older.seq(), newer.version())
        {
            neighbours.has_older = true;
            (newer, at, passed) = (older, at + 1, passed + 1);
            continue;
        }
        // Before the older version disappears, so that no lookup misses the gap.
        newer_links.set_older(link.with_gap());
        match placed {
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
