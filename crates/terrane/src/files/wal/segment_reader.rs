//! Reads the records of one segment through a sliding window.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::format::{
    HEADER_BYTES, Parsed, RECORD_HEADER_BYTES, Record, RecordKind, SegmentHeader, parse_record,
};
use super::notes::Notes;
use crate::base::error::{Error, Result};
use crate::base::types::{Lsn, SeqNo};
use crate::files::storage::{Access, RandomReader, Storage};

/// The length of a window, unless a record is longer than the window.
const WINDOW_BYTES: u64 = 1 << 20;

/// The length of the first window. It is short because a cleanly closed log has few records to
/// replay.
const FIRST_WINDOW_BYTES: u64 = 64 << 10;

/// A segment that is being read.
#[derive(Debug)]
pub(crate) struct SegmentReader {
    header: SegmentHeader,
    notes: Notes,
    path: PathBuf,
    file: Arc<dyn RandomReader>,
    file_bytes: u64,
    /// Bytes of the file from `window_start` on.
    window: Vec<u8>,
    window_start: u64,
    /// The offset of the next record.
    offset: u64,
}

/// The next item of a segment.
#[derive(Debug)]
pub(crate) enum Next<'a> {
    Record(Record<'a>),
    /// Zeros, or the end of the file.
    End,
    /// Bytes that are not a record.
    Garbage,
}

impl SegmentReader {
    /// Opens a segment; `None` if the file does not begin with a header.
    pub(crate) fn open(storage: &dyn Storage, path: &Path) -> Result<Option<Self>> {
        let io = |error| Error::io("read", path, error);
        let file_bytes = storage.len(path).map_err(io)?;
        if file_bytes < HEADER_BYTES {
            return Ok(None);
        }
        let file = storage.open(path, Access::Buffered).map_err(io)?;
        let mut bytes = vec![0; HEADER_BYTES as usize];
        file.read_at(0, &mut bytes).map_err(io)?;
        Ok(SegmentHeader::decode(&bytes, path)?.map(|header| Self {
            notes: Notes::decode(header.nonce, &bytes),
            header,
            path: path.to_owned(),
            file,
            file_bytes,
            window: Vec::new(),
            window_start: HEADER_BYTES,
            offset: HEADER_BYTES,
        }))
    }

    pub(crate) fn header(&self) -> &SegmentHeader {
        &self.header
    }

    /// Returns the notes that the header had when the segment was opened.
    pub(crate) fn notes(&self) -> Notes {
        self.notes
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Returns the file offset of the next record.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the log position of the next record.
    pub(crate) fn lsn(&self) -> Lsn {
        Lsn(self.header.base.0 + (self.offset - HEADER_BYTES))
    }

    /// Moves to `lsn` if a record begins there; otherwise does not move. Returns true if it moved.
    ///
    /// A checksum is valid only at the record's own offset, so a valid record was written there.
    pub(super) fn skip_to(&mut self, lsn: Lsn) -> Result<bool> {
        let start = self.offset;
        let skipped = lsn.0.saturating_sub(self.lsn().0);
        self.offset = start.saturating_add(skipped);
        let at = self.offset;
        let found = at < self.file_bytes && matches!(self.next()?, Next::Record(_));
        self.offset = if found { at } else { start };
        Ok(found)
    }

    /// Reads the next record. If there is none, the reader does not move.
    pub(crate) fn next(&mut self) -> Result<Next<'_>> {
        let mut wanted = RECORD_HEADER_BYTES as u64;
        // The loop repeats until the window holds the whole record.
        loop {
            self.fill(wanted)?;
            let len_max = self.file_bytes.saturating_sub(self.offset);
            let parsed = parse_record(self.rest(), self.header.nonce, self.offset, len_max);
            match parsed {
                Parsed::NeedsBytes(bytes) if bytes as u64 > wanted => wanted = bytes as u64,
                Parsed::NeedsBytes(_) | Parsed::Garbage => return Ok(Next::Garbage),
                Parsed::Zeros => return Ok(Next::End),
                Parsed::Record(record, total) => {
                    let (kind, seq, len) = (record.kind, record.seq, record.payload.len());
                    let start = (self.offset - self.window_start) as usize + RECORD_HEADER_BYTES;
                    self.offset += total as u64;
                    let payload = self.window.get(start..start + len).unwrap_or_default();
                    return Ok(Next::Record(Record { kind, seq, payload }));
                }
            }
        }
    }

    /// Reads the header again; `None` if the file does not begin with a header now.
    pub(super) fn read_header(&self) -> Result<Option<SegmentHeader>> {
        let mut bytes = vec![0; HEADER_BYTES as usize];
        let read = self.file.read_at(0, &mut bytes);
        read.map_err(|error| Error::io("read", &self.path, error))?;
        SegmentHeader::decode(&bytes, &self.path)
    }

