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
use super::{Lock, LockProbe, size_limit};
use crate::base::fork::OwnFile;

/// How often a process tries to take a shared lock, and the pause between tries. Their product is
/// far longer than a probe.
const TRIES: u32 = 1000;
const PAUSE: Duration = Duration::from_micros(100);

/// Takes an exclusive lock, and creates the file if it does not exist.
pub(super) fn lock(place: Place<'_>) -> io::Result<DiskLock> {
    let file = OwnFile::open(|| system::open(place, Opening::Lock))?;
    let identity = file.with(take).unwrap_or_else(|| Err(forked()))?;
    Ok(DiskLock { file, place: place.to_owned(), identity })
}

fn take(file: &File) -> io::Result<Identity> {
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
    if !system::has_other_names(file)? {
        let _ = write_holder(file);
    }
    system::identity_of(file)
}

/// The error if the process forked in the middle of taking a lock, which a listener of `fork` could do.
fn forked() -> io::Error {
    io::Error::other("the process was forked while it took the lock")
}

/// Writes which process holds the lock. Other users may read the file, so the text names the program
/// without its arguments, which may hold a password and need not be UTF-8.
fn write_holder(mut file: &File) -> io::Result<()> {
    let program = std::env::current_exe().unwrap_or_default();
    let program = program.file_name().unwrap_or_default().to_string_lossy();
    let name = if program.is_empty() { String::new() } else { format!(" ({program})") };
    let text = format!("process {}{name}", std::process::id());
    size_limit::check(text.len() as u64)?;
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(text.as_bytes())
}

/// A file lock of the operating system, which lasts until all descriptors of the open file are
/// closed. A child of `fork` closes its descriptor at once, but any other child has one until it calls
/// `exec`, so dropping the lock unlocks explicitly.
#[derive(Debug)]
pub(super) struct DiskLock {
    file: OwnFile,
    place: OwnedPlace,
    identity: Identity,
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
        // If unlocking fails, closing the file usually releases the lock as well.
        let _ = self.file.with(File::unlock);
    }
}

/// Takes a shared lock on an existing file.
pub(super) fn lock_shared(place: Place<'_>) -> io::Result<SharedLock> {
    let file = OwnFile::open(|| system::open(place, Opening::SharedLock))?;
    for _ in 0..TRIES {
        match file.with(File::try_lock_shared).ok_or_else(forked)? {
            Ok(()) => return Ok(SharedLock(file)),
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}

/// A shared file lock. Dropping it unlocks explicitly, for the same reason.
#[derive(Debug)]
pub(super) struct SharedLock(OwnFile);

impl Lock for SharedLock {}

impl Drop for SharedLock {
    fn drop(&mut self) {
        // If unlocking fails, closing the file usually releases the lock as well.
        let _ = self.0.with(File::unlock);
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
        let first = lock(Place::by_path(&path)).unwrap();
        let copy = first.file.with(|file| file.try_clone().unwrap());
        drop(first);
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
