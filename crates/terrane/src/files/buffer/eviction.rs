//! Chooses the blocks to evict: S3-FIFO (Yang et al., SOSP 2023) without queues or a hash table.
//!
//! A new data block is on probation. A block leaves probation in the order of arrival once probation
//! takes more than a tenth of the memory: it is evicted if it was not used again, so a scan evicts
//! little but its own blocks. All other blocks are on a clock: the hand passes the frames in the order
//! of their addresses, takes one use from each block, and evicts a block without uses. An eviction
//! leaves its time in the block's slot. If the block is read again before the number of further
//! evictions reaches the number of blocks in memory, it skips probation. Indexes and filters skip it
//! too, and begin with the maximum uses.

use super::frame::BlockRef;
use super::header::{FramePtr, STANDALONE, place_of, retain};
use super::pool::{BufferPool, State, Young};
use super::slots::Priority;
use super::word::{Slot, USES_MAX, Word};

/// The part of the memory for blocks on probation: one in this many bytes.
const PROBATION_PART: usize = 10;

/// The number of blocks that an eviction visits before it becomes less choosy. The lock is held
/// during this time.
const PATIENCE: usize = 1024;

/// A block that is read again would still be in memory if the pool were larger by at most one part in this
/// many of its capacity.
const LITTLE_MORE: usize = 8;

impl BufferPool {
    /// Returns true if the pool has evicted blocks, so that it is too small for everything.
    #[inline]
    pub(crate) fn has_evicted(&self) -> bool {
        self.shared().turnover.has_evicted()
    }

    /// Returns how many blocks a slightly larger pool would not have read again since the last call.
    pub(crate) fn take_read_again(&self) -> usize {
        self.shared().turnover.take_read_again()
    }
}

impl State {
    /// Returns true if few blocks have been evicted since the one that was in this slot.
    pub(super) fn was_evicted_recently(&self, slot: &Slot) -> bool {
        let Word::Absent { stamp: stamp @ 1.. } = slot.load() else { return false };
        let bytes = self.cached_bytes / self.cached.max(1);
        let bytes = bytes.saturating_mul(self.evictions - stamp);
        bytes <= self.capacity / LITTLE_MORE
    }

    /// Puts a block into an empty slot.
    pub(super) fn put(&mut self, slot: &Slot, block: &BlockRef, priority: Priority) {
        let frame = block.frame();
        // SAFETY: `block` has a reference.
        let (number, place) = unsafe { place_of(frame) };
        let Word::Absent { stamp } = slot.load() else { return };
        if number == STANDALONE {
            return;
        }
        let was_recent = stamp > 0 && self.evictions - stamp <= self.cached;
        let is_young = priority == Priority::Data && !was_recent;
        let uses = match priority {
            Priority::Meta => USES_MAX,
            Priority::Data => usize::from(was_recent),
        };
        let birth = self.births;
        self.births = birth.wrapping_add(1);
        let entry = &mut self.chunk_mut(number).entries[place as usize];
        if entry.slot.is_some() {
            // A frame is in at most one slot.
            return;
        }
        (entry.slot, entry.birth, entry.is_young) = (Some(slot.into()), birth, is_young);
        let chunk = self.chunk_mut(number);
        chunk.linked += 1;
        let bytes = chunk.frame_bytes;
        self.cached += 1;
        self.cached_bytes += bytes;
        if is_young {
            self.young_bytes += bytes;
            self.young.push_back(Young { chunk: number, place, birth });
            self.shorten_queue();
        }
        // SAFETY: `block` has a reference. The new one belongs to the slot.
        unsafe { retain(frame) };
        slot.fill(frame, uses);
        self.end_probation_of_used();
    }

    /// Ends the probation of the oldest blocks if they were used. While the pool fills, everything is
    /// on probation; the first eviction would otherwise have to pass all of it.
    fn end_probation_of_used(&mut self) {
        for _ in 0..2 {
            let Some(young) = self.young.front().copied() else { return };
            let is_unused = || matches!(self.uses(young.chunk, young.place), Some((_, 0)));
            if self.young_bytes * PROBATION_PART <= self.capacity
                || (self.is_young(young) && is_unused())
            {
                return;
            }
            self.end_probation(0);
        }
    }

    /// Removes the blocks that have left probation from the queue, once they are the majority.
    fn shorten_queue(&mut self) {
        if self.young.len() > 2 * self.cached + 64 {
            let mut queue = std::mem::take(&mut self.young);
            queue.retain(|young| self.is_young(*young));
            self.young = queue;
        }
    }

    fn is_young(&self, young: Young) -> bool {
        let chunk = self.chunks[young.chunk as usize].as_ref();
        let entry = chunk.and_then(|chunk| chunk.entries.get(young.place as usize));
        entry.is_some_and(|entry| {
            entry.is_young && entry.birth == young.birth && entry.slot.is_some()
        })
    }

