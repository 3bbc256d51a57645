//! The values of all options as the engine reads them.

use super::{Settings, process_files_max};
use crate::base::error::{Error, Result};
use crate::files::wal::LogRetention;

/// The bytes of changes to keep are divided into at least this many segments, because a whole segment
/// is freed at a time.
const KEPT_SEGMENTS_MIN: u64 = 8;

/// The number of compactions that may have begun at a time, however few threads they may use: further
/// ones run while those before them are paused at the gate.
const COMPACTIONS_BEGUN_MIN: usize = 8;

/// The shortest segment.
const SEGMENT_BYTES_MIN: u64 = 64 << 10;

impl Settings {
    pub(crate) fn memory_budget_bytes(&self) -> u64 {
        self.memory_budget.0
    }

    /// The number of compactions that may have begun at a time, if memory suffices.
    pub(crate) fn compactions_max(&self) -> usize {
        self.compaction_threads.max(COMPACTIONS_BEGUN_MIN)
    }

    /// The maximum size of the cache.
    pub(crate) fn cache_bytes_max(&self) -> u64 {
        if self.cache_bytes.0 == 0 { u64::MAX } else { self.cache_bytes.0 }
    }

    /// The number of table files that may stay open: the option, but at most half of the limit of the
    /// process, so that it cannot starve flushes and the application.
    pub(crate) fn open_files_max(&self) -> usize {
        process_files_max().map_or(self.open_files, |max| self.open_files.min((max / 2).max(1)))
    }

    pub(crate) fn sync_bytes(&self) -> u64 {
        self.sync_bytes.0
    }

    /// The delete persistence time in microseconds.
    pub(crate) fn delete_persistence_micros(&self) -> Option<u64> {
        self.delete_persistence.0
    }

    /// The age at which a tombstone is due: 90 % of the delete persistence time, which leaves a tenth
    /// for the compactions.
    pub(crate) fn tombstone_age_micros(&self) -> Option<u64> {
        self.delete_persistence.0.map(|micros| micros - micros / 10)
    }

    /// The age at which a memtable with deletes is flushed: a tenth of the delete persistence time.
    pub(crate) fn memtable_age_micros(&self) -> Option<u64> {
        self.delete_persistence.0.map(|micros| micros / 10)
    }

    /// The length of a segment of the log.
    pub(crate) fn log_segment_bytes(&self) -> u64 {
        let kept = self.keep_changes.bytes_max() / KEPT_SEGMENTS_MIN;
        self.log_segment_bytes.0.min(kept.max(SEGMENT_BYTES_MIN))
    }

    /// How much of the log is kept once no tree needs it; `None` if it is freed at once.
    pub(crate) fn log_retention(&self) -> Option<LogRetention> {
        self.keep_changes.is_some().then(|| LogRetention {
            bytes_max: self.keep_changes.bytes_max(),
            age_max_micros: self.keep_changes.age_max_micros(),
        })
    }

    /// Refuses options that contradict each other.
    pub(crate) fn check_together(&self) -> Result<()> {
        if self.keep_changes.is_some() && self.delete_persistence.0.is_some() {
            let found = format!("'{}', with delete_persistence", self.keep_changes);
            let expected = "`none`, because the log would keep deleted values for longer";
            return Err(Error::invalid("keep_changes", found, expected));
        }
        Ok(())
    }

    pub(crate) fn log_bytes_max(&self) -> u64 {
        self.log_bytes_max.0
    }
}
