//! What the end of a job means for the database.

use crate::engine::{Engine, JobKind};
use crate::error::{Error, Result};

/// Errors in a row after which work that fails for a reason of the operating system, other than a
/// full disk, is given up.
const TRIES_MAX: u32 = 50;

impl Engine {
    /// What the outcome of a job means for the database.
    pub(crate) fn judge(&self, kind: JobKind, result: Result<()>, failures: &mut u32) {
        match result {
            Ok(()) => {
                *failures = 0;
                self.health.end_trouble(kind);
                self.work.tell_done();
            }
            // Told to stop, or the tree is gone.
            Err(Error::Closed) => self.work.tell_done(),
            Err(error @ (Error::DiskFull(_) | Error::Io(_))) => {
                *failures += 1;
                let is_full = matches!(error, Error::DiskFull(_));
                if !is_full && *failures > TRIES_MAX {
                    self.health.fail(error);
                } else {
                    self.health.set_trouble(kind, error);
                }
                self.work.tell_done();
                self.tell_room();
                self.work.rest();
            }
            // The tables are left alone, and the tree says why; the rest goes on.
            Err(Error::Corruption(_)) if kind == JobKind::Compaction => self.work.tell_done(),
            Err(error) => {
                self.health.fail(error);
                self.work.tell_done();
                self.tell_room();
                self.work.rest();
            }
        }
    }
}
