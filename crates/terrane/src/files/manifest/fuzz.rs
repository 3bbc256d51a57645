//! Fuzz targets for the decoders of the manifest.

use std::path::Path;
use std::sync::Arc;

use terrane_policy::{
    KeyRange, RunId, TableId, TableInfo, ValueFileId, ValueFileInfo, ValueFileState, ValueRef,
};

use super::file::{manifest_file_name, put_frame};
use super::{Change, Edit, ManifestState, TableRecord, ValueFileRecord, read_manifest, replay};
use crate::base::error::{Error, ErrorKind};
use crate::base::types::{KeyspaceId, Lsn};
use crate::files::storage::{Access, MemoryStorage, Storage};
use crate::files::table::TableFileId;
use crate::files::value_pointer::ValueFileName;

const NUMBER: u64 = 3;

/// Checks that bad bytes give an error of the right kind.
fn check(error: &Error) {
    let kinds = [ErrorKind::Corruption, ErrorKind::Unsupported];
    assert!(kinds.contains(&error.kind()), "{error}");
}

/// Decodes an edit, applies it to an empty state and to its own result, and compares snapshots.
pub(crate) fn edit(bytes: &[u8]) {
    let Ok(edit) = Edit::decode(bytes) else { return };
    assert_eq!(Edit::decode(&edit.encode()), Ok(edit.clone()));
    let mut state = ManifestState::default();
    if state.apply(&edit.changes).is_ok() {
        let _ = state.log_needed_from(Lsn(0));
        let mut again = ManifestState::default();
        let told = again.apply(&state.snapshot());
        assert_eq!(told, Ok(()), "a snapshot of a good state is refused");
        assert_eq!(again.snapshot(), state.snapshot());
        let _ = state.apply(&edit.changes);
    }
}

/// Reads arbitrary bytes as a manifest file.
pub(crate) fn file(bytes: &[u8]) {
    let storage = MemoryStorage::new(1);
    let path = Path::new(".").join(manifest_file_name(NUMBER));
    let written = storage.create(&path, Access::Buffered).and_then(|mut file| file.append(bytes));
    assert!(written.is_ok());
    let found =
        read_manifest(&storage, &path, NUMBER).and_then(|loaded| replay(&loaded, Path::new("db")));
    if let Err(error) = found {
        check(&error);
    }
}

/// Builds a file of edits with valid checksums from the input: two bytes give the length of an edit,
/// the third says whether its frame or its copy is damaged. Reading the file must return the input's
/// edits.
pub(crate) fn sealed_file(bytes: &[u8]) {
    let storage = MemoryStorage::new(1);
    let path = Path::new(".").join(manifest_file_name(NUMBER));
    let mut file = Vec::new();
    let mut payloads = Vec::new();
    let mut rest = bytes;
    while let [low, high, damage, tail @ ..] = rest {
        let len = usize::from(u16::from_le_bytes([*low, *high]));
        let (payload, tail) = tail.split_at(len.min(tail.len()));
        rest = tail;
        payloads.push(payload.to_vec());
        for copy in 0..2u8 {
            let at = file.len();
            assert!(put_frame(&mut file, NUMBER, at as u64, payload).is_ok());
            if damage & 3 == copy + 1 {
                let hit = at + usize::from(damage >> 2) % (file.len() - at);
                file[hit] ^= 0x40;
            }
        }
    }
    let written = storage.create(&path, Access::Buffered).and_then(|mut out| out.append(&file));
    assert!(written.is_ok());
    match read_manifest(&storage, &path, NUMBER) {
        Ok(loaded) => {
            let read = loaded.edits.iter().map(|edit| &edit.bytes);
            assert!(read.eq(&payloads), "edits that were not written");
            let _ = replay(&loaded, Path::new("db")).inspect_err(check);
        }
        Err(error) => check(&error),
    }
}

fn record(number: u64) -> TableRecord {
    let range = KeyRange::new(&number.to_be_bytes(), Some(b"x"));
    let info = Arc::new(TableInfo::new(number, range, 1000));
    TableRecord { file: TableFileId { number, writer: 1 }, info, checksum: 5 }
}

/// Valid edits: one with tables, one with separated values, and one that removes items, for a state
/// that has them.
pub(crate) fn good_edits() -> Vec<Vec<u8>> {
    vec![good_edit(), edit_with_separated_values(), removing_edit()]
}

fn good_edit() -> Vec<u8> {
    let design = "leveling T=10".to_owned();
    let keyspace = KeyspaceId(0);
    let changes = vec![
        Change::Database(9),
        Change::Option { name: "durability".into(), value: "sync".into() },
        Change::Keyspace { keyspace, name: "default".into(), design },
        Change::Flushed { keyspace, upto: Lsn(77) },
        Change::AddTable { keyspace, level: 1, run: RunId(2), table: record(3) },
        Change::AddTable { keyspace, level: 0, run: RunId(4), table: record(4) },
        Change::NextTable(5),
        Change::LastSeq(1000),
    ];
    Edit { version: 1, epoch: 1, changes }.encode()
}

fn edit_with_separated_values() -> Vec<u8> {
    let keyspace = KeyspaceId(0);
    let design = "leveling T=10; values=separate(1KiB)".to_owned();
    let file = |number: u64, state: ValueFileState| {
        let dead = Some(5);
        let info = ValueFileInfo {
            values: 9,
            state,
            oldest_dead_micros: dead,
            ..ValueFileInfo::new(number, 900)
        };
        let name = ValueFileName { number, writer: 1 };
        let is_segment = state != ValueFileState::Settled;
        let record = ValueFileRecord { name, is_segment, size_bytes: 1000, info: Arc::new(info) };
        Change::ValueFile { keyspace, file: record }
    };
    let used = |number| ValueRef { file: ValueFileId(number), bytes: 400, values: 4 };
    let mut table = record(5);
    Arc::make_mut(&mut table.info).value_refs = [used(3), used(4)].into();
    let changes = vec![
        Change::Keyspace { keyspace, name: "default".into(), design },
        file(3, ValueFileState::Settled),
        file(4, ValueFileState::Unflushed),
        Change::AddTable { keyspace, level: 0, run: RunId(2), table },
        Change::RemoveValueFile { keyspace, file: ValueFileId(6) },
        Change::NextTable(7),
    ];
    Edit { version: 1, epoch: 1, changes }.encode()
}

fn removing_edit() -> Vec<u8> {
    let keyspace = KeyspaceId(0);
    let changes = vec![
        Change::Keyspace { keyspace, name: "a".into(), design: "tiering T=3".into() },
        Change::RemoveTable { keyspace, table: TableId(9) },
        Change::DropKeyspace(keyspace),
    ];
    Edit { version: 1, epoch: 1, changes }.encode()
}

/// A valid file.
pub(crate) fn good_file() -> Vec<u8> {
    let mut file = Vec::new();
    for _ in 0..2 {
        let at = file.len() as u64;
        assert!(put_frame(&mut file, NUMBER, at, &good_edit()).is_ok());
    }
    file
}
