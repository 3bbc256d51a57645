//! A manifest in files.
//!
//! ```text
//! CURRENT:         the name of the manifest file in use, and a newline
//! MANIFEST-nnnnnn: | frame of a snapshot | its copy | frame of an edit | its copy | ... |
//! frame:           | checksum u64 | length u32 | length, inverted, u32 | payload |
//! ```
//!
//! Checksums are seeded with the file number and the frame's offset.
//!
//! 1. Every frame is written twice, so that no single damaged byte loses an edit: a reader falls
//!    back to the copy.
//! 2. If neither the frame nor its copy is valid and no valid frame follows, a crash interrupted the
//!    append before the edit was acknowledged, and the manifest ends there. If a valid frame
//!    follows, the manifest is damaged.
//! 3. A new file and its name are synced before `CURRENT` is replaced atomically by a pointer to it,
//!    so `CURRENT` always names a complete file.
//! 4. If another process takes the directory, at most one of the two acknowledges edits: an edit is
//!    acknowledged only if, once it is durable, the lock is still held and the file still has its
//!    name. A process that takes the directory later reads the edit.
//! 5. After a failed append nothing is appended to the file, because its tail is unknown. The next
//!    write is a rewrite into a new file.
//!
//! The module `load` decides what a directory without `CURRENT` contains.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::store::{ManifestStore, PutResult, Versioned};
use crate::base::checksum::{checksum, place_seed};
use crate::base::codec::Reader;
use crate::base::error::{Error, Result};
use crate::files::storage::{Access, Appender, DirectoryLock, Storage};

const FRAME_HEADER_BYTES: usize = 16;
pub(crate) const CURRENT: &str = "CURRENT";
pub(crate) const CURRENT_NEW: &str = "CURRENT.new";

/// Returns the name of the manifest file with this number.
pub(crate) fn manifest_file_name(number: u64) -> String {
    format!("MANIFEST-{number:06}")
}

/// Returns the number in the name of a manifest file; `None` for any other name.
pub(crate) fn manifest_file_number(name: &str) -> Option<u64> {
    let number: u64 = name.strip_prefix("MANIFEST-")?.parse().ok()?;
    (manifest_file_name(number) == name).then_some(number)
}

/// The manifest of a directory.
pub(crate) struct FileManifest {
    storage: Arc<dyn Storage>,
    dir: PathBuf,
    /// The current file; `None` before the first write and after a failed append.
    file: Option<OpenManifest>,
    /// The number of the file written last, even if it did not become current.
    number: u64,
    version: u64,
    bytes_written: u64,
    /// The lock of the directory; `None` if no other process can use the directory yet.
    lock: Option<DirectoryLock>,
}

struct OpenManifest {
    path: PathBuf,
    number: u64,
    appender: Box<dyn Appender>,
    snapshot_bytes: u64,
    offset: u64,
}

/// The edits read from a manifest file.
#[derive(Debug, Default)]
pub(crate) struct LoadedManifest {
    /// The snapshot and the edits after it, oldest first; empty for a new database.
    pub(crate) edits: Vec<Versioned>,
    /// The number of damaged frames whose copies were intact.
    pub(crate) healed: u64,
    /// The file that was read.
    pub(crate) path: Option<PathBuf>,
}

/// Returns the number of the manifest that `CURRENT` names; `None` if `CURRENT` does not exist.
pub(super) fn read_pointer(storage: &dyn Storage, dir: &Path) -> Result<Option<u64>> {
    let pointer = dir.join(CURRENT);
    let text = match read_file(storage, &pointer) {
        Err(Error::Io(failure)) if failure.source.kind() == std::io::ErrorKind::NotFound => {
            return Ok(None);
        }
        read => read?,
    };
    let name = std::str::from_utf8(&text).ok().and_then(|text| text.strip_suffix('\n'));
    name.and_then(manifest_file_number).map(Some).ok_or_else(|| {
        let detail = format!("it does not name a manifest: '{}'", text.escape_ascii());
        Error::corruption(&pointer, None, "pointer to the manifest", detail)
    })
}

