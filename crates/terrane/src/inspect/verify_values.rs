//! Verifies value files, and that the values to which tables refer are in them.

use std::path::Path;
use std::sync::Arc;

use super::problem::Problem;
use super::values::DirectoryValues;
use super::verify::Verification;
use crate::consistency;
use crate::error::{Error, Result};
use crate::manifest::{ManifestState, ValueFileRecord, load_shared, replay};
use crate::storage::DiskStorage;
use crate::table::{Table, TableCursor};
use crate::types::{EntryKind, KeyspaceId};
use crate::value_file::scan_value_file;
use crate::value_pointer::ValuePointer;

/// Verifies the value files of all keyspaces.
pub(super) fn verify_value_files(dir: &Path, state: &ManifestState, found: &mut Verification) {
    for (keyspace, state) in &state.keyspaces {
        for record in state.value_files.values() {
            let path = dir.join(record.name.file_name());
            match verify_value_file(dir, *keyspace, record) {
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
    // The values of a segment of the log are verified from the tables that refer to them.
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

/// Verifies that every value apart of a table can be read, and that the properties of the table count
/// them as the manifest does.
pub(super) fn verify_table_values(table: &Arc<Table>, values: &DirectoryValues) -> Result<()> {
    let wrong = |detail: String| Err(Error::corruption(table.path(), None, "table", detail));
    if *table.properties()?.value_refs != *table.info().value_refs {
        return wrong("its values apart are not those that the manifest states".into());
    }
    if table.info().value_refs.is_empty() {
        return Ok(());
    }
    let mut lost = 0;
    let mut first = None;
    let mut cursor = TableCursor::new(Arc::clone(table));
    cursor.seek_first()?;
    while cursor.is_valid() {
        if cursor.kind() == EntryKind::Apart
            && let Err(error) = values.read(cursor.value())
        {
            lost += 1;
            first.get_or_insert_with(|| {
                let file = ValuePointer::decode(cursor.value()).map_or(0, |place| place.file);
                let key = cursor.key().escape_ascii();
                format!("the first that of key '{key}' in value file {file}: {error}")
            });
        }
        cursor.next()?;
    }
    match first {
        Some(first) => wrong(format!("{lost} of its values apart cannot be read, {first}")),
        None => Ok(()),
    }
}
