//! Releases memory: frames return to the operating system one chunk at a time.
//!
//! A chunk is emptied only if its blocks fit into the free frames of other chunks, or if it has few
//! blocks. Cold blocks are therefore evicted first, wherever they are, and hot blocks move. While a
//! reader keeps one frame of a chunk, the chunk's memory is not released.

use super::chunk::Chunk;
use super::frame::{copy, pool_of};
use super::pool::State;
use super::steps::{BATCH_BYTES_MAX, Shrinking};
use super::word::Slot;

/// The maximum number of removable chunks compared, and of chunks visited to find them.
const CHUNKS_COMPARED: usize = 64;
const CHUNKS_SEEN_MAX: usize = 4096;

impl State {
    /// Takes one step towards the capacity, if it is exceeded.
    pub(super) fn shrink(&mut self) -> Shrinking {
        self.reap();
        self.release_ahead(0);
        let over = self.allocated.saturating_sub(self.capacity);
        if over == 0 || self.is_stuck {
            return Shrinking::Ends;
        }
        if self.pending_bytes > 0 {
            return Shrinking::Waits;
        }
        if self.empty_chunk() {
            self.reap();
            return Shrinking::Goes;
        }
        // With this many free frames, some chunk can be emptied, unless all are in use.
        let sizes = self.free_frames.iter().filter(|frames| **frames > 0).count();
        let spread = ((sizes + 1) * self.largest_chunk_bytes).min(self.capacity / 2);
        let missing = (over + spread).saturating_sub(self.free_bytes);
        if missing == 0 || self.evict(missing.min(BATCH_BYTES_MAX)) == 0 {
            return Shrinking::Ends;
        }
        self.reap();
        Shrinking::Goes
    }

    /// Removes all blocks from the sparsest suitable chunk, moving the used ones to other chunks.
    /// The chunk is released when readers are done. Returns false if no chunk is suitable.
    pub(super) fn empty_chunk(&mut self) -> bool {
        if self.free_bytes == 0 {
            return false;
        }
        let count = self.chunks.len();
        // The clock hand has just left sparse chunks behind it.
        let candidates = (0..count).map(|back| (self.hand.0 + count - back) % count);
        let live = |number: &usize| self.chunks[*number].as_ref().map_or(0, |chunk| chunk.live);
        let sparse = candidates
            .take(CHUNKS_SEEN_MAX)
            .filter(|number| self.chunks[*number].as_ref().is_some_and(|it| self.is_removable(it)))
            .take(CHUNKS_COMPARED)
            .min_by_key(live);
        let Some(number) = sparse.map(|number| number as u32) else { return false };
        if self.chunk(number).live == 0 {
            self.remove_chunk(number);
            return true;
        }
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
        true
    }

    /// Returns true if a chunk has several frames, no frame to which only readers refer, and few
    /// enough blocks.
    fn is_removable(&self, chunk: &Chunk) -> bool {
        if chunk.is_single || chunk.live != chunk.linked {
            return false;
        }
        let frames = chunk.entries.len();
        // The free frames of the class include those of the chunk itself.
        chunk.live * 4 <= frames || self.free_frames[chunk.class] >= frames
    }

    /// Moves a block to another frame of the same size. It has been used, so it leaves probation.
    fn relocate(&mut self, from: (u32, u32), to: (u32, u32), slot: &Slot, uses: usize) {
        let old = self.chunk(from.0).frame(from.1);
        // SAFETY: the slot has a reference, which is not dropped while the lock is held.
        let pool = unsafe { pool_of(old) };
        let new = self.create(to, &pool);
        // SAFETY: only this function refers to the new frame, and the old one does not change
        // because it is in a slot.
        unsafe { copy(old, new) };
        self.forget(old);
        self.retire(old);
        let chunk = self.chunk_mut(to.0);
        chunk.linked += 1;
        chunk.entries[to.1 as usize].slot = Some(slot.into());
        let bytes = chunk.frame_bytes;
        self.cached += 1;
        self.cached_bytes += bytes;
        // The first reference to the new frame belongs to the slot.
        slot.fill(new, uses);
    }
}
