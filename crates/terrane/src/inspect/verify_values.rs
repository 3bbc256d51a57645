//! Verifies value files, and that they contain the values to which tables refer.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use terrane_policy::ValueRef;

use super::problem::Problem;
use super::values::DirectoryValues;
use super::verify::{Meter, Verification};
use crate::base::error::{Error, Result};
use crate::base::types::{EntryKind, KeyspaceId};
use crate::files::consistency;
use crate::files::manifest::{ManifestState, ValueFileRecord, load_shared, replay};
use crate::files::storage::DiskStorage;
use crate::files::table::{Table, TableCursor};
use crate::files::value_file::{VALUE_FILE_HEADER_BYTES, scan_value_file};
use crate::files::value_pointer::{ValuePointer, record_bytes};

/// Verifies the value files of all keyspaces.
pub(super) fn verify_value_files(
    dir: &Path,
    state: &ManifestState,
    found: &mut Verification,
    meter: &mut Meter<'_>,
) {
    for (keyspace, state) in state.keyspaces.iter() {
        for record in state.value_files.values() {
            let path = dir.join(record.name.file_name());
            let verified = verify_value_file(dir, *keyspace, record);
            meter.add(record.size_bytes);
            match verified {
                Ok(()) => found.values += record.info.values,
                Err(_) if was_removed(dir, record) => continue,
                Err(error) => found.problems.push(Problem::of(&error, &path)),
            }
            found.value_files += 1;
            found.value_bytes += record.size_bytes;
        }
    }
}

fn verify_value_file(dir: &Path, keyspace: KeyspaceId, record: &ValueFileRecord) -> Result<()> {
    consistency::check_value_file(&DiskStorage, dir, record)?;
    // The values in a log segment are verified from the tables that refer to them.
    if record.is_segment {
        return Ok(());
    }
    let path = dir.join(record.name.file_name());
    let scanned = scan_value_file(&DiskStorage, &path, record.name, record.size_bytes)?;
    let wrong = |detail: String| Err(Error::corruption(&path, None, "value file", detail));
    if KeyspaceId(scanned.keyspace) != keyspace {
        let named = scanned.keyspace;
        return wrong(format!("it belongs to keyspace {named}, and the manifest says {keyspace}"));
    }
    let stated = record.info.bytes;
    if stated.checked_add(VALUE_FILE_HEADER_BYTES as u64) != Some(record.size_bytes) {
        let length = record.size_bytes;
        return wrong(format!(
            "the manifest says values of {stated} bytes and a length of {length}"
        ));
    }
    if scanned.values != record.info.values {
        let (values, expected) = (scanned.values, record.info.values);
        return wrong(format!("it holds {values} values, and the manifest says {expected}"));
    }
    Ok(())
}

/// Returns true if a writer has removed a value file since the manifest was read.
fn was_removed(dir: &Path, record: &ValueFileRecord) -> bool {
    let now = load_shared(&DiskStorage, dir).and_then(|loaded| replay(&loaded, dir));
    now.is_ok_and(|now| {
        let keyspaces = now.state.keyspaces.values();
        let mut files = keyspaces.flat_map(|keyspace| keyspace.value_files.values());
        !files.any(|file| file.name == record.name)
    })
}

