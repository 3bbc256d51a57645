//! Writes that succeed only if their condition still holds: the commits of transactions.
//!
//! A commit first tries to avoid the writer lock. If all writes that have sequence numbers are
//! visible, it finds every change; and if no other writer has reserved sequence numbers in the
//! window when it reserves its own, nothing has changed since. This attempt fails while other
//! writers are busy.
//!
//! Then a commit takes the writer lock. At that point all writes without the lock are visible, and
//! no other write takes sequence numbers before the lock is released. So if its reads would return
//! the same results now, the transaction takes effect as a whole at its sequence numbers. Earlier
//! writes that took the lock may not be inserted yet, or wait for their sync; their keys are compared
//! (`pipeline/in_flight.rs`), and a transaction that conflicts with them waits until they are visible.

use std::sync::MutexGuard;

use super::target::WriteTarget;
use super::{LoggedWrite, Write, WriteSize, Writer};
use crate::base::durability::Durability;
use crate::base::error::Result;
use crate::base::types::SeqNo;
use crate::engine::pipeline::{
    Earlier, OPERATIONS_MAX, PipelineState, UNITS_MAX, WrittenKeys, broken,
};
use crate::files::batch::Batch;
use crate::files::wal::{PreparedRecord, RecordBuffer};

/// How often a commit tries to avoid the lock.
const TRIES_IN_WINDOW: usize = 8;

/// The condition of a commit: nothing on which it depends has changed.
pub(crate) trait CommitCondition {
    /// Returns whether the condition is violated, considering all inserted writes.
    fn is_violated(&self) -> Result<bool>;

    /// Returns whether a write to these keys violates the condition.
    fn is_violated_by(&self, keys: &WrittenKeys) -> bool;
}

/// An attempt to log a write.
enum Attempt<'a> {
    Logged(LoggedWrite<'a>),
    /// The condition of the write is violated.
    Conflict,
    NeedsLock,
}

/// The outcome of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Commit {
    /// The write is visible and has the requested durability.
    Done,
    /// Something on which it depends has changed. Nothing was written.
    Conflict,
}

impl Writer {
    /// Performs a write unless its condition is violated.
    pub(crate) fn commit(
        &self,
        batch: &Batch,
        durability: Durability,
        condition: &dyn CommitCondition,
    ) -> Result<Commit> {
        let write = Write::Batch(batch);
        self.check_admitted(&write)?;
        let (operations, user_bytes) = write.check()?;
        let mut target = WriteTarget::new(write);
        let size = WriteSize { operations, user_bytes };
        self.pointers.provide_names(&target, user_bytes);
        let _large = self.context.memtables.begin_large_write(user_bytes);
        self.slow_down(&mut target, user_bytes)?;
        let logged = match self.log_between(&write, &mut target, size, durability, condition)? {
            // Checked first without the lock, where most conflicts are found.
            Attempt::NeedsLock if condition.is_violated()? => {
                self.wait_for_overlapping(condition)?;
                Attempt::Conflict
            }
            Attempt::NeedsLock => {
                self.log_with_lock_unless_changed(&write, &mut target, size, durability, condition)?
            }
            attempt => attempt,
        };
        match logged {
            Attempt::Logged(logged) => {
                self.complete(logged, &target, size, durability).map(|()| Commit::Done)
            }
            Attempt::Conflict | Attempt::NeedsLock => Ok(Commit::Conflict),
        }
    }

    /// Logs a write in the window, directly after visible writes. Needs the lock if other writers
    /// intervene, or if the window has no room for the write.
    fn log_between(
        &self,
        write: &Write<'_>,
        target: &mut WriteTarget<'_>,
        size: WriteSize,
        durability: Durability,
        condition: &dyn CommitCondition,
    ) -> Result<Attempt<'_>> {
        if self.syncs_itself(durability) || size.operations > OPERATIONS_MAX {
            return Ok(Attempt::NeedsLock);
        }
        let window = self.pipeline.window();
        let Some(window) = &*window else { return Ok(Attempt::NeedsLock) };
        let is_logged = window.is_logged(durability);
        let record = if is_logged { Some(write.record()?) } else { None };
        if record.as_ref().is_some_and(|record| record.units() > UNITS_MAX) {
            return Ok(Attempt::NeedsLock);
        }
        // As in `write_in_window`, everything below is loaded after the window.
        self.context.health.check_writable()?;
        if is_logged && !window.has_log() || !self.has_space(target, size) {
            return Ok(Attempt::NeedsLock);
        }
        self.note_age(target);
        let mut buffer;
        let mut record = match &record {
            Some(record) => {
                buffer = RecordBuffer::new();
                Some(PreparedRecord::of(record, &mut buffer))
            }
            None => None,
        };
        for _ in 0..TRIES_IN_WINDOW {
            let Some(before) = self.pipeline.reserved_if_visible(window) else {
                std::hint::spin_loop();
                continue;
            };
            if condition.is_violated()? {
                return Ok(Attempt::Conflict);
            }
            let pipeline = &self.pipeline;
            let pending = pipeline.reserve_after(window, before, size.operations, record.as_ref());
            if let Some(pending) = pending {
                let begin = self.place(window, target, (&pending, before), record.as_mut())?;
                let logged = LoggedWrite { pending, begin, end: None, requests: None };
                return Ok(Attempt::Logged(logged));
            }
        }
        Ok(Attempt::NeedsLock)
    }

    fn log_with_lock_unless_changed(
        &self,
        write: &Write<'_>,
        target: &mut WriteTarget<'_>,
        size: WriteSize,
        durability: Durability,
        condition: &dyn CommitCondition,
    ) -> Result<Attempt<'_>> {
        loop {
            // Waits for space first, because that may release the lock.
            let bytes = (size.user_bytes, size.user_bytes);
            let state = self.wait_for_space(self.pipeline.lock(), target, bytes)?;
            let mut state: MutexGuard<'_, PipelineState> = state;
            match self.pipeline.earlier_writes(&mut state, |keys| condition.is_violated_by(keys)) {
                Earlier::Apart if !condition.is_violated()? => {
                    let logged = self.log_holding(state, write, target, size, durability)?;
                    return Ok(Attempt::Logged(logged));
                }
                Earlier::Apart => return Ok(Attempt::Conflict),
                // The transaction would conflict again until the write is visible.
                Earlier::Overlap(last) => {
                    drop(state);
                    self.wait_for_earlier(last)?;
                    return Ok(Attempt::Conflict);
                }
                // Such writes began before the transaction, so this happens only once.
                Earlier::Unknown(last) => {
                    drop(state);
                    self.wait_for_earlier(last)?;
                }
            }
        }
    }

    /// Waits for writes that violate the condition and are not visible yet: they are inserted before
    /// their sync, and the transaction would conflict with them again.
    fn wait_for_overlapping(&self, condition: &dyn CommitCondition) -> Result<()> {
        // While a window is open, no write waits for a sync.
        if self.pipeline.window().is_some() {
            return Ok(());
        }
        let mut state = self.pipeline.lock();
        let earlier =
            self.pipeline.earlier_writes(&mut state, |keys| condition.is_violated_by(keys));
        drop(state);
        match earlier {
            Earlier::Apart => Ok(()),
            Earlier::Overlap(last) | Earlier::Unknown(last) => self.wait_for_earlier(last),
        }
    }

    fn wait_for_earlier(&self, last: SeqNo) -> Result<()> {
        if self.pipeline.wait_visible(last) { Ok(()) } else { Err(broken(&self.context)) }
    }
}
