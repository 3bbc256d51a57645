//! Finds the files in a directory that the database does not need, and removes them.
//!
//! While a reader opens the database, no file is removed and no log segment is reused, unless the
//! reader takes too long (see [`crate::files::storage::OpeningReaders`]). The flush thread catches
//! up soon after the reader has finished, and closing tries once more.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use super::Catalog;
use crate::base::error::{Error, Result};
use crate::engine::context::{Context, reserve_bytes};
use crate::files::table::{TableEnvironment, TableFileId};
use crate::files::value_pointer::ValueFileName;
use crate::files::wal::segment_file_number;

/// The name of the lock file.
pub(crate) const LOCK: &str = "LOCK";

/// How often removals that failed are retried.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// How often removals that were postponed for a reader are retried.
const RETRY_AFTER_READER: Duration = Duration::from_millis(50);

/// A new database gets its disk reserve with its first table, so that it takes no more space than it needs,
/// unless its keyspaces make its manifest as long as this.
pub(crate) const LONG_MANIFEST_BYTES: u64 = 256 << 10;

/// Removes a file that nothing needs. If the removal fails or a reader may need the file, the
/// removal is retried later, at the latest when the database is next opened.
pub(crate) fn discard_table(environment: &TableEnvironment, path: &Path) {
    if !environment.owner.is_this_process() {
        // The parent may still need the file.
        return;
    }
    let id = path.file_name().and_then(|name| name.to_str()).and_then(TableFileId::of_file_name);
    // Drops blocks that were kept in memory for a table that was never opened.
    drop(id.and_then(|id| environment.warm.take(id)));
    if readers_need_files(environment) {
        return failed_removals(environment).push(path.to_owned());
    }
    let removed = environment.storage.remove(path);
    if removed.is_err_and(|error| error.kind() != std::io::ErrorKind::NotFound) {
        failed_removals(environment).push(path.to_owned());
    }
}

fn readers_need_files(environment: &TableEnvironment) -> bool {
    environment.opening_readers.need_files(environment.clock.now_micros())
}

fn failed_removals(environment: &TableEnvironment) -> MutexGuard<'_, Vec<PathBuf>> {
    environment.not_removed.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Catalog {
    /// Removes the files that a crash or a failed job left behind. Leaves files alone whose names
    /// the database does not use.
    pub(crate) fn remove_unneeded(&self, unused_logs: &[PathBuf]) -> Result<()> {
        let Context { storage, dir, settings, .. } = &*self.context;
        let needed: BTreeSet<String> = {
            let guard = self.lock_manifest();
            let keyspaces = guard.iter().flat_map(|manifest| manifest.state().keyspaces.values());
            let names = keyspaces.flat_map(|keyspace| {
                let tables = keyspace.tables.values().map(|table| table.file.file_name());
                tables.chain(keyspace.value_files.values().map(|file| file.name.file_name()))
            });
            names.collect()
        };
        let names = storage.list(dir);
        let mut unneeded = Vec::new();
        for name in names.map_err(|error| Error::io("list", dir, error))? {
            let path = dir.join(&name);
            let is_table_or_values = TableFileId::of_file_name(&name).is_some()
                || ValueFileName::of_file_name(&name).is_some();
            let is_unneeded = match segment_file_number(&name) {
                // A crash interrupted the removal of a log that had been moved.
                Some(_) => self.context.has_log_apart() || unused_logs.contains(&path),
                None => is_table_or_values && !needed.contains(&name),
            };
            if is_unneeded {
                unneeded.push(path);
            }
        }
        if self.context.has_log_apart() {
            unneeded.extend_from_slice(unused_logs);
        }
        // If deletes have a deadline, the files are removed now and not later by the flush thread.
        if self.context.is_inline() || settings.delete_persistence_micros().is_some() {
            self.remove_files(unneeded);
        } else {
            // Removing a large file takes milliseconds, which would delay the opening.
            let mut queue = self.unneeded.lock().unwrap_or_else(PoisonError::into_inner);
            queue.extend(unneeded);
            drop(queue);
            self.context.signals.wake();
        }
        Ok(())
    }

    /// Fills the disk reserve, or lengthens it if the database has outgrown it. Does nothing while the
    /// manifest is shorter than `manifest_bytes_min`.
    ///
    /// Called without the lock of the manifest, because a file system may have to write the reserve.
    pub(crate) fn fill_reserve(&self, manifest_bytes_min: u64) {
        let guard = self.lock_manifest();
        let Some(manifest) = &*guard else { return };
        // After a failed edit the length is unknown. The next call has it.
        let long_enough = manifest.len_bytes().filter(|bytes| *bytes >= manifest_bytes_min);
        let Some(manifest_bytes) = long_enough else { return };
        let table_bytes = manifest.state().table_bytes();
        drop(guard);
        let segment_bytes = self.context.settings.log_segment_bytes();
        self.context.fill_reserve(reserve_bytes(table_bytes, manifest_bytes, segment_bytes));
    }

    /// Returns the next file that the flush thread is to remove.
    pub(crate) fn next_unneeded(&self) -> Option<PathBuf> {
        self.unneeded.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Retries the removals that failed or were postponed for a reader.
    pub(crate) fn retry_removals(&self) {
        let tables = &self.context.tables;
        if !self.has_failed_removals() || readers_need_files(tables) {
            return;
        }
        let paths = std::mem::take(&mut *failed_removals(tables));
        paths.iter().for_each(|path| discard_table(tables, path));
        // Relaxed: a thread that sets the flag concurrently leaves it set for the next retry.
        if self.is_log_kept.swap(false, Ordering::Relaxed) {
            self.release_log();
        }
    }

    /// Returns true if the log must keep its files for a reader. If so, its release is retried.
    pub(super) fn keep_log_for_readers(&self) -> bool {
        let is_kept = readers_need_files(&self.context.tables);
        if is_kept && !self.is_log_kept.swap(true, Ordering::Relaxed) {
            self.context.signals.wake();
        }
        is_kept
    }

    /// Returns true if a removal has failed or was postponed, and has not been retried yet.
    pub(crate) fn has_failed_removals(&self) -> bool {
        self.is_log_kept.load(Ordering::Relaxed)
            || !failed_removals(&self.context.tables).is_empty()
    }

    /// Returns the time until the removals are to be retried; `None` if there are none.
    pub(crate) fn time_to_removals(&self) -> Option<Duration> {
        let is_put_off = self.context.tables.opening_readers.were_found();
        let after = if is_put_off { RETRY_AFTER_READER } else { RETRY_AFTER };
        self.has_failed_removals().then_some(after)
    }

    /// Removes files that nothing needs. Their names are not reused while the files exist.
    pub(crate) fn remove_files(&self, paths: Vec<PathBuf>) {
        for path in paths {
            // A removal that fails is retried; it is not the caller's error.
            discard_table(&self.context.tables, &path);
        }
    }
}
