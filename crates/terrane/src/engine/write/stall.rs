//! Stops writers until a tree has space, and replaces full memtables.
//!
//! A writer waits if a tree lags too far; the time is counted by cause. The writer that finds a
//! memtable full replaces it.

use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use terrane_memtable::FrontLevel;
use terrane_policy::{Admission, Pressure, StallCause};

use super::Writer;
use super::reclaim::{Room, room_in};
use super::space::{ENTRY_BYTES, portion_of, reservable};
use super::spread::{schedule, schedule_full};
use super::target::WriteTarget;
use crate::base::error::{Error, Result};
use crate::base::event::{FlushReason, StallEffect};
use crate::base::stats::{Counter, Timed};
use crate::engine::context::{BackgroundFailure, Context, JobKind, MemtableMemory};
use crate::engine::pipeline::{PipelineState, begin_memtable};
use crate::engine::tree::{Tree, TreeState};
use crate::files::batch::Op;

/// A stalled writer checks again at least this often, in case it misses a notification.
const STALL_WAIT_MAX: Duration = Duration::from_millis(100);

/// A tree that stops writers, and the reason.
pub(super) struct Stop {
    pub(super) tree: Arc<Tree>,
    pub(super) pressure: Pressure,
}

impl Writer {
    /// Waits, with the writer lock, until all trees of the write have space. Afterwards the target
    /// has the current states of its trees. `memory_bytes` of the `user_bytes` go to memtables.
    pub(super) fn wait_for_space<'a>(
        &'a self,
        mut state: MutexGuard<'a, PipelineState>,
        target: &mut WriteTarget<'_>,
        (user_bytes, memory_bytes): (usize, usize),
    ) -> Result<MutexGuard<'a, PipelineState>> {
        // Closing marks the database closed before it takes this lock to flush, so the flush includes
        // every write that passes this check.
        self.context.health.check_writable()?;
        if state.count_bytes(user_bytes) {
            self.keep_to_budget(&mut state);
        }
        let mut stalled_since = None;
        let is_large = MemtableMemory::is_large(memory_bytes);
        loop {
            // A write that exceeds the share alone is admitted once the other entries are flushed. The
            // few that other writers add meanwhile do not make it wait again.
            let flush_above = is_large.then(|| match stalled_since {
                None => 0,
                Some(_) => self.context.memtables.active_bytes_max() / 2,
            });
            let stop = self
                .check_memory(&mut state, target, flush_above)
                .or_else(|| self.check_space(&mut state, target, user_bytes));
            let Some(stop) = stop else { break };
            if self.context.events.is_in_listener() {
                // The job that would make space may be waiting for the listener that is writing.
                break;
            }
            if self.passes_stop(&target.write(), &stop) {
                break;
            }
            stalled_since.get_or_insert_with(Instant::now);
            // A waiting writer must not keep a memtable in memory that is flushed meanwhile.
            target.release();
            state = match self.stall(state, &stop) {
                Err(error) if self.goes_on(&target.write(), &stop, &error) => self.pipeline.lock(),
                stalled => stalled?,
            };
            self.context.health.check_writable()?;
        }
        if let Some(since) = stalled_since {
            self.context.counters.durations.note(Timed::Stall, since.elapsed());
        }
        self.begin_memtables(&mut state, target);
        Ok(state)
    }

    /// Gives a memtable to each tree of the write that has none: its memtable may have been replaced
    /// since its space was checked, and the space of a listener's write may not have been checked.
    fn begin_memtables(&self, state: &mut PipelineState, target: &mut WriteTarget<'_>) {
        match target {
            WriteTarget::One { tree, state: tree_state, .. } => {
                tree.refresh(tree_state);
                if tree_state.active.is_unwritten() {
                    begin_memtable(&self.pipeline, state, tree);
                }
            }
            WriteTarget::Batch { batch, .. } => {
                let trees = self.catalog.trees();
                let trees = batch.keyspaces().iter().filter_map(|id| trees.get(id));
                trees.filter(|tree| tree.state().active.is_unwritten()).for_each(|tree| {
                    begin_memtable(&self.pipeline, state, tree);
                });
            }
        }
    }

    /// Replaces full memtables. Returns the tree that the write must wait for, if any.
    #[inline]
    fn check_space(
        &self,
        state: &mut PipelineState,
        target: &mut WriteTarget<'_>,
        user_bytes: usize,
    ) -> Option<Stop> {
        let needed = |operations: u64| user_bytes as u64 + operations * ENTRY_BYTES;
        match target {
            WriteTarget::One { op, tree, state: tree_state } => {
                tree.refresh(tree_state);
                let needed = match op {
                    Op::DeleteRange { .. } => needed(1) + deleted_range_bytes(tree_state),
                    _ => needed(1),
                };
                let stop = self.check_space_of(state, tree, tree_state, needed);
                tree.refresh(tree_state);
                stop
            }
            WriteTarget::Batch { batch, .. } => {
                let trees = self.catalog.trees();
                let needed = needed(batch.len() as u64);
                for id in batch.keyspaces() {
                    let Some(tree) = trees.get(id) else { continue };
                    let tree_state = tree.state();
                    let needed = match batch.deletes_ranges() {
                        true => needed + deleted_range_bytes(&tree_state),
                        false => needed,
                    };
                    if let Some(stop) = self.check_space_of(state, tree, &tree_state, needed) {
                        return Some(stop);
                    }
                }
                None
            }
        }
    }

    #[inline]
    fn check_space_of(
        &self,
        state: &mut PipelineState,
        tree: &Arc<Tree>,
        tree_state: &TreeState,
        needed: u64,
    ) -> Option<Stop> {
        let stop = |pressure| Some(Stop { tree: Arc::clone(tree), pressure });
        // Most causes stop writers only when the active memtable is full.
        if let Admission::Stop(pressure) = tree_state.admission
            && pressure.stops_at_once()
        {
            return stop(pressure);
        }
        if tree_state.active.share().reserve(needed) {
            return None;
        }
        if tree_state.active.is_unwritten() {
            begin_memtable(&self.pipeline, state, tree);
            return self.check_space_of(state, tree, &tree.state(), needed);
        }
        let limit = self.memtable_bytes_max(tree);
        let Room { filled, portion_max } = room_in(self, &tree_state.active, limit);
        self.request_memory(tree, filled, limit);
        if filled < limit {
            let front = tree_state.active.memtable.front_level();
            if let Some(front) = front.filter(|front| front.needs_enabling()) {
                self.enable_front_level(state, tree, front);
            }
            let spread = schedule(self, tree, tree_state, (filled, limit));
            let free = reservable(filled, limit).min(portion_max.max(needed));
            let portion = portion_of(free, needed, spread.as_ref());
            tree_state.active.share().set_space(portion);
            state.grant_bytes(portion, usize::MAX);
            return None;
        }
        if let Admission::Stop(pressure) = tree_state.admission {
            return stop(pressure);
        }
        let ahead = schedule_full(self, tree, tree_state, (filled, limit));
        self.pipeline.rotate(state, tree, FlushReason::Full);
        if !ahead.is_zero() {
            tree.state().active.share().pause(ahead);
        }
        None
    }

    /// Returns true if a write to a tree would now wait for background work. A write that would
    /// instead fail, or do the work itself, does not wait.
    #[inline]
    pub(crate) fn would_stall(&self, tree: &Tree) -> bool {
        let tree_state = tree.state();
        match &tree_state.admission {
            Admission::Stop(pressure) => self.would_wait(tree, &tree_state, pressure),
            _ if self.context.memtables.is_short() => {
                self.would_wait(tree, &tree_state, &self.context.memtables.pressure())
            }
            _ => false,
        }
    }

    #[cold]
    fn would_wait(&self, tree: &Tree, tree_state: &TreeState, pressure: &Pressure) -> bool {
        let filled = tree_state.active.filled_bytes();
        if !pressure.stops_at_once() && filled < self.memtable_bytes_max(tree) {
            return false;
        }
        let failure = self.context.health.failure_of(relieving_job(pressure));
        let is_disk_full =
            matches!(failure, Some(BackgroundFailure { error: Error::DiskFull(_), .. }));
        !is_disk_full
            && !self.context.is_inline()
            && self.context.health.check_writable().is_ok()
            && tree.jobs().unreadable.is_empty()
    }

    /// Enables the front level once every write that released the writer lock is inserted. This is
    /// needed once for each memtable. A drain thread prepares the front level first, if there is one.
    ///
    /// While an ingest has its number and is not visible, a later call enables it, because the ingest needs the lock.
    #[cold]
    fn enable_front_level(&self, state: &PipelineState, tree: &Tree, front: &dyn FrontLevel) {
        let has_thread = tree.design().memtable.drain_threads() > 0 && !self.context.is_inline();
        if !front.is_prepared() && has_thread {
            front.request();
            self.context.signals.drains.wake();
        } else if !state.awaits_ingest(self.pipeline.visible())
            && self.pipeline.wait_visible(state.next_seq - 1)
        {
            front.enable();
        }
    }

    /// Returns the size at which a memtable is full. This is the size that the design sets, but at
    /// most half of what memtables may take, so that a memtable can be filled while another is flushed.
    pub(crate) fn memtable_bytes_max(&self, tree: &Tree) -> u64 {
        self.context.memtables.bytes_max(tree.buffer_bytes())
    }

    /// Waits until background work has made space, or does that work if it is inline.
    #[cold]
    fn stall<'a>(
        &'a self,
        state: MutexGuard<'a, PipelineState>,
        stop: &Stop,
    ) -> Result<MutexGuard<'a, PipelineState>> {
        let Stop { tree, pressure } = stop;
        if !tree.has_reported(StallEffect::Stopped, pressure) {
            // Reported without the lock, because a listener may write. The caller checks again.
            drop(state);
            self.catalog.report_stalled(tree, StallEffect::Stopped, pressure);
            return Ok(self.pipeline.lock());
        }
        let kind = relieving_job(pressure);
        // Waiting is pointless while the disk lacks space for the job.
        let failure = self.context.health.failure_of(kind);
        if let Some(BackgroundFailure { error: error @ Error::DiskFull(_), .. }) = failure {
            return Err(error);
        }
        let start = Instant::now();
        let has_damage = !tree.jobs().unreadable.is_empty();
        let state = if has_damage || self.context.is_inline() {
            drop(state);
            // An unreadable table may block the tree permanently. This is checked without the lock,
            // because the check may read range tombstones.
            if let Some(error) = self.jobs.blocking_damage(tree) {
                return Err(error);
            }
            None
        } else {
            Some(state)
        };
        let state = if self.context.is_inline() {
            self.work_for_space(stop)?
        } else {
            // A notification sent while the lock was released is missed, so the wait has a timeout.
            let state = state.unwrap_or_else(|| self.pipeline.lock());
            self.pipeline.wait_for_space(state, STALL_WAIT_MAX)
        };
        count_stop(&self.context, pressure.cause, start.elapsed());
        self.context.counters.add(Counter::StalledWrites, 1);
        Ok(state)
    }

    /// Runs a job in this thread, or waits for other threads' jobs if no other job is due.
    ///
    /// # Errors
    /// [`Error::Internal`] if no job can ever resume the tree's writers. That is certain only if no
    /// job was running before this thread looked for one, none has begun since, and the tree is
    /// unchanged and still stops writers. Otherwise a job in another thread may have made space,
    /// and the caller checks again.
    fn work_for_space(&self, stop: &Stop) -> Result<MutexGuard<'_, PipelineState>> {
        let Stop { tree, pressure } = stop;
        let signals = &self.context.signals;
        let (seen, quiet_at) = (signals.done(), signals.quiet_at());
        let number = tree.state().number;
        if self.jobs.run_one_job()? {
            return Ok(self.pipeline.lock());
        }
        let Some(begun) = quiet_at else {
            signals.wait_for_done(seen);
            return Ok(self.pipeline.lock());
        };
        let state = self.pipeline.lock();
        let tree_state = tree.state();
        let is_stopped = matches!(tree_state.admission, Admission::Stop(_)) && !tree.is_dropped();
        let is_unchanged = tree_state.number == number && signals.jobs_begun() == begun;
        if !is_stopped || !is_unchanged || self.context.health.check_writable().is_err() {
            return Ok(state);
        }
        drop(state);
        // A job in another thread may have found the damage since the caller looked for it.
        let damage = self.jobs.blocking_damage(tree);
        Err(damage.unwrap_or_else(|| Error::internal(format!("nothing to do about {pressure}"))))
    }
}

