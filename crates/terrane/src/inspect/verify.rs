//! Checks all of a database: every checksum, every order, every reference.

use std::path::Path;
use std::sync::Arc;

use super::table::environment;
use super::{Problem, Progress};
use crate::checksum::RunningChecksum;
use crate::error::{Error, Result};
use crate::manifest::{ManifestState, TableRecord, load, replay};
use crate::storage::{Access, DiskStorage, Storage};
use crate::table::Table;
use crate::types::Lsn;
use crate::wal::Recovery;

/// What a verification has found.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Verification {
    /// Tables that were read.
    pub tables: u64,
    /// Bytes of them.
    pub table_bytes: u64,
    /// Entries in them.
    pub entries: u64,
    /// Writes in the log that are not in tables.
    pub log_writes: u64,
    /// Everything that is wrong.
    pub problems: Vec<Problem>,
}

/// Reads everything of a database that it needs, and checks it.
///
/// Checked are: the manifest, and that its runs are ordered and do not overlap; every table that it
/// names, its length, its checksum as a whole and of each part, the order of its entries, that
/// index and filter lead to each of them, and that it holds what the manifest says; and the log.
/// A database that is being written may change while it is read; verify one that is not.
///
/// # Errors
/// There is no database, or a directory cannot be read. What is wrong with the database itself is
/// part of the answer.
pub fn verify(dir: impl AsRef<Path>, progress: &mut dyn FnMut(Progress)) -> Result<Verification> {
    let dir = dir.as_ref();
    let mut found = Verification::default();
    let loaded = match load(&DiskStorage, dir) {
        Ok(loaded) if loaded.edits.is_empty() => {
            let missing = format!("missing in {}", dir.display());
            return Err(Error::invalid("database", missing, "there to be verified"));
        }
        Ok(loaded) => loaded,
        Err(error @ Error::Io(_)) => return Err(error),
        Err(error) => {
            found.problems.push(Problem::of(&error, dir));
            return Ok(found);
        }
    };
    if loaded.healed > 0 {
        let what = match loaded.healed {
            1 => "1 damaged frame, whose copy is whole".to_owned(),
            count => format!("{count} damaged frames, whose copies are whole"),
        };
        found.problems.push(Problem::new(loaded.path.as_deref().unwrap_or(dir), what));
    }
    let state = match replay(&loaded, dir) {
        Ok(replayed) => replayed.state,
        Err(error) => {
            found.problems.push(Problem::of(&error, dir));
            return Ok(found);
        }
    };
    verify_tables(dir, &state, &mut found, progress);
    verify_log(dir, &state, &mut found);
    Ok(found)
}

fn verify_tables(
    dir: &Path,
    state: &ManifestState,
    found: &mut Verification,
    progress: &mut dyn FnMut(Progress),
) {
    let tables = || state.keyspaces.values().flat_map(|keyspace| keyspace.tables.values());
    let total_bytes = tables().map(|table| table.info.size_bytes).sum();
    let environment = environment();
    for record in tables() {
        let table = Table::new(record.file, Arc::clone(&record.info), dir, &environment);
        match table.verify().and_then(|()| verify_whole(table.path(), record)) {
            Ok(()) => found.entries += record.info.entries,
            Err(error) => found.problems.push(Problem::of(&error, table.path())),
        }
        found.tables += 1;
        found.table_bytes += record.info.size_bytes;
        progress(Progress { done_bytes: found.table_bytes, total_bytes });
    }
}

/// The checksum of a file as a whole, which also covers what no part of it does.
fn verify_whole(path: &Path, record: &TableRecord) -> Result<()> {
    const PIECE_BYTES: u64 = 1 << 20;
    let io = |error| Error::io("read", path, error);
    let file = DiskStorage.open(path, Access::Buffered).map_err(io)?;
    let mut sum = RunningChecksum::new();
    let mut at = 0;
    while at < record.info.size_bytes {
        let mut piece = vec![0; PIECE_BYTES.min(record.info.size_bytes - at) as usize];
        file.read_at(at, &mut piece).map_err(io)?;
        sum.update(&piece);
        at += piece.len() as u64;
    }
    if sum.digest() != record.checksum {
        let detail = "its checksum as a whole is not the one that the manifest has";
        return Err(Error::corruption(path, None, "table", detail));
    }
    Ok(())
}

fn verify_log(dir: &Path, state: &ManifestState, found: &mut Verification) {
    let from = state.log_needed_from(Lsn(0));
    let recovery = Recovery::open(&DiskStorage, dir, state.database);
    let replayed = recovery.and_then(|recovery| {
        recovery.replay(&DiskStorage, dir, from, state.required_segment, |_, _, operations| {
            for operation in crate::batch::Ops::new(operations) {
                operation.map_err(|error| {
                    Error::corruption(dir, None, "log record", error.to_string())
                })?;
            }
            Ok(())
        })
    });
    match replayed {
        Ok(replayed) => {
            found.log_writes = replayed.batches;
            if replayed.dropped_records > 0 {
                let what = format!(
                    "{} records after the end of the log; earlier ones were lost with the power",
                    replayed.dropped_records
                );
                found.problems.push(Problem::new(dir, what));
            }
        }
        Err(error) => found.problems.push(Problem::of(&error, dir)),
    }
}
