//! Finds, creates and moves the log directory.
//!
//! The steps keep the invariants of [`crate::files::log_directory`]. Before a new database claims
//! its log directory, it records the directory in `LOGDIR`, so that an interrupted creation can be
//! repeated with the same directory. A move copies the log and makes the copy durable before
//! `LOGDIR` refers to it. After a crash the log is therefore either in its old place, next to an
//! unfinished copy that the next move replaces, or in its new place, with old files left behind
//! that nothing needs.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::copy_file::copy_file;
use crate::base::error::{Error, Result};
use crate::base::types::Lsn;
use crate::engine::catalog::LOCK;
use crate::files::consistency;
use crate::files::log_directory::{
    DATABASE, DATABASE_NEW, LOGDIR, LogPointer, check_owner, claim, complete, next_owner, owner,
    remove_if_exists,
};
use crate::files::manifest::{CURRENT, ManifestState};
use crate::files::storage::{Lock, Storage, hold_dir, sync_ancestors};
use crate::files::wal::{Recovery, segment_file_number};
use crate::options::LogDir;

/// The log directory of an opening for writing.
pub(super) struct LogHome {
    /// A view of the storage in which the directory is held.
    pub(super) storage: Arc<dyn Storage>,
    /// The directory; it is the database's own directory unless there is a lock.
    pub(super) dir: PathBuf,
    /// The lock file of the directory and its lock.
    pub(super) lock: Option<(PathBuf, Box<dyn Lock>)>,
}

/// The database whose log is located or moved.
#[derive(Clone, Copy)]
struct Place<'a> {
    storage: &'a dyn Storage,
    dir: &'a Path,
    database: u64,
}

/// Returns a view of a storage that also holds the log directory, if it exists.
pub(super) fn hold_log_dir(storage: &Arc<dyn Storage>, log_dir: &Path) -> Result<Arc<dyn Storage>> {
    match hold_dir(storage, log_dir) {
        Ok(held) => Ok(held.storage),
        // The caller finds out that the log is not there.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Arc::clone(storage)),
        Err(error) => Err(Error::io("open", log_dir, error)),
    }
}

/// Does the same for a directory that will contain the log, and creates it if it does not exist.
fn hold_new_log_dir(storage: &Arc<dyn Storage>, log_dir: &Path) -> Result<Arc<dyn Storage>> {
    storage.create_dir_all(log_dir).map_err(|error| Error::io("create", log_dir, error))?;
    hold_log_dir(storage, log_dir)
}

/// Locks a directory, which must exist.
pub(super) fn take_lock(storage: &dyn Storage, dir: &Path) -> Result<(PathBuf, Box<dyn Lock>)> {
    let path = dir.join(LOCK);
    let lock = storage.lock(&path).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => {
            Error::Locked { path: dir.into(), holder: error.to_string().into() }
        }
        _ => Error::io("lock", &path, error),
    })?;
    Ok((path, lock))
}

/// Returns the id of the database whose interrupted creation used the log directory that is
/// requested now. Undoes a creation that was begun with another directory.
pub(super) fn interrupted_creation(
    storage: &dyn Storage,
    dir: &Path,
    given: Option<&LogDir>,
) -> Result<Option<u64>> {
    let begun = match LogPointer::read(storage, dir) {
        // The pointer is damaged, but there is no database whose log would be lost.
        Err(Error::Corruption(_)) => {
            LogPointer::remove(storage, dir)?;
            None
        }
        begun => begun?,
    };
    let Some(begun) = begun else { return Ok(None) };
    if requested(dir, given).as_deref() == Some(&*begun.log_dir(dir)) {
        return Ok(Some(begun.database));
    }
    let log_dir = begun.log_dir(dir);
    let owners = [owner(storage, &log_dir), next_owner(storage, &log_dir)];
    if owners.into_iter().flatten().flatten().any(|owner| owner == begun.database) {
        // The directory has no segments, because the first one is created after the database.
        for name in [DATABASE, DATABASE_NEW] {
            remove_if_exists(storage, &log_dir.join(name))?;
        }
        // Synced before `LOGDIR` is removed, because without it nothing would say that these files
        // may be removed.
        storage.sync_dir(&log_dir).map_err(|error| Error::io("sync", &log_dir, error))?;
    }
    LogPointer::remove(storage, dir)?;
    Ok(None)
}

