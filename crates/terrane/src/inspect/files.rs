//! The files that make up a database, for programs that copy them.

use std::path::Path;

use terrane_policy::{Design, ValueFileState};

use crate::base::error::{Error, Result};
use crate::files::manifest::{ManifestState, TableRecord, ValueFileRecord, load_shared, replay};
use crate::files::shared_read::read_shared;
use crate::files::storage::DiskStorage;

/// The identity of a database, and the tables and value files that its manifest lists.
///
/// The manifest, `CURRENT` and the log also belong to a database, but change while it is open, and
/// are not listed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DatabaseFiles {
    /// The number of the database. A checkpoint has the number of its original.
    pub database: u64,
    /// The version of the manifest, which increases by one with each of its edits.
    pub version: u64,
    /// The keyspaces with their designs.
    pub keyspaces: Vec<(String, Design)>,
    /// The tables and value files.
    pub files: Vec<FileFacts>,
}

/// What the manifest states about a table or a value file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileFacts {
    /// The name in the database's directory. No other file of the database ever has it, because it
    /// contains the writer's random number.
    pub name: String,
    /// The length of the file.
    pub bytes: u64,
    /// XXH3-64 of the whole file with seed 0; `None` for value files, which have a checksum for each
    /// value instead.
    pub checksum: Option<u64>,
    /// False if the file may still change, although its length does not: it is a log segment that
    /// contains separated values.
    pub is_final: bool,
}

impl FileFacts {
    fn of_table(table: &TableRecord) -> Self {
        Self {
            name: table.file.file_name(),
            bytes: table.info.size_bytes,
            checksum: Some(table.checksum),
            is_final: true,
        }
    }

    fn of_value_file(file: &ValueFileRecord) -> Self {
        Self {
            name: file.name.file_name(),
            bytes: file.size_bytes,
            checksum: None,
            is_final: !file.is_segment || file.info.state == ValueFileState::Settled,
        }
    }
}

/// Returns the identity and the files of a database, from its manifest alone. For a
/// [checkpoint](crate::Db::checkpoint) the files are all tables and value files in the directory.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// let db = terrane::Db::open(dir.path())?;
/// db.put("key", "value")?;
/// db.flush()?;
/// let found = terrane::inspect::files(dir.path())?;
/// assert_eq!(found.files.len(), 1);
/// let table = dir.path().join(&found.files[0].name);
/// assert_eq!(found.files[0].bytes, std::fs::metadata(table).unwrap().len());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// There is no database, its manifest is corrupt, or a file cannot be read.
pub fn files(dir: impl AsRef<Path>) -> Result<DatabaseFiles> {
    let dir = dir.as_ref();
    let loaded = read_shared(&DiskStorage, dir, || load_shared(&DiskStorage, dir))?;
    if loaded.edits.is_empty() {
        return Err(Error::NoDatabase { path: dir.into() });
    }
    let replayed = replay(&loaded, dir)?;
    Ok(DatabaseFiles {
        database: replayed.state.database,
        version: replayed.version,
        keyspaces: keyspaces(&replayed.state),
        files: facts(&replayed.state),
    })
}

fn keyspaces(state: &ManifestState) -> Vec<(String, Design)> {
    let keyspaces = state.keyspaces.values();
    keyspaces.map(|keyspace| (keyspace.name.clone(), (*keyspace.design).clone())).collect()
}

fn facts(state: &ManifestState) -> Vec<FileFacts> {
    let keyspaces = || state.keyspaces.values();
    let tables = keyspaces().flat_map(|keyspace| keyspace.tables.values());
    let values = keyspaces().flat_map(|keyspace| keyspace.value_files.values());
    tables.map(FileFacts::of_table).chain(values.map(FileFacts::of_value_file)).collect()
}
