//! The atomics and locks of this crate: the standard ones, or loom's under `--cfg loom`.

#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex, RwLock,
    atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence},
};

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex, RwLock,
    atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence},
};

/// Waits for another thread to finish a short operation: spins at first, then yields, because the other thread may not
/// be running. It may wait for a processor that a third thread has for milliseconds; a thread that sleeps meanwhile
/// leaves its own to it.
#[inline]
pub(crate) fn relax(tries: &mut u32) {
    *tries = tries.saturating_add(1);
    #[cfg(not(loom))]
    if *tries < SPINS {
        std::hint::spin_loop();
    } else {
        relax_longer(*tries);
    }
    #[cfg(loom)]
    loom::thread::yield_now();
}

#[cfg(not(loom))]
const SPINS: u32 = 64;

#[cfg(not(loom))]
#[cold]
#[allow(clippy::disallowed_methods, reason = "nobody wakes this thread")]
fn relax_longer(tries: u32) {
    const YIELDS: u32 = 16;
    const PAUSE: std::time::Duration = std::time::Duration::from_micros(20);
    if tries < SPINS + YIELDS { std::thread::yield_now() } else { std::thread::sleep(PAUSE) }
}

/// A fence between two SeqCst accesses that must not be reordered. The standard atomics need none;
/// loom models SeqCst accesses as weaker than they are, and needs the fence.
#[inline]
pub(crate) fn pin_fence() {
    #[cfg(loom)]
    fence(Ordering::SeqCst);
}

/// Marks data that is written once and then reached through an atomic pointer. Under loom it checks
/// that readers have synchronized with the write; otherwise it is empty.
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

    /// Records that the data is written and about to be published.
    #[inline]
    pub(crate) fn write(&self) {
        #[cfg(loom)]
        self.cell.with_mut(|_| ());
    }

    /// Records that the data is about to be read.
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

/// As [`lock`], for shared access.
pub(crate) fn read<T>(shared: &RwLock<T>) -> ReadGuard<'_, T> {
    shared.read().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// As [`lock`], for exclusive access.
pub(crate) fn write<T>(shared: &RwLock<T>) -> WriteGuard<'_, T> {
    shared.write().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Locks a mutex even if a holder panicked, because no code of this crate can panic between two
/// related changes under a lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> Guard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
