//! Finds large values in the records of the log.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::format::{HEADER_BYTES, RECORD_HEADER_BYTES, Record, RecordKind};
use super::segment_reader::{Next, SegmentReader};
use super::writer::LogWriter;
use crate::base::error::{Error, Result};
use crate::base::types::{KeyspaceId, Lsn, SeqNo};
use crate::files::batch::{Op, Ops};
use crate::files::storage::Storage;

/// A file of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogFile {
    pub(crate) path: PathBuf,
    /// The position of the first record.
    pub(crate) base: Lsn,
    /// The end of the segment; `None` for the current one.
    pub(crate) end: Option<Lsn>,
}

impl LogFile {
    /// Returns the offset in the file of a position in the log.
    pub(crate) fn offset_of(&self, at: Lsn) -> u64 {
        HEADER_BYTES + at.0.saturating_sub(self.base.0)
    }
}

/// Returns the position of the byte at `within` in the payload of the record at `begin`.
#[inline]
pub(crate) fn payload_at(begin: Lsn, within: usize) -> Lsn {
    Lsn(begin.0 + (RECORD_HEADER_BYTES + within) as u64)
}

/// A large value in a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundValue<'a> {
    pub(crate) seq: SeqNo,
    pub(crate) key: &'a [u8],
    pub(crate) len: u32,
    /// The offset of the value in the file.
    pub(crate) offset: u64,
}

/// The sizes of a segment and of its records in a part of the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SegmentPart {
    /// The length of the file.
    pub(crate) file_bytes: u64,
    /// The length of the records in the part.
    pub(crate) record_bytes: u64,
}

impl LogWriter {
    /// Returns the files with records at or after `begins`, oldest first, and keeps them from being
    /// reused: they may get second names as value files.
    pub(crate) fn files_for_values(&mut self, begins: Lsn) -> Vec<LogFile> {
        let full = self.full.iter().filter(|segment| segment.end > begins);
        let full = full.map(|segment| LogFile {
            path: segment.path.clone(),
            base: segment.base,
            end: Some(segment.end),
        });
        let base = self.current.header.base;
        let current = LogFile { path: self.current.path.clone(), base, end: None };
        let files: Vec<LogFile> = full.chain([current]).collect();
        self.linked.extend(files.iter().map(|file| file.path.clone()));
        files
    }
}

/// Visits the values of a keyspace that are at least `len_min` bytes long, in the records of a
/// segment that are within `part` of the log. All records of the part must be complete. Returns
/// `None` if the file has no valid header.
///
/// # Errors
/// The file cannot be read, or `visit` fails.
pub(crate) fn values_in_segment(
    storage: &dyn Storage,
    path: &Path,
    (keyspace, len_min): (KeyspaceId, u64),
    part: Range<Lsn>,
    mut visit: impl FnMut(FoundValue<'_>),
) -> Result<Option<SegmentPart>> {
    let Some(mut reader) = SegmentReader::open(storage, path)? else { return Ok(None) };
    let file_bytes = storage.len(path).map_err(|error| Error::io("check", path, error))?;
    let mut found = SegmentPart { file_bytes, record_bytes: 0 };
    if part.start > reader.lsn() {
        reader.skip_to(part.start)?;
    }
    // If no record begins at the start of the part, the reader also visits earlier records.
    while reader.lsn() < part.end {
        let (at, lsn) = (reader.offset(), reader.lsn());
        let payload_at = at + RECORD_HEADER_BYTES as u64;
        let Next::Record(record) = reader.next()? else { break };
        if lsn >= part.start {
            visit_values(record, payload_at, (keyspace, len_min), &mut visit);
            found.record_bytes += reader.offset() - at;
        }
    }
    Ok(Some(found))
}

fn visit_values(
    record: Record<'_>,
    payload_at: u64,
    (keyspace, len_min): (KeyspaceId, u64),
    visit: &mut impl FnMut(FoundValue<'_>),
) {
    if record.kind != RecordKind::Batch {
        return;
    }
    for (seq, op) in (record.seq..).zip(Ops::new(record.payload)) {
        let Ok((id, Op::Put { key, value })) = op else { continue };
        if id == keyspace && value.len() as u64 >= len_min {
            // The value is a part of the payload.
            let within = value.as_ptr().addr() - record.payload.as_ptr().addr();
            let offset = payload_at + within as u64;
            visit(FoundValue { seq, key, len: value.len() as u32, offset });
        }
    }
}
