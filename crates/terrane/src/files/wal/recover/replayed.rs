//! The result of a replay.

use std::path::{Path, PathBuf};

use crate::base::error::Error;
use crate::base::types::Lsn;
use crate::files::wal::format::{HEADER_BYTES, SegmentHeader};
use crate::files::wal::segment_reader::SegmentReader;

/// The result of a replay.
#[derive(Debug, Clone, Default)]
pub(crate) struct Replayed {
    /// The position after the last record.
    pub(crate) end: Lsn,
    /// The number of the last segment read; 0 if no segment was read.
    pub(crate) last_segment: u64,
    /// The end of the last segment read.
    pub(crate) last_end: Lsn,
    /// The number of batches replayed.
    pub(crate) batches: u64,
    /// The number of valid records that were not replayed because an earlier record is missing.
    pub(crate) dropped_records: u64,
    /// True if the log was closed cleanly.
    pub(crate) was_closed: bool,
    /// Files of the chain that were read.
    pub(crate) files: Vec<ReplayedFile>,
    /// Files of the chain that were skipped because all their records are in tables.
    pub(crate) passed: Vec<ReplayedFile>,
    /// The position up to which notes state that the log is durable.
    pub(crate) durable: Lsn,
}

/// A segment of the chain.
#[derive(Debug, Clone)]
pub(crate) struct ReplayedFile {
    pub(crate) path: PathBuf,
    /// The number of the segment.
    pub(crate) segment: u64,
    /// The position of its first record.
    pub(crate) base: Lsn,
    /// The position of its end.
    pub(crate) end: Lsn,
    /// The length of the file up to its end.
    pub(crate) bytes: u64,
    /// The length of the file.
    pub(crate) file_bytes: u64,
    /// When the next segment began, in microseconds since the Unix epoch; `None` if there is none.
    pub(crate) ended_micros: Option<u64>,
}

impl ReplayedFile {
    /// Returns a segment that was not read. Its end is the one stated by the next segment.
    pub(super) fn passed(segment: &SegmentReader, next: &SegmentHeader) -> Self {
        Self::new(segment, Some(next), next.previous_end)
    }

    pub(super) fn new(segment: &SegmentReader, next: Option<&SegmentHeader>, end: Lsn) -> Self {
        let header = segment.header();
        Self {
            path: segment.path().to_owned(),
            segment: header.segment,
            base: header.base,
            end,
            bytes: HEADER_BYTES + end.0.saturating_sub(header.base.0),
            file_bytes: segment.file_bytes(),
            ended_micros: next.map(|next| next.created_micros),
        }
    }
}

impl Replayed {
    /// Ends the segments before the record at `end`, which was read but is not part of the result.
    pub(crate) fn end_at(&mut self, end: Lsn) {
        self.files.retain(|file| file.base <= end);
        if let Some(last) = self.files.last_mut() {
            last.end = last.end.min(end);
            last.bytes = HEADER_BYTES + last.end.0.saturating_sub(last.base.0);
        }
        self.end = self.end.min(end);
    }

    /// Returns the error for a log in `dir` that was durable beyond its end.
    pub(crate) fn ends_too_early(&self, dir: &Path, detail: String) -> Error {
        let last = self.files.last();
        let (path, offset) = last.map_or((dir, None), |file| (&*file.path, Some(file.bytes)));
        Error::corruption(path, offset, "log", detail)
    }
}