/// Reports a stall for which a writer waits outside of a write, and counts the time. Must be called without locks,
/// because it may call a listener.
#[cold]
pub(crate) fn note_stalled(writer: &Writer, tree: &Tree, waits: Duration) {
    let pressure = match tree.state().admission {
        Admission::Stop(pressure) => pressure,
        _ if writer.context.memtables.is_short() => writer.context.memtables.pressure(),
        _ => return,
    };
    if !tree.has_reported(StallEffect::Stopped, &pressure) {
        writer.catalog.report_stalled(tree, StallEffect::Stopped, &pressure);
    }
    count_stop(&writer.context, pressure.cause, waits);
}

/// Counts the time for which a writer was stopped.
fn count_stop(context: &Context, cause: StallCause, time: Duration) {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let cause = match cause {
        StallCause::Level0Runs => Counter::StallRunsMicros,
        StallCause::LevelRuns => Counter::StallLevelRunsMicros,
        StallCause::TotalRuns => Counter::StallTotalRunsMicros,
        StallCause::ImmutableMemtables => Counter::StallMemtablesMicros,
        StallCause::CompactionsDue => Counter::StallShapeMicros,
        StallCause::ValueSpace => Counter::StallValuesMicros,
        StallCause::MemoryBudget => Counter::StallMemoryMicros,
    };
    context.counters.add(cause, micros);
}

/// Returns the kind of job that relieves a pressure.
fn relieving_job(pressure: &Pressure) -> JobKind {
    match pressure.cause {
        StallCause::ImmutableMemtables | StallCause::MemoryBudget => JobKind::Flush,
        _ => JobKind::Compaction,
    }
}

/// The space that a deleted range needs in addition to its bounds: a sequence number in each
/// fragment that the range covers, and the same amount again for growth. All ranges of a batch
/// together need no more.
fn deleted_range_bytes(state: &TreeState) -> u64 {
    state.active.memtable.range_tombstones().len() as u64 * 2 * size_of::<u64>() as u64
}