/// Verifies that every separated value of a table can be read, and that the table's properties
/// count these values as the manifest does.
pub(super) fn verify_table_values(table: &Arc<Table>, values: &DirectoryValues) -> Result<()> {
    let wrong = |detail: String| Err(Error::corruption(table.path(), None, "table", detail));
    if *table.properties()?.value_refs != *table.info().value_refs {
        return wrong("its separated values are not those that the manifest states".into());
    }
    if table.info().value_refs.is_empty() {
        return Ok(());
    }
    let mut lost = 0;
    let mut first = None;
    let mut counted = BTreeMap::new();
    let mut cursor = TableCursor::new(Arc::clone(table));
    cursor.seek_first()?;
    while cursor.is_valid() {
        if cursor.kind() == EntryKind::Separated {
            let place = ValuePointer::decode(cursor.value()).ok();
            if let Some(place) = place {
                count(&mut counted, &place, cursor.key().len());
            }
            if let Err(error) = values.read(cursor.value()) {
                lost += 1;
                first.get_or_insert_with(|| {
                    let file = place.map_or(0, |place| place.file);
                    let key = cursor.key().escape_ascii();
                    format!("the first under key '{key}' in value file {file}: {error}")
                });
            }
        }
        cursor.next()?;
    }
    if let Some(first) = first {
        return wrong(format!("{lost} of its separated values cannot be read, {first}"));
    }
    // The manifest and the properties come from the same counter, which decides when a value file
    // is removed.
    check_counts(&counted, &table.info().value_refs).or_else(wrong)
}

/// Counts the value of an entry whose key is `key_len` bytes long.
fn count(counted: &mut BTreeMap<u64, (u64, u64)>, place: &ValuePointer, key_len: usize) {
    let (bytes, values) = counted.entry(place.file).or_default();
    *bytes += record_bytes(key_len, place.len as usize);
    *values += 1;
}

/// Compares the number and bytes of a table's values in each value file with the stated ones.
fn check_counts(counted: &BTreeMap<u64, (u64, u64)>, stated: &[ValueRef]) -> Result<(), String> {
    let stated: BTreeMap<u64, (u64, u64)> =
        stated.iter().map(|used| (used.file.0, (used.bytes, used.values))).collect();
    let files = counted.keys().chain(stated.keys());
    for file in files {
        let of = |counts: &BTreeMap<u64, (u64, u64)>| counts.get(file).copied().unwrap_or_default();
        let ((bytes, values), (stated_bytes, stated_values)) = (of(counted), of(&stated));
        if (bytes, values) != (stated_bytes, stated_values) {
            return Err(format!(
                "it has {values} values of {bytes} bytes in value file {file}, and its properties \
                 say {stated_values} values of {stated_bytes} bytes"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use terrane_policy::ValueFileId;

    use super::*;

    #[test]
    fn counts_that_differ_from_the_entries_are_found() {
        let mut counted = BTreeMap::new();
        for (file, len) in [(3, 100), (3, 200), (5, 50)] {
            count(&mut counted, &ValuePointer { file, offset: 64, len, checksum: 0 }, 10);
        }
        let used = |file, bytes, values| ValueRef { file: ValueFileId(file), bytes, values };
        let right = [used(3, 384, 2), used(5, 92, 1)];
        assert_eq!(check_counts(&counted, &right), Ok(()));
        for wrong in [
            vec![right[0]],
            vec![right[0], used(5, 92, 2)],
            vec![right[0], used(5, 91, 1)],
            vec![right[0], right[1], used(6, 1, 1)],
        ] {
            assert!(check_counts(&counted, &wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_length_that_the_values_do_not_explain_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let design = "leveling; buffer=4KiB; values=separate(64)".parse().unwrap();
        // The value gets a file of its own, because the log must not keep it.
        let limit = std::time::Duration::from_secs(1000);
        let options = crate::Options::new().design(design).delete_persistence(limit);
        let db = options.open(dir.path()).unwrap();
        db.put("key", [7; 100]).unwrap();
        db.flush().unwrap();
        db.close().unwrap();
        let state = super::super::history::state(dir.path()).unwrap();
        let (id, keyspace) = state.keyspaces.iter().next().unwrap();
        let mut record = keyspace.value_files.values().next().unwrap().clone();
        verify_value_file(dir.path(), *id, &record).unwrap();
        Arc::make_mut(&mut record.info).bytes += 1;
        let error = verify_value_file(dir.path(), *id, &record).unwrap_err();
        assert!(error.to_string().contains("values of 136 bytes"), "{error}");
    }
}
