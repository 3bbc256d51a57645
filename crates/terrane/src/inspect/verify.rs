//! Verifies a whole database: every checksum, the order of keys, and every reference.

use std::path::Path;
use std::sync::Arc;

use super::problem::{Problem, Progress};
use super::table::environment;
use super::values::DirectoryValues;
use super::verify_values::{verify_table_values, verify_value_files};
use crate::base::checksum::RunningChecksum;
use crate::base::error::{Error, Result};
use crate::base::types::{KeyspaceId, Lsn};
use crate::files::consistency::{self, BatchCheck};
use crate::files::log_directory;
use crate::files::manifest::{ManifestState, TableRecord, load_shared, replay};
use crate::files::shared_read::read_shared;
use crate::files::storage::{Access, DiskStorage, Storage};
use crate::files::table::Table;
use crate::files::wal::{LogNotes, Recovery};

/// The result of a verification.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Verification {
    /// Tables read.
    pub tables: u64,
    /// Total size of these tables in bytes.
    pub table_bytes: u64,
    /// Entries in these tables.
    pub entries: u64,
    /// Value files read.
    pub value_files: u64,
    /// Total size of these files in bytes.
    pub value_bytes: u64,
    /// Values in these files.
    pub values: u64,
    /// Writes in the log that are not in tables.
    pub log_writes: u64,
    /// The problems found.
    pub problems: Vec<Problem>,
}

/// Reads and verifies every live file of a database:
///
/// - the manifest, and that the tables of each run are in order and do not overlap;
/// - every table in the manifest: its length, the checksum of the file and of each part, the order
///   of its entries, that index and filter find each of them, and that its properties match the
///   manifest;
/// - every value file, and that each value to which a table refers can be read;
/// - the log;
/// - that the manifest, the log and the tables belong to each other, as opening the database does.
///
/// The database may be open for writing. Tables that a writer replaces meanwhile are skipped.
///
/// # Errors
/// Fails if there is no database or a directory cannot be read. Damage is not an error;
/// [`Verification::problems`] lists it. [`Error::Changed`] if a writer kept changing the log.
pub fn verify(dir: impl AsRef<Path>, progress: &mut dyn FnMut(Progress)) -> Result<Verification> {
    verify_files(dir.as_ref(), DiskStorage.boot_id(), progress)
}

/// Does the same as [`verify`], for files that may come from a power loss although the machine has
/// run without interruption, such as a volume snapshot; see
/// [`Options::after_power_loss`](crate::Options::after_power_loss).
///
/// # Errors
/// Same as for [`verify`].
pub fn verify_after_power_loss(
    dir: impl AsRef<Path>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Verification> {
    verify_files(dir.as_ref(), None, progress)
}

fn verify_files(
    dir: &Path,
    kept_boot: Option<u128>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Verification> {
    let mut found = Verification::default();
    // If the notes cannot be read, the verification of the log reports why.
    let notes = log_directory::find(&DiskStorage, dir);
    let notes = notes.and_then(|dir| LogNotes::read(&DiskStorage, &dir)).unwrap_or_default();
    let loaded = match read_shared(&DiskStorage, dir, || load_shared(&DiskStorage, dir)) {
        Ok(loaded) if loaded.edits.is_empty() => {
            return Err(Error::NoDatabase { path: dir.into() });
        }
        Ok(loaded) => loaded,
        Err(
            error @ (Error::Io(_) | Error::Changed { .. } | Error::UnfinishedCheckpoint { .. }),
        ) => {
            return Err(error);
        }
        Err(error) => {
            found.problems.push(Problem::of(&error, dir));
            return Ok(found);
        }
    };
    if loaded.healed > 0 {
        let what = match loaded.healed {
            1 => "1 damaged frame, whose copy is valid".to_owned(),
            count => format!("{count} damaged frames, whose copies are valid"),
        };
        found.problems.push(Problem::new(loaded.path.as_deref().unwrap_or(dir), what));
    }
    let manifest = match replay(&loaded, dir) {
        Ok(replayed) => replayed,
        Err(error) => {
            found.problems.push(Problem::of(&error, dir));
            return Ok(found);
        }
    };
    let related = consistency::check_manifest(&notes, &manifest, dir);
    found.problems.extend(related.err().map(|error| Problem::of(&error, dir)));
    let state = manifest.state;
    let mut meter = Meter { progress, total_bytes: total_bytes(&state), done_bytes: 0 };
    verify_tables(dir, &state, &mut found, &mut meter)?;
    verify_value_files(dir, &state, &mut found, &mut meter);
    verify_log(dir, kept_boot, &mut found)?;
    Ok(found)
}

/// Reports how many bytes of the files have been read.
pub(super) struct Meter<'a> {
    progress: &'a mut dyn FnMut(Progress),
    total_bytes: u64,
    done_bytes: u64,
}

impl Meter<'_> {
    pub(super) fn add(&mut self, bytes: u64) {
        self.done_bytes += bytes;
        let Self { done_bytes, total_bytes, .. } = *self;
        (self.progress)(Progress { done_bytes, total_bytes });
    }
}

