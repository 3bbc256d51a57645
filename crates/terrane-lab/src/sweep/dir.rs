//! The directory for the databases of a sweep.
//!
//! By default it is inside the directory of the results, on a real disk: the system's temporary
//! directory may be in memory. The directory is locked while a sweep uses it. Anything in it when a
//! sweep starts was left by a killed sweep and is removed.

use std::fs::{self, File, TryLockError};
use std::path::Path;

use anyhow::{Context, Result, anyhow};

use super::experiment::fnv;
use crate::host::interrupt;
use crate::host::scratch::Scratch;

/// The name of the directory.
const NAME: &str = "terrane-sweep-in-progress";

/// The name of the lock file in the directory.
const LOCK: &str = "LOCK";

/// An exclusively locked directory. Dropping it removes the directory, then releases the lock.
pub(super) struct SweepDir {
    scratch: Scratch,
    _lock: File,
}

impl SweepDir {
    pub(super) fn path(&self) -> &Path {
        self.scratch.path()
    }
}

/// Creates an empty directory for a sweep with results in `out`: inside `out`, or inside `dir` if
/// given.
///
/// # Errors
/// Fails if the directory cannot be created or another sweep uses it.
pub(super) fn of(out: &Path, dir: Option<&Path>) -> Result<SweepDir> {
    let place = match dir {
        None => out.join(NAME),
        // Several sweeps may share a directory.
        Some(dir) => {
            let out =
                fs::canonicalize(out).with_context(|| format!("cannot use {}", out.display()))?;
            dir.join(format!("{NAME}-{:016x}", fnv(out.as_os_str().as_encoded_bytes())))
        }
    };
    let lock = locked(&place)?;
    let entries =
        fs::read_dir(&place).with_context(|| format!("cannot list {}", place.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot list {}", place.display()))?;
        if entry.file_name() != LOCK {
            interrupt::remove(&entry.path());
        }
    }
    Ok(SweepDir { scratch: Scratch::of(place), _lock: lock })
}

/// Creates the directory and its lock file, and locks it.
fn locked(place: &Path) -> Result<File> {
    let path = place.join(LOCK);
    loop {
        let open = || {
            fs::create_dir_all(place)?;
            File::options().write(true).create(true).truncate(false).open(&path)
        };
        let file = open().with_context(|| format!("cannot create {}", path.display()))?;
        match file.try_lock() {
            // The previous owner may have removed the file after it was opened here.
            Ok(()) if path.exists() => return Ok(file),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(anyhow!("another sweep is running in {}", place.display()));
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {}", path.display()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_of_a_killed_sweep_are_removed_by_the_next_one() {
        let dir = tempfile::tempdir().unwrap();
        let (out, elsewhere) = (dir.path().join("out"), dir.path().join("elsewhere"));
        fs::create_dir(&out).unwrap();
        for work in [None, Some(&*elsewhere)] {
            let first = of(&out, work).unwrap();
            let path = first.path().to_owned();
            drop(first);
            // Simulate a killed sweep.
            fs::create_dir_all(path.join("7")).unwrap();
            let second = of(&out, work).unwrap();
            assert_eq!(second.path(), path);
            assert!(!path.join("7").exists());
            let third = of(&out, work).err().map(|error| error.to_string());
            assert!(third.is_some_and(|error| error.starts_with("another sweep is running in")));
            drop(second);
            assert!(!path.exists());
        }
        let (one, other) = (of(&out, Some(&elsewhere)).unwrap(), of(&elsewhere, Some(&elsewhere)));
        assert_ne!(one.path(), other.unwrap().path());
    }
}
