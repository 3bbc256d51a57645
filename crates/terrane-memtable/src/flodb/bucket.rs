//! A bucket of a Membuffer: one cache line.
//!
//! ```text
//! +------+-------+--------+-----+--------+
//! | meta | floor | slot 0 | ... | slot 5 |
//! | u64  | u64   | 8 B    |     |        |
//! +------+-------+--------+-----+--------+
//! ```
//!
//! A slot names the newest version of a key, and through it the older ones. `meta` has a byte of
//! the key's hash for each slot, a dirty bit for each slot, and the lock bit. `floor` is the
//! largest sequence number of any version that was in this bucket or found no free slot in it. A
//! late version below the floor does not start a chain, because it might hide a newer version of
//! its key that is in the lower level. The floor may come from another key; then the version goes
//! to the lower level needlessly, which is rare and harmless.

use crate::prefetch::prefetch;
use crate::skiplist::Node;
use crate::sync::{AtomicPtr, AtomicU64, Ordering, relax};

/// The number of slots in a bucket.
pub(super) const SLOTS: usize = 6;

const DIRTY_SHIFT: usize = 8 * SLOTS;
const LOCKED: u64 = 1 << 63;

/// Tags and dirty bits of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BucketMeta(u64);

#[repr(C, align(64))]
pub(super) struct Bucket {
    meta: AtomicU64,
    /// Accessed only by the holder of the lock.
    floor: AtomicU64,
    slots: [AtomicPtr<Node>; SLOTS],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Bucket>() == 64);

/// Returns the tag of a hash. A tag is never 0, because 0 marks a slot that was never used.
#[inline]
pub(super) fn tag_of(hash: u64) -> u8 {
    ((hash >> 56) as u8).max(1)
}

impl BucketMeta {
    #[inline]
    pub(super) fn tag(self, slot: usize) -> u8 {
        (self.0 >> (8 * slot)) as u8
    }

    #[inline]
    pub(super) fn is_dirty(self, slot: usize) -> bool {
        self.0 >> (DIRTY_SHIFT + slot) & 1 == 1
    }

    #[inline]
    pub(super) fn has_dirty(self) -> bool {
        self.0 >> DIRTY_SHIFT & ((1 << SLOTS) - 1) != 0
    }

    /// Returns the slots with this tag, and in rare cases also a slot with another tag.
    #[inline]
    pub(super) fn matches(self, tag: u8) -> impl Iterator<Item = usize> {
        const ONES: u64 = 0x0101_0101_0101;
        const HIGHS: u64 = 0x8080_8080_8080;
        let tags = self.0 & ((1 << DIRTY_SHIFT) - 1);
        let differs = tags ^ (ONES * u64::from(tag));
        // The usual test for a zero byte. It may falsely report the byte above a zero byte; callers
        // compare keys.
        let mut found = differs.wrapping_sub(ONES) & !differs & HIGHS;
        std::iter::from_fn(move || {
            let slot = (found != 0).then(|| found.trailing_zeros() as usize / 8)?;
            found &= found - 1;
            Some(slot)
        })
    }

    fn with_tag(self, slot: usize, tag: u8) -> Self {
        Self(self.0 & !(0xff << (8 * slot)) | u64::from(tag) << (8 * slot))
    }

    fn with_dirty(self, slot: usize, is_dirty: u64) -> Self {
        let bit = DIRTY_SHIFT + slot;
        Self(self.0 & !(1 << bit) | is_dirty << bit)
    }
}

impl Bucket {
    pub(super) fn new() -> Self {
        Self {
            meta: AtomicU64::new(0),
            floor: AtomicU64::new(0),
            slots: std::array::from_fn(|_| AtomicPtr::new(std::ptr::null_mut())),
        }
    }

    /// Loads tags and dirty bits.
    #[inline]
    pub(super) fn meta(&self) -> BucketMeta {
        // Acquire pairs with the release in `BucketGuard::drop`: a reader that finds no tag for a
        // key sees the links of its older versions in the lower level.
        BucketMeta(self.meta.load(Ordering::Acquire) & !LOCKED)
    }

