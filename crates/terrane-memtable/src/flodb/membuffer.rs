//! The Membuffer: a concurrent hash table of fixed size that takes writes before the lower level.
//!
//! The position of a key among all keys selects a partition, and a hash selects one bucket of it. A
//! slot of the bucket names the newest version of a key, each version names the next older one (see
//! [`crate::skiplist::Versions`]), and together they are the *chain* of the slot. Versions are
//! nodes of the lower level that are not linked yet, so draining them moves no bytes.
//!
//! Writers of a bucket take its lock; readers take none. Versions that are linked into the lower
//! level stay in their slot until another key needs the slot. A slot is *dirty* while its chain has
//! versions that are not linked, and only dirty slots are drained.
//!
//! Invariants, which hold because chains change only under the bucket lock:
//! 1. A version of a key that is not in the chain of its slot is linked in the lower level and
//!    older than the whole chain, or it was reclaimed. The last version of the chain names
//!    [`Older::Reclaimed`] if versions below it were reclaimed. A late version that is older than
//!    those goes to the lower level, where `Lower::get` finds the mark above it.
//! 2. All versions below a permanent one are permanent, because a drain marks a chain from the
//!    newest version down to the first permanent one, and `insert_below` links a version that it
//!    puts below a permanent one.
//! 3. The chain of a clean slot is linked, because `clean` looks at a slot only after everything
//!    that drains have marked is linked, which the `draining` mutex of the partition guarantees,
//!    and cleans it only if the newest version is linked (invariant 2).
//! 4. A version is reclaimed only if it is not permanent and a newer version of its key is at or
//!    below the horizon, which is read under the bucket lock. Readers that are counted in the
//!    horizon read at or above it and find the newer version. Any other reader that needs the
//!    reclaimed one finds [`Older::Reclaimed`] and retries with a newer sequence number.
//! 5. A version that is not permanent is reachable through exactly one pointer: its slot if it is
//!    the newest, otherwise `older` of the next newer version. `set_head` and `set_older` publish
//!    it with one SeqCst store.
//! 6. `reclaim` overwrites the one pointer to a version before it looks for pins on it, as
//!    invariants 2 and 3 of [`crate::skiplist::Versions`] require. It goes from newer to older
//!    versions, so a reader that holds a pin on a reclaimed version cannot follow it to an older
//!    one that may be refilled.
//! 7. The holder of the bucket lock reads versions of its chains without pins, because only the
//!    holder reclaims them. It does not touch a version after it put it on the free list.

use std::ptr::NonNull;

use super::bucket::{Bucket, BucketGuard, SLOTS, tag_of};
use super::hash::hash_of;
use super::lower::Lower;
use super::partition::Partition;
use crate::entry::{Entry, SeqNo};
use crate::key_span::KeySpan;
use crate::prefetch::prefetch;
use crate::skiplist::{Node, NodeRef, Older, Pin, Temperature, versions_of};

/// Visible versions that a writer passes, at most, to find the ones it can reclaim. There are more
/// when a snapshot is open and a key is written repeatedly; then the writer reclaims nothing, so
/// that writes do not walk ever longer chains.
const VISIBLE_MAX: usize = 32;

/// Versions that a lookup passes before it turns to the lower level, if the rest is linked there.
const STEPS_MAX: usize = if cfg!(miri) { 8 } else { 64 };

/// Versions that a lookup passes before it drains the partition: passing them takes as long as a
/// drain.
const STEPS_UNDRAINED_MAX: usize = if cfg!(miri) { 20 } else { 4096 };

/// The front level.
pub(super) struct Membuffer {
    span: KeySpan,
    pub(super) partitions: Box<[Partition]>,
    buckets: Box<[Bucket]>,
    buckets_each: usize,
}

/// What adding a version did. The partition counts the version wherever it goes.
#[derive(Debug, Default)]
pub(super) struct AddOutcome {
    /// The version is in the Membuffer; otherwise the caller inserts it into the lower level.
    pub(super) is_stored: bool,
    /// Versions that were reclaimed, and their bytes of keys and values.
    pub(super) reclaimed: usize,
    pub(super) reclaimed_bytes: usize,
    /// The partition should be drained, to free slots.
    pub(super) wants_drain: bool,
}

/// Why a lookup ended without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LookupMiss {
    /// The version may have been reclaimed.
    Overwritten,
    /// Too many newer versions precede it: drain the partition, then search the lower level.
    DrainFirst,
}

/// A version, and the pin that keeps it from being refilled.
pub(super) struct PinnedVersion<'a> {
    pub(super) node: NodeRef<'a>,
    pub(super) pin: Pin,
}

