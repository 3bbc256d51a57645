//! State shared by the buckets of a partition: counts of its versions and dirty slots.

use std::ptr::NonNull;

use crate::skiplist::Node;
use crate::sync::{AtomicUsize, Mutex, Ordering};

#[repr(align(64))]
pub(super) struct Partition {
    dirty: AtomicUsize,
    slots: usize,
    /// Versions that were added, and their bytes of keys and values. Counted per
    /// partition, because writers would contend for a counter of the memtable.
    entries: AtomicUsize,
    data_bytes: AtomicUsize,
    /// Bytes allocated by the list below.
    list_bytes: AtomicUsize,
    /// Held while the partition is drained; owns the list of versions to link.
    pub(super) draining: Mutex<Vec<DrainItem>>,
}

/// A version to be linked into the lower level, with the head of its key.
pub(super) struct DrainItem {
    pub(super) head: u64,
    pub(super) node: NonNull<Node>,
}

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
            list_bytes: AtomicUsize::new(0),
            draining: Mutex::new(Vec::new()),
        }
    }

    /// Counts a version of `bytes` bytes that was added.
    #[inline]
    pub(super) fn count_added(&self, bytes: usize) {
        // All counters here are relaxed, because they order nothing.
        self.entries.fetch_add(1, Ordering::Relaxed);
        self.data_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the number of versions that were added.
    pub(super) fn entries(&self) -> usize {
        self.entries.load(Ordering::Relaxed)
    }

    /// Returns the bytes of the keys and values of the versions that were added.
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
