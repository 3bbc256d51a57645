//! A value in a memtable that keeps the memtable alive.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::memtable::Memtable;
use crate::skiplist::{Pin, Versions};

/// Bytes of a value, borrowed from a memtable for as long as this exists.
pub struct PinnedValue {
    /// Where the bytes begin; or what is pinned, and lies before them in the same node.
    base: NonNull<u8>,
    /// How far behind that they begin; 0 if nothing is pinned.
    offset: u32,
    len: u32,
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
    /// `value` lies in the memory of `owner`, in the node that is pinned, if one is.
    pub(crate) unsafe fn with_pin(owner: &Arc<Memtable>, value: &[u8], pin: Pin) -> Self {
        let start = NonNull::from(value).cast::<u8>();
        let (base, offset) = match pin.into_raw() {
            // A key is between them, and so the distance is small.
            Some(versions) => {
                let base = versions.cast::<u8>();
                (base, (start.addr().get() - base.addr().get()) as u32)
            }
            None => (start, 0),
        };
        // Values are at most 1 GiB long.
        Self { base, offset, len: value.len() as u32, owner: Arc::clone(owner) }
    }

    fn pinned(&self) -> Option<NonNull<Versions>> {
        (self.offset > 0).then(|| self.base.cast())
    }

    /// The memtable that is kept alive.
    pub fn memtable(&self) -> &Arc<Memtable> {
        &self.owner
    }
}

impl Clone for PinnedValue {
    fn clone(&self) -> Self {
        // SAFETY: it came from a pin, which lasts beyond this one.
        let own = ManuallyDrop::new(unsafe { Pin::from_raw(self.pinned()) });
        // SAFETY: the bytes are those of this value, in the same node.
        unsafe { Self::with_pin(&self.owner, self, Pin::clone(&own)) }
    }
}

impl Drop for PinnedValue {
    #[inline]
    fn drop(&mut self) {
        // The memtable goes after this.
        // SAFETY: it came from a pin, and is given back once.
        drop(unsafe { Pin::from_raw(self.pinned()) });
    }
}

impl Deref for PinnedValue {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: by `with_pin` the bytes lie there.
        let start = unsafe { self.base.add(self.offset as usize) };
        // SAFETY: by `with_pin` this many bytes lie there in the memory of `owner`, which is neither
        // moved nor freed while it exists; and they are not written while there is the pin.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), self.len as usize) }
    }
}

impl fmt::Debug for PinnedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PinnedValue").field(&&**self).finish()
    }
}
