//! The current segment: its file, its fill level, and how far its pages are prepared.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::format::{HEADER_BYTES, SegmentHeader, TERMINATOR_BYTES};
use super::notes::{NOTES_OFFSET, Notes};
use super::requests::{EndedSegment, HeaderSync, PagePrefault, SegmentRequests};
use super::segment_file_name;
use super::writer::LogEnvironment;
use super::zero_tail::ZeroTail;
use crate::base::error::{Error, Result};
use crate::base::types::Lsn;
use crate::files::storage::{Segment, Syncer};

/// How far pages are prepared ahead of the writer: twice the bytes that a writer at full speed
/// fills while a thread prepares the next part.
const READY_BYTES: u64 = 4 << 20;

/// The offset from which a segment is worth preparing.
const READY_FROM: u64 = 256 << 10;

/// The segment that records are appended to.
pub(super) struct CurrentSegment {
    pub(super) header: SegmentHeader,
    pub(super) header_sync: Arc<HeaderSync>,
    /// True if a thread has the request to sync the header.
    pub(super) is_header_given: bool,
    pub(super) path: PathBuf,
    /// See [`FreeSegment::is_new`].
    pub(super) is_new: bool,
    /// The previous segments, until a thread is asked to drop them.
    pub(super) before: Vec<EndedSegment>,
    pub(super) segment: Box<dyn Segment>,
    /// The answer of the operating system if it refused to map the segment.
    pub(super) map_refusal: Option<String>,
    /// The zeros after the last record; `None` if only the owner of the lock appends.
    pub(super) zero_tail: Option<Arc<ZeroTail>>,
    pub(super) offset: u64,
    pub(super) len: u64,
    /// When the first record of the segment arrived, in microseconds since the Unix epoch; `None`
    /// if that time is not recorded.
    pub(super) since_micros: Option<u64>,
    /// The offset at which the next pages are requested.
    pub(super) ready_at: u64,
    /// True if the last record had a part of [`LARGE_PIECE_BYTES`](crate::files::storage::LARGE_PIECE_BYTES),
    /// which is not written through the map. Probably more follow, for which nothing is prepared.
    pub(super) is_large: bool,
}

impl CurrentSegment {
    /// Returns the work due in the segment ahead of the writer, if any.
    #[inline]
    pub(super) fn due_requests(&mut self) -> Option<SegmentRequests> {
        if self.offset < self.ready_at {
            return None;
        }
        let requests = self.requests();
        (!requests.is_empty()).then_some(requests)
    }

    #[cold]
    fn requests(&mut self) -> SegmentRequests {
        let CurrentSegment { zero_tail, offset, len, ready_at, is_large, .. } = self;
        let pages = if *is_large {
            None
        } else {
            let end = (*offset + READY_BYTES).min(*len);
            *ready_at = if end < *len { *offset + READY_BYTES / 2 } else { u64::MAX };
            zero_tail.clone().map(|zero_tail| PagePrefault { zero_tail, end })
        };
        let is_given = std::mem::replace(&mut self.is_header_given, true);
        let header = (!is_given).then(|| Arc::clone(&self.header_sync));
        SegmentRequests { ended: std::mem::take(&mut self.before), pages, header }
    }
}

/// A file that can become the next segment.
#[derive(Debug, Clone)]
pub(super) struct FreeSegment {
    pub(super) path: PathBuf,
    /// True if the file was never a segment, so the file system has yet to record that its blocks
    /// were written.
    pub(super) is_new: bool,
}

/// The links of a segment in the chain.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChainLink {
    pub(super) segment: u64,
    pub(super) previous: u64,
    pub(super) previous_end: Lsn,
    pub(super) base: Lsn,
}

/// Creates a file and makes its name durable, because no record is durable in a file without a name.
pub(super) fn create_file(
    environment: &LogEnvironment,
    number: u64,
    len: u64,
) -> Result<(PathBuf, Box<dyn Segment>)> {
    let LogEnvironment { storage, dir, .. } = environment;
    let path = dir.join(segment_file_name(number));
    let segment = storage.create_segment(&path, len);
    let segment = segment.map_err(|error| Error::io("create", &path, error))?;
    if let Err(error) = storage.sync_dir(dir) {
        let _ = storage.remove(&path);
        return Err(Error::io("sync", dir, error));
    }
    Ok((path, segment))
}

/// A segment that is written with system calls only. The storage then maps no file.
#[derive(Debug)]
struct Unmapped(Box<dyn Segment>);

impl Segment for Unmapped {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_through(offset, bytes)
    }

    fn syncer(&self) -> Arc<dyn Syncer> {
        self.0.syncer()
    }
}

/// Writes the header that makes a new or reused file the next segment.
pub(super) fn begin(
    environment: &LogEnvironment,
    FreeSegment { path, is_new }: FreeSegment,
    segment: Box<dyn Segment>,
    place: ChainLink,
    notes: Notes,
) -> Result<CurrentSegment> {
    let LogEnvironment { storage, clock, database, is_mapped, .. } = environment;
    let mut segment = if *is_mapped { segment } else { Box::new(Unmapped(segment)) };
    let header = SegmentHeader {
        database: *database,
        segment: place.segment,
        nonce: storage.entropy(),
        base: place.base,
        previous: place.previous,
        previous_end: place.previous_end,
        boot: storage.boot_id().unwrap_or(0),
        created_micros: clock.now_micros(),
    };
    let mut bytes = header.encode();
    let notes = notes.encode(header.nonce);
    bytes[NOTES_OFFSET as usize..][..notes.len()].copy_from_slice(&notes);
    bytes.extend_from_slice(&[0; TERMINATOR_BYTES]);
    segment.write(0, &bytes).map_err(|error| Error::io("write", &path, error))?;
    let zero_tail = segment
        .record_writer()
        .map(|writer| Arc::new(ZeroTail::new(&path, writer, segment.len(), bytes.len() as u64)));
    let header_sync = Arc::new(HeaderSync::new(path.clone(), segment.syncer()));
    Ok(CurrentSegment {
        map_refusal: segment.map_refusal(),
        header,
        header_sync,
        is_header_given: false,
        path,
        is_new,
        before: Vec::new(),
        len: segment.len(),
        since_micros: None,
        segment,
        zero_tail,
        offset: HEADER_BYTES,
        ready_at: READY_FROM,
        is_large: false,
    })
}
