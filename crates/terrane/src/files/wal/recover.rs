//! Reads a log back after a close or a crash.
//!
//! Segments form a chain: each header names the previous segment and its end. Recovery follows the
//! chain back from the newest segment and ignores all other files. Then it reads records in order,
//! up to the first invalid one. Either the log ends there, because a power failure lost unsynced
//! writes, or the log is damaged, and recovery must fail because acknowledged writes would be lost.
//! Three rules decide:
//!
//! 1. If a later record, in the same or a later segment, or a note in a header states that the
//!    position was durable, the log is damaged.
//! 2. If the machine has not lost power since the segment began and a later record is valid, the log
//!    is damaged, because the page cache keeps every write of a dead process. For this rule the
//!    caller passes the current boot, unless the files are a volume snapshot: a snapshot lacks
//!    unsynced writes although the machine kept running.
//! 3. Otherwise the log ends there. Later records that survived are not replayed, so that the
//!    recovered writes are a prefix of the written ones.

mod replayed;
mod shared;

use std::path::{Path, PathBuf};

use super::format::{HEADER_BYTES, Record, RecordKind};
use super::segment_file_number;
use super::segment_reader::{LaterRecords, Next, SegmentReader, synced_position};
use crate::base::error::{Error, Result};
use crate::base::types::{Lsn, SeqNo};
use crate::files::storage::Storage;

pub(crate) use replayed::{Replayed, ReplayedFile};

/// Why rule 2 applies, and what to do if it should not.
const SAME_BOOT: &str = ", and the machine has not lost power since they were written; if the files \
                         are a snapshot of a volume in use, open them with the option \
                         after_power_loss";

/// The log of a database on disk.
#[derive(Debug)]
pub(crate) struct Recovery {
    /// The chain, oldest segment first.
    segments: Vec<SegmentReader>,
    /// Log files that are not part of the chain.
    pub(crate) unused: Vec<PathBuf>,
    /// Segments of other databases.
    foreign: Vec<PathBuf>,
    /// The largest segment number of all log files, whether they are part of the chain or not.
    pub(crate) newest_segment: u64,
    /// True if a writer may be appending to the log.
    is_shared: bool,
}

/// A batch in the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogBatch<'a> {
    /// The file.
    pub(crate) path: &'a Path,
    /// The offset of the record in the file.
    pub(crate) offset: u64,
    /// The position of the record in the log.
    pub(crate) lsn: Lsn,
    /// The sequence number of the first operation.
    pub(crate) seq: SeqNo,
    /// The encoded operations.
    pub(crate) operations: &'a [u8],
}

impl Recovery {
    /// Opens the log of `database` in the directory `dir`.
    pub(crate) fn open(storage: &dyn Storage, dir: &Path, database: u64) -> Result<Self> {
        let Found { segments, unused, foreign } = find_segments(storage, dir, database)?;
        Ok(Self { foreign, ..Self::of_segments(segments, unused) })
    }

    /// Refuses a directory that has a segment of another database, which a writer would remove.
    ///
    /// # Errors
    /// [`Error::ForeignLog`].
    pub(crate) fn check_own(&self) -> Result<()> {
        self.foreign.first().map_or(Ok(()), |path| Err(Error::ForeignLog { path: (**path).into() }))
    }

    /// Returns the log that ends with the newest of these segments. Adds the files of all other
    /// segments to `unused`.
    fn of_segments(mut found: Vec<SegmentReader>, mut unused: Vec<PathBuf>) -> Self {
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
        let foreign = Vec::new();
        Self { segments: chain, unused, foreign, newest_segment, is_shared: false }
    }

    /// Returns the start of each segment, and its creation time in microseconds since the Unix
    /// epoch. No record in a segment is older than the segment.
    pub(crate) fn times(&self) -> Vec<(Lsn, u64)> {
        let header = |segment: &SegmentReader| *segment.header();
        let headers = self.segments.iter().map(header);
        headers.map(|header| (header.base, header.created_micros)).collect()
    }

    /// Returns the position up to which the notes state that the log is durable. If an earlier
    /// recovery ended a segment, the segment's notes do not count beyond that end.
    fn noted_durable(&self) -> Lsn {
        let ends = self.segments.iter().skip(1).map(|next| next.header().previous_end);
        let ends = ends.chain([Lsn(u64::MAX)]);
        let noted = self.segments.iter().zip(ends).map(|(one, end)| one.notes().durable.min(end));
        noted.max().unwrap_or_default()
    }

