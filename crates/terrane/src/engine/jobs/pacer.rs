//! Reports the progress of a compaction, and waits until it may continue.

use std::sync::Arc;
use std::time::Instant;

use terrane_policy::forecast::CompactionCost;
use terrane_policy::{Compaction, TableInfo, TreeShape};

use super::gate::{Pass, Progress, Stopped};
use super::picking::Picker;
use crate::base::cancel::{self, Cancel};
use crate::base::error::{Error, Result};
use crate::engine::context::{Context, JobGrant};
use crate::engine::merge::Chunk;
use crate::engine::tree::{JobEnd, Tree};

/// How often a compaction checks how far its level is refilled: after this number of bytes, and at
/// least [`LOOKS_MIN`] times.
const LOOK_EVERY_BYTES: u64 = 4 << 20;
const LOOKS_MIN: u64 = 16;

/// Reports the progress of a compaction to the gate, and waits there for its turn.
pub(super) struct JobPacer<'a> {
    context: &'a Context,
    picker: &'a Picker,
    pub(super) tree: &'a Tree,
    pub(super) compaction: &'a Compaction,
    pass: &'a Pass<'a>,
    cancel: Option<&'a Cancel>,
    /// The remaining input at the last report.
    reported_bytes: u64,
    total_bytes: u64,
    total_entries: u64,
    entries: u64,
    /// Whether the scheduler needs to know how far the level is refilled.
    looks_at_level: bool,
    refilled: f64,
    /// The remaining input when `refilled` was last updated.
    looked_at_bytes: u64,
    /// Whether the result of the compaction was installed.
    has_ended: bool,
    /// When the compaction was first admitted.
    begun: Instant,
}

impl<'a> JobPacer<'a> {
    pub(super) fn new(
        context: &'a Context,
        picker: &'a Picker,
        tree: &'a Tree,
        (compaction, shape): (&'a Compaction, &TreeShape),
        (pass, cancel): (&'a Pass<'a>, Option<&'a Cancel>),
    ) -> Self {
        let entries = |table: &Arc<TableInfo>| table.entries;
        let total_bytes = CompactionCost::of(compaction, shape).bytes_rewritten;
        tree.relief.begin_merge(compaction.from_level(), total_bytes);
        Self {
            context,
            picker,
            tree,
            compaction,
            pass,
            cancel,
            reported_bytes: total_bytes,
            total_bytes,
            total_entries: compaction.tables().map(entries).sum(),
            entries: 0,
            looks_at_level: tree.design().scheduler.info().looks_at_levels,
            refilled: 0.0,
            looked_at_bytes: u64::MAX,
            has_ended: false,
            begun: Instant::now(),
        }
    }

    /// Notes that the result of the compaction was installed.
    pub(super) fn end(&mut self) {
        self.has_ended = true;
    }

    /// Reports a chunk, and returns when the compaction may continue.
    ///
    /// # Errors
    /// [`Error::Closed`] if the database is being closed or the tree was dropped, and
    /// [`Error::Cancelled`] if the caller cancelled the compaction.
    pub(super) fn proceed(&mut self, chunk: Chunk) -> Result<()> {
        self.entries += chunk.entries;
        let done = self.entries as f64 / self.total_entries.max(1) as f64;
        let left = (1.0 - done).clamp(0.0, 1.0) * self.total_bytes as f64;
        let remaining_bytes = left as u64;
        let look_every = LOOK_EVERY_BYTES.min(self.total_bytes / LOOKS_MIN);
        if self.looks_at_level && self.looked_at_bytes.saturating_sub(remaining_bytes) >= look_every
        {
            self.refilled = self.picker.refilled(self.tree, &self.tree.jobs(), self.compaction);
            self.looked_at_bytes = remaining_bytes;
        }
        if let Some(cancel) = self.cancel {
            cancel.add_done(self.reported_bytes.saturating_sub(remaining_bytes));
            self.reported_bytes = remaining_bytes;
        }
        let (refilled, written_bytes) = (self.refilled, chunk.written_bytes);
        let progress = Progress { remaining_bytes, refilled, written_bytes };
        let is_cancelled = || cancel::is_cancelled(self.cancel);
        let ends = || self.context.signals.is_stopping() || self.tree.is_dropped();
        let stops = || ends() || is_cancelled();
        if let Err(Stopped) = self.pass.proceed(progress, &stops) {
            return Err(if is_cancelled() && !ends() { Error::Cancelled } else { Error::Closed });
        }
        // After the wait, which takes most of the time of a merge with a small share.
        if self.entries == 0 {
            self.begun = Instant::now();
        }
        let (relief, took) = (&self.tree.relief, self.begun.elapsed());
        relief.note_merged(self.compaction.from_level(), took, self.total_bytes, done);
        Ok(())
    }
}

/// Waits until few enough compactions run that there is memory for one in the calling thread.
///
/// # Errors
/// [`Error::Closed`] if the database is being closed or the tree was dropped, and
/// [`Error::Cancelled`] if the caller cancelled the compaction.
pub(super) fn await_memory(
    context: &Context,
    tree: &Tree,
    cancel: Option<&Cancel>,
) -> Result<JobGrant> {
    context.health.check_open()?;
    if context.is_inline() {
        return Ok(context.compaction_memory.begin_at_once());
    }
    let ends = || context.signals.is_stopping() || tree.is_dropped();
    let granted = context.compaction_memory.begin(|| ends() || cancel::is_cancelled(cancel));
    granted.ok_or_else(|| if ends() { Error::Closed } else { Error::Cancelled })
}

impl Drop for JobPacer<'_> {
    fn drop(&mut self) {
        let end = if !self.has_ended {
            JobEnd::Failed
        } else if self.total_bytes < self.tree.buffer_bytes() {
            JobEnd::Small
        } else {
            JobEnd::Large(self.begun.elapsed())
        };
        self.tree.relief.end_merge(self.compaction.from_level(), end, self.total_bytes);
    }
}
