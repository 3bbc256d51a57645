//! Which blocks stay: S3-FIFO (Yang et al., SOSP 2023) without queues or a hash table.
//!
//! A new data block is on probation. A block leaves probation in the order of arrival once
//! probation takes more than a tenth of the memory: it is evicted if nobody used it again, so a
//! scan evicts little but its own blocks. All other blocks are on a clock: the hand passes the
//! frames in the order of their addresses, takes one use from each block, and evicts a block
//! without uses. An evicted block leaves the time of its eviction in its slot. If it is read again
//! before as many blocks were evicted as are in memory, it skips probation. Indexes and filters skip
//! it too, and begin with the most uses.

use super::frame::{BlockRef, copy, pool_of};
use super::header::{FramePtr, STANDALONE, place_of, retain};
use super::pool::{State, Young};
use super::slots::Priority;
use super::word::{Slot, USES_MAX, Word};

/// The part of the memory for blocks on probation: one in this many bytes.
const PROBATION_PART: usize = 10;

/// The number of chunks among which a sparse one is sought.
const CHUNKS_COMPARED: usize = 64;

impl State {
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
            // A frame is in one slot only.
            return;
        }
        (entry.slot, entry.birth, entry.is_young) = (Some(slot.into()), birth, is_young);
        let bytes = self.chunk(number).frame_bytes;
        self.cached += 1;
        self.cached_bytes += bytes;
        if is_young {
            self.young_bytes += bytes;
            self.young.push_back(Young { chunk: number, place, birth });
            self.shorten_queue();
        }
        // SAFETY: `block` has a reference. The new one is that of the slot.
        unsafe { retain(frame) };
        slot.fill(frame, uses);
    }

    /// Drops the blocks from the queue that have left probation, once they are most of it.
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

    /// Makes the entry of a resident block refer to another address of its slot.
    pub(super) fn move_slot(&mut self, slot: &Slot) {
        if let Word::Resident { frame, .. } = slot.load() {
            // SAFETY: the slot has a reference, which the lock keeps.
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
        self.cached -= 1;
        self.cached_bytes -= bytes;
        self.young_bytes -= if was_young { bytes } else { 0 };
    }

    /// Evicts blocks of at least `wanted` bytes, if there are as many.
    pub(super) fn evict(&mut self, wanted: usize) {
        let mut left = wanted;
        // A block with the most uses is evicted when the hand passes it for the fourth time.
        let mut steps = self.young.len() + (USES_MAX + 2) * self.places;
        while left > 0 && self.cached > 0 && steps > 0 {
            steps -= 1;
            let young_only = self.young_bytes == self.cached_bytes;
            let evicted = if young_only || self.young_bytes * PROBATION_PART > self.cached_bytes {
                self.end_probation()
            } else {
                self.advance_hand()
            };
            left = left.saturating_sub(evicted);
        }
    }

    /// Ends the probation of the oldest block. Returns the bytes that were evicted.
    fn end_probation(&mut self) -> usize {
        let Some(young) = self.young.pop_front() else { return 0 };
        if !self.is_young(young) {
            return 0;
        }
        let chunk = self.chunk(young.chunk);
        let (frame, bytes) = (chunk.frame(young.place), chunk.frame_bytes);
        match self.uses(young.chunk, young.place) {
            Some((_, 0)) => {
                self.unlink(young.chunk, young.place);
                bytes
            }
            Some((slot, _)) => {
                self.chunk_mut(young.chunk).entries[young.place as usize].is_young = false;
                self.young_bytes -= bytes;
                slot.set_uses(frame, 0);
                0
            }
            None => 0,
        }
    }

    /// Moves the clock hand to the next block that is not on probation. Returns the bytes that were
    /// evicted.
    fn advance_hand(&mut self) -> usize {
        let (number, place) = self.hand;
        let Some(chunk) = self.chunks.get(number) else {
            self.hand = (0, 0);
            return 0;
        };
        let entries = chunk.as_ref().map_or(&[][..], |chunk| &chunk.entries);
        let Some(entry) = entries.get(place) else {
            self.hand = (number + 1, 0);
            return 0;
        };
        self.hand = (number, place + 1);
        if entry.is_young || entry.slot.is_none() {
            return 0;
        }
        let (number, place) = (number as u32, place as u32);
        let chunk = self.chunk(number);
        let (frame, bytes) = (chunk.frame(place), chunk.frame_bytes);
        match self.uses(number, place) {
            Some((_, 0)) => {
                self.unlink(number, place);
                bytes
            }
            Some((slot, uses)) => {
                slot.set_uses(frame, uses - 1);
                0
            }
            None => 0,
        }
    }

    /// Returns the slot of a frame and the uses of its block, if it is in a slot.
    fn uses<'a>(&self, number: u32, place: u32) -> Option<(&'a Slot, usize)> {
        let slot = self.chunk(number).entries[place as usize].slot?;
        // SAFETY: a table removes its slots from the entries, under the lock, before it frees them.
        let slot = unsafe { slot.as_ref() };
        match slot.load() {
            Word::Resident { uses, .. } => Some((slot, uses)),
            Word::Absent { .. } => None,
        }
    }

    /// Evicts a block.
    fn unlink(&mut self, number: u32, place: u32) {
        let Some((slot, _)) = self.uses(number, place) else { return };
        let frame = self.chunk(number).frame(place);
        slot.evict(self.evictions);
        self.evictions += 1;
        self.forget(frame);
        self.retire(frame);
    }

    /// Takes all blocks out of a sparsely used chunk. Moves those that are used to other chunks, if
    /// they have room, and evicts the rest. The chunk is given back when readers are done.
    pub(super) fn empty_chunk(&mut self) {
        let count = self.chunks.len();
        let candidates = (self.hand.0..self.hand.0 + count).map(|number| number % count);
        let sparse = candidates
            .filter(|number| self.chunks[*number].as_ref().is_some_and(is_removable))
            .take(CHUNKS_COMPARED)
            .min_by_key(|number| {
                self.chunks[*number].as_ref().map(|chunk| chunk.live * chunk.frame_bytes)
            });
        let Some(number) = sparse.map(|number| number as u32) else { return };
        let (class, count) = (self.chunk(number).class, self.chunk(number).entries.len());
        for place in 0..count as u32 {
            match self.uses(number, place) {
                Some((slot, uses)) if uses > 0 => match self.take_free(class, Some(number)) {
                    Some(to) => self.relocate((number, place), to, slot, uses),
                    None => self.unlink(number, place),
                },
                Some(_) => self.unlink(number, place),
                None => {}
            }
        }
    }

    /// Moves a block to another frame of the same size. It has been used, so it leaves probation.
    fn relocate(&mut self, from: (u32, u32), to: (u32, u32), slot: &Slot, uses: usize) {
        let old = self.chunk(from.0).frame(from.1);
        // SAFETY: the slot has a reference to the frame, and the lock keeps it.
        let pool = unsafe { pool_of(old) };
        let new = self.create(to, &pool);
        // SAFETY: nobody but this function knows the new frame, and the old one is in a slot.
        unsafe { copy(old, new) };
        self.forget(old);
        self.retire(old);
        let bytes = self.chunk(to.0).frame_bytes;
        self.chunk_mut(to.0).entries[to.1 as usize].slot = Some(slot.into());
        self.cached += 1;
        self.cached_bytes += bytes;
        // The first reference to the new frame is that of the slot.
        slot.fill(new, uses);
    }
}

/// Returns true if a chunk has several frames, and none that only readers refer to.
fn is_removable(chunk: &super::chunk::Chunk) -> bool {
    let is_pinned = |entry: &super::chunk::Entry| entry.is_live && entry.slot.is_none();
    !chunk.is_single && !chunk.entries.iter().any(is_pinned)
}
