//! The notes about the manifest in the headers of log files.

use std::path::Path;

use super::segment_file_number;
use super::segment_reader::SegmentReader;
use crate::base::error::{Error, Result};
use crate::files::storage::Storage;

/// The notes about the manifest in the headers of log files.
///
/// A writer may be changing the files. A note is written after the edits that it states, so a
/// manifest that is read after the notes has at least these edits.
#[derive(Debug, Default)]
pub(crate) struct LogNotes {
    /// The database of each log file, and the manifest version in its note.
    versions: Vec<(u64, u64)>,
}

impl LogNotes {
    /// Reads the notes of all log files in a directory.
    pub(crate) fn read(storage: &dyn Storage, dir: &Path) -> Result<Self> {
        let names = storage.list(dir).map_err(|error| Error::io("list", dir, error))?;
        let mut versions = Vec::new();
        for name in names.iter().filter(|name| segment_file_number(name).is_some()) {
            match SegmentReader::open(storage, &dir.join(name)) {
                Ok(Some(reader)) => {
                    let version = reader.notes().manifest_version;
                    versions.push((reader.header().database, version));
                }
                Ok(None) => {}
                // A writer removed the file since the directory was listed.
                Err(Error::Io(failure))
                    if failure.source.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self { versions })
    }

    /// Returns the newest version that the manifest of `database` is known to have reached; 0 if
    /// there is no note.
    pub(crate) fn manifest_version(&self, database: u64) -> u64 {
        let own = self.versions.iter().filter(|(of, _)| *of == database);
        own.map(|(_, version)| *version).max().unwrap_or(0)
    }
}
