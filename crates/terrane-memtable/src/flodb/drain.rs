//! Draining: versions go from the Membuffer into the lower level (FloDB paper, §4.2).
//!
//! A drain marks the versions of each bucket as moving, under the lock of the bucket. It then sorts
//! them and links them into the lower level, and searches for each from the position of the
//! previous one. Last, it cleans the slots whose newest version is linked. A version that was
//! replaced meanwhile leaves its slot dirty. Writers and readers continue throughout; drains of the
//! same partition take turns.
//!
//! Drains run ahead of need, so that slots are free for new keys. A key that is written repeatedly
//! would then leave a version in the lower level each time. So a drain passes over a version once
//! if it replaced another one since the last drain, like the second chance of the clock algorithm,
//! and hot keys stay in the Membuffer.

use std::ops::Range;
use std::ptr::NonNull;

use super::bucket::{Bucket, SLOTS};
use super::lower::Lower;
use super::membuffer::{Membuffer, prune};
use super::partition::WORD_BUCKETS;
use crate::entry::SeqNo;
use crate::head::head_of;
use crate::prefetch::prefetch;
use crate::readers::ReaderView;
use crate::skiplist::{Node, NodeRef, Older, versions_of};
use crate::sync::lock;

/// Which versions a drain links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DrainScope {
    /// All versions.
    All,
    /// Slots whose newest version has not replaced another one since the last drain.
    Cold,
    /// Versions at or below this sequence number.
    UpTo(SeqNo),
}

impl DrainScope {
    /// Returns true if the drain leaves a version in the Membuffer because it is too new. The caller
    /// holds the lock of the bucket that names the version.
    fn leaves(self, node: NonNull<Node>) -> bool {
        // SAFETY: slots name nodes of the lower level, which outlives the drain, and the holder of
        // the bucket lock may read them (invariant 7 of `Membuffer`).
        matches!(self, Self::UpTo(seq) if unsafe { NodeRef::new(node) }.seq() > seq)
    }
}

/// A version to be linked into the lower level, with the head of its key.
struct DrainItem {
    head: u64,
    node: NonNull<Node>,
}

/// What a drain of some buckets has done.
pub(super) struct Drained {
    /// The number of versions that it moved.
    pub(super) versions: usize,
    /// The word of the bits of the first bucket that it has not visited.
    pub(super) end: usize,
}

/// How a drain inserts versions into the lower level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainInsert {
    /// Searches from the top for each version.
    Single,
    /// Sorts the versions and searches for each from the position of the previous one.
    Multi,
}

/// How many buckets ahead of the current one a drain prefetches, and how many ahead it prefetches the versions
/// that the bucket names.
const BUCKETS_AHEAD: usize = 8;
const VERSIONS_AHEAD: usize = 2;

/// How many versions ahead of linking the drain prefetches; the lines that it read for marking have
/// left the cache by then.
const LINKED_AHEAD: usize = 8;

impl Membuffer {
    /// Drains a partition: versions that were added before the call and match `scope` are linked in
    /// the lower level when it returns. Returns the number of versions it moved.
    pub(super) fn drain(
        &self,
        lower: &Lower,
        partition: usize,
        scope: DrainScope,
        insert: DrainInsert,
        view: &ReaderView<'_>,
    ) -> usize {
        let part = &self.partitions[partition];
        if part.dirty() == 0 {
            return 0;
        }
        let _draining = lock(&part.draining);
        let all = (partition, 0..part.words());
        self.drain_words(lower, all, (scope, usize::MAX), insert, view).versions
    }

    /// Drains those buckets of a partition whose bits are in some words, until `most` versions are moving. The
    /// caller holds `draining` of the partition.
    pub(super) fn drain_words(
        &self,
        lower: &Lower,
        (partition, words): (usize, Range<usize>),
        (scope, most): (DrainScope, usize),
        insert: DrainInsert,
        view: &ReaderView<'_>,
    ) -> Drained {
        let part = &self.partitions[partition];
        // Not kept between drains: the lists would take memory that a full memtable needs for versions.
        let mut buckets: Vec<usize> = part.dirty_buckets(words.clone()).collect();
        let mut moving = Vec::with_capacity(part.dirty().min(buckets.len() * SLOTS));
        let marked = self.mark(lower, (partition, &buckets), (scope, most), view, &mut moving);
        let end = buckets.get(marked).map_or(words.end, |bucket| bucket / WORD_BUCKETS);
        buckets.truncate(marked);
        if insert == DrainInsert::Multi {
            moving.sort_unstable_by(|a, b| {
                a.head.cmp(&b.head).then_with(|| {
                    let (a, b) = (node_of(a), node_of(b));
                    a.compare(b.key(), b.seq())
                })
            });
        }
        link(lower, &moving, insert, view);
        self.clean(partition, &buckets);
        Drained { versions: moving.len(), end }
    }

