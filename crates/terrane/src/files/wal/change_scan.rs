//! Reads the committed batches of a log while writers append to it.
//!
//! 1. Only records before [`ReadLimit::upto`], which are complete, are read, and only visible batches are
//!    returned. When the limit moves, bytes read earlier are read again, because a writer may have been
//!    copying a record there.
//! 2. Every number between two batches belongs to a write that is not in the log, because batches take
//!    consecutive numbers. The scan reports it ([`Scanned::Gap`]). A gap at the end is not reported
//!    until a batch follows it or its numbers are known to be used up ([`ChangeScan::skip_used`]),
//!    because they may be reused after a crash.
//! 3. The scan notices when a segment has been freed, because records of the segment that replaced
//!    it have another nonce, and because each segment names its predecessor.

use std::io::ErrorKind;

use super::format::RecordKind;
use super::retained_segments::LogPart;
use super::segment_reader::{Next, SegmentReader};
use crate::base::error::{Error, Result};
use crate::base::types::{Lsn, SeqNo};
use crate::files::batch::Ops;
use crate::files::storage::Storage;

/// How often the scan retries after a segment was freed between being listed and being opened.
const RETRIES: usize = 20;

/// The limit up to which a log may be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ReadLimit {
    /// The newest visible sequence number, loaded before the position.
    pub(crate) visible: SeqNo,
    /// All records before this position are complete, and durable if only durable ones are wanted.
    pub(crate) upto: Lsn,
}

/// A log in use.
pub(crate) trait LogInUse {
    /// Returns all segments, oldest first.
    ///
    /// # Errors
    /// The database was closed.
    fn parts(&self) -> Result<Vec<LogPart>>;

    /// Returns the oldest segment with this number or a higher one.
    ///
    /// # Errors
    /// The database was closed.
    fn part_from(&self, segment: u64) -> Result<Option<LogPart>>;

    /// Returns the limit for a reader that has read the log up to `at`.
    ///
    /// # Errors
    /// The log could not be made durable.
    fn limit(&self, at: Lsn) -> Result<ReadLimit>;

    /// Returns the position before which all records are complete.
    fn complete(&self) -> Lsn;
}

/// A batch of the log.
#[derive(Debug, Clone)]
pub(crate) struct LoggedBatch {
    pub(crate) first: SeqNo,
    pub(crate) last: SeqNo,
    /// The encoded operations, which were decoded without an error.
    pub(crate) operations: Vec<u8>,
}

/// The next item of a log.
#[derive(Debug)]
pub(crate) enum Scanned {
    Batch(LoggedBatch),
    /// Writes up to this sequence number are not in the log.
    Gap(SeqNo),
    /// Nothing more may be read yet.
    End,
    /// The following segment was freed.
    Gone(Gone),
}

/// The position at which a scan should continue is not in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gone {
    /// The oldest position at which a scan can begin.
    pub(crate) oldest: SeqNo,
}

/// A scan of a log from a sequence number on.
#[derive(Debug)]
pub(crate) struct ChangeScan {
    /// Everything up to this number was returned.
    position: SeqNo,
    at: Option<Place>,
    limit: ReadLimit,
}

/// The segment that is being read.
#[derive(Debug)]
struct Place {
    reader: SegmentReader,
    /// The end of the segment, once it is known.
    end: Option<Lsn>,
}

/// One step of a scan.
enum Step {
    Return(Scanned),
    Continue,
    /// No valid record begins here.
    Damaged,
}

impl ChangeScan {
    pub(crate) fn new(position: SeqNo) -> Self {
        Self { position, at: None, limit: ReadLimit::default() }
    }

    /// Returns the number up to which everything was returned.
    pub(crate) fn position(&self) -> SeqNo {
        self.position
    }

    /// Returns the number that was visible when the end was last found. All visible batches were
    /// returned then.
    pub(crate) fn seen(&self) -> SeqNo {
        self.limit.visible
    }

    /// Skips a gap at the end, if the scan has found the end, and returns its last number. All numbers up
    /// to `used` must be used up, even after a crash, and their batches durable before the end was found.
    pub(crate) fn skip_used(&mut self, used: SeqNo) -> Option<SeqNo> {
        let last = used.min(self.limit.visible);
        (last > self.position).then(|| {
            self.position = last;
            last
        })
    }

