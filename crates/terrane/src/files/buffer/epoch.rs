//! Epochs: detect when all readers that may still use an evicted block are gone.
//!
//! Each thread that reads has a record with the epoch in which it was pinned, or 0. The evicting
//! thread empties slots, calls [`advance`], and reuses the frames once no record has an earlier
//! epoch.
//!
//! A reader writes its record and then loads slots; the evicting thread writes slots and then loads
//! the records. One of the two must see the write of the other, which needs a full barrier on both
//! sides. On Linux the evicting thread pays for both: `membarrier` makes every running thread of
//! the process execute a barrier, so a reader needs only a compiler barrier. One call serves a
//! batch of evictions. Elsewhere, and where the call is not allowed, readers execute a fence.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, compiler_fence, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::base::fork::{run_in_children, without_fork};

/// The current epoch. It starts at 1, because a record with 0 is not pinned.
static EPOCH: AtomicU64 = AtomicU64::new(1);

/// The records of all threads that read.
static RECORDS: Mutex<Vec<Arc<Record>>> = Mutex::new(Vec::new());

/// True once the process may use `membarrier`.
static IS_ASYMMETRIC: AtomicBool = AtomicBool::new(false);

/// Has its own cache line, because its thread writes it for every lookup.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Record(AtomicU64);

#[derive(Debug)]
struct Local {
    record: Arc<Record>,
    /// The number of guards of this thread.
    depth: Cell<u32>,
}

thread_local! {
    static LOCAL: Rc<Local> = Rc::new(Local::register());
}

fn lock_records() -> MutexGuard<'static, Vec<Arc<Record>>> {
    RECORDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `run` with the records, while no fork can happen: a child must find the lock free.
fn with_records<T>(run: impl FnOnce(&mut Vec<Arc<Record>>) -> T) -> T {
    without_fork(|| run(&mut lock_records()))
}

/// Unpins the threads that do not exist in a child. The thread that forked was not pinned.
fn unpin_all() {
    for record in &*lock_records() {
        // Relaxed: a child has a single thread.
        record.0.store(0, Ordering::Relaxed);
    }
}

impl Local {
    #[cold]
    fn register() -> Self {
        let record = Arc::new(Record::default());
        with_records(|records| records.push(Arc::clone(&record)));
        Self { record, depth: Cell::new(0) }
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        with_records(|records| records.retain(|record| !Arc::ptr_eq(record, &self.record)));
    }
}

/// Keeps in memory the evicted blocks that this thread may have found in a slot.
#[derive(Debug)]
pub(crate) struct Guard(Rc<Local>);

/// Pins the current thread until the guard is dropped. A pinned thread must not wait.
#[inline]
pub(crate) fn pin() -> Guard {
    // A destructor of another thread-local variable may read after this one is gone.
    let local = LOCAL.try_with(Rc::clone).unwrap_or_else(|_| Rc::new(Local::register()));
    let depth = local.depth.get();
    local.depth.set(depth + 1);
    if depth == 0 {
        // Acquire: a reader in an epoch sees the slots that were emptied before it began. A stale
        // epoch is an earlier one, which only makes the evicting thread wait longer.
        //
        // Release: if an evicting thread loads this epoch rather than the previous 0, it may reuse
        // frames that this thread read before it stored that 0.
        local.record.0.store(EPOCH.load(Ordering::Acquire), Ordering::Release);
        // The record must be visible before slots are loaded.
        if IS_ASYMMETRIC.load(Ordering::Relaxed) {
            compiler_fence(Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
    }
    Guard(local)
}

impl Drop for Guard {
    #[inline]
    fn drop(&mut self) {
        let depth = self.0.depth.get() - 1;
        self.0.depth.set(depth);
        if depth == 0 {
            // Release: the thread that reuses a frame sees that this thread has read it.
            self.0.record.0.store(0, Ordering::Release);
        }
    }
}

/// Returns true if this thread is pinned.
pub(super) fn is_pinned() -> bool {
    LOCAL.try_with(|local| local.depth.get() > 0).unwrap_or(false)
}

/// Prepares the process for [`advance`]. Called before the first eviction.
pub(super) fn prepare() {
    static PREPARED: std::sync::Once = std::sync::Once::new();
    PREPARED.call_once(|| {
        run_in_children(unpin_all);
        IS_ASYMMETRIC.store(barrier::register(), Ordering::SeqCst);
    });
}

/// The barrier failed, so no epoch began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BarrierFailed {
    /// True if the system will refuse the barrier from now on, for example because the process has
    /// installed a system call filter.
    pub(super) is_permanent: bool,
}

/// Begins an epoch. A thread that is pinned in this epoch or a later one sees all slots that the
/// caller has emptied.
pub(super) fn advance() -> Result<u64, BarrierFailed> {
    fence(Ordering::SeqCst);
    #[cfg(test)]
    if tests::BARRIER_FAILS.get() {
        return Err(BarrierFailed { is_permanent: true });
    }
    if IS_ASYMMETRIC.load(Ordering::Relaxed) {
        barrier::execute().map_err(|is_permanent| BarrierFailed { is_permanent })?;
    }
    fence(Ordering::SeqCst);
    Ok(EPOCH.fetch_add(1, Ordering::AcqRel) + 1)
}

/// Returns the earliest epoch in which a thread is pinned; `u64::MAX` if no thread is.
pub(super) fn earliest_pinned() -> u64 {
    with_records(|records| {
        // Acquire: pairs with the release of a thread that unpins.
        let pinned = records.iter().map(|record| record.0.load(Ordering::Acquire));
        pinned.filter(|epoch| *epoch > 0).min().unwrap_or(u64::MAX)
    })
}

#[cfg(all(target_os = "linux", not(miri)))]
mod barrier {
    const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;
    const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;

    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: the system call takes three numbers and accesses no memory of the process.
        let result = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
        result == 0
    }

    pub(super) fn register() -> bool {
        membarrier(REGISTER_PRIVATE_EXPEDITED)
    }

    /// Makes every running thread of the process execute a full barrier. The error is true if the
    /// failure is permanent.
    pub(super) fn execute() -> Result<(), bool> {
        if membarrier(PRIVATE_EXPEDITED) {
            return Ok(());
        }
        let error = std::io::Error::last_os_error().raw_os_error();
        Err(!matches!(error, Some(libc::ENOMEM | libc::EINTR | libc::EAGAIN)))
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod barrier {
    pub(super) fn register() -> bool {
        false
    }

    pub(super) fn execute() -> Result<(), bool> {
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    thread_local! {
        /// Makes the barriers of this thread fail.
        pub(in crate::files::buffer) static BARRIER_FAILS: Cell<bool> = const { Cell::new(false) };
    }

    #[test]
    fn a_pinned_reader_delays_reuse_and_nested_guards_count_once() {
        prepare();
        let outer = pin();
        let inner = pin();
        let epoch = advance().unwrap();
        assert!(earliest_pinned() < epoch);
        drop(outer);
        assert!(is_pinned() && earliest_pinned() < epoch);
        drop(inner);
        assert!(!is_pinned());
        // Other tests of this process may be pinned, but do not stay in an earlier epoch for long.
        while earliest_pinned() < epoch {
            std::thread::yield_now();
        }
        let _later = pin();
        assert!(earliest_pinned() >= epoch);
    }
}
