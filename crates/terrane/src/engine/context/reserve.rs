//! Disk space that the database keeps for deletes and for the work that frees space.
//!
//! The files `RESERVE` and `RESERVE.manifest` have no contents, only a length. They are created while
//! there is space. When a full disk refuses a delete its segment of the log, a flush or an edit of the
//! manifest, `RESERVE` is removed, and its space serves deletes, flushes, compactions and the manifest.
//! Until the file exists again, other writes are refused, because they would use the space up. The other
//! file is removed only for the manifest, without which the database could not be opened again.
//!
//! 1. While the reserve is released, a write other than a delete is admitted only after `RESERVE` was
//!    created again. The flag in [`Health`] that refuses it changes under the lock of the reserve.
//! 2. A full disk is asked for the file at most once in [`PAUSE`], whatever the number of writes. With
//!    inline background work every write asks, so that the results do not depend on the time.
//! 3. The files are not needed: a missing one is created.
//! 4. A longer file replaces a shorter one only once it exists, under the name `RESERVE.new` until then. If
//!    the disk has no space for it, the shorter one stays, and no write is refused.
//! 5. An attempt to create a file that cannot fit is not made, because it would take the space of deletes
//!    until it fails. A storage that does not state its free space is asked by attempts.
//! 6. A segment of the log that is created in advance never takes the space of the released reserve: it is
//!    created under the lock of the reserve, or not at all.
//! 7. Only the lack of space releases the reserve. The limit of the process for the size of a file bounds
//!    the lengths of the files.

use std::io::{ErrorKind, Result as IoResult};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::health::Health;
use crate::base::error::{Error, Result};
use crate::files::storage::{Storage, file_bytes_max};
use crate::options::Background;

/// The names of the files.
const RESERVE: &str = "RESERVE";
const MANIFEST_RESERVE: &str = "RESERVE.manifest";
const NEW_RESERVE: &str = "RESERVE.new";
pub(crate) const FILES: [&str; 3] = [RESERVE, MANIFEST_RESERVE, NEW_RESERVE];

/// The pause between two attempts to create the file. Writes resume at most this long after another program
/// has freed space.
const PAUSE: Duration = Duration::from_millis(250);

/// The reserve of a database.
#[derive(Debug)]
pub(crate) struct DiskReserve {
    storage: Arc<dyn Storage>,
    dir: PathBuf,
    /// How long writes are refused without another attempt to create the files.
    pause: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The length of `RESERVE` when it is created next; 0 before the first creation. The file for the
    /// manifest is half as long.
    bytes: u64,
    /// The files are long enough until this length is due; 0 if their lengths are unknown.
    suffices_to: u64,
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
            dir: dir.to_owned(),
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

    /// Makes sure that the files have at least half of the lengths that suit the database, unless the
    /// reserve is released. Lengthens existing ones if there is space. If there is no `RESERVE` and no space
    /// for it, the reserve is released. Any other error is ignored: the database works without a reserve.
    ///
    /// Costs no call of the storage while the files are long enough.
    pub(crate) fn fill(&self, bytes: u64, health: &Health) {
        let bytes = bytes.min(file_bytes_max());
        let mut state = self.lock();
        if state.shortage.is_some() {
            // The released file must exist again before it grows.
            state.bytes = if state.bytes == 0 { bytes } else { state.bytes };
            return;
        }
        if bytes <= state.suffices_to {
            return;
        }
        // A crash may have left it.
        let _ = self.storage.remove(&self.dir.join(NEW_RESERVE));
        let len = self.storage.len(&self.dir.join(RESERVE));
        if !len.is_ok_and(|len| len > 0) {
            state.bytes = bytes;
            return self.create(&mut state, health);
        }
        // The manifest comes first: without it the database could not be opened again.
        let manifest_len = self.lengthen(MANIFEST_RESERVE, bytes / 2);
        let len = self.lengthen(RESERVE, bytes);
        // Once it is released, no more space than this is needed to accept writes again.
        state.bytes = len;
        state.suffices_to = len.min(manifest_len.saturating_mul(2)).saturating_mul(2);
    }

    /// Releases the reserve if `error` is that of a full disk. Returns false if it was released before.
    pub(crate) fn release(&self, error: &Error, health: &Health) -> bool {
        if !error.is_out_of_space() {
            return false;
        }
        let mut state = self.lock();
        if state.shortage.is_some() {
            return false;
        }
        let shortage = Shortage { error: error.clone(), retry_at: Instant::now() + self.pause };
        set_shortage(&mut state, Some(shortage), health);
        let _ = self.storage.remove(&self.dir.join(RESERVE));
        true
    }

