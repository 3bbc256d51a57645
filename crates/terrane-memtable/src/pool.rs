//! Memory of dropped memtables, kept for the next ones.
//!
//! A write buffer that is filled, flushed and dropped again and again would take fresh pages from
//! the system each time, and each page costs a fault when it is first written: about as much time
//! as copying the entries. So large blocks return to a pool that all memtables of a database share.
//! The pool counts the memory of all memtables that use it. It keeps a block only while that memory and
//! the blocks that it keeps are within its limits.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::pages::{HUGE_PAGE_BYTES, Pages};
use crate::sync::{Mutex, lock};

/// Alignment of blocks, and of all allocations of an arena.
pub(crate) const ALIGN: usize = 8;

/// The size of the smallest and of the largest blocks that a pool may keep.
const BLOCK_BYTES_MIN: usize = 64 << 10;
pub(crate) const LARGEST_BYTES: usize = 4 << 20;

/// Blocks of at least this size come from the system instead of the allocator.
const MAPPED_BYTES_MIN: usize = BLOCK_BYTES_MIN;

/// How many blocks are prepared in advance.
const BLOCKS_PREPARED: usize = 2;

/// Memory that is uninitialised, or has the contents of an earlier use.
///
/// Invariant 1: `start` is the start of `len` bytes of `source`, which only this block owns.
pub(crate) struct MemoryBlock {
    start: NonNull<u8>,
    len: usize,
    source: Source,
    /// Its pages are touched, and huge if the system has any.
    is_prepared: bool,
}

/// Where the memory of a block comes from.
enum Source {
    /// The allocator, with this layout.
    Allocator(Layout),
    System(Pages),
}

// SAFETY: a block owns its memory (invariant 1), which is not tied to a thread.
unsafe impl Send for MemoryBlock {}

impl MemoryBlock {
    pub(crate) fn allocate(bytes: usize) -> Self {
        if bytes < MAPPED_BYTES_MIN {
            return Self::from_allocator(bytes);
        }
        let Some(pages) = Pages::map(bytes) else { return Self::from_allocator(bytes) };
        if bytes > LARGEST_BYTES {
            // Such a block holds one large value, which is copied at once, and is not kept for reuse.
            pages.request_huge();
        }
        let start = pages.start();
        Self { start, len: bytes, source: Source::System(pages), is_prepared: false }
    }

    fn from_allocator(bytes: usize) -> Self {
        let len = bytes.max(ALIGN);
        // Sizes are at most a key and a value, far below the limit of a layout.
        let layout = Layout::from_size_align(len, ALIGN)
            .unwrap_or_else(|_| handle_alloc_error(Layout::new::<u8>()));
        // SAFETY: the size of the layout is at least 8.
        let start = unsafe { alloc(layout) };
        let start = NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout));
        Self { start, len, source: Source::Allocator(layout), is_prepared: false }
    }

    /// Makes the system provide the pages of the block now: huge ones if the block is that large, because a
    /// search touches a few random lines of a large structure, and with small pages each of them also
    /// misses the TLB. A block that is not prepared has small pages: its first writer takes the page faults,
    /// and a fault for a huge page may take milliseconds.
    pub(crate) fn prepare(&mut self) {
        if self.is_prepared {
            return;
        }
        if let Source::System(pages) = &self.source
            && self.len >= HUGE_PAGE_BYTES
        {
            pages.request_huge();
        }
        self.touch();
        self.is_prepared = true;
    }

    /// Makes the system provide all pages of a block from the system, which costs less than a fault for
    /// each page.
    pub(crate) fn populate(&self) {
        if let Source::System(pages) = &self.source {
            pages.populate();
        }
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Writes to every page.
    fn touch(&mut self) {
        const PAGE_BYTES: usize = 4 << 10;
        for offset in (0..self.len()).step_by(PAGE_BYTES) {
            // SAFETY: the offset is below the size of the allocation (invariant 1).
            let byte = unsafe { self.start.add(offset) };
            // Volatile, because the compiler may drop a write that is never read. SAFETY: this
            // block owns the memory exclusively (invariant 1), and the byte lies within it.
            unsafe { byte.write_volatile(0) };
        }
    }
}

impl Drop for MemoryBlock {
    fn drop(&mut self) {
        if let Source::Allocator(layout) = self.source {
            // SAFETY: `start` is an allocation of this layout, which only this block owns
            // (invariant 1).
            unsafe { dealloc(self.start.as_ptr(), layout) };
        }
    }
}

/// The limits of a [`Pool`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolLimits {
    /// The bytes of blocks that the pool keeps at most.
    pub free_bytes_max: usize,
    /// The bytes of memtables and kept blocks together above which the pool keeps no block.
    pub total_bytes_max: usize,
    /// The size of the blocks that are kept, and of the largest chunk that the entries of a memtable share:
    /// rounded down to a power of two, and at least 64 KiB and at most 4 MiB.
    pub block_bytes: usize,
}

impl PoolLimits {
    /// Limits for blocks of 4 MiB, of which `free_bytes_max` are kept.
    pub fn keeping(free_bytes_max: usize) -> Self {
        Self { free_bytes_max, total_bytes_max: usize::MAX, block_bytes: LARGEST_BYTES }
    }
}

/// A bounded store of blocks that dropped memtables returned.
#[derive(Debug)]
pub struct Pool {
    free: Mutex<Vec<MemoryBlock>>,
    /// The bytes that arenas have taken. Models of the interleavings leave it out, because it only decides
    /// which blocks are kept.
    taken_bytes: AtomicUsize,
    block_bytes: usize,
    blocks_max: usize,
    total_bytes_max: usize,
}

