//! Where the databases of a sweep are made.
//!
//! Beside its results, which lie where there is room: directories for temporary files may be in
//! memory. The directory has a name of its own, and a sweep has its results to itself: what is there
//! when one begins was left by one that was killed, and goes.

use std::fs::{self, File, TryLockError};
use std::path::Path;

use anyhow::{Context, Result, anyhow};

use super::experiment::fnv;
use crate::interrupt;
use crate::scratch::Scratch;

/// The name of the directory beside results.
const NAME: &str = "terrane-sweep-in-progress";

/// The name of the file in it that is locked by who works there.
const LOCK: &str = "LOCK";

/// A directory that no other sweep works in; it goes when this is dropped, and the lock after it.
pub(super) struct SweepDir {
    scratch: Scratch,
    _lock: File,
}

impl SweepDir {
    pub(super) fn path(&self) -> &Path {
        self.scratch.path()
    }
}

/// An empty directory for a sweep whose results are in `out`, beside them or in `dir`.
///
/// # Errors
/// The directory cannot be made, or another sweep works in it.
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

/// Makes the directory, and locks the file in it.
fn locked(place: &Path) -> Result<File> {
    let path = place.join(LOCK);
    loop {
        let open = || {
            fs::create_dir_all(place)?;
            File::options().write(true).create(true).truncate(false).open(&path)
        };
        let file = open().with_context(|| format!("cannot make {}", path.display()))?;
        match file.try_lock() {
            // Who had it may have removed it after it was opened here.
            Ok(()) if path.exists() => return Ok(file),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(anyhow!("another sweep works in {}", place.display()));
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
    fn what_a_killed_sweep_left_goes_when_the_next_one_begins() {
        let dir = tempfile::tempdir().unwrap();
        let (out, elsewhere) = (dir.path().join("out"), dir.path().join("elsewhere"));
        fs::create_dir(&out).unwrap();
        for work in [None, Some(&*elsewhere)] {
            let first = of(&out, work).unwrap();
            let path = first.path().to_owned();
            drop(first);
            // As if it had been killed.
            fs::create_dir_all(path.join("7")).unwrap();
            let second = of(&out, work).unwrap();
            assert_eq!(second.path(), path);
            assert!(!path.join("7").exists());
            let third = of(&out, work).err().map(|error| error.to_string());
            assert!(third.is_some_and(|error| error.starts_with("another sweep works in")));
            drop(second);
            assert!(!path.exists());
        }
        let (one, other) = (of(&out, Some(&elsewhere)).unwrap(), of(&elsewhere, Some(&elsewhere)));
        assert_ne!(one.path(), other.unwrap().path());
    }
}
