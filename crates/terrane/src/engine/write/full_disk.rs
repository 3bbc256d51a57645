//! Writes on a full disk.
//!
//! While the disk reserve is released, only deletes are accepted. Their records take the space of the
//! reserve, in short segments.

use super::target::Write;
use super::{Writer, stall::Stop};
use crate::base::error::{Error, Result};
use crate::base::types::{Lsn, SeqNo};
use crate::engine::pipeline::PipelineState;
use crate::files::wal::LogWriter;

/// The memory for deletes beyond twice the size of a memtable, so that a small memtable takes as many as
/// the reserve has space for in the log.
const DELETES_BYTES: u64 = 256 << 10;

impl Writer {
    /// Returns an error if the database accepts no writes, or only deletes and this is another write.
    #[inline]
    pub(super) fn check_admitted(&self, write: &Write<'_>) -> Result<()> {
        if self.context.health.is_sound() { Ok(()) } else { self.check_impaired(write) }
    }

    #[cold]
    fn check_impaired(&self, write: &Write<'_>) -> Result<()> {
        self.context.health.check_writable()?;
        if write.frees_space() {
            return Ok(());
        }
        self.work_inline();
        self.context.check_space()
    }

    /// Does with inline background work what threads do on a full disk: drops the tables that deletes cover,
    /// and runs a job again that the disk refused. Returns true if background work is inline.
    fn work_inline(&self) -> bool {
        let is_inline = self.context.is_inline() && !self.context.events.is_in_listener();
        if is_inline {
            self.jobs.free_space();
            // The result is for the writer that needs the job: the disk refuses the write as well.
            let _ = self.jobs.run_one_job();
        }
        is_inline
    }

    /// Appends a write to the log. If a full disk refuses a segment for a delete, releases the disk reserve
    /// and uses its space. Another write that is refused leaves the reserve alone: a larger one than the
    /// others may be the only one without space.
    pub(super) fn append(
        &self,
        state: &mut PipelineState,
        write: &Write<'_>,
        first: SeqNo,
        is_synced: bool,
    ) -> Result<Lsn> {
        let log = state.log.as_mut().ok_or(Error::ReadOnly)?;
        let is_released = self.is_released();
        log.set_short(is_released);
        let appended = append_to(log, write, first, is_synced);
        let Err(error) = &appended else { return appended };
        if !error.is_out_of_space() || !write.frees_space() {
            return appended;
        }
        // Another thread may have filled the reserve since, with the space that the delete needed.
        if !self.context.release_reserve(error) && is_released {
            return appended;
        }
        log.use_released_space();
        append_to(log, write, first, is_synced)
    }

    fn is_released(&self) -> bool {
        !self.context.health.is_sound() && self.context.reserve.is_released()
    }

    /// Returns true if a delete need not wait for a job: on a full disk no job may be able to run before
    /// something is deleted. The memtable then grows beyond its size: at most to twice as much, and
    /// [`DELETES_BYTES`].
    #[cold]
    pub(super) fn passes_stop(&self, write: &Write<'_>, stop: &Stop) -> bool {
        let filled = stop.tree.state().active.filled_bytes();
        self.is_released()
            && write.frees_space()
            && filled < 2 * self.memtable_bytes_max(&stop.tree) + DELETES_BYTES
    }

    /// Returns true if a delete goes on although a full disk refuses the job for which it waits. Releases
    /// the disk reserve for it.
    #[cold]
    pub(super) fn goes_on(&self, write: &Write<'_>, stop: &Stop, error: &Error) -> bool {
        if !error.is_out_of_space() || !write.frees_space() {
            return false;
        }
        self.context.release_reserve(error);
        self.passes_stop(write, stop)
    }

    /// Frees the space of what a write has deleted, if the disk is full.
    #[cold]
    pub(super) fn free_space(&self, write: &Write<'_>) {
        if !self.is_released() || !write.frees_space() {
            return;
        }
        if !self.work_inline() {
            self.context.signals.wake();
        }
    }
}

fn append_to(log: &mut LogWriter, write: &Write<'_>, first: SeqNo, is_synced: bool) -> Result<Lsn> {
    match write {
        Write::One(tree, op) => log.append_one(first, tree.id, op, is_synced),
        Write::Batch(batch) => log.append(first, &[batch.checked()?], is_synced),
    }
}
