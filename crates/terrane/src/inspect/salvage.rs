//! Reads the valid parts of damaged tables and logs.

use std::path::Path;
use std::sync::Arc;

use terrane_memtable::{Cursor, Memtable};

use super::lost_range::{LostRange, TableLosses};
use super::problem::Problem;
use super::values::DirectoryValues;
use crate::base::error::{Error, Result};
use crate::base::types::{EntryKind, KeyspaceId, Lsn, SeqNo};
use crate::files::batch::{Op, Ops};
use crate::files::log_directory;
use crate::files::manifest::ManifestState;
use crate::files::storage::{DiskStorage, Storage};
use crate::files::table::{SalvageCursor, Table};
use crate::files::wal::{RecordKind, Recovery, SegmentReader, segment_file_number};

/// An entry that could be read.
pub(super) struct SalvagedEntry {
    pub(super) key: Vec<u8>,
    pub(super) seq: SeqNo,
    pub(super) kind: EntryKind,
    pub(super) value: Vec<u8>,
}

/// A source of entries: a table without its damaged blocks, or a memtable.
pub(super) enum SalvageSource {
    Table(Box<SalvageCursor>, TableLosses),
    Memtable(Cursor),
}

impl SalvageSource {
    pub(super) fn of_table(table: Arc<Table>) -> Self {
        let losses = TableLosses::of(Arc::clone(&table));
        Self::Table(Box::new(SalvageCursor::new(table)), losses)
    }

    pub(super) fn of_memtable(memtable: &Arc<Memtable>) -> Self {
        let mut cursor = memtable.cursor();
        cursor.seek_first();
        Self::Memtable(cursor)
    }

    /// Returns the key ranges that could not be read, attributed to a keyspace.
    pub(super) fn into_losses(self, keyspace: &str) -> Vec<LostRange> {
        match self {
            Self::Table(_, losses) => losses.ranges(keyspace).collect(),
            Self::Memtable(_) => Vec::new(),
        }
    }

    /// Returns the next entry whose value can be read, and adds the skipped blocks to `problems`.
    pub(super) fn next(
        &mut self,
        values: &mut DirectoryValues,
        problems: &mut Vec<Problem>,
    ) -> Option<SalvagedEntry> {
        loop {
            let entry = self.next_entry(problems)?;
            if entry.kind != EntryKind::Separated {
                return Some(entry);
            }
            if let Some(value) = values.salvage(&entry.key, &entry.value) {
                return Some(SalvagedEntry { value: value.to_vec(), ..entry });
            }
            if let Self::Table(_, losses) = self {
                losses.note_value(&entry.key);
            }
        }
    }

    fn next_entry(&mut self, problems: &mut Vec<Problem>) -> Option<SalvagedEntry> {
        match self {
            Self::Memtable(cursor) => {
                let next = cursor.entry().map(|entry| SalvagedEntry {
                    key: entry.key.to_vec(),
                    seq: entry.seq,
                    kind: entry.kind,
                    value: entry.value.to_vec(),
                });
                cursor.next();
                next
            }
            Self::Table(cursor, losses) => {
                let path = cursor.table().path().to_owned();
                let known = problems.len();
                cursor.step(|error| problems.push(Problem::of(&error, &path)));
                let key = cursor.is_valid().then(|| cursor.key());
                losses.note(problems.len() - known, key);
                cursor.is_valid().then(|| SalvagedEntry {
                    key: cursor.key().to_vec(),
                    seq: cursor.seq(),
                    kind: cursor.kind(),
                    value: cursor.value().to_vec(),
                })
            }
        }
    }
}

/// Visits every operation of a valid log record, except operations that tables contain
/// according to `state`.
pub(super) fn salvage_log(
    dir: &Path,
    state: Option<&ManifestState>,
    mut visit: impl FnMut(KeyspaceId, SeqNo, &Op<'_>),
) -> Result<Vec<Problem>> {
    // Without the log directory, the tables can still be salvaged.
    let log_dir = match log_directory::find(&DiskStorage, dir) {
        Ok(log_dir) => log_dir,
        Err(error) => return Ok(vec![Problem::of(&error, dir)]),
    };
    let dir = &*log_dir;
    let mut problems: Vec<Problem> =
        state.and_then(|state| chain_problem(dir, state)).into_iter().collect();
    let names = DiskStorage.list(dir).map_err(|error| Error::io("list", dir, error))?;
    let mut segments = Vec::new();
    for name in names.iter().filter(|name| segment_file_number(name).is_some()) {
        let path = dir.join(name);
        match SegmentReader::open(&DiskStorage, &path) {
            Ok(Some(reader))
                if state.is_none_or(|state| state.database == reader.header().database) =>
            {
                segments.push(reader);
            }
            Ok(_) => {
                problems.push(Problem::new(&path, "it has no valid log header of this database"));
            }
            Err(error) => problems.push(Problem::of(&error, &path)),
        }
    }
    segments.sort_by_key(|segment| segment.header().segment);
    let links = segments.iter().map(SegmentReader::header);
    let links: Vec<(u64, Lsn)> =
        links.map(|header| (header.previous, header.previous_end)).collect();
    for mut segment in segments {
        let path = segment.path().to_owned();
        let mut skipped = 0u64;
        // Recovery dropped the records beyond the end that the next segment states, and their
        // sequence numbers were reused.
        let number = segment.header().segment;
        let next = links.iter().filter(|(previous, _)| *previous == number);
        let end = next.map(|(_, previous_end)| *previous_end).max();
        segment.salvage(end, &mut skipped, |lsn, record| {
            if record.kind != RecordKind::Batch {
                return;
            }
            for (seq, op) in (record.seq..).zip(Ops::new(record.payload).flatten()) {
                let (keyspace, op) = op;
                if is_wanted(state, keyspace, lsn) {
                    visit(keyspace, seq, &op);
                }
            }
        })?;
        if skipped > 0 {
            let what = format!("{skipped} invalid records before valid ones");
            problems.push(Problem::new(&path, what));
        }
    }
    Ok(problems)
}

/// Returns why opening the database would refuse its log, for example because a segment is missing.
fn chain_problem(dir: &Path, state: &ManifestState) -> Option<Problem> {
    let from = state.log_needed_from(Lsn(0));
    let replayed = Recovery::open(&DiskStorage, dir, state.database).and_then(|recovery| {
        let (boot, required) = (DiskStorage.boot_id(), state.required_segment);
        recovery.replay(&DiskStorage, boot, dir, from, required, |_| Ok(()))
    });
    replayed.err().map(|error| Problem::of(&error, dir))
}

fn is_wanted(state: Option<&ManifestState>, keyspace: KeyspaceId, lsn: Lsn) -> bool {
    state.is_none_or(|state| {
        // The manifest has lost the edit that created such a keyspace.
        let is_unknown = keyspace.0 >= state.next_keyspace;
        is_unknown || state.keyspaces.get(&keyspace).is_some_and(|keyspace| lsn >= keyspace.flushed)
    })
}
