//! References to frames.
//!
//! The invariants are those of [`header`](super::header).

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::epoch::Guard;
use super::header::{FramePtr, bytes, bytes_of, header, release, retain};
use super::pool::Shared;

/// Ends the life of a frame whose last reference was dropped, and returns its reference to the pool.
///
/// # Safety
/// [`release`] has returned true for the frame, and this is called once.
pub(super) unsafe fn end(frame: FramePtr) -> Arc<Shared> {
    // SAFETY: nothing else refers to the frame, and its memory is not reused yet.
    let header = unsafe { header(frame) };
    // SAFETY: the pointer comes from `Arc::into_raw` in `State::create`, and is used once, here.
    unsafe { Arc::from_raw(header.pool.cast()) }
}

/// Returns a reference to the pool of a frame.
///
/// # Safety
/// The frame exists.
pub(super) unsafe fn pool_of(frame: FramePtr) -> Arc<Shared> {
    // SAFETY: the caller guarantees that the frame exists.
    let pool: *const Shared = unsafe { header(frame) }.pool.cast();
    // SAFETY: the pointer comes from `Arc::into_raw`, and the frame has a reference (3).
    unsafe { Arc::increment_strong_count(pool) };
    // SAFETY: the reference was just counted.
    unsafe { Arc::from_raw(pool) }
}

/// Copies the bytes of a frame to another one of the same size.
///
/// # Safety
/// The bytes of `from` do not change, and the caller has the only reference to `to`.
pub(super) unsafe fn copy(from: FramePtr, to: FramePtr) {
    // SAFETY: the caller guarantees that the frame exists and does not change.
    let bytes = unsafe { bytes(from) };
    // SAFETY: the caller has the only reference. It is not dropped here.
    let mut block = std::mem::ManuallyDrop::new(unsafe { BlockMut::new(to, bytes.len()) });
    block.copy_from_slice(bytes);
}

/// A block that is being filled: the only reference to its frame.
pub(crate) struct BlockMut(FramePtr);

/// A counted reference to a block, which stays in memory until the last reference is dropped.
pub(crate) struct BlockRef(FramePtr);

/// A block in memory that was found in a slot. It cannot outlive the reader's guard.
#[derive(Clone, Copy)]
pub(crate) struct BlockView<'a>(FramePtr, PhantomData<&'a ()>);

// SAFETY: a `BlockMut` is the only reference to a frame, and frames belong to no thread.
unsafe impl Send for BlockMut {}
// SAFETY: the bytes of a shared frame do not change (2), and its count is atomic.
unsafe impl Send for BlockRef {}
// SAFETY: see above.
unsafe impl Sync for BlockRef {}

impl BlockMut {
    /// Takes over a new frame.
    ///
    /// # Safety
    /// The caller has the only reference and does not use it again.
    pub(super) unsafe fn new(mut frame: FramePtr, len: usize) -> Self {
        // SAFETY: the caller has the only reference.
        let header = unsafe { frame.as_mut() };
        header.len = header.capacity.min(u32::try_from(len).unwrap_or(u32::MAX));
        Self(frame)
    }

    /// Shortens the block.
    pub(crate) fn truncate(&mut self, len: usize) {
        // SAFETY: this is the only reference.
        let header = unsafe { self.0.as_mut() };
        header.len = header.len.min(u32::try_from(len).unwrap_or(u32::MAX));
    }

    /// Makes the block immutable.
    pub(crate) fn freeze(self) -> BlockRef {
        let block = BlockRef(self.0);
        // The reference moves to `block`.
        let _ = std::mem::ManuallyDrop::new(self);
        block
    }
}

impl Deref for BlockMut {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `self` keeps the frame alive, and `&self` excludes changes.
        unsafe { bytes(self.0) }
    }
}

impl DerefMut for BlockMut {
    fn deref_mut(&mut self) -> &mut [u8] {
        let len = self.len();
        // SAFETY: `len <= capacity` bytes are initialized (1), and this is the only reference.
        unsafe { std::slice::from_raw_parts_mut(bytes_of(self.0).as_ptr(), len) }
    }
}

impl Drop for BlockMut {
    fn drop(&mut self) {
        drop(BlockRef(self.0));
    }
}

impl BlockRef {
    /// Takes over a counted reference.
    ///
    /// # Safety
    /// The caller has a reference and does not use it again.
    pub(super) unsafe fn from_counted(frame: FramePtr) -> Self {
        Self(frame)
    }

    pub(super) fn frame(&self) -> FramePtr {
        self.0
    }

    /// Returns true if both are references to the same block.
    #[inline]
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    /// Returns a view that lives as long as this reference is borrowed.
    #[inline]
    pub(crate) fn view(&self) -> BlockView<'_> {
        BlockView(self.0, PhantomData)
    }

    /// Returns `len` bytes at `start`, or an empty slice if the block ends before that.
    #[inline]
    pub(crate) fn part(&self, start: u32, len: u32) -> &[u8] {
        self.get(start as usize..start as usize + len as usize).unwrap_or_default()
    }
}

impl Clone for BlockRef {
    #[inline]
    fn clone(&self) -> Self {
        self.view().share()
    }
}

impl Drop for BlockRef {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `self` owns this reference, and does not use it again.
        if unsafe { release(self.0) } {
            free(self.0);
        }
    }
}

/// Frees a frame whose last reference was dropped.
#[cold]
fn free(frame: FramePtr) {
    // SAFETY: the last reference was dropped just now.
    let pool = unsafe { end(frame) };
    pool.free(frame);
}

impl<'a> BlockView<'a> {
    /// Creates a view of a frame that was found in a slot.
    ///
    /// # Safety
    /// The frame exists as long as `'a`: the slot was loaded while the guard existed.
    #[inline]
    pub(super) unsafe fn new(frame: FramePtr, _guard: &'a Guard) -> Self {
        Self(frame, PhantomData)
    }

    /// Returns the bytes.
    #[inline]
    pub(crate) fn bytes(self) -> &'a [u8] {
        // SAFETY: the frame exists as long as `'a`, and a frame in a slot does not change.
        unsafe { bytes(self.0) }
    }

    /// Returns a counted reference.
    #[inline]
    pub(crate) fn share(self) -> BlockRef {
        // SAFETY: the frame exists as long as `'a`.
        unsafe { retain(self.0) };
        BlockRef(self.0)
    }
}

impl Deref for BlockView<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.bytes()
    }
}

impl Deref for BlockRef {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.view().bytes()
    }
}

impl fmt::Debug for BlockRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlockRef({} bytes)", self.len())
    }
}
