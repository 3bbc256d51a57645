//! Reads a log back after the database was closed, or after a crash.
//!
//! Segments form a chain: each names the one before and the position at which that one ends. The
//! chain is followed back from the newest segment; files that are not part of it are of no use.
//! Then records are read in order. Where the next one is not whole, either the log ends there, as
//! it does when the loss of power took unsynced writes, or the log is damaged, and replay must not
//! go on as if writes that were promised had never been. What tells the two apart:
//!
//! - a later record, in the same or a later segment, says that the place was durable: damaged;
//! - the machine has not lost power since the segment was begun, and there is a later record:
//!   damaged, for what a process wrote survives it;
//! - otherwise the log ends there, and later records, which may have survived, are not replayed:
//!   what is recovered is a prefix of what was written.

use std::path::{Path, PathBuf};

use super::format::{Record, RecordKind};
use super::segment_file_number;
use super::segment_reader::{Beyond, Next, SegmentReader, synced_position};
use crate::error::{Error, Result};
use crate::storage::Storage;
use crate::types::{Lsn, SeqNo};

/// The log of a database, as it lies on disk.
#[derive(Debug)]
pub(crate) struct Recovery {
    /// The chain, oldest segment first.
    segments: Vec<SegmentReader>,
    /// Files of the log directory that are not part of the chain.
    pub(crate) unused: Vec<PathBuf>,
    /// The largest number of any segment, in the chain or not.
    pub(crate) newest_segment: u64,
}

/// Where replay came to an end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Replayed {
    /// The position after the last record.
    pub(crate) end: Lsn,
    /// The number of the last segment that was read; 0 for none.
    pub(crate) last_segment: u64,
    /// Where that segment ends.
    pub(crate) last_end: Lsn,
    /// Batches replayed.
    pub(crate) batches: u64,
    /// Records beyond the end that survived and were not replayed, as an earlier one is missing.
    pub(crate) dropped_records: u64,
    /// Whether the log was closed in order.
    pub(crate) was_closed: bool,
    /// Files of the chain that were read.
    pub(crate) files: Vec<ReplayedFile>,
    /// Files of the chain that hold only what is in tables.
    pub(crate) passed: Vec<PathBuf>,
}

/// A file of the log that was read.
#[derive(Debug, Clone)]
pub(crate) struct ReplayedFile {
    pub(crate) path: PathBuf,
    /// The position at which it ends.
    pub(crate) end: Lsn,
    /// Bytes of the file up to its end.
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

    /// The manifest holds all edits up to this version, as far as the log says.
    pub(crate) fn manifest_version(&self) -> u64 {
        self.segments.iter().map(SegmentReader::manifest_version).max().unwrap_or(0)
    }

    /// Where segments begin, and when each was begun, in microseconds since the Unix epoch: no record
    /// in it is older.
    pub(crate) fn times(&self) -> Vec<(Lsn, u64)> {
        let header = |segment: &SegmentReader| *segment.header();
        let headers = self.segments.iter().map(header);
        headers.map(|header| (header.base, header.created_micros)).collect()
    }

    /// Replays all batches from `from` on, in order. Each is given with its position and the
    /// sequence number of its first operation.
    ///
    /// `required` is a segment that must be there, if there is a log at all.
    ///
    /// # Errors
    /// The log is damaged, a part of it is missing, or `replay` fails.
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
            // What is in tables need not be read. Where no record begins at the position, as after
            // the loss of power, the segment is read from its start; beyond the end that a later
            // segment knows of it are only records that were given up.
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
                // Zeros may be a hole, if power was lost: what was written here is gone, and what
                // came later is not.
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
            return missing(format!("segment {required} is missing, and so are all others"));
        };
        if oldest.header().base > from {
            return missing(format!(
                "it begins at position {}, and records from {from} on are needed",
                oldest.header().base
            ));
        }
        // A segment before the required one may be gone, it may not.
        if self.newest_segment < required {
            return missing(format!("segment {required} is missing"));
        }
        Ok(())
    }

    /// Decides whether the log may end inside of segment `index`, where the reader stands. Returns
    /// how many records lie beyond.
    fn check_end(&mut self, index: usize, last_seq: SeqNo, same_boot: bool) -> Result<u64> {
        let end = self.segments[index].lsn();
        let mut beyond = self.segments[index].search_beyond(last_seq)?;
        for later in &mut self.segments[index + 1..] {
            let mut found = Beyond::default();
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
            let detail = format!("a record is damaged, and {} later ones are not", beyond.records);
            return Err(Error::corruption(segment.path(), Some(segment.offset()), "log", detail));
        }
        Ok(beyond.records)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SegmentEnd {
    /// At its known end, or at zeros.
    Clean,
    /// At something that is no record.
    Broken,
}

/// Reads records up to `ends_at`, or as far as there are any.
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
