//! The pool of frames and its state under the lock.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::chunk::{CLASSES, Chunk};
use super::epoch;
use super::frame;
use super::header::{self, FramePtr, STANDALONE, place_of, size_of_frame};
use super::in_flight::InFlight;
use super::locked::Locked;
use super::memory::{HUGE_PAGE_BYTES, Memory};
use super::steps::{Backoff, Shrinking};
use super::turnover::Turnover;
use super::word::{Slot, Word};
use crate::base::fork::Owner;

/// The length of the longest block. Callers check lengths that they read from a file.
pub(crate) const BLOCK_LEN_MAX: usize = u32::MAX as usize - 4096;

/// Blocks in memory, at most `capacity` bytes.
#[derive(Debug)]
pub(crate) struct BufferPool(pub(super) Arc<Shared>);

/// The state that frames and slots share.
#[derive(Debug)]
pub(super) struct Shared {
    /// The process that opened the database. In a child the lock may be held for ever, so blocks are not
    /// freed.
    owner: Owner,
    state: Mutex<State>,
    /// The bytes of blocks outside the pool.
    pub(super) standalone: AtomicUsize,
    /// True if another thread should populate a page.
    pub(super) wants_page: AtomicBool,
    pub(super) in_flight: InFlight,
    pub(super) turnover: Turnover,
}

/// The memory of a pool, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PoolBytes {
    pub(crate) capacity: usize,
    /// Taken from the operating system for the pool.
    pub(crate) allocated: usize,
    /// Blocks in slots, which can be evicted unless they are in use.
    pub(crate) cached: usize,
    /// The part of `allocated` used by blocks outside any slot.
    pub(crate) pinned: usize,
    /// Blocks outside of the pool.
    pub(crate) standalone: usize,
}

/// A block on probation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Young {
    pub(super) chunk: u32,
    pub(super) place: u32,
    pub(super) birth: u32,
}

/// The state under the lock.
#[derive(Debug)]
pub(super) struct State {
    pub(super) capacity: usize,
    /// The largest capacity so far.
    pub(super) capacity_max: usize,
    pub(super) allocated: usize,
    /// Chunks by number.
    pub(super) chunks: Vec<Option<Chunk>>,
    /// Numbers without a chunk.
    pub(super) vacant: Vec<u32>,
    /// For each class, the chunks that may have free frames.
    pub(super) open: Vec<Vec<u32>>,
    /// For each class, the number of free frames in chunks, and the bytes of all of them.
    pub(super) free_frames: [usize; CLASSES],
    pub(super) free_bytes: usize,
    /// The largest memory of a chunk so far.
    pub(super) largest_chunk_bytes: usize,
    /// For each class, the bytes of frames that have their own memory.
    pub(super) single_bytes: [usize; CLASSES],
    /// A page that is populated, for the next chunk.
    pub(super) ahead: Option<Memory>,
    /// A chunk was added, so the next one should be populated.
    pub(super) wants_page: bool,
    /// When another thread was asked for a page that is not ready yet.
    pub(super) page_requested: Option<Instant>,
    /// The number of frames, used or not.
    pub(super) places: usize,
    /// The bytes of frames that are referenced.
    pub(super) live_bytes: usize,
    /// The bytes and the number of frames in slots.
    pub(super) cached_bytes: usize,
    pub(super) cached: usize,
    /// Blocks on probation, oldest first, including some that have left probation.
    pub(super) young: VecDeque<Young>,
    pub(super) young_bytes: usize,
    pub(super) births: u32,
    /// The number of evictions, plus one.
    pub(super) evictions: usize,
    /// The next frame that the clock hand visits.
    pub(super) hand: (usize, usize),
    /// Frames that were removed from their slots, but that readers may still use.
    pub(super) unlinked: Vec<FramePtr>,
    /// The same, with the first epoch in which no reader can find them.
    pub(super) retired: VecDeque<(u64, Vec<FramePtr>)>,
    /// The bytes of the frames in `unlinked` and `retired`.
    pub(super) pending_bytes: usize,
    /// True if the pool can no longer evict, because it cannot know when readers are done.
    pub(super) is_stuck: bool,
    /// Memory to release after the lock.
    pub(super) garbage: Vec<Memory>,
}

