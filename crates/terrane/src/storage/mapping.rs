//! Files mapped into memory: the one module of the engine with unsafe code.
//!
//! A mapping shows the file as it is, also when another process changes it. Rust's rules for
//! shared slices hold as long as nobody does: tables are never written again once they are
//! complete, and a database is locked against other writers. A file that someone cuts short all
//! the same makes the operating system end the process when the missing part is read; who cannot
//! accept that, or whose disk fails often, reads through the cache instead of mapping.
#![allow(unsafe_code, reason = "mapping a file cannot be checked by the compiler")]
#![allow(clippy::disallowed_types, reason = "what is mapped is a file")]

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::sync::Arc;

use memmap2::{Mmap, MmapOptions, MmapRaw};

/// The contents of a file, in memory.
#[derive(Clone)]
pub struct Mapping(Arc<Contents>);

enum Contents {
    Mapped(Mmap),
    Heap(Arc<Vec<u8>>),
}

impl Mapping {
    /// Maps all of a file.
    pub(super) fn of_file(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() == 0 {
            return Ok(Self::of_bytes(Arc::default()));
        }
        // SAFETY: the engine maps only files that are complete and never written again, in a
        // directory that it has locked. See the module's words on other processes.
        let map = unsafe { Mmap::map(file) }?;
        Ok(Self(Arc::new(Contents::Mapped(map))))
    }

    /// Bytes that are in memory already.
    pub(super) fn of_bytes(bytes: Arc<Vec<u8>>) -> Self {
        Self(Arc::new(Contents::Heap(bytes)))
    }

    /// Has the operating system read a part soon; what lies outside of the file is left out.
    pub(crate) fn will_need(&self, start: usize, len: usize) {
        #[cfg(unix)]
        if let Contents::Mapped(map) = &*self.0 {
            let len = len.min(map.len().saturating_sub(start));
            if len > 0 {
                // A hint: without it, what is needed is read when it is.
                let _ = map.advise_range(memmap2::Advice::WillNeed, start, len);
            }
        }
        #[cfg(not(unix))]
        let _ = (start, len);
    }
}

impl Deref for Mapping {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &*self.0 {
            Contents::Mapped(map) => map,
            Contents::Heap(bytes) => bytes,
        }
    }
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapping({} bytes)", self.len())
    }
}

/// The first bytes of a file, mapped to be written by its one owner, and not to be read.
#[derive(Debug)]
pub(super) struct WritableMapping(Arc<MmapRaw>);

/// Readies parts of a [`WritableMapping`] for its owner.
#[derive(Debug)]
pub(super) struct Populator(Arc<MmapRaw>);

impl WritableMapping {
    /// Maps the first `len` bytes of a file.
    pub(super) fn of_file(file: &File, len: u64) -> io::Result<Self> {
        let len = usize::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
        Ok(Self(Arc::new(MmapOptions::new().len(len).map_raw(file)?)))
    }

    pub(super) fn populator(&self) -> Populator {
        Populator(Arc::clone(&self.0))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Copies `bytes` to `offset`.
    ///
    /// # Errors
    /// The range is not within the mapping.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let outside = || io::Error::from(io::ErrorKind::InvalidInput);
        let start = usize::try_from(offset).map_err(|_| outside())?;
        let end = start.checked_add(bytes.len()).ok_or_else(outside)?;
        if end > self.len() {
            return Err(outside());
        }
        // SAFETY: within the mapping.
        let to = unsafe { self.0.as_mut_ptr().add(start) };
        // SAFETY: the range was checked; no reference to it is ever made, and only the owner
        // writes, who is borrowed.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }
}

impl Populator {
    /// Has the pages of a part there, ready to be written; their contents stay as they are.
    pub(super) fn populate(&self, offset: u64, len: u64) {
        #[cfg(target_os = "linux")]
        {
            let all = self.0.len() as u64;
            let start = offset.min(all);
            let len = len.min(all - start);
            if len > 0 {
                // A hint: without it, each page is made ready when it is first written.
                let advice = memmap2::Advice::PopulateWrite;
                let _ = self.0.advise_range(advice, start as usize, len as usize);
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (offset, len);
    }
}
