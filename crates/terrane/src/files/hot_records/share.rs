//! How records and blocks share the capacity of the pool.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::part::Limits;
use super::ring::{SEGMENT_BYTES, SEGMENTS_MAX};

/// A smaller pool keeps no records, because their least share would take too much of it.
pub(super) const CAPACITY_MIN: usize = 32 << 20;

/// One part for this much capacity, up to a maximum. A pool that shrinks to a quarter of it for each part keeps
/// no records either.
const CAPACITY_PER_PART: usize = 64 << 20;
const PARTS_MAX: usize = 16;

/// Each part may keep this many segments: one that fills and one that empties.
pub(super) const SEGMENTS_MIN: usize = 2;

/// The window in which more memory would have helped is one part in this many of the capacity.
const WINDOW_PARTS: usize = 8;

/// One step moves the boundary by one part in this many of the capacity.
const STEP_PARTS: usize = 2048;

/// Blocks that were read again take at most one part in this many of the target at once.
const SHRINK_PARTS: usize = 16;

/// After this many quick reads in a row, the records are not worth their memory.
const QUICK_READS_MAX: usize = 1 << 14;

/// The capacity of the pool, and the part of it that the segments may take.
#[derive(Debug)]
pub(super) struct Share {
    parts: usize,
    capacity: AtomicUsize,
    target: AtomicUsize,
    quick_reads: AtomicUsize,
}

impl Share {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            parts: (capacity / CAPACITY_PER_PART).clamp(1, PARTS_MAX),
            capacity: AtomicUsize::new(capacity),
            target: AtomicUsize::new(0),
            quick_reads: AtomicUsize::new(0),
        }
    }

    pub(super) fn parts(&self) -> usize {
        self.parts
    }

    fn capacity(&self) -> usize {
        // Relaxed, here and below: the numbers guard no other memory.
        self.capacity.load(Ordering::Relaxed)
    }

    /// The most that segments may take.
    fn target_max(&self) -> usize {
        (self.capacity() / 4 * 3).min(self.parts * SEGMENTS_MAX * SEGMENT_BYTES)
    }

    pub(super) fn set_capacity(&self, capacity: usize) {
        self.capacity.store(capacity, Ordering::Relaxed);
        self.target.fetch_min(self.target_max(), Ordering::Relaxed);
    }

    /// Returns true if the pool is large enough for records.
    pub(super) fn may_keep(&self) -> bool {
        self.capacity() >= CAPACITY_MIN.max(self.parts * CAPACITY_PER_PART / 4)
    }

    /// What each part may take.
    pub(super) fn limits(&self) -> Limits {
        let target = self.target.load(Ordering::Relaxed);
        // Segments take at most three quarters of the capacity.
        let useful = SEGMENTS_MAX * SEGMENT_BYTES / 3 * 4;
        Limits {
            segments: (target / self.parts / SEGMENT_BYTES).clamp(SEGMENTS_MIN, SEGMENTS_MAX),
            capacity: (self.capacity() / self.parts).min(useful),
        }
    }

    /// Returns true if the segments may take more than the least.
    pub(super) fn has_grown(&self) -> bool {
        self.limits().segments > SEGMENTS_MIN
    }

    /// Grows the target if a record was used for the first time that would leave after `left` bytes of other
    /// records, of `ring` bytes of segments.
    pub(super) fn note_use(&self, left: usize, ring: usize) {
        let window = (self.capacity() / self.parts / WINDOW_PARTS).max(1);
        if left > window {
            return;
        }
        // In a ring shorter than the window, fewer records can prove the same need.
        let weight = window / ring.clamp(1, window);
        let step = (self.capacity() / STEP_PARTS).saturating_mul(weight);
        let grow = |target: usize| Some(target.saturating_add(step).min(self.target_max()));
        let _ = self.target.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grow);
    }

    /// Shrinks the target by what `read_again` blocks prove that were evicted too early.
    pub(super) fn shrink(&self, read_again: usize) {
        let step = self.capacity() / STEP_PARTS;
        let least = self.parts * SEGMENTS_MIN * SEGMENT_BYTES;
        let shrink = |target: usize| {
            let most = (target / SHRINK_PARTS).max(step);
            Some(target.saturating_sub(step.saturating_mul(read_again).min(most)).max(least))
        };
        let _ = self.target.fetch_update(Ordering::Relaxed, Ordering::Relaxed, shrink);
    }

    /// Notes whether a read waited for a device. Returns true if none has for long.
    pub(super) fn note_speed(&self, is_slow: bool) -> bool {
        if is_slow {
            self.quick_reads.store(0, Ordering::Relaxed);
            return false;
        }
        self.quick_reads.fetch_add(1, Ordering::Relaxed) >= QUICK_READS_MAX
    }

    /// Begins again with the least share.
    pub(super) fn reset(&self) {
        self.quick_reads.store(0, Ordering::Relaxed);
        self.target.store(0, Ordering::Relaxed);
    }
}
