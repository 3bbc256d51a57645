//! The segment that is being written: its file, and how far it is filled and made ready.

use std::path::PathBuf;
use std::sync::Arc;

use super::ahead::{Ahead, HeaderSync, WantedPages};
use super::format::{HEADER_BYTES, SegmentHeader, TERMINATOR_BYTES};
use super::segment_file_name;
use super::writer::LogEnvironment;
use crate::error::{Error, Result};
use crate::storage::Segment;
use crate::types::Lsn;

/// So much of a segment is ready to be written, at most, before it is: twice what a writer at full
/// speed fills while the next part is made ready.
const READY_BYTES: u64 = 4 << 20;

/// A segment that is written to up to here is worth being made ready.
const READY_FROM: u64 = 256 << 10;

pub(super) struct Current {
    pub(super) header: SegmentHeader,
    pub(super) header_sync: Arc<HeaderSync>,
    /// Someone was asked to make the header durable.
    pub(super) is_header_given: bool,
    pub(super) path: PathBuf,
    pub(super) segment: Box<dyn Segment>,
    pub(super) offset: u64,
    pub(super) len: u64,
    /// When its first record came, in microseconds since the Unix epoch, where that is noted.
    pub(super) since_micros: Option<u64>,
    /// Once it is written up to here, more is to be made ready.
    pub(super) ready_at: u64,
    /// Up to where it is ready, or is being made so.
    ready: u64,
}

impl Current {
    /// What is to be done for the segment before it is written further, if it is time to.
    #[inline]
    pub(super) fn wanted_ahead(&mut self) -> Option<Ahead> {
        if self.offset < self.ready_at { None } else { Some(self.ahead()) }
    }

    #[cold]
    fn ahead(&mut self) -> Ahead {
        let Current { segment, offset, len, ready_at, ready, .. } = self;
        let from = (*ready).max(*offset);
        *ready = (*offset + READY_BYTES).min(*len);
        *ready_at = if *ready < *len { *offset + READY_BYTES / 2 } else { u64::MAX };
        let len = ready.saturating_sub(from);
        let pages = segment.preparer().map(|preparer| WantedPages { preparer, offset: from, len });
        let is_given = std::mem::replace(&mut self.is_header_given, true);
        let header = (!is_given).then(|| Arc::clone(&self.header_sync));
        Ahead { pages, header }
    }
}

/// Where a segment stands in the chain.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) segment: u64,
    pub(super) previous: u64,
    pub(super) previous_end: Lsn,
    pub(super) base: Lsn,
}

/// A new file, whose name is durable: no record in it could be promised before.
pub(super) fn create_file(
    environment: &LogEnvironment,
    number: u64,
    len: u64,
) -> Result<(PathBuf, Box<dyn Segment>)> {
    let LogEnvironment { storage, dir, .. } = environment;
    let path = dir.join(segment_file_name(number));
    let segment = storage.create_segment(&path, len);
    let segment = segment.map_err(|error| Error::io("create", &path, error))?;
    storage.sync_dir(dir).map_err(|error| Error::io("sync", dir, error))?;
    Ok((path, segment))
}

/// Writes the header that makes a file, new or used, the next segment.
pub(super) fn begin(
    environment: &LogEnvironment,
    path: PathBuf,
    mut segment: Box<dyn Segment>,
    place: Place,
) -> Result<Current> {
    let LogEnvironment { storage, clock, database, .. } = environment;
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
    bytes.extend_from_slice(&[0; TERMINATOR_BYTES]);
    segment.write(0, &bytes).map_err(|error| Error::io("write", &path, error))?;
    let header_sync = Arc::new(HeaderSync::new(path.clone(), segment.syncer()));
    Ok(Current {
        header,
        header_sync,
        is_header_given: false,
        path,
        len: segment.len(),
        since_micros: None,
        segment,
        offset: HEADER_BYTES,
        ready_at: READY_FROM,
        ready: 0,
    })
}
