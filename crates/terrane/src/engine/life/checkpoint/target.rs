//! The directory of a checkpoint while it is written.
//!
//! 1. The file `CHECKPOINT` is durable before any other file is created, and is removed only when
//!    `CURRENT` is durable or no other file is left. A directory with other files but without both
//!    of these is therefore never the result of an interrupted checkpoint.
//! 2. The process that writes the checkpoint holds a lock on that file. A checkpoint that no
//!    process writes any more is replaced by the next one into the same directory.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::error::{Error, Result};
use crate::engine::catalog::LOCK;
use crate::files::manifest::{CHECKPOINT, CURRENT, CURRENT_NEW, manifest_file_number};
use crate::files::storage::{HeldDir, Lock, Storage, hold_dir, sync_ancestors};
use crate::files::table::TableFileId;
use crate::files::value_pointer::ValueFileName;
use crate::files::wal::segment_file_number;

/// The directory of a checkpoint that is being written.
pub(super) struct Target {
    /// The directory, in a view of the storage that also holds the directories of the database.
    dir: HeldDir,
    _lock: Box<dyn Lock>,
}

impl Target {
    /// Creates the directory and marks it. Removes an unfinished checkpoint in it.
    ///
    /// # Errors
    /// The directory contains other files, or another process writes a checkpoint to it. In both
    /// cases it is left unchanged.
    pub(super) fn begin(storage: &Arc<dyn Storage>, dir: &Path) -> Result<Self> {
        let found = match storage.list(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            listed => listed.map_err(|error| Error::io("list", dir, error))?,
        };
        check_usable(dir, &found)?;
        storage.create_dir_all(dir).map_err(|error| Error::io("create", dir, error))?;
        let held = hold_dir(storage, dir).map_err(|error| Error::io("open", dir, error))?;
        let lock = lock_marker(&*held.storage, &held.path)?;
        let target = Self { dir: held, _lock: lock };
        // Another process may have finished a checkpoint since the first look.
        let now = target.names()?;
        if let Err(error) = check_usable(dir, &now) {
            let was_marked = found.iter().any(|name| name == CHECKPOINT);
            if !was_marked || now.iter().any(|name| name == CURRENT) {
                let _ = target.remove_mark();
            }
            return Err(error);
        }
        match target.prepare() {
            Ok(()) => Ok(target),
            Err(error) => {
                target.abandon();
                Err(error)
            }
        }
    }

    fn prepare(&self) -> Result<()> {
        sync_ancestors(&*self.dir.storage, &self.dir.path)?;
        // Invariant 1.
        self.sync()?;
        self.remove_files()
    }

    /// Returns the directory.
    pub(super) fn dir(&self) -> &HeldDir {
        &self.dir
    }

    fn remove_files(&self) -> Result<()> {
        for path in self.files()? {
            let removed = self.dir.storage.remove(&path);
            removed.map_err(|error| Error::io("remove", &path, error))?;
        }
        Ok(())
    }

    fn remove_mark(&self) -> io::Result<()> {
        self.dir.storage.remove(&self.dir.path.join(CHECKPOINT))
    }

    /// Removes the mark of a complete checkpoint.
    pub(super) fn finish(self) {
        // If the mark remains, the next opening for writing removes it.
        if self.remove_mark().is_ok() {
            let _ = self.sync();
        }
    }

    /// Removes the files of a failed checkpoint, as far as possible. The mark remains if any other
    /// file does.
    pub(super) fn abandon(self) {
        let remove_all = || -> Result<()> {
            // First the pointer, because without the other files it would be dangling.
            let pointer = self.dir.path.join(CURRENT);
            match self.dir.storage.remove(&pointer) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::io("remove", &pointer, error));
                }
                _ => self.sync()?,
            }
            self.remove_files()?;
            self.sync()
        };
        if remove_all().is_ok() {
            let _ = self.remove_mark();
        }
    }

    fn names(&self) -> Result<Vec<String>> {
        let HeldDir { path, storage } = &self.dir;
        storage.list(path).map_err(|error| Error::io("list", path, error))
    }

    /// Returns the files of the checkpoint, without its mark.
    fn files(&self) -> Result<Vec<PathBuf>> {
        let names = self.names()?.into_iter();
        Ok(names
            .filter(|name| is_of_checkpoint(name))
            .map(|name| self.dir.path.join(name))
            .collect())
    }

    fn sync(&self) -> Result<()> {
        let HeldDir { path, storage } = &self.dir;
        storage.sync_dir(path).map_err(|error| Error::io("sync", path, error))
    }
}

/// How often a checkpoint tries to lock the file that marks its directory, if the file is removed
/// each time. Bounded, because a storage may violate its contract and create no lock file.
const LOCK_ATTEMPTS: u32 = 100;

/// Locks the file that marks the directory, and creates it if it does not exist.
fn lock_marker(storage: &dyn Storage, dir: &Path) -> Result<Box<dyn Lock>> {
    let path = dir.join(CHECKPOINT);
    for _ in 0..LOCK_ATTEMPTS {
        let lock = storage.lock(&path).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => {
                Error::Locked { path: dir.into(), holder: error.to_string().into() }
            }
            _ => Error::io("lock", &path, error),
        })?;
        // The process that held the lock may have removed the file before releasing the lock.
        match storage.len(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io("check", &path, error)),
            // The name may belong to a file that another process has created since.
            Ok(_) => match lock.is_held() {
                Ok(true) => return Ok(lock),
                Ok(false) => {}
                Err(error) => return Err(Error::io("check", &path, error)),
            },
        }
    }
    Err(Error::io("create", &path, io::ErrorKind::NotFound.into()))
}

/// Refuses a directory that contains anything but an unfinished checkpoint.
fn check_usable(dir: &Path, names: &[String]) -> Result<()> {
    let is_unfinished = names.iter().any(|name| name == CHECKPOINT);
    // Opening an unfinished checkpoint fails, and leaves a lock file.
    let is_expected = |name: &str| name == CHECKPOINT || name == LOCK || is_of_checkpoint(name);
    match names.iter().find(|name| !is_unfinished || !is_expected(name)) {
        None => Ok(()),
        Some(name) => {
            let found = format!("{}, which contains {name}", dir.display());
            let expected = "a new or empty directory, or an unfinished checkpoint";
            Err(Error::invalid("checkpoint directory", found, expected))
        }
    }
}

/// Returns true for the files of a checkpoint other than its mark and `CURRENT`, which only a
/// complete checkpoint has.
fn is_of_checkpoint(name: &str) -> bool {
    name == CURRENT_NEW
        || manifest_file_number(name).is_some()
        || segment_file_number(name).is_some()
        || TableFileId::of_file_name(name).is_some()
        || ValueFileName::of_file_name(name).is_some()
}
