//! The Membuffer: a concurrent hash table of fixed size that takes writes before the lower level
//! does.
//!
//! A key belongs to one bucket: its place among all keys says which partition, a hash which bucket
//! of it. A bucket names, for each of its keys, the newest version, and that names the one before,
//! and so on (see [`crate::skiplist::Versions`]). Versions are nodes of the lower level that are
//! not linked yet: draining moves no bytes.
//!
//! Writers of a bucket take turns; readers take no lock. Versions that are in the lower level stay
//! in their slot until the slot is wanted for another key: a slot is *dirty* while it has versions
//! that are not in the lower level, and only dirty slots are ever drained.
//!
//! Invariants:
//! 1. All versions of a key that are not reached from its slot are in the lower level, and are
//!    older than all that are, or were forgotten; [`Older::Reclaimed`] says so below the oldest
//!    that is left.
//! 2. Below a permanent version of a slot all are permanent.
//! 3. A slot that is not dirty has permanent versions only, all of them linked.
//! 4. A version that is forgotten is older than one that is not newer than what the horizon was
//!    under the lock of the bucket: no one asks for it, but who began before it was passed, and
//!    will then find that it was overwritten.

use std::ptr::NonNull;

use super::bucket::{Bucket, BucketGuard, SLOTS, tag_of};
use super::hash::hash_of;
use super::lower::Lower;
use super::partition::Partition;
use super::span::KeySpan;
use crate::entry::{Entry, SeqNo};
use crate::prefetch::prefetch;
use crate::skiplist::{Node, NodeRef, Older, Pin, Temperature, versions_of};

/// Versions that no reader is done with yet, and that a writer goes back by to find what may be
/// reclaimed. There are more where a snapshot is held and a key is written again and again: then
/// nothing is reclaimed, rather than each write going through all that are kept.
const VISIBLE_MAX: usize = 32;

/// Versions that a lookup goes back by before it leaves the rest to the lower level, where that has
/// them.
const STEPS_MAX: usize = if cfg!(miri) { 8 } else { 64 };

/// Versions that it goes back by before it has them drained: as many as take as long as a drain.
const STEPS_UNDRAINED_MAX: usize = if cfg!(miri) { 20 } else { 4096 };

/// The front level.
pub(super) struct Membuffer {
    span: KeySpan,
    pub(super) partitions: Box<[Partition]>,
    buckets: Box<[Bucket]>,
    buckets_each: usize,
}

/// What became of a version. It is counted, wherever it goes.
#[derive(Debug, Default)]
pub(super) struct AddOutcome {
    /// It found a place; otherwise it is for the lower level.
    pub(super) is_stored: bool,
    /// Versions that were forgotten for it, and their bytes of keys and values.
    pub(super) reclaimed: usize,
    pub(super) reclaimed_bytes: usize,
    /// The partition would have more room if it were drained.
    pub(super) wants_drain: bool,
}

/// Why a version was not found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LookupMiss {
    /// It may have been overwritten.
    Overwritten,
    /// So many newer ones are before it that it is better looked for in the lower level, once its
    /// partition is drained.
    DrainFirst,
}

