//! The segments of the log by position, for threads without the lock of the log.
//!
//! A memtable may refer to large values in the log instead of copying them. The writer that inserts
//! such a value has released the lock of the log, and needs the file that contains its record.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::format::HEADER_BYTES;
use crate::base::types::Lsn;
use crate::files::storage::{Access, RandomReader, Storage};

/// The segments that this opening has begun and not freed, oldest first.
#[derive(Debug, Default)]
pub(crate) struct SegmentDirectory(Mutex<Vec<Listed>>);

#[derive(Debug)]
struct Listed {
    segment: SegmentPlace,
    is_kept: bool,
}

/// A file of the log.
#[derive(Debug, Clone)]
pub(crate) struct SegmentPlace {
    pub(crate) path: Arc<Path>,
    /// The position of the first record.
    base: Lsn,
    /// The file, opened once for all trees that have values in it.
    reader: Arc<OnceLock<Arc<dyn RandomReader>>>,
}

impl SegmentPlace {
    /// Returns the file, for reading while it is written.
    pub(crate) fn open(&self, storage: &dyn Storage) -> io::Result<Arc<dyn RandomReader>> {
        if let Some(reader) = self.reader.get() {
            return Ok(Arc::clone(reader));
        }
        let opened = storage.open(&self.path, Access::Buffered)?;
        Ok(Arc::clone(self.reader.get_or_init(|| opened)))
    }

    /// Returns the offset in the file of a position in the log.
    pub(crate) fn offset_of(&self, at: Lsn) -> u64 {
        HEADER_BYTES + at.0.saturating_sub(self.base.0)
    }
}

impl SegmentDirectory {
    fn lock(&self) -> MutexGuard<'_, Vec<Listed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a segment, in which the previous one ends.
    pub(super) fn begin(&self, path: &Path, base: Lsn) {
        let segment = SegmentPlace { path: path.into(), base, reader: Arc::default() };
        self.lock().push(Listed { segment, is_kept: false });
    }

    /// Removes a segment that is freed. Returns true if its file must not be reused.
    pub(super) fn end(&self, path: &Path) -> bool {
        let mut listed = self.lock();
        let at = listed.iter().position(|one| *one.segment.path == *path);
        at.is_some_and(|at| listed.remove(at).is_kept)
    }

    /// Returns the segment with a record that no memtable has flushed yet. From now on its file is not
    /// reused when the segment is freed, so whoever has it open can read the record.
    pub(crate) fn keep(&self, at: Lsn) -> Option<SegmentPlace> {
        let mut listed = self.lock();
        let one = listed.iter_mut().rev().find(|one| one.segment.base <= at)?;
        one.is_kept = true;
        Some(one.segment.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_belongs_to_the_last_segment_that_begins_before_it() {
        let directory = SegmentDirectory::default();
        assert!(directory.keep(Lsn(7)).is_none());
        for (name, base) in [("1.log", 0), ("2.log", 100), ("3.log", 200)] {
            directory.begin(Path::new(name), Lsn(base));
        }
        for (at, name, within) in [(0, "1.log", 0), (199, "2.log", 99), (1000, "3.log", 800)] {
            let found = directory.keep(Lsn(at)).unwrap();
            assert_eq!(
                (&*found.path, found.offset_of(Lsn(at))),
                (Path::new(name), HEADER_BYTES + within)
            );
        }
        directory.begin(Path::new("4.log"), Lsn(2000));
        let ended: Vec<bool> =
            ["1.log", "2.log", "4.log", "5.log"].map(|name| directory.end(Path::new(name))).into();
        assert_eq!(ended, [true, true, false, false]);
    }
}
