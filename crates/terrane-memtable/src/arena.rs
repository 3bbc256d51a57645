//! A bump allocator for many threads.
//!
//! Memory comes in chunks that grow from 8 KiB to the size of the pool's blocks, so that a small
//! buffer stays small and a large one needs few chunks. An allocation is one atomic addition in the
//! current chunk; only the thread that finds the chunk full takes a lock and adds the next one. Once the
//! arena is large, small allocations are cut from portions of a chunk, one for each of a few groups of
//! threads, so that threads rarely change the same cache line. Memory is freed only with the arena. An
//! arena can reserve memory when it is created; its pages are touched then, so that later allocations
//! take no page faults.
//!
//! Invariants:
//! 1. A chunk lives as long as the arena, because `chunks` owns it and is never shortened.
//! 2. A range that [`Arena::allocate`] returns lies in one chunk and overlaps no other range,
//!    because it is cut from the chunk by an atomic addition and the part beyond the capacity is
//!    never returned.
//! 3. A portion is such a range, with a header at its start, and is cut in the same way.
//! 4. `current` is null or points to a chunk of `chunks`, because only `grow` stores it, after
//!    adding the chunk.

use std::ptr::{self, NonNull};
use std::sync::Arc;

use crate::padded::Padded;
use crate::pool::{ALIGN, MemoryBlock, Pool};
use crate::stripe::{STRIPES, stripe_of_thread};
use crate::sync::{AtomicPtr, AtomicUsize, Mutex, Ordering, WrittenOnce, lock};

const FIRST_CHUNK_BYTES: usize = 8 << 10;

/// The size of a portion, and the arena size from which portions are used: those of all stripes
/// then take at most a sixteenth of the arena. Loom models use none.
const PORTION_BYTES: usize = 32 << 10;
const PORTIONS_FROM: usize = if cfg!(loom) { usize::MAX } else { STRIPES * PORTION_BYTES * 16 };

/// A larger allocation is cut directly from the chunk.
const PORTION_PART_MAX: usize = PORTION_BYTES / 16;

/// The header of a portion.
struct Portion {
    /// The bytes requested so far, including this header.
    requested: AtomicUsize,
}

const _: () = assert!(align_of::<Portion>() <= ALIGN);

struct ArenaChunk {
    memory: MemoryBlock,
    /// The bytes requested so far; they exceed the capacity once the chunk is full.
    requested: AtomicUsize,
    all: WrittenOnce,
}

/// The memory that an arena owns.
#[derive(Default)]
struct ArenaChunks {
    all: Vec<NonNull<ArenaChunk>>,
    /// Memory for the next chunks. The capacity of the arena includes it.
    reserved: Vec<MemoryBlock>,
}

/// A growing region of memory that is freed as a whole.
pub(crate) struct Arena {
    current: AtomicPtr<ArenaChunk>,
    /// The capacity of all chunks and of the reserved memory.
    capacity_bytes: AtomicUsize,
    /// Bytes handed out from chunks that are not current.
    sealed_bytes: AtomicUsize,
    chunks: Mutex<ArenaChunks>,
    pool: Arc<Pool>,
    /// The portion of each stripe; null while it has none.
    portions: [Padded<AtomicPtr<Portion>>; STRIPES],
}

// SAFETY: the arena owns its chunks (invariant 1), which are not tied to a thread.
unsafe impl Send for Arena {}
// SAFETY: shared access goes through atomics and a lock, and `allocate` returns disjoint ranges
// (invariant 2).
unsafe impl Sync for Arena {}

impl Arena {
    pub(crate) fn new(pool: Arc<Pool>) -> Self {
        Self {
            current: AtomicPtr::new(ptr::null_mut()),
            capacity_bytes: AtomicUsize::new(0),
            sealed_bytes: AtomicUsize::new(0),
            chunks: Mutex::new(ArenaChunks::default()),
            pool,
            portions: std::array::from_fn(|_| Padded(AtomicPtr::new(ptr::null_mut()))),
        }
    }

    /// Creates an arena with `bytes` of reserved memory.
    pub(crate) fn with_capacity(bytes: usize, pool: Arc<Pool>) -> Self {
        let arena = Self::new(pool);
        {
            let reserved = &mut lock(&arena.chunks).reserved;
            let mut rest = bytes;
            while rest > 0 {
                let mut block = arena.pool.take(rest.min(arena.pool.block_bytes()));
                block.prepare();
                rest -= rest.min(block.len());
                arena.capacity_bytes.fetch_add(block.len(), Ordering::Relaxed);
                reserved.push(block);
            }
            // Blocks are taken from the end.
            reserved.reverse();
        }
        arena
    }

    /// Allocates `bytes` of uninitialised memory, rounded up to and aligned to [`ALIGN`].
    #[inline]
    pub(crate) fn allocate(&self, bytes: usize) -> NonNull<u8> {
        let bytes = bytes.next_multiple_of(ALIGN);
        // Relaxed: the choice of memory affects only speed.
        if bytes <= PORTION_PART_MAX && self.capacity_bytes.load(Ordering::Relaxed) >= PORTIONS_FROM
        {
            return self.allocate_in_portion(bytes);
        }
        self.allocate_in_chunk(bytes)
    }

