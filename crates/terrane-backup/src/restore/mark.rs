//! The marks in the directory of an unfinished restore.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::directory::sync_dir;
use crate::error::{Error, Result};
use crate::limited::LimitedFile;
use crate::manifest::{CURRENT, PART};

/// The mark of an unfinished restore.
const RESTORE: &str = "RESTORE";

/// The file that makes the engine refuse a directory without `CURRENT`.
const CHECKPOINT: &str = "CHECKPOINT";

/// The contents of the mark.
#[derive(Serialize, Deserialize)]
struct MarkText {
    backup: String,
}

/// A directory with an unfinished restore, locked.
pub(super) struct Mark {
    dir: PathBuf,
    _lock: File,
}

impl Mark {
    pub(super) fn begin(dir: &Path, backup: &str) -> Result<Self> {
        fs::create_dir_all(dir).map_err(|error| Error::file("create", dir, error))?;
        let path = dir.join(RESTORE);
        match fs::read(&path) {
            Ok(bytes) => check_mark(dir, &bytes, backup)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                check_empty(dir)?;
                let text = serde_json::to_vec(&MarkText { backup: backup.to_owned() })
                    .map_err(|error| Error::file("encode", &path, error.into()))?;
                write_durably(dir, RESTORE, &text)?;
            }
            Err(error) => return Err(Error::file("read", &path, error)),
        }
        let lock = lock(dir, &path)?;
        let refuse = dir.join(CHECKPOINT);
        if !dir.join(CURRENT).exists() {
            File::create(&refuse).map_err(|error| Error::file("create", &refuse, error))?;
        }
        sync(dir)?;
        if let Some(parent) = std::path::absolute(dir).ok().as_deref().and_then(Path::parent) {
            sync(parent)?;
        }
        Ok(Self { dir: dir.to_owned(), _lock: lock })
    }

    /// Removes the marks.
    pub(super) fn finish(self) -> Result<()> {
        for name in [CHECKPOINT, RESTORE] {
            let path = self.dir.join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::file("remove", &path, error));
                }
                _ => {}
            }
        }
        sync(&self.dir)
    }
}

fn lock(dir: &Path, path: &Path) -> Result<File> {
    let file = File::options().read(true).write(true).open(path);
    let file = file.map_err(|error| Error::file("open", path, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let (location, holder) = (dir.display().to_string(), "another restore".into());
            Err(Error::InUse { location, holder, advice: "" })
        }
        Err(TryLockError::Error(error)) => Err(Error::file("lock", path, error)),
    }
}

fn check_mark(dir: &Path, bytes: &[u8], backup: &str) -> Result<()> {
    let found: Option<MarkText> = serde_json::from_slice(bytes).ok();
    match found {
        Some(found) if found.backup == backup => Ok(()),
        found => {
            let of = found.map_or_else(|| "another backup".to_owned(), |found| found.backup);
            Err(Error::Invalid(format!(
                "{} has an unfinished restore of {of}; continue that one by naming it, or remove the \
                 directory",
                dir.display()
            )))
        }
    }
}

/// Refuses a directory with any file except a mark that was never complete.
fn check_empty(dir: &Path) -> Result<()> {
    let failed = |error| Error::file("list", dir, error);
    for entry in fs::read_dir(dir).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if name != part_of(RESTORE).as_str() {
            return Err(Error::Invalid(format!(
                "{} is not empty: it has {}; restore into a new directory",
                dir.display(),
                name.to_string_lossy()
            )));
        }
    }
    Ok(())
}

pub(super) fn sync(dir: &Path) -> Result<()> {
    sync_dir(dir).map_err(|error| Error::file("sync", dir, error))
}

pub(super) fn part_of(name: &str) -> String {
    format!("{name}{PART}")
}

/// Writes a file that gets its name only when it is complete.
pub(super) fn write_durably(dir: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let (part, path) = (dir.join(part_of(name)), dir.join(name));
    let write = || -> io::Result<()> {
        let mut file = LimitedFile::create(&part)?;
        file.write_all(bytes)?;
        file.sync()?;
        fs::rename(&part, &path)
    };
    write().map_err(|error| Error::file("write", &path, error))?;
    sync(dir)
}
