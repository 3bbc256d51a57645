//! Reads a log back after a close or a crash.
//!
//! Segments form a chain: each header names the previous segment and its end. Recovery follows the
//! chain back from the newest segment and ignores all other files. Then it reads records in order,
//! up to the first invalid one. Either the log ends there, because a power failure lost unsynced
//! writes, or the log is damaged, and recovery must fail because acknowledged writes would be lost.
//! Three rules decide:
//!
//! 1. If a later record, in the same or a later segment, states that the position was durable, the
//!    log is damaged.
//! 2. If the machine has not lost power since the segment began and a later record is valid, the log
//!    is damaged, because the page cache keeps every write of a dead process.
//! 3. Otherwise the log ends there. Later records that survived are not replayed, so that the
//!    recovered writes are a prefix of the written ones.

use std::path::{Path, PathBuf};

use super::format::{Record, RecordKind};
use super::segment_file_number;
use super::segment_reader::{LaterRecords, Next, SegmentReader, synced_position};
use crate::error::{Error, Result};
use crate::storage::Storage;
use crate::types::{Lsn, SeqNo};

/// What the headers of log files state about the manifest.
///
/// A writer may be changing the files. A note is written after the edits that it states, so a
/// manifest that is read after the notes has at least these edits.
#[derive(Debug, Default)]
pub(crate) struct LogNotes {
    /// The database of each log file, and the manifest version in its note.
    versions: Vec<(u64, u64)>,
}

impl LogNotes {
    /// Reads the notes of all log files in a directory.
    pub(crate) fn read(storage: &dyn Storage, dir: &Path) -> Result<Self> {
        let names = storage.list(dir).map_err(|error| Error::io("list", dir, error))?;
        let mut versions = Vec::new();
        for name in names.iter().filter(|name| segment_file_number(name).is_some()) {
            match SegmentReader::open(storage, &dir.join(name)) {
                Ok(Some(reader)) => {
                    versions.push((reader.header().database, reader.manifest_version()));
                }
                Ok(None) => {}
                // A writer removed the file since the directory was listed.
                Err(Error::Io(failure))
                    if failure.source.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self { versions })
    }

    /// Returns the newest version that the manifest of `database` is known to have reached; 0 if
    /// there is no note.
    pub(crate) fn manifest_version(&self, database: u64) -> u64 {
        let own = self.versions.iter().filter(|(of, _)| *of == database);
        own.map(|(_, version)| *version).max().unwrap_or(0)
    }
}

/// The log of a database on disk.
#[derive(Debug)]
pub(crate) struct Recovery {
    /// The chain, oldest segment first.
    segments: Vec<SegmentReader>,
    /// Log files that are not part of the chain.
    pub(crate) unused: Vec<PathBuf>,
    /// The largest segment number of all log files, whether they are part of the chain or not.
    pub(crate) newest_segment: u64,
}

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
    pub(crate) passed: Vec<PathBuf>,
}

/// A log file that was read.
#[derive(Debug, Clone)]
pub(crate) struct ReplayedFile {
    pub(crate) path: PathBuf,
    /// The position of its end.
    pub(crate) end: Lsn,
    /// The length of the file up to its end.
    pub(crate) bytes: u64,
}

impl Recovery {
    /// Opens the log of `database` in the directory `dir`.
    pub(crate) fn open(storage: &dyn Storage, dir: &Path, database: u64) -> Result<Self> {
        let names = storage.list(dir).map_err(|error| Error::io("list", dir, error))?;
        let mut found: Vec<SegmentReader> = Vec::new();
        let mut unused = Vec::new();
        for path in names.iter().filter(|name| segment_file_number(name).is_some()) {
            let path = dir.join(path);
            match SegmentReader::open(storage, &path)? {
                Some(reader) if reader.header().database == database => found.push(reader),
                _ => unused.push(path),
            }
        }
        found.sort_by_key(|reader| reader.header().segment);
        let newest_segment = found.last().map_or(0, |reader| reader.header().segment);
        let mut chain: Vec<SegmentReader> = Vec::new();
        for reader in found.into_iter().rev() {
            let is_next = chain.last().is_none_or(|later| {
                later.header().previous == reader.header().segment
                    && reader.header().base <= later.header().previous_end
            });
            if is_next { chain.push(reader) } else { unused.push(reader.path().to_owned()) }
        }
        chain.reverse();
        Ok(Self { segments: chain, unused, newest_segment })
    }

    /// Returns the start of each segment, and its creation time in microseconds since the Unix
    /// epoch. No record in a segment is older than the segment.
    pub(crate) fn times(&self) -> Vec<(Lsn, u64)> {
        let header = |segment: &SegmentReader| *segment.header();
        let headers = self.segments.iter().map(header);
        headers.map(|header| (header.base, header.created_micros)).collect()
    }

