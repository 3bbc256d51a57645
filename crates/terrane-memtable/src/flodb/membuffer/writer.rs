//! Changes of a locked bucket: adding a version to a chain.

use std::ptr::NonNull;

use super::AddOutcome;
use super::prune::prune;
use crate::entry::{Entry, SeqNo};
use crate::flodb::bucket::{BucketGuard, SLOTS};
use crate::flodb::lower::Lower;
use crate::flodb::partition::Partition;
use crate::readers::ReaderView;
use crate::skiplist::{Node, NodeRef, Older, Temperature, versions_of};

/// A locked bucket, with the structures that a change to it needs.
pub(super) struct BucketWriter<'a> {
    pub(super) lower: &'a Lower,
    pub(super) partition: &'a Partition,
    /// The number of the bucket in the partition.
    pub(super) number: usize,
    pub(super) bucket: BucketGuard<'a>,
    pub(super) tag: u8,
}

impl<'a> BucketWriter<'a> {
    /// The newest version of a slot.
    #[inline]
    fn head(&self, slot: usize) -> Option<NodeRef<'a>> {
        // SAFETY: slots name nodes of the lower level, which lives for `'a`; the bucket is locked
        // (invariant 7).
        NonNull::new(self.bucket.head(slot)).map(|node| unsafe { NodeRef::new(node) })
    }

    /// Returns the slot of a key and the newest version there.
    #[inline]
    pub(super) fn find(&self, key: &[u8]) -> Option<(usize, NodeRef<'a>)> {
        self.bucket.meta().matches(self.tag).find_map(|slot| {
            let head = self.head(slot)?;
            (head.key() == key).then_some((slot, head))
        })
    }

    /// Makes `version` the newest of a slot. If it reuses the node of a hidden version, returns
    /// that version's bytes of key and value, because the free nodes do not count them.
    pub(super) fn replace(
        &mut self,
        slot: usize,
        head: NodeRef<'_>,
        version: &Entry<'_>,
        view: &ReaderView<'_>,
        added: &mut AddOutcome,
    ) -> Option<usize> {
        added.has_older = true;
        let mut spare: Option<(NonNull<Node>, usize)> = None;
        added.reclaimed = prune(head, view, |node, bytes| {
            if let Some((node, bytes)) = spare.replace((node, bytes)) {
                self.lower.free.push(node, bytes);
            }
        });
        let (node, refilled) = match spare {
            Some((node, bytes)) if self.lower.refill(node, version) => (node, Some(bytes)),
            other => {
                other.into_iter().for_each(|(node, bytes)| self.lower.free.push(node, bytes));
                (self.lower.allocate(version), None)
            }
        };
        // SAFETY: the lower level allocates nodes with versions.
        let versions = unsafe { versions_of(node) };
        versions.init(Older::node_at(head.as_ptr()), Temperature::Hot);
        self.set_head(slot, node, version.seq, added);
        refilled
    }

    /// Puts `version` below the newest version of its key. Returns false if it belongs in the lower
    /// level.
    pub(super) fn insert_below(&mut self, head: NodeRef<'_>, version: &Entry<'_>) -> bool {
        let mut newer = head;
        let older = loop {
            // SAFETY: chains consist of nodes of the lower level, which have versions.
            let older = (unsafe { newer.versions() }).older();
            // The version may be older than the whole chain. The lower level may have a newer one,
            // which a bucket refused because of its floor (invariant 1).
            let Some(node) = older.node() else { return false };
            // SAFETY: `node` is in the chain of a locked bucket (invariant 7), in the arena of
            // `lower`.
            let older_node = unsafe { NodeRef::new(node) };
            if older_node.seq() < version.seq {
                break older;
            }
            newer = older_node;
        };
        // SAFETY: chains consist of nodes of the lower level, which have versions.
        let newer = unsafe { newer.versions() };
        let node = self.lower.allocate(version);
        // SAFETY: the lower level allocates nodes with versions.
        let versions = unsafe { versions_of(node) };
        versions.init(older, Temperature::Cold);
        if newer.is_permanent() {
            // A drain stops at `newer`, so this version is linked here (invariant 2).
            versions.set_moving();
            // SAFETY: `lower` allocated the node, it is permanent, and no drain can link it because
            // it is not reachable yet.
            unsafe { self.lower.link(node, &ReaderView::new(&|| 0)) };
            versions.set_linked();
        }
        newer.set_older(Older::node_at(node));
        true
    }

    /// Starts a chain for a key that has no slot, if a slot is free.
    pub(super) fn start_slot(&mut self, version: &Entry<'_>, added: &mut AddOutcome) {
        if version.seq < self.bucket.floor() {
            return;
        }
        let meta = self.bucket.meta();
        let unused = (0..SLOTS).find(|slot| meta.tag(*slot) == 0);
        let slot = unused.or_else(|| {
            // Take any clean slot, but not always the same one. Its chain is linked (invariant 3).
            let first = version.seq as usize % SLOTS;
            (first..SLOTS).chain(0..first).find(|slot| !meta.is_dirty(*slot))
        });
        let Some(slot) = slot else {
            self.bucket.raise_floor(version.seq);
            return;
        };
        let node = self.lower.allocate(version);
        // SAFETY: the lower level allocates nodes with versions.
        unsafe { versions_of(node) }.init(Older::NONE, Temperature::Cold);
        self.set_head(slot, node, version.seq, added);
    }

    fn set_head(&mut self, slot: usize, node: NonNull<Node>, seq: SeqNo, added: &mut AddOutcome) {
        self.bucket.set(slot, self.tag, node.as_ptr());
        self.bucket.raise_floor(seq);
        let had_dirty = self.bucket.meta().has_dirty();
        if self.bucket.set_dirty(slot) {
            if !had_dirty {
                self.partition.set_dirty_bucket(self.number);
            }
            self.partition.add_dirty();
        }
        added.is_stored = true;
    }
}