/// A version that was found; it stays as it is while it is pinned.
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

    /// What the table takes, without the versions.
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

    /// Versions that were added and not reclaimed, and their bytes of keys and values.
    pub(super) fn counts(&self) -> (usize, usize) {
        let entries = self.partitions.iter().map(Partition::entries).sum();
        (entries, self.partitions.iter().map(Partition::data_bytes).sum())
    }

    /// Asks for the newest version of a key, whose bucket was asked for before.
    #[inline]
    pub(super) fn prefetch_version(&self, key: &[u8]) {
        let (_, bucket, tag) = self.locate(key);
        if let Some(slot) = bucket.meta().matches(tag).next() {
            prefetch(bucket.head(slot).cast());
        }
    }

    /// Asks for the bucket of a key that is about to be added or looked up.
    #[inline]
    pub(super) fn prefetch(&self, key: &[u8]) {
        prefetch(std::ptr::from_ref(self.locate(key).1).cast());
    }

    /// The newest version of `key` that is not newer than `seq`, if it is here; `None` leaves it to
    /// the lower level.
    pub(super) fn get<'a>(
        &'a self,
        _lower: &'a Lower,
        key: &[u8],
        seq: SeqNo,
    ) -> Result<Option<PinnedVersion<'a>>, LookupMiss> {
        let (partition, bucket, tag) = self.locate(key);
        for slot in bucket.meta().matches(tag) {
            // SAFETY: slots name nodes of the lower level, which has versions and lives for `'a`.
            let Some(newest) = (unsafe { pin_head(bucket, slot) }) else { continue };
            if newest.node.key() == key {
                return find_version(newest, seq, partition);
            }
        }
        Ok(None)
    }

    /// Adds a version, unless there is no place for it. `horizon` is a sequence number below which
    /// no one begins to read any more, nor reads at; versions of the same key that are hidden from
    /// there on may be reclaimed.
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
/// The nodes of the bucket live for `'a`, and have versions.
#[inline]
unsafe fn pin_head<'a>(bucket: &Bucket, slot: usize) -> Option<PinnedVersion<'a>> {
    loop {
        let node = NonNull::new(bucket.head(slot))?;
        // SAFETY: by the caller.
        let pin = unsafe { Pin::new(node, || bucket.head(slot) == node.as_ptr()) };
        if let Some(pin) = pin {
            // SAFETY: as above.
            return Some(PinnedVersion { node: unsafe { NodeRef::new(node) }, pin });
        }
    }
}

/// From the newest version of a key, the one that is seen at `seq`; `None` leaves it to the lower
/// level.
#[inline]
fn find_version<'a>(
    newest: PinnedVersion<'a>,
    seq: SeqNo,
    partition: &Partition,
) -> Result<Option<PinnedVersion<'a>>, LookupMiss> {
    let mut version = newest;
    let mut steps = 0;
    while version.node.seq() > seq {
        // SAFETY: slots name nodes that have versions, and so do these.
        let links = unsafe { version.node.versions() };
        steps += 1;
        if steps > STEPS_MAX {
            // The older ones were drained with it or before it: if that is over, all are there.
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
            // SAFETY: a version of the same key, and so a node of the lower level.
            if let Some(pin) = unsafe { Pin::new(older, is_there) } {
                // SAFETY: as above.
                break PinnedVersion { node: unsafe { NodeRef::new(older) }, pin };
            }
        };
    }
    Ok(Some(version))
}

/// A bucket that is being changed, and what belongs to it.
struct BucketWriter<'a> {
    lower: &'a Lower,
    partition: &'a Partition,
    bucket: BucketGuard<'a>,
    tag: u8,
}

