//! A value in a memtable that keeps the memtable alive.

use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::memtable::Memtable;
use crate::skiplist::Pin;

/// Bytes of a value, borrowed from a memtable for as long as this exists.
#[derive(Clone)]
pub struct PinnedValue {
    start: NonNull<u8>,
    len: u32,
    /// Keeps the bytes from being used for something else, where that may be. Dropped before the
    /// owner.
    _pin: Pin,
    /// Keeps the bytes alive.
    owner: Arc<Memtable>,
}

// SAFETY: the bytes are not written again as long as they are pinned, and the memtable is `Send`
// and `Sync`.
unsafe impl Send for PinnedValue {}
// SAFETY: as for `Send`.
unsafe impl Sync for PinnedValue {}

impl PinnedValue {
    /// Pins a value that stays as it is.
    ///
    /// # Safety
    /// `value` lies in the memory of `owner`, and is never written again.
    pub(crate) unsafe fn new(owner: &Arc<Memtable>, value: &[u8]) -> Self {
        // SAFETY: passed on.
        unsafe { Self::with_pin(owner, value, Pin::NONE) }
    }

    /// A value that stays as it is as long as there is the pin.
    ///
    /// # Safety
    /// `value` lies in the memory of `owner`, and so does what is pinned.
    pub(crate) unsafe fn with_pin(owner: &Arc<Memtable>, value: &[u8], pin: Pin) -> Self {
        // Values are at most 1 GiB long.
        let len = value.len() as u32;
        Self { start: NonNull::from(value).cast(), len, _pin: pin, owner: Arc::clone(owner) }
    }

    /// The memtable that is kept alive.
    pub fn memtable(&self) -> &Arc<Memtable> {
        &self.owner
    }
}

impl Deref for PinnedValue {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: by `new` this many bytes lie there in the memory of `owner`, which is neither
        // moved nor freed while it exists; and they are not written while there is the pin.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len as usize) }
    }
}

impl fmt::Debug for PinnedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PinnedValue").field(&&**self).finish()
    }
}