impl Membuffer {
    pub(super) fn new(buckets: usize, partitions: usize, span: KeySpan) -> Self {
        let partitions = partitions.min(buckets).max(1);
        let buckets_each = buckets.div_ceil(partitions).max(1);
        Self {
            span,
            partitions: (0..partitions).map(|_| Partition::new(buckets_each * SLOTS)).collect(),
            buckets: (0..partitions * buckets_each).map(|_| Bucket::new()).collect(),
            buckets_each,
        }
    }

    /// Bytes of the table, without the versions.
    pub(super) fn bytes(&self) -> usize {
        let lists: usize = self.partitions.iter().map(Partition::list_bytes).sum();
        size_of_val(&*self.buckets) + size_of_val(&*self.partitions) + lists
    }

    pub(super) fn span(&self) -> &KeySpan {
        &self.span
    }

    #[inline]
    pub(super) fn partition_of(&self, key: &[u8]) -> usize {
        self.span.partition(key, self.partitions.len())
    }

    /// The buckets of a partition.
    pub(super) fn buckets_of(&self, partition: usize) -> &[Bucket] {
        &self.buckets[partition * self.buckets_each..][..self.buckets_each]
    }

    #[inline]
    fn locate(&self, key: &[u8]) -> (&Partition, &Bucket, u8) {
        let hash = hash_of(key);
        let partition = self.partition_of(key);
        let bucket = ((hash & 0xffff_ffff) as usize * self.buckets_each) >> 32;
        let bucket = &self.buckets[partition * self.buckets_each + bucket];
        (&self.partitions[partition], bucket, tag_of(hash))
    }

    /// The number of versions that were added and not reclaimed, and their bytes of keys and
    /// values.
    pub(super) fn counts(&self) -> (usize, usize) {
        let entries = self.partitions.iter().map(Partition::entries).sum();
        (entries, self.partitions.iter().map(Partition::data_bytes).sum())
    }

    /// Prefetches the newest version of a key whose bucket was prefetched before.
    #[inline]
    pub(super) fn prefetch_version(&self, key: &[u8]) {
        let (_, bucket, tag) = self.locate(key);
        if let Some(slot) = bucket.meta().matches(tag).next() {
            prefetch(bucket.head(slot).cast());
        }
    }

    /// Prefetches the bucket of a key that is about to be added or looked up.
    #[inline]
    pub(super) fn prefetch(&self, key: &[u8]) {
        prefetch(std::ptr::from_ref(self.locate(key).1).cast());
    }

    /// Returns the newest version of `key` at or below `seq` if it is here; `None` refers the
    /// caller to the lower level.
    pub(super) fn get<'a>(
        &'a self,
        _lower: &'a Lower,
        key: &[u8],
        seq: SeqNo,
    ) -> Result<Option<PinnedVersion<'a>>, LookupMiss> {
        let (partition, bucket, tag) = self.locate(key);
        for slot in bucket.meta().matches(tag) {
            // SAFETY: slots name nodes of the lower level, which are allocated with versions in an
            // arena that `_lower` keeps for `'a`.
            let Some(newest) = (unsafe { pin_head(bucket, slot) }) else { continue };
            if newest.node.key() == key {
                return find_version(newest, seq, partition);
            }
        }
        Ok(None)
    }

    /// Adds a version, unless no slot is free for it. No reader reads below the sequence number
    /// that `horizon` returns, now or later, except readers that expect
    /// [`LookupMiss::Overwritten`]; versions of this key that are hidden from that number on may be
    /// reclaimed.
    pub(super) fn add(
        &self,
        lower: &Lower,
        version: &Entry<'_>,
        horizon: impl FnOnce() -> SeqNo,
    ) -> AddOutcome {
        let (partition, bucket, tag) = self.locate(version.key);
        let mut writer = BucketWriter { lower, partition, bucket: bucket.lock(), tag };
        let mut added = AddOutcome::default();
        let own = writer.bucket.meta().matches(tag).find_map(|slot| {
            let head = writer.head(slot)?;
            (head.key() == version.key).then_some((slot, head))
        });
        match own {
            Some((slot, head)) if head.seq() < version.seq => {
                writer.replace(slot, head, version, horizon, &mut added);
            }
            Some((_, head)) => added.is_stored = writer.insert_below(head, version),
            None => writer.start_slot(version, &mut added),
        }
        partition.count(version.data_bytes(), added.reclaimed, added.reclaimed_bytes);
        drop(writer);
        added.wants_drain = partition.wants_drain();
        added
    }
}