/// Returns the bytes that are read to verify a table, including the values to which it refers.
fn bytes_to_read(table: &TableRecord) -> u64 {
    table.info.size_bytes + table.info.value_bytes()
}

fn total_bytes(state: &ManifestState) -> u64 {
    let keyspaces = || state.keyspaces.values();
    let tables = keyspaces().flat_map(|keyspace| keyspace.tables.values()).map(bytes_to_read);
    let files = keyspaces().flat_map(|keyspace| keyspace.value_files.values());
    tables.chain(files.map(|file| file.size_bytes)).sum()
}

fn verify_tables(
    dir: &Path,
    state: &ManifestState,
    found: &mut Verification,
    meter: &mut Meter<'_>,
) -> Result<()> {
    let values = DirectoryValues::find(dir)?;
    let tables = || {
        let keyspaces = state.keyspaces.iter();
        keyspaces.flat_map(|(id, keyspace)| keyspace.tables.values().map(|table| (*id, table)))
    };
    let environment = environment();
    for (keyspace, record) in tables() {
        let table = Table::new(record.file, Arc::clone(&record.info), dir, &environment);
        let verified = consistency::check_table(&DiskStorage, dir, record)
            .and_then(|()| table.verify())
            .and_then(|()| verify_keyspace(&table, keyspace))
            .and_then(|()| verify_file(table.path(), record))
            .and_then(|()| verify_table_values(&table, &values));
        meter.add(bytes_to_read(record));
        match verified {
            Ok(()) => found.entries += record.info.entries,
            Err(_) if was_replaced(dir, record) => continue,
            Err(error) => found.problems.push(Problem::of(&error, table.path())),
        }
        found.tables += 1;
        found.table_bytes += record.info.size_bytes;
    }
    Ok(())
}

/// Returns true if a writer has removed a table from the manifest since the manifest was read.
fn was_replaced(dir: &Path, record: &TableRecord) -> bool {
    let now = load_shared(&DiskStorage, dir).and_then(|loaded| replay(&loaded, dir));
    now.is_ok_and(|now| {
        let mut tables = now.state.keyspaces.values().flat_map(|keyspace| keyspace.tables.values());
        !tables.any(|table| table.file == record.file)
    })
}

/// Verifies that the manifest assigns a table to the keyspace that its properties name.
fn verify_keyspace(table: &Table, keyspace: KeyspaceId) -> Result<()> {
    let named = KeyspaceId(table.properties()?.keyspace);
    if named != keyspace {
        let detail = format!("it belongs to keyspace {named}, and the manifest says {keyspace}");
        return Err(Error::corruption(table.path(), None, "table", detail));
    }
    Ok(())
}

/// Verifies the checksum of the whole file, which also covers bytes outside its parts.
fn verify_file(path: &Path, record: &TableRecord) -> Result<()> {
    const CHUNK_BYTES: u64 = 1 << 20;
    let io = |error| Error::io("read", path, error);
    let file = DiskStorage.open(path, Access::Buffered).map_err(io)?;
    let mut sum = RunningChecksum::new();
    let mut at = 0;
    while at < record.info.size_bytes {
        let mut chunk = vec![0; CHUNK_BYTES.min(record.info.size_bytes - at) as usize];
        file.read_at(at, &mut chunk).map_err(io)?;
        sum.update(&chunk);
        at += chunk.len() as u64;
    }
    if sum.digest() != record.checksum {
        let detail = "the checksum of the file differs from the manifest";
        return Err(Error::corruption(path, None, "table", detail));
    }
    Ok(())
}

fn verify_log(dir: &Path, kept_boot: Option<u128>, found: &mut Verification) -> Result<()> {
    let replayed = read_shared(&DiskStorage, dir, || {
        // A writer may have freed segments since the tables were verified.
        let state = replay(&load_shared(&DiskStorage, dir)?, dir)?.state;
        let from = state.log_needed_from(Lsn(0));
        let log_dir = log_directory::find(&DiskStorage, dir)?;
        let recovery = Recovery::open_shared(&DiskStorage, &log_dir, state.database, from)?;
        let check = BatchCheck::new(dir, &state);
        let required = state.required_segment;
        let mut is_ahead = false;
        let replayed =
            recovery.replay(&DiskStorage, kept_boot, &log_dir, from, required, |batch| {
                is_ahead = is_ahead || check.is_ahead(&DiskStorage, &batch)?;
                if is_ahead { Ok(()) } else { check.visit(&batch, |_, _, _| {}).map(drop) }
            })?;
        consistency::check_end(&state, &replayed, &log_dir).map(|()| replayed)
    });
    match replayed {
        Ok(replayed) => {
            found.log_writes = replayed.batches;
            if replayed.dropped_records > 0 {
                let what = format!(
                    "{} records after the end of the log; a power failure lost earlier ones",
                    replayed.dropped_records
                );
                found.problems.push(Problem::new(dir, what));
            }
        }
        Err(error @ Error::Changed { .. }) => return Err(error),
        Err(error) => found.problems.push(Problem::of(&error, dir)),
    }
    Ok(())
}
