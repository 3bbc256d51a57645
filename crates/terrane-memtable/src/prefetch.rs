//! Asks for memory before it is needed.

pub(crate) const LINE_BYTES: usize = 64;

/// Asks for the first `count` cache lines of `bytes`, so that they come at the same time and not
/// one after the other.
#[inline]
pub fn prefetch_lines(bytes: &[u8], count: usize) {
    for line in bytes.chunks(LINE_BYTES).take(count) {
        prefetch(line.as_ptr());
    }
}

/// Asks for the cache line at `address`. Any address may be asked for; it is only a hint.
#[inline(always)]
pub(crate) fn prefetch(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of x86-64, and a prefetch reads nothing that the program could see.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri), not(loom))))]
    let _ = address;
}
