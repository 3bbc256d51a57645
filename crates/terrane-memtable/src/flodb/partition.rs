//! State shared by the buckets of a partition: counts of its versions and dirty slots.

use crate::sync::{AtomicUsize, Mutex, Ordering};

#[repr(align(64))]
pub(super) struct Partition {
    dirty: AtomicUsize,
    slots: usize,
    /// Versions that were added, and their bytes of keys and values. Counted per
    /// partition, because writers would contend for a counter of the memtable.
    entries: AtomicUsize,
    data_bytes: AtomicUsize,
    /// Held while the partition is drained.
    pub(super) draining: Mutex<()>,
}

impl Partition {
    pub(super) fn new(slots: usize) -> Self {
        Self {
            dirty: AtomicUsize::new(0),
            slots,
            entries: AtomicUsize::new(0),
            data_bytes: AtomicUsize::new(0),
            draining: Mutex::new(()),
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

    /// Counts a version of `bytes` bytes that took the place of one of `before` bytes.
    #[inline]
    pub(super) fn count_refilled(&self, before: usize, bytes: usize) {
        if bytes != before {
            self.data_bytes.fetch_add(bytes.wrapping_sub(before), Ordering::Relaxed);
        }
    }

    /// Returns the bytes of the keys and values of the versions that were added, less those of the
    /// versions whose places they took.
    pub(super) fn data_bytes(&self) -> isize {
        self.data_bytes.load(Ordering::Relaxed).cast_signed()
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
        // Relaxed: a scan need not see the write that dirtied the slot until that write has
        // returned, and its return orders this addition before the scan.
        self.dirty.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn remove_dirty(&self, count: usize) {
        // Release pairs with the acquire in `dirty`.
        self.dirty.fetch_sub(count, Ordering::Release);
    }

    /// Returns true if more than half of the slots are dirty.
    #[inline]
    pub(super) fn needs_drain(&self) -> bool {
        self.dirty.load(Ordering::Relaxed) * 2 > self.slots
    }
}