    /// Removes the file for an opening that has no space otherwise. Returns true if there was one.
    pub(crate) fn remove(&self) -> bool {
        self.storage.remove(&self.dir.join(RESERVE)).is_ok()
    }

    /// Gives up the space for the manifest. Returns true if there was some.
    pub(crate) fn release_for_manifest(&self) -> bool {
        let mut state = self.lock();
        state.suffices_to = 0;
        self.storage.remove(&self.dir.join(MANIFEST_RESERVE)).is_ok()
    }

    /// Returns true if the reserve is released.
    pub(crate) fn is_released(&self) -> bool {
        self.lock().shortage.is_some()
    }

    /// Returns the error of the full disk while the reserve is released. Tries to create the file if the
    /// last attempt was long enough ago.
    pub(crate) fn shortage(&self, health: &Health) -> Option<Error> {
        let mut state = self.lock();
        let shortage = state.shortage.as_ref()?;
        if Instant::now() >= shortage.retry_at {
            self.create(&mut state, health);
        }
        state.shortage.as_ref().map(|shortage| shortage.error.clone())
    }

    /// Fails with the error of the full disk if the reserve is released and the disk has no space for
    /// `bytes` more bytes. A job that is bound to fail would otherwise take all space until it fails.
    pub(crate) fn check_room(&self, bytes: u64) -> Result<()> {
        let error = self.lock().shortage.as_ref().map(|shortage| shortage.error.clone());
        // Without the lock, which a writer may need.
        error.filter(|_| !self.has_room(bytes)).map_or(Ok(()), Err)
    }

    /// Runs an operation for which the disk must have space beside the reserve. Fails with the error of the
    /// full disk if the reserve is released, because the operation would take the space of deletes. The
    /// reserve is not released meanwhile.
    pub(crate) fn run_beside<T>(&self, operation: impl FnOnce() -> Result<T>) -> Result<T> {
        let state = self.lock();
        match &state.shortage {
            Some(shortage) => Err(shortage.error.clone()),
            None => operation(),
        }
    }

    fn create(&self, state: &mut State, health: &Health) {
        let bytes = state.bytes.min(file_bytes_max());
        self.lengthen(MANIFEST_RESERVE, bytes / 2);
        let path = self.dir.join(RESERVE);
        let created = match self.storage.len(&path) {
            // The removal of a former one failed.
            Ok(1..) => Ok(()),
            // A file without space, of a database whose disk was full before its first flush.
            Ok(0) => self.storage.remove(&path).and_then(|()| self.create_file(&path, bytes)),
            Err(_) => self.create_file(&path, bytes),
        };
        let refusal = created.err().map(|error| Error::io("create", &path, error));
        let shortage = refusal.filter(Error::is_out_of_space).map(|error| {
            // The first error says what the disk had no space for.
            let error = state.shortage.take().map_or(error, |shortage| shortage.error);
            Shortage { error, retry_at: Instant::now() + self.pause }
        });
        set_shortage(state, shortage, health);
    }

    /// Replaces a file that is missing or less than half as long as `bytes` by one of this length, if there
    /// is space. Returns the length of the file.
    fn lengthen(&self, name: &str, bytes: u64) -> u64 {
        let (path, new) = (self.dir.join(name), self.dir.join(NEW_RESERVE));
        let len = match self.storage.len(&path) {
            Ok(len) if len >= bytes / 2 => return len,
            Ok(len) => len,
            Err(_) => return self.create_file(&path, bytes).map_or(0, |()| bytes),
        };
        if self.create_file(&new, bytes).is_err() {
            return len;
        }
        match self.storage.rename(&new, &path) {
            Ok(()) => bytes,
            Err(_) => {
                let _ = self.storage.remove(&new);
                len
            }
        }
    }

    fn create_file(&self, path: &Path, bytes: u64) -> IoResult<()> {
        if !self.has_room(bytes) {
            return Err(ErrorKind::StorageFull.into());
        }
        self.storage.create_segment(path, bytes).map(drop)
    }

    fn has_room(&self, bytes: u64) -> bool {
        self.storage.free_bytes(&self.dir).is_none_or(|free| free >= bytes)
    }
}

/// Sets why the reserve is released, and with it whether writes other than deletes are refused.
fn set_shortage(state: &mut State, shortage: Option<Shortage>, health: &Health) {
    state.suffices_to = 0;
    health.set_short(shortage.is_some());
    state.shortage = shortage;
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

#[cfg(test)]
mod tests;
