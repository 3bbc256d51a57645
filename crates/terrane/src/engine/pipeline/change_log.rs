//! The log as seen by readers of changes.
//!
//! A reader takes no lock that a writer holds for long: it loads the position that writers have
//! reached, and takes the writer lock, without closing the window, only to find a segment. Waiting
//! readers sleep in the commit queue, like writers that wait for their predecessors, so a write
//! wakes no thread unless one waits for it.

use std::time::Duration;

use super::Pipeline;
use crate::base::error::{Error, Result};
use crate::base::types::{Lsn, SeqNo};
use crate::files::wal::{LogInUse, LogPart, LogWriter, ReadLimit};

/// Which batches a reader of changes follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Following {
    /// Batches that survive a power failure. The reader syncs the log if newer batches are not
    /// durable.
    Durable,
    /// All visible batches.
    Visible,
}

/// The log of a pipeline.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChangeLog<'a> {
    pub(crate) pipeline: &'a Pipeline,
    pub(crate) following: Following,
}

impl<'a> ChangeLog<'a> {
    /// Returns the log as seen by a reader of durable changes.
    pub(crate) fn of(pipeline: &'a Pipeline) -> Self {
        Self { pipeline, following: Following::Durable }
    }

    /// Waits until a sequence number is visible, but at most for `timeout` and while the database
    /// is open. Returns whether the number is visible.
    pub(crate) fn wait_visible_for(&self, seq: SeqNo, timeout: Duration) -> bool {
        let Pipeline { commits, context, .. } = self.pipeline;
        commits.wait_visible_for(seq, timeout, || context.health.check_open().is_err())
    }

    /// Returns the bytes of log files that are kept only for readers of changes.
    pub(crate) fn retained_bytes(&self) -> u64 {
        self.with_log(LogWriter::retained_bytes).unwrap_or(0)
    }

    /// Returns the time until a segment has been kept long enough.
    pub(crate) fn time_to_expiry(&self) -> Option<Duration> {
        let left = self.with_log(LogWriter::retention_micros_left).ok()?;
        left.map(Duration::from_micros)
    }

    fn with_log<T>(&self, look: impl FnOnce(&LogWriter) -> T) -> Result<T> {
        let state = self.pipeline.lock_keeping_window();
        state.log.as_ref().map(look).ok_or(Error::Closed)
    }
}

impl LogInUse for ChangeLog<'_> {
    fn parts(&self) -> Result<Vec<LogPart>> {
        self.with_log(LogWriter::parts)
    }

    fn part_from(&self, segment: u64) -> Result<Option<LogPart>> {
        self.with_log(|log| log.part_from(segment))
    }

    fn limit(&self, at: Lsn) -> Result<ReadLimit> {
        let Pipeline { commits, log_sync, context, .. } = self.pipeline;
        // Without a sync, or after a failed one, a visible write may be lost.
        context.health.check_synced()?;
        let visible = commits.visible_in_order();
        let complete = self.complete();
        if self.following == Following::Visible {
            return Ok(ReadLimit { visible, upto: complete });
        }
        if complete > at && log_sync.synced() <= at {
            let synced = self.pipeline.sync_to(complete);
            synced.inspect_err(|error| context.health.fail(error.clone()))?;
        }
        Ok(ReadLimit { visible, upto: complete.min(log_sync.synced()) })
    }

    fn complete(&self) -> Lsn {
        // Loaded after the visible number, so the records of all visible writes are before it.
        self.pipeline.log_sync.written().max(Lsn(self.pipeline.commits.log_end()))
    }
}
