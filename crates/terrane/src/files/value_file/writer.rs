//! Writes a value file from front to back.

use std::path::Path;
use std::sync::Arc;

use terrane_policy::ValueFileInfo;

use super::format::{RecordHeader, VALUE_FILE_HEADER_BYTES, ValueFileHeader};
use crate::base::error::Result;
use crate::base::types::SeqNo;
use crate::files::storage::{Access, Storage};
use crate::files::table::Sink;
use crate::files::value_pointer::{ValueFileName, ValuePointer, record_bytes};

/// A value file that is complete and durable, except for its name.
#[derive(Debug, Clone)]
pub(crate) struct FinishedValueFile {
    pub(crate) name: ValueFileName,
    pub(crate) info: Arc<ValueFileInfo>,
    /// The length of the file.
    pub(crate) size_bytes: u64,
}

/// Writes one value file.
pub(crate) struct ValueFileWriter {
    name: ValueFileName,
    sink: Sink,
    info: ValueFileInfo,
}

impl ValueFileWriter {
    /// Creates a value file. Syncs it after each `sync_bytes`, or only at the end if that is 0.
    ///
    /// # Errors
    /// The file exists, or cannot be created.
    pub(crate) fn create(
        storage: &dyn Storage,
        path: &Path,
        header: ValueFileHeader,
        access: Access,
        sync_bytes: u64,
    ) -> Result<Self> {
        let ValueFileHeader { name, created_micros, .. } = header;
        let mut sink = Sink::create(storage, path, access, sync_bytes)?;
        sink.append(&header.encode())?;
        let info = ValueFileInfo { created_micros, ..ValueFileInfo::new(name.number, 0) };
        Ok(Self { name, sink, info })
    }

    /// Returns the length of the file so far.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.sink.offset()
    }

    /// Appends a value, and returns the pointer to it.
    pub(crate) fn append(&mut self, key: &[u8], seq: SeqNo, value: &[u8]) -> Result<ValuePointer> {
        let at = self.sink.offset();
        let offset = at + record_bytes(key.len(), 0);
        let checksum = self.name.checksum(offset, value);
        let header = RecordHeader::encode(self.name, at, (key, seq), (value.len(), checksum));
        for part in [&header[..], key, value] {
            self.sink.append(part)?;
        }
        self.info.values += 1;
        Ok(ValuePointer { file: self.name.number, offset, len: value.len() as u32, checksum })
    }

    /// Completes the file and makes its contents durable, but not its name.
    pub(crate) fn finish(mut self) -> Result<FinishedValueFile> {
        let size_bytes = self.sink.offset();
        self.info.bytes = size_bytes - VALUE_FILE_HEADER_BYTES as u64;
        self.sink.finish()?;
        Ok(FinishedValueFile { name: self.name, info: Arc::new(self.info), size_bytes })
    }
}
