//! State shared by the buckets of a partition: counts of its versions and dirty slots, and free
//! nodes.
//!
//! Invariant 1: a node on the free list is unreachable, because `Membuffer` reclaimed it (invariant
//! 6 there). It may still be pinned, so it is refilled only once `is_free` returns true.

use std::ptr::NonNull;

use super::lower::Lower;
use crate::entry::Entry;
use crate::skiplist::{Node, versions_of};
use crate::sync::{AtomicUsize, Mutex, Ordering, lock};

/// The maximum number of free nodes that a search for a node of suitable size probes. The search
/// starts at the end of the list, where freed nodes are added.
const FREE_PROBES_MAX: usize = 4;

/// The maximum length of the free list. A node that does not fit into it stays unused until the
/// memtable is dropped.
const FREE_MAX: usize = 1024;

#[repr(align(64))]
pub(super) struct Partition {
    dirty: AtomicUsize,
    slots: usize,
    /// Versions that were added and not reclaimed, and their bytes of keys and values. Counted per
    /// partition, because writers would contend for a counter of the memtable.
    entries: AtomicUsize,
    data_bytes: AtomicUsize,
    free_count: AtomicUsize,
    free_bytes: AtomicUsize,
    /// Bytes allocated by the lists below.
    list_bytes: AtomicUsize,
    /// Unreachable nodes; some may still be pinned.
    free: Mutex<Vec<FreeNode>>,
    /// Held while the partition is drained; owns the list of versions to link.
    pub(super) draining: Mutex<Vec<DrainItem>>,
}

/// An unreachable node.
struct FreeNode(NonNull<Node>);

/// A version to be linked into the lower level, with the head of its key.
pub(super) struct DrainItem {
    pub(super) head: u64,
    pub(super) node: NonNull<Node>,
}

// SAFETY: the node lies in the arena of the lower level, which outlives the Membuffer's use of it
// and is not tied to a thread; invariants 2 and 3 of `Versions` say who may access it.
unsafe impl Send for FreeNode {}
// SAFETY: a drained version is permanent, so it is only read (invariant 1 of `Versions`), and its
// arena outlives the drain.
unsafe impl Send for DrainItem {}

impl Partition {
    pub(super) fn new(slots: usize) -> Self {
        Self {
            dirty: AtomicUsize::new(0),
            slots,
            entries: AtomicUsize::new(0),
            data_bytes: AtomicUsize::new(0),
            free_count: AtomicUsize::new(0),
            free_bytes: AtomicUsize::new(0),
            list_bytes: AtomicUsize::new(0),
            free: Mutex::new(Vec::new()),
            draining: Mutex::new(Vec::new()),
        }
    }

    /// Returns a node filled with `version`: a refilled free one, or a new one.
    pub(super) fn allocate(&self, lower: &Lower, version: &Entry<'_>) -> NonNull<Node> {
        // Relaxed: an outdated count only costs an allocation or a futile probe.
        if self.free_count.load(Ordering::Relaxed) > 0
            && let Some(node) = self.pop_free(version)
        {
            // SAFETY: `pop_free` returned the node, so it is unreachable, was seen free, and is no
            // longer on the list (invariant 2 of `Versions`); `fits` saw that the version has room.
            unsafe { lower.rewrite(node, version) };
            return node;
        }
        lower.allocate(version)
    }

    /// Takes a node that has room for `version` and no pins off the free list.
    fn pop_free(&self, version: &Entry<'_>) -> Option<NonNull<Node>> {
        let mut free = lock(&self.free);
        // SAFETY: only nodes with versions get on the free list, and their arena outlives it.
        let is_free = |node| unsafe { versions_of(node) }.is_free();
        let mut last = free.iter().enumerate().rev().take(FREE_PROBES_MAX);
        let (at, _) = last.find(|(_, node)| fits(node.0, version) && is_free(node.0))?;
        let FreeNode(node) = free.swap_remove(at);
        self.free_count.store(free.len(), Ordering::Relaxed);
        // SAFETY: only nodes with versions get on the free list, and their arena outlives it.
        let room = unsafe { versions_of(node) }.capacity();
        self.free_bytes.fetch_sub(room, Ordering::Relaxed);
        Some(node)
    }

