//! Writes that take no lock, because they reserve their sequence numbers and their place in the log
//! in the open window.

use std::sync::Arc;

use super::target::WriteTarget;
use super::{Write, WriteSize, Writer};
use crate::base::durability::Durability;
use crate::base::error::Result;
use crate::base::types::Lsn;
use crate::engine::pipeline::{
    OPERATIONS_MAX, PendingWrite, Pipeline, Reserved, UNITS_MAX, Window,
};
use crate::files::wal::{PreparedRecord, RecordBuffer};

/// The outcome of an attempt to write without the lock.
pub(super) enum WindowOutcome {
    /// The write is visible.
    Done,
    /// No window is open.
    Closed,
    /// This window is full or closed. A newer one may have room.
    Full(Arc<Window>),
    /// The write must take the lock, because a tree may have no space, or no window has room for
    /// the write.
    NeedsLock,
}

impl Writer {
    /// Performs a write in the open window. It waits for no sync.
    ///
    /// # Errors
    /// The database accepts no writes, the record could not be written, or an earlier write failed.
    #[inline]
    pub(super) fn write_in_window(
        &self,
        write: &Write<'_>,
        target: &mut WriteTarget<'_>,
        size: WriteSize,
        durability: Durability,
    ) -> Result<WindowOutcome> {
        if self.syncs_itself(durability) || size.operations > OPERATIONS_MAX {
            return Ok(WindowOutcome::NeedsLock);
        }
        let guard = self.pipeline.window();
        let Some(window) = &*guard else { return Ok(WindowOutcome::Closed) };
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
        let mut buffer;
        let mut record = match &record {
            Some(record) => {
                buffer = RecordBuffer::new();
                Some(PreparedRecord::of(record, &mut buffer))
            }
            None => None,
        };
        let reserved = self.pipeline.reserve(window, size.operations, record.as_ref());
        let Some((pending, before)) = reserved else {
            return Ok(WindowOutcome::Full(Arc::clone(window)));
        };
        let begin = self.place(window, target, (&pending, before), record.as_mut())?;
        // Once the write is visible, the window may be closed and its segment ended. The last guard would then unmap
        // the segment, which is slow.
        drop(guard);
        self.insert_logged(pending, begin, target, PendingWrite::finish)?;
        self.finish(size, durability, None)?;
        Ok(WindowOutcome::Done)
    }

    /// Places the record of a write that has reserved its part of the window. Returns where it begins.
    #[inline(always)]
    pub(super) fn place(
        &self,
        window: &Window,
        target: &WriteTarget<'_>,
        (pending, before): (&PendingWrite<'_>, Reserved),
        record: Option<&mut PreparedRecord<'_>>,
    ) -> Result<Option<Lsn>> {
        let (first, last) = pending.seqs();
        target.set_last_seq(last);
        let Some(record) = record else { return Ok(None) };
        // The failure is noted before `pending` is dropped, which reports it.
        let begin = match Pipeline::place(window, before, first, record) {
            Ok(begin) => begin,
            Err(error) => {
                self.context.health.note_failure(error.clone());
                return Err(error);
            }
        };
        // The memory that was prefetched earlier has arrived by now.
        target.prefetch_version();
        Ok(begin)
    }
}