    #[inline]
    pub(super) fn head(&self, slot: usize) -> *mut Node {
        // SeqCst: a reader's second step of invariant 3 of `Versions`. As an acquire, it pairs with
        // the store in `BucketGuard::set`, so that the node is seen filled.
        self.slots[slot].load(Ordering::SeqCst)
    }

    /// Prefetches the versions that a drain would mark.
    pub(super) fn prefetch(&self) {
        let meta = self.meta();
        for slot in (0..SLOTS).filter(|slot| meta.is_dirty(*slot)) {
            // Relaxed: the pointer is only a hint and is not followed.
            prefetch(self.slots[slot].load(Ordering::Relaxed).cast());
        }
    }

    /// Locks the bucket against other writers and drains.
    pub(super) fn lock(&self) -> BucketGuard<'_> {
        let mut tries = 0;
        loop {
            let meta = self.meta.load(Ordering::Relaxed);
            if meta & LOCKED == 0 {
                // Acquire pairs with the release in `BucketGuard::drop`: all changes of earlier
                // holders are seen.
                let locked = self.meta.compare_exchange_weak(
                    meta,
                    meta | LOCKED,
                    Ordering::Acquire,
                    Ordering::Relaxed,
                );
                if locked.is_ok() {
                    return BucketGuard { bucket: self, meta: BucketMeta(meta) };
                }
            }
            relax(&mut tries);
        }
    }
}

/// Exclusive right to change a bucket, released on drop.
pub(super) struct BucketGuard<'a> {
    bucket: &'a Bucket,
    meta: BucketMeta,
}

impl BucketGuard<'_> {
    pub(super) fn meta(&self) -> BucketMeta {
        self.meta
    }

    #[inline]
    pub(super) fn head(&self, slot: usize) -> *mut Node {
        // Relaxed: slots change only under the lock, whose acquire orders earlier changes before.
        self.bucket.slots[slot].load(Ordering::Relaxed)
    }

    /// Makes `head` the newest version of a slot, and `tag` the tag of its key.
    pub(super) fn set(&mut self, slot: usize, tag: u8, head: *mut Node) {
        // SeqCst: publishes `head` and overwrites the pointer to the previous head (invariant 3 of
        // `Versions`). As a release, it pairs with the load in `Bucket::head`.
        self.bucket.slots[slot].store(head, Ordering::SeqCst);
        self.meta = self.meta.with_tag(slot, tag);
    }

    /// Marks the slot dirty, and returns whether it was clean.
    pub(super) fn set_dirty(&mut self, slot: usize) -> bool {
        let was_clean = !self.meta.is_dirty(slot);
        self.meta = self.meta.with_dirty(slot, 1);
        was_clean
    }

    pub(super) fn set_clean(&mut self, slot: usize) {
        self.meta = self.meta.with_dirty(slot, 0);
    }

    pub(super) fn floor(&self) -> u64 {
        // Relaxed, here and in `raise_floor`: only the holder of the lock accesses the floor.
        self.bucket.floor.load(Ordering::Relaxed)
    }

    pub(super) fn raise_floor(&self, seq: u64) {
        if seq > self.floor() {
            self.bucket.floor.store(seq, Ordering::Relaxed);
        }
    }
}

impl Drop for BucketGuard<'_> {
    fn drop(&mut self) {
        // Release pairs with the acquires in `Bucket::lock` and `Bucket::meta`.
        self.bucket.meta.store(self.meta.0, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn tags_and_dirty_bits_are_kept_apart() {
        let bucket = Bucket::new();
        let mut locked = bucket.lock();
        let node = std::ptr::without_provenance_mut(8);
        locked.set(5, 0xff, node);
        locked.set(0, 1, node);
        locked.set(3, 0xff, node);
        assert!(locked.set_dirty(5));
        assert!(!locked.set_dirty(5));
        drop(locked);
        let meta = bucket.meta();
        assert!(meta.has_dirty() && meta.is_dirty(5) && !meta.is_dirty(0));
        let mut found: Vec<usize> =
            meta.matches(0xff).filter(|slot| meta.tag(*slot) == 0xff).collect();
        found.sort_unstable();
        assert_eq!(found, [3, 5]);
        assert_eq!(meta.matches(7).filter(|slot| meta.tag(*slot) == 7).count(), 0);
        bucket.lock().set_clean(5);
        assert!(!bucket.meta().has_dirty());
    }
}