/// Creates and returns the log directory of a new database.
pub(super) fn create(
    storage: &Arc<dyn Storage>,
    dir: &Path,
    database: u64,
    given: Option<&LogDir>,
) -> Result<LogHome> {
    let Some(log_dir) = requested(dir, given) else {
        return Ok(LogHome { storage: Arc::clone(storage), dir: dir.to_owned(), lock: None });
    };
    let held = hold_new_log_dir(storage, &log_dir)?;
    let storage = &*held;
    let place = Place { storage, dir, database };
    let lock = place.take(&log_dir)?;
    place.pointer(given).write(storage, dir)?;
    claim(storage, &log_dir, database)?;
    sync_ancestors(storage, &log_dir)?;
    complete(storage, &log_dir)?;
    Ok(LogHome { storage: held, dir: log_dir, lock: Some(lock) })
}

/// Returns the log directory of an existing database. If another directory is requested, moves the
/// log there first.
pub(super) fn settle(
    storage: &Arc<dyn Storage>,
    dir: &Path,
    state: &ManifestState,
    given: Option<&LogDir>,
) -> Result<LogHome> {
    let database = state.database;
    let pointer = LogPointer::read(&**storage, dir)?;
    if pointer.as_ref().is_some_and(|pointer| pointer.database != database) {
        let detail = "it names another database";
        return Err(Error::corruption(&dir.join(LOGDIR), None, "directory of the log", detail));
    }
    let from = pointer.map(|pointer| pointer.log_dir(dir));
    let to = if given.is_some() { requested(dir, given) } else { from.clone() };
    let held = match &to {
        Some(to) if from.as_ref() != Some(to) => hold_new_log_dir(storage, to)?,
        Some(to) => hold_log_dir(storage, to)?,
        None => Arc::clone(storage),
    };
    if to == from {
        let Some(log_dir) = from else {
            return Ok(LogHome { storage: held, dir: dir.to_owned(), lock: None });
        };
        let lock = Place { storage: &*held, dir, database }.lock_log(&log_dir)?;
        return Ok(LogHome { storage: held, dir: log_dir, lock: Some(lock) });
    }
    // The former log directory is held only while the log is moved.
    let both = from.as_ref().map_or(Ok(Arc::clone(&held)), |from| hold_log_dir(&held, from))?;
    let place = Place { storage: &*both, dir, database };
    let lock = place.change(from, to.as_deref(), given, state)?;
    Ok(LogHome { storage: held, dir: to.unwrap_or_else(|| dir.to_owned()), lock })
}

/// Returns the requested directory; `None` if it is the database's own.
fn requested(dir: &Path, given: Option<&LogDir>) -> Option<PathBuf> {
    let path = given.and_then(|given| given.0.as_ref())?;
    let log_dir = dir.join(path);
    (log_dir != dir).then_some(log_dir)
}