    /// Returns the next batch or gap.
    ///
    /// # Errors
    /// The log is damaged or cannot be read, or the position is within a batch.
    pub(crate) fn next(&mut self, storage: &dyn Storage, log: &dyn LogInUse) -> Result<Scanned> {
        loop {
            let Some(place) = &mut self.at else {
                match locate(storage, log, self.position)? {
                    Ok(place) => self.at = Some(place),
                    Err(gone) => return Ok(Scanned::Gone(gone)),
                }
                continue;
            };
            let lsn = place.reader.lsn();
            if place.end.is_some_and(|end| lsn >= end) {
                match next_place(storage, log, place)? {
                    Some(next) => self.at = Some(next),
                    None => return gone(storage, log),
                }
                continue;
            }
            if lsn >= self.limit.upto && !self.move_limit(log)? {
                return Ok(Scanned::End);
            }
            match self.step(log)? {
                Step::Return(scanned) => return Ok(scanned),
                Step::Continue => {}
                Step::Damaged => return self.missing_record(storage, log),
            }
        }
    }

    /// Loads the limit again. Returns false if nothing more may be read.
    fn move_limit(&mut self, log: &dyn LogInUse) -> Result<bool> {
        let Some(place) = &mut self.at else { return Ok(false) };
        let lsn = place.reader.lsn();
        self.limit = log.limit(lsn)?;
        place.reader.reread();
        Ok(self.limit.upto > lsn)
    }

    fn step(&mut self, log: &dyn LogInUse) -> Result<Step> {
        let Some(place) = &mut self.at else { return Ok(Step::Continue) };
        let (lsn, offset) = (place.reader.lsn(), place.reader.offset());
        let record = match place.reader.next()? {
            Next::Record(record) => record,
            Next::End | Next::Garbage => return Ok(Step::Damaged),
        };
        let (first, kind) = (record.seq, record.kind);
        if kind != RecordKind::Batch {
            if kind == RecordKind::Continued {
                place.end = Some(place.reader.lsn());
            }
            return Ok(Step::Continue);
        }
        let count = Ops::new(record.payload).try_fold(0, |count, op| op.map(|_| count + 1));
        let is_next = first == self.position + 1 && first <= self.limit.visible;
        let operations = if is_next { record.payload.to_vec() } else { Vec::new() };
        let count: u64 = match count {
            Ok(count) => count,
            Err(error) => {
                place.reader.return_to(lsn);
                let (path, offset) = (place.reader.path(), Some(offset));
                return Err(Error::corruption(path, offset, "log record", error.to_string()));
            }
        };
        let last = (first + count).saturating_sub(1);
        if last <= self.position {
            return Ok(Step::Continue);
        }
        if is_next {
            place.reader.free_window();
            self.position = last;
            return Ok(Step::Return(Scanned::Batch(LoggedBatch { first, last, operations })));
        }
        place.reader.return_to(lsn);
        if first <= self.position {
            let found = format!("{}, within a batch that ends at {last}", self.position);
            return Err(Error::invalid("position", found, "the position of a batch"));
        }
        if first > self.limit.visible {
            self.limit = log.limit(lsn)?;
            let is_visible = first <= self.limit.visible;
            return Ok(if is_visible { Step::Continue } else { Step::Return(Scanned::End) });
        }
        self.position = first - 1;
        Ok(Step::Return(Scanned::Gap(self.position)))
    }

    /// Finds out why a record that must be complete is missing.
    fn missing_record(&self, storage: &dyn Storage, log: &dyn LogInUse) -> Result<Scanned> {
        let Some(Place { reader, .. }) = &self.at else { return Ok(Scanned::End) };
        let segment = reader.header().segment;
        if log.part_from(segment)?.is_none_or(|part| part.segment != segment) {
            return gone(storage, log);
        }
        Err(damaged_record(reader))
    }
}

fn damaged_record(reader: &SegmentReader) -> Error {
    let detail = "a record is damaged or missing that readers of changes need";
    Error::corruption(reader.path(), Some(reader.offset()), "log", detail)
}

