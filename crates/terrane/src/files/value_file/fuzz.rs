//! Fuzz targets for value files and for pointers to their values.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::format::{RecordHeader, ValueFileHeader};
use super::{ValueFile, ValueFileWriter, scan_value_file};
use crate::base::codec::Reader;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::types::{MAX_SEQ, SeqNo};
use crate::files::storage::{Access, MemoryStorage, Storage};
use crate::files::table;
use crate::files::value::Value;
use crate::files::value_pointer::{
    RECORD_HEADER_BYTES, ValueFileName, ValuePointer, put_value_refs, value_refs,
};

const NAME: ValueFileName = ValueFileName { number: 7, writer: 0xabc };
const HEADER: ValueFileHeader = ValueFileHeader { keyspace: 3, name: NAME, created_micros: 9 };
const DIR: &str = ".";

fn path() -> PathBuf {
    Path::new(DIR).join(NAME.file_name())
}

fn put(bytes: &[u8]) -> MemoryStorage {
    let storage = MemoryStorage::new(1);
    let written = storage.create(&path(), Access::Buffered).and_then(|mut file| file.append(bytes));
    assert!(written.is_ok());
    storage
}

/// Checks that bad bytes give an error of the right kind.
fn check(error: &Error) {
    let kinds = [ErrorKind::Corruption, ErrorKind::Unsupported];
    assert!(kinds.contains(&error.kind()), "{error}");
}

/// Reads arbitrary bytes as a value file, of the length that the manifest states or a shorter one.
pub(crate) fn file(bytes: &[u8]) {
    let storage = put(bytes);
    let len = bytes.len() as u64;
    for size_bytes in [len, len / 2] {
        match scan_value_file(&storage, &path(), NAME, size_bytes) {
            Ok(found) => assert!(found.values * RECORD_HEADER_BYTES as u64 <= size_bytes),
            Err(error) => check(&error),
        }
    }
}

/// Builds a file of records with valid checksums from the input. Four bytes give the length of a key,
/// the damage and the length of a value; key and value follow. The damage is a false length of the
/// value, a changed byte, or a sequence number that is too large. A file without damage must be
/// readable, and a damaged one must be refused.
pub(crate) fn sealed_file(bytes: &[u8]) {
    let mut file = HEADER.encode();
    let mut good: Vec<(ValuePointer, &[u8])> = Vec::new();
    let mut is_damaged = false;
    let mut rest = bytes;
    while let [key_len, damage, low, high, tail @ ..] = rest {
        let (key, tail) = tail.split_at(usize::from(*key_len).min(tail.len()));
        let value_len = usize::from(u16::from_le_bytes([*low, *high]));
        let (value, tail) = tail.split_at(value_len.min(tail.len()));
        rest = tail;
        let at = file.len() as u64;
        let offset = at + (RECORD_HEADER_BYTES + key.len()) as u64;
        let checksum = NAME.checksum(offset, value);
        let amount = usize::from(damage >> 2);
        let (mut seq, mut claimed): (SeqNo, usize) = (amount as u64, value.len());
        match damage & 3 {
            1 => claimed ^= amount << 24 | amount,
            2 => seq += MAX_SEQ,
            _ => {}
        }
        is_damaged |= claimed != value.len() || seq > MAX_SEQ;
        let header = RecordHeader::encode(NAME, at, (key, seq), (claimed, checksum));
        [&header[..], key, value].iter().for_each(|part| file.extend_from_slice(part));
        if damage & 3 == 3 {
            let len = file.len() - at as usize;
            file[at as usize + amount % len] ^= 0x40;
            is_damaged = true;
        }
        let len = value.len() as u32;
        good.push((ValuePointer { file: NAME.number, offset, len, checksum }, value));
    }
    let (storage, size_bytes) = (put(&file), file.len() as u64);
    match scan_value_file(&storage, &path(), NAME, size_bytes) {
        Ok(found) => {
            assert!(!is_damaged, "damage was not detected");
            assert_eq!((found.keyspace, found.values), (HEADER.keyspace, good.len() as u64));
        }
        Err(error) => {
            assert!(is_damaged, "a good file is refused: {error}");
            check(&error);
        }
    }
    if !is_damaged {
        let file = open(&storage, size_bytes);
        for _ in 0..2 {
            for (pointer, value) in &good {
                assert!(file.read(pointer).is_ok_and(|found| found == **value));
                assert!(file.read_once(pointer).is_ok_and(|found| found == **value));
            }
        }
    }
}

