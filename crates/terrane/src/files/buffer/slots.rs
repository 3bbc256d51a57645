//! The slots of a file: one word per block.
//!
//! 1. A slot with an address has one reference to the frame, and the entry of the frame in its chunk
//!    points back to the slot. Both change together, under the lock of the pool.
//! 2. Slots therefore must not move while one of them has a frame. [`Slots::grow`] replaces them under
//!    the lock. They are in an `Arc`, although it is not shared: a `Box` has its contents for itself, so
//!    that every move of the box would invalidate the pointers of the entries.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use terrane_memtable::prefetch_line;

use super::epoch::{Guard, pin};
use super::frame::{BlockRef, BlockView};
use super::header::{HEADER_BYTES, retain};
use super::in_flight::Reading;
use super::pool::{BufferPool, Shared};
use super::word::{Slot, Word};

const WORDS_PER_LINE: usize = 64 / size_of::<Slot>();

/// How long a new block stays in memory if it is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Priority {
    /// A data block: evicted early, unless it is used again or was evicted recently.
    Data,
    /// An index or a filter: one block that serves many lookups.
    Meta,
}

/// The slots of one file.
pub(crate) struct Slots {
    slots: Arc<[Slot]>,
    pool: Arc<Shared>,
}

/// A block that this thread reads into its slot. Others that need the block wait until this is dropped.
#[derive(Debug)]
pub(crate) struct Loading<'a> {
    slots: &'a Slots,
    slot: usize,
    _reading: Reading<'a>,
}

impl Slots {
    /// Creates slots for `count` blocks, none of which is in memory.
    pub(crate) fn new(pool: &BufferPool, count: usize) -> Self {
        let slots = (0..count).map(|_| Slot::absent()).collect();
        Self { slots, pool: Arc::clone(pool.shared()) }
    }

    /// Returns the number of slots.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the block of a slot if it is in memory, and counts the use.
    #[inline]
    pub(crate) fn get<'a>(&'a self, slot: usize, guard: &'a Guard) -> Option<BlockView<'a>> {
        let word = self.slots.get(slot)?.load_for_use();
        let Word::Resident { frame, .. } = word else { return None };
        // SAFETY: when the slot was loaded, it had a reference to the frame, which is released only
        // after the guard is dropped. `&'a self` prevents closing the table, which would release the
        // reference at once.
        Some(unsafe { BlockView::new(frame, guard) })
    }

    /// Returns the block of a slot if it is in memory. Does not count as a use.
    #[inline]
    pub(crate) fn peek<'a>(&'a self, slot: usize, guard: &'a Guard) -> Option<BlockView<'a>> {
        match self.slots.get(slot)?.load() {
            // SAFETY: as in `get`.
            Word::Resident { frame, .. } => Some(unsafe { BlockView::new(frame, guard) }),
            Word::Absent { .. } => None,
        }
    }

    /// Returns true if the block is in memory. Does not count as a use.
    pub(crate) fn is_resident(&self, slot: usize) -> bool {
        let word = self.slots.get(slot).map(Slot::load);
        matches!(word, Some(Word::Resident { .. }))
    }

    /// Prefetches the words of `count` slots from `slot` on.
    #[inline]
    pub(crate) fn prefetch(&self, slot: usize, count: usize) {
        let end = (slot + count).min(self.slots.len());
        let words = self.slots.get(slot..end).unwrap_or_default();
        for line in words.chunks(WORDS_PER_LINE) {
            prefetch_line(std::ptr::from_ref(&line[0]).cast());
        }
        // The words may begin in the middle of a line.
        if let Some(last) = words.last() {
            prefetch_line(std::ptr::from_ref(last).cast());
        }
    }

    /// Prefetches the header and the first `lines` cache lines of the block of a slot, if it is in
    /// memory. Unlike a prefetch of a [`BlockView`], this does not wait for the header.
    #[inline]
    pub(crate) fn prefetch_block(&self, slot: usize, lines: usize) {
        let Some(Word::Resident { frame, .. }) = self.slots.get(slot).map(Slot::load) else {
            return;
        };
        // The frame may have been freed already, but a prefetch of any address is harmless.
        let start = frame.as_ptr().cast::<u8>();
        for line in 0..=lines {
            prefetch_line(start.wrapping_add(line * 64).cast_const());
        }
    }

