//! Requests to background threads, so that no writer blocks: creating free segments, syncing freed
//! files before their reuse, writing to pages before they are needed, and syncing headers.
//!
//! The log writer hands out requests; a thread carries them out without the lock of the log.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::format::HEADER_BYTES;
use super::zero_tail::ZeroTail;
use crate::base::error::{Error, Result};
use crate::base::turns;
use crate::files::storage::{Segment, Storage, Syncer};

/// A request to create a free segment.
#[derive(Debug)]
pub(crate) struct SegmentCreation {
    pub(super) path: PathBuf,
    pub(super) len: u64,
}

impl SegmentCreation {
    /// Creates the file and makes its name durable.
    pub(crate) fn run(self, storage: &dyn Storage, dir: &Path) -> Result<PathBuf> {
        let segment = storage.create_segment(&self.path, self.len);
        segment.map_err(|error| Error::io("create", &self.path, error))?;
        if let Err(error) = storage.sync_dir(dir) {
            let _ = storage.remove(&self.path);
            return Err(Error::io("sync", dir, error));
        }
        Ok(self.path)
    }
}

/// A request to sync a freed segment before its reuse. Otherwise the sync of its new header would
/// write back the dirty pages of old records, and a writer would wait for that.
#[derive(Debug)]
pub(crate) struct SegmentCleaning {
    pub(super) path: PathBuf,
}

impl SegmentCleaning {
    /// Syncs the file and returns its path, which the caller returns to the log writer.
    ///
    /// # Errors
    /// The file cannot be reused.
    pub(crate) fn run(self, storage: &dyn Storage) -> std::io::Result<PathBuf> {
        storage.open_segment(&self.path)?.syncer().sync()?;
        Ok(self.path)
    }
}

/// The segments freed by a release.
#[derive(Debug, Default)]
pub(crate) struct ReleasedSegments {
    /// Segments to sync and then return with [`super::LogWriter::add_cleaned`].
    pub(crate) reused: Vec<SegmentCleaning>,
    /// Files to remove.
    pub(crate) removed: Vec<PathBuf>,
}

/// Requests for the current segment.
#[derive(Debug)]
pub(crate) struct SegmentRequests {
    /// Segments that ended. Dropping them is slow, because it unmaps them.
    pub(crate) ended: Vec<EndedSegment>,
    /// A request to prepare pages.
    pub(crate) pages: Option<PagePrefault>,
    /// The header to sync, unless another thread already has the request to sync it.
    pub(crate) header: Option<Arc<HeaderSync>>,
}

impl SegmentRequests {
    pub(super) fn is_empty(&self) -> bool {
        let Self { ended, pages, header } = self;
        ended.is_empty() && pages.is_none() && header.is_none()
    }
}

/// A segment that receives no more writes.
#[derive(Debug)]
pub(crate) struct EndedSegment {
    pub(super) segment: Box<dyn Segment>,
    pub(super) _zero_tail: Option<Arc<ZeroTail>>,
}

impl EndedSegment {
    /// Unmaps the segment in steps, without a lock.
    pub(crate) fn unmap(self) {
        self.segment.unmap_pages(&turns::give_way);
    }
}

/// A request to write zeros into pages that will be written to soon, which also prepares them, so that
/// the writer does not take their page faults.
#[derive(Debug)]
pub(crate) struct PagePrefault {
    pub(super) zero_tail: Arc<ZeroTail>,
    pub(super) end: u64,
}

impl PagePrefault {
    /// Prepares the pages.
    pub(crate) fn run(self) {
        self.zero_tail.extend(self.end, turns::give_way);
    }
}

/// The sync of a segment's header.
///
/// 1. The header becomes durable before the next segment begins and before the previous segment's
///    file is freed, so that the chain of segments is complete after every crash.
/// 2. A segment whose header is lost has no acknowledged synced record, because a sync of a record
///    syncs the whole file, header included. The sync of a header need not sync records.
#[derive(Debug)]
pub(crate) struct HeaderSync {
    path: PathBuf,
    syncer: Arc<dyn Syncer>,
    is_durable: AtomicBool,
}

impl HeaderSync {
    pub(super) fn new(path: PathBuf, syncer: Arc<dyn Syncer>) -> Self {
        Self { path, syncer, is_durable: AtomicBool::new(false) }
    }

    /// Makes the header durable. Only [`super::LogSync`] calls this, which serializes syncs.
    pub(super) fn sync(&self) -> Result<()> {
        let synced = self.syncer.sync_start(HEADER_BYTES);
        synced.map_err(|error| Error::io("sync", &self.path, error))?;
        // Release: pairs with the load in `is_durable`, so that a thread that sees the flag frees
        // the previous segment only after the sync.
        self.is_durable.store(true, Ordering::Release);
        Ok(())
    }

    pub(super) fn is_durable(&self) -> bool {
        // Acquire: pairs with the store in `sync`.
        self.is_durable.load(Ordering::Acquire)
    }
}
