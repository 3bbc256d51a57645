//! Writes that happen only if what they depend on has not changed: the commits of transactions.
//!
//! A commit first tries to do without the writer lock. If all writes that have sequence numbers are
//! visible, it finds every change; and if nobody has reserved sequence numbers in the window when it
//! reserves its own, nothing has changed since. While other writers are busy that fails.
//!
//! Then a commit takes the writer lock. All writes without the lock are visible then, and no other write takes
//! sequence numbers before the lock is released. So if its reads would return the same now, the
//! transaction happens as a whole at its sequence numbers. Earlier writes that took the lock may still
//! wait for their sync; their keys are compared instead (`pipeline/in_flight.rs`).

use std::sync::MutexGuard;

use super::target::WriteTarget;
use super::{LoggedWrite, Write, WriteSize, Writer};
use crate::batch::Batch;
use crate::durability::Durability;
use crate::engine::pipeline::{
    Earlier, OPERATIONS_MAX, PipelineState, UNITS_MAX, WrittenKeys, write_panicked,
};
use crate::error::Result;
use crate::wal::PreparedRecord;

/// How often a commit tries to do without the lock.
const TRIES_IN_WINDOW: usize = 8;

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
        // Most conflicts are found here, before the log is involved.
        if basis.is_changed()? {
            return Ok(Commit::Conflict);
        }
        let mut target = WriteTarget::new(write);
        let size = WriteSize { operations, user_bytes };
        self.slow_down(&mut target, user_bytes)?;
        let logged = match self.log_between(&write, &mut target, size, durability, basis)? {
            None => self.log_unless_changed(&write, &mut target, size, durability, basis)?,
            logged => logged,
        };
        match logged {
            Some(logged) => self.complete(logged, &target, size, durability).map(|()| Commit::Done),
            None => Ok(Commit::Conflict),
        }
    }

    /// Logs a write in the window, right after writes that are visible. Returns `None` if other writers
    /// come between, or if the write needs the lock.
    fn log_between(
        &self,
        write: &Write<'_>,
        target: &mut WriteTarget<'_>,
        size: WriteSize,
        durability: Durability,
        basis: &dyn Basis,
    ) -> Result<Option<LoggedWrite<'_>>> {
        if self.syncs_itself(durability) || size.operations > OPERATIONS_MAX {
            return Ok(None);
        }
        let is_logged = durability != Durability::None;
        let record = if is_logged { Some(write.record()?) } else { None };
        if record.as_ref().is_some_and(|record| record.units() > UNITS_MAX) {
            return Ok(None);
        }
        let window = self.pipeline.window();
        let Some(window) = &*window else { return Ok(None) };
        // As in `log_in_window`, everything below is loaded after the window.
        self.context.health.check_writable()?;
        if is_logged && !window.is_logged() || !self.has_space(target, size) {
            return Ok(None);
        }
        self.record_age(target);
        let mut record = record.as_ref().map(PreparedRecord::of);
        for _ in 0..TRIES_IN_WINDOW {
            let Some(before) = self.pipeline.reserved_if_visible(window) else {
                std::hint::spin_loop();
                continue;
            };
            if basis.is_changed()? {
                // The caller finds the same with the lock.
                return Ok(None);
            }
            let pipeline = &self.pipeline;
            let pending = pipeline.reserve_after(window, before, size.operations, record.as_ref());
            if let Some(pending) = pending {
                return self.place(window, target, (pending, before), record.as_mut()).map(Some);
            }
        }
        Ok(None)
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