    /// Prefetches a part of a slot's block, at most a line long, if the block is in memory.
    #[inline]
    pub(crate) fn prefetch_bytes(&self, slot: usize, bytes: Range<usize>) {
        let Some(Word::Resident { frame, .. }) = self.slots.get(slot).map(Slot::load) else {
            return;
        };
        let start = frame.as_ptr().cast::<u8>().wrapping_add(HEADER_BYTES + bytes.start);
        // As in `prefetch_block`, the address need not be valid.
        prefetch_line(start.cast_const());
        if !start.addr().is_multiple_of(64) {
            prefetch_line(start.wrapping_add(bytes.len()).cast_const());
        }
    }

    /// Reads the block of a slot that was not in memory, and puts it into the slot. If other threads do so
    /// at the same time, one of them reads it, unless its read fails or the pool has no room.
    pub(crate) fn load_once<E>(
        &self,
        slot: usize,
        priority: Priority,
        read: impl FnOnce() -> Result<BlockRef, E>,
    ) -> Result<BlockRef, E> {
        let address = self.slots.get(slot).map(|slot| std::ptr::from_ref(slot).addr());
        let _reading = address.and_then(|address| self.pool.in_flight.begin(address));
        // Another thread may have read the block since.
        if let Some(block) = self.get(slot, &pin()) {
            return Ok(block.share());
        }
        Ok(self.fill(slot, read()?, priority))
    }

    /// Begins to read the block of a slot, unless it is in memory or another thread reads it. The caller waits for no
    /// other block until it drops the value.
    pub(crate) fn begin_load(&self, slot: usize) -> Option<Loading<'_>> {
        let address = std::ptr::from_ref(self.slots.get(slot)?).addr();
        let reading = self.pool.in_flight.try_begin(address)?;
        (!self.is_resident(slot)).then_some(Loading { slots: self, slot, _reading: reading })
    }

    /// Puts a block into a slot and returns it. If another thread has filled the slot first,
    /// returns that thread's block.
    pub(crate) fn fill(&self, slot: usize, block: BlockRef, priority: Priority) -> BlockRef {
        let Some(slot) = self.slots.get(slot) else { return block };
        let mut state = self.pool.lock();
        if let Word::Resident { frame, .. } = slot.load() {
            // SAFETY: the slot has a reference, which is not dropped while the lock is held.
            unsafe { retain(frame) };
            drop(state);
            // SAFETY: the reference was just taken.
            return unsafe { BlockRef::from_counted(frame) };
        }
        let is_recent = state.was_evicted_recently(slot);
        state.put(slot, &block, priority);
        // A block outside of the pool leaves the slot as it was.
        if priority == Priority::Data && matches!(slot.load(), Word::Resident { .. }) {
            self.pool.turnover.note_read(state.evictions > 1, is_recent);
        }
        block
    }

    /// Appends slots until there are `count`.
    pub(crate) fn grow(&mut self, count: usize) {
        let more = count.saturating_sub(self.slots.len());
        if more == 0 {
            return;
        }
        let mut state = self.pool.lock();
        let slots: Arc<[Slot]> = self
            .slots
            .iter()
            .map(Slot::successor)
            .chain((0..more).map(|_| Slot::absent()))
            .collect();
        slots.iter().for_each(|slot| state.move_slot(slot));
        self.slots = slots;
    }

    /// Shortens the slots to `count`, and drops the blocks of the removed slots.
    pub(crate) fn truncate(&mut self, count: usize) {
        if count < self.slots.len() {
            self.clear(count);
            let mut state = self.pool.lock();
            let slots: Arc<[Slot]> = self.slots[..count].iter().map(Slot::successor).collect();
            slots.iter().for_each(|slot| state.move_slot(slot));
            self.slots = slots;
        }
    }

    /// Empties the slots from `first` on, and frees their frames.
    fn clear(&mut self, first: usize) {
        /// The number of slots emptied while the lock is held, so that misses wait only briefly.
        const AT_ONCE: usize = 256;
        for slots in self.slots.get(first..).unwrap_or_default().chunks(AT_ONCE) {
            if slots.iter().any(|slot| matches!(slot.load(), Word::Resident { .. })) {
                // `&mut self` means that no reader has a view of a block of this file.
                self.pool.close(slots);
            }
        }
    }
}

impl Loading<'_> {
    /// Puts the block into its slot and returns it.
    pub(crate) fn fill(self, block: BlockRef, priority: Priority) -> BlockRef {
        self.slots.fill(self.slot, block, priority)
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        self.clear(0);
    }
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slots({})", self.len())
    }
}
