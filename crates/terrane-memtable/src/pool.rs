//! Memory of dropped memtables, kept for the next ones.
//!
//! A write buffer that is filled, flushed and dropped again and again would take fresh pages from
//! the system each time, and each page costs a fault when it is first written: about as much time
//! as copying the entries. So large blocks return to a pool that all memtables of a database share.
//! The size of the pool is counted and bounded.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::sync::{Mutex, lock};

/// Alignment of blocks, and of all allocations of an arena.
pub(crate) const ALIGN: usize = 8;

/// The size of the blocks that are kept, and of the largest chunk that entries of an arena share.
pub(crate) const LARGEST_BYTES: usize = 4 << 20;

/// Blocks of at least [`LARGEST_BYTES`] are aligned for transparent huge pages of this size, and
/// prepared blocks request them: a search touches a few random lines of a large structure, and with
/// small pages each of them also misses the TLB. A block that is not prepared has small pages, because
/// its first writer takes the page faults, and a fault for a huge page may take milliseconds.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// How many blocks are prepared in advance.
const BLOCKS_PREPARED: usize = 2;

/// Memory from the allocator, uninitialised or with the contents of an earlier use.
///
/// Invariant 1: `start` is an allocation of `layout`, which only this block owns.
pub(crate) struct MemoryBlock {
    start: NonNull<u8>,
    layout: Layout,
    /// Its pages are touched, and huge if the system has any.
    is_prepared: bool,
}

// SAFETY: a block owns its memory (invariant 1), which is not tied to a thread.
unsafe impl Send for MemoryBlock {}

impl MemoryBlock {
    pub(crate) fn allocate(bytes: usize) -> Self {
        let align = if bytes >= LARGEST_BYTES { HUGE_PAGE_BYTES } else { ALIGN };
        // Sizes are at most a key and a value, far below the limit of a layout.
        let layout = Layout::from_size_align(bytes.max(ALIGN), align)
            .unwrap_or_else(|_| handle_alloc_error(Layout::new::<u8>()));
        // SAFETY: the size of the layout is at least 8.
        let start = unsafe { alloc(layout) };
        let start = NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout));
        if bytes > LARGEST_BYTES {
            // Such a block holds one large value, which is copied at once, and is not kept for reuse.
            advise_huge_pages(start, bytes);
        }
        Self { start, layout, is_prepared: false }
    }

    /// Makes the system provide the pages of the block now.
    pub(crate) fn prepare(&mut self) {
        if self.is_prepared {
            return;
        }
        if self.len() >= LARGEST_BYTES {
            advise_huge_pages(self.start, self.len());
        }
        self.touch();
        self.is_prepared = true;
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(crate) fn len(&self) -> usize {
        self.layout.size()
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
        // SAFETY: `start` is an allocation of this layout, which only this block owns (invariant
        // 1).
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

#[cfg(all(target_os = "linux", not(miri), not(loom)))]
fn advise_huge_pages(start: NonNull<u8>, bytes: usize) {
    use rustix::mm::{Advice, madvise};
    let whole = bytes - bytes % HUGE_PAGE_BYTES;
    // The system may refuse the advice and use small pages. SAFETY: the range is within an
    // allocation that the caller owns, and the advice does not change its contents.
    let _ = unsafe { madvise(start.as_ptr().cast(), whole, Advice::LinuxHugepage) };
}

#[cfg(not(all(target_os = "linux", not(miri), not(loom))))]
fn advise_huge_pages(_start: NonNull<u8>, _bytes: usize) {}

/// A bounded store of blocks that dropped memtables returned.
#[derive(Debug)]
pub struct Pool {
    free: Mutex<Vec<MemoryBlock>>,
    blocks_max: usize,
}

impl std::fmt::Debug for MemoryBlock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MemoryBlock({} bytes)", self.len())
    }
}

impl Pool {
    /// Creates a pool that keeps at most `bytes_max` bytes for reuse.
    pub fn new(bytes_max: usize) -> Arc<Self> {
        let blocks_max = bytes_max / LARGEST_BYTES;
        Arc::new(Self { free: Mutex::new(Vec::new()), blocks_max })
    }

    /// Returns the bytes of the blocks in the pool.
    pub fn free_bytes(&self) -> usize {
        lock(&self.free).len() * LARGEST_BYTES
    }

    /// Returns all blocks in the pool to the system.
    pub fn clear(&self) {
        lock(&self.free).clear();
    }

    /// Returns whether [`Pool::prepare`] would put a block into the pool.
    pub fn needs_block(&self) -> bool {
        lock(&self.free).len() < BLOCKS_PREPARED.min(self.blocks_max)
    }

    /// Puts a block with touched pages into the pool if the pool has few. Call it on a background
    /// thread, so that writers do not wait for page faults.
    pub fn prepare(&self) {
        if self.needs_block() {
            self.give(MemoryBlock::allocate(LARGEST_BYTES));
        }
    }

    pub(crate) fn take(&self, bytes: usize) -> MemoryBlock {
        let kept = if bytes == LARGEST_BYTES { lock(&self.free).pop() } else { None };
        kept.unwrap_or_else(|| MemoryBlock::allocate(bytes))
    }

    /// Keeps a block for reuse, if the pool has room for it. A block with small pages is replaced by
    /// a prepared one, so the caller is a background thread.
    pub(crate) fn give(&self, mut block: MemoryBlock) {
        if block.len() != LARGEST_BYTES || lock(&self.free).len() >= self.blocks_max {
            return;
        }
        if !block.is_prepared {
            drop(block);
            block = MemoryBlock::allocate(LARGEST_BYTES);
            block.prepare();
        }
        let mut free = lock(&self.free);
        if free.len() < self.blocks_max {
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
        pool.give(MemoryBlock::allocate(100));
        assert_eq!(pool.free_bytes(), 2 * LARGEST_BYTES);
        pool.take(LARGEST_BYTES);
        assert_eq!(pool.take(LARGEST_BYTES).start(), first);
        pool.give(MemoryBlock::allocate(LARGEST_BYTES));
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
}
