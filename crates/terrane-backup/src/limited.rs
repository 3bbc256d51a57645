//! Files that are written up to the limit of the process for the size of a file.
//!
//! A write behind that limit raises SIGXFSZ, which ends a process that does not handle it; see
//! [`check_file_size`].

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use terrane::storage::check_file_size;

/// A new file that is written from front to back.
pub(crate) struct LimitedFile {
    file: File,
    bytes: u64,
}

impl LimitedFile {
    /// Creates a file, or empties the one of this name.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::create(path)?, bytes: 0 })
    }

    /// Creates a file. Fails if there is one of this name.
    pub(crate) fn create_new(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::create_new(path)?, bytes: 0 })
    }

    /// Makes the contents durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

impl Write for LimitedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        check_file_size(self.bytes.saturating_add(bytes.len() as u64))?;
        let written = self.file.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
