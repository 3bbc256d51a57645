//! What the buckets of a partition share: how much of it is dirty, and memory to be used again.

use std::ptr::NonNull;

use super::lower::Lower;
use super::membuffer::fits;
use crate::entry::Entry;
use crate::skiplist::{Node, versions_of};
use crate::sync::{AtomicUsize, Mutex, Ordering, lock};

/// So many of the nodes that were given back last are looked at for one of the right size.
const FREE_PROBES_MAX: usize = 4;

/// More are not kept.
const FREE_MAX: usize = 1024;

#[repr(align(64))]
pub(super) struct Partition {
    dirty: AtomicUsize,
    slots: usize,
    /// Versions that were added and not forgotten, and their bytes of keys and values. Counted here,
    /// and not for the memtable as a whole, as writers would only wait for each other there.
    entries: AtomicUsize,
    data_bytes: AtomicUsize,
    free_count: AtomicUsize,
    free_bytes: AtomicUsize,
    /// What the lower levels below take.
    list_bytes: AtomicUsize,
    /// Nodes that no one can find any more; some may still be read.
    free: Mutex<Vec<FreeNode>>,
    /// Held by who drains, with the room for what is drained.
    pub(super) draining: Mutex<Vec<DrainItem>>,
}

struct FreeNode(NonNull<Node>);

/// A version on its way to the lower level, with the head of its key.
pub(super) struct DrainItem {
    pub(super) head: u64,
    pub(super) node: NonNull<Node>,
}

// SAFETY: nodes belong to the lower level that the Membuffer is used with, and change only as its
// versions allow.
unsafe impl Send for FreeNode {}
// SAFETY: as above.
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

    /// A node with a version: one that is free, or a new one.
    pub(super) fn allocate(&self, lower: &Lower, version: &Entry<'_>) -> NonNull<Node> {
        if self.free_count.load(Ordering::Relaxed) > 0
            && let Some(node) = self.pop_free(version)
        {
            // SAFETY: no one can find it, no one reads it, and it has room.
            unsafe { lower.rewrite(node, version) };
            return node;
        }
        lower.allocate(version)
    }

    fn pop_free(&self, version: &Entry<'_>) -> Option<NonNull<Node>> {
        let mut free = lock(&self.free);
        // SAFETY: nodes of a Membuffer have versions.
        let is_free = |node| unsafe { versions_of(node) }.is_free();
        let mut last = free.iter().enumerate().rev().take(FREE_PROBES_MAX);
        let (at, _) = last.find(|(_, node)| fits(node.0, version) && is_free(node.0))?;
        let FreeNode(node) = free.swap_remove(at);
        self.free_count.store(free.len(), Ordering::Relaxed);
        // SAFETY: as above.
        let room = unsafe { versions_of(node) }.capacity();
        self.free_bytes.fetch_sub(room, Ordering::Relaxed);
        Some(node)
    }

    /// A version came, of so many bytes, and others were forgotten for it.
    #[inline]
    pub(super) fn count(&self, bytes: usize, reclaimed: usize, reclaimed_bytes: usize) {
        // Differences, which are mostly none where one version takes the place of another. What is
        // forgotten was counted before: its bucket was locked for both.
        if reclaimed != 1 {
            self.entries.fetch_add(1_usize.wrapping_sub(reclaimed), Ordering::Relaxed);
        }
        if reclaimed_bytes != bytes {
            self.data_bytes.fetch_add(bytes.wrapping_sub(reclaimed_bytes), Ordering::Relaxed);
        }
    }

    /// Versions that were added and not forgotten.
    pub(super) fn entries(&self) -> usize {
        self.entries.load(Ordering::Relaxed)
    }

    /// Their bytes of keys and values.
    pub(super) fn data_bytes(&self) -> usize {
        self.data_bytes.load(Ordering::Relaxed)
    }

    /// A list has grown from one capacity to another, in bytes.
    pub(super) fn count_list(&self, before: usize, after: usize) {
        self.list_bytes.fetch_add(after.saturating_sub(before), Ordering::Relaxed);
    }

    /// What the lower levels of nodes take.
    pub(super) fn list_bytes(&self) -> usize {
        self.list_bytes.load(Ordering::Relaxed)
    }

    /// Takes a node that was forgotten.
    pub(super) fn push_free(&self, node: NonNull<Node>) {
        let mut free = lock(&self.free);
        if free.len() < FREE_MAX {
            let before = free.capacity() * size_of::<FreeNode>();
            free.push(FreeNode(node));
            self.count_list(before, free.capacity() * size_of::<FreeNode>());
            self.free_count.store(free.len(), Ordering::Relaxed);
            // SAFETY: nodes of a Membuffer have versions.
            let room = unsafe { versions_of(node) }.capacity();
            self.free_bytes.fetch_add(room, Ordering::Relaxed);
        }
    }

    /// Room for keys and values in nodes that wait to be used again.
    pub(super) fn free_bytes(&self) -> usize {
        self.free_bytes.load(Ordering::Relaxed)
    }

    /// Slots with versions that are not in the lower level. Acquires what those did who drained.
    #[inline]
    pub(super) fn dirty(&self) -> usize {
        self.dirty.load(Ordering::Acquire)
    }

    pub(super) fn slots(&self) -> usize {
        self.slots
    }

    pub(super) fn add_dirty(&self) {
        self.dirty.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn remove_dirty(&self, count: usize) {
        self.dirty.fetch_sub(count, Ordering::Release);
    }

    /// Whether it is worth to be drained: half of it is dirty.
    #[inline]
    pub(super) fn wants_drain(&self) -> bool {
        self.dirty.load(Ordering::Relaxed) * 2 > self.slots
    }
}
