//! Shared locks on disk: file locks of the operating system.
//!
//! A process that probes a lock holds it exclusively for a moment, so a process that takes a shared
//! lock at that moment tries again.
#![allow(clippy::disallowed_methods, reason = "this module makes file system calls")]
#![allow(clippy::disallowed_types, reason = "this module makes file system calls")]

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::time::Duration;

use super::{Lock, LockProbe};

/// How often a shared lock is tried, and the pause between the tries. Together they are far longer
/// than a probe.
const TRIES: u32 = 1000;
const PAUSE: Duration = Duration::from_micros(100);

/// Takes a shared lock on an existing file.
pub(super) fn lock_shared(path: &Path) -> io::Result<SharedLock> {
    let file = File::open(path)?;
    for _ in 0..TRIES {
        match file.try_lock_shared() {
            Ok(()) => return Ok(SharedLock { file, process: std::process::id() }),
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}

/// A shared file lock. A forked child may have a copy of the descriptor, so dropping the lock unlocks
/// explicitly, and only in the process that took the lock.
#[derive(Debug)]
pub(super) struct SharedLock {
    file: File,
    process: u32,
}

impl Lock for SharedLock {}

impl Drop for SharedLock {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            // If unlocking fails, closing the file usually releases the lock as well.
            let _ = self.file.unlock();
        }
    }
}

/// A file that others lock.
#[derive(Debug)]
pub(super) struct DiskProbe(File);

impl DiskProbe {
    /// Opens the file, and creates it if it does not exist.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let options = &mut OpenOptions::new();
        Ok(Self(options.read(true).write(true).create(true).truncate(false).open(path)?))
    }
}

impl LockProbe for DiskProbe {
    fn is_locked(&self) -> io::Result<bool> {
        match self.0.try_lock() {
            Ok(()) => self.0.unlock().map(|()| false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}
