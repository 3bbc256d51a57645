//! Relates the manifest, the log and the tables of a database to each other.
//!
//! The checksums of a file detect damage within the file. This module detects a file that is intact but
//! older or shorter than the other files expect. Opening for writing, opening read-only and
//! [`inspect::verify`](crate::inspect::verify) make the same checks, so that they agree about every
//! directory. The relations hold after every crash:
//!
//! 1. The manifest has every edit that a note in the log states, because the note is written once
//!    the edit is durable.
//! 2. Every table and every value file of the manifest exists with its recorded length, because it is
//!    synced before the edit that adds it.
//! 3. No record of the log names a keyspace that the manifest has never created, because the edit
//!    that creates a keyspace is durable before its first write.
//! 4. A record that a keyspace needs has higher sequence numbers than the tables of the keyspace,
//!    because a memtable ends at a position of the log and at a sequence number.
//! 5. If some keyspace needs records, the log reaches the position that the manifest states as
//!    durable. The tables of the other keyspaces may hold the later parts of batches whose earlier
//!    parts are in these records.
//!
//! The log may end before the position up to which a keyspace is flushed, because for an idle keyspace
//! that position is the end of the log, synced or not. A table file with a higher number than those in
//! the manifest is not a sign of damage either, because a crash leaves files of unfinished jobs.
//!
//! A reader alongside a writer reads the notes first, then the manifest, then the log. Relation 1 then
//! holds even while the writer continues.

use std::collections::BTreeMap;
use std::path::Path;

use crate::base::error::{Error, Result};
use crate::base::types::{KeyspaceId, Lsn, SeqNo};
use crate::files::batch::{Op, Ops};
use crate::files::manifest::{
    self, Change, Edit, KeyspaceState, ManifestState, RecoveredState, TableRecord, ValueFileRecord,
};
use crate::files::storage::Storage;
use crate::files::wal::{LogBatch, LogNotes, Replayed};

/// The maximum number of keyspaces that an error lists.
const NAMES_MAX: usize = 4;

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

/// Checks relation 2 for all tables and value files.
pub(crate) fn check_files(storage: &dyn Storage, dir: &Path, state: &ManifestState) -> Result<()> {
    for keyspace in state.keyspaces.values() {
        keyspace.tables.values().try_for_each(|table| check_table(storage, dir, table))?;
        let mut files = keyspace.value_files.values();
        files.try_for_each(|file| check_value_file(storage, dir, file))?;
    }
    Ok(())
}

/// Checks relation 2 for one value file.
pub(crate) fn check_value_file(
    storage: &dyn Storage,
    dir: &Path,
    file: &ValueFileRecord,
) -> Result<()> {
    check_len(storage, &dir.join(file.name.file_name()), file.size_bytes, "value file")
}

/// Checks relation 2 for one table.
pub(crate) fn check_table(storage: &dyn Storage, dir: &Path, table: &TableRecord) -> Result<()> {
    check_len(storage, &dir.join(table.file.file_name()), table.info.size_bytes, "table")
}

fn check_len(storage: &dyn Storage, path: &Path, expected: u64, what: &'static str) -> Result<()> {
    let damaged = |detail: String| Err(Error::corruption(path, None, what, detail));
    match storage.len(path) {
        Ok(len) if len == expected => Ok(()),
        Ok(len) => damaged(format!("it is {len} bytes long, and was written with {expected}")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            damaged("the file is missing".into())
        }
        Err(error) => Err(Error::io("check", path, error)),
    }
}

/// Checks that the log, which was read up to `last_seq`, has no writes that follow an ingest newer
/// than the manifest that was read. An ingest is not in the log, so those writes would appear
/// without it.
///
/// # Errors
/// [`Error::Changed`] if there was such an ingest, or the error of reading the manifest.
pub(crate) fn check_ingests(
    storage: &dyn Storage,
    dir: &Path,
    state: &ManifestState,
    last_seq: SeqNo,
) -> Result<()> {
    let now = manifest::load_shared(storage, dir)?;
    if manifest::replay(&now, dir)?.state.last_ingest <= state.last_ingest {
        return Ok(());
    }
    // The first edit is a snapshot, which states only its last ingest. `replay` has decoded all edits.
    let edits = now.edits.iter().enumerate();
    let edits = edits.filter_map(|(at, edit)| Some((at, Edit::decode(&edit.bytes).ok()?)));
    let ingests = edits.flat_map(|(at, edit)| {
        let seqs = edit.changes.into_iter().filter_map(|change| match change {
            Change::LastIngest(seq) => Some(seq),
            _ => None,
        });
        seqs.map(move |seq| if at == 0 { (state.last_ingest + 1).min(seq) } else { seq })
    });
    let first = ingests.filter(|seq| *seq > state.last_ingest).min();
    if first.is_some_and(|first| first < last_seq) {
        return Err(Error::Changed { path: dir.into(), tries: 1 });
    }
    Ok(())
}

/// Relates the batches of the log to the manifest while they are replayed.
#[derive(Debug)]
pub(crate) struct BatchCheck<'a> {
    dir: &'a Path,
    state: &'a ManifestState,
    /// The largest sequence number in the tables of each keyspace.
    largest: BTreeMap<KeyspaceId, SeqNo>,
}

impl<'a> BatchCheck<'a> {
    pub(crate) fn new(dir: &'a Path, state: &'a ManifestState) -> Self {
        let keyspaces = state.keyspaces.iter();
        let largest = keyspaces.map(|(id, keyspace)| (*id, largest_seq(keyspace))).collect();
        Self { dir, state, largest }
    }

