//! Allocation of frames.
//!
//! A common block size gets its own chunks; blocks of rare sizes get their own memory from the
//! allocator, so that a rare size does not occupy a chunk. If the pool is full, blocks are evicted
//! until a frame is free. If that frees only frames of other sizes, eviction continues until a chunk
//! can be emptied and released: no size keeps memory that it no longer needs.
//!
//! A preempted reader keeps evicted frames from reuse for milliseconds. Nothing more is evicted
//! meanwhile, because the frames that wait for the reader suffice: allocations wait briefly, and then
//! exceed the capacity by up to a sixteenth.
//!
//! Under the interpreter Miri, which is slower by a factor of thousands, the sizes are smaller, so that
//! small pools take the same paths.

use std::sync::Arc;

use super::chunk::{CLASSES, Chunk, class_of, lead_of};
use super::header::{self, FramePtr, HEADER_BYTES};
use super::memory::{FRAME_ALIGN, HUGE_PAGE_BYTES, Memory, SMALL_ALIGN};
use super::pool::{BufferPool, Shared, State, owner};
use super::steps::{BATCH_BYTES_MAX, Missing, Shrinking};

/// A pool that never had this capacity gives all frames their own memory: a chunk would take too large a part
/// of the capacity.
const CHUNKED_BYTES_MIN: usize = if cfg!(miri) { 8 << 10 } else { 8 << 20 };

/// A pool that was large enough for chunks once keeps to them down to this capacity. Chunks return to the system,
/// while the allocator keeps much of the memory of freed frames: with a capacity that went up and down around the
/// minimum above, 6 MiB of frames left a heap of 12 MiB, besides the chunks that followed them.
const SHRUNK_BYTES_MIN: usize = CHUNKED_BYTES_MIN / 4;

/// From this capacity on, chunks are huge pages.
pub(super) const HUGE_BYTES_MIN: usize = if cfg!(miri) { 64 << 10 } else { 64 << 20 };

const SMALL_CHUNK_BYTES: usize = if cfg!(miri) { 4 << 10 } else { 256 << 10 };

/// A chunk has at least this many frames. Under Miri, the smallest frames do not become smaller with the
/// chunks.
const FRAMES_MIN: usize = if cfg!(miri) { 4 } else { 16 };

/// A frame of at least this size with its own memory gets whole pages, which return to the system
/// when it is freed; the allocator would keep some of them. Doing so for smaller frames would create
/// too many mappings in a large pool.
const PAGES_MIN: usize = if cfg!(miri) { 4 << 10 } else { 512 << 10 };

const PAGE_BYTES: usize = 4096;

/// How often an allocation evicts before it exceeds the capacity: enough to empty a huge page.
const ROUNDS: usize = 16;

impl BufferPool {
    /// Returns true if a block of `len` bytes needs no eviction.
    pub(crate) fn has_room(&self, len: usize) -> bool {
        let state = self.shared().lock();
        let allocated = state.capacity.saturating_sub(state.room());
        allocated.max(state.live_bytes + HUGE_PAGE_BYTES) + len <= state.capacity
    }
}

impl State {
    /// Returns the size of chunks; `None` if frames get their own memory.
    fn chunk_bytes(&self) -> Option<usize> {
        match self.capacity {
            HUGE_BYTES_MIN.. => Some(HUGE_PAGE_BYTES),
            CHUNKED_BYTES_MIN.. => Some(SMALL_CHUNK_BYTES),
            SHRUNK_BYTES_MIN.. if self.capacity_max >= CHUNKED_BYTES_MIN => Some(SMALL_CHUNK_BYTES),
            _ => None,
        }
    }

    /// Finds memory for a frame. Fails if readers still use the evicted blocks, and the caller is
    /// patient or the capacity is far exceeded; if the pool is full and can evict nothing; and if
    /// `memory` does not suffice. In the last case the caller maps the memory and calls again.
    pub(super) fn acquire(
        &mut self,
        bytes: usize,
        is_patient: bool,
        memory: &mut Option<Memory>,
    ) -> Result<(u32, u32), Missing> {
        let class = class_of(bytes);
        // Tried even if the caller has memory, because another thread may have added a chunk
        // since.
        if let Some(place) = class.and_then(|(class, _)| self.take_free(class, None)) {
            return Ok(place);
        }
        if memory.is_some()
            && let Ok(Some(place)) = self.add_within_capacity(bytes, class, memory)
        {
            return Ok(place);
        }
        self.reap();
        for _ in 0..ROUNDS {
            // May release a chunk that was in use when the capacity shrank or was exceeded.
            if self.allocated <= self.capacity || self.shrink() != Shrinking::Goes {
                break;
            }
        }
        // If most of the memory is pinned, eviction gains little.
        let rounds = if self.cached * 16 < self.places { 1 } else { ROUNDS };
        for round in 0..=rounds {
            if let Some(place) = class.and_then(|(class, _)| self.take_free(class, None)) {
                return Ok(place);
            }
            if let Some(place) = self.add_within_capacity(bytes, class, memory)? {
                return Ok(place);
            }
            if self.is_stuck {
                return Err(Missing::Readers);
            }
            if round == rounds || self.pending_bytes >= bytes {
                // Enough was evicted. Evicting more would not free a frame sooner.
                break;
            }
            // The blocks evicted before had another size.
            let is_emptied = round > 0 && self.pending_bytes == 0 && self.empty_chunk();
            if !is_emptied {
                let wanted = (self.cached_bytes / 16).min(BATCH_BYTES_MAX).max(bytes);
                self.evict(wanted - self.pending_bytes.min(wanted));
            }
            self.reap();
        }
        let is_far = self.allocated > self.capacity + self.capacity / 16;
        if self.pending_bytes > 0 && (is_patient || is_far) {
            return Err(Missing::Readers);
        }
        // Everything is in use: exceeds the capacity.
        self.add_single(bytes, class, memory)
    }

