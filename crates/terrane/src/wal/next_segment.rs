//! From one segment to the next: the old one is announced as followed only once the new one is there.

use std::sync::Arc;

use super::ahead::HeaderSync;
use super::format::{HEADER_BYTES, RecordKind, record_bytes};
use super::segment::{Current, Place, begin, create_file};
use super::writer::{FIRST_SEGMENT_BYTES, FullSegment, GROWTH, LogWriter};
use crate::error::Result;
use crate::types::Lsn;

/// Why a segment ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// It has no room for the next record.
    Full,
    /// What it holds has been there for long enough.
    Aged,
}

impl LogWriter {
    /// Ends the segment that is written, if it holds anything, though there is room in it: so that
    /// its file can go. Answers the header of the next one, which must be durable before that.
    pub(crate) fn end_segment(&mut self) -> Result<Option<Arc<HeaderSync>>> {
        if self.current.offset == HEADER_BYTES {
            // A record that was noted did not come after all.
            self.current.since_micros = None;
            return Ok(None);
        }
        self.next_segment(record_bytes(0) as u64, Ending::Aged)?;
        self.current.is_header_given = true;
        Ok(Some(Arc::clone(&self.current.header_sync)))
    }

    /// How long the next segment is, if its file has to be made.
    pub(super) fn next_len(&self, ending: Ending) -> u64 {
        let Current { len, offset, .. } = self.current;
        let len = match ending {
            Ending::Full => len.saturating_mul(GROWTH),
            // So little was written that the next one need not be as long.
            Ending::Aged if offset < len / GROWTH => len / GROWTH,
            Ending::Aged => len,
        };
        len.max(FIRST_SEGMENT_BYTES).min(self.config.segment_bytes)
    }

    /// Ends the current segment and begins another with `room` bytes for records.
    #[cold]
    pub(super) fn next_segment(&mut self, room: u64, ending: Ending) -> Result<()> {
        let needed = HEADER_BYTES + room;
        self.sync_header()?;
        // The file is made first: if there is no room for it, nothing has changed.
        let (path, segment) = match self.take_spare(needed) {
            Some(spare) => spare,
            None => {
                let len = self.next_len(ending).max(needed);
                let number = self.next_file;
                self.next_file += 1;
                create_file(&self.environment, number, len)?
            }
        };
        // The next segment is there before this one says so: a segment that is announced and
        // missing is damage.
        let header = self.current.header;
        let base = Lsn(self.end().0 + record_bytes(0) as u64);
        // A number is never given twice: the header of a segment that failed to begin may be on
        // disk, and must not be taken for that of the one that is begun in its place.
        self.newest_segment += 1;
        let place = Place {
            segment: self.newest_segment,
            previous: header.segment,
            previous_end: base,
            base,
        };
        let end = self.current.offset + record_bytes(0) as u64;
        let begun = begin(&self.environment, path, segment, place).and_then(|next| {
            self.write_record(RecordKind::Continued, 0, &[], false)?;
            Ok(next)
        });
        let mut next = match begun {
            Ok(next) => next,
            Err(error) => {
                // Its header may be there, and say that this segment ends here. So it does: what
                // is written next begins a segment that comes after both.
                self.current.len = end;
                return Err(error);
            }
        };
        if ending == Ending::Full {
            // Who has filled a segment will not stop at the beginning of the next one.
            next.ready_at = 0;
            next.since_micros = Some(next.header.created_micros);
        }
        self.sync.begin_segment(next.path.clone(), next.segment.syncer(), base);
        let before = std::mem::replace(&mut self.current, next);
        // Before anything else can fail: a file that is not among them is never freed.
        let Current { path, offset: bytes, .. } = before;
        self.full.push(FullSegment { path, end: base, bytes });
        self.note_manifest(self.manifest_version)
    }

    /// The header of this segment is durable before there is another one. As a rule it is so long
    /// since.
    fn sync_header(&self) -> Result<()> {
        if self.is_header_durable() {
            Ok(())
        } else {
            self.sync.sync_header(&self.current.header_sync)
        }
    }

    pub(super) fn is_header_durable(&self) -> bool {
        // A sync of any record has synced the header.
        let Current { header, header_sync, .. } = &self.current;
        header_sync.is_durable() || self.sync.synced() > header.base
    }
}
