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
    layout: Layout,
    /// The pages, if the memory does not come from the allocator.
    pages: Option<Pages>,
}

// SAFETY: `Memory` is only an address and accesses no bytes itself; its users synchronize accesses.
unsafe impl Send for Memory {}

impl Memory {
    /// Takes memory with this alignment from the allocator.
    pub(super) fn small(bytes: usize, align: usize) -> Self {
        Self::allocate(layout(bytes, align))
    }

    /// Takes memory for a frame outside of a pool from the allocator.
    pub(super) fn standalone(bytes: usize) -> Self {
        Self::small(bytes, SMALL_ALIGN)
    }

    fn allocate(layout: Layout) -> Self {
        // SAFETY: the size is not zero, because `layout` rounds it up to at least one line.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        Self { start, layout, pages: None }
    }

    /// Takes whole pages from the operating system: a huge page if `bytes` is the size of one.
    pub(super) fn pages(bytes: usize) -> Self {
        let Some(pages) = Pages::map(bytes) else { return Self::small(bytes, FRAME_ALIGN) };
        if bytes == HUGE_PAGE_BYTES {
            pages.request_huge();
        }
        let layout = layout(bytes, FRAME_ALIGN);
        Self { start: pages.start(), layout, pages: Some(pages) }
    }

    /// Does the same as [`Memory::pages`], but makes the system zero the pages at once, which takes
    /// 0.1 to 10 ms for a huge page.
    pub(super) fn populated(bytes: usize) -> Self {
        let memory = Self::pages(bytes);
        if let Some(pages) = &memory.pages {
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
        Self { start, layout: layout(bytes, SMALL_ALIGN), pages: None }
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(super) fn bytes(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.pages.is_none() {
            // SAFETY: the memory was allocated with this layout, and is freed once.
            unsafe { dealloc(self.start.as_ptr(), self.layout) };
        }
    }
}

fn layout(bytes: usize, align: usize) -> Layout {
    Layout::from_size_align(bytes.max(FRAME_ALIGN), align)
        .unwrap_or_else(|_| handle_alloc_error(Layout::new::<u8>()))
}
