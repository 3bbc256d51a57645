//! Writes that happen only if what they depend on has not changed: the commits of transactions.
//!
//! A commit takes the writer lock. All writes without the lock are visible then, and no other write takes
//! sequence numbers before the lock is released. So if its reads would return the same now, the
//! transaction happens as a whole at its sequence numbers. Earlier writes that took the lock may still
//! wait for their sync; their keys are compared instead (`pipeline/in_flight.rs`).

use std::sync::MutexGuard;

use super::target::WriteTarget;
use super::{LoggedWrite, Write, WriteSize, Writer};
use crate::batch::Batch;
use crate::durability::Durability;
use crate::engine::pipeline::{Earlier, PipelineState, WrittenKeys, write_panicked};
use crate::error::Result;

/// What a commit depends on.
pub(crate) trait Basis {
    /// Returns whether it has changed, counting all writes that are inserted.
    fn is_changed(&self) -> Result<bool>;

    /// Returns whether a write of these keys changes it.
    fn concerns(&self, keys: &WrittenKeys) -> bool;
}

/// The outcome of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Commit {
    /// The write is visible and has the requested durability.
    Done,
    /// What it depends on has changed. Nothing was written.
    Conflict,
}

impl Writer {
    /// Performs a write unless its basis has changed.
    pub(crate) fn commit(
        &self,
        batch: &Batch,
        durability: Durability,
        basis: &dyn Basis,
    ) -> Result<Commit> {
        self.context.health.check_writable()?;
        let write = Write::Batch(batch);
        let (operations, user_bytes) = write.check()?;
        // Most conflicts are found here, without the lock.
        if basis.is_changed()? {
            return Ok(Commit::Conflict);
        }
        let mut target = WriteTarget::new(write);
        let size = WriteSize { operations, user_bytes };
        self.slow_down(&mut target, user_bytes)?;
        match self.log_unless_changed(&write, &mut target, size, durability, basis)? {
            Some(logged) => self.complete(logged, &target, size, durability).map(|()| Commit::Done),
            None => Ok(Commit::Conflict),
        }
    }

    fn log_unless_changed(
        &self,
        write: &Write<'_>,
        target: &mut WriteTarget<'_>,
        size: WriteSize,
        durability: Durability,
        basis: &dyn Basis,
    ) -> Result<Option<LoggedWrite<'_>>> {
        loop {
            // Waits for space first, because that may release the lock.
            let state = self.wait_for_space(self.pipeline.lock(), target, size.user_bytes)?;
            let mut state: MutexGuard<'_, PipelineState> = state;
            match self.pipeline.earlier_writes(&mut state, |keys| basis.concerns(keys)) {
                Earlier::Apart if !basis.is_changed()? => {
                    let logged = self.log_holding(state, write, target, size, durability)?;
                    return Ok(Some(logged));
                }
                Earlier::Apart | Earlier::Overlap => return Ok(None),
                Earlier::Unknown(last) => {
                    // Such writes began before the transaction, so this happens once.
                    drop(state);
                    if !self.pipeline.wait_visible(last) {
                        return Err(write_panicked());
                    }
                }
            }
        }
    }
}
