//! Memory for frames, taken from the operating system and returned to it.
//!
//! Random reads of 256 MiB take 155 ns in huge pages and 210 ns in pages of 4 KiB, so large chunks
//! are aligned to huge pages and ask for them. Small pieces come from the allocator.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// The size of a huge page on x86-64, and the largest chunk.
pub(super) const HUGE_PAGE_BYTES: usize = if cfg!(miri) { 8 << 10 } else { 2 << 20 };

/// The alignment of frames. The lower bits of an address are free for other uses.
pub(super) const FRAME_ALIGN: usize = 64;

/// Zeroed memory that is freed when this value is dropped.
#[derive(Debug)]
pub(super) struct Memory {
    start: NonNull<u8>,
    bytes: usize,
    is_mapped: bool,
}

// SAFETY: `Memory` is only an address and accesses no bytes itself; its users synchronize accesses.
unsafe impl Send for Memory {}

impl Memory {
    /// Takes memory from the allocator.
    pub(super) fn small(bytes: usize) -> Self {
        let layout = layout(bytes);
        // SAFETY: the size is not zero, because `layout` rounds it up to at least one line.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        Self { start, bytes, is_mapped: false }
    }

    /// Takes whole pages from the operating system: a huge page if `bytes` is the size of one.
    pub(super) fn pages(bytes: usize) -> Self {
        mapped::map(bytes)
            .map_or_else(|| Self::small(bytes), |start| Self { start, bytes, is_mapped: true })
    }

    /// Does the same as [`Memory::pages`], but makes the system zero the pages at once, which takes
    /// 0.1 to 10 ms for a huge page.
    pub(super) fn populated(bytes: usize) -> Self {
        let memory = Self::pages(bytes);
        if memory.is_mapped {
            mapped::populate(memory.start, memory.bytes);
        }
        memory
    }

    /// Gives up the memory, which [`Memory::of_raw`] takes over again.
    pub(super) fn into_raw(self) -> NonNull<u8> {
        std::mem::ManuallyDrop::new(self).start
    }

    /// Takes over memory from the allocator.
    ///
    /// # Safety
    /// `start` comes from [`Memory::into_raw`] of small memory of this size, and is used once.
    pub(super) unsafe fn of_raw(start: NonNull<u8>, bytes: usize) -> Self {
        Self { start, bytes, is_mapped: false }
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
        if self.is_mapped {
            mapped::unmap(self.start, self.bytes);
        } else {
            // SAFETY: the memory was allocated with this layout, and is freed once.
            unsafe { dealloc(self.start.as_ptr(), layout(self.bytes)) };
        }
    }
}

fn layout(bytes: usize) -> Layout {
    let bytes = bytes.max(FRAME_ALIGN);
    Layout::from_size_align(bytes, FRAME_ALIGN)
        .unwrap_or_else(|_| handle_alloc_error(Layout::new::<u8>()))
}

#[cfg(all(target_os = "linux", not(miri)))]
mod mapped {
    use std::ptr::{NonNull, null_mut};

    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

    use super::HUGE_PAGE_BYTES;

    /// Maps memory, aligned to a huge page if `bytes` is the size of one.
    pub(super) fn map(bytes: usize) -> Option<NonNull<u8>> {
        let is_huge = bytes == HUGE_PAGE_BYTES;
        let start = map_anywhere(bytes)?;
        if !is_huge || start.as_ptr().addr().is_multiple_of(HUGE_PAGE_BYTES) {
            if is_huge {
                request_huge_page(start, bytes);
            }
            return Some(start);
        }
        // The address is not aligned: maps twice as much, and unmaps the parts before and after the
        // aligned range.
        unmap(start, bytes);
        let start = map_anywhere(2 * bytes)?;
        let before = start.as_ptr().align_offset(HUGE_PAGE_BYTES);
        // SAFETY: `before` is less than a huge page, and the mapping is two huge pages long.
        let aligned = unsafe { start.add(before) };
        // SAFETY: `before + bytes` is at most the length of the mapping.
        let end = unsafe { aligned.add(bytes) };
        for (start, bytes) in [(start, before), (end, bytes - before)] {
            if bytes > 0 {
                unmap(start, bytes);
            }
        }
        request_huge_page(aligned, bytes);
        Some(aligned)
    }

    fn map_anywhere(bytes: usize) -> Option<NonNull<u8>> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new anonymous mapping at an address that the system chooses overlaps no memory.
        let start = unsafe { mmap_anonymous(null_mut(), bytes, protection, flags) };
        NonNull::new(start.ok()?.cast())
    }

    fn request_huge_page(start: NonNull<u8>, bytes: usize) {
        // SAFETY: the range is part of a mapping of this module, and the advice does not change its
        // contents. It is only a hint, so a failure is ignored.
        let _ = unsafe { madvise(start.as_ptr().cast(), bytes, Advice::LinuxHugepage) };
    }

    pub(super) fn populate(start: NonNull<u8>, bytes: usize) {
        // SAFETY: the range is a mapping of this module, and the advice does not change its contents.
        // An older kernel does not know the advice; pages are then filled on first use.
        let _ = unsafe { madvise(start.as_ptr().cast(), bytes, Advice::LinuxPopulateWrite) };
    }

    pub(super) fn unmap(start: NonNull<u8>, bytes: usize) {
        // SAFETY: this module mapped the range, and nothing uses it, because its owner is being
        // dropped or has not been created yet.
        let unmapped = unsafe { munmap(start.as_ptr().cast(), bytes) };
        if unmapped.is_err() {
            // A hole in a larger mapping splits it, and the system limits the number of mappings. If
            // that fails, the addresses stay reserved, but their memory is released.
            // SAFETY: as above.
            let _ = unsafe { madvise(start.as_ptr().cast(), bytes, Advice::LinuxDontNeed) };
        }
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod mapped {
    use std::ptr::NonNull;

    pub(super) fn map(_bytes: usize) -> Option<NonNull<u8>> {
        None
    }

    pub(super) fn populate(_start: NonNull<u8>, _bytes: usize) {}

    pub(super) fn unmap(_start: NonNull<u8>, _bytes: usize) {}
}
