//! Memory from the operating system, in whole pages.
//!
//! An allocator keeps freed memory for later allocations. What it keeps of large and short-lived
//! allocations depends on its other allocations: a small one above a freed large one keeps all memory
//! below from the system. Memory that a budget bounds comes from here, because it returns to the system
//! as soon as it is dropped.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The sum of the requested lengths of all pages.
static TOTAL_BYTES: AtomicUsize = AtomicUsize::new(0);

/// The size of a huge page on x86-64.
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// The size of the largest pages among the supported systems. Mappings are multiples of it; what is
/// beyond the requested length is never touched.
const PAGE_BYTES_MAX: usize = 64 << 10;

/// Zeroed pages, which are unmapped when this value is dropped.
///
/// Invariant 1: `start` is a mapping of `bytes` bytes, whole pages, which only this value owns.
#[derive(Debug)]
pub struct Pages {
    start: NonNull<u8>,
    bytes: usize,
    /// The length that was requested.
    requested: usize,
}

// SAFETY: the value owns its pages (invariant 1), which are not tied to a thread, and accesses none of
// their contents itself.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// Maps at least `bytes` bytes, aligned to a huge page if they are at least one. Returns `None` if the
    /// system has no memory, and where this crate uses the allocator alone: outside Linux and under Miri.
    pub fn map(bytes: usize) -> Option<Self> {
        let requested = bytes;
        let bytes = requested.checked_next_multiple_of(PAGE_BYTES_MAX)?;
        let start = system::map(bytes)?;
        // Relaxed: no other memory access depends on the sum.
        TOTAL_BYTES.fetch_add(requested, Ordering::Relaxed);
        Some(Self { start, bytes, requested })
    }

    /// Returns the bytes that were requested for all pages of this process that exist. An allocator that
    /// counts does not see them.
    pub fn total_bytes() -> usize {
        TOTAL_BYTES.load(Ordering::Relaxed)
    }

    /// Returns the address of the first page.
    #[inline]
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Requests huge pages for what is not touched yet.
    pub fn request_huge(&self) {
        system::request_huge(self.start, self.bytes);
    }

    /// Makes the system zero all requested pages now, which takes 0.1 to 10 ms for a huge page. An older
    /// kernel provides them on first use.
    pub fn populate(&self) {
        system::populate(self.start, self.requested);
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        TOTAL_BYTES.fetch_sub(self.requested, Ordering::Relaxed);
        system::unmap(self.start, self.bytes);
    }
}

#[cfg(all(target_os = "linux", not(miri), not(loom)))]
mod system {
    use std::ptr::{NonNull, null_mut};

    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

    use super::HUGE_PAGE_BYTES;

    pub(super) fn map(bytes: usize) -> Option<NonNull<u8>> {
        let start = map_anywhere(bytes)?;
        if bytes < HUGE_PAGE_BYTES || start.as_ptr().addr().is_multiple_of(HUGE_PAGE_BYTES) {
            return Some(start);
        }
        // The address is not aligned: maps a huge page more, and unmaps the parts before and after the
        // aligned range.
        unmap(start, bytes);
        let start = map_anywhere(bytes + HUGE_PAGE_BYTES)?;
        let before = start.as_ptr().align_offset(HUGE_PAGE_BYTES);
        // SAFETY: `before` is less than a huge page, which the mapping has beyond `bytes`.
        let aligned = unsafe { start.add(before) };
        // SAFETY: `before + bytes` is at most the length of the mapping.
        let end = unsafe { aligned.add(bytes) };
        for (start, bytes) in [(start, before), (end, HUGE_PAGE_BYTES - before)] {
            if bytes > 0 {
                unmap(start, bytes);
            }
        }
        Some(aligned)
    }

    fn map_anywhere(bytes: usize) -> Option<NonNull<u8>> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new anonymous mapping at an address that the system chooses overlaps no memory.
        let start = unsafe { mmap_anonymous(null_mut(), bytes, protection, flags) };
        NonNull::new(start.ok()?.cast())
    }

    pub(super) fn request_huge(start: NonNull<u8>, bytes: usize) {
        // SAFETY: the range is part of a mapping of this module, and the advice does not change its
        // contents. It is only a hint, so a failure is ignored.
        let _ = unsafe { madvise(start.as_ptr().cast(), bytes, Advice::LinuxHugepage) };
    }

    pub(super) fn populate(start: NonNull<u8>, bytes: usize) {
        // SAFETY: the range is a mapping of this module, and the advice does not change its contents.
        // A failure is ignored, because pages are then filled on first use.
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

#[cfg(not(all(target_os = "linux", not(miri), not(loom))))]
mod system {
    use std::ptr::NonNull;

    pub(super) fn map(_bytes: usize) -> Option<NonNull<u8>> {
        None
    }

    pub(super) fn request_huge(_start: NonNull<u8>, _bytes: usize) {}

    pub(super) fn populate(_start: NonNull<u8>, _bytes: usize) {}

    pub(super) fn unmap(_start: NonNull<u8>, _bytes: usize) {}
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn pages_are_zeroed_and_aligned_if_large() {
        for bytes in [64 << 10, 1 << 20, HUGE_PAGE_BYTES, (3 << 20) + 8, 5 << 20] {
            let Some(pages) = Pages::map(bytes) else { return };
            pages.request_huge();
            pages.populate();
            if bytes >= HUGE_PAGE_BYTES {
                assert!(pages.start().as_ptr().addr().is_multiple_of(HUGE_PAGE_BYTES));
            }
            // SAFETY: the mapping has this length, and nothing else uses it.
            let all = unsafe { std::slice::from_raw_parts_mut(pages.start().as_ptr(), bytes) };
            assert!(all.iter().all(|byte| *byte == 0));
            all.fill(7);
        }
    }
}