impl std::fmt::Debug for MemoryBlock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MemoryBlock({} bytes)", self.len())
    }
}

impl Pool {
    /// Creates a pool that keeps at most `bytes_max` bytes for reuse.
    pub fn new(bytes_max: usize) -> Arc<Self> {
        Self::with_limits(PoolLimits::keeping(bytes_max))
    }

    /// Creates a pool with these limits.
    pub fn with_limits(limits: PoolLimits) -> Arc<Self> {
        let PoolLimits { free_bytes_max, total_bytes_max, block_bytes } = limits;
        let block_bytes = 1 << block_bytes.clamp(BLOCK_BYTES_MIN, LARGEST_BYTES).ilog2();
        Arc::new(Self {
            free: Mutex::new(Vec::new()),
            taken_bytes: AtomicUsize::new(0),
            block_bytes,
            blocks_max: free_bytes_max / block_bytes,
            total_bytes_max,
        })
    }

    /// Returns the bytes of the blocks in the pool.
    pub fn free_bytes(&self) -> usize {
        lock(&self.free).len() * self.block_bytes
    }

    /// Returns the size of the blocks that are kept.
    pub(crate) fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// Returns all blocks in the pool to the system.
    pub fn clear(&self) {
        lock(&self.free).clear();
    }

    /// Returns whether [`Pool::prepare`] would put a block into the pool.
    pub fn needs_block(&self) -> bool {
        let free = lock(&self.free).len();
        free < BLOCKS_PREPARED && self.has_room(free)
    }

    /// Puts a block with touched pages into the pool if the pool has few. Call it on a background
    /// thread, so that writers do not wait for page faults.
    pub fn prepare(&self) {
        if self.needs_block() {
            self.keep(MemoryBlock::allocate(self.block_bytes));
        }
    }

    /// Returns true if a pool with `free` blocks may keep another one.
    fn has_room(&self, free: usize) -> bool {
        // Relaxed: no other memory access depends on the count.
        let taken = self.taken_bytes.load(Ordering::Relaxed);
        let total = taken.saturating_add((free + 1) * self.block_bytes);
        free < self.blocks_max && total <= self.total_bytes_max
    }

    pub(crate) fn take(&self, bytes: usize) -> MemoryBlock {
        let kept = if bytes == self.block_bytes { lock(&self.free).pop() } else { None };
        let block = kept.unwrap_or_else(|| MemoryBlock::allocate(bytes));
        self.taken_bytes.fetch_add(block.len(), Ordering::Relaxed);
        block
    }

    /// Takes back a block, and keeps it for reuse if the limits allow.
    pub(crate) fn give(&self, block: MemoryBlock) {
        self.taken_bytes.fetch_sub(block.len(), Ordering::Relaxed);
        if block.len() == self.block_bytes && self.has_room(lock(&self.free).len()) {
            self.keep(block);
        }
    }

    /// Keeps a block of the usual size. A block that could have huge pages but has small ones is replaced by
    /// a prepared one, so the caller is a background thread.
    fn keep(&self, mut block: MemoryBlock) {
        if !block.is_prepared && self.block_bytes >= HUGE_PAGE_BYTES {
            drop(block);
            block = MemoryBlock::allocate(self.block_bytes);
        }
        block.prepare();
        let mut free = lock(&self.free);
        if self.has_room(free.len()) {
            free.push(block);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn large_blocks_are_kept_up_to_the_bound() {
        let pool = Pool::new(2 * LARGEST_BYTES);
        let mut blocks: Vec<MemoryBlock> = (0..3).map(|_| pool.take(LARGEST_BYTES)).collect();
        blocks.iter_mut().for_each(MemoryBlock::prepare);
        let first = blocks[0].start();
        blocks.into_iter().for_each(|block| pool.give(block));
        pool.give(pool.take(100));
        assert_eq!(pool.free_bytes(), 2 * LARGEST_BYTES);
        let taken = pool.take(LARGEST_BYTES);
        assert_eq!(pool.take(LARGEST_BYTES).start(), first);
        pool.give(taken);
        pool.give({
            let mut fresh = pool.take(LARGEST_BYTES);
            fresh.is_prepared = false;
            fresh
        });
        assert!(pool.take(LARGEST_BYTES).is_prepared, "a block with small pages is replaced");
        pool.clear();
        assert_eq!(pool.free_bytes(), 0);
        // Repeated calls prepare a few blocks.
        (0..3).for_each(|_| pool.prepare());
        assert_eq!(pool.free_bytes(), BLOCKS_PREPARED * LARGEST_BYTES);
        let none = Pool::new(0);
        none.prepare();
        assert_eq!(none.free_bytes(), 0);
    }

    #[test]
    fn memtables_and_kept_blocks_are_bounded_together() {
        let block = 128 << 10;
        let limits = PoolLimits {
            free_bytes_max: 10 * block,
            total_bytes_max: 4 * block,
            // Rounded down.
            block_bytes: block + 1000,
        };
        let pool = Pool::with_limits(limits);
        let mut blocks: Vec<MemoryBlock> = (0..3).map(|_| pool.take(block)).collect();
        let large = pool.take(block + 8);
        // Four and more are in use.
        assert!(!pool.needs_block());
        pool.give(large);
        pool.prepare();
        pool.prepare();
        assert_eq!(pool.free_bytes(), block);
        let replaced = blocks.pop().unwrap();
        pool.give(replaced);
        assert_eq!(pool.free_bytes(), 2 * block);
        blocks.into_iter().for_each(|block| pool.give(block));
        assert_eq!(pool.free_bytes(), 4 * block);
    }
}