    /// Calls `visit` for each of some buckets of a partition until it returns false, and prefetches the next ones.
    /// Returns the number of buckets that were visited.
    fn visit(
        &self,
        (partition, buckets): (usize, &[usize]),
        mut visit: impl FnMut(usize, &Bucket) -> bool,
    ) -> usize {
        let all = self.buckets_of(partition);
        let ahead = |number: usize| buckets.get(number).map(|bucket| &all[*bucket]);
        for (number, bucket) in buckets.iter().enumerate() {
            if let Some(later) = ahead(number + BUCKETS_AHEAD) {
                prefetch(std::ptr::from_ref(later).cast());
            }
            if let Some(later) = ahead(number + VERSIONS_AHEAD) {
                later.prefetch();
            }
            if !visit(*bucket, &all[*bucket]) {
                return number + 1;
            }
        }
        buckets.len()
    }

    /// Marks versions until `most` are moving. Returns the number of buckets that were visited.
    fn mark(
        &self,
        lower: &Lower,
        buckets: (usize, &[usize]),
        (scope, most): (DrainScope, usize),
        view: &ReaderView<'_>,
        moving: &mut Vec<DrainItem>,
    ) -> usize {
        self.visit(buckets, |_, bucket| {
            let locked = bucket.lock();
            let meta = locked.meta();
            for slot in (0..SLOTS).filter(|slot| meta.is_dirty(*slot)) {
                let Some(newest) = NonNull::new(locked.head(slot)) else { continue };
                // SAFETY: slots name nodes of the lower level, which have versions and outlive the drain.
                let is_hot = || unsafe { versions_of(newest) }.take_hot();
                if scope == DrainScope::Cold && is_hot() {
                    continue;
                }
                prune_chain(newest, lower, view);
                mark_chain(newest, scope, moving);
            }
            moving.len() < most
        })
    }

    /// Marks slots as clean whose newest version is linked, and ends their chains at the first linked
    /// version. The caller holds `draining` and has linked everything it marked (invariant 3 of
    /// `Membuffer`), so the lower level has all versions below.
    fn clean(&self, partition: usize, buckets: &[usize]) {
        let part = &self.partitions[partition];
        let mut cleaned = 0;
        self.visit((partition, buckets), |number, bucket| {
            let mut locked = bucket.lock();
            let meta = locked.meta();
            for slot in (0..SLOTS).filter(|slot| meta.is_dirty(*slot)) {
                let Some(node) = NonNull::new(locked.head(slot)) else { continue };
                if end_chain(node) {
                    locked.set_clean(slot);
                    cleaned += 1;
                }
            }
            if !locked.meta().has_dirty() {
                part.clear_dirty_bucket(number);
            }
            true
        });
        part.remove_dirty(cleaned);
    }
}

/// Marks the versions of a chain of a locked bucket that match `scope`, and collects them.
#[inline]
fn mark_chain(newest: NonNull<Node>, scope: DrainScope, moving: &mut Vec<DrainItem>) {
    let mut version = Some(newest);
    while let Some(node) = version {
        // SAFETY: chains consist of nodes of the lower level, which have versions and outlive the drain.
        let versions = unsafe { versions_of(node) };
        if versions.is_permanent() {
            break;
        }
        version = versions.older().node();
        if scope.leaves(node) {
            continue;
        }
        versions.set_moving();
        // SAFETY: the node was just made permanent, so it is not refilled any more
        // (invariant 1 of `Versions`).
        let head = head_of(unsafe { NodeRef::new(node) }.key());
        moving.push(DrainItem { head, node });
    }
}

/// Reclaims the hidden versions of a chain of a locked bucket.
#[inline]
fn prune_chain(newest: NonNull<Node>, lower: &Lower, view: &ReaderView<'_>) {
    // SAFETY: slots name nodes of the lower level, which have versions and outlive the drain.
    if unsafe { versions_of(newest) }.older().node().is_some() {
        // SAFETY: as above, and the bucket is locked (invariant 7 of `Membuffer`).
        let newest = unsafe { NodeRef::new(newest) };
        prune(newest, view, |node, bytes| lower.free_version(node, bytes));
    }
}

/// Makes every linked version of a chain of a locked bucket the last of its chain. Returns whether the
/// newest version is linked.
#[inline]
fn end_chain(newest: NonNull<Node>) -> bool {
    // SAFETY: slots name nodes of the lower level, which have versions and outlive the drain.
    let versions = unsafe { versions_of(newest) };
    if versions.older().node().is_some() {
        end_longer_chain(newest);
    }
    versions.is_linked()
}

fn end_longer_chain(newest: NonNull<Node>) {
    let mut next = Some(newest);
    while let Some(node) = next {
        // SAFETY: chains consist of nodes of the lower level, which have versions and outlive the
        // drain; linked ones stay in the lower level while they are in a chain (invariant 8 of
        // `Membuffer`).
        let versions = unsafe { versions_of(node) };
        let older = versions.older();
        next = older.node();
        if versions.is_linked() && next.is_some() {
            let end = if older.has_gap() { Older::NONE.with_gap() } else { Older::NONE };
            versions.set_older(end);
        }
    }
}

