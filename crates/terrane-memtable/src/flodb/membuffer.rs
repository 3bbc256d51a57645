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
//!    older than the whole chain, or it was reclaimed. Where a version was reclaimed, the next newer
//!    one in the chain records a gap. No version arrives late at a gap, because everything up to
//!    the visible version above it had arrived before.
//! 2. All versions below a permanent one are permanent, because a drain marks a chain from the
//!    newest version down to the first permanent one, and `insert_below` links a version that it
//!    puts below a permanent one.
//! 3. The chain of a clean slot is linked, because `clean` looks at a slot only after everything
//!    that drains have marked is linked, which the `draining` mutex of the partition guarantees,
//!    and cleans it only if the newest version is linked (invariant 2).
//! 4. A version is reclaimed here only if it is not permanent and the next newer version of its key is
//!    visible and hides it ([`crate::readers`]). So a reader that holds its sequence number needs
//!    no reclaimed version: it passes over gaps. Any other reader may need one; it stops at a gap
//!    and retries at a number that it holds.
//! 5. A version that is not permanent is reachable through exactly one pointer: its slot if it is
//!    the newest, otherwise `older` of the next newer version. `set_head` and `set_older` publish
//!    it with one SeqCst store.
//! 6. [`prune`] overwrites the one pointer to a version, and detaches the version, before it frees it,
//!    as invariants 2 and 3 of [`crate::skiplist::Versions`] require. A reader that holds a pin on a
//!    detached version searches again; a reader that had already pinned the next version finds it
//!    alive, because it was reclaimed later, if at all.
//! 7. The holder of the bucket lock reads versions of its chains without pins, because only the
//!    holder reclaims them. It does not touch a version after putting it on the free list.
//! 8. A linked version in a chain is not removed from the lower level. That level removes a version
//!    only if the next newer one is linked and names no older version; by invariant 1 that newer one
//!    is then the last of its chain, or in no chain. A version that names no older one never names
//!    one again, because `insert_below` puts nothing below it. `clean` ends each chain at its first
//!    linked version, which cuts that version off from older ones that it hides.

mod prune;
mod writer;

use std::ptr::NonNull;

use super::bucket::{Bucket, SLOTS, tag_of};
use super::hash::hash_of;
use super::lower::Lower;
use super::partition::Partition;
use crate::entry::{Entry, SeqNo};
use crate::key_span::KeySpan;
use crate::prefetch::prefetch;
use crate::readers::ReaderView;
use crate::skiplist::{NodeRef, Pin};
use crate::structure::Hold;
pub(super) use prune::prune;
use writer::BucketWriter;

/// The number of versions that a lookup passes before it turns to the lower level, if the rest of
/// the chain is linked there.
const STEPS_MAX: usize = if cfg!(miri) { 8 } else { 64 };

/// The number of versions that a lookup passes before it drains the partition. Passing this many
/// versions takes as long as a drain.
const STEPS_UNDRAINED_MAX: usize = if cfg!(miri) { 20 } else { 4096 };

/// The front level.
pub(super) struct Membuffer {
    span: KeySpan,
    pub(super) partitions: Box<[Partition]>,
    buckets: Box<[Bucket]>,
    buckets_each: usize,
}

/// Where a key belongs.
struct Place<'a> {
    partition: &'a Partition,
    /// The number of the bucket in the partition.
    number: usize,
    bucket: &'a Bucket,
    tag: u8,
}

/// The outcome of adding a version. The partition counts the version, whichever level stores it.
#[derive(Debug, Default)]
pub(super) struct AddOutcome {
    /// The version is in the Membuffer; otherwise the caller inserts it into the lower level.
    pub(super) is_stored: bool,
    /// Versions that were reclaimed.
    pub(super) reclaimed: u32,
    /// The key has an older version here.
    pub(super) has_older: bool,
    /// The partition should be drained, to free slots.
    pub(super) needs_drain: bool,
}