    /// Adds a chunk, if the capacity allows.
    fn add_within_capacity(
        &mut self,
        bytes: usize,
        class: Option<(usize, usize)>,
        memory: &mut Option<Memory>,
    ) -> Result<Option<(u32, u32)>, Missing> {
        let room = self.room();
        // A size gets a chunk once its frames would fill a quarter of it.
        let chunk = self.chunk_bytes().zip(class).filter(|(chunk, (class, frame))| {
            frame * FRAMES_MIN <= *chunk && self.single_bytes[*class] + frame > chunk / 4
        });
        match chunk {
            Some((chunk_bytes, (class, frame_bytes))) => {
                if Chunk::bytes_with(chunk_bytes, frame_bytes) > room {
                    return Ok(None);
                }
                let pages = self.take_pages(memory, chunk_bytes)?;
                if self.has_room_ahead(chunk_bytes) {
                    self.want_page();
                }
                self.largest_chunk_bytes = self.largest_chunk_bytes.max(chunk_bytes);
                let number = self.add_chunk(Chunk::new(pages, frame_bytes, class, false));
                self.set_open(number);
                Ok(self.take_free(class, None))
            }
            None => {
                let frame_bytes = single_bytes(bytes);
                let fits = Chunk::bytes_with(frame_bytes, frame_bytes) <= room;
                if fits { self.add_single(bytes, class, memory).map(Some) } else { Ok(None) }
            }
        }
    }

    /// Adds memory for a single frame.
    fn add_single(
        &mut self,
        bytes: usize,
        class: Option<(usize, usize)>,
        memory: &mut Option<Memory>,
    ) -> Result<(u32, u32), Missing> {
        let bytes = single_bytes(bytes);
        let class = class.map_or(CLASSES, |(class, _)| class);
        let memory = match bytes {
            PAGES_MIN.. => self.take_pages(memory, bytes)?,
            _ if lead_of(bytes) > 0 => Memory::small(bytes, FRAME_ALIGN),
            _ => Memory::small(bytes, SMALL_ALIGN),
        };
        let mut chunk = Chunk::new(memory, bytes, class, true);
        let place = chunk.take().unwrap_or_default();
        if let Some(sum) = self.single_bytes.get_mut(class) {
            *sum += bytes;
        }
        self.live_bytes += bytes;
        Ok((self.add_chunk(chunk), place))
    }

    /// Takes the pages that are ready or that the caller has mapped. Fails if there are none of this size.
    fn take_pages(&mut self, memory: &mut Option<Memory>, bytes: usize) -> Result<Memory, Missing> {
        if bytes == HUGE_PAGE_BYTES
            && let Some(pages) = self.take_ahead()
        {
            return Ok(pages);
        }
        memory.take_if(|memory| memory.bytes() == bytes).ok_or(Missing::Pages(bytes))
    }

    fn add_chunk(&mut self, chunk: Chunk) -> u32 {
        self.release_ahead(chunk.bytes());
        self.allocated += chunk.bytes();
        self.places += chunk.entries.len();
        if !chunk.is_single {
            self.free_frames[chunk.class] += chunk.entries.len();
            self.free_bytes += chunk.entries.len() * chunk.frame_bytes;
        }
        if let Some(number) = self.vacant.pop() {
            self.chunks[number as usize] = Some(chunk);
            return number;
        }
        self.chunks.push(Some(chunk));
        (self.chunks.len() - 1) as u32
    }

    /// Releases the memory of a chunk without referenced frames.
    pub(super) fn remove_chunk(&mut self, number: u32) {
        if let Some(chunk) = self.chunks[number as usize].take() {
            self.allocated -= chunk.bytes();
            self.places -= chunk.entries.len();
            self.vacant.push(number);
            if !chunk.is_single {
                self.free_frames[chunk.class] -= chunk.entries.len();
                self.free_bytes -= chunk.entries.len() * chunk.frame_bytes;
            }
            if chunk.is_open {
                self.open[chunk.class].retain(|open| *open != number);
            }
            self.garbage.push(chunk.into_memory());
        }
    }

    /// Adds a chunk to the list of chunks that may have free frames, unless the list contains it.
    pub(super) fn set_open(&mut self, number: u32) {
        let chunk = self.chunk_mut(number);
        let class = chunk.class;
        if !std::mem::replace(&mut chunk.is_open, true) {
            self.open[class].push(number);
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
            let Some(chunk) = self.chunks[number as usize].as_mut() else { continue };
            if let Some(place) = chunk.take() {
                self.live_bytes += chunk.frame_bytes;
                self.free_bytes -= chunk.frame_bytes;
                self.free_frames[class] -= 1;
                return Some((number, place));
            }
            chunk.is_open = false;
            open.swap_remove(at);
            at = at.min(open.len());
        }
        None
    }

    /// Writes the header of a frame that was taken, with one reference.
    pub(super) fn create(&self, (number, place): (u32, u32), pool: &Arc<Shared>) -> FramePtr {
        let chunk = self.chunk(number);
        let capacity = (chunk.frame_bytes - chunk.lead - HEADER_BYTES) as u32;
        // SAFETY: the frame is free and aligned. It begins `lead` bytes before its header and is
        // `frame_bytes` long. Its memory was zeroed once.
        unsafe { header::create(chunk.frame(place), capacity, (number, place), owner(pool)) }
    }
}

/// Returns the memory that a frame of `bytes` takes if it has its own memory.
fn single_bytes(bytes: usize) -> usize {
    bytes.next_multiple_of(if bytes >= PAGES_MIN { PAGE_BYTES } else { FRAME_ALIGN })
}
