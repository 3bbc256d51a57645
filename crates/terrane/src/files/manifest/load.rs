//! Finds the manifest of a directory.
//!
//! `CURRENT` names the manifest. A directory without `CURRENT` is one of these:
//!
//! 1. It contains no file of a database.
//! 2. It contains an interrupted creation: manifests and `CURRENT.new`, but no table and no log,
//!    because `CURRENT` is durable before the first table or log file is created. Each manifest is
//!    torn, or states that no table exists and no log is required. The next creation removes them.
//! 3. It contains an unfinished checkpoint. The file `CHECKPOINT` says so: it is durable before any
//!    other file of the checkpoint exists, and is removed after `CURRENT` is durable.
//! 4. It contains a database whose `CURRENT` was lost. That is damage.
//!
//! The first two contain no database, and opening creates one.

use std::path::Path;

use super::edit::Edit;
use super::file::{
    CURRENT, CURRENT_NEW, LoadedManifest, manifest_file_name, manifest_file_number, read_frames,
    read_manifest, read_pointer,
};
use super::state::ManifestState;
use crate::base::error::{Error, Result};
use crate::files::storage::Storage;
use crate::files::table::TableFileId;
use crate::files::value_pointer::ValueFileName;
use crate::files::wal::segment_file_number;

/// The name of the file that marks an unfinished checkpoint. Its contents are informative only.
pub(crate) const CHECKPOINT: &str = "CHECKPOINT";

/// A creation writes no larger manifest: one snapshot with the options and one keyspace, twice.
const CREATION_BYTES_MAX: u64 = 1 << 20;

/// Reads the manifest that `CURRENT` names. Returns no edits if the directory has no database.
pub(crate) fn load(storage: &dyn Storage, dir: &Path) -> Result<LoadedManifest> {
    // The names are listed first: a file that existed while `CURRENT` was missing is a sign of
    // damage, and a file that another process created afterwards is not.
    let names = storage.list(dir).map_err(|error| Error::io("list", dir, error))?;
    let Some(number) = read_pointer(storage, dir)? else {
        check_has_no_database(storage, dir, &names)?;
        return Ok(LoadedManifest::default());
    };
    let name = manifest_file_name(number);
    read_manifest(storage, &dir.join(&name), number).map_err(|error| match &error {
        Error::Io(failure) if failure.source.kind() == std::io::ErrorKind::NotFound => {
            lost_pointer(dir, format!("it names {name}, which does not exist"))
        }
        _ => error,
    })
}

/// Removes the remains of an interrupted creation from a directory without a database. Nothing
/// refers to these files, so a failure does no harm.
pub(crate) fn remove_interrupted_creation(storage: &dyn Storage, dir: &Path) {
    for name in storage.list(dir).unwrap_or_default() {
        if name == CURRENT_NEW || manifest_file_number(&name).is_some() {
            let _ = storage.remove(&dir.join(name));
        }
    }
}

fn lost_pointer(dir: &Path, detail: String) -> Error {
    Error::corruption(&dir.join(CURRENT), None, "pointer to the manifest", detail)
}

/// Refuses a directory without `CURRENT` that nevertheless contains a database or a checkpoint.
fn check_has_no_database(storage: &dyn Storage, dir: &Path, names: &[String]) -> Result<()> {
    if names.iter().any(|name| name == CHECKPOINT) {
        return Err(Error::UnfinishedCheckpoint { path: dir.into() });
    }
    for name in names {
        let is_of_database = match manifest_file_number(name) {
            Some(number) => !is_of_creation(storage, &dir.join(name), number)?,
            None => {
                segment_file_number(name).is_some()
                    || TableFileId::of_file_name(name).is_some()
                    || ValueFileName::of_file_name(name).is_some()
            }
        };
        if is_of_database {
            return Err(lost_pointer(dir, format!("it is missing, but {name} exists")));
        }
    }
    Ok(())
}

/// Returns true if a creation that was interrupted before `CURRENT` existed may have written this
/// manifest.
fn is_of_creation(storage: &dyn Storage, path: &Path, number: u64) -> Result<bool> {
    let len = storage.len(path).map_err(|error| Error::io("check", path, error))?;
    if len > CREATION_BYTES_MAX {
        return Ok(false);
    }
    let mut state = ManifestState::default();
    for versioned in read_frames(storage, path, number)?.edits {
        let corrupt = |detail: String| {
            let detail = format!("edit {}: {detail}", versioned.version);
            Error::corruption(path, None, "manifest", detail)
        };
        let edit = Edit::decode(&versioned.bytes).map_err(|error| error.of_file(path, corrupt))?;
        state.apply(&edit.changes).map_err(corrupt)?;
    }
    let has_tables = state.keyspaces.values().any(|keyspace| !keyspace.tables.is_empty());
    Ok(!has_tables && state.required_segment == 0)
}
