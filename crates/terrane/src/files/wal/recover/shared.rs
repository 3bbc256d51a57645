//! Reads a log that a writer may be appending to.
//!
//! The log is read up to the newest segment that exists when it is opened, so a fast writer cannot
//! keep the reader busy forever. The reader sees a prefix of the log that has every record written
//! before the log was opened:
//!
//! 1. The writer may free and reuse files while their headers are read, so the headers may lack a
//!    segment of the chain. They are then read again, up to the same newest segment.
//! 2. A record or a terminator that the writer is copying may be partly visible. It is read again until
//!    it is complete. If a crash left it incomplete, no record follows it.
//! 3. A segment may lack its last records although the next one has a header, because the header is
//!    written first. These records are read again as well.
//! 4. The newest segment may continue in a segment that was begun later. The log then ends at that
//!    `Continued` record, and the next segment must exist.
//! 5. A writer that does not wait for the reader may reuse the newest segment, whose records then seem
//!    to end early. It replaces the header first, so the header is compared after the records are read.

use std::path::Path;
use std::time::Duration;

use super::{Found, Recovery, SegmentEnd, find_segments, read_segment};
use crate::base::error::{Error, Result};
use crate::base::types::Lsn;
use crate::files::storage::Storage;
use crate::files::wal::format::{Record, SegmentHeader};
use crate::files::wal::segment_reader::SegmentReader;

/// How often headers or a record are read again without progress.
const REREADS: u32 = 5;

/// The pause before they are read again. A writer completes a record within microseconds, unless it
/// is suspended. In unit tests the callback of the replay is the writer, so there is nothing to wait
/// for.
const PAUSE: Duration = Duration::from_millis(if cfg!(test) { 0 } else { 1 });

impl Recovery {
    /// Opens the log of `database` in the directory `dir`, which a writer may be changing. The records
    /// from `from` on are needed.
    pub(crate) fn open_shared(
        storage: &dyn Storage,
        dir: &Path,
        database: u64,
        from: Lsn,
    ) -> Result<Self> {
        let mut newest = u64::MAX;
        let mut rereads = 0;
        loop {
            let Found { mut segments, unused, .. } = find_segments(storage, dir, database)?;
            segments.retain(|segment| segment.header().segment <= newest);
            let mut recovery = Self::of_segments(segments, unused);
            recovery.is_shared = true;
            let oldest = recovery.segments.first();
            let is_complete = oldest.is_none_or(|oldest| oldest.header().base <= from);
            // If the newest segment itself is gone, the log has moved on.
            let has_newest = newest == u64::MAX || recovery.newest_segment == newest;
            if (is_complete && has_newest) || rereads == REREADS {
                return Ok(recovery);
            }
            newest = if has_newest { recovery.newest_segment } else { u64::MAX };
            rereads += 1;
            std::thread::sleep(PAUSE);
        }
    }
}

/// Reads records as [`read_segment`] does, but waits for the writer to complete a partial record.
pub(super) fn read_growing_segment(
    segment: &mut SegmentReader,
    ends_at: Option<Lsn>,
    visit: &mut dyn FnMut(Lsn, Record<'_>) -> Result<()>,
) -> Result<SegmentEnd> {
    let mut rereads = 0;
    loop {
        let before = segment.lsn();
        let end = read_segment(segment, ends_at, &mut *visit)?;
        let at = segment.lsn();
        if end == SegmentEnd::Clean && ends_at.is_none_or(|ends_at| ends_at == at) {
            return Ok(end);
        }
        rereads = if at > before { 0 } else { rereads + 1 };
        if rereads > REREADS {
            return Ok(end);
        }
        std::thread::sleep(PAUSE);
        segment.reread();
    }
}

/// Returns true if a new record follows.
pub(super) fn has_grown(segment: &mut SegmentReader) -> Result<bool> {
    segment.reread();
    segment.skip_to(segment.lsn())
}

/// Checks that the writer has not begun another segment in the file.
pub(super) fn check_not_reused(segment: &SegmentReader) -> Result<()> {
    let now = segment.read_header()?;
    if now.as_ref() == Some(segment.header()) {
        return Ok(());
    }
    let now = now.map_or_else(|| "another".to_owned(), |now| now.segment.to_string());
    let detail = format!("segment {now} replaced segment {}", segment.header().segment);
    Err(Error::corruption(segment.path(), None, "log", detail))
}

/// Returns true if a segment exists that continues this one.
pub(super) fn has_successor(
    storage: &dyn Storage,
    dir: &Path,
    header: &SegmentHeader,
) -> Result<bool> {
    let found = find_segments(storage, dir, header.database)?;
    let continues = |later: &SegmentReader| {
        later.header().previous == header.segment && later.header().segment > header.segment
    };
    Ok(found.segments.iter().any(continues))
}
