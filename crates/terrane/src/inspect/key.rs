//! Finds every physical version of a key.

use std::path::Path;
use std::sync::Arc;

use super::history::{name_of, state};
use super::{log, table};
use crate::base::error::Result;
use crate::base::expiry::EXPIRY_BYTES;
use crate::base::types::{EntryKind, KeyspaceId, MAX_SEQ};
use crate::files::shared_read::read_shared;
use crate::files::storage::DiskStorage;
use crate::files::table::TableCursor;
use crate::files::value_pointer::ValuePointer;

/// A version of a key, or a range delete that covers the key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyVersion {
    /// The keyspace.
    pub keyspace: String,
    /// The location: a table with its level and run, or a log file. An entry in the log that no
    /// table contains is in the memtable of an open database.
    pub place: String,
    /// The sequence number of the write.
    pub sequence_number: u64,
    /// The operation: `put`, `delete` or `delete-range`.
    pub kind: &'static str,
    /// The length of the value in bytes.
    pub value_bytes: u64,
}

/// Returns all versions of a key in a database, newest first.
///
/// # Errors
/// Fails if the directory contains no database, or a file that may contain the key is corrupt.
pub fn key(dir: impl AsRef<Path>, key: &[u8]) -> Result<Vec<KeyVersion>> {
    let dir = dir.as_ref();
    read_shared(&DiskStorage, dir, || versions(dir, key))
}

fn versions(dir: &Path, key: &[u8]) -> Result<Vec<KeyVersion>> {
    let state = state(dir)?;
    let mut found = Vec::new();
    for keyspace in state.keyspaces.values() {
        for place in keyspace.shape.places().filter(|place| place.table.range.contains(key)) {
            let Some(record) = keyspace.tables.get(&place.table.id) else { continue };
            let file = record.file.file_name();
            let name =
                format!("L{} r{}, table {} in {file}", place.level, place.run, place.table.id);
            of_table(&dir.join(file), key, &keyspace.name, &name, &mut found)?;
        }
    }
    for segment in log(dir)?.segments {
        let file = segment.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for record in &segment.records {
            for (seq, op) in (record.sequence_number..).zip(&record.operations) {
                let is_in_range = *op.key <= *key && op.end.as_ref().is_none_or(|end| *key < **end);
                if !(op.key == key || op.kind == "delete-range" && is_in_range) {
                    continue;
                }
                let id = KeyspaceId(op.keyspace);
                let flushed = state.keyspaces.get(&id).map(|keyspace| keyspace.flushed.0);
                let is_flushed = flushed.is_none_or(|upto| record.position < upto);
                let also = if is_flushed { "flushed" } else { "in the memtable" };
                found.push(KeyVersion {
                    keyspace: name_of(&state, id),
                    place: format!("log {file}, {also}"),
                    sequence_number: seq,
                    kind: op.kind,
                    value_bytes: op.value_bytes,
                });
            }
        }
    }
    found.sort_by(|a, b| (&a.keyspace, b.sequence_number).cmp(&(&b.keyspace, a.sequence_number)));
    Ok(found)
}

fn of_table(
    path: &Path,
    key: &[u8],
    keyspace: &str,
    place: &str,
    found: &mut Vec<KeyVersion>,
) -> Result<()> {
    let table = table::open(path)?;
    let mut version = |sequence_number, kind, value_bytes| {
        let (keyspace, place) = (keyspace.to_owned(), place.to_owned());
        found.push(KeyVersion { keyspace, place, sequence_number, kind, value_bytes });
    };
    for fragment in table.fragments()?.iter().filter(|fragment| fragment.contains(key)) {
        fragment.seqs.iter().for_each(|&seq| version(seq, "delete-range", 0));
    }
    if table.block_count()? == 0 {
        return Ok(());
    }
    let mut cursor = TableCursor::new(Arc::clone(&table));
    cursor.seek(key, MAX_SEQ)?;
    while cursor.is_valid() && cursor.key() == key {
        let kind = match cursor.kind() {
            EntryKind::Tombstone => "delete",
            EntryKind::Expiring => "put-expiring",
            EntryKind::Operand => "merge",
            EntryKind::Value | EntryKind::Separated => "put",
        };
        let value_bytes = match cursor.kind() {
            // Verification reports damaged pointers.
            EntryKind::Separated => {
                ValuePointer::decode(cursor.value()).map_or(0, |pointer| pointer.len.into())
            }
            EntryKind::Expiring => cursor.value().len().saturating_sub(EXPIRY_BYTES) as u64,
            EntryKind::Value | EntryKind::Tombstone | EntryKind::Operand => {
                cursor.value().len() as u64
            }
        };
        version(cursor.seq(), kind, value_bytes);
        cursor.next()?;
    }
    Ok(())
}
