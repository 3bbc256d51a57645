//! The log of a database, for readers outside the engine.

use std::time::Duration;

use super::Engine;
use super::pipeline::{ChangeLog, Following};
use crate::base::error::Result;
use crate::base::types::SeqNo;
use crate::files::wal::{ChangeScan, Scanned};

impl Engine {
    /// Returns the next change found by a scan of the log.
    pub(crate) fn next_change(
        &self,
        scan: &mut ChangeScan,
        following: Following,
    ) -> Result<Scanned> {
        let log = ChangeLog { pipeline: &self.pipeline, following };
        let storage = &*self.context.storage;
        let scanned = scan.next(storage, &log)?;
        if !matches!(scanned, Scanned::End) || scan.position() >= scan.seen() {
            return Ok(scanned);
        }
        // The last writes are not in the log. The manifest states which of them are durable,
        // because every edit that states a sequence number follows a sync of all batches up to that
        // number. Its state is loaded before the log is scanned again.
        let Ok(state) = self.catalog.manifest_state() else { return Ok(Scanned::End) };
        let scanned = scan.next(storage, &log)?;
        if !matches!(scanned, Scanned::End) {
            return Ok(scanned);
        }
        Ok(scan.skip_used(state.last_seq).map_or(Scanned::End, Scanned::Gap))
    }

    /// Waits until a sequence number is visible, but at most for `timeout`. Returns whether it is
    /// visible.
    ///
    /// # Errors
    /// The database was closed.
    pub(crate) fn wait_visible_for(&self, seq: SeqNo, timeout: Duration) -> Result<bool> {
        let is_visible = ChangeLog::of(&self.pipeline).wait_visible_for(seq, timeout);
        self.context.health.check_open()?;
        Ok(is_visible)
    }

    /// Returns the bytes of log files that are kept only for readers of changes.
    pub(crate) fn retained_log_bytes(&self) -> u64 {
        ChangeLog::of(&self.pipeline).retained_bytes()
    }
}