    /// Counts a version of `bytes` bytes and the versions that were reclaimed for it.
    #[inline]
    pub(super) fn count(&self, bytes: usize, reclaimed: usize, reclaimed_bytes: usize) {
        // Adds only differences: there is none if a version replaces one of the same size. The
        // reclaimed versions were counted before, because each version is counted under the bucket
        // lock that adds it. All counters here are relaxed, because they order nothing.
        if reclaimed != 1 {
            self.entries.fetch_add(1_usize.wrapping_sub(reclaimed), Ordering::Relaxed);
        }
        if reclaimed_bytes != bytes {
            self.data_bytes.fetch_add(bytes.wrapping_sub(reclaimed_bytes), Ordering::Relaxed);
        }
    }

    /// Returns the number of versions that were added and not reclaimed.
    pub(super) fn entries(&self) -> usize {
        self.entries.load(Ordering::Relaxed)
    }

    /// Returns the bytes of the keys and values of the versions that were added and not reclaimed.
    pub(super) fn data_bytes(&self) -> usize {
        self.data_bytes.load(Ordering::Relaxed)
    }

    /// Counts the growth of a list, in bytes of capacity.
    pub(super) fn count_list(&self, before: usize, after: usize) {
        self.list_bytes.fetch_add(after.saturating_sub(before), Ordering::Relaxed);
    }

    /// Returns the bytes that the lists of this partition have allocated.
    pub(super) fn list_bytes(&self) -> usize {
        self.list_bytes.load(Ordering::Relaxed)
    }

    /// Puts a reclaimed node on the free list.
    pub(super) fn push_free(&self, node: NonNull<Node>) {
        let mut free = lock(&self.free);
        if free.len() < FREE_MAX {
            let before = free.capacity() * size_of::<FreeNode>();
            free.push(FreeNode(node));
            self.count_list(before, free.capacity() * size_of::<FreeNode>());
            self.free_count.store(free.len(), Ordering::Relaxed);
            // SAFETY: reclaimed nodes have versions, and their arena outlives the free list.
            let room = unsafe { versions_of(node) }.capacity();
            self.free_bytes.fetch_add(room, Ordering::Relaxed);
        }
    }

    /// Returns the bytes that the nodes on the free list have for keys and values.
    pub(super) fn free_bytes(&self) -> usize {
        self.free_bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of dirty slots.
    #[inline]
    pub(super) fn dirty(&self) -> usize {
        // Acquire pairs with the release in `remove_dirty`: a thread that sees no dirty slots sees
        // the links that made them clean.
        self.dirty.load(Ordering::Acquire)
    }

    pub(super) fn slots(&self) -> usize {
        self.slots
    }

    pub(super) fn add_dirty(&self) {
        // Relaxed: a scan must see the write that dirtied the slot only once that write has
        // returned, and its return orders this addition before the scan.
        self.dirty.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn remove_dirty(&self, count: usize) {
        // Release pairs with the acquire in `dirty`.
        self.dirty.fetch_sub(count, Ordering::Release);
    }

    /// Returns true if more than half of the slots are dirty.
    #[inline]
    pub(super) fn wants_drain(&self) -> bool {
        self.dirty.load(Ordering::Relaxed) * 2 > self.slots
    }
}

/// Returns true if a node has the capacity for a version, and not much more.
pub(super) fn fits(node: NonNull<Node>, version: &Entry<'_>) -> bool {
    // SAFETY: callers pass nodes that were in a Membuffer, which have versions; the arena outlives
    // the Membuffer's use of them.
    let room = unsafe { versions_of(node) }.capacity();
    let needed = version.data_bytes();
    needed <= room && room <= 2 * needed + 64
}
