//! Direct I/O: aligned reads and writes of whole blocks that bypass the page cache.
//!
//! Direct I/O requires aligned offsets, lengths and buffers, but the engine reads and writes ranges
//! of any alignment. The reader here reads the blocks around a range, and the appender collects
//! whole blocks. The last block of a file is padded with zeros, and the file is then truncated to
//! its length.
//!
//! The underlying file is a trait, so that the disk shares this code with the test storage, which
//! refuses unaligned requests and crashes between any two steps.

use std::io;
use std::ops::{Deref, DerefMut};
#[cfg(unix)]
use std::os::fd::BorrowedFd;

use super::{Appender, RandomReader};

/// The alignment of buffers, offsets and lengths: a page. Devices with larger blocks are rare; an
/// implementation of [`DirectFile`] falls back to buffered I/O on them.
pub(crate) const ALIGN: usize = 4096;

/// The number of bytes collected before a write. It is large because each write waits for the
/// device.
const BUFFER_BYTES: usize = 1 << 20;

/// A file that is read and written in blocks of [`ALIGN`].
pub(super) trait DirectFile: Send {
    /// Reads into the start of `buffer` and returns the length, which is shorter only at the end of
    /// the file.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes all of `bytes`.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Truncates the file to a length that need not be a multiple of [`ALIGN`].
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Makes contents and length durable.
    fn sync(&self) -> io::Result<()>;

    /// Returns true if requests bypass the page cache.
    fn is_direct(&self) -> bool;

    /// Returns the descriptor of the file, if it is one of the operating system.
    #[cfg(unix)]
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Memory aligned to [`ALIGN`].
pub(crate) struct AlignedBuffer {
    memory: Vec<u8>,
    start: usize,
}

impl AlignedBuffer {
    /// Creates a buffer of zeros.
    pub(crate) fn new(len: usize) -> Self {
        let memory = vec![0; len + ALIGN];
        let start = memory.as_ptr().align_offset(ALIGN).min(ALIGN);
        Self { memory, start }
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.memory.len() - ALIGN + self.start]
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        let end = self.memory.len() - ALIGN + self.start;
        &mut self.memory[self.start..end]
    }
}

/// Reads a file in whole blocks.
#[derive(Debug)]
pub(super) struct DirectReader<F> {
    file: F,
    len: u64,
}

impl<F> DirectReader<F> {
    /// Creates a reader of a file of `len` bytes.
    pub(super) fn new(file: F, len: u64) -> Self {
        Self { file, len }
    }
}

impl<F: DirectFile + Sync + std::fmt::Debug> RandomReader for DirectReader<F> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let skipped = (offset % ALIGN as u64) as usize;
        let wanted = skipped + buffer.len();
        let mut window = AlignedBuffer::new(wanted.next_multiple_of(ALIGN));
        let mut read = 0;
        // A read of the last block returns fewer bytes.
        while read < wanted {
            let at = offset - skipped as u64 + read as u64;
            match self.file.read_at(at, &mut window[read..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => read += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        buffer.copy_from_slice(&window[skipped..wanted]);
        Ok(())
    }

    #[cfg(unix)]
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.file.descriptor()
    }

    fn is_direct(&self) -> bool {
        self.file.is_direct()
    }
}

/// Appends to a file in whole blocks.
pub(super) struct DirectAppender<F> {
    file: F,
    buffer: AlignedBuffer,
    /// The file offset of the buffer: a multiple of [`ALIGN`].
    offset: u64,
    /// The number of bytes in the buffer.
    filled: usize,
    /// The number of bytes of the buffer that are already in the file.
    written: usize,
}

impl<F: DirectFile> DirectAppender<F> {
    /// Creates an appender to an empty file.
    pub(super) fn new(file: F) -> Self {
        let buffer = AlignedBuffer::new(BUFFER_BYTES);
        Self { file, buffer, offset: 0, filled: 0, written: 0 }
    }

    /// Writes the buffer to the file, and keeps the last partial block to complete it later.
    fn write_out(&mut self) -> io::Result<()> {
        if self.written == self.filled {
            return Ok(());
        }
        let padded = self.filled.next_multiple_of(ALIGN);
        self.buffer[self.filled..padded].fill(0);
        self.file.write_at(self.offset, &self.buffer[..padded])?;
        if padded > self.filled {
            self.file.set_len(self.offset + self.filled as u64)?;
        }
        let whole = self.filled - self.filled % ALIGN;
        self.buffer.copy_within(whole..self.filled, 0);
        self.offset += whole as u64;
        self.filled -= whole;
        self.written = self.filled;
        Ok(())
    }
}

impl<F: DirectFile> Appender for DirectAppender<F> {
    fn append(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.filled == self.buffer.len() {
                self.write_out()?;
            }
            let (now, later) = bytes.split_at(bytes.len().min(self.buffer.len() - self.filled));
            self.buffer[self.filled..self.filled + now.len()].copy_from_slice(now);
            self.filled += now.len();
            bytes = later;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_out()
    }

    fn sync(&mut self) -> io::Result<()> {
        self.write_out()?;
        self.file.sync()
    }

    fn is_direct(&self) -> bool {
        self.file.is_direct()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::files::storage::{Access, DiskStorage, MemoryStorage, Storage};

    /// Appends in chunks of many sizes, with syncs between, and reads everything back.
    fn check(storage: &dyn Storage, path: &Path) {
        let bytes: Vec<u8> = (0..2_700_001u32).map(|number| (number % 251) as u8).collect();
        let mut file = storage.create(path, Access::Direct).unwrap();
        let mut rest = &bytes[..];
        let mut length = 0;
        for chunk in [1, 0, 4095, 1, 4096, 8191, 1 << 20, 777, 3, 1_500_000, usize::MAX] {
            let (now, later) = rest.split_at(chunk.min(rest.len()));
            file.append(now).unwrap();
            (rest, length) = (later, length + now.len());
            if chunk % 3 == 1 {
                file.sync().unwrap();
                file.sync().unwrap();
                assert_eq!(storage.len(path).unwrap(), length as u64);
            }
        }
        file.flush().unwrap();
        assert_eq!(storage.len(path).unwrap(), bytes.len() as u64);
        drop(file);
        for access in [Access::Buffered, Access::Direct] {
            let reader = storage.open(path, access).unwrap();
            for offset in [0, 1, 4095, 4096, 1 << 20, 2_700_000] {
                let len = (bytes.len() - offset).min(5000);
                let mut read = vec![0; len];
                reader.read_at(offset as u64, &mut read).unwrap();
                assert_eq!(read, bytes[offset..offset + len], "{access:?} at {offset}");
            }
            assert!(reader.read_at(2_700_000, &mut [0; 2]).is_err());
        }
    }

    #[test]
    fn what_is_written_in_blocks_is_what_was_appended() {
        check(&MemoryStorage::new(1), Path::new("file"));
        let dir = tempfile::tempdir().unwrap();
        check(&DiskStorage, &dir.path().join("file"));
    }
}
