//! Allocates blocks, in the pool and outside of it.

use std::sync::atomic::Ordering;

use super::chunk::lead_of;
use super::epoch;
use super::frame::BlockMut;
use super::header::{self, HEADER_BYTES, STANDALONE};
use super::memory::{FRAME_ALIGN, HUGE_PAGE_BYTES, Memory};
use super::pool::{BLOCK_LEN_MAX, BufferPool, owner};
use super::steps::{Backoff, Missing};

/// From this length on, blocks use up pages faster than a thread populates them. The wait for a page is
/// shared by hundreds of smaller blocks, all of which would otherwise be read again.
const LARGE_BLOCK_BYTES: usize = 16 << 10;

impl BufferPool {
    /// Allocates a block of `len` bytes with arbitrary contents. Evicts other blocks to make room.
    pub(crate) fn allocate(&self, len: usize) -> BlockMut {
        self.allocate_or_wait(len, false)
    }

    /// Does the same, but while another thread populates a page ([`BufferPool::work_ahead`]), a large block
    /// is outside of the pool, so that it is not cached.
    pub(crate) fn allocate_at_once(&self, len: usize) -> BlockMut {
        self.allocate_or_wait(len, len >= LARGE_BLOCK_BYTES)
    }

    fn allocate_or_wait(&self, len: usize, may_be_outside: bool) -> BlockMut {
        debug_assert!(!epoch::is_pinned(), "a pinned reader must not wait");
        let len = len.min(BLOCK_LEN_MAX);
        let bytes = HEADER_BYTES + len;
        let bytes = bytes + lead_of(bytes + FRAME_ALIGN);
        let mut backoff = Backoff::default();
        let mut memory = None;
        loop {
            let mut state = self.0.lock();
            match state.acquire(bytes, !backoff.is_long(), &mut memory) {
                Ok(place) => {
                    let frame = state.create(place, &self.0);
                    self.0.request_page(&mut state);
                    drop(state);
                    // SAFETY: the frame was just created, with one reference.
                    return unsafe { BlockMut::new(frame, len) };
                }
                // Done without the lock, because other threads would otherwise wait while the
                // system clears the pages.
                Err(Missing::Pages(bytes)) => {
                    let is_outside =
                        may_be_outside && bytes == HUGE_PAGE_BYTES && state.awaits_page();
                    self.0.request_page(&mut state);
                    drop(state);
                    if is_outside {
                        return self.standalone(len);
                    }
                    memory = Some(Memory::populated(bytes));
                }
                Err(Missing::Readers) => {
                    let is_stuck = state.is_stuck;
                    drop(state);
                    if is_stuck {
                        return self.standalone(len);
                    }
                    // All free frames are still in use by readers.
                    backoff.wait();
                }
            }
        }
    }

    /// Allocates a block outside of the pool, for a reader that reads each block once.
    pub(crate) fn standalone(&self, len: usize) -> BlockMut {
        let len = len.min(BLOCK_LEN_MAX);
        let capacity = len.next_multiple_of(FRAME_ALIGN);
        let memory = Memory::standalone(HEADER_BYTES + capacity);
        // Relaxed: no other memory access depends on the sum.
        self.0.standalone.fetch_add(memory.bytes(), Ordering::Relaxed);
        let (start, capacity) = (memory.into_raw(), capacity as u32);
        // SAFETY: the memory is new, zeroed, aligned and large enough.
        let frame =
            unsafe { header::create(start.cast(), capacity, (STANDALONE, 0), owner(&self.0)) };
        // SAFETY: the frame was just created, with one reference.
        unsafe { BlockMut::new(frame, len) }
    }
}
