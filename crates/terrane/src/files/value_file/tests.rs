//! Intact and damaged value files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;
use crate::base::error::{ErrorKind, Result};
use crate::base::stats::Counter;
use crate::files::storage::{Access, MemoryStorage, Storage};
use crate::files::table::TableEnvironment;
use crate::files::value_pointer::{ValueFileName, ValuePointer};

const NAME: ValueFileName = ValueFileName { number: 7, writer: 0xabc };

fn path() -> PathBuf {
    Path::new(".").join(NAME.file_name())
}

fn environment(storage: &MemoryStorage) -> Arc<TableEnvironment> {
    let mut environment = crate::files::table::fuzz::environment(storage, Access::Buffered);
    let parts = Arc::get_mut(&mut environment).unwrap();
    parts.discard = |environment, path| environment.storage.remove(path).unwrap();
    environment
}

/// Writes a file with these values, and returns their pointers.
fn write(storage: &MemoryStorage, values: &[Vec<u8>]) -> (FinishedValueFile, Vec<ValuePointer>) {
    let header = ValueFileHeader { keyspace: 3, name: NAME, created_micros: 9 };
    let mut writer =
        ValueFileWriter::create(storage, &path(), header, Access::Buffered, 0).unwrap();
    let append = |(seq, value): (u64, &Vec<u8>)| {
        writer.append(format!("key{seq}").as_bytes(), seq, value).unwrap()
    };
    let pointers = (1..).zip(values).map(append).collect();
    (writer.finish().unwrap(), pointers)
}

fn values() -> Vec<Vec<u8>> {
    vec![b"a value".to_vec(), Vec::new(), vec![5; 300_000], b"the last".to_vec()]
}

#[test]
fn values_read_back_and_the_file_goes_with_its_last_user() {
    let storage = MemoryStorage::new(1);
    let (finished, pointers) = write(&storage, &values());
    assert_eq!(finished.size_bytes, storage.len(&path()).unwrap());
    assert_eq!((finished.info.values, finished.info.bytes), (4, finished.size_bytes - 64));
    let environment = environment(&storage);
    let file = ValueFile::new(NAME, finished.size_bytes, Path::new("."), &environment);
    for (pointer, value) in pointers.iter().zip(values()) {
        assert_eq!(file.read(pointer).unwrap(), value);
    }
    // Values in the same part of the file are not mistaken for each other, and small ones stay.
    let bytes_read = || environment.counters.get(Counter::ValueBytesRead);
    assert_eq!(file.read(&pointers[0]).unwrap(), values()[0]);
    let before = bytes_read();
    for _ in 0..3 {
        assert_eq!(file.read(&pointers[0]).unwrap(), values()[0]);
    }
    assert_eq!(bytes_read(), before);
    assert_eq!(file.read(&pointers[1]).unwrap(), values()[1]);
    assert_eq!(file.read(&pointers[2]).unwrap(), values()[2]);
    assert_eq!(bytes_read(), before + 300_000);
    let wrong = ValuePointer { checksum: 1, ..pointers[0] };
    let beyond = ValuePointer { offset: finished.size_bytes, ..pointers[0] };
    for pointer in [wrong, beyond] {
        assert_eq!(file.read(&pointer).unwrap_err().kind(), ErrorKind::Corruption);
    }
    let found = scan_value_file(&storage, &path(), NAME, finished.size_bytes).unwrap();
    assert_eq!((found.keyspace, found.values), (3, 4));
    file.make_obsolete();
    let other = Arc::clone(&file);
    drop(file);
    assert_eq!(other.read(&pointers[0]).unwrap(), values()[0]);
    drop(other);
    assert!(storage.len(&path()).is_err());
}

fn scan_bytes(bytes: &[u8]) -> Result<()> {
    let storage = MemoryStorage::new(1);
    storage.create(&path(), Access::Buffered).unwrap().append(bytes).unwrap();
    scan_value_file(&storage, &path(), NAME, bytes.len() as u64).map(drop)
}

#[test]
fn every_flipped_byte_and_every_cut_is_detected() {
    let storage = MemoryStorage::new(1);
    write(&storage, &[b"a value".to_vec(), b"another one".to_vec()]);
    let bytes = storage.read(&path()).unwrap();
    scan_bytes(&bytes).unwrap();
    let kinds = [ErrorKind::Corruption, ErrorKind::Unsupported];
    for at in (0..bytes.len()).filter(|at| !(48..64).contains(at)) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        let error = scan_bytes(&damaged).unwrap_err();
        assert!(kinds.contains(&error.kind()), "byte {at}: {error}");
    }
    let ends = [64, 64 + 32 + 4 + 7, bytes.len()];
    for len in (0..bytes.len()).filter(|len| !ends.contains(len)) {
        assert_eq!(scan_bytes(&bytes[..len]).unwrap_err().kind(), ErrorKind::Corruption, "{len}");
    }
}