    /// Calls `replay` for each batch at or after `from`, in order, with its position and the sequence
    /// number of its first operation.
    ///
    /// `required` is the number of a segment that the log must reach; 0 for none.
    ///
    /// # Errors
    /// The log is damaged or incomplete, or `replay` fails.
    pub(crate) fn replay(
        mut self,
        storage: &dyn Storage,
        dir: &Path,
        from: Lsn,
        required: u64,
        mut replay: impl FnMut(Lsn, SeqNo, &[u8]) -> Result<()>,
    ) -> Result<Replayed> {
        self.check_complete(dir, from, required)?;
        let boot = storage.boot_id();
        let mut replayed = Replayed { end: from, ..Replayed::default() };
        let mut last_seq = 0;
        for index in 0..self.segments.len() {
            let next = self.segments.get(index + 1).map(|next| *next.header());
            if next.is_some_and(|next| next.base <= from) {
                replayed.passed.push(self.segments[index].path().to_owned());
                continue;
            }
            let segment = &mut self.segments[index];
            let mut last_kind = None;
            // Records before `from` are in tables and need not be read. If no record begins at
            // `from`, which a power failure can cause, the segment is read from its start. Records
            // beyond the end that the next header states were dropped by an earlier recovery.
            if next.is_none_or(|next| from < next.previous_end) {
                segment.skip_to(from)?;
            }
            let read_to =
                read_segment(segment, next.map(|next| next.previous_end), |lsn, record| {
                    last_kind = Some(record.kind);
                    if record.kind == RecordKind::Batch {
                        last_seq = record.seq;
                        if lsn >= from {
                            replayed.batches += 1;
                            replay(lsn, record.seq, record.payload)?;
                        }
                    }
                    Ok(())
                })?;
            replayed.end = segment.lsn().max(from);
            replayed.last_segment = segment.header().segment;
            replayed.last_end = segment.lsn();
            replayed.was_closed = last_kind == Some(RecordKind::Closed);
            let (path, end, bytes) = (segment.path().to_owned(), segment.lsn(), segment.offset());
            replayed.files.push(ReplayedFile { path, end, bytes });
            let kept_power = boot.is_some_and(|boot| boot == segment.header().boot);
            let is_whole = match next {
                Some(next) => read_to == SegmentEnd::Clean && segment.lsn() == next.previous_end,
                // After a power failure, zeros may be a hole: a write was lost although a later
                // write survived.
                None => read_to == SegmentEnd::Clean && (kept_power || replayed.was_closed),
            };
            if kept_power && next.is_none() && last_kind == Some(RecordKind::Continued) {
                let number = segment.header().segment + 1;
                return Err(Error::corruption(
                    dir,
                    None,
                    "log",
                    format!("segment {number} is missing"),
                ));
            }
            if !is_whole {
                replayed.dropped_records = self.check_end(index, last_seq, kept_power)?;
                break;
            }
        }
        Ok(replayed)
    }

    fn check_complete(&self, dir: &Path, from: Lsn, required: u64) -> Result<()> {
        let missing = |detail: String| Err(Error::corruption(dir, None, "log", detail));
        let Some(oldest) = self.segments.first() else {
            if required == 0 {
                return Ok(());
            }
            return missing(format!("segment {required} and all others are missing"));
        };
        if oldest.header().base > from {
            return missing(format!(
                "the log begins at position {}, but records from position {from} on are needed",
                oldest.header().base
            ));
        }
        // Segments before the required segment may have been freed, but the required segment itself
        // must exist.
        if self.newest_segment < required {
            return missing(format!("segment {required} is missing"));
        }
        Ok(())
    }

    /// Decides whether the log may end in segment `index`, at the reader's offset. Returns the
    /// number of valid records beyond it.
    fn check_end(&mut self, index: usize, last_seq: SeqNo, same_boot: bool) -> Result<u64> {
        let end = self.segments[index].lsn();
        let mut beyond = self.segments[index].search_beyond(last_seq)?;
        for later in &mut self.segments[index + 1..] {
            let mut found = LaterRecords::default();
            read_segment(later, None, |_, record| {
                found.records += 1;
                found.synced = found.synced.max(synced_position(&record));
                Ok(())
            })?;
            let rest = later.search_beyond(last_seq)?;
            beyond.records += found.records + rest.records;
            beyond.synced = beyond.synced.max(found.synced).max(rest.synced);
        }
        let was_durable = beyond.synced.is_some_and(|synced| synced > end);
        if was_durable || (same_boot && beyond.records > 0) {
            let segment = &self.segments[index];
            let detail =
                format!("a record is damaged, but {} later ones are intact", beyond.records);
            return Err(Error::corruption(segment.path(), Some(segment.offset()), "log", detail));
        }
        Ok(beyond.records)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SegmentEnd {
    /// At the known end of the segment, or at zeros.
    Clean,
    /// At bytes that are not a record.
    Broken,
}

/// Reads records up to `ends_at`, or up to the last valid record.
fn read_segment(
    segment: &mut SegmentReader,
    ends_at: Option<Lsn>,
    mut visit: impl FnMut(Lsn, Record<'_>) -> Result<()>,
) -> Result<SegmentEnd> {
    loop {
        let lsn = segment.lsn();
        if ends_at == Some(lsn) {
            return Ok(SegmentEnd::Clean);
        }
        match segment.next()? {
            Next::Record(record) => visit(lsn, record)?,
            Next::End => return Ok(SegmentEnd::Clean),
            Next::Garbage => return Ok(SegmentEnd::Broken),
        }
    }
}
