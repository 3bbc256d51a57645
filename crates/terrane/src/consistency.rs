//! Relates the manifest, the log and the tables of a database to each other.
//!
//! The checksums of a file detect damage within the file. A file that is intact but older or shorter
//! than the others expect is detected here. Opening for writing, opening read-only and
//! [`inspect::verify`](crate::inspect::verify) make the same checks, so that they agree about every
//! directory. The files hold these relations after every crash, because the engine makes the first
//! file of each durable before the second:
//!
//! 1. The manifest has every edit that a note in the log states.
//! 2. Every table of the manifest exists with its recorded length.
//!
//! A reader beside a writer reads the notes first, then the manifest, then the log. Relation 1 then
//! holds although the writer goes on.

use std::path::Path;

use crate::error::{Error, Result};
use crate::manifest::{ManifestState, RecoveredState, TableRecord};
use crate::storage::Storage;
use crate::wal::LogNotes;

/// Checks relation 1: refuses a manifest that lost edits which the log records as durable.
pub(crate) fn check_manifest(notes: &LogNotes, found: &RecoveredState, dir: &Path) -> Result<()> {
    let recorded = notes.manifest_version(found.state.database);
    if recorded <= found.version {
        return Ok(());
    }
    let detail =
        format!("it ends at version {}, and the log knows of version {recorded}", found.version);
    Err(Error::corruption(dir, None, "manifest", detail))
}

/// Checks relation 2 for all tables.
pub(crate) fn check_tables(storage: &dyn Storage, dir: &Path, state: &ManifestState) -> Result<()> {
    let keyspaces = state.keyspaces.values();
    let mut tables = keyspaces.flat_map(|keyspace| keyspace.tables.values());
    tables.try_for_each(|table| check_table(storage, dir, table))
}

/// Checks relation 2 for one table.
pub(crate) fn check_table(storage: &dyn Storage, dir: &Path, table: &TableRecord) -> Result<()> {
    let path = dir.join(table.file.file_name());
    let damaged = |detail: String| Err(Error::corruption(&path, None, "table", detail));
    match storage.len(&path) {
        Ok(len) if len == table.info.size_bytes => Ok(()),
        Ok(len) => damaged(format!(
            "it is {len} bytes long, and was written with {}",
            table.info.size_bytes
        )),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            damaged("the file is missing".into())
        }
        Err(error) => Err(Error::io("look at", &path, error)),
    }
}
