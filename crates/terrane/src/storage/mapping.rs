//! Files mapped into memory: the one module of the engine with unsafe code.
//!
//! A mapping shares the file's pages, so a shared slice of it is sound only while nobody changes
//! the file:
//!
//! 1. This process never changes a mapped file, because the engine maps only complete tables and
//!    never writes to a table again.
//! 2. No other process of the engine changes it, because a process writes only to files that it
//!    created itself under unused names. The database may be open for writing elsewhere while this
//!    process has it open read-only; the writer may then remove the table, but the pages of a removed
//!    file stay valid while it is mapped.
//!
//! If another program truncates the file, reading the missing part raises SIGBUS and ends the
//! process. Users who cannot accept that, or whose disk fails often, choose a read mode that uses
//! the block cache.
#![allow(unsafe_code, reason = "the compiler cannot check that a mapped file does not change")]
#![allow(clippy::disallowed_types, reason = "a mapping needs a file")]

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::sync::Arc;

use memmap2::Mmap;
#[cfg(target_os = "linux")]
use memmap2::{MmapOptions, MmapRaw};

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
            return Ok(Self::of_bytes(Vec::new()));
        }
        // SAFETY: the pages do not change while they are mapped. By the contract of `Storage::map`
        // the caller maps only files that are not modified. The engine passes only tables, which
        // are changed neither by this process (invariant 1) nor by another process of the engine
        // (invariant 2).
        let map = unsafe { Mmap::map(file) }?;
        Ok(Self(Arc::new(Contents::Mapped(map))))
    }

    /// Creates a mapping of bytes that are in memory already: a `Vec<u8>`, or an `Arc<Vec<u8>>` that
    /// the mapping shares. A [`Storage`](super::Storage) outside of this crate returns such
    /// mappings.
    pub fn of_bytes(bytes: impl Into<Arc<Vec<u8>>>) -> Self {
        Self(Arc::new(Contents::Heap(bytes.into())))
    }

    /// Asks the operating system to read a range ahead. Ignores bytes outside of the file.
    pub(crate) fn will_need(&self, start: usize, len: usize) {
        #[cfg(unix)]
        if let Contents::Mapped(map) = &*self.0 {
            let len = len.min(map.len().saturating_sub(start));
            if len > 0 {
                // Only a hint: if it fails, pages are read when they are first used.
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

/// The first bytes of a file, mapped into memory for writing. The mapping has a single owner, is
/// never read, and no reference into it exists.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(super) struct WritableMapping(Arc<MmapRaw>);

/// Faults in pages of a [`WritableMapping`] for its owner.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(super) struct Populator(Arc<MmapRaw>);

#[cfg(target_os = "linux")]
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
        // SAFETY: `start <= end <= self.len()`, as just checked, so the pointer stays within the
        // mapping, which `self.0` keeps alive.
        let to = unsafe { self.0.as_mut_ptr().add(start) };
        // SAFETY: `to` is valid for `bytes.len()` bytes, because `end <= self.len()`. Nothing else
        // accesses them: no reference into the mapping exists, a `Populator` only gives advice, and
        // `&mut self` excludes other writes. For the same reason `bytes` does not overlap them.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }
}

#[cfg(target_os = "linux")]
impl Populator {
    /// Faults in the pages of a range for writing, without changing their contents.
    pub(super) fn populate(&self, offset: u64, len: u64) {
        let all = self.0.len() as u64;
        let start = offset.min(all);
        let len = len.min(all - start);
        if len > 0 {
            // Only a hint: if it fails, the first write to each page faults.
            let advice = memmap2::Advice::PopulateWrite;
            let _ = self.0.advise_range(advice, start as usize, len as usize);
        }
    }
}
