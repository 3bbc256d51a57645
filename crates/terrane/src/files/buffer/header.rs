//! Frames: a header and the bytes of a block.
//!
//! ```text
//! +------+-----+----------+-------+-------+------+-------+
//! | refs | len | capacity | chunk | place | pool | bytes |
//! | u32  | u32 | u32      | u32   | u32   | ptr  |       |
//! +------+-----+----------+-------+-------+------+-------+
//! ```
//!
//! 1. The header and `capacity` initialized bytes after it belong to one frame until its reference
//!    count is 0. A pointer to a frame has the provenance of the whole frame.
//! 2. Only a [`BlockMut`](super::frame::BlockMut) changes `len` and the bytes, and it is the only reference.
//!    All other fields except the count are written when the frame is created, and never change.
//! 3. `pool` is a counted reference to the pool, so the pool outlives its frames.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use super::memory::{FRAME_ALIGN, SMALL_ALIGN};

/// The header of a frame. Its size is the same on 32-bit systems.
#[derive(Debug)]
#[repr(C, align(16))]
pub(super) struct Header {
    refs: AtomicU32,
    pub(super) len: u32,
    /// The number of bytes after the header.
    pub(super) capacity: u32,
    /// The number of the frame's chunk, or [`STANDALONE`].
    chunk: u32,
    /// The place of the frame in its chunk.
    place: u32,
    /// From `Arc::into_raw`, with the type erased.
    pub(super) pool: *const (),
}

/// The chunk number of a frame without a chunk, which is never in a slot.
pub(super) const STANDALONE: u32 = u32::MAX;

pub(super) const HEADER_BYTES: usize = size_of::<Header>();

const _: () = assert!(HEADER_BYTES == FRAME_ALIGN / 2 && align_of::<Header>() == SMALL_ALIGN);

/// The address of a frame.
pub(super) type FramePtr = NonNull<Header>;

/// Writes the header of a frame with one reference. The frame owns the reference `pool`.
///
/// # Safety
/// `frame` is the start of unused memory of at least `HEADER_BYTES + capacity` initialized bytes,
/// aligned for a header.
pub(super) unsafe fn create(
    frame: FramePtr,
    capacity: u32,
    (chunk, place): (u32, u32),
    pool: *const (),
) -> FramePtr {
    let header = Header { refs: AtomicU32::new(1), len: 0, capacity, chunk, place, pool };
    // SAFETY: the caller guarantees that the memory is large enough, aligned and unused.
    unsafe { frame.write(header) };
    frame
}

/// Returns the header of a frame.
///
/// # Safety
/// The frame exists as long as the returned reference is used.
#[inline]
pub(super) unsafe fn header<'a>(frame: FramePtr) -> &'a Header {
    // SAFETY: the caller guarantees that the frame exists, so its header is initialized. Only the atomic
    // count is written while it is shared (2).
    unsafe { frame.as_ref() }
}

/// Returns the chunk of a frame and its place there.
///
/// # Safety
/// The frame exists.
pub(super) unsafe fn place_of(frame: FramePtr) -> (u32, u32) {
    // SAFETY: the caller guarantees that the frame exists.
    let header = unsafe { header(frame) };
    (header.chunk, header.place)
}

/// Returns the size of a frame.
///
/// # Safety
/// The frame exists.
pub(super) unsafe fn size_of_frame(frame: FramePtr) -> usize {
    // SAFETY: the caller guarantees that the frame exists.
    HEADER_BYTES + unsafe { header(frame) }.capacity as usize
}

/// Takes one more reference.
///
/// # Safety
/// The frame exists.
#[inline]
pub(super) unsafe fn retain(frame: FramePtr) {
    // SAFETY: the caller guarantees that the frame exists.
    let header = unsafe { header(frame) };
    // Relaxed: the caller got the frame from another reference or from a slot.
    if header.refs.fetch_add(1, Ordering::Relaxed) > u32::MAX / 2 {
        // Only a program that leaks references gets here.
        std::process::abort();
    }
}

/// Drops a reference, and returns true if it was the last one. The caller then frees the frame.
///
/// # Safety
/// The caller has a reference, and does not use it again.
#[inline]
pub(super) unsafe fn release(frame: FramePtr) -> bool {
    // SAFETY: the caller's reference keeps the frame alive.
    let header = unsafe { header(frame) };
    // Release and acquire: all uses of the frame happen before it is freed.
    if header.refs.fetch_sub(1, Ordering::Release) > 1 {
        return false;
    }
    fence(Ordering::Acquire);
    true
}

/// Returns the address of the bytes of a frame.
#[inline]
pub(super) fn bytes_of(frame: FramePtr) -> NonNull<u8> {
    // SAFETY: the bytes follow the header within the same allocation (1).
    unsafe { frame.cast::<u8>().add(HEADER_BYTES) }
}

/// Returns the bytes of a frame.
///
/// # Safety
/// The frame exists as long as the returned slice is used, and no [`BlockMut`] of it exists.
#[inline]
pub(super) unsafe fn bytes<'a>(frame: FramePtr) -> &'a [u8] {
    // SAFETY: the caller guarantees that the frame exists.
    let len = unsafe { header(frame) }.len as usize;
    // SAFETY: `len <= capacity` bytes are initialized (1), and only a [`BlockMut`] could change them (2).
    unsafe { std::slice::from_raw_parts(bytes_of(frame).as_ptr(), len) }
}
