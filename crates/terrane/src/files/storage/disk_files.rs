//! Files on a disk that are appended to or read, in either case with or without the page cache.
#![allow(clippy::disallowed_types, reason = "this module makes the file system calls")]

use std::fs::File;
use std::io::{self, Write};
#[cfg(target_os = "linux")]
use std::num::NonZeroU64;
#[cfg(target_os = "linux")]
use std::ops::Range;
#[cfg(unix)]
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(target_os = "linux")]
use super::direct::{DirectAppender, DirectFile, DirectReader};
use super::place::Place;
use super::system::{self, Opening};
use super::{Access, Appender, RandomReader, size_limit};

/// Creates a file for appending.
pub(super) fn create(place: Place<'_>, access: Access) -> io::Result<Box<dyn Appender>> {
    match access {
        Access::Buffered => {
            Ok(Box::new(DiskAppender::new(system::open(place, Opening::CreateForAppend)?)))
        }
        Access::Direct => create_direct(place),
    }
}

/// Opens a file for reads.
pub(super) fn open(place: Place<'_>, access: Access) -> io::Result<Arc<dyn RandomReader>> {
    let file = system::open(place, Opening::Read)?;
    match access {
        Access::Buffered => Ok(Arc::new(DiskReader(file))),
        Access::Direct => open_direct(file),
    }
}

struct DiskAppender {
    file: File,
    /// The length, counting also the bytes of failed appends.
    len: u64,
}

impl DiskAppender {
    /// Creates an appender to an empty file.
    fn new(file: File) -> Self {
        Self { file, len: 0 }
    }
}

impl Appender for DiskAppender {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        size_limit::check(self.len + bytes.len() as u64)?;
        self.len += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    #[cfg(unix)]
    fn has_name(&self) -> io::Result<bool> {
        Ok(std::os::unix::fs::MetadataExt::nlink(&self.file.metadata()?) > 0)
    }
}

#[derive(Debug)]
struct DiskReader(File);

#[cfg(unix)]
impl RandomReader for DiskReader {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.0, buffer, offset)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }

    #[cfg(target_os = "linux")]
    fn expect_random_reads(&self) {
        // Without the advice reads are only slower.
        let _ = rustix::fs::fadvise(&self.0, 0, None, rustix::fs::Advice::Random);
    }

    #[cfg(target_os = "linux")]
    fn will_read(&self, bytes: Range<u64>) {
        // A length of 0 would be the rest of the file.
        if let Some(len) = NonZeroU64::new(bytes.end.saturating_sub(bytes.start)) {
            let advice = rustix::fs::Advice::WillNeed;
            let _ = rustix::fs::fadvise(&self.0, bytes.start, Some(len), advice);
        }
    }
}