/// Why a lookup ended without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LookupMiss {
    /// The version may have been reclaimed.
    Overwritten,
    /// Too many newer versions precede it: drain the partition, then search the lower level.
    DrainFirst,
    /// A version on the way was reclaimed: search again.
    Retry,
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
            partitions: (0..partitions)
                .map(|_| Partition::new(buckets_each, buckets_each * SLOTS))
                .collect(),
            buckets: (0..partitions * buckets_each).map(|_| Bucket::new()).collect(),
            buckets_each,
        }
    }

    /// Returns the bytes that the table takes, without the versions.
    pub(super) fn bytes(&self) -> usize {
        let partitions: usize = self.partitions.iter().map(Partition::bytes).sum();
        size_of_val(&*self.buckets) + partitions
    }

    pub(super) fn span(&self) -> &KeySpan {
        &self.span
    }

    #[inline]
    pub(super) fn partition_of(&self, key: &[u8]) -> usize {
        self.span.partition(key, self.partitions.len())
    }

    /// Returns the buckets of a partition.
    pub(super) fn buckets_of(&self, partition: usize) -> &[Bucket] {
        &self.buckets[partition * self.buckets_each..][..self.buckets_each]
    }

    #[inline]
    fn locate(&self, key: &[u8]) -> Place<'_> {
        let hash = hash_of(key);
        let partition = self.partition_of(key);
        let number = ((hash & 0xffff_ffff) as usize * self.buckets_each) >> 32;
        let bucket = &self.buckets[partition * self.buckets_each + number];
        Place { partition: &self.partitions[partition], number, bucket, tag: tag_of(hash) }
    }

    /// Returns how many versions were added, and the bytes of their keys and values.
    /// The bytes may be negative, because versions may have been added before the Membuffer was
    /// enabled.
    pub(super) fn counts(&self) -> (usize, isize) {
        let entries = self.partitions.iter().map(Partition::entries).sum();
        (entries, self.partitions.iter().map(Partition::data_bytes).sum())
    }

    /// Returns the number of versions that replaced another one here, whose place they did not take.
    pub(super) fn overwritten(&self) -> usize {
        self.partitions.iter().map(Partition::overwritten).sum()
    }

    /// Prefetches the newest version of a key whose bucket was prefetched before.
    #[inline]
    pub(super) fn prefetch_version(&self, key: &[u8]) {
        let Place { bucket, tag, .. } = self.locate(key);
        if let Some(slot) = bucket.meta().matches(tag).next() {
            prefetch(bucket.head(slot).cast());
        }
    }

    /// Prefetches the bucket of a key that is about to be added or looked up.
    #[inline]
    pub(super) fn prefetch(&self, key: &[u8]) {
        prefetch(std::ptr::from_ref(self.locate(key).bucket).cast());
    }

    /// Returns the newest version of `key` at or below `seq` if it is here; `None` refers the
    /// caller to the lower level.
    pub(super) fn get<'a>(
        &'a self,
        _lower: &'a Lower,
        key: &[u8],
        seq: SeqNo,
        hold: Hold,
    ) -> Result<Option<PinnedVersion<'a>>, LookupMiss> {
        let Place { partition, bucket, tag, .. } = self.locate(key);
        for slot in bucket.meta().matches(tag) {
            // SAFETY: slots name nodes of the lower level, which are allocated with versions in an
            // arena that `_lower` keeps for `'a`.
            let Some(newest) = (unsafe { pin_head(bucket, slot) }) else { continue };
            if newest.node.key() == key {
                return find_version(newest, seq, hold, partition);
            }
        }
        Ok(None)
    }

    /// Adds a version, unless no slot is free for it. Reclaims older versions of its key that `view`
    /// says are hidden.
    pub(super) fn add(
        &self,
        lower: &Lower,
        version: &Entry<'_>,
        view: &ReaderView<'_>,
    ) -> AddOutcome {
        let (partition, mut writer) = self.lock(lower, version.key);
        let mut added = AddOutcome::default();
        let refilled = match writer.find(version.key) {
            Some((slot, head)) if head.seq() < version.seq => {
                writer.replace(slot, head, version, view, &mut added)
            }
            Some((_, head)) => {
                added.is_stored = writer.insert_below(head, version);
                None
            }
            None => {
                writer.start_slot(version, &mut added);
                None
            }
        };
        // Under the lock, so that a version is counted before it is reclaimed.
        match refilled {
            None => {
                partition.count_added(version.data_bytes());
                if added.has_older && version.kind.hides_older() {
                    partition.count_overwritten();
                }
            }
            Some(bytes) => partition.count_refilled(bytes, version.data_bytes()),
        }
        drop(writer);
        added.needs_drain = partition.needs_drain();
        added
    }

    /// Reclaims the versions of a key that `view` says are hidden. Returns whether the key has a slot.
    pub(super) fn reclaim_hidden(&self, lower: &Lower, key: &[u8], view: &ReaderView<'_>) -> bool {
        let (_, writer) = self.lock(lower, key);
        let head = writer.find(key).map(|(_, head)| head);
        if let Some(head) = head {
            prune(head, view, |node, bytes| lower.free_version(node, bytes));
        }
        head.is_some()
    }

    /// Locks the bucket of a key.
    fn lock<'a>(&'a self, lower: &'a Lower, key: &[u8]) -> (&'a Partition, BucketWriter<'a>) {
        let Place { partition, number, bucket, tag } = self.locate(key);
        (partition, BucketWriter { lower, partition, number, bucket: bucket.lock(), tag })
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
    hold: Hold,
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
            let link = links.older();
            if link.is_detached() {
                return Err(LookupMiss::Retry);
            }
            // Only a reader that holds its number knows that it needs no reclaimed version.
            if link.has_gap() && hold == Hold::NotHeld {
                return Err(LookupMiss::Overwritten);
            }
            let Some(older) = link.node() else { return Ok(None) };
            let is_there = || links.older().node() == Some(older);
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
