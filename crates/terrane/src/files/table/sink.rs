//! The file of a table or of values being written: buffered, and with a checksum of the whole file.

use std::path::{Path, PathBuf};

use crate::base::checksum::RunningChecksum;
use crate::base::error::{Error, Result};
use crate::files::storage::{Access, Appender, Storage};

/// The size of a write, large enough that system calls cost little per byte.
pub(crate) const SINK_BYTES: usize = 256 << 10;

pub(crate) struct Sink {
    file: Box<dyn Appender>,
    path: PathBuf,
    buffer: Vec<u8>,
    /// The number of bytes written, including buffered bytes.
    offset: u64,
    /// The number of bytes between two syncs; 0 to sync only at the end.
    sync_bytes: u64,
    unsynced_bytes: u64,
    sum: RunningChecksum,
}

impl Sink {
    pub(crate) fn create(
        storage: &dyn Storage,
        path: &Path,
        access: Access,
        sync_bytes: u64,
    ) -> Result<Self> {
        let file =
            storage.create(path, access).map_err(|error| Error::io("create", path, error))?;
        let buffer = Vec::with_capacity(SINK_BYTES);
        Ok(Self {
            file,
            path: path.to_owned(),
            buffer,
            offset: 0,
            sync_bytes,
            unsynced_bytes: 0,
            sum: RunningChecksum::new(),
        })
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.offset += bytes.len() as u64;
        if self.buffer.len() + bytes.len() > SINK_BYTES {
            self.write_buffer()?;
        }
        if bytes.len() >= SINK_BYTES {
            return self.write(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn write_buffer(&mut self) -> Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        let written = self.write(&buffer);
        self.buffer = buffer;
        self.buffer.clear();
        written
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        // Updates in large chunks, because many small updates would cost more than the checksum
        // itself.
        self.sum.update(bytes);
        self.file.append(bytes).map_err(|error| Error::io("append to", &self.path, error))?;
        self.unsynced_bytes += bytes.len() as u64;
        if self.sync_bytes > 0 && self.unsynced_bytes >= self.sync_bytes {
            self.sync()?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.unsynced_bytes = 0;
        self.file.sync().map_err(|error| Error::io("sync", &self.path, error))
    }

    /// Makes all bytes durable. Returns the checksum of the whole file, and true if writes bypassed
    /// the page cache.
    pub(crate) fn finish(self) -> Result<(u64, bool)> {
        let (checksum, is_direct, file) = self.finish_unsynced()?;
        file.sync()?;
        Ok((checksum, is_direct))
    }

    /// As [`Self::finish`], but leaves the sync to the caller.
    pub(crate) fn finish_unsynced(mut self) -> Result<(u64, bool, UnsyncedFile)> {
        self.write_buffer()?;
        let file = UnsyncedFile { file: self.file, path: self.path };
        Ok((self.sum.digest(), file.file.is_direct(), file))
    }
}

/// A file that is complete but not durable.
pub(crate) struct UnsyncedFile {
    file: Box<dyn Appender>,
    path: PathBuf,
}

impl UnsyncedFile {
    pub(crate) fn sync(mut self) -> Result<()> {
        self.file.sync().map_err(|error| Error::io("sync", &self.path, error))
    }
}