#[cfg(windows)]
impl RandomReader for DiskReader {
    fn read_at(&self, mut offset: u64, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            match std::os::windows::fs::FileExt::seek_read(&self.0, buffer, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    offset += count as u64;
                    buffer = &mut buffer[count..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Reads a file bypassing the page cache, or through it if the file system does not support direct
/// I/O.
#[cfg(target_os = "linux")]
fn open_direct(file: File) -> io::Result<Arc<dyn RandomReader>> {
    let len = file.metadata()?.len();
    Ok(match DiskDirect::of(file) {
        Ok(direct) => Arc::new(DirectReader::new(direct, len)),
        Err(file) => Arc::new(DiskReader(file)),
    })
}

#[cfg(not(target_os = "linux"))]
fn open_direct(file: File) -> io::Result<Arc<dyn RandomReader>> {
    Ok(Arc::new(DiskReader(file)))
}

/// Creates a file for writes that bypass the page cache, or for buffered writes if the file system
/// does not support direct I/O.
#[cfg(target_os = "linux")]
fn create_direct(place: Place<'_>) -> io::Result<Box<dyn Appender>> {
    let file = system::open(place, Opening::Create)?;
    Ok(match DiskDirect::of(file) {
        Ok(direct) => Box::new(DirectAppender::new(direct)),
        Err(file) => Box::new(DiskAppender::new(file)),
    })
}

#[cfg(not(target_os = "linux"))]
fn create_direct(place: Place<'_>) -> io::Result<Box<dyn Appender>> {
    create(place, Access::Buffered)
}

/// A file opened with `O_DIRECT`.
#[cfg(target_os = "linux")]
#[derive(Debug)]
struct DiskDirect {
    file: File,
    /// False once the device has refused a block of [`ALIGN`](super::direct::ALIGN) bytes.
    is_direct: AtomicBool,
}

#[cfg(target_os = "linux")]
impl DiskDirect {
    /// Switches an open file to direct I/O; returns the file if its file system refuses. The flag is
    /// set after the file is created, because a refused creation may leave the file behind.
    fn of(file: File) -> Result<Self, File> {
        let switched = rustix::fs::fcntl_getfl(&file)
            .and_then(|flags| rustix::fs::fcntl_setfl(&file, flags | rustix::fs::OFlags::DIRECT));
        match switched {
            Ok(()) => Ok(Self { file, is_direct: AtomicBool::new(true) }),
            Err(_) => Err(file),
        }
    }

    /// Runs an operation, and repeats it as buffered I/O if the device refuses the alignment. All
    /// later operations on the file are then buffered.
    fn attempt<T>(&self, mut go: impl FnMut(&File) -> io::Result<T>) -> io::Result<T> {
        // Read before the attempt, because another thread may clear the flag during it.
        let was_direct = self.is_direct();
        match go(&self.file) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput && was_direct => {
                let flags = rustix::fs::fcntl_getfl(&self.file)?;
                rustix::fs::fcntl_setfl(&self.file, flags - rustix::fs::OFlags::DIRECT)?;
                // Relaxed: no other memory access depends on the flag. A thread that misses this store
                // at most repeats a failed operation once.
                self.is_direct.store(false, Ordering::Relaxed);
                go(&self.file)
            }
            other => other,
        }
    }
}

#[cfg(target_os = "linux")]
impl DirectFile for DiskDirect {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.attempt(|file| std::os::unix::fs::FileExt::read_at(file, buffer, offset))
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        size_limit::check(offset + bytes.len() as u64)?;
        self.attempt(|file| std::os::unix::fs::FileExt::write_all_at(file, bytes, offset))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn is_direct(&self) -> bool {
        // Relaxed: see the store in `attempt`.
        self.is_direct.load(Ordering::Relaxed)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }
}

#[cfg(test)]
mod tests {
    use crate::files::storage::{DiskStorage, Storage};

    use super::*;

    #[test]
    fn direct_reads_see_what_buffered_reads_see() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let bytes: Vec<u8> = (0..20_001u32).map(|i| (i % 251) as u8).collect();
        let mut file = DiskStorage.create(&path, Access::Buffered).unwrap();
        file.append(&bytes).unwrap();
        file.sync().unwrap();
        for access in [Access::Buffered, Access::Direct] {
            let reader = DiskStorage.open(&path, access).unwrap();
            for (offset, len) in [(0, 1), (0, 20_001), (4095, 2), (4096, 4096), (19_999, 2), (7, 0)]
            {
                let mut buffer = vec![0; len];
                reader.read_at(offset as u64, &mut buffer).unwrap();
                assert_eq!(buffer, bytes[offset..offset + len], "{access:?} {offset} {len}");
            }
            let past_end = reader.read_at(20_000, &mut [0; 2]).unwrap_err();
            assert_eq!(past_end.kind(), io::ErrorKind::UnexpectedEof);
        }
    }

    #[test]
    fn existing_files_are_never_overwritten_by_create() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        DiskStorage.create(&path, Access::Buffered).unwrap().append(b"x").unwrap();
        assert!(DiskStorage.create(&path, Access::Buffered).is_err());
        assert!(DiskStorage.create_segment(&path, 4096).is_err());
        assert_eq!(DiskStorage.len(&path).unwrap(), 1);
    }
}
