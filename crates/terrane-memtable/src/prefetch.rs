//! Prefetching of memory.

pub(crate) const LINE_BYTES: usize = 64;

/// Prefetches the first `count` cache lines of `bytes`, so that they arrive in parallel.
#[inline]
pub fn prefetch_lines(bytes: &[u8], count: usize) {
    for line in bytes.chunks(LINE_BYTES).take(count) {
        prefetch(line.as_ptr());
    }
}

/// Prefetches the cache line at `address`. Any address is allowed; it is only a hint.
#[inline(always)]
pub fn prefetch_line(address: *const u8) {
    prefetch(address);
}

/// Prefetches the cache line at `address`. Any address is allowed; it is only a hint.
#[inline(always)]
pub(crate) fn prefetch(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: x86-64 includes SSE, and a prefetch of any address has no effect that the program
        // can observe.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri), not(loom))))]
    let _ = address;
}
