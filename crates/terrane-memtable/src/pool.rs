//! Memory of dropped memtables, kept for the next ones.
//!
//! A write buffer that is filled, flushed and dropped again and again would take fresh pages from
//! the system each time, and each page costs a fault when it is first written: about as much time
//! as copying the entries themselves. So large blocks go back to a pool that all memtables of a
//! database share. What the pool holds is counted, and bounded.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::sync::{Mutex, lock};

/// The size of the blocks that are kept, and the largest usual chunk of an arena.
pub(crate) const LARGEST_BYTES: usize = 4 << 20;

/// Blocks of this size and more are aligned for, and ask for, transparent huge pages: a search
/// touches a few random lines of a large structure, and with small pages each of them also misses
/// the TLB.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Memory taken from the allocator, uninitialised or holding what was there before.
pub(crate) struct MemoryBlock {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a block owns its memory, and nothing in it is tied to a thread.
unsafe impl Send for MemoryBlock {}

impl MemoryBlock {
    pub(crate) fn allocate(bytes: usize) -> Self {
        let align = if bytes >= HUGE_PAGE_BYTES { HUGE_PAGE_BYTES } else { crate::arena::ALIGN };
        // Sizes are at most a value and a key, far below where a layout is refused.
        let layout = Layout::from_size_align(bytes.max(align.min(8)), align)
            .unwrap_or_else(|_| handle_alloc_error(Layout::new::<u8>()));
        // SAFETY: the layout is not of size zero.
        let start = unsafe { alloc(layout) };
        let start = NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout));
        if align == HUGE_PAGE_BYTES {
            ask_for_huge_pages(start, bytes);
        }
        Self { start, layout }
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(crate) fn len(&self) -> usize {
        self.layout.size()
    }

    /// Writes to every page, so that the system gives them now.
    pub(crate) fn touch(&mut self) {
        const PAGE_BYTES: usize = 4 << 10;
        for offset in (0..self.len()).step_by(PAGE_BYTES) {
            // SAFETY: the offset lies within the block.
            let byte = unsafe { self.start.add(offset) };
            // Volatile, or it might be left out: nobody reads it.
            // SAFETY: the memory is owned by this block, and handed out to nobody yet.
            unsafe { byte.write_volatile(0) };
        }
    }
}

impl Drop for MemoryBlock {
    fn drop(&mut self) {
        // SAFETY: allocated in `allocate` with this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

#[cfg(all(target_os = "linux", not(miri), not(loom)))]
fn ask_for_huge_pages(start: NonNull<u8>, bytes: usize) {
    use rustix::mm::{Advice, madvise};
    let whole = bytes - bytes % HUGE_PAGE_BYTES;
    // Advice may be refused; then small pages do.
    // SAFETY: the range was just allocated, and the advice does not change its contents.
    let _ = unsafe { madvise(start.as_ptr().cast(), whole, Advice::LinuxHugepage) };
}

#[cfg(not(all(target_os = "linux", not(miri), not(loom))))]
fn ask_for_huge_pages(_start: NonNull<u8>, _bytes: usize) {}

/// Blocks that memtables left behind.
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
    /// A pool that keeps at most `bytes_max` bytes for reuse.
    pub fn new(bytes_max: usize) -> Arc<Self> {
        let blocks_max = bytes_max / LARGEST_BYTES;
        Arc::new(Self { free: Mutex::new(Vec::new()), blocks_max })
    }

    /// Bytes that are kept and not in use.
    pub fn free_bytes(&self) -> usize {
        lock(&self.free).len() * LARGEST_BYTES
    }

    /// Gives everything that is kept back to the system.
    pub fn clear(&self) {
        lock(&self.free).clear();
    }

    /// Has a block ready for whoever asks next, its pages there already. To be called beside those
    /// who write, whom a fresh page would hold up.
    pub fn prepare(&self) {
        if self.blocks_max > 0 && lock(&self.free).is_empty() {
            let mut block = MemoryBlock::allocate(LARGEST_BYTES);
            block.touch();
            self.give(block);
        }
    }

    pub(crate) fn take(&self, bytes: usize) -> MemoryBlock {
        let kept = if bytes == LARGEST_BYTES { lock(&self.free).pop() } else { None };
        kept.unwrap_or_else(|| MemoryBlock::allocate(bytes))
    }

    pub(crate) fn give(&self, block: MemoryBlock) {
        if block.len() == LARGEST_BYTES {
            let mut free = lock(&self.free);
            if free.len() < self.blocks_max {
                free.push(block);
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn large_blocks_are_kept_up_to_the_bound() {
        let pool = Pool::new(2 * LARGEST_BYTES);
        let blocks: Vec<MemoryBlock> = (0..3).map(|_| pool.take(LARGEST_BYTES)).collect();
        let first = blocks[0].start();
        blocks.into_iter().for_each(|block| pool.give(block));
        pool.give(MemoryBlock::allocate(100));
        assert_eq!(pool.free_bytes(), 2 * LARGEST_BYTES);
        pool.take(LARGEST_BYTES);
        assert_eq!(pool.take(LARGEST_BYTES).start(), first);
        pool.give(MemoryBlock::allocate(LARGEST_BYTES));
        pool.clear();
        assert_eq!(pool.free_bytes(), 0);
        // One is ready, however often it is asked for.
        pool.prepare();
        pool.prepare();
        assert_eq!(pool.free_bytes(), LARGEST_BYTES);
        let none = Pool::new(0);
        none.prepare();
        assert_eq!(none.free_bytes(), 0);
    }
}
