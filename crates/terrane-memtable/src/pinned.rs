//! A value in a memtable that keeps the memtable alive.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::memtable::Memtable;
use crate::skiplist::{Pin, Versions};

/// The bytes of a value in a memtable, kept alive without being copied.
///
/// Invariants:
/// 1. The bytes lie at `base + offset` in the memory of `owner`, which is not moved or freed while
///    `owner` exists.
/// 2. The bytes are not written while this value exists: `base` points to the versions of a pinned
///    node if `offset` is not 0, and otherwise the node is never refilled (crate rule 2).
pub struct PinnedValue {
    /// The start of the bytes, or the versions of the pinned node, which lie before them.
    base: NonNull<u8>,
    /// The distance from `base` to the bytes; 0 without a pin.
    offset: u32,
    len: u32,
    /// Keeps the bytes alive.
    owner: Arc<Memtable>,
}

// SAFETY: the bytes are only read (invariant 2), the pin count is atomic, and the memtable is
// `Send` and `Sync`.
unsafe impl Send for PinnedValue {}
// SAFETY: the bytes are only read (invariant 2), the pin count is atomic, and the memtable is
// `Send` and `Sync`.
unsafe impl Sync for PinnedValue {}

impl PinnedValue {
    /// Borrows a value that is not refilled while `pin` exists.
    ///
    /// # Safety
    /// `value` lies in the memory of `owner`: in the pinned node or, if `pin` is [`Pin::NONE`], in
    /// a node that is never refilled.
    pub(crate) unsafe fn with_pin(owner: &Arc<Memtable>, value: &[u8], pin: Pin) -> Self {
        let start = NonNull::from(value).cast::<u8>();
        let (base, offset) = match pin.into_raw() {
            // Only the rest of the versions and a key lie between them, so the distance fits.
            Some(versions) => {
                let base = versions.cast::<u8>();
                (base, (start.addr().get() - base.addr().get()) as u32)
            }
            None => (start, 0),
        };
        // Values are at most 1 GiB long.
        Self { base, offset, len: value.len() as u32, owner: Arc::clone(owner) }
    }

    /// Returns the value without its first `count` bytes; empty if it has fewer.
    #[must_use]
    pub fn skip(mut self, count: usize) -> Self {
        let count = (self.len as usize).min(count) as u32;
        if self.offset > 0 {
            self.offset += count;
        } else {
            // SAFETY: the bytes lie at `base`, and `count` is at most their number, so the result is in
            // the same memory or at its end.
            self.base = unsafe { self.base.add(count as usize) };
        }
        self.len -= count;
        self
    }

    fn pinned(&self) -> Option<NonNull<Versions>> {
        (self.offset > 0).then(|| self.base.cast())
    }

    /// Returns the memtable that owns the value.
    pub fn memtable(&self) -> &Arc<Memtable> {
        &self.owner
    }
}

impl Clone for PinnedValue {
    fn clone(&self) -> Self {
        // SAFETY: `with_pin` got the pointer from `Pin::into_raw`. This value still owns that pin,
        // so the copy is not dropped.
        let own = ManuallyDrop::new(unsafe { Pin::from_raw(self.pinned()) });
        // SAFETY: the bytes lie in the same node of the same memtable, and the clone of the pin
        // keeps it.
        unsafe { Self::with_pin(&self.owner, self, Pin::clone(&own)) }
    }
}

impl Drop for PinnedValue {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `with_pin` got the pointer from `Pin::into_raw`, and it is turned into a pin
        // once, here. `owner`, which keeps the arena, is dropped after this.
        drop(unsafe { Pin::from_raw(self.pinned()) });
    }
}

impl Deref for PinnedValue {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the bytes lie at this offset in the same node (invariant 1).
        let start = unsafe { self.base.add(self.offset as usize) };
        // SAFETY: `len` bytes lie there (invariant 1) and are not written while `self` exists
        // (invariant 2).
        unsafe { std::slice::from_raw_parts(start.as_ptr(), self.len as usize) }
    }
}

impl fmt::Debug for PinnedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PinnedValue").field(&&**self).finish()
    }
}
