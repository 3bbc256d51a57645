//! The records of a log.

use std::path::{Path, PathBuf};

use crate::base::error::{Error, Result};
use crate::base::expiry::EXPIRY_BYTES;
use crate::files::batch::{Op, Ops};
use crate::files::log_directory;
use crate::files::shared_read::read_shared;
use crate::files::storage::{DiskStorage, Storage};
use crate::files::wal::{Next, RecordKind, SegmentReader, segment_file_number};

/// A log file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SegmentReport {
    /// The file.
    pub path: PathBuf,
    /// The number of the segment in the file.
    pub segment: u64,
    /// The number of the previous segment; 0 for none.
    pub previous: u64,
    /// The log position of the first record of the segment.
    pub base: u64,
    /// The creation time of the segment, in microseconds since the Unix epoch.
    pub created_micros: u64,
    /// The records before the first invalid record.
    pub records: Vec<LogRecord>,
    /// The byte offset in the file at which the records end.
    pub end: u64,
    /// True if the bytes at that offset are neither zeros nor a valid record.
    pub ends_in_garbage: bool,
}

/// A log record.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LogRecord {
    /// The position of the record in the log.
    pub position: u64,
    /// The kind: `batch`, `synced`, `closed` or `continued`.
    pub kind: &'static str,
    /// The sequence number of the first operation.
    pub sequence_number: u64,
    /// The operations of a batch.
    pub operations: Vec<RecordOperation>,
}

/// An operation of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordOperation {
    /// The id of the keyspace.
    pub keyspace: u32,
    /// The operation: `put`, `delete` or `delete-range`.
    pub kind: &'static str,
    /// The key, or the first key of the range.
    pub key: Vec<u8>,
    /// The length of the value in bytes.
    pub value_bytes: u64,
    /// The end of the range, if it has one.
    pub end: Option<Vec<u8>>,
}

/// The contents of a log.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LogReport {
    /// The log files, oldest segment first.
    pub segments: Vec<SegmentReport>,
    /// Log files without a valid segment header.
    pub unreadable: Vec<PathBuf>,
}

/// Reads the log of a database, or one log file. Finds the log if it has a separate directory.
///
/// # Errors
/// Fails if a file cannot be read or has a newer format version.
pub fn log(path: impl AsRef<Path>) -> Result<LogReport> {
    let path = path.as_ref();
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
    if segment_file_number(name).is_some() {
        DiskStorage.len(path).map_err(|error| Error::io("read", path, error))?;
        return read_files(vec![path.to_owned()]);
    }
    read_shared(&DiskStorage, path, || {
        let dir = log_directory::find(&DiskStorage, path)?;
        let names = DiskStorage.list(&dir).map_err(|error| Error::io("list", &dir, error))?;
        let logs = names.iter().filter(|name| segment_file_number(name).is_some());
        read_files(logs.map(|name| dir.join(name)).collect())
    })
}

fn read_files(paths: Vec<PathBuf>) -> Result<LogReport> {
    let mut report = LogReport { segments: Vec::new(), unreadable: Vec::new() };
    for path in paths {
        match SegmentReader::open(&DiskStorage, &path) {
            Ok(Some(reader)) => report.segments.push(read_current(reader)?),
            Ok(None) => report.unreadable.push(path),
            // A writer has removed the file since it was listed.
            Err(Error::Io(failure)) if failure.source.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    report.segments.sort_by_key(|segment| segment.segment);
    Ok(report)
}

/// How often the end of a segment is reread, because a writer may be appending a record to it.
const REREADS: u32 = 3;

/// Reads a segment. Rereads it if a writer has begun another segment in the file meanwhile.
fn read_current(mut reader: SegmentReader) -> Result<SegmentReport> {
    for _ in 0..REREADS {
        let (header, path) = (*reader.header(), reader.path().to_owned());
        let report = read_segment(reader)?;
        match SegmentReader::open(&DiskStorage, &path) {
            Ok(Some(now)) if *now.header() != header => reader = now,
            _ => return Ok(report),
        }
    }
    read_segment(reader)
}

fn read_segment(mut reader: SegmentReader) -> Result<SegmentReport> {
    let mut rereads = 0;
    let header = *reader.header();
    let mut records = Vec::new();
    let ends_in_garbage = loop {
        let position = reader.lsn().0;
        match reader.next()? {
            Next::Record(record) => {
                let kind = match record.kind {
                    RecordKind::Batch => "batch",
                    RecordKind::Synced => "synced",
                    RecordKind::Closed => "closed",
                    RecordKind::Continued => "continued",
                };
                let is_batch = record.kind == RecordKind::Batch;
                let operations = if is_batch { operations(record.payload) } else { Vec::new() };
                records.push(LogRecord { position, kind, sequence_number: record.seq, operations });
            }
            Next::End => break false,
            Next::Garbage if rereads < REREADS => {
                rereads += 1;
                std::thread::sleep(std::time::Duration::from_millis(1));
                reader.reread();
            }
            Next::Garbage => break true,
        }
    };
    Ok(SegmentReport {
        path: reader.path().to_owned(),
        segment: header.segment,
        previous: header.previous,
        base: header.base.0,
        created_micros: header.created_micros,
        records,
        end: reader.offset(),
        ends_in_garbage,
    })
}

fn operations(payload: &[u8]) -> Vec<RecordOperation> {
    let describe = |(keyspace, op): (crate::base::types::KeyspaceId, Op<'_>)| {
        let (kind, key, value_bytes, end) = match op {
            Op::Put { key, value } => ("put", key, value.len() as u64, None),
            Op::PutExpiring { key, stored } => {
                ("put-expiring", key, stored.len().saturating_sub(EXPIRY_BYTES) as u64, None)
            }
            Op::Merge { key, operand } => ("merge", key, operand.len() as u64, None),
            Op::Delete { key } => ("delete", key, 0, None),
            Op::DeleteRange { start, end } => ("delete-range", start, 0, end),
        };
        let (key, end) = (key.to_vec(), end.map(<[u8]>::to_vec));
        RecordOperation { keyspace: keyspace.0, kind, key, value_bytes, end }
    };
    Ops::new(payload).flatten().map(describe).collect()
}
