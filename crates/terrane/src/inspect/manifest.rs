//! Prints the edits of a manifest as text.

use std::path::Path;

use terrane_policy::units::format_micros;

use crate::base::error::{Error, Result};
use crate::files::manifest::{
    Change, Edit, LoadedManifest, load_shared, manifest_file_number, read_manifest,
};
use crate::files::shared_read::read_shared;
use crate::files::storage::DiskStorage;

/// A manifest edit; the first edit of a file is a snapshot.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ManifestEdit {
    /// The version; it increases by one with each edit.
    pub version: u64,
    /// The number of the opening of the database that wrote the edit.
    pub epoch: u64,
    /// The changes as text.
    pub changes: Vec<String>,
}

/// Returns the edits of the manifest of a database, or of a manifest file.
///
/// # Errors
/// Fails if there is no manifest or it is corrupt.
pub fn manifest(path: impl AsRef<Path>) -> Result<Vec<ManifestEdit>> {
    let path = path.as_ref();
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
    let loaded: LoadedManifest = match manifest_file_number(name) {
        Some(number) => read_manifest(&DiskStorage, path, number)?,
        None => read_shared(&DiskStorage, path, || load_shared(&DiskStorage, path))?,
    };
    if loaded.edits.is_empty() {
        return Err(Error::NoDatabase { path: path.into() });
    }
    let file = loaded.path.as_deref().unwrap_or(path);
    let decode = |versioned: &crate::files::manifest::Versioned| {
        let edit = Edit::decode(&versioned.bytes).map_err(|error| {
            error.of_file(file, |detail| Error::corruption(file, None, "manifest", detail))
        })?;
        let changes = edit.changes.iter().map(describe).collect();
        Ok(ManifestEdit { version: edit.version, epoch: edit.epoch, changes })
    };
    loaded.edits.iter().map(decode).collect()
}

fn describe(change: &Change) -> String {
    match change {
        Change::Database(id) => format!("database {id:016x}"),
        Change::NextTable(next) => format!("next table {next}"),
        Change::NextRun(next) => format!("next run {next}"),
        Change::NextKeyspace(next) => format!("next keyspace {next}"),
        Change::LastSeq(seq) => format!("last sequence number {seq}"),
        Change::RequiredSegment(segment) => format!("required log segment {segment}"),
        Change::LastIngest(seq) => format!("the last ingest has sequence number {seq}"),
        Change::ChangesFrom(from) if from.0 == u64::MAX => {
            "the log is kept for readers of changes".to_owned()
        }
        Change::ChangesFrom(from) => format!("readers of changes begin at position {from}"),
        Change::LogDurable(upto) => format!("the log is durable up to position {upto}"),
        Change::Option { name, value } => format!("option {name}={value}"),
        Change::Keyspace { keyspace, name, design } => {
            format!("keyspace {keyspace} '{name}': {design}")
        }
        Change::DropKeyspace(keyspace) => format!("drop keyspace {keyspace}"),
        Change::Flushed { keyspace, upto } => {
            format!("keyspace {keyspace} is flushed up to log position {upto}")
        }
        Change::AddTable { keyspace, level, run, table } => {
            let file = table.file.file_name();
            format!("keyspace {keyspace} adds to L{level} r{run}: {} in {file}", table.info)
        }
        Change::Operations(counts) => format!(
            "operation history of {} operations: {} writes with {} deletes, {} lookups with {} \
             hits, {} scans of {} entries",
            counts.total(),
            counts.writes,
            counts.deletes,
            counts.gets,
            counts.gets_found,
            counts.scans,
            counts.scan_entries
        ),
        Change::Job(job) => format!("keyspace {} merged {}: {}", job.keyspace, job.what, job.why),
        Change::ValueFile { keyspace, file } => {
            let (name, info) = (file.name.file_name(), &file.info);
            let (bytes, values) = (info.bytes, info.values);
            format!("keyspace {keyspace} has value file {name}: {values} values, {bytes} bytes")
        }
        Change::RemoveValueFile { keyspace, file } => {
            format!("keyspace {keyspace} removes value file {file}")
        }
        Change::MergeOperator { keyspace, name } => {
            format!("keyspace {keyspace} merges with {name}")
        }
        Change::CompactionFilter { keyspace, name } if name.is_empty() => {
            format!("compactions of keyspace {keyspace} filter nothing")
        }
        Change::CompactionFilter { keyspace, name } => {
            format!("compactions of keyspace {keyspace} filter with {name}")
        }
        Change::KeyspaceTtl { keyspace, ttl_micros: 0 } => {
            format!("values of keyspace {keyspace} do not expire")
        }
        Change::KeyspaceTtl { keyspace, ttl_micros } => {
            let ttl = format_micros(*ttl_micros);
            format!("values of keyspace {keyspace} expire after {ttl}")
        }
        Change::RemoveTable { keyspace, table } => {
            format!("keyspace {keyspace} removes table {table}")
        }
    }
}