/// Reads a manifest file.
pub(crate) fn read_manifest(
    storage: &dyn Storage,
    path: &Path,
    number: u64,
) -> Result<LoadedManifest> {
    let loaded = read_frames(storage, path, number)?;
    if loaded.edits.is_empty() {
        let detail = "it does not begin with a complete snapshot";
        return Err(Error::corruption(path, Some(0), "manifest", detail));
    }
    Ok(loaded)
}

/// Reads a manifest file. Returns no edits if the file ends before its snapshot does.
pub(super) fn read_frames(
    storage: &dyn Storage,
    path: &Path,
    number: u64,
) -> Result<LoadedManifest> {
    let bytes = read_file(storage, path)?;
    let mut loaded = LoadedManifest { path: Some(path.to_owned()), ..LoadedManifest::default() };
    let mut offset = 0;
    while offset < bytes.len() {
        let Some((payload, end)) = frame_or_copy(&bytes, number, offset, &mut loaded.healed) else {
            check_nothing_follows(&bytes, number, offset, path)?;
            break;
        };
        let version = payload.first_chunk::<8>().map(|version| u64::from_le_bytes(*version));
        let expected = loaded.edits.last().map(|last| last.version.wrapping_add(1));
        let Some(version) = version.filter(|version| expected.is_none_or(|next| next == *version))
        else {
            let detail = "an edit is missing before this one";
            return Err(Error::corruption(path, Some(offset as u64), "manifest", detail));
        };
        loaded.edits.push(Versioned { version, bytes: payload.to_vec() });
        offset = end;
    }
    Ok(loaded)
}

fn read_file(storage: &dyn Storage, path: &Path) -> Result<Vec<u8>> {
    let io = |error| Error::io("read", path, error);
    let len = storage.len(path).map_err(io)?;
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
    storage
        .open(path, Access::Buffered)
        .and_then(|file| file.read_at(0, &mut bytes))
        .map_err(io)?;
    Ok(bytes)
}

/// Returns the payload of the frame at `offset` or of its copy, and the end of the copy.
fn frame_or_copy<'a>(
    bytes: &'a [u8],
    number: u64,
    offset: usize,
    healed: &mut u64,
) -> Option<(&'a [u8], usize)> {
    if let Some((payload, end)) = frame(bytes, number, offset) {
        // A crash may have cut the copy short.
        let copy_end = end + (end - offset);
        if copy_end > bytes.len() || frame(bytes, number, end).is_none() {
            *healed += 1;
        }
        return Some((payload, copy_end.min(bytes.len())));
    }
    // The length field itself may be damaged, so the copy is searched for at every offset. A frame
    // found there is the copy only if its distance from this frame equals its length.
    let (copy, (payload, end)) = (offset + 1..bytes.len())
        .find_map(|at| frame(bytes, number, at).map(|found| (at, found)))?;
    (end - copy == copy - offset).then(|| {
        *healed += 1;
        (payload, end)
    })
}

fn frame(bytes: &[u8], number: u64, offset: usize) -> Option<(&[u8], usize)> {
    let mut reader = Reader::new(bytes.get(offset..)?);
    let sum = reader.u64("frame").ok()?;
    let len = reader.u32("frame").ok()?;
    if reader.u32("frame").ok()? != !len {
        return None;
    }
    let payload = reader.bytes(len as usize, "frame").ok()?;
    let seed = place_seed(number, offset as u64).wrapping_add(u64::from(len));
    (sum == checksum(payload, seed)).then_some((payload, offset + reader.position()))
}