impl<'a> BucketWriter<'a> {
    /// The newest version of a slot. It needs no pin: versions are forgotten under the lock.
    #[inline]
    fn head(&self, slot: usize) -> Option<NodeRef<'a>> {
        // SAFETY: slots name nodes of the lower level, which lives for `'a`.
        NonNull::new(self.bucket.head(slot)).map(|node| unsafe { NodeRef::new(node) })
    }

    /// A newer version of a key that has a slot.
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
                // SAFETY: it was taken from the slot, and no one reads it.
                unsafe { self.lower.rewrite(node, version) };
                node
            }
            None => self.partition.allocate(self.lower, version),
        };
        if let Some(node) = free {
            self.partition.push_free(node);
        }
        // SAFETY: made with versions.
        unsafe { versions_of(node) }.init(Older::Node(head.as_ptr()), Temperature::Hot);
        self.set_head(slot, node, version.seq, added);
    }

    /// Forgets what no one needs of the versions before `head`. Answers one whose memory may be
    /// used.
    fn reclaim(
        &self,
        head: NodeRef<'_>,
        horizon: impl FnOnce() -> SeqNo,
        added: &mut AddOutcome,
    ) -> Option<NonNull<Node>> {
        // SAFETY: nodes of slots have versions.
        let Older::Node(second) = (unsafe { head.versions() }).older() else { return None };
        // SAFETY: as above.
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
            // SAFETY: as above.
            let Older::Node(older) = (unsafe { kept.versions() }).older() else { return None };
            // SAFETY: versions of a slot are nodes of the lower level.
            kept = unsafe { NodeRef::new(older) };
        }
        // SAFETY: as above.
        let Older::Node(mut node) = (unsafe { kept.versions() }).older() else { return None };
        // SAFETY: as above.
        if unsafe { versions_of(node) }.is_permanent() {
            return None;
        }
        // SAFETY: as above.
        unsafe { kept.versions() }.set_older(Older::Reclaimed);
        let mut free = None;
        loop {
            // SAFETY: as above.
            let reclaimed = unsafe { NodeRef::new(node) };
            added.reclaimed += 1;
            added.reclaimed_bytes += reclaimed.key().len() + reclaimed.value().len();
            // SAFETY: as above.
            let versions = unsafe { versions_of(node) };
            let next = match versions.older() {
                // SAFETY: as above.
                Older::Node(older) if !unsafe { versions_of(older) }.is_permanent() => {
                    // Who has pinned it must not go on from here to what may be written anew.
                    versions.set_older(Older::Reclaimed);
                    Some(older)
                }
                // There is nothing that would be.
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

    /// A version of a key that has a slot, older than the newest: false if it is for the lower
    /// level.
    fn insert_below(&mut self, head: NodeRef<'_>, version: &Entry<'_>) -> bool {
        let mut newer = head;
        let older = loop {
            // SAFETY: nodes of slots have versions.
            match (unsafe { newer.versions() }).older() {
                Older::Node(older) => {
                    // SAFETY: versions of a slot are nodes of the lower level.
                    let older_node = unsafe { NodeRef::new(older) };
                    if older_node.seq() < version.seq {
                        break Older::Node(older);
                    }
                    newer = older_node;
                }
                Older::None => break Older::None,
                // No one asks for what is older than what was reclaimed.
                Older::Reclaimed => return false,
            }
        };
        // SAFETY: as above.
        let newer = unsafe { newer.versions() };
        let node = self.partition.allocate(self.lower, version);
        // SAFETY: made with versions.
        let versions = unsafe { versions_of(node) };
        versions.init(older, Temperature::Cold);
        if newer.is_permanent() {
            // Below it no one looks for what must be drained.
            versions.set_moving();
            // SAFETY: it was made for the lower level, and is linked here only.
            unsafe { self.lower.link(node) };
            versions.set_linked();
        }
        newer.set_older(Older::Node(node));
        true
    }

    /// The first version of a key that has no slot.
    fn start_slot(&mut self, version: &Entry<'_>, added: &mut AddOutcome) {
        if version.seq < self.bucket.floor() {
            return;
        }
        let meta = self.bucket.meta();
        let unused = (0..SLOTS).find(|slot| meta.tag(*slot) == 0);
        let slot = unused.or_else(|| {
            // Any of those that are in the lower level; not always the same.
            let first = version.seq as usize % SLOTS;
            (first..SLOTS).chain(0..first).find(|slot| !meta.is_dirty(*slot))
        });
        let Some(slot) = slot else {
            self.bucket.raise_floor(version.seq);
            return;
        };
        let node = self.partition.allocate(self.lower, version);
        // SAFETY: made with versions.
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

/// Whether a node can take a version without wasting much.
pub(super) fn fits(node: NonNull<Node>, version: &Entry<'_>) -> bool {
    // SAFETY: only nodes with versions are in a Membuffer.
    let room = unsafe { versions_of(node) }.capacity();
    let needed = version.data_bytes();
    needed <= room && room <= 2 * needed + 64
}
