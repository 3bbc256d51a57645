//! How the result of a job affects the database.

use super::Jobs;
use crate::base::error::{Error, Result};
use crate::engine::context::JobKind;

/// The number of consecutive I/O errors, other than a full disk, after which the database fails.
const TRIES_MAX: u32 = 50;

impl Jobs {
    /// Handles the result of a job in a thread of the database: retries a failed job, or fails the
    /// database.
    pub(super) fn handle_outcome(&self, kind: JobKind, result: Result<()>, failures: &mut u32) {
        let signals = &self.context.signals;
        match result {
            Ok(()) => {
                *failures = 0;
                self.context.health.clear_failure(kind);
                signals.notify_done();
            }
            // The database is stopping, or the tree was dropped.
            Err(Error::Closed) => signals.notify_done(),
            Err(error @ (Error::DiskFull(_) | Error::Io(_))) => {
                *failures += 1;
                let is_full = matches!(error, Error::DiskFull(_));
                if !is_full && *failures > TRIES_MAX {
                    self.context.health.fail(error);
                } else {
                    self.context.health.set_failure(kind, error);
                }
                signals.notify_done();
                self.catalog.notify_stalled_writers();
                signals.rest();
            }
            // The tree has noted the damage and does not pick these tables again.
            Err(Error::Corruption(_)) if kind == JobKind::Compaction => signals.notify_done(),
            Err(error) => {
                self.context.health.fail(error);
                signals.notify_done();
                self.catalog.notify_stalled_writers();
                signals.rest();
            }
        }
    }
}
