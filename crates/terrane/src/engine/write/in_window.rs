//! Writes that take no lock, because they reserve their sequence numbers and their place in the log
//! in the open window.

use std::sync::Arc;

use super::target::WriteTarget;
use super::{LogRequests, LoggedWrite, Write, WriteSize, Writer};
use crate::base::durability::Durability;
use crate::base::error::Result;
use crate::engine::pipeline::{
    OPERATIONS_MAX, PendingWrite, Pipeline, Reserved, UNITS_MAX, Window,
};
use crate::files::wal::PreparedRecord;

/// The outcome of an attempt to write without the lock.
pub(super) enum WindowOutcome<'a> {
    Logged(LoggedWrite<'a>),
    /// No window is open.
    Closed,
    /// This window is full or closed. A newer one may have room.
    Full(Arc<Window>),
    /// The write must take the lock, because a tree may have no space, or no window has room for
    /// the write.
    NeedsLock,
}

impl Writer {
    /// Assigns sequence numbers to a write and places its record in the log.
    ///
    /// # Errors
    /// The database accepts no writes, or the record could not be written.
    #[inline]
    pub(super) fn log_in_window(
        &self,
        write: &Write<'_>,
        target: &mut WriteTarget<'_>,
        size: WriteSize,
        durability: Durability,
    ) -> Result<WindowOutcome<'_>> {
        if self.syncs_itself(durability) || size.operations > OPERATIONS_MAX {
            return Ok(WindowOutcome::NeedsLock);
        }
        let window = self.pipeline.window();
        let Some(window) = &*window else { return Ok(WindowOutcome::Closed) };
        let is_logged = window.is_logged(durability);
        let record = if is_logged { Some(write.record()?) } else { None };
        if record.as_ref().is_some_and(|record| record.units() > UNITS_MAX) {
            return Ok(WindowOutcome::NeedsLock);
        }
        // Everything below is loaded after the window, so it stays the same until the reservation:
        // see `Window`. Closing marks the database closed before it closes the window to flush, so
        // the flush includes every write that passes this check.
        self.context.health.check_writable()?;
        let has_log = window.has_log() || !is_logged;
        if !has_log || !self.has_space(target, size) {
            return Ok(WindowOutcome::NeedsLock);
        }
        self.note_age(target);
        let mut record = record.as_ref().map(PreparedRecord::of);
        Ok(match self.reserve(window, target, size, record.as_mut())? {
            Some(logged) => WindowOutcome::Logged(logged),
            None => WindowOutcome::Full(Arc::clone(window)),
        })
    }

    #[inline]
    fn reserve(
        &self,
        window: &Window,
        target: &WriteTarget<'_>,
        size: WriteSize,
        record: Option<&mut PreparedRecord<'_>>,
    ) -> Result<Option<LoggedWrite<'_>>> {
        let reserved = self.pipeline.reserve(window, size.operations, record.as_deref());
        let Some((pending, before)) = reserved else { return Ok(None) };
        self.place(window, target, (pending, before), record).map(Some)
    }

    /// Places the record of a write that has reserved its part of the window.
    #[inline]
    pub(super) fn place<'a>(
        &'a self,
        window: &Window,
        target: &WriteTarget<'_>,
        (pending, before): (PendingWrite<'a>, Reserved),
        record: Option<&mut PreparedRecord<'_>>,
    ) -> Result<LoggedWrite<'a>> {
        let (first, last) = pending.seqs();
        target.set_last_seq(last);
        let mut begin = None;
        if let Some(record) = record {
            // The failure is noted before `pending` is dropped, which reports it.
            let placed = Pipeline::place(window, before, first, record);
            begin = placed.inspect_err(|error| self.context.health.note_failure(error.clone()))?;
            // The memory that was prefetched earlier has arrived by now.
            target.prefetch_version();
        }
        Ok(LoggedWrite { pending, first, begin, end: None, requests: LogRequests::default() })
    }
}
