//! A segment that is written with system calls.
//!
//! Each write is one positioned write. The bytes are in the kernel's page cache when the call
//! returns, so they survive the death of the process. If the disk is full, the call fails, perhaps
//! after it has written the first part of the bytes.
#![allow(clippy::disallowed_methods, reason = "this module makes file system calls")]
#![allow(clippy::disallowed_types, reason = "this module makes file system calls")]

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::sync::Arc;

#[cfg(target_os = "linux")]
use super::mapping::WritableMapping;
use super::{Segment, Syncer, size_limit};
use crate::base::error::LostPage;

/// A file of fixed length.
#[derive(Debug)]
pub(super) struct WrittenSegment {
    len: u64,
    file: Arc<SegmentFile>,
}

#[derive(Debug)]
pub(super) struct SegmentFile {
    file: File,
    /// The maximum length of a file when the segment was opened. Read once, because a system call for
    /// each write would make small writes a tenth slower.
    bytes_max: u64,
    /// The length that no other program may reduce.
    len: u64,
}

impl SegmentFile {
    fn write_all_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        size_limit::check_against(self.bytes_max, offset.saturating_add(bytes.len() as u64))?;
        write_all_at(&self.file, offset, bytes)
    }

    /// Writes bytes that must end within the segment.
    pub(super) fn write_within(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if offset.checked_add(bytes.len() as u64).is_none_or(|end| end > self.len) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.write_all_at(offset, bytes)
    }

    /// Fails with [`LostPage`] if another program has shortened the file.
    pub(super) fn check_len(&self) -> io::Result<()> {
        // Not from the metadata: after a call that returns the times of a file, Linux (6.13 and later) notes the time of
        // the next write exactly, which changes the inode and took a fifth of the rate of synced writes.
        let len = (&self.file).seek(SeekFrom::End(0))?;
        if len < self.len { Err(LostPage { offset: len }.into()) } else { Ok(()) }
    }

    /// Maps the first `len` bytes of the file.
    #[cfg(target_os = "linux")]
    pub(super) fn map(&self, len: u64) -> io::Result<WritableMapping> {
        WritableMapping::of_file(&self.file, len)
    }

    /// Writes zeros at `offset`.
    #[cfg(target_os = "linux")]
    pub(super) fn write_zeros(&self, mut offset: u64, mut len: u64) -> io::Result<()> {
        static ZEROS: [u8; 128 << 10] = [0; 128 << 10];
        while len > 0 {
            let count = len.min(ZEROS.len() as u64);
            self.write_all_at(offset, &ZEROS[..count as usize])?;
            offset += count;
            len -= count;
        }
        Ok(())
    }

    /// Makes the first page of the file durable by synchronously rewriting its first eight bytes.
    /// Returns false if the system cannot do that. A file system that does not overwrite in place
    /// may need space for it.
    #[cfg(target_os = "linux")]
    pub(super) fn sync_first_page(&self) -> io::Result<bool> {
        use rustix::io::{Errno, ReadWriteFlags, pwritev2, retry_on_intr};
        let mut first = [0; 8];
        size_limit::check_against(self.bytes_max, first.len() as u64)?;
        std::os::unix::fs::FileExt::read_exact_at(&self.file, &mut first, 0)?;
        let parts = [io::IoSlice::new(&first)];
        match retry_on_intr(|| pwritev2(&self.file, &parts, 0, ReadWriteFlags::DSYNC)) {
            Ok(count) => Ok(count == first.len()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::PERM) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl WrittenSegment {
    /// A segment over the first `len` bytes of a file.
    pub(super) fn new(file: File, len: u64) -> Self {
        let file = SegmentFile { file, bytes_max: size_limit::bytes_max(), len };
        Self { len, file: Arc::new(file) }
    }

    #[cfg(target_os = "linux")]
    pub(super) fn file(&self) -> &Arc<SegmentFile> {
        &self.file
    }
}

impl Segment for WrittenSegment {
    fn len(&self) -> u64 {
        self.len
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_within(offset, bytes)
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
        self.file.sync_data()?;
        // A sync succeeds without the part that another program has cut off.
        self.check_len()
    }
}
