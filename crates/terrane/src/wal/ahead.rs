//! What other threads do for the log, so that no writer waits for it: files made in advance, files
//! cleaned before they are written again, pages there before they are needed, headers made durable.
//!
//! The writer of the log says what is wanted; who does it needs no lock of the log meanwhile.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};
use crate::storage::{Preparer, Storage, Syncer};

/// A spare segment to be made, without holding up the log meanwhile.
#[derive(Debug)]
pub(crate) struct WantedSpare {
    pub(super) path: PathBuf,
    pub(super) len: u64,
}

impl WantedSpare {
    /// Makes the file; its name is durable then.
    pub(crate) fn make(self, storage: &dyn Storage, dir: &Path) -> Result<PathBuf> {
        let segment = storage.create_segment(&self.path, self.len);
        segment.map_err(|error| Error::io("create", &self.path, error))?;
        storage.sync_dir(dir).map_err(|error| Error::io("sync", dir, error))?;
        Ok(self.path)
    }
}

/// A segment that will be written again. What is left of its records in memory is written to disk
/// first: it would be when its new header is made durable, and the writer would wait for that.
#[derive(Debug)]
pub(crate) struct WantedClean {
    pub(super) path: PathBuf,
}

impl WantedClean {
    /// Answers the path, to be given back.
    ///
    /// # Errors
    /// The file is no use any more.
    pub(crate) fn make(self, storage: &dyn Storage) -> std::io::Result<PathBuf> {
        storage.open_segment(&self.path)?.syncer().sync()?;
        Ok(self.path)
    }
}

/// Segments that are freed.
#[derive(Debug, Default)]
pub(crate) struct Released {
    /// To be cleaned, and given back by [`super::LogWriter::give_cleaned`].
    pub(crate) reused: Vec<WantedClean>,
    /// To be removed.
    pub(crate) removed: Vec<PathBuf>,
}

/// What another thread does for a segment that is being written, so that its writer need not wait.
#[derive(Debug)]
pub(crate) struct Ahead {
    /// A part of it that will be written to soon.
    pub(crate) pages: Option<WantedPages>,
    /// Its header, where no one makes it durable yet.
    pub(crate) header: Option<Arc<HeaderSync>>,
}

/// A part of a segment that will be written to soon: pages that are made by another thread do not
/// hold up the writer.
#[derive(Debug)]
pub(crate) struct WantedPages {
    pub(super) preparer: Arc<dyn Preparer>,
    pub(super) offset: u64,
    pub(super) len: u64,
}

impl WantedPages {
    /// Has them there.
    pub(crate) fn make(self) {
        self.preparer.prepare(self.offset, self.len);
    }
}

/// The header of a segment on its way to the disk. It has to be there before the next segment's
/// is, and before the segment in front of it goes: then the chain is whole after every crash.
/// A segment whose header is lost had no record that was promised, as syncing those syncs it too.
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

    /// Makes it durable; for [`super::LogSync::sync_header`], which does one sync at a time.
    pub(super) fn sync(&self) -> Result<()> {
        self.syncer.sync().map_err(|error| Error::io("sync", &self.path, error))?;
        self.is_durable.store(true, Ordering::Release);
        Ok(())
    }

    pub(super) fn is_durable(&self) -> bool {
        self.is_durable.load(Ordering::Acquire)
    }
}
