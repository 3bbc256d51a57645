//! A separate directory for the log.
//!
//! Two small files connect a database with such a directory. `LOGDIR`, in the directory of the
//! database, states where the log is. `DATABASE`, in the directory of the log, states whose log it
//! is. The invariants, which [`crate::engine`] maintains:
//!
//! 1. `LOGDIR` decides: the log is in the directory that it names, and next to the tables if it does
//!    not exist. It is replaced after the log is complete and durable in the new place.
//! 2. A directory has segments of only one database, whose `DATABASE` or `DATABASE.new` is older
//!    than the first segment. With `DATABASE.new` alone, the segments are an unfinished copy.
//! 3. A writer holds the locks of both directories.
//!
//! Readers and [`crate::inspect`] find the log with [`find`].

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::base::checksum::checksum;
use crate::base::error::{Error, Result};
use crate::files::storage::{Access, Storage};
use crate::files::wal::segment_file_number;

/// The name of the file that states where the log is.
pub(crate) const LOGDIR: &str = "LOGDIR";
/// The name of an incomplete `LOGDIR`.
const LOGDIR_NEW: &str = "LOGDIR.new";
/// The name of the file that states whose log a directory contains.
pub(crate) const DATABASE: &str = "DATABASE";
/// The name of `DATABASE` while the log is not complete.
pub(crate) const DATABASE_NEW: &str = "DATABASE.new";

/// Returns true if `name` is one of these files, complete or not.
pub(crate) fn is_pointer(name: &str) -> bool {
    [LOGDIR, LOGDIR_NEW, DATABASE, DATABASE_NEW].contains(&name)
}

/// A longer file is damaged. Paths are at most 4,096 bytes long on Linux.
const BYTES_MAX: u64 = 64 << 10;

/// The contents of `LOGDIR`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogPointer {
    /// The database. Its creation may have been interrupted before it had a manifest.
    pub(crate) database: u64,
    /// The directory of the log. A relative path counts from the directory of the database.
    pub(crate) path: String,
}

impl LogPointer {
    /// Reads the pointer of the database in `dir`; `None` if the log is in `dir`.
    pub(crate) fn read(storage: &dyn Storage, dir: &Path) -> Result<Option<Self>> {
        let file = dir.join(LOGDIR);
        let Some(lines) = read_lines(storage, &file)? else { return Ok(None) };
        let pointer = match &lines[..] {
            [database, path] => u64::from_str_radix(database, 16)
                .ok()
                .map(|database| Self { database, path: path.clone() }),
            _ => None,
        };
        pointer.map(Some).ok_or_else(|| damaged(&file))
    }

    /// Replaces the pointer of the database in `dir`, and makes it durable.
    pub(crate) fn write(&self, storage: &dyn Storage, dir: &Path) -> Result<()> {
        let (new, file) = (dir.join(LOGDIR_NEW), dir.join(LOGDIR));
        write_lines(storage, &new, &[&format!("{:016x}", self.database), &self.path])?;
        storage.rename(&new, &file).map_err(|error| Error::io("rename", &new, error))?;
        sync_dir(storage, dir)
    }

    /// Removes the pointer of the database in `dir`, if there is one, and makes that durable.
    pub(crate) fn remove(storage: &dyn Storage, dir: &Path) -> Result<()> {
        remove_if_exists(storage, &dir.join(LOGDIR_NEW))?;
        remove_if_exists(storage, &dir.join(LOGDIR))?;
        sync_dir(storage, dir)
    }

    /// Returns the directory of the log of the database in `dir`.
    pub(crate) fn log_dir(&self, dir: &Path) -> PathBuf {
        dir.join(&self.path)
    }
}