    /// Makes the entry of a resident block refer to the new address of its slot.
    pub(super) fn move_slot(&mut self, slot: &Slot) {
        if let Word::Resident { frame, .. } = slot.load() {
            // SAFETY: the slot has a reference, which is not dropped while the lock is held.
            let (number, place) = unsafe { place_of(frame) };
            self.chunk_mut(number).entries[place as usize].slot = Some(slot.into());
        }
    }

    /// Removes the slot from the entry of a frame.
    pub(super) fn forget(&mut self, frame: FramePtr) {
        // SAFETY: the caller has the reference of the slot.
        let (number, place) = unsafe { place_of(frame) };
        let chunk = self.chunk_mut(number);
        let bytes = chunk.frame_bytes;
        let entry = &mut chunk.entries[place as usize];
        entry.slot = None;
        let was_young = std::mem::take(&mut entry.is_young);
        chunk.linked -= 1;
        self.cached -= 1;
        self.cached_bytes -= bytes;
        self.young_bytes -= if was_young { bytes } else { 0 };
    }

    /// Evicts at least `wanted` bytes of blocks, if that is possible. Returns the evicted bytes.
    pub(super) fn evict(&mut self, wanted: usize) -> usize {
        let mut evicted = 0;
        // The longer the search takes, the more uses a block needs to survive. In a small pool, all
        // blocks are visited first.
        let round = self.young.len() + self.places + self.chunks.len() + 1;
        let (mut steps, mut seen) = (0, 0);
        while evicted < wanted && self.cached > 0 && steps < (USES_MAX + 3) * round {
            let impatience = (seen / PATIENCE).max(steps / round);
            let uses_max = impatience.saturating_sub(1).min(USES_MAX);
            steps += 1;
            // Unused blocks are evicted before others, even if probation takes little.
            let is_probation_long = self.young_bytes == self.cached_bytes
                || self.young_bytes * PROBATION_PART > self.cached_bytes
                || (impatience == 1 && self.young_bytes > 0);
            let block = if is_probation_long {
                self.end_probation(uses_max)
            } else {
                self.advance_hand(uses_max)
            };
            seen += usize::from(block.is_some());
            evicted += block.unwrap_or(0);
        }
        evicted
    }

    /// Ends the probation of the oldest block, which is evicted if it has at most this many uses.
    /// Returns the evicted bytes; `None` if the block had left probation.
    fn end_probation(&mut self, uses_max: usize) -> Option<usize> {
        let young = self.young.pop_front()?;
        if !self.is_young(young) {
            return None;
        }
        let chunk = self.chunk(young.chunk);
        let (frame, bytes) = (chunk.frame(young.place), chunk.frame_bytes);
        let (slot, uses) = self.uses(young.chunk, young.place)?;
        if uses <= uses_max {
            self.unlink(young.chunk, young.place);
            return Some(bytes);
        }
        self.chunk_mut(young.chunk).entries[young.place as usize].is_young = false;
        self.young_bytes -= bytes;
        slot.set_uses(frame, 0);
        Some(0)
    }

    /// Moves the clock hand to the next frame, whose block is evicted if it has at most this many uses
    /// and is not on probation. Returns the evicted bytes, or `Some(0)` if the block had more uses and loses
    /// one; `None` if the frame has no such block.
    fn advance_hand(&mut self, uses_max: usize) -> Option<usize> {
        let (number, place) = self.hand;
        let Some(chunk) = self.chunks.get(number) else {
            self.hand = (0, 0);
            return None;
        };
        let chunk = chunk.as_ref().filter(|chunk| chunk.linked > 0);
        let Some(entry) = chunk.and_then(|chunk| chunk.entries.get(place)) else {
            self.hand = (number + 1, 0);
            return None;
        };
        self.hand = (number, place + 1);
        if entry.is_young || entry.slot.is_none() {
            return None;
        }
        let (number, place) = (number as u32, place as u32);
        let chunk = self.chunk(number);
        let (frame, bytes) = (chunk.frame(place), chunk.frame_bytes);
        let (slot, uses) = self.uses(number, place)?;
        if uses <= uses_max {
            self.unlink(number, place);
            return Some(bytes);
        }
        slot.set_uses(frame, uses - 1);
        Some(0)
    }

    /// Returns the slot of a frame and the uses of its block, if it is in a slot.
    pub(super) fn uses<'a>(&self, number: u32, place: u32) -> Option<(&'a Slot, usize)> {
        let slot = self.chunk(number).entries[place as usize].slot?;
        // SAFETY: a table removes its slots from the entries, under the lock, before it frees them.
        let slot = unsafe { slot.as_ref() };
        match slot.load() {
            Word::Resident { uses, .. } => Some((slot, uses)),
            Word::Absent { .. } => None,
        }
    }

    /// Evicts a block.
    pub(super) fn unlink(&mut self, number: u32, place: u32) {
        let Some((slot, _)) = self.uses(number, place) else { return };
        let frame = self.chunk(number).frame(place);
        slot.evict(self.evictions);
        self.evictions += 1;
        self.forget(frame);
        self.retire(frame);
    }
}
