//! Tracks values to which no table refers any more.
//!
//! An edit that removes tables may leave value files unreferenced, or with garbage. It removes the
//! former, and records the age of the garbage for the deadline of deletes.
//!
//! The age of garbage counts from the oldest delete that may have caused it. A tombstone counts as
//! such a delete if its table is newer than the table that held the pointer and overlaps it,
//! whether or not the edit removes the tombstone's table: a table is dropped because a newer table
//! covers it, and a merge drops overwritten versions of a key whose tombstone has not arrived yet.
//! A tombstone in a memtable counts only for a flush that merges, because it reaches a table within
//! the time that is reserved for the memtable.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use terrane_policy::{
    Run, TableId, TableInfo, TreeShape, ValueFileId, ValueFileInfo, ValueFileState,
};

use crate::base::types::KeyspaceId;
use crate::files::manifest::{Change, KeyspaceState, ValueFileRecord};

/// A value file after an edit.
struct FileAfter {
    record: ValueFileRecord,
    /// The values to which tables referred before the edit; `None` for a new file.
    live_before: Option<u64>,
    /// The values to which tables refer.
    live: u64,
    /// The time of the oldest delete that may have deleted a value in the file.
    oldest_delete: Option<u64>,
}

/// The tables and value files that an edit of a keyspace changes. Tables that only move to another
/// run are excluded.
#[derive(Default)]
struct Parts<'a> {
    removed: BTreeSet<TableId>,
    added: Vec<&'a Arc<TableInfo>>,
    files: Vec<&'a ValueFileRecord>,
}

/// Adds the value file changes that follow from `changes`, an edit of a keyspace: dead files are
/// removed, and files with new garbage record its age.
///
/// `since_micros` is the time of the oldest entry of the memtable that the edit flushes.
pub(super) fn add_value_garbage(
    keyspace: KeyspaceId,
    before: &KeyspaceState,
    changes: &mut Vec<Change>,
    since_micros: Option<u64>,
    now_micros: u64,
) {
    let more = value_garbage(keyspace, before, changes, since_micros, now_micros);
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
    since_micros: Option<u64>,
    now_micros: u64,
) -> Vec<Change> {
    let Parts { removed, added, files: new_files } = parts_of(changes);
    let lost = lost_tables(&before.shape, &removed);
    if lost.is_empty() && new_files.is_empty() {
        return Vec::new();
    }
    let mut files: BTreeMap<ValueFileId, FileAfter> = BTreeMap::new();
    for usage in before.shape.value_usage() {
        let Some(record) = before.value_files.get(&usage.file.id).cloned() else { continue };
        let live = usage.live_values;
        let after = FileAfter { record, live_before: Some(live), live, oldest_delete: None };
        files.insert(usage.file.id, after);
    }
    for record in new_files {
        let known = files.get(&record.name.id());
        let (live_before, live) = known.map_or((None, 0), |known| (known.live_before, known.live));
        let after = FileAfter { record: record.clone(), live_before, live, oldest_delete: None };
        files.insert(record.name.id(), after);
    }
    for used in added.iter().flat_map(|table| table.value_refs.iter()) {
        files.get_mut(&used.file).into_iter().for_each(|file| file.live += used.values);
    }
    for (table, oldest_delete) in lost {
        let oldest_delete = [oldest_delete, since_micros].into_iter().flatten().min();
        for used in &table.value_refs {
            let Some(file) = files.get_mut(&used.file) else { continue };
            file.live = file.live.saturating_sub(used.values);
            file.oldest_delete = [file.oldest_delete, oldest_delete].into_iter().flatten().min();
        }
    }
    files.into_values().filter_map(|file| change_of(keyspace, file, now_micros)).collect()
}

/// Returns the change to a value file, if any.
fn change_of(keyspace: KeyspaceId, file: FileAfter, now_micros: u64) -> Option<Change> {
    let FileAfter { mut record, live_before, live, oldest_delete } = file;
    if live == 0 && record.info.state == ValueFileState::Settled {
        return Some(Change::RemoveValueFile { keyspace, file: record.name.id() });
    }
    let has_lost = live_before.is_none_or(|before| live < before);
    if !has_lost || live >= record.info.values {
        return None;
    }
    let oldest = oldest_delete.unwrap_or(now_micros).min(now_micros);
    // A delete may be older than garbage that was recorded before it.
    if record.info.oldest_dead_micros.is_some_and(|recorded| recorded <= oldest) {
        return None;
    }
    let oldest_dead_micros = Some(oldest);
    record.info = Arc::new(ValueFileInfo { oldest_dead_micros, ..(*record.info).clone() });
    Some(Change::ValueFile { keyspace, file: record })
}

/// Returns the removed tables that refer to value files, each with the time of the oldest delete
/// that may have deleted one of its values.
fn lost_tables<'a>(
    shape: &'a TreeShape,
    removed: &BTreeSet<TableId>,
) -> Vec<(&'a Arc<TableInfo>, Option<u64>)> {
    if removed.is_empty() {
        return Vec::new();
    }
    let deleted_at =
        |table: &Arc<TableInfo>| table.oldest_tombstone_micros.filter(|_| table.has_tombstones());
    let mut lost = Vec::new();
    let mut newer: Vec<&Run> = Vec::new();
    for run in shape.levels.iter().flat_map(|level| &level.runs) {
        let loses =
            |table: &&Arc<TableInfo>| !table.value_refs.is_empty() && removed.contains(&table.id);
        for table in run.tables.iter().filter(loses) {
            let over = newer.iter().flat_map(|run| run.overlapping(&table.range));
            lost.push((table, over.chain([table]).filter_map(deleted_at).min()));
        }
        if run.tables.iter().any(|table| table.has_tombstones()) {
            newer.push(run);
        }
    }
    lost
}

