//! A value file in use.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};
use crate::stats::Counter;
use crate::table::{TableEnvironment, TableReader};
use crate::value::Value;
use crate::value_pointer::{ValueFileName, ValuePointer};

/// A value file of a version. The file is opened on first use, and removed when the last user drops
/// an obsolete one.
pub(crate) struct ValueFile {
    name: ValueFileName,
    path: PathBuf,
    size_bytes: u64,
    reader: TableReader,
    environment: Arc<TableEnvironment>,
    is_obsolete: AtomicBool,
}

impl ValueFile {
    /// Creates a value file in the directory `dir`, with the length that the manifest states.
    pub(crate) fn new(
        name: ValueFileName,
        size_bytes: u64,
        dir: &Path,
        environment: &Arc<TableEnvironment>,
    ) -> Arc<Self> {
        Arc::new(Self {
            name,
            path: dir.join(name.file_name()),
            size_bytes,
            reader: TableReader::new(&environment.open_files),
            environment: Arc::clone(environment),
            is_obsolete: AtomicBool::new(false),
        })
    }

    /// Marks the file for removal when the last user drops it.
    pub(crate) fn make_obsolete(&self) {
        // The reference count of the `Arc` orders this store before the read in `drop`, because the
        // caller holds a reference.
        self.is_obsolete.store(true, Ordering::Release);
    }

    /// Opens the file, so that it can be read even if another process removes its name.
    pub(crate) fn open(&self) -> Result<()> {
        self.read_at(0, &mut [])
    }

    /// Reads a value with one read, and verifies it against its pointer.
    ///
    /// # Errors
    /// The value cannot be read, or is not the one to which the pointer refers.
    pub(crate) fn read(&self, pointer: &ValuePointer) -> Result<Value> {
        let ValuePointer { offset, len, checksum, .. } = *pointer;
        // This bounds the allocation, because the length may come from a damaged table.
        if offset.checked_add(len.into()).is_none_or(|end| end > self.size_bytes) {
            return Err(self.corrupt(offset, "a table refers to a value beyond its end"));
        }
        let mut block = self.environment.buffer.standalone(len as usize);
        self.read_at(offset, &mut block)?;
        self.environment.counters.add(Counter::ValueBytesRead, len.into());
        if self.name.checksum(offset, &block) != checksum {
            return Err(self.corrupt(offset, "the checksum of a value does not match"));
        }
        Ok(Value::of_block(block.freeze().view(), 0..len as usize))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let TableEnvironment { storage, access, .. } = &*self.environment;
        let open = || storage.open(&self.path, *access);
        let read = self.reader.with(open, |file| file.read_at(offset, buffer));
        let read = read.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                Error::corruption(&self.path, None, "value file", "the file is missing")
            }
            _ => Error::io("open", &self.path, error),
        })?;
        read.map_err(|error| Error::io("read", &self.path, error))
    }

    fn corrupt(&self, offset: u64, detail: &str) -> Error {
        Error::corruption(&self.path, Some(offset), "value", detail)
    }
}

impl Drop for ValueFile {
    fn drop(&mut self) {
        if *self.is_obsolete.get_mut() {
            (self.environment.discard)(&self.environment, &self.path);
        }
    }
}

impl fmt::Debug for ValueFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ValueFile({}, {} bytes)", self.name.file_name(), self.size_bytes)
    }
}