// SAFETY: the pointers are to frames, which belong to no thread, and to slots, which are atomic. The
// pool has a reference to each frame that it follows, and a slot exists while an entry refers to it.
unsafe impl Send for State {}

impl BufferPool {
    /// Creates an empty pool.
    pub(crate) fn new(capacity: u64) -> Self {
        epoch::prepare();
        let capacity = usize::try_from(capacity).unwrap_or(usize::MAX);
        let state = State {
            capacity,
            capacity_max: capacity,
            allocated: 0,
            chunks: Vec::new(),
            vacant: Vec::new(),
            open: vec![Vec::new(); CLASSES],
            free_frames: [0; CLASSES],
            free_bytes: 0,
            largest_chunk_bytes: 0,
            single_bytes: [0; CLASSES],
            ahead: None,
            wants_page: false,
            page_requested: None,
            places: 0,
            live_bytes: 0,
            cached_bytes: 0,
            cached: 0,
            young: VecDeque::new(),
            young_bytes: 0,
            births: 0,
            evictions: 1,
            hand: (0, 0),
            unlinked: Vec::new(),
            retired: VecDeque::new(),
            pending_bytes: 0,
            is_stuck: false,
            garbage: Vec::new(),
        };
        Self(Arc::new(Shared {
            owner: Owner::this_process(),
            state: Mutex::new(state),
            standalone: AtomicUsize::new(0),
            wants_page: AtomicBool::new(false),
            in_flight: InFlight::default(),
            turnover: Turnover::default(),
        }))
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.0
    }

    /// Returns the bytes of blocks outside of the pool.
    pub(crate) fn standalone_bytes(&self) -> usize {
        // Relaxed: no other memory access depends on the sum.
        self.0.standalone.load(Ordering::Relaxed)
    }

    /// Changes the capacity. If the pool exceeds it, evicts blocks and returns memory to the
    /// operating system.
    pub(crate) fn set_capacity(&self, capacity: u64) {
        let capacity = usize::try_from(capacity).unwrap_or(usize::MAX);
        let mut state = self.0.lock();
        state.capacity = capacity;
        state.capacity_max = state.capacity_max.max(capacity);
        drop(state);
        let mut backoff = Backoff::default();
        loop {
            // One step at a time, so that misses wait only briefly.
            let shrinking = self.0.lock().shrink();
            match shrinking {
                Shrinking::Ends => return,
                Shrinking::Goes => backoff = Backoff::default(),
                // Later allocations and capacity changes continue the shrinking.
                Shrinking::Waits if backoff.is_long() => return,
                Shrinking::Waits => backoff.wait(),
            }
        }
    }

    pub(crate) fn bytes(&self) -> PoolBytes {
        let state = self.0.lock();
        PoolBytes {
            capacity: state.capacity,
            allocated: state.allocated,
            cached: state.cached_bytes,
            pinned: state.live_bytes - state.cached_bytes,
            standalone: self.0.standalone.load(Ordering::Relaxed),
        }
    }
}

impl Drop for BufferPool {
    fn drop(&mut self) {
        // Retired frames refer to the pool, so they must not stay in it.
        let mut backoff = Backoff::default();
        loop {
            let mut state = self.0.lock();
            state.reap();
            if state.pending_bytes == 0 {
                return;
            }
            drop(state);
            backoff.wait();
        }
    }
}

/// Returns a counted reference to the pool for a new frame.
pub(super) fn owner(pool: &Arc<Shared>) -> *const () {
    Arc::into_raw(Arc::clone(pool)).cast()
}

