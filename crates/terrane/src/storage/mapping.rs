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

use memmap2::{Mmap, MmapMut, MmapOptions};

/// The contents of a file, in memory.
#[derive(Clone)]
pub struct Mapping(Arc<Contents>);

enum Contents {
    Mapped(Mmap),
    Heap(Vec<u8>),
}

impl Mapping {
    /// Maps all of a file.
    pub(super) fn of_file(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() == 0 {
            return Ok(Self::of_bytes(Vec::new()));
        }
        // SAFETY: the engine maps only files that are complete and never written again, in a
        // directory that it has locked. See the module's words on other processes.
        let map = unsafe { Mmap::map(file) }?;
        Ok(Self(Arc::new(Contents::Mapped(map))))
    }

    /// Bytes that are in memory already.
    pub(super) fn of_bytes(bytes: Vec<u8>) -> Self {
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

/// A writable mapping of the first `len` bytes of a file.
pub(super) fn map_writable(file: &File, len: u64) -> io::Result<MmapMut> {
    let len = usize::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
    // SAFETY: the only slice of this mapping is the one that its owner borrows to write; other
    // openers of the log file read it by system calls.
    unsafe { MmapOptions::new().len(len).map_mut(file) }
}
