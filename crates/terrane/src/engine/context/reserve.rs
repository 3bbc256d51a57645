//! Disk space that the database keeps for deletes and for the work that frees space.
//!
//! The files `RESERVE` and `RESERVE.manifest` have no contents, only a length. They are created while
//! there is space. When a full disk refuses a segment of the log, a flush or an edit of the manifest,
//! `RESERVE` is removed, and its space serves deletes, flushes, compactions and the manifest. Until the
//! file exists again, other writes are refused, because they would use the space up. The other file is
//! removed only for the manifest, without which the database could not be opened again.
//!
//! 1. While the reserve is released, a write other than a delete is admitted only after `RESERVE` was
//!    created again.
//! 2. A full disk is asked for the file at most once in [`PAUSE`], whatever the number of writes. With
//!    inline background work every write asks, so that the results do not depend on the time.
//! 3. The files are not needed: a missing one is created.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::base::error::{Error, Result};
use crate::files::storage::Storage;
use crate::options::Background;

/// The names of the files.
pub(crate) const RESERVE: &str = "RESERVE";
pub(crate) const MANIFEST_RESERVE: &str = "RESERVE.manifest";

/// The pause between two attempts to create the file. Writes resume at most this long after another program
/// has freed space.
const PAUSE: Duration = Duration::from_millis(250);

/// The reserve of a database.
#[derive(Debug)]
pub(crate) struct DiskReserve {
    storage: Arc<dyn Storage>,
    path: PathBuf,
    /// The file for the manifest, half as long.
    manifest_path: PathBuf,
    /// How long writes are refused without another attempt to create the files.
    pause: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The length of the file when it is created next; 0 before the first creation.
    bytes: u64,
    /// Why the reserve is released; `None` while it is not.
    shortage: Option<Shortage>,
}

#[derive(Debug)]
struct Shortage {
    /// The error of the full disk.
    error: Error,
    retry_at: Instant,
}

impl DiskReserve {
    /// The reserve in a directory, with the files that exist.
    pub(crate) fn in_dir(storage: &Arc<dyn Storage>, dir: &Path) -> Self {
        Self {
            storage: Arc::clone(storage),
            path: dir.join(RESERVE),
            manifest_path: dir.join(MANIFEST_RESERVE),
            pause: PAUSE,
            state: Mutex::default(),
        }
    }

    /// Sets the pause between attempts to create the file.
    pub(crate) fn with_background(mut self, background: Background) -> Self {
        self.pause = if background == Background::Inline { Duration::ZERO } else { PAUSE };
        self
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the length, and creates the files unless some of about this length exist or the reserve is
    /// released. Returns true if the disk has no space for it; the reserve is then released.
    ///
    /// Any other error is ignored: the database works without a reserve.
    pub(crate) fn fill(&self, bytes: u64) -> bool {
        let mut state = self.lock();
        state.bytes = bytes;
        if state.shortage.is_some() {
            return true;
        }
        match self.storage.len(&self.path) {
            Ok(len) if len >= bytes / 2 => return false,
            // Another length is due since the database has grown.
            Ok(_) => drop(self.storage.remove(&self.path)),
            Err(_) => {}
        }
        self.create(&mut state);
        state.shortage.is_some()
    }

    /// Releases the reserve if `error` is that of a full disk. Returns true if this freed space, so that
    /// what failed may now succeed.
    pub(crate) fn release(&self, error: &Error) -> bool {
        if !matches!(error, Error::DiskFull(_)) {
            return false;
        }
        let mut state = self.lock();
        if state.shortage.is_some() {
            return false;
        }
        state.shortage =
            Some(Shortage { error: error.clone(), retry_at: Instant::now() + self.pause });
        self.storage.remove(&self.path).is_ok()
    }

    /// Gives up the space for the manifest. Returns true if there was some.
    pub(crate) fn release_for_manifest(&self) -> bool {
        let _state = self.lock();
        self.storage.remove(&self.manifest_path).is_ok()
    }

    /// Returns true if the length of the reserve was set.
    pub(crate) fn is_sized(&self) -> bool {
        self.lock().bytes > 0
    }

    /// Returns true if the reserve is released.
    pub(crate) fn is_released(&self) -> bool {
        self.lock().shortage.is_some()
    }

    /// Returns the error of the full disk while the reserve is released. Tries to create the file if the
    /// last attempt was long enough ago.
    pub(crate) fn shortage(&self) -> Option<Error> {
        let mut state = self.lock();
        let shortage = state.shortage.as_ref()?;
        if Instant::now() >= shortage.retry_at {
            self.create(&mut state);
        }
        state.shortage.as_ref().map(|shortage| shortage.error.clone())
    }

    /// Fails with the error of the full disk if the reserve is released and the disk has no space for
    /// `bytes` more bytes. A job that is bound to fail would otherwise take all space until it fails.
    pub(crate) fn check_room(&self, bytes: u64) -> Result<()> {
        let state = self.lock();
        let Some(shortage) = state.shortage.as_ref().filter(|_| bytes > 0) else { return Ok(()) };
        let has_room = self.storage.create_segment(&self.path, bytes).is_ok();
        // A failed creation has removed the file.
        if !has_room || self.storage.remove(&self.path).is_err() {
            return Err(shortage.error.clone());
        }
        Ok(())
    }

    fn create(&self, state: &mut State) {
        // The manifest comes first: without it the database could not be opened again. Fails if the file
        // exists.
        let _ = self.storage.create_segment(&self.manifest_path, state.bytes / 2);
        let created = self.storage.create_segment(&self.path, state.bytes);
        // The file may exist if the removal of a former one failed.
        let is_there = |error: &std::io::Error| error.kind() == std::io::ErrorKind::AlreadyExists;
        state.shortage = match created {
            Ok(_) => None,
            Err(error) if is_there(&error) => None,
            Err(error) => match Error::io("create", &self.path, error) {
                error @ Error::DiskFull(_) => {
                    // The first error says what the disk had no space for.
                    let error = state.shortage.take().map_or(error, |shortage| shortage.error);
                    Some(Shortage { error, retry_at: Instant::now() + self.pause })
                }
                _ => None,
            },
        };
    }
}

/// Returns the length of the reserve of a database with `table_bytes` bytes of tables, a manifest of
/// `manifest_bytes` bytes and segments of `segment_bytes` bytes.
///
/// A 64th of the tables, up to the size of a large memtable, so that flushes and small compactions have
/// space. At least space for the manifest to be rewritten and for thousands of deletes in the log.
pub(crate) fn reserve_bytes(table_bytes: u64, manifest_bytes: u64, segment_bytes: u64) -> u64 {
    let least = (segment_bytes / 4).clamp(64 << 10, 1 << 20) + 2 * manifest_bytes;
    (table_bytes / 64).min(64 << 20).max(least)
}