/// Decodes arbitrary bytes as a pointer and as the references of a table, and reads the value to which
/// the pointer refers. Only pointers of written values refer to a value.
pub(crate) fn pointer(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    if let Ok(refs) = value_refs(&mut reader) {
        let mut encoded = Vec::new();
        put_value_refs(&mut encoded, &refs);
        assert_eq!(value_refs(&mut Reader::new(&encoded)), Ok(refs));
    }
    let Ok(pointer) = ValuePointer::decode(bytes) else { return };
    let mut encoded = Vec::new();
    pointer.encode(&mut encoded);
    assert_eq!(ValuePointer::decode(&encoded), Ok(pointer));
    let sample = sample();
    let place = |pointer: &ValuePointer| (pointer.offset, pointer.len, pointer.checksum);
    let good = |(known, _): &&(ValuePointer, Vec<u8>)| place(known) == place(&pointer);
    let expected = sample.values.iter().find(good).map(|(_, value)| value);
    let check_read = |read: Result<Value>| match (read, expected) {
        (Ok(found), Some(value)) => assert_eq!(found, *value),
        (Ok(_), None) => unreachable!("{pointer:?} leads to a value that was not written"),
        (Err(error), None) => check(&error),
        (Err(error), Some(_)) => unreachable!("{pointer:?}: {error}"),
    };
    check_read(sample.file.read_once(&pointer));
    // The read may find another pointer's value in memory.
    for (known, value) in &sample.values {
        assert!(sample.file.read(known).is_ok_and(|found| found == *value));
        check_read(sample.file.read(&pointer));
    }
}

/// A file with values, and the pointers to them.
struct Sample {
    file: Arc<ValueFile>,
    values: Vec<(ValuePointer, Vec<u8>)>,
}

fn sample() -> &'static Sample {
    static SAMPLE: OnceLock<Sample> = OnceLock::new();
    SAMPLE.get_or_init(|| make_sample().unwrap_or_else(|error| unreachable!("{error}")))
}

fn make_sample() -> Result<Sample> {
    let storage = MemoryStorage::new(1);
    let mut writer = ValueFileWriter::create(&storage, &path(), HEADER, Access::Buffered, 0)?;
    let mut values = Vec::new();
    for (seq, len) in (1..).zip([700, 0, 90, 5000, 1]) {
        let value = vec![seq as u8; len];
        values.push((writer.append(format!("key{seq}").as_bytes(), seq, &value)?, value));
    }
    let size_bytes = writer.finish()?.size_bytes;
    Ok(Sample { file: open(&storage, size_bytes), values })
}

fn open(storage: &MemoryStorage, size_bytes: u64) -> Arc<ValueFile> {
    let environment = table::fuzz::environment(storage, Access::Buffered);
    ValueFile::new(NAME, size_bytes, Path::new(DIR), &environment)
}

/// A valid file.
pub(crate) fn good_file() -> Vec<u8> {
    let mut file = HEADER.encode();
    for (seq, value) in [(5, &b"a value"[..]), (4, b""), (9, &[7; 300])] {
        let at = file.len() as u64;
        let checksum = NAME.checksum(at + (RECORD_HEADER_BYTES + 3) as u64, value);
        let header = RecordHeader::encode(NAME, at, (b"key", seq), (value.len(), checksum));
        [&header[..], b"key", value].iter().for_each(|part| file.extend_from_slice(part));
    }
    file
}

/// Input for [`sealed_file`]: without damage, and with each kind of damage.
pub(crate) fn sealed_seeds() -> Vec<Vec<u8>> {
    let record = |damage: u8| [&[3, damage, 5, 0][..], b"keyvalue"].concat();
    let mut seeds = vec![[record(0), record(28)].concat()];
    seeds.extend((1..4).map(|kind| [record(0), record(kind | 20)].concat()));
    seeds
}

/// Valid pointers, and the references of a table.
pub(crate) fn good_pointers() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (pointer, _) in &sample().values {
        let mut encoded = Vec::new();
        pointer.encode(&mut encoded);
        seeds.push(encoded);
    }
    seeds.push(b"\x02\x07\x90\x03\x04\x09\x80\x01\x01".to_vec());
    seeds
}
