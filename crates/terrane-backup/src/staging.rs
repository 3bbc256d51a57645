//! The temporary directory next to a database in which the checkpoint of a backup is made.
//!
//! ```text
//! DB.backup-NUMBERS/lock         locked while the backup runs
//! DB.backup-NUMBERS/checkpoint   the checkpoint
//! ```
//!
//! It is on the file system of the database, so that the checkpoint consists of hard links. Because they
//! keep replaced tables on the disk, the directory is removed when the backup ends, and the next backup
//! removes the directories of killed processes, whose locks the operating system has released.
//!
//! 1. Only a directory with such a name that has one or both of these entries and nothing else is removed,
//!    because a user may have given a similar name to a copy of the database, such as
//!    `DB.backup-2026-11-26`.
//! 2. Only its user can enter it, because it has the tables of a database whose own directory may be private.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::moment::now_micros;

/// The part of the names of these directories after the database's name.
const INFIX: &str = ".backup-";

/// The name of the lock.
const LOCK: &str = "lock";

/// The name of the checkpoint.
const CHECKPOINT: &str = "checkpoint";

/// The age from which a directory without a lock is removed.
const OLD: Duration = Duration::from_secs(600);

/// How many times a directory is created, if another process removes it as abandoned before it is locked.
const TRIES: u32 = 10;

/// A temporary directory, removed when it is dropped.
pub(crate) struct Staging {
    dir: PathBuf,
    _lock: File,
}

impl Staging {
    /// Creates the directory in `beside`, or else in the parent of the database, and removes the
    /// directories of killed processes.
    pub(crate) fn create(database: &Path, beside: Option<&Path>) -> Result<Self> {
        let database =
            std::path::absolute(database).map_err(|error| Error::file("find", database, error))?;
        let database = fs::canonicalize(&database).unwrap_or(database);
        let parent = match beside {
            Some(dir) => {
                std::path::absolute(dir).map_err(|error| Error::file("find", dir, error))?
            }
            None => database.parent().unwrap_or(&database).to_owned(),
        };
        let name = database.file_name().unwrap_or_default().to_string_lossy().into_owned();
        remove_abandoned(&parent, &format!("{name}{INFIX}"));
        for _ in 0..TRIES {
            static COUNT: AtomicU64 = AtomicU64::new(0);
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let unique =
                format!("{name}{INFIX}{:x}-{:x}-{count:x}", std::process::id(), now_micros());
            let dir = parent.join(unique);
            create_private(&dir).map_err(|error| not_created(&parent, &dir, error))?;
            let path = dir.join(LOCK);
            let lock = File::create(&path).and_then(|file| file.lock().map(|()| file));
            match lock {
                // A process that removes an abandoned directory holds its lock meanwhile.
                Ok(lock) if path.exists() => return Ok(Self { dir, _lock: lock }),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    let _ = fs::remove_dir_all(&dir);
                    return Err(Error::file("lock", &path, error));
                }
            }
        }
        Err(Error::file("create", &parent, io::ErrorKind::NotFound.into()))
    }

    /// Returns the directory of the checkpoint, which does not exist at first.
    pub(crate) fn checkpoint(&self) -> PathBuf {
        self.dir.join(CHECKPOINT)
    }
}

/// Returns the error for a directory that cannot be created, with the way out.
fn not_created(parent: &Path, dir: &Path, error: io::Error) -> Error {
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "choose another location on the same file system with --temporary"
        }
        // No location on the file system of the database is writable.
        io::ErrorKind::ReadOnlyFilesystem => {
            "name a directory with space for a copy of the database with --temporary"
        }
        _ => return Error::file("create", dir, error),
    };
    let parent = parent.display();
    Error::Invalid(format!(
        "cannot create a directory for the checkpoint in {parent}: {error}; {remedy}"
    ))
}

