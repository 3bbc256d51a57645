//! A segment that is written with system calls.
//!
//! Each write is one positioned write. The bytes are in the kernel's page cache when the call
//! returns, so they survive the death of the process. If the disk is full, the call fails, perhaps
//! after it has written the first part of the bytes.
#![allow(clippy::disallowed_methods, reason = "this module makes file system calls")]
#![allow(clippy::disallowed_types, reason = "this module makes file system calls")]

use std::fs::File;
use std::io;
use std::sync::Arc;

use super::{Segment, Syncer};

/// A file of fixed length.
#[derive(Debug)]
pub(super) struct WrittenSegment {
    len: u64,
    file: Arc<SegmentFile>,
}

#[derive(Debug)]
struct SegmentFile(File);

impl WrittenSegment {
    /// A segment over the first `len` bytes of a file.
    pub(super) fn new(file: File, len: u64) -> Self {
        Self { len, file: Arc::new(SegmentFile(file)) }
    }
}

impl Segment for WrittenSegment {
    fn len(&self) -> u64 {
        self.len
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if offset.checked_add(bytes.len() as u64).is_none_or(|end| end > self.len) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        write_all_at(&self.file.0, offset, bytes)
    }

    fn syncer(&self) -> Arc<dyn Syncer> {
        Arc::clone(&self.file) as Arc<dyn Syncer>
    }
}

#[cfg(unix)]
fn write_all_at(file: &File, offset: u64, bytes: &[u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(windows)]
fn write_all_at(file: &File, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_write(file, bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                offset += count as u64;
                bytes = &bytes[count..];
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl Syncer for SegmentFile {
    fn sync(&self) -> io::Result<()> {
        // This includes the pages that were changed through a map of the file.
        self.0.sync_data()
    }
}