impl Place<'_> {
    fn pointer(&self, given: Option<&LogDir>) -> LogPointer {
        let path = given.map(LogDir::to_string).unwrap_or_default();
        LogPointer { database: self.database, path }
    }

    /// Locks the directory that contains the log.
    fn lock_log(&self, log_dir: &Path) -> Result<(PathBuf, Box<dyn Lock>)> {
        // Checked first, so that no file is created in a directory on which a device should be
        // mounted.
        check_owner(self.storage, self.dir, log_dir, self.database)?;
        let lock = take_lock(self.storage, log_dir)?;
        check_owner(self.storage, self.dir, log_dir, self.database)?;
        Ok(lock)
    }

    /// Locks the directory that will contain the log. Refuses a directory that another database
    /// uses.
    fn take(&self, log_dir: &Path) -> Result<(PathBuf, Box<dyn Lock>)> {
        self.check_is_free(log_dir)?;
        let lock = take_lock(self.storage, log_dir)?;
        // Another process may have taken the directory before it was locked.
        self.check_is_free(log_dir)?;
        Ok(lock)
    }

    fn check_is_free(&self, log_dir: &Path) -> Result<()> {
        let taken = || Err(Error::LogDirectoryTaken { path: log_dir.into() });
        let names = self.list(log_dir)?;
        let owner = owner(self.storage, log_dir)?;
        if owner.is_some_and(|owner| owner != self.database) || names.iter().any(|n| n == CURRENT) {
            return taken();
        }
        let has_log = names.iter().any(|name| segment_file_number(name).is_some());
        let next = next_owner(self.storage, log_dir)?;
        if has_log && owner.is_none() && next != Some(self.database) {
            return taken();
        }
        Ok(())
    }

    /// Moves the log, and returns the lock of its new directory. If it was already moved from `from`
    /// to `to` without the engine, only records this.
    fn change(
        &self,
        from: Option<PathBuf>,
        to: Option<&Path>,
        given: Option<&LogDir>,
        state: &ManifestState,
    ) -> Result<Option<(PathBuf, Box<dyn Lock>)>> {
        let Self { storage, dir, .. } = *self;
        let lock = to.map(|to| self.take(to)).transpose()?;
        let from_lock = from.as_ref().map(|from| self.lock_log(from)).transpose();
        let was_moved = match (&from_lock, to) {
            // The former path may lead to another database's log by now.
            (Err(Error::NoLogDirectory { .. } | Error::LogDirectoryTaken { .. }), Some(to)) => {
                self.has_whole_log(to, state)?
            }
            _ => false,
        };
        if !was_moved {
            let _from_lock = from_lock?;
            let source = from.clone().unwrap_or_else(|| dir.to_owned());
            self.copy(&source, to.unwrap_or(dir))?;
        }
        match to {
            Some(_) => self.pointer(given).write(storage, dir)?,
            None => LogPointer::remove(storage, dir)?,
        }
        if !was_moved {
            // If this fails, files remain that nothing needs.
            let _ = self.remove_log(&from.unwrap_or_else(|| dir.to_owned()));
        }
        Ok(lock)
    }

    /// Returns true if the directory contains the log up to its end; an old copy does not.
    fn has_whole_log(&self, log_dir: &Path, state: &ManifestState) -> Result<bool> {
        let Self { storage, database, .. } = *self;
        if owner(storage, log_dir)? != Some(database) {
            return Ok(false);
        }
        let from = state.log_needed_from(Lsn(0));
        let recovery = Recovery::open(storage, log_dir, database)?;
        let replayed =
            recovery.replay(storage, None, log_dir, from, state.required_segment, |_| Ok(()))?;
        consistency::check_end(state, &replayed, log_dir)?;
        Ok(true)
    }

    /// Copies the log to a directory without `DATABASE`, or to the database's own directory, and
    /// makes the copy durable.
    fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        let Self { storage, dir, database } = *self;
        if to != dir {
            // `to` does not contain the log, but may contain an earlier log whose removal failed.
            claim(storage, to, database)?;
            remove_if_exists(storage, &to.join(DATABASE))?;
            storage.sync_dir(to).map_err(|error| Error::io("sync", to, error))?;
            sync_ancestors(storage, to)?;
        }
        self.remove_segments(to)?;
        for name in self.segments(from)? {
            copy_file(storage, (&from.join(&name), &to.join(&name)), None, None)?;
        }
        if to != dir {
            return complete(storage, to);
        }
        storage.sync_dir(to).map_err(|error| Error::io("sync", to, error))
    }

    /// Removes a log that was copied, and the file that states its owner.
    fn remove_log(&self, log_dir: &Path) -> Result<()> {
        self.remove_segments(log_dir)?;
        if log_dir == self.dir {
            return Ok(());
        }
        // Without `DATABASE`, segments would seem to belong to another database.
        let synced = self.storage.sync_dir(log_dir);
        synced.map_err(|error| Error::io("sync", log_dir, error))?;
        remove_if_exists(self.storage, &log_dir.join(DATABASE))
    }

    fn remove_segments(&self, log_dir: &Path) -> Result<()> {
        for name in self.segments(log_dir)? {
            remove_if_exists(self.storage, &log_dir.join(name))?;
        }
        Ok(())
    }

    fn segments(&self, log_dir: &Path) -> Result<Vec<String>> {
        let mut names = self.list(log_dir)?;
        names.retain(|name| segment_file_number(name).is_some());
        Ok(names)
    }

    fn list(&self, log_dir: &Path) -> Result<Vec<String>> {
        self.storage.list(log_dir).map_err(|error| Error::io("list", log_dir, error))
    }
}