    /// Reads the file again from the next record on, because a writer may have appended to it.
    pub(crate) fn reread(&mut self) {
        self.window.clear();
        self.window_start = self.offset;
    }

    /// Returns to the first record.
    pub(super) fn rewind(&mut self) {
        self.offset = HEADER_BYTES;
        self.reread();
    }

    /// Returns to the record at `lsn`, which was read before, to read it again.
    pub(super) fn return_to(&mut self, lsn: Lsn) {
        self.offset = HEADER_BYTES + lsn.0.saturating_sub(self.header.base.0);
        self.reread();
    }

    /// Frees the memory of a window that held a long record.
    pub(super) fn free_window(&mut self) {
        if self.window.len() as u64 > WINDOW_BYTES {
            self.window = Vec::new();
            self.window_start = self.offset;
        }
    }

    /// Returns the bytes of the window from the current offset on.
    fn rest(&self) -> &[u8] {
        let start = self.offset.saturating_sub(self.window_start) as usize;
        self.window.get(start..).unwrap_or_default()
    }

    /// Fills the window with `wanted` bytes from the offset on, or with the rest of the file.
    fn fill(&mut self, wanted: u64) -> Result<()> {
        let left = self.file_bytes.saturating_sub(self.offset);
        let wanted = wanted.min(left);
        let inside = self.offset >= self.window_start;
        if inside && self.rest().len() as u64 >= wanted {
            return Ok(());
        }
        let usual = if self.window.is_empty() { FIRST_WINDOW_BYTES } else { WINDOW_BYTES };
        let len = wanted.max(usual.min(left)) as usize;
        self.window.resize(len, 0);
        self.window_start = self.offset;
        self.file
            .read_at(self.offset, &mut self.window)
            .map_err(|error| Error::io("read", &self.path, error))
    }

    /// Searches for valid records after an invalid one. Counts batches newer than `after` and all
    /// other records, and finds the largest position that any record states as durable.
    ///
    /// Records begin at multiples of eight bytes, so every such offset is tried. If a user value
    /// contains a copy of a record, the copy is not valid, because the user cannot know the nonce.
    pub(super) fn search_beyond(&mut self, after: SeqNo) -> Result<LaterRecords> {
        let mut beyond = LaterRecords::default();
        let start = self.offset;
        self.offset = (start + 8).next_multiple_of(8);
        while self.offset + RECORD_HEADER_BYTES as u64 <= self.file_bytes {
            if self.skip_zeros()? {
                continue;
            }
            let at = self.offset;
            match self.next()? {
                Next::Record(record) => {
                    if record.kind == RecordKind::Batch && record.seq > after {
                        beyond.records += 1;
                    }
                    beyond.synced = beyond.synced.max(synced_position(&record));
                    beyond.records += u64::from(record.kind != RecordKind::Batch);
                }
                Next::End | Next::Garbage => self.offset = at + 8,
            }
        }
        self.offset = start;
        Ok(beyond)
    }

    /// Visits every valid record before `end`, even after damage. `end` is the end of the segment,
    /// if that is known. Adds the number of damaged parts between records to `skipped`.
    pub(crate) fn salvage(
        &mut self,
        end: Option<Lsn>,
        skipped: &mut u64,
        mut visit: impl FnMut(Lsn, Record<'_>),
    ) -> Result<()> {
        let mut is_broken = false;
        while self.offset + RECORD_HEADER_BYTES as u64 <= self.file_bytes
            && end.is_none_or(|end| self.lsn() < end)
        {
            if self.skip_zeros()? {
                continue;
            }
            let (at, lsn) = (self.offset, self.lsn());
            match self.next()? {
                Next::Record(record) => {
                    *skipped += u64::from(is_broken);
                    is_broken = false;
                    visit(lsn, record);
                }
                Next::End | Next::Garbage => {
                    is_broken = true;
                    self.offset = at + 8;
                }
            }
        }
        Ok(())
    }

    /// Skips a run of zeros. Returns true if it skipped any.
    fn skip_zeros(&mut self) -> Result<bool> {
        self.fill(RECORD_HEADER_BYTES as u64)?;
        let zeros = self.rest().chunks_exact(8).take_while(|word| **word == [0; 8]).count();
        self.offset += zeros as u64 * 8;
        Ok(zeros > 0)
    }
}

/// The valid records after an invalid one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LaterRecords {
    /// The number of records.
    pub(super) records: u64,
    /// The largest position that any of these records states as durable.
    pub(super) synced: Option<Lsn>,
}

/// Returns the position that a record states as durable.
pub(super) fn synced_position(record: &Record<'_>) -> Option<Lsn> {
    match record.kind {
        RecordKind::Batch | RecordKind::Continued => None,
        RecordKind::Synced | RecordKind::Closed => {
            record.payload.first_chunk::<8>().map(|bytes| Lsn(u64::from_le_bytes(*bytes)))
        }
    }
}
