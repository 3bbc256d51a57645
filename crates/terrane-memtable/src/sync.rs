//! The atomics and locks of this crate: the standard ones, or loom's under `--cfg loom`.

#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex, RwLock,
    atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence},
};

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex, RwLock,
    atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence},
};

/// Waits a moment for another thread to be done with something short. Who has waited for long lets
/// others run: the one that is waited for may not be running.
#[inline]
pub(crate) fn relax(tries: &mut u32) {
    const SPINS: u32 = 64;
    *tries += 1;
    #[cfg(not(loom))]
    if *tries < SPINS {
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
    #[cfg(loom)]
    {
        let _ = SPINS;
        loom::thread::yield_now();
    }
}

/// Between two accesses that must not change places as others see them, where both are sequentially
/// consistent. Loom takes such accesses for weaker ones, and needs to be told.
#[inline]
pub(crate) fn pin_fence() {
    #[cfg(loom)]
    fence(Ordering::SeqCst);
}

/// Stands beside what is written once and then reached through an atomic pointer. Loom learns from
/// it whether who reads has seen what was written; otherwise it is nothing.
#[derive(Debug)]
pub(crate) struct WrittenOnce {
    #[cfg(loom)]
    cell: loom::cell::UnsafeCell<()>,
}

impl WrittenOnce {
    #[inline]
    pub(crate) fn new() -> Self {
        Self {
            #[cfg(loom)]
            cell: loom::cell::UnsafeCell::new(()),
        }
    }

    /// Everything is written, and about to be published.
    #[inline]
    pub(crate) fn write(&self) {
        #[cfg(loom)]
        self.cell.with_mut(|_| ());
    }

    /// Something is about to be read.
    #[inline]
    pub(crate) fn read(&self) {
        #[cfg(loom)]
        self.cell.with(|_| ());
    }
}

#[cfg(not(loom))]
pub(crate) type Guard<'a, T> = std::sync::MutexGuard<'a, T>;
#[cfg(loom)]
pub(crate) type Guard<'a, T> = loom::sync::MutexGuard<'a, T>;

#[cfg(not(loom))]
type ReadGuard<'a, T> = std::sync::RwLockReadGuard<'a, T>;
#[cfg(loom)]
type ReadGuard<'a, T> = loom::sync::RwLockReadGuard<'a, T>;

#[cfg(not(loom))]
type WriteGuard<'a, T> = std::sync::RwLockWriteGuard<'a, T>;
#[cfg(loom)]
type WriteGuard<'a, T> = loom::sync::RwLockWriteGuard<'a, T>;

/// As [`lock`], for one of several readers.
pub(crate) fn read<T>(shared: &RwLock<T>) -> ReadGuard<'_, T> {
    shared.read().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// As [`lock`], for the one that writes.
pub(crate) fn write<T>(shared: &RwLock<T>) -> WriteGuard<'_, T> {
    shared.write().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Locks, also after a panic of another holder: what this crate keeps under locks is never left
/// half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> Guard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
