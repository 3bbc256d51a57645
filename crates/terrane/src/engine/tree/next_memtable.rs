//! The memtable that replaces the active one, created before it is needed.
//!
//! Creating a memtable may take long: a preallocated vector touches all its memory, and a hash
//! table all its buckets. A writer that replaces a full memtable must not pay for that, so a
//! background thread creates the next memtable when the active one is mostly full.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use terrane_memtable::Memtable;
use terrane_policy::{Design, MemtableKind};

/// Which thread creates memtables in advance.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Preparation {
    /// A background thread, unless it is late.
    OnThread,
    /// No thread.
    Never,
}

impl Preparation {
    /// Returns the design of a memtable that a writer has to create.
    pub(super) fn design_if_late(self, design: &Design) -> Design {
        let mut design = design.clone();
        if let (Self::OnThread, MemtableKind::Vector { prealloc_bytes, .. }) =
            (self, &mut design.memtable)
        {
            *prealloc_bytes = 0;
        }
        design
    }
}

/// The next memtable of a tree.
#[derive(Debug, Default)]
pub(super) struct NextMemtable {
    /// True from the request for the next memtable until it is taken.
    is_requested: AtomicBool,
    /// Held while the memtable is created, so that a writer that needs the memtable waits for it.
    next: Mutex<Option<Prepared>>,
    bytes: AtomicUsize,
}

#[derive(Debug)]
struct Prepared {
    memtable: Arc<Memtable>,
    /// The design for which it was created.
    design: Arc<Design>,
}

impl NextMemtable {
    /// Requests the next memtable. Returns true if it was not already requested.
    pub(super) fn request(&self) -> bool {
        // Relaxed, like all accesses here: the lock orders the memtable.
        !self.is_requested.load(Ordering::Relaxed)
            && !self.is_requested.swap(true, Ordering::Relaxed)
    }

    /// Creates the next memtable for `design`.
    pub(super) fn prepare(&self, design: Arc<Design>, create: impl FnOnce() -> Arc<Memtable>) {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let is_current = next.as_ref().is_some_and(|next| Arc::ptr_eq(&next.design, &design));
        if !is_current && self.is_requested.load(Ordering::Relaxed) {
            let memtable = create();
            self.bytes.store(memtable.memory().total_bytes(), Ordering::Relaxed);
            *next = Some(Prepared { memtable, design });
        }
    }

    /// Takes the memtable, if one was created for `design`. From now on, another memtable may be
    /// requested.
    pub(super) fn take(&self, design: &Arc<Design>) -> Option<Arc<Memtable>> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_requested.store(false, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
        next.take().filter(|next| Arc::ptr_eq(&next.design, design)).map(|next| next.memtable)
    }

    /// Drops the memtable that was created, or is being created.
    pub(super) fn discard(&self) {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_requested.store(false, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
        *next = None;
    }

    /// Returns the bytes that the memtable has allocated.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}
