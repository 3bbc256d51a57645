//! The records of a log.

use std::path::{Path, PathBuf};

use crate::batch::{Op, Ops};
use crate::error::{Error, Result};
use crate::storage::{DiskStorage, Storage};
use crate::wal::{Next, RecordKind, SegmentReader, segment_file_number};

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

/// Reads the log of a database, or one log file.
///
/// # Errors
/// Fails if a file cannot be read or has a newer format version.
pub fn log(path: impl AsRef<Path>) -> Result<LogReport> {
    let path = path.as_ref();
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
    let is_of_directory = segment_file_number(name).is_none();
    let paths = if !is_of_directory {
        vec![path.to_owned()]
    } else {
        let names = DiskStorage.list(path).map_err(|error| Error::io("list", path, error))?;
        let logs = names.iter().filter(|name| segment_file_number(name).is_some());
        logs.map(|name| path.join(name)).collect()
    };
    let mut report = LogReport { segments: Vec::new(), unreadable: Vec::new() };
    for path in paths {
        match SegmentReader::open(&DiskStorage, &path) {
            Ok(Some(reader)) => report.segments.push(read_segment(reader)?),
            Ok(None) => report.unreadable.push(path),
            // A database in use has removed the file since it was listed.
            Err(_) if is_of_directory && is_gone(&path) => {}
            Err(error) => return Err(error),
        }
    }
    report.segments.sort_by_key(|segment| segment.segment);
    Ok(report)
}

fn is_gone(path: &Path) -> bool {
    DiskStorage.len(path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

fn read_segment(mut reader: SegmentReader) -> Result<SegmentReport> {
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
    let describe = |(keyspace, op): (crate::types::KeyspaceId, Op<'_>)| {
        let (kind, key, value_bytes, end) = match op {
            Op::Put { key, value } => ("put", key, value.len() as u64, None),
            Op::Delete { key } => ("delete", key, 0, None),
            Op::DeleteRange { start, end } => ("delete-range", start, 0, end),
        };
        let (key, end) = (key.to_vec(), end.map(<[u8]>::to_vec));
        RecordOperation { keyspace: keyspace.0, kind, key, value_bytes, end }
    };
    Ops::new(payload).flatten().map(describe).collect()
}
