//! Which files of a directory the database needs, and the end of the others.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{MutexGuard, PoisonError};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::manifest::ManifestState;
use crate::storage::Storage;
use crate::table::{TableEnvironment, TableFileId};

/// The name of the lock file.
pub(crate) const LOCK: &str = "LOCK";

/// Checks that every table of the state is there, at its length.
pub(crate) fn check_tables(storage: &dyn Storage, dir: &Path, state: &ManifestState) -> Result<()> {
    let names = storage.list(dir).map_err(|error| Error::io("list", dir, error))?;
    let names: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    for keyspace in state.keyspaces.values() {
        for table in keyspace.tables.values() {
            let name = table.file.file_name();
            let path = dir.join(&name);
            let wrong = |detail: String| Error::corruption(&path, None, "table", detail);
            if !names.contains(name.as_str()) {
                return Err(wrong("the file is missing".into()));
            }
            let len = storage.len(&path).map_err(|error| Error::io("look at", &path, error))?;
            if len != table.info.size_bytes {
                let detail = format!(
                    "it is {len} bytes long, and was written with {}",
                    table.info.size_bytes
                );
                return Err(wrong(detail));
            }
        }
    }
    Ok(())
}

/// Removes the file of a table, or another one, that nothing needs any more. What cannot be removed
/// now is tried again, at last when the database is opened next.
pub(crate) fn discard_table(environment: &TableEnvironment, path: &Path) {
    let removed = environment.storage.remove(path);
    if removed.is_err_and(|error| error.kind() != std::io::ErrorKind::NotFound) {
        not_removed(environment).push(path.to_owned());
    }
}

fn not_removed(environment: &TableEnvironment) -> MutexGuard<'_, Vec<PathBuf>> {
    environment.not_removed.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Engine {
    /// Removes what a crash or a failed job left behind. Names that are not of the database are
    /// left alone.
    pub(crate) fn remove_unneeded(&self, unused_logs: &[PathBuf]) -> Result<()> {
        let needed: BTreeSet<TableFileId> = {
            let guard = self.lock_manifest();
            let keyspaces = guard.iter().flat_map(|manifest| manifest.state().keyspaces.values());
            keyspaces
                .flat_map(|keyspace| keyspace.tables.values().map(|table| table.file))
                .collect()
        };
        let names = self.storage.list(&self.dir);
        let mut unneeded = Vec::new();
        for name in names.map_err(|error| Error::io("list", &self.dir, error))? {
            let path = self.dir.join(&name);
            let is_unneeded = match TableFileId::of_file_name(&name) {
                Some(id) => !needed.contains(&id),
                None => unused_logs.contains(&path),
            };
            if is_unneeded {
                unneeded.push(path);
            }
        }
        // What is promised to be gone in time does not wait for a thread to have some.
        if self.is_inline() || self.settings.delete_persistence_micros().is_some() {
            self.remove_files(unneeded);
        } else {
            // Removing a large file takes milliseconds, for which nobody need wait.
            self.work.remove_later(unneeded);
        }
        Ok(())
    }

    /// Tries again to remove what could not be.
    pub(crate) fn remove_again(&self) {
        let paths = std::mem::take(&mut *not_removed(&self.tables));
        paths.iter().for_each(|path| discard_table(&self.tables, path));
    }

    /// Whether there is something that could not be removed.
    pub(crate) fn has_not_removed(&self) -> bool {
        !not_removed(&self.tables).is_empty()
    }

    /// Removes files that nothing needs. Their names are not given again while they are there.
    pub(crate) fn remove_files(&self, paths: Vec<PathBuf>) {
        for path in paths {
            // Not being able to tidy up is no reason not to go on.
            discard_table(&self.tables, &path);
        }
    }
}
