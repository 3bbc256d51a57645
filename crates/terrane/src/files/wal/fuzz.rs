//! Fuzz targets for the decoders of the log.

use std::path::{Path, PathBuf};

use super::format::{RecordKind, SegmentHeader, record_bytes, record_header};
use super::{Next, Recovery, SegmentReader, segment_file_name};
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::types::{Lsn, SeqNo};
use crate::files::storage::{Access, MemoryStorage, Storage};

const DIR: &str = ".";
const DATABASE: u64 = 42;

/// More records than any fuzzer input can hold.
const STEPS_MAX: usize = 1 << 20;

fn segment_path(number: u64) -> PathBuf {
    Path::new(DIR).join(segment_file_name(number))
}

fn put(storage: &MemoryStorage, number: u64, bytes: &[u8]) {
    let written = storage
        .create(&segment_path(number), Access::Buffered)
        .and_then(|mut file| file.append(bytes));
    assert!(written.is_ok());
}

/// Checks that bad bytes give an error of the right kind.
fn check(error: &Error) {
    let kinds = [ErrorKind::Corruption, ErrorKind::Unsupported];
    assert!(kinds.contains(&error.kind()), "{error}");
}

/// Reads arbitrary bytes as a segment and as the whole log.
pub(crate) fn segment(bytes: &[u8]) {
    let storage = MemoryStorage::new(1);
    put(&storage, 1, bytes);
    match SegmentReader::open(&storage, &segment_path(1)) {
        Ok(Some(mut reader)) => {
            let mut records = 0;
            loop {
                match reader.next() {
                    Ok(Next::Record(record)) => assert!(record.payload.len() <= bytes.len()),
                    Ok(Next::End | Next::Garbage) => break,
                    Err(error) => return check(&error),
                }
                records += 1;
                assert!(records < STEPS_MAX, "reading a segment does not end");
            }
            let mut salvaged = 0;
            if let Err(error) = reader.salvage(None, &mut 0, |_, _| salvaged += 1) {
                check(&error);
            }
        }
        Ok(None) => {}
        Err(error) => check(&error),
    }
    let _ = recover(&storage);
}

/// Recovered batches with their positions.
type Batches = Vec<(Lsn, SeqNo, Vec<u8>)>;

fn recover(storage: &MemoryStorage) -> Result<Batches> {
    let mut batches: Batches = Vec::new();
    let outcome = Recovery::open(storage, Path::new(DIR), DATABASE).and_then(|recovery| {
        recovery.replay(storage, storage.boot_id(), Path::new(DIR), Lsn(0), 0, |batch| {
            batches.push((batch.lsn, batch.seq, batch.operations.to_vec()));
            assert!(batches.len() < STEPS_MAX, "recovery does not end");
            Ok(())
        })
    });
    let in_order = batches.is_sorted_by(|before, after| before.0 < after.0);
    assert!(in_order, "batches are replayed out of order");
    outcome.inspect_err(check).map(|_| batches)
}

/// Builds a log with valid checksums from the input: the first byte gives the number of segments,
/// then each record begins with its kind, sequence number and length. Every replayed batch must
/// come from the input.
pub(crate) fn sealed_log(bytes: &[u8]) {
    let storage = MemoryStorage::new(1);
    let Some((&first, mut rest)) = bytes.split_first() else { return };
    let segments = 1 + u64::from(first % 3);
    let mut base = Lsn(0);
    let mut previous_end = Lsn(0);
    let mut all = Vec::new();
    for segment in 1..=segments {
        let header = SegmentHeader {
            database: DATABASE,
            segment,
            nonce: segment * 77,
            base,
            previous: segment - 1,
            previous_end,
            boot: u128::from(first >> 4),
            created_micros: 5,
        };
        let mut file = header.encode();
        let begins = file.len();
        while let [what, seq, len, tail @ ..] = rest {
            let (payload, tail) = tail.split_at((*len as usize).min(tail.len()));
            rest = tail;
            if *what == 255 {
                break;
            }
            add_record(&mut file, header.nonce, *what, u64::from(*seq), payload);
            all.push((u64::from(*seq), payload.to_vec()));
        }
        previous_end = Lsn(base.0 + (file.len() - begins) as u64);
        base = Lsn(previous_end.0 + u64::from(first >> 2 & 3) * 8);
        file.resize(file.len() + usize::from(first >> 6) * 64, 0);
        put(&storage, segment, &file);
    }
    for (_, seq, payload) in recover(&storage).unwrap_or_default() {
        assert!(all.contains(&(seq, payload)), "a batch that was never written");
    }
}

fn add_record(file: &mut Vec<u8>, nonce: u64, what: u8, seq: SeqNo, payload: &[u8]) {
    let kind = match what % 8 {
        5 => RecordKind::Synced,
        6 => RecordKind::Closed,
        7 => RecordKind::Continued,
        _ => RecordKind::Batch,
    };
    let at = file.len();
    let mut header = record_header(nonce, at as u64, kind, seq, &[payload]);
    if what % 16 >= 12 {
        header[usize::from(what) % header.len()] ^= what;
    }
    file.extend_from_slice(&header);
    file.extend_from_slice(payload);
    file.resize(at + record_bytes(payload.len()), 0);
}

/// A valid segment.
pub(crate) fn good_segment() -> Vec<u8> {
    let header = SegmentHeader {
        database: DATABASE,
        segment: 1,
        nonce: 77,
        base: Lsn(0),
        previous: 0,
        previous_end: Lsn(0),
        boot: 0,
        created_micros: 5,
    };
    let mut file = header.encode();
    for (seq, payload) in [(1, &b"one"[..]), (2, &[9; 100]), (3, b"")] {
        add_record(&mut file, 77, 0, seq, payload);
    }
    add_record(&mut file, 77, 6, 4, b"");
    file.resize(file.len() + 100, 0);
    file
}