fn check_nothing_follows(bytes: &[u8], number: u64, offset: usize, path: &Path) -> Result<()> {
    let follows = (offset + 1..bytes.len()).any(|at| frame(bytes, number, at).is_some());
    if follows {
        let detail = "an edit and its copy are damaged, but a later one is intact";
        return Err(Error::corruption(path, Some(offset as u64), "manifest", detail));
    }
    Ok(())
}

pub(super) fn put_frame(out: &mut Vec<u8>, number: u64, offset: u64, payload: &[u8]) -> Result<()> {
    let len = u32::try_from(payload.len())
        .map_err(|_| Error::internal("an edit of the manifest is larger than 4 GiB"))?;
    let seed = place_seed(number, offset).wrapping_add(u64::from(len));
    out.extend_from_slice(&checksum(payload, seed).to_le_bytes());
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&(!len).to_le_bytes());
    out.extend_from_slice(payload);
    Ok(())
}

impl FileManifest {
    /// Creates the manifest of a directory. The newest edit so far has `version`. Writes nothing
    /// yet: the first call must be [`ManifestStore::rewrite`].
    pub(crate) fn new(storage: Arc<dyn Storage>, dir: &Path, version: u64) -> Result<Self> {
        let number = read_pointer(&*storage, dir)?.unwrap_or(0);
        let dir = dir.to_owned();
        Ok(Self { storage, dir, file: None, number, version, bytes_written: 0, lock: None })
    }

    /// Makes every write check that the lock is still held.
    pub(crate) fn with_lock(mut self, lock: DirectoryLock) -> Self {
        self.lock = Some(lock);
        self
    }

    fn write_new(&mut self, snapshot: &Versioned) -> Result<OpenManifest> {
        self.number = self.unused_number()?;
        let number = self.number;
        let path = self.dir.join(manifest_file_name(number));
        let create = self.storage.create(&path, Access::Buffered);
        let appender = create.map_err(|error| Error::io("create", &path, error))?;
        let mut file = OpenManifest { path, number, appender, snapshot_bytes: 0, offset: 0 };
        let written = file.append(snapshot).and_then(|bytes| {
            // Invariant 3: contents and name are durable before `CURRENT` names the file.
            self.sync_dir()?;
            self.write_pointer(number)?;
            Ok(bytes)
        });
        match written {
            Ok(bytes) => self.bytes_written += bytes,
            Err(error) => {
                // Nothing refers to the new files, and they take space on a disk that may be full.
                let _ = self.storage.remove(&file.path);
                let _ = self.storage.remove(&self.dir.join(CURRENT_NEW));
                return Err(error);
            }
        }
        file.snapshot_bytes = file.offset;
        let (new, pointer) = (self.dir.join(CURRENT_NEW), self.dir.join(CURRENT));
        self.storage.rename(&new, &pointer).map_err(|error| Error::io("rename", &new, error))?;
        self.sync_dir()?;
        Ok(file)
    }

    /// Returns the first unused number after the last one. A crash may have left a file with a
    /// higher number, and a foreign file may have any number.
    fn unused_number(&self) -> Result<u64> {
        let names = self.storage.list(&self.dir);
        let names = names.map_err(|error| Error::io("list", &self.dir, error))?;
        let used: BTreeSet<u64> =
            names.iter().filter_map(|name| manifest_file_number(name)).collect();
        let next = |number: u64| number.checked_add(1).unwrap_or(1);
        let mut number = next(self.number);
        while used.contains(&number) {
            number = next(number);
        }
        Ok(number)
    }

    /// Writes the file that will replace `CURRENT`.
    fn write_pointer(&self, number: u64) -> Result<()> {
        let new = self.dir.join(CURRENT_NEW);
        let io = |operation, path: &Path, error| Error::io(operation, path, error);
        // A crash may have left this file behind.
        let _ = self.storage.remove(&new);
        let mut file = self
            .storage
            .create(&new, Access::Buffered)
            .map_err(|error| io("create", &new, error))?;
        let text = format!("{}\n", manifest_file_name(number));
        file.append(text.as_bytes()).map_err(|error| io("append to", &new, error))?;
        file.sync().map_err(|error| failed_sync(&new, error))
    }