/// Returns the directory with the log of the database in `dir`, which a writer may be moving.
///
/// # Errors
/// [`Error::NoLogDirectory`] if the log is not where the database says, and
/// [`Error::LogDirectoryTaken`] if that directory has another database's log.
pub(crate) fn find(storage: &dyn Storage, dir: &Path) -> Result<PathBuf> {
    let mut pointer = LogPointer::read(storage, dir)?;
    loop {
        let Some(found) = &pointer else { return Ok(dir.to_owned()) };
        let log_dir = found.log_dir(dir);
        let checked = check_owner(storage, dir, &log_dir, found.database);
        if checked.is_ok() {
            return Ok(log_dir);
        }
        // A writer may have moved the log since the pointer was read.
        let now = LogPointer::read(storage, dir)?;
        if now == pointer {
            return checked.map(|()| log_dir);
        }
        pointer = now;
    }
}

/// Returns the database whose complete log is in `log_dir`, if any.
pub(crate) fn owner(storage: &dyn Storage, log_dir: &Path) -> Result<Option<u64>> {
    read_owner(storage, &log_dir.join(DATABASE))
}

/// Returns the database whose log was being copied to `log_dir`, if any. The file may be torn; then
/// no segment was copied.
pub(crate) fn next_owner(storage: &dyn Storage, log_dir: &Path) -> Result<Option<u64>> {
    match read_owner(storage, &log_dir.join(DATABASE_NEW)) {
        Err(Error::Corruption(_)) => Ok(None),
        other => other,
    }
}

/// Fails unless the log of `database`, which is in `dir`, is in `log_dir`.
pub(crate) fn check_owner(
    storage: &dyn Storage,
    dir: &Path,
    log_dir: &Path,
    database: u64,
) -> Result<()> {
    match owner(storage, log_dir)? {
        Some(owner) if owner == database => Ok(()),
        Some(_) => Err(Error::LogDirectoryTaken { path: log_dir.into() }),
        None => Err(Error::NoLogDirectory { database: dir.into(), path: log_dir.into() }),
    }
}

/// Claims `log_dir` for the log of `database`, which is not complete yet, and makes that durable.
pub(crate) fn claim(storage: &dyn Storage, log_dir: &Path, database: u64) -> Result<()> {
    let new = log_dir.join(DATABASE_NEW);
    // An earlier claim is replaced only while the directory has no segments. Otherwise a crash between
    // the removal and the creation would leave segments without an owner.
    let names = storage.list(log_dir).map_err(|error| Error::io("list", log_dir, error))?;
    let has_log = names.iter().any(|name| segment_file_number(name).is_some());
    if !has_log || read_owner(storage, &new)? != Some(database) {
        write_lines(storage, &new, &[&format!("{database:016x}")])?;
    }
    sync_dir(storage, log_dir)
}

/// States that the log in `log_dir` is complete, after making it durable.
pub(crate) fn complete(storage: &dyn Storage, log_dir: &Path) -> Result<()> {
    sync_dir(storage, log_dir)?;
    let (new, file) = (log_dir.join(DATABASE_NEW), log_dir.join(DATABASE));
    storage.rename(&new, &file).map_err(|error| Error::io("rename", &new, error))?;
    sync_dir(storage, log_dir)
}

fn read_owner(storage: &dyn Storage, file: &Path) -> Result<Option<u64>> {
    let Some(lines) = read_lines(storage, file)? else { return Ok(None) };
    let database = match &lines[..] {
        [database] => u64::from_str_radix(database, 16).ok(),
        _ => None,
    };
    database.map(Some).ok_or_else(|| damaged(file))
}

/// Writes a file of lines, followed by a line with their checksum. Does not make its name durable.
fn write_lines(storage: &dyn Storage, file: &Path, lines: &[&str]) -> Result<()> {
    let mut text: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
    text.push_str(&format!("{:016x}\n", checksum(text.as_bytes(), 0)));
    // A crash may have left this file behind.
    remove_if_exists(storage, file)?;
    let created = storage.create(file, Access::Buffered);
    let mut created = created.map_err(|error| Error::io("create", file, error))?;
    created.append(text.as_bytes()).map_err(|error| Error::io("append to", file, error))?;
    created.sync().map_err(|error| Error::io("sync", file, error))
}

