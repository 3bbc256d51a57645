//! Tells a writer whether a reader is opening the database, and may therefore need files that the
//! writer no longer needs.
//!
//! A reader holds a shared lock while it opens the database. It takes the lock before it reads the
//! manifest. Therefore, if the writer finds no lock and then removes a file, no later reader reads
//! a manifest that lists the file.
//!
//! The writer's patience is bounded, because a suspended reader would otherwise fill the disk.

use std::sync::{Mutex, PoisonError};

use super::LockProbe;

/// How long a writer keeps files while readers open the database without a gap between them, in
/// microseconds.
const PATIENCE_MICROS: u64 = 10_000_000;

/// The readers that are opening the database; without a probe, none.
#[derive(Debug, Default)]
pub(crate) struct OpeningReaders {
    probe: Option<Box<dyn LockProbe>>,
    /// When a probe first found a reader after the last probe without one, in microseconds since the
    /// Unix epoch.
    since_micros: Mutex<Option<u64>>,
}

impl OpeningReaders {
    pub(crate) fn new(probe: Option<Box<dyn LockProbe>>) -> Self {
        Self { probe, since_micros: Mutex::default() }
    }

    /// Returns true if a reader may need files that the writer does not need.
    pub(crate) fn need_files(&self, now_micros: u64) -> bool {
        let Some(probe) = &self.probe else { return false };
        let mut since = self.since_micros.lock().unwrap_or_else(PoisonError::into_inner);
        if !probe.is_locked().unwrap_or(false) {
            *since = None;
            return false;
        }
        // The clock may have gone backwards.
        let began = since.map_or(now_micros, |began| began.min(now_micros));
        *since = Some(began);
        now_micros - began < PATIENCE_MICROS
    }

    /// Returns true if the last probe found a reader.
    pub(crate) fn were_found(&self) -> bool {
        self.since_micros.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::files::storage::{DiskStorage, MemoryStorage, Storage};

    #[test]
    fn files_are_kept_while_a_reader_opens_and_not_for_a_stopped_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("READERS");
        let missing = DiskStorage.lock_shared(&path).unwrap_err();
        assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
        for storage in [&DiskStorage as &dyn Storage, &MemoryStorage::new(1)] {
            let readers = OpeningReaders::new(storage.probe_lock(&path).ok());
            assert!(!readers.need_files(7));
            let (one, other) =
                (storage.lock_shared(&path).unwrap(), storage.lock_shared(&path).unwrap());
            assert!(readers.need_files(8));
            drop(one);
            assert!(readers.need_files(9) && readers.were_found());
            drop(other);
            assert!(!readers.need_files(10) && !readers.were_found());
            let stopped = storage.lock_shared(&path).unwrap();
            assert!(readers.need_files(1_000));
            // The clock is set back.
            assert!(readers.need_files(500));
            assert!(readers.need_files(500 + PATIENCE_MICROS - 1));
            assert!(!readers.need_files(500 + PATIENCE_MICROS));
            drop(stopped);
            assert!(!readers.need_files(u64::MAX));
            let _another = storage.lock_shared(&path).unwrap();
            assert!(readers.need_files(u64::MAX));
        }
        assert!(!OpeningReaders::default().need_files(0));
        assert!(storage_lists_the_lock_file(dir.path()));
    }

    fn storage_lists_the_lock_file(dir: &Path) -> bool {
        DiskStorage.list(dir).unwrap() == ["READERS"]
    }
}