fn parts_of(changes: &[Change]) -> Parts<'_> {
    let mut parts = Parts::default();
    for change in changes {
        match change {
            Change::RemoveTable { table, .. } => {
                parts.removed.insert(*table);
            }
            Change::AddTable { table, .. } => parts.added.push(&table.info),
            Change::ValueFile { file, .. } => parts.files.push(file),
            _ => {}
        }
    }
    parts.added.retain(|table| !parts.removed.remove(&table.id));
    parts
}

#[cfg(test)]
mod tests {
    use terrane_policy::RunId;

    use super::*;
    use crate::files::manifest::TableRecord;
    use crate::files::table::TableFileId;
    use crate::files::value_pointer::ValueFileName;

    const KEYSPACE: KeyspaceId = KeyspaceId(0);
    const NOW: u64 = 1000;

    fn record(info: &Arc<TableInfo>) -> TableRecord {
        let file = TableFileId { number: info.id.0, writer: 1 };
        TableRecord { file, info: Arc::clone(info), checksum: 0 }
    }

    fn keyspace(shape: &str) -> KeyspaceState {
        let shape: TreeShape = shape.parse().unwrap();
        let file = |info: &Arc<ValueFileInfo>| ValueFileRecord {
            name: ValueFileName { number: info.id.0, writer: 1 },
            is_segment: false,
            size_bytes: info.bytes + 64,
            info: Arc::clone(info),
        };
        let mut keyspace = KeyspaceState::new("default", Arc::new("leveling".parse().unwrap()));
        keyspace.tables = shape.tables().map(|info| (info.id, record(info))).collect();
        keyspace.value_files = shape.value_files.iter().map(|one| (one.id, file(one))).collect();
        keyspace.shape = shape;
        keyspace
    }

    /// Returns the value files that an edit changes, with the times of their oldest garbage, or `None`
    /// for a file that is removed.
    fn changed(
        shape: &str,
        removed: &[u64],
        added: &[&str],
        since: Option<u64>,
    ) -> Vec<(u64, Option<u64>)> {
        let remove = |id: &u64| Change::RemoveTable { keyspace: KEYSPACE, table: TableId(*id) };
        let add = |text: &&str| {
            let table = record(&Arc::new(text.parse().unwrap()));
            Change::AddTable { keyspace: KEYSPACE, level: 1, run: RunId(1), table }
        };
        let edit: Vec<Change> = removed.iter().map(remove).chain(added.iter().map(add)).collect();
        let follow = value_garbage(KEYSPACE, &keyspace(shape), &edit, since, NOW);
        let of = |change: Change| match change {
            Change::ValueFile { file, .. } => (file.name.number, file.info.oldest_dead_micros),
            Change::RemoveValueFile { file, .. } => (file.0, None),
            other => panic!("{other:?}"),
        };
        follow.into_iter().map(of).collect()
    }

    const TOMBSTONE: &str = "tombstones=1,oldest-tombstone=50";

    /// A file kept the time of its first garbage, so an older delete that reached the file later
    /// became persistent too late.
    #[test]
    fn an_older_delete_moves_the_time_of_garbage_back() {
        let with = |dead: &str| {
            format!(
                "L1 r2: 1=a..=m:9,{TOMBSTONE}\nL2 r1: 2=a..=z:9,values=7:90/3\nV 7: 100,values=4{dead}"
            )
        };
        let merged = ["3=a..=z:9,values=7:60/2"];
        assert_eq!(changed(&with(""), &[1, 2], &merged, None), [(7, Some(50))]);
        assert_eq!(changed(&with(",oldest-dead=80"), &[1, 2], &merged, None), [(7, Some(50))]);
        assert_eq!(changed(&with(",oldest-dead=40"), &[1, 2], &merged, None), []);
        // No value died in this merge.
        let kept = ["3=a..=z:9,values=7:90/3"];
        assert_eq!(changed(&with(",oldest-dead=80"), &[1, 2], &kept, None), []);
        assert_eq!(changed(&with(""), &[1, 2], &["3=a..=b:9"], None), [(7, None)]);
    }

    /// The age of garbage from a dropped table counted from the drop instead of from the delete.
    #[test]
    fn a_dropped_table_takes_the_time_of_the_tombstones_above_it() {
        let shape = "L0 r5: 5=a..=z:9,range-tombstones=1,oldest-tombstone=70\n\
                     L0 r4: 4=n..=z:9,tombstones=1,oldest-tombstone=20\n\
                     L1 r3: 3=a..=m:9,tombstones=1,oldest-tombstone=60\n\
                     L2 r2: 2=a..=d:9,values=7:30/1+8:10/1 9=p..=q:9,values=8:10/1\n\
                     L3 r1: 1=a..=z:9,values=7:30/1+8:10/1,tombstones=1,oldest-tombstone=10\n\
                     V 7: 100,values=3\nV 8: 100,values=9,oldest-dead=30";
        assert_eq!(changed(shape, &[2], &[], None), [(7, Some(60))]);
        assert_eq!(changed(shape, &[2, 9], &[], None), [(7, Some(60)), (8, Some(20))]);
    }

    #[test]
    fn overwritten_values_count_from_the_flush_or_the_merge() {
        let shape = "L0 r2: 2=a..=z:9,values=7:60/2\nV 7: 100,values=2";
        let merged = ["3=a..=z:9,values=7:30/1"];
        assert_eq!(changed(shape, &[2], &merged, Some(900)), [(7, Some(900))]);
        assert_eq!(changed(shape, &[2], &merged, None), [(7, Some(NOW))]);
        // A table that moves to another run loses nothing.
        assert_eq!(changed(shape, &[2], &["2=a..=z:9,values=7:60/2"], None), []);
    }
}
