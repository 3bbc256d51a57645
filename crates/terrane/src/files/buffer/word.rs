//! A slot: the word of one block.
//!
//! ```text
//! in memory:  address of the frame (16-byte aligned) | 0 | uses: 2 bits
//! otherwise:  when it was evicted, 0 for never       | 1 | 00
//! ```

use std::ptr::{NonNull, without_provenance_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

use super::header::{FramePtr, Header};
use super::memory::SMALL_ALIGN;

/// The maximum number of uses that a slot counts.
pub(super) const USES_MAX: usize = 3;

/// Set if the block is not in memory.
const ABSENT: usize = 4;

const STAMP_SHIFT: u32 = 3;

/// One slot.
#[derive(Debug)]
#[repr(transparent)]
pub(super) struct Slot(AtomicPtr<Header>);

/// The contents of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// In memory, with this count of uses.
    Resident { frame: FramePtr, uses: usize },
    /// Evicted when the eviction count had this value; 0 if it was never in memory.
    Absent { stamp: usize },
}

impl Slot {
    pub(super) fn absent() -> Self {
        Self(AtomicPtr::new(without_provenance_mut(ABSENT)))
    }

    /// Loads the slot. The frame exists while the pool is locked or a guard exists that is older
    /// than the load.
    #[inline]
    pub(super) fn load(&self) -> Word {
        // Acquire: pairs with the release of `fill`, so the contents of the frame are visible.
        decode(self.0.load(Ordering::Acquire))
    }

    /// Does the same, and counts a use unless the block already has the maximum.
    #[inline]
    pub(super) fn load_for_use(&self) -> Word {
        // Acquire: see `load`.
        let pointer = self.0.load(Ordering::Acquire);
        let word = decode(pointer);
        if matches!(word, Word::Resident { uses, .. } if uses < USES_MAX) {
            let more = pointer.map_addr(|address| address + 1);
            // Relaxed: the count is a hint. If the slot has changed since, the use is not counted.
            let _ = self.0.compare_exchange(pointer, more, Ordering::Relaxed, Ordering::Relaxed);
        }
        word
    }

    /// Returns a slot with the same contents, to replace this one. The pool is locked.
    pub(super) fn successor(&self) -> Self {
        // Relaxed: slots with contents change under the lock.
        Self(AtomicPtr::new(self.0.load(Ordering::Relaxed)))
    }

    /// Puts a frame into the slot. The pool is locked.
    pub(super) fn fill(&self, frame: FramePtr, uses: usize) {
        let word = frame.as_ptr().map_addr(|address| address | uses);
        // Release: see `load`.
        self.0.store(word, Ordering::Release);
    }

    /// Sets the uses of a resident block. The pool is locked. A concurrent use may be lost.
    pub(super) fn set_uses(&self, frame: FramePtr, uses: usize) {
        self.fill(frame, uses);
    }

    /// Empties the slot. The pool is locked.
    pub(super) fn evict(&self, stamp: usize) {
        // Release: a table that is being closed frees an empty slot without the lock, after this. For
        // all other uses `epoch::advance` provides the order.
        self.0.store(without_provenance_mut(stamp << STAMP_SHIFT | ABSENT), Ordering::Release);
    }
}

#[inline]
fn decode(word: *mut Header) -> Word {
    let address = word.addr();
    match NonNull::new(word.map_addr(|address| address & !(SMALL_ALIGN - 1))) {
        Some(frame) if address & ABSENT == 0 => Word::Resident { frame, uses: address & USES_MAX },
        _ => Word::Absent { stamp: address >> STAMP_SHIFT },
    }
}