impl Drop for Staging {
    fn drop(&mut self) {
        // The next backup removes a directory that remains.
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// A private directory among the temporary files of the system, removed when it is dropped.
pub(crate) struct Scratch {
    dir: PathBuf,
}

impl Scratch {
    pub(crate) fn create() -> Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let (process, now) = (std::process::id(), now_micros());
        let dir =
            std::env::temp_dir().join(format!("terrane-verify-{process:x}-{now:x}-{count:x}"));
        create_private(&dir).map_err(|error| Error::file("create", &dir, error))?;
        Ok(Self { dir })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Removes the directories of processes that no longer exist.
fn remove_abandoned(parent: &Path, prefix: &str) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_named = entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix));
        let lock = entry.path().join(LOCK);
        if !is_named || !is_staging(&entry.path()) {
            continue;
        }
        // Opens the file for writing, because some systems can lock only a file opened that way.
        match File::options().write(true).open(&lock).map(|file| (file.try_lock(), file)) {
            Ok((Ok(()), _file)) => {
                let _ = fs::remove_dir_all(entry.path());
            }
            Ok((Err(TryLockError::WouldBlock | TryLockError::Error(_)), _)) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound && is_old(&entry.path()) => {
                let _ = fs::remove_dir_all(entry.path());
            }
            Err(_) => {}
        }
    }
}

/// Creates a directory that only this user can enter.
fn create_private(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// Returns true if a directory has only entries that a backup puts there, and at least one.
fn is_staging(dir: &Path) -> bool {
    let is_own = |entry: io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| [LOCK, CHECKPOINT].iter().any(|own| entry.file_name() == *own))
    };
    let mut entries = fs::read_dir(dir).into_iter().flatten().peekable();
    entries.peek().is_some() && entries.all(is_own)
}

/// Returns true if a directory without a lock does not belong to a backup that is just beginning.
/// Such a directory remains if another process makes the checkpoint of a killed backup after the
/// backup's directory has been removed.
fn is_old(dir: &Path) -> bool {
    let changed = fs::metadata(dir).and_then(|facts| facts.modified());
    changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age >= OLD))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn directories_of_killed_processes_are_removed_and_those_in_use_are_not() {
        let parent = tempfile::tempdir().unwrap();
        let database = parent.path().join("db");
        fs::create_dir(&database).unwrap();
        let used = Staging::create(&database, None).unwrap();
        fs::create_dir(used.checkpoint()).unwrap();
        let killed = parent.path().join("db.backup-1-2-3");
        fs::create_dir(&killed).unwrap();
        fs::write(killed.join(LOCK), "").unwrap();
        fs::create_dir(killed.join(CHECKPOINT)).unwrap();
        fs::create_dir(parent.path().join("db2.backup-1-2-3")).unwrap();
        let second = Staging::create(&database, None).unwrap();
        assert!(!killed.exists() && used.checkpoint().exists() && second.dir != used.dir);
        drop((used, second));
        let mut left = names(parent.path());
        left.sort();
        assert_eq!(left, ["db", "db2.backup-1-2-3"]);
    }

    /// A backup removed directories of users whose names begin like those of its own.
    #[test]
    fn copies_that_users_made_beside_the_database_are_kept() {
        let parent = tempfile::tempdir().unwrap();
        let database = parent.path().join("db");
        fs::create_dir(&database).unwrap();
        let old = std::time::SystemTime::now() - 2 * OLD;
        for (name, file) in [
            ("db.backup-2026-11-26", "CURRENT"),
            ("db.backup-1-2-3", "table"),
            ("db.backup-x", LOCK),
        ] {
            let dir = parent.path().join(name);
            fs::create_dir(&dir).unwrap();
            fs::write(dir.join(file), "").unwrap();
            fs::write(dir.join("notes"), "").unwrap();
            File::open(&dir).unwrap().set_modified(old).unwrap();
        }
        fs::create_dir(parent.path().join("db.backup-7-8-9")).unwrap();
        let abandoned = parent.path().join("db.backup-4-5-6");
        fs::create_dir_all(abandoned.join(CHECKPOINT)).unwrap();
        File::open(&abandoned).unwrap().set_modified(old).unwrap();
        drop(Staging::create(&database, None).unwrap());
        let mut left = names(parent.path());
        left.sort();
        let others = ["db.backup-1-2-3", "db.backup-2026-11-26", "db.backup-7-8-9", "db.backup-x"];
        assert_eq!(left[0], "db");
        assert_eq!(left[1..], others);
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_can_enter_the_directory() {
        use std::os::unix::fs::PermissionsExt;
        let parent = tempfile::tempdir().unwrap();
        let staging = Staging::create(&parent.path().join("db"), None).unwrap();
        let mode = fs::metadata(&staging.dir).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}
