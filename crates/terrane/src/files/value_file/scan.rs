//! Reads all records of a value file.

use std::path::Path;

use super::format::{RecordHeader, VALUE_FILE_HEADER_BYTES, ValueFileHeader};
use crate::base::error::{Error, Result};
use crate::files::storage::{Access, RandomReader, Storage};
use crate::files::value_pointer::{RECORD_HEADER_BYTES, ValueFileName, record_bytes};

/// The result of scanning a value file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ScannedValues {
    /// The keyspace that the header names.
    pub(crate) keyspace: u32,
    /// The number of values.
    pub(crate) values: u64,
}

/// Reads a value file of `size_bytes` from front to back, and verifies every record.
///
/// # Errors
/// The header does not match the file name, or a record is damaged.
pub(crate) fn scan_value_file(
    storage: &dyn Storage,
    path: &Path,
    name: ValueFileName,
    size_bytes: u64,
) -> Result<ScannedValues> {
    let file =
        storage.open(path, Access::Buffered).map_err(|error| Error::io("open", path, error))?;
    let read = |offset: u64, len: usize| -> Result<Vec<u8>> {
        if offset.checked_add(len as u64).is_none_or(|end| end > size_bytes) {
            return Err(Error::corruption(path, Some(offset), "value file", "it is cut short"));
        }
        read_at(&*file, path, offset, len)
    };
    let header = ValueFileHeader::decode(&read(0, VALUE_FILE_HEADER_BYTES)?, path)?;
    if header.name != name {
        return Err(Error::corruption(path, Some(0), "value file", "it belongs to another name"));
    }
    let mut found = ScannedValues { keyspace: header.keyspace, values: 0 };
    let mut at = VALUE_FILE_HEADER_BYTES as u64;
    while at < size_bytes {
        let corrupt = |detail: &str| Error::corruption(path, Some(at), "value record", detail);
        let head = read(at, RECORD_HEADER_BYTES)?;
        let record = RecordHeader::decode(&head).map_err(|error| corrupt(&error.to_string()))?;
        let key = read(at + RECORD_HEADER_BYTES as u64, record.key_len)?;
        if !record.is_valid(name, at, &head, &key) {
            return Err(corrupt("its checksum does not match"));
        }
        let value_at = at + record_bytes(record.key_len, 0);
        let value = read(value_at, record.value_len)?;
        if name.checksum(value_at, &value) != record.value_checksum {
            return Err(corrupt("the checksum of its value does not match"));
        }
        at = value_at + record.value_len as u64;
        found.values += 1;
    }
    Ok(found)
}

fn read_at(file: &dyn RandomReader, path: &Path, offset: u64, len: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    file.read_at(offset, &mut bytes).map_err(|error| Error::io("read", path, error))?;
    Ok(bytes)
}
