//! Changes of a locked bucket: adding a version to a chain, and reclaiming hidden ones.

use std::ptr::NonNull;

use super::AddOutcome;
use crate::entry::{Entry, SeqNo};
use crate::flodb::bucket::{BucketGuard, SLOTS};
use crate::flodb::lower::Lower;
use crate::flodb::partition::{Partition, fits};
use crate::skiplist::{Node, NodeRef, Older, Temperature, versions_of};

/// The maximum number of visible versions that a writer passes to find the versions that it can
/// reclaim. A chain has more visible versions if a snapshot is open while a key is written
/// repeatedly. Then the writer reclaims nothing, because otherwise each write would walk a longer
/// chain than the last.
const VISIBLE_MAX: usize = 32;

/// A locked bucket, with the structures that a change to it needs.
pub(super) struct BucketWriter<'a> {
    pub(super) lower: &'a Lower,
    pub(super) partition: &'a Partition,
    pub(super) bucket: BucketGuard<'a>,
    pub(super) tag: u8,
}

impl<'a> BucketWriter<'a> {
    /// The newest version of a slot.
    #[inline]
    pub(super) fn head(&self, slot: usize) -> Option<NodeRef<'a>> {
        // SAFETY: slots name nodes of the lower level, which lives for `'a`; the bucket is locked
        // (invariant 7).
        NonNull::new(self.bucket.head(slot)).map(|node| unsafe { NodeRef::new(node) })
    }

    /// Makes `version` the newest of a slot.
    pub(super) fn replace(
        &mut self,
        slot: usize,
        head: NodeRef<'_>,
        version: &Entry<'_>,
        horizon: impl FnOnce() -> SeqNo,
        added: &mut AddOutcome,
    ) {
        let mut free = self.reclaim(head, horizon, added);
        let node = match free.take_if(|node| fits(*node, version)) {
            Some(node) => {
                // SAFETY: `reclaim` returned the node, so this thread made it unreachable and saw
                // `is_free` after that (invariant 2 of `Versions`), and `fits` saw that the version
                // has room.
                unsafe { self.lower.rewrite(node, version) };
                node
            }
            None => self.partition.allocate(self.lower, version),
        };
        if let Some(node) = free {
            self.partition.push_free(node);
        }
        // SAFETY: the lower level allocates nodes with versions.
        unsafe { versions_of(node) }.init(Older::Node(head.as_ptr()), Temperature::Hot);
        self.set_head(slot, node, version.seq, added);
    }

    /// Reclaims the versions below `head` that the horizon hides (invariant 4). Returns one that
    /// may be refilled, and puts the others on the free list.
    fn reclaim(
        &self,
        head: NodeRef<'_>,
        horizon: impl FnOnce() -> SeqNo,
        added: &mut AddOutcome,
    ) -> Option<NonNull<Node>> {
        // SAFETY: chains consist of nodes of the lower level, which have versions.
        let Older::Node(second) = (unsafe { head.versions() }).older() else { return None };
        // SAFETY: `second` is in the chain, so it is a node with versions, in the arena of `lower`.
        if unsafe { versions_of(second) }.is_permanent() {
            return None;
        }
        let horizon = horizon();
        let mut kept = head;
        let mut steps = 0;
        while kept.seq() > horizon {
            steps += 1;
            if steps > VISIBLE_MAX {
                return None;
            }
            // SAFETY: chains consist of nodes of the lower level, which have versions.
            let Older::Node(older) = (unsafe { kept.versions() }).older() else { return None };
            // SAFETY: `older` is in the chain of a locked bucket (invariant 7), in the arena of
            // `lower`.
            kept = unsafe { NodeRef::new(older) };
        }
        // SAFETY: chains consist of nodes of the lower level, which have versions.
        let Older::Node(mut node) = (unsafe { kept.versions() }).older() else { return None };
        // SAFETY: `node` is in the chain, so it is a node with versions, in the arena of `lower`.
        if unsafe { versions_of(node) }.is_permanent() {
            return None;
        }
        // SAFETY: chains consist of nodes of the lower level, which have versions.
        unsafe { kept.versions() }.set_older(Older::Reclaimed);
        let mut free = None;
        loop {
            // SAFETY: the bucket is locked, and `node` is not on the free list yet (invariant 7).
            let reclaimed = unsafe { NodeRef::new(node) };
            added.reclaimed += 1;
            added.reclaimed_bytes += reclaimed.key().len() + reclaimed.value().len();
            // SAFETY: `node` was in the chain, so it is a node with versions, in the arena of
            // `lower`.
            let versions = unsafe { versions_of(node) };
            let next = match versions.older() {
                // SAFETY: `older` was in the chain, so it is a node with versions, in the arena of
                // `lower`.
                Older::Node(older) if !unsafe { versions_of(older) }.is_permanent() => {
                    // A reader with a pin on this version must not follow it to one that may be
                    // refilled (invariant 6).
                    versions.set_older(Older::Reclaimed);
                    Some(older)
                }
                // Permanent versions are never refilled, so readers may follow `older` to them.
                _ => None,
            };
            if free.is_none() && versions.is_free() {
                free = Some(node);
            } else {
                self.partition.push_free(node);
            }
            let Some(older) = next else { return free };
            node = older;
        }
    }

    /// Puts `version` below the newest version of its key. Returns false if it belongs in the lower
    /// level.
    pub(super) fn insert_below(&mut self, head: NodeRef<'_>, version: &Entry<'_>) -> bool {
        let mut newer = head;
        let older = loop {
            // SAFETY: chains consist of nodes of the lower level, which have versions.
            match (unsafe { newer.versions() }).older() {
                Older::Node(older) => {
                    // SAFETY: `older` is in the chain of a locked bucket (invariant 7), in the
                    // arena of `lower`.
                    let older_node = unsafe { NodeRef::new(older) };
                    if older_node.seq() < version.seq {
                        break Older::Node(older);
                    }
                    newer = older_node;
                }
                // The version is older than the whole chain or than reclaimed versions. The lower
                // level may have one that is newer than it, which a bucket refused because of its
                // floor (invariant 1).
                Older::None | Older::Reclaimed => return false,
            }
        };
        // SAFETY: chains consist of nodes of the lower level, which have versions.
        let newer = unsafe { newer.versions() };
        let node = self.partition.allocate(self.lower, version);
        // SAFETY: the lower level allocates nodes with versions.
        let versions = unsafe { versions_of(node) };
        versions.init(older, Temperature::Cold);
        if newer.is_permanent() {
            // A drain stops at `newer`, so this version is linked here (invariant 2).
            versions.set_moving();
            // SAFETY: `lower` allocated the node, it is permanent, and no drain can link it because
            // it is not reachable yet.
            unsafe { self.lower.link(node) };
            versions.set_linked();
        }
        newer.set_older(Older::Node(node));
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
        let node = self.partition.allocate(self.lower, version);
        // SAFETY: the lower level allocates nodes with versions.
        unsafe { versions_of(node) }.init(Older::None, Temperature::Cold);
        self.set_head(slot, node, version.seq, added);
    }

    fn set_head(&mut self, slot: usize, node: NonNull<Node>, seq: SeqNo, added: &mut AddOutcome) {
        self.bucket.set(slot, self.tag, node.as_ptr());
        self.bucket.raise_floor(seq);
        if self.bucket.set_dirty(slot) {
            self.partition.add_dirty();
        }
        added.is_stored = true;
    }
}
