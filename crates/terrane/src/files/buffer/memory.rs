//! Memory for frames, taken from the operating system and returned to it.
//!
//! Random reads of 256 MiB take 155 ns in huge pages and 210 ns in pages of 4 KiB, so large chunks
//! are aligned to huge pages and ask for them. Small pieces come from the allocator.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use terrane_memtable::Pages;

/// The size of a huge page on x86-64, and the largest chunk.
pub(super) const HUGE_PAGE_BYTES: usize = if cfg!(miri) { 8 << 10 } else { 2 << 20 };

/// The alignment of large frames and of those in chunks.
pub(super) const FRAME_ALIGN: usize = 64;

/// The alignment of other frames, which every allocation has. glibc before 2.38 does not reuse a freed
/// allocation with a larger one: while a database with a budget of 8 MiB was read, 2 MiB of frames made a
/// heap of 9 MiB.
pub(super) const SMALL_ALIGN: usize = 16;

/// Zeroed memory that is freed when this value is dropped.
#[derive(Debug)]
pub(super) struct Memory {
    start: NonNull<u8>,
    bytes: usize,
    source: Source,
}

/// Where memory comes from.
#[derive(Debug)]
enum Source {
    /// The allocator. The start is aligned within the allocation.
    Allocator(NonNull<u8>, Layout),
    System(Pages),
}

// SAFETY: `Memory` is only an address and accesses no bytes itself; its users synchronize accesses.
unsafe impl Send for Memory {}

impl Memory {
    /// Takes memory with this alignment, a multiple of [`SMALL_ALIGN`], from the allocator.
    pub(super) fn small(bytes: usize, align: usize) -> Self {
        let layout = layout(bytes + (align - SMALL_ALIGN));
        // SAFETY: the size is not zero, because `layout` rounds it up to at least one line.
        let allocation = unsafe { alloc_zeroed(layout) };
        let Some(allocation) = NonNull::new(allocation) else { handle_alloc_error(layout) };
        // SAFETY: the allocation is aligned to `SMALL_ALIGN` and longer than `bytes` by the rest, so the
        // aligned start is followed by `bytes` bytes.
        let start = unsafe { allocation.add(allocation.addr().get().wrapping_neg() % align) };
        Self { start, bytes, source: Source::Allocator(allocation, layout) }
    }

    /// Takes memory for a frame outside of a pool from the allocator.
    pub(super) fn standalone(bytes: usize) -> Self {
        Self::small(bytes, SMALL_ALIGN)
    }

    /// Takes whole pages from the operating system: a huge page if `bytes` is the size of one.
    pub(super) fn pages(bytes: usize) -> Self {
        let Some(pages) = Pages::map(bytes) else { return Self::small(bytes, FRAME_ALIGN) };
        if bytes == HUGE_PAGE_BYTES {
            pages.request_huge();
        }
        Self { start: pages.start(), bytes, source: Source::System(pages) }
    }

    /// Does the same as [`Memory::pages`], but makes the system zero the pages at once, which takes
    /// 0.1 to 10 ms for a huge page.
    pub(super) fn populated(bytes: usize) -> Self {
        let memory = Self::pages(bytes);
        if let Source::System(pages) = &memory.source {
            pages.populate();
        }
        memory
    }

    /// Gives up the memory, which [`Memory::of_raw`] takes over again.
    pub(super) fn into_raw(self) -> NonNull<u8> {
        std::mem::ManuallyDrop::new(self).start
    }

    /// Takes over the memory of a frame outside of a pool.
    ///
    /// # Safety
    /// `start` comes from [`Memory::into_raw`] of standalone memory of this size, and is used once.
    pub(super) unsafe fn of_raw(start: NonNull<u8>, bytes: usize) -> Self {
        // Its start is that of the allocation.
        Self { start, bytes, source: Source::Allocator(start, layout(bytes)) }
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Source::Allocator(allocation, layout) = self.source {
            // SAFETY: the memory was allocated with this layout, and is freed once.
            unsafe { dealloc(allocation.as_ptr(), layout) };
        }
    }
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes.max(FRAME_ALIGN), SMALL_ALIGN)
        .unwrap_or_else(|_| handle_alloc_error(Layout::new::<u8>()))
}
