//! Writes that take the writer lock, because no window is open or has room for them.

use std::sync::MutexGuard;

use super::target::WriteTarget;
use super::{LogRequests, LoggedWrite, Write, WriteSize, Writer};
use crate::base::durability::Durability;
use crate::base::error::{Error, Result};
use crate::base::types::{Lsn, MAX_SEQ};
use crate::engine::pipeline::{Pipeline, PipelineState};
use crate::files::wal::{LogWriter, RecordOps};

impl Writer {
    /// Waits for memtable space with the writer lock, assigns sequence numbers to a write, and appends
    /// it to the log. Then opens a window for the next writes.
    #[cold]
    pub(super) fn log_with_lock<'a>(
        &'a self,
        state: MutexGuard<'a, PipelineState>,
        write: &Write<'_>,
        target: &mut WriteTarget<'_>,
        size: WriteSize,
        durability: Durability,
    ) -> Result<LoggedWrite<'a>> {
        let memory_bytes = self.pointers.memory_bytes(target, size.user_bytes, durability);
        let state = self.wait_for_space(state, target, (size.user_bytes, memory_bytes))?;
        self.log_holding(state, write, target, size, durability)
    }

    /// Does the same for a write that already has space.
    pub(super) fn log_holding<'a>(
        &'a self,
        state: MutexGuard<'a, PipelineState>,
        write: &Write<'_>,
        target: &mut WriteTarget<'_>,
        size: WriteSize,
        durability: Durability,
    ) -> Result<LoggedWrite<'a>> {
        // Declared before the lock, so that a panic drops it without the lock: see `PendingWrite`.
        let mut logged;
        let mut state = state;
        logged = self.log(&mut state, write, target, size.operations, durability);
        if let Ok(logged) = &mut logged {
            self.pipeline.note_in_flight(&mut state, || write.keys());
            let log = state.log.as_mut().filter(|_| logged.end.is_some());
            logged.requests = log.and_then(|log| LogRequests::of(log, durability));
            if self.syncs_itself(durability) {
                Pipeline::await_sync(&mut state);
            } else {
                if let Some(log) = &mut state.log {
                    // The next write may be the segment's first logged write.
                    self.note_segment_age(log);
                }
                self.pipeline.open_window(&mut state, logged.end.is_some());
            }
        }
        drop(state);
        let health = &self.context.health;
        health.note_logged(logged.as_ref().err());
        logged.inspect_err(|_| health.report_failure())
    }

    /// Assigns sequence numbers to a write and appends it to the log, with the writer lock held. No
    /// code that may panic follows the assignment.
    fn log(
        &self,
        state: &mut PipelineState,
        write: &Write<'_>,
        target: &mut WriteTarget<'_>,
        operations: u64,
        durability: Durability,
    ) -> Result<LoggedWrite<'_>> {
        let first = state.next_seq;
        let last = first + operations - 1;
        if last > MAX_SEQ {
            return Err(Error::internal("all sequence numbers are used up"));
        }
        target.load(&self.catalog)?;
        target.set_last_seq(last);
        self.note_age(target);
        let is_logged = state.is_logged(durability);
        if let (Some(log), true) = (&mut state.log, is_logged) {
            self.note_segment_age(log);
        }
        let (begin, end) = match is_logged {
            false => (None, None),
            true => {
                let is_synced = durability == Durability::Sync;
                let appended = self.append(state, write, first, is_synced);
                let end = appended.inspect_err(|error| self.pipeline.check_log(error))?;
                // The memory that was prefetched before the append has arrived by now. An earlier
                // use would wait for it with the lock held.
                target.prefetch_version();
                (record_begin(end, &write.record()?), Some(end))
            }
        };
        let pending = self.pipeline.enter(state, operations, end);
        Ok(LoggedWrite { pending, begin, end, requests: None })
    }

    /// Notes the time of the first record of a log segment, if deletes have a deadline.
    fn note_segment_age(&self, log: &mut LogWriter) {
        if self.context.settings.delete_persistence_micros().is_some() {
            log.note_record(|| self.context.clock.now_micros());
        }
    }
}

/// Returns where the record that ends at `end` begins.
fn record_begin(end: Lsn, record: &RecordOps<'_>) -> Option<Lsn> {
    end.0.checked_sub(record.bytes()).map(Lsn)
}
