//! Reclaiming the hidden versions of a chain.
//!
//! A version is needed until the next newer one is visible, so the newer version's writer cannot
//! reclaim it. The next write of the key reclaims it and takes its place, or a drain reclaims it before
//! it links the chain. So an overwritten key has two versions while there is memory for them, and each
//! write looks its key up once. Once the memtable has been almost full, a pass
//! ([`crate::flodb::reclaiming`]) leaves one version of each key, and every write, as soon as it is
//! visible, reclaims the versions that it hides.

use std::ops::Range;
use std::ptr::NonNull;

use super::Membuffer;
use crate::flodb::bucket::SLOTS;
use crate::flodb::lower::Lower;
use crate::readers::ReaderView;
use crate::skiplist::{Node, NodeRef, Older, versions_of};

/// The maximum number of versions that are passed over because readers need them. A chain has
/// more of them only if more snapshots are open, or while a batch writes a key repeatedly. Versions
/// further back then stay until fewer precede them.
const PASSED_MAX: usize = 8;

/// The maximum number of versions that are reclaimed while the bucket is locked. Only a batch that
/// wrote a key more often leaves some to the next write.
const RECLAIMED_MAX: u32 = 64;

/// Reclaims the hidden versions of a chain from `head` on (invariant 4 of `Membuffer`), and passes each
/// with its bytes of key and value to `free`. Returns their number. The caller has locked the bucket.
#[inline]
pub(crate) fn prune(
    head: NodeRef<'_>,
    view: &ReaderView<'_>,
    mut free: impl FnMut(NonNull<Node>, usize),
) -> u32 {
    let mut newer = head;
    let (mut passed, mut reclaimed) = (0, 0);
    // SAFETY: chains consist of nodes of the lower level, which have versions.
    while let Some(node) = (unsafe { newer.versions() }).older().node() {
        if passed == PASSED_MAX || reclaimed == RECLAIMED_MAX {
            break;
        }
        // SAFETY: `node` is in the chain, so it has versions, in the arena of the lower level.
        let versions = unsafe { versions_of(node) };
        // SAFETY: `node` is in the chain of a locked bucket (invariant 7), and not free yet.
        let older = unsafe { NodeRef::new(node) };
        if versions.is_permanent() {
            // The last of its chain: the lower level has it and all older versions, and may
            // overwrite it once it is in no chain (invariant 8).
            let is_last = versions.is_linked() && versions.older().node().is_none();
            if is_last && view.is_hidden(older.seq(), newer.version()) {
                // SAFETY: chains consist of nodes of the lower level, which have versions.
                (unsafe { newer.versions() }).set_older(Older::NONE.with_gap());
            }
            break;
        }
        if !view.is_hidden(older.seq(), newer.version()) {
            passed += 1;
            newer = older;
            continue;
        }
        // SAFETY: chains consist of nodes of the lower level, which have versions.
        (unsafe { newer.versions() }).set_older(versions.older().with_gap());
        versions.set_older(Older::DETACHED);
        free(node, older.key().len() + older.value().len());
        reclaimed += 1;
    }
    reclaimed
}

impl Membuffer {
    /// Reclaims the hidden versions of the chains that are not linked, of buckets whose bits are in some words of
    /// a partition.
    pub(crate) fn prune_words(
        &self,
        lower: &Lower,
        (partition, words): (usize, Range<usize>),
        view: &ReaderView<'_>,
    ) {
        let buckets = self.buckets_of(partition);
        for number in self.partitions[partition].dirty_buckets(words) {
            let locked = buckets[number].lock();
            for slot in (0..SLOTS).filter(|slot| locked.meta().is_dirty(*slot)) {
                // SAFETY: slots name nodes of the lower level; the bucket is locked (invariant 7).
                let head =
                    NonNull::new(locked.head(slot)).map(|head| unsafe { NodeRef::new(head) });
                if let Some(head) = head {
                    prune(head, view, |node, bytes| lower.free_version(node, bytes));
                }
            }
        }
    }
}