    /// Calls `replay` for each batch at or after `from`, in order.
    ///
    /// `kept_boot` is the current boot, or `None` if writes of this boot may have been lost.
    /// `required` is the number of a segment that the log must reach; 0 for none.
    ///
    /// # Errors
    /// The log is damaged or incomplete, or `replay` fails.
    pub(crate) fn replay(
        mut self,
        storage: &dyn Storage,
        kept_boot: Option<u128>,
        dir: &Path,
        from: Lsn,
        required: u64,
        mut replay: impl FnMut(LogBatch<'_>) -> Result<()>,
    ) -> Result<Replayed> {
        self.check_complete(dir, from, required)?;
        let durable = self.noted_durable();
        let mut replayed = Replayed { end: from, durable, ..Replayed::default() };
        let mut last_seq = 0;
        for index in 0..self.segments.len() {
            let next = self.segments.get(index + 1).map(|next| *next.header());
            if let Some(next) = next.filter(|next| next.base <= from) {
                replayed.passed.push(ReplayedFile::passed(&self.segments[index], &next));
                continue;
            }
            // Records before `from` are in tables and need not be read. If no record begins at
            // `from`, which a power failure can cause, the segment is read from its start. Records
            // beyond the end that the next header states were dropped by an earlier recovery.
            if next.is_none_or(|next| from < next.previous_end) {
                self.segments[index].skip_to(from)?;
            }
            let header = *self.segments[index].header();
            let kept_power = kept_boot.is_some_and(|boot| boot == header.boot);
            let path = self.segments[index].path().to_owned();
            let read = self.read_to_end(index, &mut last_seq, kept_power, &mut |lsn, record| {
                if lsn >= from {
                    replayed.batches += 1;
                    let offset = HEADER_BYTES + (lsn.0 - header.base.0);
                    let Record { seq, payload: operations, .. } = *record;
                    replay(LogBatch { path: &path, offset, lsn, seq, operations })?;
                }
                Ok(())
            })?;
            let segment = &self.segments[index];
            if self.is_shared && (next.is_none() || read.ends_the_log.is_some()) {
                shared::check_not_reused(segment)?;
            }
            replayed.end = segment.lsn().max(from);
            replayed.last_segment = header.segment;
            replayed.last_end = segment.lsn();
            replayed.was_closed = read.last_kind == Some(RecordKind::Closed);
            replayed.files.push(ReplayedFile::new(segment, next.as_ref(), segment.lsn()));
            let continues = read.last_kind == Some(RecordKind::Continued);
            if kept_power && next.is_none() && continues {
                if self.is_shared && shared::has_successor(storage, dir, &header)? {
                    break;
                }
                let detail = format!("segment {} is missing{SAME_BOOT}", header.segment + 1);
                return Err(Error::corruption(dir, None, "log", detail));
            }
            if let Some(dropped) = read.ends_the_log {
                replayed.dropped_records = dropped;
                break;
            }
        }
        if replayed.end < durable {
            let detail = format!(
                "the log ends here, at position {}, but was durable up to position {durable}, as a \
                 note in the log states",
                replayed.end
            );
            return Err(replayed.ends_too_early(dir, detail));
        }
        Ok(replayed)
    }

    /// Reads the records of segment `index` from the reader's offset on, and decides whether the log
    /// ends in the segment.
    fn read_to_end(
        &mut self,
        index: usize,
        last_seq: &mut SeqNo,
        kept_power: bool,
        visit: &mut dyn FnMut(Lsn, &Record<'_>) -> Result<()>,
    ) -> Result<SegmentRead> {
        let ends_at = self.segments.get(index + 1).map(|next| next.header().previous_end);
        let mut last_kind = None;
        loop {
            let segment = &mut self.segments[index];
            let mut track = |lsn, record: Record<'_>| {
                last_kind = Some(record.kind);
                if record.kind == RecordKind::Batch {
                    *last_seq = record.seq;
                    visit(lsn, &record)?;
                }
                Ok(())
            };
            let read_to = match self.is_shared {
                true => shared::read_growing_segment(segment, ends_at, &mut track)?,
                false => read_segment(segment, ends_at, &mut track)?,
            };
            let is_whole = match ends_at {
                Some(ends_at) => read_to == SegmentEnd::Clean && segment.lsn() == ends_at,
                // After a power failure, zeros may be a hole: a write was lost although a later
                // write survived.
                None => {
                    let was_closed = last_kind == Some(RecordKind::Closed);
                    read_to == SegmentEnd::Clean && (kept_power || was_closed)
                }
            };
            if is_whole {
                return Ok(SegmentRead { last_kind, ends_the_log: None });
            }
            match self.check_end(index, *last_seq, kept_power) {
                Ok(0) => return Ok(SegmentRead { last_kind, ends_the_log: Some(0) }),
                // The writer may have appended the later records since this one was read.
                _ if self.is_shared && shared::has_grown(&mut self.segments[index])? => {}
                Ok(dropped) => return Ok(SegmentRead { last_kind, ends_the_log: Some(dropped) }),
                Err(error) => return Err(error),
            }
        }
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
            later.rewind();
            beyond.records += found.records + rest.records;
            beyond.synced = beyond.synced.max(found.synced).max(rest.synced);
        }
        let was_durable = beyond.synced.is_some_and(|synced| synced > end);
        if was_durable || (same_boot && beyond.records > 0) {
            let segment = &self.segments[index];
            let because = if was_durable { "" } else { SAME_BOOT };
            let detail = format!(
                "a record is damaged, but {} later ones are intact{because}",
                beyond.records
            );
            return Err(Error::corruption(segment.path(), Some(segment.offset()), "log", detail));
        }
        Ok(beyond.records)
    }
}

/// The log files in a directory.
#[derive(Default)]
struct Found {
    segments: Vec<SegmentReader>,
    /// Files without a valid header.
    unused: Vec<PathBuf>,
    /// Segments of other databases.
    foreign: Vec<PathBuf>,
}

/// Opens all segments of a database, and finds all other log files.
fn find_segments(storage: &dyn Storage, dir: &Path, database: u64) -> Result<Found> {
    let names = storage.list(dir).map_err(|error| Error::io("list", dir, error))?;
    let mut found = Found::default();
    for name in names.iter().filter(|name| segment_file_number(name).is_some()) {
        let path = dir.join(name);
        match SegmentReader::open(storage, &path) {
            Ok(Some(reader)) if reader.header().database == database => found.segments.push(reader),
            Ok(Some(_)) => found.foreign.push(path),
            Ok(None) => found.unused.push(path),
            // A writer has removed the file since the directory was listed.
            Err(Error::Io(failure)) if failure.source.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// How the records of a segment end.
struct SegmentRead {
    last_kind: Option<RecordKind>,
    /// If the log ends in this segment, the number of valid records beyond its end.
    ends_the_log: Option<u64>,
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
