//! Reads separated values from the value files of a directory, without a manifest.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::problem::Problem;
use super::table::environment;
use crate::base::error::{Error, Result};
use crate::files::storage::{DiskStorage, Storage};
use crate::files::value::Value;
use crate::files::value_file::ValueFile;
use crate::files::value_pointer::{ValueFileName, ValuePointer};

/// The value files of a directory, and the values that could not be read.
#[derive(Debug)]
pub(super) struct DirectoryValues {
    dir: PathBuf,
    /// The files by number. Files of several databases may have the same number; a pointer fits
    /// only one of them.
    files: BTreeMap<u64, Vec<Arc<ValueFile>>>,
    lost: BTreeMap<u64, LostValues>,
}

/// The values of a file that could not be read.
#[derive(Debug)]
struct LostValues {
    count: u64,
    first: Error,
    first_key: Vec<u8>,
}

impl DirectoryValues {
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Finds the value files of a directory.
    pub(super) fn find(dir: &Path) -> Result<Self> {
        let names = DiskStorage.list(dir).map_err(|error| Error::io("list", dir, error))?;
        let environment = environment();
        let mut files: BTreeMap<u64, Vec<Arc<ValueFile>>> = BTreeMap::new();
        for name in names.iter().filter_map(|name| ValueFileName::of_file_name(name)) {
            let path = dir.join(name.file_name());
            let len = match DiskStorage.len(&path) {
                Ok(len) => len,
                // A writer has removed the file since the directory was listed.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(Error::io("check", &path, error)),
            };
            let file = ValueFile::new(name, len, dir, &environment);
            files.entry(name.number).or_default().push(file);
        }
        Ok(Self { dir: dir.to_owned(), files, lost: BTreeMap::new() })
    }

    /// Reads the value to which an encoded pointer refers.
    pub(super) fn read(&self, encoded: &[u8]) -> Result<Value> {
        let bad = |detail: String| Error::corruption(&self.dir, None, "value pointer", detail);
        let pointer = ValuePointer::decode(encoded).map_err(|error| bad(error.to_string()))?;
        let missing = || bad(format!("value file {} is missing", pointer.file));
        let mut result = Err(missing());
        for file in self.files.get(&pointer.file).into_iter().flatten() {
            result = file.read_once(&pointer);
            if result.is_ok() {
                break;
            }
        }
        result
    }

    /// Reads the value of an entry. If that fails, records the loss and returns `None`.
    pub(super) fn salvage(&mut self, key: &[u8], encoded: &[u8]) -> Option<Value> {
        match self.read(encoded) {
            Ok(value) => Some(value),
            Err(error) => {
                let file = ValuePointer::decode(encoded).map_or(0, |pointer| pointer.file);
                let lost = self.lost.entry(file).or_insert_with(|| LostValues {
                    count: 0,
                    first: error,
                    first_key: key.to_vec(),
                });
                lost.count += 1;
                None
            }
        }
    }

    /// Returns a problem for each file with values that could not be read, and removes them.
    pub(super) fn take_problems(&mut self) -> Vec<Problem> {
        let lost = std::mem::take(&mut self.lost);
        let problem = |(_, lost): (u64, LostValues)| {
            let LostValues { count, first, first_key } = lost;
            let key = first_key.escape_ascii();
            let what = match count {
                1 => format!("the value of key '{key}' cannot be read: {first}"),
                _ => {
                    format!("{count} values cannot be read, the first under key '{key}': {first}")
                }
            };
            Problem::new(&self.dir, what)
        };
        lost.into_iter().map(problem).collect()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// A dangling link behaves like the name of a file that has been removed.
    #[test]
    fn a_file_that_was_removed_since_it_was_listed_is_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let name = ValueFileName { number: 3, writer: 1 };
        std::os::unix::fs::symlink("nothing", dir.path().join(name.file_name())).unwrap();
        assert!(DirectoryValues::find(dir.path()).unwrap().files.is_empty());
    }
}
