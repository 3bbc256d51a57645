//! Locks on disk: file locks of the operating system.
//!
//! A process that probes a lock briefly holds it exclusively, so a process that takes a shared lock
//! at that moment must retry.
#![allow(clippy::disallowed_methods, reason = "this module makes file system calls")]
#![allow(clippy::disallowed_types, reason = "this module makes file system calls")]

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Lock, LockProbe};

/// How often a process tries to take a shared lock, and the pause between tries. Their product is
/// far longer than a probe.
const TRIES: u32 = 1000;
const PAUSE: Duration = Duration::from_micros(100);

/// Takes an exclusive lock, and creates the file if it does not exist.
pub(super) fn lock(path: &Path) -> io::Result<DiskLock> {
    let options = &mut OpenOptions::new();
    let mut file = options.read(true).write(true).create(true).truncate(false).open(path)?;
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
    // locking.
    let _ = write_holder(&mut file);
    DiskLock::new(file, path)
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
    path: PathBuf,
    identity: Identity,
}

impl DiskLock {
    fn new(file: File, path: &Path) -> io::Result<Self> {
        let identity = identity(&file.metadata()?);
        Ok(Self { file, process: std::process::id(), path: path.to_owned(), identity })
    }
}

impl Lock for DiskLock {
    fn is_held(&self) -> io::Result<bool> {
        match std::fs::metadata(&self.path) {
            Ok(found) => Ok(identity(&found) == self.identity),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
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

/// The device and number of a file, which together identify it while it is open.
#[cfg(unix)]
type Identity = (u64, u64);

#[cfg(unix)]
fn identity(metadata: &std::fs::Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

/// Other systems provide no file identity here, so a replaced lock file goes unnoticed.
#[cfg(not(unix))]
type Identity = ();

#[cfg(not(unix))]
fn identity(_metadata: &std::fs::Metadata) -> Identity {}

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

/// A file that other processes lock.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_lock_names_the_holder() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let first = lock(&path).unwrap();
        let error = lock(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        let program = std::env::current_exe().unwrap();
        let program = program.file_name().unwrap().to_str().unwrap();
        assert_eq!(error.to_string(), format!("process {} ({program})", std::process::id()));
        drop(first);
        lock(&path).unwrap();
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
        drop(DiskLock::new(file, &path).unwrap());
        lock(&path).unwrap();
        drop(copy);
    }

    #[cfg(unix)]
    #[test]
    fn a_lock_whose_file_was_removed_or_replaced_is_not_held() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let first = lock(&path).unwrap();
        assert!(first.is_held().unwrap());
        std::fs::remove_file(&path).unwrap();
        assert!(!first.is_held().unwrap());
        let second = lock(&path).unwrap();
        assert!(!first.is_held().unwrap() && second.is_held().unwrap());
    }
}
