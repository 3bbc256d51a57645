//! Allocation of frames.
//!
//! A size that many blocks have gets chunks of its own; other blocks get memory of their own from
//! the allocator, so that a rare size does not take a chunk. If the pool is full, blocks are evicted
//! until there is a free frame. If that frees only frames of other sizes, a sparsely used chunk is
//! emptied and given back: no size keeps memory that it no longer needs.

use std::sync::Arc;

use super::chunk::{CLASSES, Chunk, class_of};
use super::header::{self, FramePtr, HEADER_BYTES};
use super::memory::{FRAME_ALIGN, HUGE_PAGE_BYTES, Memory};
use super::pool::{Shared, State, owner};

/// Below this capacity all frames get memory of their own: chunks would be too large a part of it.
const CHUNKED_BYTES_MIN: usize = 8 << 20;

/// From this capacity on, chunks are huge pages.
const HUGE_BYTES_MIN: usize = 64 << 20;

const SMALL_CHUNK_BYTES: usize = 256 << 10;

/// The most bytes that are evicted at once. A batch shares the cost of waiting for readers.
const BATCH_BYTES_MAX: usize = 256 << 10;

/// How often an allocation evicts before it waits or exceeds the capacity.
const ROUNDS: usize = 4;

impl State {
    /// Returns the size of chunks; none if frames get memory of their own.
    fn chunk_bytes(&self) -> Option<usize> {
        match self.capacity {
            HUGE_BYTES_MIN.. => Some(HUGE_PAGE_BYTES),
            CHUNKED_BYTES_MIN.. => Some(SMALL_CHUNK_BYTES),
            _ => None,
        }
    }

    /// Finds memory for a frame. Returns none if readers still use what was evicted.
    pub(super) fn acquire(&mut self, bytes: usize) -> Option<(u32, u32)> {
        let class = class_of(bytes);
        if let Some(place) = class.and_then(|(class, _)| self.take_free(class, None)) {
            return Some(place);
        }
        if self.allocated > self.capacity {
            // A part that was in use when the capacity shrank.
            self.empty_chunk();
            self.reap();
        }
        // If most of the memory is pinned, eviction gains little.
        let rounds = if self.cached * 16 < self.places { 1 } else { ROUNDS };
        for round in 0..rounds {
            if let Some(place) = self.add_within_capacity(bytes, class) {
                return Some(place);
            }
            self.evict((self.cached_bytes / 16).min(BATCH_BYTES_MAX).max(bytes));
            if round > 0 {
                self.empty_chunk();
            }
            self.reap();
            if let Some(place) = class.and_then(|(class, _)| self.take_free(class, None)) {
                return Some(place);
            }
        }
        let is_waiting = !self.retired.is_empty() || !self.unlinked.is_empty();
        if is_waiting && self.allocated > self.capacity + self.capacity / 16 {
            return None;
        }
        // Everything is in use: exceeds the capacity.
        Some(self.add_single(bytes, class))
    }

    /// Adds a chunk, if the capacity allows.
    fn add_within_capacity(
        &mut self,
        bytes: usize,
        class: Option<(usize, usize)>,
    ) -> Option<(u32, u32)> {
        let room = self.capacity.saturating_sub(self.allocated);
        // A size gets a chunk once its frames would fill a quarter of one.
        let chunk = self.chunk_bytes().zip(class).filter(|(chunk, (class, frame))| {
            frame * 16 <= *chunk && self.single_bytes[*class] + frame > chunk / 4
        });
        match chunk {
            Some((chunk_bytes, (class, frame_bytes))) => {
                let chunk = (chunk_bytes < room)
                    .then(|| Chunk::new(Memory::pages(chunk_bytes), frame_bytes, class, false))?;
                let number = self.add_chunk(chunk);
                self.open[class].push(number);
                self.take_free(class, None)
            }
            None => (bytes + size_of::<Chunk>() < room).then(|| self.add_single(bytes, class)),
        }
    }

    /// Adds memory for a single frame.
    fn add_single(&mut self, bytes: usize, class: Option<(usize, usize)>) -> (u32, u32) {
        let bytes = bytes.next_multiple_of(FRAME_ALIGN);
        let class = class.map_or(CLASSES, |(class, _)| class);
        let mut chunk = Chunk::new(Memory::small(bytes), bytes, class, true);
        let place = chunk.take().unwrap_or_default();
        if let Some(sum) = self.single_bytes.get_mut(class) {
            *sum += bytes;
        }
        self.live_bytes += bytes;
        (self.add_chunk(chunk), place)
    }

    fn add_chunk(&mut self, chunk: Chunk) -> u32 {
        self.allocated += chunk.bytes();
        self.places += chunk.entries.len();
        if let Some(number) = self.vacant.pop() {
            self.chunks[number as usize] = Some(chunk);
            return number;
        }
        self.chunks.push(Some(chunk));
        (self.chunks.len() - 1) as u32
    }

    pub(super) fn remove_chunk(&mut self, number: u32) {
        if let Some(chunk) = self.chunks[number as usize].take() {
            self.allocated -= chunk.bytes();
            self.places -= chunk.entries.len();
            self.vacant.push(number);
        }
    }

    /// Takes a free frame of a class that is not in the chunk `except`.
    pub(super) fn take_free(&mut self, class: usize, except: Option<u32>) -> Option<(u32, u32)> {
        let open = &mut self.open[class];
        let mut at = open.len();
        while let Some(before) = at.checked_sub(1) {
            at = before;
            let number = open[at];
            if Some(number) == except {
                continue;
            }
            let chunk = self.chunks[number as usize].as_mut();
            let chunk = chunk.filter(|chunk| chunk.class == class && !chunk.is_single);
            if let Some((chunk, place)) =
                chunk.and_then(|chunk| chunk.take().map(|place| (chunk, place)))
            {
                self.live_bytes += chunk.frame_bytes;
                return Some((number, place));
            }
            // It is full, or it is another chunk by now.
            open.swap_remove(at);
            at = at.min(open.len());
        }
        None
    }

    /// Writes the header of a frame that was taken, with one reference.
    pub(super) fn create(&self, (number, place): (u32, u32), pool: &Arc<Shared>) -> FramePtr {
        let chunk = self.chunk(number);
        let capacity = (chunk.frame_bytes - chunk.lead - HEADER_BYTES) as u32;
        // SAFETY: the frame is free, aligned, and `frame_bytes` long from `lead` bytes before its
        // header on. Its memory was zeroed once.
        unsafe { header::create(chunk.frame(place), capacity, (number, place), owner(pool)) }
    }
}
