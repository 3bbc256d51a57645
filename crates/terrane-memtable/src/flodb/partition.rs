//! State shared by the buckets of a partition: counts of its versions and dirty slots, and which buckets have
//! dirty slots.

use std::ops::Range;

use super::phase::PassPlace;
use crate::sync::{AtomicU64, AtomicUsize, Mutex, Ordering};

/// The buckets of a word of [`Partition::dirty_buckets`].
pub(super) const WORD_BUCKETS: usize = u64::BITS as usize;

#[repr(align(64))]
pub(super) struct Partition {
    dirty: AtomicUsize,
    slots: usize,
    /// A bit for each bucket, set while the bucket has dirty slots. Changed with the lock of the bucket, so that
    /// a drain reads no bucket without them: a partition is much larger than what a short scan drains.
    dirty_buckets: Box<[AtomicU64]>,
    /// Versions that were added, and their bytes of keys and values. Counted per
    /// partition, because writers would contend for a counter of the memtable.
    entries: AtomicUsize,
    data_bytes: AtomicUsize,
    /// Versions that replaced another one, whose place they did not take.
    overwritten: AtomicUsize,
    /// Held while the partition is drained.
    pub(super) draining: Mutex<PassPlace>,
}

impl Partition {
    /// Creates the state of `buckets` buckets, which have `slots` slots.
    pub(super) fn new(buckets: usize, slots: usize) -> Self {
        let words = buckets.div_ceil(WORD_BUCKETS);
        Self {
            dirty: AtomicUsize::new(0),
            slots,
            dirty_buckets: (0..words).map(|_| AtomicU64::new(0)).collect(),
            entries: AtomicUsize::new(0),
            data_bytes: AtomicUsize::new(0),
            overwritten: AtomicUsize::new(0),
            draining: Mutex::new(PassPlace::default()),
        }
    }

    /// Counts a version of `bytes` bytes that was added.
    #[inline]
    pub(super) fn count_added(&self, bytes: usize) {
        // All counters here are relaxed, because they order nothing.
        self.entries.fetch_add(1, Ordering::Relaxed);
        self.data_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts a version that replaced another one, which remains.
    #[inline]
    pub(super) fn count_overwritten(&self) {
        self.overwritten.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of versions that replaced another one, whose place they did not take.
    pub(super) fn overwritten(&self) -> usize {
        self.overwritten.load(Ordering::Relaxed)
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

    /// Returns the bytes of the partition, without its buckets.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.dirty_buckets)
    }

    /// Notes that a bucket has dirty slots. The caller has locked the bucket.
    #[inline]
    pub(super) fn set_dirty_bucket(&self, bucket: usize) {
        let (word, bit) = (bucket / WORD_BUCKETS, 1 << (bucket % WORD_BUCKETS));
        // Relaxed, here and below: the lock of the bucket orders changes of its bit. A drain sees the bits of writes that
        // have returned, and bits are cleared only by holders of `draining`, which it is.
        self.dirty_buckets[word].fetch_or(bit, Ordering::Relaxed);
    }

    /// Notes that a bucket has no dirty slot left. The caller has locked the bucket, and holds `draining`.
    pub(super) fn clear_dirty_bucket(&self, bucket: usize) {
        let (word, bit) = (bucket / WORD_BUCKETS, 1 << (bucket % WORD_BUCKETS));
        self.dirty_buckets[word].fetch_and(!bit, Ordering::Relaxed);
    }

    /// Returns the number of words of the bits of buckets.
    pub(super) fn words(&self) -> usize {
        self.dirty_buckets.len()
    }

    /// Returns the buckets with dirty slots among those of `words`.
    pub(super) fn dirty_buckets(&self, words: Range<usize>) -> impl Iterator<Item = usize> {
        words.flat_map(|word| {
            let mut bits = self.dirty_buckets[word].load(Ordering::Relaxed);
            std::iter::from_fn(move || {
                let bit = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
                bits &= bits - 1;
                Some(word * WORD_BUCKETS + bit)
            })
        })
    }

    /// Returns true if more than half of the slots are dirty.
    #[inline]
    pub(super) fn needs_drain(&self) -> bool {
        self.dirty.load(Ordering::Relaxed) * 2 > self.slots
    }
}