/// Finds a place in the log that precedes all batches after `position`.
fn locate(
    storage: &dyn Storage,
    log: &dyn LogInUse,
    position: SeqNo,
) -> Result<Result<Place, Gone>> {
    'again: for _ in 0..RETRIES {
        let complete = log.complete();
        let parts = log.parts()?;
        // The first number of the oldest segment that has batches.
        let mut oldest = None;
        for (at, part) in parts.iter().enumerate().rev() {
            let Some(mut reader) = open(storage, log, part)? else { continue 'again };
            let end = part.end.unwrap_or(complete);
            let first = first_batch(&mut reader, end, log)?;
            // Nothing is missing before the first segment ever written.
            let is_whole = at == 0 && reader.header().previous == 0 && part.base == Lsn(0);
            let is_found = match first {
                Some(first) => first <= position + 1,
                // In a log without batches, a scan that has returned all writes begins at the start.
                None => at == 0 && oldest.is_none() && position >= log.limit(end)?.visible,
            };
            if is_found || is_whole {
                return Ok(Ok(Place::new(reader, part)));
            }
            oldest = first.or(oldest);
        }
        let oldest = match oldest {
            Some(first) => first - 1,
            // A batch that has since become visible may be in the log.
            None if log.complete() != complete => continue 'again,
            None => log.limit(complete)?.visible,
        };
        return Ok(Err(Gone { oldest }));
    }
    Ok(Err(Gone { oldest: log.limit(Lsn(0))?.visible }))
}

impl Place {
    fn new(mut reader: SegmentReader, part: &LogPart) -> Self {
        reader.rewind();
        Self { reader, end: part.end }
    }
}

/// Returns the place after the end of a segment; `None` if the next segment was freed.
fn next_place(storage: &dyn Storage, log: &dyn LogInUse, place: &Place) -> Result<Option<Place>> {
    let segment = place.reader.header().segment;
    for _ in 0..RETRIES {
        let Some(part) = log.part_from(segment + 1)? else { return Ok(None) };
        if let Some(reader) = open(storage, log, &part)? {
            let follows = reader.header().previous == segment;
            return Ok(follows.then(|| Place::new(reader, &part)));
        }
    }
    Ok(None)
}

fn gone(storage: &dyn Storage, log: &dyn LogInUse) -> Result<Scanned> {
    // No batch follows the largest number, so the oldest position is found.
    Ok(match locate(storage, log, 0)? {
        Err(gone) => Scanned::Gone(gone),
        Ok(_) => Scanned::Gone(Gone { oldest: 0 }),
    })
}

/// Opens a segment; `None` if it has been freed.
fn open(
    storage: &dyn Storage,
    log: &dyn LogInUse,
    part: &LogPart,
) -> Result<Option<SegmentReader>> {
    let opened = match SegmentReader::open(storage, &part.path) {
        Ok(reader) => reader.filter(|reader| reader.header().segment == part.segment),
        Err(Error::Io(failure)) if failure.source.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    // A segment leaves the log before its file is removed or reused.
    let is_there = || log.part_from(part.segment).map(|now| now.as_ref() == Some(part));
    if opened.is_none() && is_there()? {
        let detail = "the header of a segment is damaged or missing that readers of changes need";
        return Err(Error::corruption(&part.path, Some(0), "log", detail));
    }
    Ok(opened)
}

/// Returns the first sequence number of the first batch before `end`; `None` if there is none.
fn first_batch(reader: &mut SegmentReader, end: Lsn, log: &dyn LogInUse) -> Result<Option<SeqNo>> {
    while reader.lsn() < end {
        match reader.next()? {
            Next::Record(record) if record.kind == RecordKind::Batch => {
                return Ok(Some(record.seq));
            }
            Next::Record(record) if record.kind == RecordKind::Continued => return Ok(None),
            Next::Record(_) => {}
            Next::End | Next::Garbage => {
                let segment = reader.header().segment;
                let is_there = log.part_from(segment)?.is_some_and(|part| part.segment == segment);
                return if is_there { Err(damaged_record(reader)) } else { Ok(None) };
            }
        }
    }
    Ok(None)
}
