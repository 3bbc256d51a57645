//! Switches from one segment to the next. The old segment gets its `Continued` record only after
//! the new one exists.

use std::sync::Arc;

use super::format::{HEADER_BYTES, RecordKind, record_bytes};
use super::requests::{EndedSegment, HeaderSync};
use super::segment::{ChainLink, CurrentSegment, FreeSegment, begin, create_file};
use super::writer::{
    FIRST_SEGMENT_BYTES, FREE_SEGMENTS_MAX, FullSegment, GROWTH, LogWriter, SHORT_SEGMENT_BYTES,
};
use crate::base::error::Result;
use crate::base::types::Lsn;

/// Why a segment ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It has no room for the next record.
    Full,
    /// Its oldest record reached the age at which its file must be removed.
    Aged,
    /// It has no record that is needed, and is larger than a small database should keep.
    Idle,
}

/// The remaining work after a segment has ended early.
#[derive(Debug)]
pub(crate) struct EndedEarly {
    pub(crate) header: Arc<HeaderSync>,
    pub(crate) ended: Vec<EndedSegment>,
}

impl LogWriter {
    /// Ends the current segment early, unless it is empty, so that its file can be freed. Returns the
    /// header of the next segment, which must be durable before the file is freed, and the segments to
    /// drop without the lock: the space of a removed file is free only once they are dropped.
    pub(crate) fn end_segment(&mut self, ending: Ending) -> Result<Option<EndedEarly>> {
        if self.current.offset == HEADER_BYTES {
            // The record that was announced has not been appended.
            self.current.since_micros = None;
            return Ok(None);
        }
        self.next_segment(record_bytes(0) as u64, ending)?;
        self.current.is_header_given = true;
        let ended = std::mem::take(&mut self.current.before);
        Ok(Some(EndedEarly { header: Arc::clone(&self.current.header_sync), ended }))
    }

    /// Returns the length of the next segment if a new file must be created for it.
    pub(super) fn next_len(&self, ending: Ending) -> u64 {
        let CurrentSegment { len, offset, .. } = self.current;
        let len = match ending {
            _ if self.is_short => SHORT_SEGMENT_BYTES,
            Ending::Full => len.saturating_mul(GROWTH),
            // Few records arrived before the segment aged, so the next one may be shorter.
            Ending::Aged if offset < len / GROWTH => len / GROWTH,
            Ending::Aged => len,
            Ending::Idle => FIRST_SEGMENT_BYTES,
        };
        let least = if self.is_short { SHORT_SEGMENT_BYTES } else { FIRST_SEGMENT_BYTES };
        len.max(least).min(self.config.segment_bytes)
    }

    /// Ends the current segment and begins another with `room` bytes for records.
    #[cold]
    pub(super) fn next_segment(&mut self, room: u64, ending: Ending) -> Result<()> {
        let needed = HEADER_BYTES + room;
        let len = self.next_len(ending).max(needed);
        self.check_refusal(len)?;
        // Another process that took the directory may use a file of the same name.
        if let Some(lock) = &self.environment.lock {
            lock.check()?;
        }
        self.sync_header()?;
        // The file is created first: if the disk is full, the log is unchanged.
        let (free, segment) = match self.take_free_segment(needed) {
            Some(free) => free,
            None => {
                let create = || create_file(&self.environment, self.next_file, len);
                let created = self.environment.timing_wait(create);
                let (path, segment) = created.inspect_err(|error| self.note_refusal(len, error))?;
                self.next_file += 1;
                (FreeSegment { path, is_new: true }, segment)
            }
        };
        // The header of the next segment is written before this segment's `Continued` record, because
        // recovery reports an announced but missing segment as damage.
        let header = self.current.header;
        let base = Lsn(self.end().0 + record_bytes(0) as u64);
        // Segment numbers are never reused: the header of a segment that failed to begin may be on
        // disk, and recovery must not mistake it for its replacement.
        self.newest_segment += 1;
        let place = ChainLink {
            segment: self.newest_segment,
            previous: header.segment,
            previous_end: base,
            base,
        };
        let end = self.current.offset + record_bytes(0) as u64;
        self.notes.durable = self.sync.synced();
        let begun = begin(&self.environment, free.clone(), segment, place, self.notes);
        let begun = begun.and_then(|next| {
            self.write_record(RecordKind::Continued, 0, &[], false)?;
            Ok(next)
        });
        let mut next = match begun {
            Ok(next) => next,
            Err(error) => {
                // The header of the failed segment may be on disk and state that this segment ends at
                // `end`. Setting the length makes that statement true: the next record no longer fits,
                // so another segment begins after both.
                self.current.len = end;
                // The next attempt takes the same file, because a full disk may cause many attempts.
                self.free_segments.push(free);
                return Err(error);
            }
        };
        if ending == Ending::Full {
            // A busy writer will fill the next segment as well, so its pages are prepared at once.
            next.ready_at = 0;
            next.since_micros = Some(next.header.created_micros);
        }
        self.sync.begin_segment(next.path.clone(), next.segment.syncer(), base);
        self.environment.segments.begin(&next.path, base);
        self.creation_retry_at = 0;
        self.refusal = None;
        let keeps_none = ending == Ending::Idle || self.is_short;
        self.free_segments_max = if keeps_none { 0 } else { FREE_SEGMENTS_MAX };
        self.replace_current(next);
        Ok(())
    }

    /// Makes a segment the current one. The previous one is full.
    fn replace_current(&mut self, next: CurrentSegment) {
        let (end, ended_micros) = (next.header.base, next.header.created_micros);
        let before = std::mem::replace(&mut self.current, next);
        let CurrentSegment { path, header, offset: bytes, len: file_bytes, .. } = &before;
        // The segment is pushed before any further step can fail, because a segment missing from
        // `full` would never be freed.
        self.full.push(FullSegment {
            path: path.clone(),
            number: header.segment,
            base: header.base,
            end,
            bytes: *bytes,
            file_bytes: *file_bytes,
            ended_micros,
        });
        let CurrentSegment { segment, zero_tail, before: mut ended, .. } = before;
        // Without requests, as with `Sync` writes, nothing else would drop the previous segments.
        ended.clear();
        ended.push(EndedSegment { segment, _zero_tail: zero_tail });
        self.current.before = ended;
    }

    /// Makes the header of this segment durable before the next one begins. Usually a background
    /// thread has done so already.
    fn sync_header(&self) -> Result<()> {
        if self.is_header_durable() {
            Ok(())
        } else {
            self.environment.timing_wait(|| self.sync.sync_header(&self.current.header_sync))
        }
    }

    pub(super) fn is_header_durable(&self) -> bool {
        // A sync of any record of the segment has also synced the segment's header.
        let CurrentSegment { header, header_sync, .. } = &self.current;
        header_sync.is_durable() || self.sync.synced() > header.base
    }
}
