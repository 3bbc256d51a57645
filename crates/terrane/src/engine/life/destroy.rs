//! Removes the files of a database.
//!
//! An interrupted removal leaves a database that cannot be opened but can be removed again:
//! `CURRENT` is removed after the files to which it leads, and `LOGDIR` after the log directory
//! that it names.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::foreign_files::is_own;
use super::log_home::{hold_log_dir, take_lock};
use super::open::{hold, missing};
use crate::base::error::{Error, Result};
use crate::engine::catalog::LOCK;
use crate::files::log_directory::{self, DATABASE, LOGDIR, remove_if_exists};
use crate::files::manifest::CURRENT;
use crate::files::storage::{Lock, Storage};
use crate::files::wal::segment_file_number;

/// The files that are removed last, in this order.
const LAST: [&str; 3] = [CURRENT, LOGDIR, LOCK];

/// Removes all files of the database in `dir`, including its log.
pub(crate) fn destroy(storage: &Arc<dyn Storage>, dir: &Path) -> Result<()> {
    let held = hold(storage, dir)?;
    let (storage, dir) = (&held.storage, &*held.path);
    let names = storage.list(dir).map_err(|error| match error.kind() {
        // A storage that cannot hold directories.
        ErrorKind::NotFound => missing(dir),
        _ => Error::io("list", dir, error),
    })?;
    // A lock file alone may come from an interrupted creation or removal.
    if !names.iter().any(|name| is_own(name)) {
        return Err(missing(dir));
    }
    let _lock = take_lock(&**storage, dir)?;
    let log = LogDirectory::find(storage, dir)?;
    let storage = log.as_ref().map_or(&**storage, |log| &*log.storage);
    if let Some(log) = &log {
        remove_names(storage, &log.dir, |name| segment_file_number(name).is_some())?;
    }
    remove_names(storage, dir, |name| is_own(name) && !LAST.contains(&name))?;
    sync(storage, dir)?;
    remove_if_exists(storage, &dir.join(CURRENT))?;
    sync(storage, dir)?;
    if let Some(log) = &log {
        // Without `DATABASE` a repeated removal would not find the directory.
        remove_names(storage, &log.dir, |name| is_own(name) && name != DATABASE)?;
        sync(storage, &log.dir)?;
        remove_if_exists(storage, &log.dir.join(DATABASE))?;
        sync(storage, &log.dir)?;
    }
    remove_if_exists(storage, &dir.join(LOGDIR))?;
    remove_if_exists(storage, &dir.join(LOCK))?;
    sync(storage, dir)
}

/// A separate log directory, with its lock.
struct LogDirectory {
    /// A view of the storage in which this directory is held, too.
    storage: Arc<dyn Storage>,
    dir: PathBuf,
    _lock: Box<dyn Lock>,
}

impl LogDirectory {
    fn find(storage: &Arc<dyn Storage>, dir: &Path) -> Result<Option<Self>> {
        let log_dir = match log_directory::find(&**storage, dir) {
            // An interrupted removal has removed the log already.
            Err(Error::NoLogDirectory { .. }) if storage.len(&dir.join(CURRENT)).is_err() => {
                return Ok(None);
            }
            found => found?,
        };
        if log_dir == dir {
            return Ok(None);
        }
        let storage = hold_log_dir(storage, &log_dir)?;
        let (_, lock) = take_lock(&*storage, &log_dir)?;
        Ok(Some(Self { storage, dir: log_dir, _lock: lock }))
    }
}

fn remove_names(storage: &dyn Storage, dir: &Path, which: impl Fn(&str) -> bool) -> Result<()> {
    let names = storage.list(dir).map_err(|error| Error::io("list", dir, error))?;
    for name in names.iter().filter(|name| which(name)) {
        remove_if_exists(storage, &dir.join(name))?;
    }
    Ok(())
}

fn sync(storage: &dyn Storage, dir: &Path) -> Result<()> {
    storage.sync_dir(dir).map_err(|error| Error::io("sync", dir, error))
}
