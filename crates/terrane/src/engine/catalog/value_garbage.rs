//! Keeps account of values that no table refers to any more.
//!
//! Every edit that removes tables may leave value files without a reference, which are removed by the
//! same edit, or files with garbage, whose age is recorded for the deadline of deletes.

use std::collections::BTreeMap;
use std::sync::Arc;

use terrane_policy::{TableInfo, ValueFileId, ValueFileInfo, ValueFileState};

use crate::manifest::{Change, KeyspaceState, ValueFileRecord};
use crate::types::KeyspaceId;

/// A value file after an edit.
struct FileAfter {
    record: ValueFileRecord,
    /// The values to which tables refer.
    live: u64,
    /// True if the edit removes references to the file.
    has_lost: bool,
}

/// Adds the changes of value files that follow from `changes`, an edit of a keyspace: dead files are
/// removed, and files with their first garbage record its age.
pub(super) fn add_value_garbage(
    keyspace: KeyspaceId,
    before: &KeyspaceState,
    changes: &mut Vec<Change>,
    now_micros: u64,
) {
    let more = value_garbage(keyspace, before, changes, now_micros);
    let is_removed = |id: ValueFileId| {
        let removal = Change::RemoveValueFile { keyspace, file: id };
        more.contains(&removal)
    };
    // A file that the edit adds and removes never becomes part of the tree.
    changes.retain(|change| match change {
        Change::ValueFile { file, .. } => !is_removed(file.name.id()),
        _ => true,
    });
    let was_known = |id: &ValueFileId| before.value_files.contains_key(id);
    changes.extend(more.into_iter().filter(|change| match change {
        Change::RemoveValueFile { file, .. } => was_known(file),
        _ => true,
    }));
}

fn value_garbage(
    keyspace: KeyspaceId,
    before: &KeyspaceState,
    changes: &[Change],
    now_micros: u64,
) -> Vec<Change> {
    let (removed, added, new_files) = parts_of(before, changes);
    let has_refs = |tables: &[&Arc<TableInfo>]| tables.iter().any(|one| !one.value_refs.is_empty());
    if !has_refs(&removed) && new_files.is_empty() {
        return Vec::new();
    }
    let mut files: BTreeMap<ValueFileId, FileAfter> = BTreeMap::new();
    for usage in before.shape.value_usage() {
        let Some(record) = before.value_files.get(&usage.file.id).cloned() else { continue };
        let after = FileAfter { record, live: usage.live_values, has_lost: false };
        files.insert(usage.file.id, after);
    }
    for record in new_files {
        let live = files.get(&record.name.id()).map_or(0, |file| file.live);
        let after = FileAfter { record: record.clone(), live, has_lost: false };
        files.insert(record.name.id(), after);
    }
    for used in added.iter().flat_map(|table| table.value_refs.iter()) {
        files.get_mut(&used.file).into_iter().for_each(|file| file.live += used.values);
    }
    for used in removed.iter().flat_map(|table| table.value_refs.iter()) {
        let Some(file) = files.get_mut(&used.file) else { continue };
        file.live = file.live.saturating_sub(used.values);
        file.has_lost = true;
    }
    let oldest = removed.iter().filter_map(|table| table.oldest_tombstone_micros).min();
    let change = |file: FileAfter| {
        let FileAfter { mut record, live, has_lost } = file;
        if live == 0 && record.info.state == ValueFileState::Settled {
            return Some(Change::RemoveValueFile { keyspace, file: record.name.id() });
        }
        let is_first = has_lost && live < record.info.values;
        if !is_first || record.info.oldest_dead_micros.is_some() {
            return None;
        }
        let oldest_dead_micros = Some(oldest.unwrap_or(now_micros).min(now_micros));
        record.info = Arc::new(ValueFileInfo { oldest_dead_micros, ..(*record.info).clone() });
        Some(Change::ValueFile { keyspace, file: record })
    };
    files.into_values().filter_map(change).collect()
}

type Parts<'a> = (Vec<&'a Arc<TableInfo>>, Vec<&'a Arc<TableInfo>>, Vec<&'a ValueFileRecord>);

/// Returns the tables that an edit removes, those that it adds, and the value files that it adds or
/// changes.
fn parts_of<'a>(before: &'a KeyspaceState, changes: &'a [Change]) -> Parts<'a> {
    let (mut removed, mut added, mut files) = (Vec::new(), Vec::new(), Vec::new());
    for change in changes {
        match change {
            Change::RemoveTable { table, .. } => {
                removed.extend(before.tables.get(table).map(|table| &table.info));
            }
            Change::AddTable { table, .. } => added.push(&table.info),
            Change::ValueFile { file, .. } => files.push(file),
            _ => {}
        }
    }
    (removed, added, files)
}