fn node_of(drained: &DrainItem) -> NodeRef<'_> {
    // SAFETY: the version is permanent, so it is not refilled (invariant 1 of `Versions`), and the
    // lower level outlives the drain.
    unsafe { NodeRef::new(drained.node) }
}

fn link(lower: &Lower, moving: &[DrainItem], insert: DrainInsert, view: &ReaderView<'_>) {
    // SAFETY: `mark` collects nodes of the lower level, which have versions.
    let is_linked = |node| unsafe { versions_of(node) }.set_linked();
    let nodes = moving.iter().enumerate().map(|(number, drained)| {
        if let Some(later) = moving.get(number + LINKED_AHEAD) {
            prefetch(later.node.as_ptr().cast());
        }
        drained.node
    });
    match insert {
        DrainInsert::Single => nodes.for_each(|node| {
            // SAFETY: `lower` allocated the node. It is permanent, and linked once: only the thread
            // that set MOVING on it, under the bucket lock, links it.
            unsafe { lower.link(node, view) };
            is_linked(node);
        }),
        // SAFETY: `lower` allocated the nodes, and the caller sorted them. They are permanent, and
        // linked once: only the thread that set MOVING on a node, under the bucket lock, links it.
        DrainInsert::Multi => unsafe { lower.link_in_order(nodes, view, is_linked) },
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use terrane_testkit::{Rng, seed_from_env};

    use crate::entry::{Entry, EntryKind};
    use crate::flodb::{DrainInsert, DrainScope, FloDb, FloDbConfig, LowerLevel};
    use crate::key_span::KeySpan;
    use crate::pool::Pool;
    use crate::readers::ReaderView;
    use crate::structure::Structure;
    use crate::sync::lock;

    #[test]
    fn the_bits_of_a_partition_are_its_buckets_with_dirty_slots() {
        let mut rng = Rng::new(seed_from_env(91));
        let config = FloDbConfig::of(600, 2, LowerLevel::BTree, DrainInsert::Multi);
        let memtable = FloDb::new(config, Some(KeySpan::all()), Pool::new(0));
        let membuffer = memtable.membuffer.get().unwrap();
        for seq in 1..if cfg!(miri) { 300 } else { 30_000 } {
            let key = rng.below(5000).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
            let version = Entry { key: &key, seq, kind: EntryKind::Value, value: b"value" };
            let readers = || seq - 1;
            memtable.insert(&version, &ReaderView::new(&readers));
            if rng.below(100) > 0 {
                continue;
            }
            let partition = rng.index(membuffer.partitions.len());
            let words = membuffer.partitions[partition].words();
            let first = rng.index(words);
            let words = first..first + 1 + rng.index(words - first);
            let scopes = [DrainScope::All, DrainScope::Cold, DrainScope::UpTo(rng.below(seq))];
            let scope = scopes[rng.index(scopes.len())];
            let _draining = lock(&membuffer.partitions[partition].draining);
            let (place, view) = ((partition, words), ReaderView::new(&readers));
            let (lower, scope) = (&memtable.lower, (scope, 1 + rng.index(300)));
            membuffer.drain_words(lower, place, scope, DrainInsert::Multi, &view);
            for (number, partition) in membuffer.partitions.iter().enumerate() {
                let buckets = membuffer.buckets_of(number).iter().enumerate();
                let dirty: Vec<usize> = buckets
                    .filter(|(_, bucket)| bucket.meta().has_dirty())
                    .map(|(bucket, _)| bucket)
                    .collect();
                let noted: Vec<usize> = partition.dirty_buckets(0..partition.words()).collect();
                assert_eq!(noted, dirty, "partition {number} after write {seq}");
            }
        }
    }

    /// Of the keys of the Membuffer, every third is overwritten before a drain.
    #[test]
    fn a_drain_leaves_an_overwritten_key_in_the_membuffer_once() {
        let config = FloDbConfig::of(600, 2, LowerLevel::SkipList, DrainInsert::Multi);
        let memtable = FloDb::new(config, Some(KeySpan::all()), Pool::new(0));
        let membuffer = memtable.membuffer.get().unwrap();
        let keys = 60_u64;
        let mut seq = 0;
        let mut put = |key: u64| {
            seq += 1;
            let key = key.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
            let version = Entry { key: &key, seq, kind: EntryKind::Value, value: b"value" };
            let readers = || 0;
            memtable.insert(&version, &ReaderView::new(&readers));
        };
        (0..keys).for_each(&mut put);
        (0..keys).step_by(3).for_each(&mut put);
        let drain = || {
            let readers = || 0;
            let view = ReaderView::new(&readers);
            let partitions = 0..membuffer.partitions.len();
            let insert = DrainInsert::Multi;
            let drain = |partition| {
                membuffer.drain(&memtable.lower, partition, DrainScope::Cold, insert, &view)
            };
            partitions.map(drain).sum::<usize>()
        };
        let hot = keys.div_ceil(3) as usize;
        assert_eq!(drain(), keys as usize - hot, "hot keys get a second chance");
        assert!(drain() >= hot, "they were not overwritten since");
        assert_eq!(drain(), 0);
    }
}
