//! Removes the files of a database.
//!
//! An interrupted removal leaves a database that cannot be opened but can be removed again:
//! `CURRENT` is removed after the files to which it leads, and `LOGDIR` after the log directory
//! that it names.

use std::path::{Path, PathBuf};

use super::foreign_files::is_own;
use super::log_home::take_lock;
use crate::base::error::{Error, Result};
use crate::engine::catalog::LOCK;
use crate::files::log_directory::{self, DATABASE, LOGDIR, remove_if_exists};
use crate::files::manifest::CURRENT;
use crate::files::storage::{Lock, Storage};
use crate::files::wal::segment_file_number;

/// The files that are removed last, in this order.
const LAST: [&str; 3] = [CURRENT, LOGDIR, LOCK];

/// Removes all files of the database in `dir`, including its log.
pub(crate) fn destroy(storage: &dyn Storage, dir: &Path) -> Result<()> {
    let missing = || Error::NoDatabase { path: dir.into() };
    let names = match storage.list(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(missing()),
        listed => listed.map_err(|error| Error::io("list", dir, error))?,
    };
    // A lock file alone may come from an interrupted creation or removal.
    if !names.iter().any(|name| is_own(name)) {
        return Err(missing());
    }
    let _lock = take_lock(storage, dir)?;
    let log = LogDirectory::find(storage, dir)?;
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
    dir: PathBuf,
    _lock: Box<dyn Lock>,
}

impl LogDirectory {
    fn find(storage: &dyn Storage, dir: &Path) -> Result<Option<Self>> {
        let log_dir = match log_directory::find(storage, dir) {
            // An interrupted removal has removed the log already.
            Err(Error::NoLogDirectory { .. }) if storage.len(&dir.join(CURRENT)).is_err() => {
                return Ok(None);
            }
            found => found?,
        };
        if log_dir == dir {
            return Ok(None);
        }
        let (_, lock) = take_lock(storage, &log_dir)?;
        Ok(Some(Self { dir: log_dir, _lock: lock }))
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
