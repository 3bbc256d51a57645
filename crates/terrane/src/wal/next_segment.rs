//! From one segment to the next: the old one is announced as followed only once the new one is there.

use super::format::{HEADER_BYTES, RecordKind, record_bytes};
use super::segment::{Current, Place, begin, create_file};
use super::writer::{FullSegment, GROWTH, LogWriter};
use crate::error::Result;
use crate::types::Lsn;

impl LogWriter {
    /// Ends the current segment and begins another with `room` bytes for records.
    #[cold]
    pub(super) fn next_segment(&mut self, room: u64) -> Result<()> {
        let needed = HEADER_BYTES + room;
        self.sync_header()?;
        // The file is made first: if there is no room for it, nothing has changed.
        let (path, segment) = match self.take_spare(needed) {
            Some(spare) => spare,
            None => {
                let usual = self.current.len.saturating_mul(GROWTH);
                let len = usual.min(self.config.segment_bytes).max(needed);
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
        // Who has filled a segment will not stop at the beginning of the next one.
        next.ready_at = 0;
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