    #[inline]
    fn allocate_in_portion(&self, bytes: usize) -> NonNull<u8> {
        let place = &self.portions[stripe_of_thread()];
        // Acquire pairs with the release in `add_portion`: the header is seen initialized.
        let portion = place.load(Ordering::Acquire);
        // SAFETY: `portion` is null or the header of a portion of this arena (invariant 3), which
        // lives with its chunk (invariant 1).
        if let Some(header) = unsafe { portion.as_ref() } {
            // Relaxed: the atomic addition alone makes ranges disjoint.
            let start = header.requested.fetch_add(bytes, Ordering::Relaxed);
            if start + bytes <= PORTION_BYTES {
                // SAFETY: the range ends within the portion, as just checked.
                let start = unsafe { portion.cast::<u8>().add(start) };
                // SAFETY: an address within an allocation is not null.
                return unsafe { NonNull::new_unchecked(start) };
            }
        }
        self.add_portion(place, portion, bytes)
    }

    /// Cuts a portion for a stripe, and the first `bytes` bytes from it.
    #[cold]
    fn add_portion(
        &self,
        place: &AtomicPtr<Portion>,
        full: *mut Portion,
        bytes: usize,
    ) -> NonNull<u8> {
        const HEADER: usize = size_of::<Portion>();
        let portion = self.allocate_in_chunk(PORTION_BYTES);
        let header = Portion { requested: AtomicUsize::new(HEADER + bytes) };
        // SAFETY: the range was just allocated, is aligned, and has room for the header.
        unsafe { portion.cast::<Portion>().write(header) };
        // Release pairs with the acquire in `allocate_in_portion`. If another thread of the stripe
        // was faster, the rest of this portion stays unused.
        let new = portion.cast::<Portion>().as_ptr();
        let _ = place.compare_exchange(full, new, Ordering::Release, Ordering::Relaxed);
        // SAFETY: header and `bytes` are within the portion, because `bytes` is at most a sixteenth
        // of it.
        unsafe { portion.add(HEADER) }
    }

    fn allocate_in_chunk(&self, bytes: usize) -> NonNull<u8> {
        loop {
            // Acquire pairs with the release in `grow`: the chunk is seen initialized.
            let current = self.current.load(Ordering::Acquire);
            // SAFETY: `current` is null or a chunk of this arena (invariant 4), which lives
            // (invariant 1).
            let chunk = unsafe { current.as_ref() };
            if let Some(start) = chunk.and_then(|chunk| chunk.take(bytes)) {
                return start;
            }
            if let Some(start) = self.grow(current, bytes) {
                return start;
            }
        }
    }

    /// Adds a chunk after `full`, unless another thread did. An allocation larger than a quarter of
    /// the next chunk gets a chunk of its own, and its start is returned.
    #[cold]
    fn grow(&self, full: *mut ArenaChunk, bytes: usize) -> Option<NonNull<u8>> {
        let mut chunks = lock(&self.chunks);
        let capacity = self.capacity_bytes.load(Ordering::Relaxed);
        let usual = capacity.next_power_of_two().clamp(FIRST_CHUNK_BYTES, self.pool.block_bytes());
        if bytes > usual / 4 {
            let chunk = self.add(&mut chunks, self.pool.take(bytes));
            self.sealed_bytes.fetch_add(bytes, Ordering::Relaxed);
            drop(chunks);
            // SAFETY: `add` put the chunk into `chunks`, so it lives (invariant 1).
            let chunk = unsafe { chunk.as_ref() };
            chunk.memory.populate();
            return chunk.take(bytes);
        }
        if ptr::eq(self.current.load(Ordering::Acquire), full) {
            // SAFETY: `full` was loaded from `current`, so it is null or a chunk that lives
            // (invariants 1 and 4).
            let sealed = unsafe { full.as_ref() }.map_or(0, ArenaChunk::used_bytes);
            self.sealed_bytes.fetch_add(sealed, Ordering::Relaxed);
            let chunk = match chunks.reserved.pop() {
                Some(memory) => self.add_counted(&mut chunks, memory),
                None => self.add(&mut chunks, self.pool.take(usual)),
            };
            // Release pairs with the acquire in `allocate` and `usage`.
            self.current.store(chunk.as_ptr(), Ordering::Release);
        }
        None
    }

    fn add(&self, chunks: &mut ArenaChunks, memory: MemoryBlock) -> NonNull<ArenaChunk> {
        self.capacity_bytes.fetch_add(memory.len(), Ordering::Relaxed);
        self.add_counted(chunks, memory)
    }

