//! Overwriting in place: a version that enters a leaf replaces the older versions of its key that it
//! hides.
//!
//! Versions of a key are neighbours, newer before older. A version is removed from its leaf if the
//! next newer one hides it ([`crate::readers`]) and is in the same leaf or the last of the left
//! neighbour, and if that one is the last of its chain in the Membuffer, so that no chain leads to the
//! removed one (invariant 8 of `flodb::membuffer`). The next newer version records the gap. Versions
//! of a key that are split between two leaves are removed from the right one once the newer one is in
//! the left one, under both locks. A walk that has left the left leaf before that reads at a number
//! at which the newer version is not visible. It holds that number, so the older version stays.
//!
//! Invariants:
//! 1. Separators are copies that are never refilled, so descents need no pins. They stay when the
//!    entries that they were copied from are removed, so a leaf may begin with a larger entry than its
//!    separator, and a search for the entry before a target may have to go on in the left neighbour.
//!    The last entry of a leaf is not removed, so the neighbour has one.
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
    /// Older versions of the key may begin the right neighbour of the leaf.
    pub(super) is_continued: bool,
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
