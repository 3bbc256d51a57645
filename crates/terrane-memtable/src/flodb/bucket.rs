//! A bucket of a Membuffer: one cache line.
//!
//! ```text
//! +------+-------+--------+-----+--------+
//! | meta | floor | slot 0 | ... | slot 5 |
//! | u64  | u64   | 8 B    |     |        |
//! +------+-------+--------+-----+--------+
//! ```
//!
//! A slot names the newest version of a key, from which the older ones are reached. `meta` has a
//! byte of the key's hash for each slot, a bit for each slot whose versions are not all in the
//! lower level, and a bit for the lock. `floor` is the largest sequence number of any version that
//! was in this bucket, or found no place in it: an older one that comes late begins no slot, as it
//! might hide a newer one of its key that is in the lower level. That may be one of another key;
//! then it goes to the lower level without need, which is rare and does no harm.

use crate::prefetch::prefetch;
use crate::skiplist::Node;
use crate::sync::{AtomicPtr, AtomicU64, Ordering, relax};

/// The keys of a bucket.
pub(super) const SLOTS: usize = 6;

const DIRTY_SHIFT: usize = 8 * SLOTS;
const LOCKED: u64 = 1 << 63;

/// Tags and dirty bits of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BucketMeta(u64);

#[repr(C, align(64))]
pub(super) struct Bucket {
    meta: AtomicU64,
    /// Used by the holder of the lock only.
    floor: AtomicU64,
    slots: [AtomicPtr<Node>; SLOTS],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Bucket>() == 64);

/// The tag of a hash; never 0, which is that of a slot never used.
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

    /// The slots with a tag.
    #[inline]
    pub(super) fn matches(self, tag: u8) -> impl Iterator<Item = usize> {
        const ONES: u64 = 0x0101_0101_0101;
        const HIGHS: u64 = 0x8080_8080_8080;
        let tags = self.0 & ((1 << DIRTY_SHIFT) - 1);
        let differs = tags ^ (ONES * u64::from(tag));
        // The usual test for a zero byte; what it takes for one wrongly is compared with the key.
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

    /// What the tags are now.
    #[inline]
    pub(super) fn meta(&self) -> BucketMeta {
        // Acquire pairs with the release of the lock: who finds no tag for a key finds in the lower
        // level what was there before.
        BucketMeta(self.meta.load(Ordering::Acquire) & !LOCKED)
    }

    #[inline]
    pub(super) fn head(&self, slot: usize) -> *mut Node {
        // Sequentially consistent: see `Pin::new`.
        self.slots[slot].load(Ordering::SeqCst)
    }

    /// Asks for the memory of what would be drained.
    pub(super) fn prefetch(&self) {
        let meta = self.meta();
        for slot in (0..SLOTS).filter(|slot| meta.is_dirty(*slot)) {
            prefetch(self.slots[slot].load(Ordering::Relaxed).cast());
        }
    }

    pub(super) fn lock(&self) -> BucketGuard<'_> {
        let mut tries = 0;
        loop {
            let meta = self.meta.load(Ordering::Relaxed);
            if meta & LOCKED == 0 {
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

/// A bucket that no one else changes.
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
        self.bucket.slots[slot].load(Ordering::Relaxed)
    }

    /// Puts another head into a slot, and the tag of its key.
    pub(super) fn set(&mut self, slot: usize, tag: u8, head: *mut Node) {
        self.bucket.slots[slot].store(head, Ordering::SeqCst);
        self.meta = self.meta.with_tag(slot, tag);
    }

    /// The slot has versions that are not in the lower level; false if it had before.
    pub(super) fn set_dirty(&mut self, slot: usize) -> bool {
        let was_clean = !self.meta.is_dirty(slot);
        self.meta = self.meta.with_dirty(slot, 1);
        was_clean
    }

    pub(super) fn set_clean(&mut self, slot: usize) {
        self.meta = self.meta.with_dirty(slot, 0);
    }

    pub(super) fn floor(&self) -> u64 {
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