    fn add_counted(&self, chunks: &mut ArenaChunks, memory: MemoryBlock) -> NonNull<ArenaChunk> {
        let chunk = ArenaChunk { memory, requested: AtomicUsize::new(0), all: WrittenOnce::new() };
        chunk.all.write();
        let chunk = NonNull::from(Box::leak(Box::new(chunk)));
        chunks.all.push(chunk);
        chunk
    }

    /// Returns the bytes allocated from the arena and the bytes it took from the allocator. During
    /// concurrent allocations, the first may be off by a chunk, but never exceeds the second.
    pub(crate) fn usage(&self) -> (usize, usize) {
        let current = self.current.load(Ordering::Acquire);
        // SAFETY: `current` is null or a chunk of this arena (invariant 4), which lives (invariant
        // 1).
        let open = unsafe { current.as_ref() }.map_or(0, ArenaChunk::used_bytes);
        let used = self.sealed_bytes.load(Ordering::Relaxed) + open;
        // While `grow` replaces a chunk, the chunk is both sealed and open.
        let capacity = self.capacity_bytes.load(Ordering::Relaxed);
        (used.min(capacity), capacity)
    }
}

impl ArenaChunk {
    fn take(&self, bytes: usize) -> Option<NonNull<u8>> {
        self.all.read();
        let capacity = self.memory.len();
        // Checked first, so that a large allocation that does not fit leaves the rest of the chunk
        // to small ones.
        if self.used_bytes().checked_add(bytes)? > capacity {
            return None;
        }
        // Relaxed: the atomic addition alone makes ranges disjoint; the caller publishes the
        // memory.
        let start = self.requested.fetch_add(bytes, Ordering::Relaxed);
        if start.checked_add(bytes)? > capacity {
            return None;
        }
        // SAFETY: `start + bytes` is at most the capacity, which was just checked.
        Some(unsafe { self.memory.start().add(start) })
    }

    /// Returns an upper bound on the bytes allocated: if an allocation did not fit, the unused rest
    /// of the chunk counts too, because it is lost.
    fn used_bytes(&self) -> usize {
        self.requested.load(Ordering::Relaxed).min(self.memory.len())
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        let ArenaChunks { all, reserved } = std::mem::take(&mut *lock(&self.chunks));
        for chunk in all {
            // SAFETY: `add_counted` leaked the chunk from a box, and only this line, which runs
            // once, frees it.
            let chunk = unsafe { Box::from_raw(chunk.as_ptr()) };
            self.pool.give(chunk.memory);
        }
        for memory in reserved {
            self.pool.give(memory);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_aligned_and_disjoint() {
        let arena = Arena::new(Pool::new(0));
        let sizes = [1, 7, 8, 9, 100, 70_000, 3, 20_000, 5_000_000, 1];
        let ranges: Vec<(usize, usize)> = std::thread::scope(|scope| {
            let spawn = || {
                scope.spawn(|| {
                    let take = |size| (arena.allocate(size).as_ptr().addr(), size);
                    sizes
                        .iter()
                        .cycle()
                        .take(if cfg!(miri) { 10 } else { 60 })
                        .map(|&size| take(size))
                        .collect::<Vec<_>>()
                })
            };
            let threads: Vec<_> = (0..3).map(|_| spawn()).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        let mut sorted = ranges.clone();
        sorted.sort_unstable();
        assert!(sorted.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
        assert!(ranges.iter().all(|(start, _)| start % ALIGN == 0));
    }

    #[test]
    #[cfg_attr(miri, ignore = "touches many megabytes")]
    fn threads_of_a_large_arena_get_disjoint_ranges() {
        let arena = Arena::new(Pool::new(0));
        while arena.usage().1 < PORTIONS_FROM {
            arena.allocate(100_000);
        }
        let mut ranges: Vec<(usize, usize)> = std::thread::scope(|scope| {
            // More threads than stripes.
            let threads: Vec<_> = (0..STRIPES + 3)
                .map(|_| {
                    let arena = &arena;
                    let take = move |size| (arena.allocate(size).as_ptr().addr(), size);
                    scope.spawn(move || {
                        let sizes = [8, 100, 2000, PORTION_PART_MAX, PORTION_PART_MAX + 1];
                        sizes.iter().cycle().take(500).map(|&size| take(size)).collect::<Vec<_>>()
                    })
                })
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
        assert!(ranges.iter().all(|(start, _)| start % ALIGN == 0));
        let (used, allocated) = arena.usage();
        assert!(used >= ranges.iter().map(|(_, size)| size).sum() && used <= allocated);
    }

    #[test]
    fn usage_counts_what_was_handed_out() {
        let arena = Arena::new(Pool::new(0));
        assert_eq!(arena.usage(), (0, 0));
        arena.allocate(24);
        arena.allocate(1);
        assert_eq!(arena.usage(), (32, FIRST_CHUNK_BYTES));
        arena.allocate(1 << 20);
        assert_eq!(arena.usage(), (32 + (1 << 20), FIRST_CHUNK_BYTES + (1 << 20)));
    }
}
