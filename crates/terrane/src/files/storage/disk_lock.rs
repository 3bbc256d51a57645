//! Locks on disk: file locks of the operating system.
//!
//! A process that probes a lock briefly holds it exclusively, so a process that takes a shared lock
//! at that moment must retry.
#![allow(clippy::disallowed_methods, reason = "this module makes file system calls")]
#![allow(clippy::disallowed_types, reason = "this module makes file system calls")]

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::time::Duration;

use super::place::{OwnedPlace, Place};
use super::system::{self, Identity, Opening};
use super::{Lock, LockProbe};

/// How often a process tries to take a shared lock, and the pause between tries. Their product is
/// far longer than a probe.
const TRIES: u32 = 1000;
const PAUSE: Duration = Duration::from_micros(100);

/// Takes an exclusive lock, and creates the file if it does not exist.
pub(super) fn lock(place: Place<'_>) -> io::Result<DiskLock> {
    let mut file = system::open(place, Opening::Lock)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::Error(error)) => return Err(error),
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            let known = file.take(4096).read_to_string(&mut holder).is_ok();
            let holder = holder.trim();
            let holder = if known && !holder.is_empty() { holder } else { "an unknown process" };
            return Err(io::Error::new(io::ErrorKind::WouldBlock, holder.to_owned()));
        }
    }
    // The text only informs a process that finds the lock taken, so a full disk must not prevent
    // locking. Under another name the file may have other contents, which must not be overwritten.
    if !system::has_other_names(&file)? {
        let _ = write_holder(&mut file);
    }
    DiskLock::new(file, place)
}

/// Writes which process holds the lock. Other users may read the file, so the text names the program
/// without its arguments, which may hold a password and need not be UTF-8.
fn write_holder(file: &mut File) -> io::Result<()> {
    let program = std::env::current_exe().unwrap_or_default();
    let program = program.file_name().unwrap_or_default().to_string_lossy();
    let name = if program.is_empty() { String::new() } else { format!(" ({program})") };
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(format!("process {}{name}", std::process::id()).as_bytes())
}

/// A file lock of the operating system, which lasts until all descriptors of the open file are
/// closed. A forked child holds a descriptor until it calls `exec`, so dropping the lock unlocks
/// explicitly. Only the process that took the lock does so, because a forked child may drop its copy
/// of this value.
#[derive(Debug)]
pub(super) struct DiskLock {
    file: File,
    process: u32,
    place: OwnedPlace,
    identity: Identity,
}

impl DiskLock {
    fn new(file: File, place: Place<'_>) -> io::Result<Self> {
        let identity = system::identity_of(&file)?;
        Ok(Self { file, process: std::process::id(), place: place.to_owned(), identity })
    }
}

impl Lock for DiskLock {
    fn is_held(&self) -> io::Result<bool> {
        let place = self.place.borrow();
        match system::identity(place) {
            Ok(found) => Ok(found == self.identity),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Err(error) if system::is_dir_removed(place) => Err(error),
            Err(_) => Ok(false),
        }
    }
}

impl Drop for DiskLock {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            // If unlocking fails, closing the file usually releases the lock as well.
            let _ = self.file.unlock();
        }
    }
}

/// Takes a shared lock on an existing file.
pub(super) fn lock_shared(place: Place<'_>) -> io::Result<SharedLock> {
    let file = system::open(place, Opening::SharedLock)?;
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

/// A file that other processes lock.
#[derive(Debug)]
pub(super) struct DiskProbe(File);

impl DiskProbe {
    /// Opens the file, and creates it if it does not exist.
    pub(super) fn open(place: Place<'_>) -> io::Result<Self> {
        Ok(Self(system::open(place, Opening::Lock)?))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_lock_names_the_holder() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let first = lock(Place::by_path(&path)).unwrap();
        let error = lock(Place::by_path(&path)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        let program = std::env::current_exe().unwrap();
        let program = program.file_name().unwrap().to_str().unwrap();
        assert_eq!(error.to_string(), format!("process {} ({program})", std::process::id()));
        drop(first);
        lock(Place::by_path(&path)).unwrap();
    }

    /// Reopening a database right after closing it failed with "in use by this process" if another
    /// thread was starting a program.
    #[test]
    fn a_copy_of_the_file_in_a_forked_process_does_not_keep_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let file = File::create(&path).unwrap();
        file.try_lock().unwrap();
        let copy = file.try_clone().unwrap();
        drop(DiskLock::new(file, Place::by_path(&path)).unwrap());
        lock(Place::by_path(&path)).unwrap();
        drop(copy);
    }

    #[cfg(unix)]
    #[test]
    fn a_lock_whose_file_was_removed_or_replaced_is_not_held() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let first = lock(Place::by_path(&path)).unwrap();
        assert!(first.is_held().unwrap());
        std::fs::remove_file(&path).unwrap();
        assert!(!first.is_held().unwrap());
        let second = lock(Place::by_path(&path)).unwrap();
        assert!(!first.is_held().unwrap() && second.is_held().unwrap());
    }
}