    fn sync_dir(&self) -> Result<()> {
        self.storage.sync_dir(&self.dir).map_err(|error| failed_sync(&self.dir, error))
    }
}

/// Fails if another process may have taken the directory before the last edit became durable
/// (invariant 4). The file name is checked as well, because two machines that share a file system
/// may both hold the lock.
fn check_owner(lock: Option<&DirectoryLock>, file: &OpenManifest) -> Result<()> {
    let Some(lock) = lock else { return Ok(()) };
    lock.check()?;
    match file.appender.has_name() {
        Ok(true) => Ok(()),
        Ok(false) => Err(lock.lost()),
        Err(error) => Err(Error::io("check", &file.path, error)),
    }
}

/// A failed sync is final: the kernel may have dropped the dirty pages, and a second sync would
/// succeed without writing them.
fn failed_sync(path: &Path, error: std::io::Error) -> Error {
    Error::Poisoned(Box::new(Error::io("sync", path, error)))
}

impl OpenManifest {
    /// Appends an edit and its copy, and makes both durable. Returns the bytes written.
    fn append(&mut self, edit: &Versioned) -> Result<u64> {
        let mut bytes = Vec::with_capacity(2 * (FRAME_HEADER_BYTES + edit.bytes.len()));
        put_frame(&mut bytes, self.number, self.offset, &edit.bytes)?;
        let copy_at = self.offset + bytes.len() as u64;
        put_frame(&mut bytes, self.number, copy_at, &edit.bytes)?;
        let append = self.appender.append(&bytes);
        append.map_err(|error| Error::io("append to", &self.path, error))?;
        self.appender.sync().map_err(|error| failed_sync(&self.path, error))?;
        self.offset += bytes.len() as u64;
        Ok(bytes.len() as u64)
    }
}

impl ManifestStore for FileManifest {
    fn keep(&mut self, edit: &Versioned) -> Result<PutResult> {
        if edit.version <= self.version {
            return Ok(PutResult::VersionExists);
        }
        let Some(file) = &mut self.file else {
            return Err(Error::internal("the manifest got an edit before a snapshot"));
        };
        let kept = file.append(edit);
        match kept.and_then(|bytes| check_owner(self.lock.as_ref(), file).map(|()| bytes)) {
            Ok(bytes) => {
                self.bytes_written += bytes;
                self.version = edit.version;
                Ok(PutResult::Durable)
            }
            Err(error) => {
                // Invariant 5: the tail of the file is unknown.
                self.file = None;
                Err(error)
            }
        }
    }

    fn rewrite(&mut self, snapshot: &Versioned) -> Result<()> {
        // Checked first, because the new file replaces any file that another process may have begun.
        if let Some(lock) = &self.lock {
            lock.check()?;
        }
        self.file = None;
        let file = self.write_new(snapshot)?;
        check_owner(self.lock.as_ref(), &file)?;
        let number = file.number;
        self.file = Some(file);
        self.version = snapshot.version;
        // Other files are obsolete or were left by a crash. If removing one fails, the next rewrite
        // tries again.
        let names = self.storage.list(&self.dir).unwrap_or_default();
        for name in names {
            if manifest_file_number(&name).is_some_and(|other| other != number) {
                let _ = self.storage.remove(&self.dir.join(name));
            }
        }
        Ok(())
    }

    fn sizes(&self) -> Option<(u64, u64)> {
        let file = self.file.as_ref()?;
        Some((file.offset - file.snapshot_bytes, file.snapshot_bytes))
    }

    fn bytes_written(&self) -> u64 {
        self.bytes_written
    }
}

impl std::fmt::Debug for FileManifest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FileManifest({}, version {})", self.dir.display(), self.version)
    }
}
