//! Processes that fork.
//!
//! A child of `fork` has a copy of the memory of its parent, but only the thread that called it. A
//! database of the parent cannot work there: its threads are missing, its mutexes may be locked for
//! ever, and the log is shared with the parent. [`Owner`] tells the process that opened a database from
//! its children, by a count of the forks that led to this process.
//!
//! 1. A child never uses a lock file of its parent, and closes it before `fork` returns. The operating
//!    system ties the lock to the open file, so it would otherwise last until the child ends, too.
//! 2. No fork happens while a thread runs in [`without_fork`], so what such a thread changes is never
//!    half changed in a child, and a mutex that is locked only there is unlocked in a child.
//!
//! The handlers that the C library runs around `fork` maintain both. They do not run for `vfork`,
//! `posix_spawn` and `clone`, whose children usually run another program at once; a child that does not
//! must not use a database of its parent.
#![allow(unsafe_code, reason = "no crate with a safe interface registers handlers for forks")]
#![allow(clippy::disallowed_types, reason = "lock files are closed in children")]

use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The number of forks between the first process that used this module and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// True while a thread is in [`without_fork`] or a fork is in progress.
static IS_ENTERED: AtomicBool = AtomicBool::new(false);

/// The functions that a child runs. Locked only in [`without_fork`].
static IN_CHILD: Mutex<Vec<fn()>> = Mutex::new(Vec::new());

/// The files that a child closes. Locked only in [`without_fork`].
static FILES: Mutex<Vec<Option<File>>> = Mutex::new(Vec::new());

/// The process that opened a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner(u32);

impl Default for Owner {
    fn default() -> Self {
        Self::this_process()
    }
}

impl Owner {
    /// Returns this process.
    pub(crate) fn this_process() -> Self {
        register();
        // Relaxed, as everywhere: only `fork` changes the count, and only in a process that has a
        // single thread at that time.
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// Returns false in a child of the process.
    #[inline]
    pub(crate) fn is_this_process(self) -> bool {
        FORKS.load(Ordering::Relaxed) == self.0
    }
}

/// Drops nothing: in a child, parts of a database must not be released, because that could wait for a
/// lock that no thread holds any more, or remove files of the parent.
pub(crate) fn leak<T>(part: T) {
    let _ = std::mem::ManuallyDrop::new(part);
}

/// Runs `run` while no fork can happen. It must be short, and must not fork.
pub(crate) fn without_fork<T>(run: impl FnOnce() -> T) -> T {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            leave();
        }
    }
    register();
    enter();
    let _leave = Leave;
    run()
}

fn enter() {
    // Acquire pairs with the release in `leave`.
    while IS_ENTERED.swap(true, Ordering::Acquire) {
        std::thread::yield_now();
    }
}

fn leave() {
    IS_ENTERED.store(false, Ordering::Release);
}

/// Runs `run` in every child from now on, before its `fork` returns. No thread is in [`without_fork`] then,
/// and other threads do not exist; `run` must neither allocate nor free memory.
pub(crate) fn run_in_children(run: fn()) {
    without_fork(|| IN_CHILD.lock().unwrap_or_else(PoisonError::into_inner).push(run));
}

fn lock_files() -> MutexGuard<'static, Vec<Option<File>>> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file that children do not inherit.
#[derive(Debug)]
pub(crate) struct OwnFile {
    owner: Owner,
    /// The index of the file in [`FILES`].
    index: usize,
}

impl OwnFile {
    /// Opens a file.
    pub(crate) fn open(open: impl FnOnce() -> std::io::Result<File>) -> std::io::Result<Self> {
        let owner = Owner::this_process();
        without_fork(|| {
            let file = open()?;
            let mut files = lock_files();
            let free = files.iter().position(Option::is_none);
            let index = free.unwrap_or(files.len());
            match free {
                Some(index) => files[index] = Some(file),
                None => files.push(Some(file)),
            }
            Ok(Self { owner, index })
        })
    }

    /// Calls `run` with the file; `None` in a child. `run` must be short, and must not wait.
    pub(crate) fn with<T>(&self, run: impl FnOnce(&File) -> T) -> Option<T> {
        without_fork(|| {
            if !self.owner.is_this_process() {
                return None;
            }
            lock_files().get(self.index).and_then(Option::as_ref).map(run)
        })
    }
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        without_fork(|| {
            if self.owner.is_this_process()
                && let Some(file) = lock_files().get_mut(self.index)
            {
                *file = None;
            }
        });
    }
}

/// Registers the handlers of this process, once.
#[cfg(all(unix, not(miri)))]
fn register() {
    extern "C" fn before() {
        enter();
    }

    extern "C" fn in_parent() {
        leave();
    }

    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
        // Invariant 1. The closed files keep their places, because nothing may be freed here: another
        // thread may have been using the allocator. No thread is in `without_fork`, so the mutex is
        // free (invariant 2).
        for file in &mut *lock_files() {
            *file = None;
        }
        for run in &*IN_CHILD.lock().unwrap_or_else(PoisonError::into_inner) {
            run();
        }
        leave();
    }

    static REGISTERED: std::sync::Once = std::sync::Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: The handlers do not unwind, and call no function that a child of a process with
        // several threads must not call: they change atomics and a free mutex, and close files.
        // If the handlers cannot be registered for lack of memory, a child is not recognized; nothing
        // else depends on them.
        let _ = unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    });
}

/// Other systems have no `fork`, and neither has the interpreter Miri.
#[cfg(not(all(unix, not(miri))))]
fn register() {}