/// Returns the lines of a file, without the checksum line; `None` if the file does not exist.
fn read_lines(storage: &dyn Storage, file: &Path) -> Result<Option<Vec<String>>> {
    let read = || -> std::io::Result<Vec<u8>> {
        let len = storage.len(file)?;
        let mut bytes = vec![0; usize::try_from(len.min(BYTES_MAX)).unwrap_or(0)];
        storage.open(file, Access::Buffered)?.read_at(0, &mut bytes)?;
        Ok(bytes)
    };
    let bytes = match read() {
        Ok(bytes) => bytes,
        // If the directory does not exist, neither does the file.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("read", file, error)),
    };
    let text = String::from_utf8(bytes).map_err(|_| damaged(file))?;
    let lines = text.strip_suffix('\n').and_then(|text| text.rsplit_once('\n'));
    let (lines, sum) = lines.ok_or_else(|| damaged(file))?;
    let expected = checksum(&text.as_bytes()[..=lines.len()], 0);
    if format!("{expected:016x}") != sum {
        return Err(damaged(file));
    }
    Ok(Some(lines.split('\n').map(str::to_owned).collect()))
}

fn damaged(file: &Path) -> Error {
    let detail = "its checksum does not match, or its lines are not those of this file";
    Error::corruption(file, None, "directory of the log", detail)
}

/// Removes a file, unless it does not exist.
pub(crate) fn remove_if_exists(storage: &dyn Storage, file: &Path) -> Result<()> {
    match storage.remove(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("remove", file, error)),
        _ => Ok(()),
    }
}

fn sync_dir(storage: &dyn Storage, dir: &Path) -> Result<()> {
    storage.sync_dir(dir).map_err(|error| Error::io("sync", dir, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::storage::MemoryStorage;

    const DIR: &str = "db";

    fn storage() -> MemoryStorage {
        let storage = MemoryStorage::new(1);
        storage.create_dir_all(Path::new(DIR)).unwrap();
        storage.create_dir_all(Path::new("db/wal")).unwrap();
        storage
    }

    #[test]
    fn a_log_is_next_to_the_tables_or_where_the_pointer_says() {
        let storage = storage();
        assert_eq!(find(&storage, Path::new(DIR)).unwrap(), Path::new(DIR));
        let pointer = LogPointer { database: 77, path: "wal".to_owned() };
        pointer.write(&storage, Path::new(DIR)).unwrap();
        assert_eq!(LogPointer::read(&storage, Path::new(DIR)).unwrap(), Some(pointer));
        let error = find(&storage, Path::new(DIR)).unwrap_err();
        assert!(matches!(error, Error::NoLogDirectory { .. }), "{error}");
        claim(&storage, Path::new("db/wal"), 77).unwrap();
        assert!(find(&storage, Path::new(DIR)).is_err(), "the copy is not complete");
        complete(&storage, Path::new("db/wal")).unwrap();
        assert_eq!(find(&storage, Path::new(DIR)).unwrap(), Path::new("db/wal"));
        claim(&storage, Path::new("db/wal"), 78).unwrap();
        complete(&storage, Path::new("db/wal")).unwrap();
        let error = find(&storage, Path::new(DIR)).unwrap_err();
        assert!(matches!(error, Error::LogDirectoryTaken { .. }), "{error}");
    }

    #[test]
    fn every_damaged_byte_and_every_cut_is_detected() {
        let storage = storage();
        let dir = Path::new(DIR);
        LogPointer { database: 77, path: "/fast/wal".to_owned() }.write(&storage, dir).unwrap();
        let file = dir.join(LOGDIR);
        let good = storage.read(&file).unwrap();
        let check = |bytes: &[u8], what: &str| {
            storage.remove(&file).unwrap();
            storage.create(&file, Access::Buffered).unwrap().append(bytes).unwrap();
            let error = LogPointer::read(&storage, dir).unwrap_err();
            assert!(matches!(error, Error::Corruption(_)), "{what}: {error}");
        };
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bytes = good.clone();
                bytes[at] ^= 1 << bit;
                check(&bytes, &format!("byte {at}, bit {bit}"));
            }
            check(&good[..at], &format!("cut at {at}"));
        }
    }
}