impl Shared {
    pub(super) fn lock(&self) -> Locked<'_> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Locked::new(state)
    }

    /// Frees a frame whose last reference was dropped.
    pub(super) fn free(&self, frame: FramePtr) {
        if !self.owner.is_this_process() {
            return;
        }
        // SAFETY: the frame was not freed yet.
        let (chunk, _) = unsafe { place_of(frame) };
        if chunk == STANDALONE {
            // SAFETY: as above.
            let bytes = unsafe { size_of_frame(frame) };
            self.standalone.fetch_sub(bytes, Ordering::Relaxed);
            // SAFETY: a standalone frame is allocated as standalone memory of this size.
            drop(unsafe { Memory::of_raw(frame.cast(), bytes) });
        } else {
            self.lock().free(frame);
        }
    }

    /// Empties slots of a file that has no readers, and frees their frames.
    pub(super) fn close(&self, slots: &[Slot]) {
        if !self.owner.is_this_process() {
            return;
        }
        let mut state = self.lock();
        for slot in slots {
            if let Word::Resident { frame, .. } = slot.load() {
                slot.evict(0);
                state.forget(frame);
                state.release(frame);
            }
        }
    }
}

impl State {
    #[expect(clippy::expect_used, reason = "a frame keeps its chunk")]
    pub(super) fn chunk(&self, number: u32) -> &Chunk {
        self.chunks[number as usize].as_ref().expect("a frame is in a chunk")
    }

    #[expect(clippy::expect_used, reason = "a frame keeps its chunk")]
    pub(super) fn chunk_mut(&mut self, number: u32) -> &mut Chunk {
        self.chunks[number as usize].as_mut().expect("a frame is in a chunk")
    }

    /// Frees a frame whose last reference was dropped.
    fn free(&mut self, frame: FramePtr) {
        // SAFETY: the frame is not reused before it is returned to its chunk, below.
        let (number, place) = unsafe { place_of(frame) };
        let is_tight = self.allocated + HUGE_PAGE_BYTES > self.capacity;
        let chunk = self.chunk_mut(number);
        let (bytes, class) = (chunk.frame_bytes, chunk.class);
        chunk.give_back(place);
        let (is_single, is_empty) = (chunk.is_single, chunk.live == 0);
        self.live_bytes -= bytes;
        if is_single {
            if let Some(sum) = self.single_bytes.get_mut(class) {
                *sum -= bytes;
            }
            self.remove_chunk(number);
            return;
        }
        self.free_frames[class] += 1;
        self.free_bytes += bytes;
        if is_empty && is_tight {
            // Another size may need the memory.
            self.remove_chunk(number);
        } else {
            self.set_open(number);
        }
    }

    /// Drops a reference of the pool, and frees the frame if it was the last one.
    fn release(&mut self, frame: FramePtr) {
        // SAFETY: the caller has taken the frame out of its slot, which had a reference.
        if unsafe { header::release(frame) } {
            // SAFETY: the last reference was dropped just now. This is not the last reference to the
            // pool, because the caller has locked it through another one.
            drop(unsafe { frame::end(frame) });
            self.free(frame);
        }
    }

    /// Keeps a frame that was removed from its slot until no reader uses it.
    pub(super) fn retire(&mut self, frame: FramePtr) {
        self.pending_bytes += self.bytes_of(frame);
        self.unlinked.push(frame);
    }

    /// Releases the frames that no reader uses.
    pub(super) fn reap(&mut self) {
        if !self.unlinked.is_empty() {
            match epoch::advance() {
                Ok(epoch) => self.retired.push_back((epoch, std::mem::take(&mut self.unlinked))),
                Err(failed) if failed.is_permanent => {
                    // The pool cannot know when readers are done with these frames, so it leaks
                    // them.
                    let frames = std::mem::take(&mut self.unlinked);
                    let bytes: usize = frames.iter().map(|frame| self.bytes_of(*frame)).sum();
                    self.pending_bytes -= bytes;
                    self.is_stuck = true;
                }
                Err(_) => {}
            }
        }
        if self.retired.is_empty() {
            return;
        }
        let earliest = epoch::earliest_pinned();
        while self.retired.front().is_some_and(|(epoch, _)| *epoch <= earliest) {
            let (_, frames) = self.retired.pop_front().unwrap_or_default();
            for frame in frames {
                self.pending_bytes -= self.bytes_of(frame);
                self.release(frame);
            }
        }
    }

    /// Returns the size of a frame to which the pool has a reference.
    fn bytes_of(&self, frame: FramePtr) -> usize {
        // SAFETY: the caller has a reference to the frame.
        let (number, _) = unsafe { place_of(frame) };
        self.chunk(number).frame_bytes
    }
}