/// Pins the newest version of a slot.
///
/// # Safety
/// The nodes of the bucket have versions, and their arena lives for `'a`.
#[inline]
unsafe fn pin_head<'a>(bucket: &Bucket, slot: usize) -> Option<PinnedVersion<'a>> {
    loop {
        let node = NonNull::new(bucket.head(slot))?;
        // SAFETY: the caller guarantees versions and arena. The slot is the only pointer to its
        // newest version (invariant 5), and `Bucket::head` loads it with SeqCst.
        let pin = unsafe { Pin::new(node, || bucket.head(slot) == node.as_ptr()) };
        if let Some(pin) = pin {
            // SAFETY: the caller guarantees the arena, and the pin keeps the node from being
            // refilled.
            return Some(PinnedVersion { node: unsafe { NodeRef::new(node) }, pin });
        }
    }
}

/// Walks from the newest version of a key to the one visible at `seq`; `None` refers the caller to
/// the lower level.
#[inline]
fn find_version<'a>(
    newest: PinnedVersion<'a>,
    seq: SeqNo,
    partition: &Partition,
) -> Result<Option<PinnedVersion<'a>>, LookupMiss> {
    let mut version = newest;
    let mut steps = 0;
    while version.node.seq() > seq {
        // SAFETY: chains consist of nodes of the lower level, which have versions.
        let links = unsafe { version.node.versions() };
        steps += 1;
        if steps > STEPS_MAX {
            // Older versions were drained with this one or before it (invariant 2). If that drain
            // is over, the lower level has all of them.
            if links.is_linked() && partition.draining.try_lock().is_ok() {
                return Ok(None);
            }
            if steps > STEPS_UNDRAINED_MAX && !links.is_permanent() {
                return Err(LookupMiss::DrainFirst);
            }
        }
        version = loop {
            let older = match links.older() {
                Older::None => return Ok(None),
                Older::Reclaimed => return Err(LookupMiss::Overwritten),
                Older::Node(older) => older,
            };
            let is_there = || matches!(links.older(), Older::Node(node) if node == older);
            // SAFETY: `older` is a node of the lower level, which has versions and lives for `'a`.
            // `links` belongs to a pinned node, and its `older` is the only pointer to the next
            // version (invariant 5), which `Versions::older` loads with SeqCst.
            if let Some(pin) = unsafe { Pin::new(older, is_there) } {
                // SAFETY: the arena lives for `'a`, and the pin keeps the node from being refilled.
                break PinnedVersion { node: unsafe { NodeRef::new(older) }, pin };
            }
        };
    }
    Ok(Some(version))
}

/// A locked bucket, with the structures that a change to it needs.
struct BucketWriter<'a> {
    lower: &'a Lower,
    partition: &'a Partition,
    bucket: BucketGuard<'a>,
    tag: u8,
}

impl<'a> BucketWriter<'a> {
    /// The newest version of a slot.
    #[inline]
    fn head(&self, slot: usize) -> Option<NodeRef<'a>> {
        // SAFETY: slots name nodes of the lower level, which lives for `'a`; the bucket is locked
        // (invariant 7).
        NonNull::new(self.bucket.head(slot)).map(|node| unsafe { NodeRef::new(node) })
    }

    /// Makes `version` the newest of a slot.
    fn replace(
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

    /// Puts `version` below the newest one of its key. Returns false if it belongs into the lower
    /// level.
    fn insert_below(&mut self, head: NodeRef<'_>, version: &Entry<'_>) -> bool {
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
                Older::None => break Older::None,
                // The version is older than the reclaimed ones (invariant 1).
                Older::Reclaimed => return false,
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
    fn start_slot(&mut self, version: &Entry<'_>, added: &mut AddOutcome) {
        if version.seq < self.bucket.floor() {
            return;
        }
        let meta = self.bucket.meta();
        let unused = (0..SLOTS).find(|slot| meta.tag(*slot) == 0);
        let slot = unused.or_else(|| {
            // Any clean slot, and not always the same one. Its chain is linked (invariant 3).
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

/// Whether a node has the capacity for a version, and not much more.
pub(super) fn fits(node: NonNull<Node>, version: &Entry<'_>) -> bool {
    // SAFETY: callers pass nodes that were in a Membuffer, which have versions; the arena outlives
    // the Membuffer's use of them.
    let room = unsafe { versions_of(node) }.capacity();
    let needed = version.data_bytes();
    needed <= room && room <= 2 * needed + 64
}