    /// Visits the operations of a batch that are not in tables, with their sequence numbers, and
    /// checks relations 3 and 4. Returns the sequence number after the batch.
    ///
    /// # Errors
    /// The batch is damaged or does not fit the manifest.
    pub(crate) fn visit(
        &self,
        batch: &LogBatch<'_>,
        mut visit: impl FnMut(KeyspaceId, SeqNo, &Op<'_>),
    ) -> Result<SeqNo> {
        let mut seq = batch.seq;
        for operation in Ops::new(batch.operations) {
            let (id, op) = operation.map_err(|error| {
                let (path, offset) = (batch.path, Some(batch.offset));
                Error::corruption(path, offset, "log record", error.to_string())
            })?;
            if id.0 >= self.state.next_keyspace {
                return Err(self.lost_keyspace(batch, id));
            }
            // Operations of a dropped keyspace are skipped.
            let keyspace = self.state.keyspaces.get(&id);
            if let Some(keyspace) = keyspace.filter(|keyspace| batch.lsn >= keyspace.flushed) {
                let largest = self.largest.get(&id).copied().unwrap_or_default();
                if seq <= largest {
                    return Err(older_than_tables(batch, keyspace, seq, largest));
                }
                if self.lacks_operator(id, &op) {
                    return Err(self.lost_operator(batch, keyspace));
                }
                visit(id, seq, &op);
            }
            seq += 1;
        }
        Ok(seq)
    }

    /// Returns true if a writer created a keyspace of the batch, or set its merge operator, after the
    /// manifest was read.
    pub(crate) fn is_ahead(&self, storage: &dyn Storage, batch: &LogBatch<'_>) -> Result<bool> {
        // Operations that cannot be decoded are reported by `visit`.
        let ops = || Ops::new(batch.operations).flatten();
        let newest = ops().map(|(keyspace, _)| keyspace).max();
        let newest = newest.filter(|id| id.0 >= self.state.next_keyspace);
        let merged = ops().find(|(id, op)| self.lacks_operator(*id, op)).map(|(id, _)| id);
        if newest.is_none() && merged.is_none() {
            return Ok(false);
        }
        let now = manifest::replay(&manifest::load_shared(storage, self.dir)?, self.dir)?.state;
        let has_operator = |id: KeyspaceId| {
            now.keyspaces.get(&id).is_some_and(|keyspace| keyspace.merge_operator.is_some())
        };
        Ok(newest.is_none_or(|newest| newest.0 < now.next_keyspace)
            && merged.is_none_or(has_operator))
    }

    /// Returns true for an operand of a keyspace without a merge operator.
    fn lacks_operator(&self, id: KeyspaceId, op: &Op<'_>) -> bool {
        let keyspace = self.state.keyspaces.get(&id);
        matches!(op, Op::Merge { .. })
            && keyspace.is_some_and(|keyspace| keyspace.merge_operator.is_none())
    }

    fn lost_operator(&self, batch: &LogBatch<'_>, keyspace: &KeyspaceState) -> Error {
        let detail = format!(
            "it lost edits: {} has an operand of keyspace '{}' at byte {}, and the manifest has no merge \
             operator for that keyspace",
            batch.path.display(),
            keyspace.name,
            batch.offset
        );
        Error::corruption(self.dir, None, "manifest", detail)
    }

    fn lost_keyspace(&self, batch: &LogBatch<'_>, id: KeyspaceId) -> Error {
        let detail = format!(
            "it lost edits: {} has a write to keyspace {id} at byte {}, and the manifest has never \
             created that keyspace",
            batch.path.display(),
            batch.offset
        );
        Error::corruption(self.dir, None, "manifest", detail)
    }
}

fn largest_seq(keyspace: &KeyspaceState) -> SeqNo {
    let tables = keyspace.tables.values();
    tables.map(|table| table.info.largest_seq).max().unwrap_or_default()
}

fn older_than_tables(
    batch: &LogBatch<'_>,
    keyspace: &KeyspaceState,
    seq: SeqNo,
    largest: SeqNo,
) -> Error {
    let detail = format!(
        "the log is older than the tables: a write to keyspace '{}' has the sequence number {seq}, \
         but its tables have later ones, up to {largest}",
        keyspace.name
    );
    Error::corruption(batch.path, Some(batch.offset), "log", detail)
}

/// Checks relation 5: refuses a log that ends before the position that the manifest states as durable.
/// Replay begins at the first needed record, so a log passes if no keyspace needs the records before that
/// position.
pub(crate) fn check_end(state: &ManifestState, replayed: &Replayed, dir: &Path) -> Result<()> {
    if replayed.end >= state.log_durable {
        return Ok(());
    }
    let names = |is_in: &dyn Fn(Lsn) -> bool| {
        let keyspaces = state.keyspaces.values().filter(|keyspace| is_in(keyspace.flushed));
        let names = keyspaces.take(NAMES_MAX).map(|keyspace| format!("'{}'", keyspace.name));
        names.collect::<Vec<_>>().join(", ")
    };
    let (end, durable) = (replayed.end, state.log_durable);
    let mut detail = format!(
        "the log ends here, at position {end}, but was durable up to position {durable}, as the \
         manifest states; later writes to {} are missing",
        names(&|flushed| flushed < durable)
    );
    let ahead = names(&|flushed| flushed > end);
    if !ahead.is_empty() {
        detail += &format!(", although the tables of {ahead} may have parts of them");
    }
    Err(replayed.ends_too_early(dir, detail))
}
