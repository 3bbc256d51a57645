//! The order of writes: sequence numbers, the log, and visibility.
//!
//! | module | one line |
//! |---|---|
//! | `commit_queue` | makes writes visible in the order of their sequence numbers |
//! | `reservations` | reserves sequence numbers and log space in one atomic step |
//! | `window` | what writers may reserve without the lock |
//! | `in_flight` | the keys of writes that may not be in memtables yet |
//! | `ingest` | an ingest's place in the order of writes |
//! | `change_log` | the log as seen by readers of changes |
//! | `checkpoint_log`, `ingest_gate` | log every write and exclude ingests, for a checkpoint |
//! | `snapshots`, `snapshot_guard` | the sequence numbers that readers hold, and their release |
//! | `snapshot_clock` | the clock of reads, and the times of snapshots |
//! | `rotation` | replaces active memtables |
//! | `log_files` | creates, cleans and ends log segments |
//! | `log_tasks` | the work of the log thread |
//!
//! A writer reserves sequence numbers and a part of the log in the open [`window::Window`], copies
//! its record there, inserts into memtables and enters the commit queue. Without an open window, or if
//! something must change, it locks [`PipelineState`], which closes the window, and appends to the log.

mod change_log;
mod checkpoint_log;
mod commit_queue;
mod failures;
mod in_flight;
pub(crate) mod ingest;
mod ingest_gate;
mod log_files;
mod log_tasks;
mod reservations;
mod rotation;
mod snapshot_clock;
mod snapshot_guard;
mod snapshots;
mod window;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use terrane_memtable::Padded;

use crate::base::error::Result;
use crate::base::types::{Lsn, SeqNo};
use crate::engine::context::Context;
use crate::engine::tree::Tree;
use crate::files::wal::{LogSync, LogWriter};
use commit_queue::{CommitQueue, Span};
use in_flight::InFlight;
use ingest_gate::IngestGate;
use log_tasks::LogTasks;
use snapshots::{HeldSeqs, Snapshots};
use window::WindowState;

pub(crate) use change_log::{ChangeLog, Following};
pub(crate) use checkpoint_log::CheckpointLog;
pub(crate) use failures::{broken, write_panicked};
pub(crate) use in_flight::{Earlier, WrittenKeys};
pub(crate) use log_files::report_map_refusal;
pub(crate) use log_tasks::LogTask;
pub(crate) use reservations::Reserved;
pub(crate) use rotation::begin_memtable;
pub(crate) use snapshot_clock::SnapshotClock;
pub(crate) use window::{OPERATIONS_MAX, UNITS_MAX, Window};

/// How often memory is measured, in written bytes, and in addition for each memtable.
pub(crate) const MEASURE_EVERY_BYTES: usize = 256 << 10;
const MEASURE_BYTES_PER_MEMTABLE: usize = 512;

/// Orders all writes of a database.
#[derive(Debug)]
pub(crate) struct Pipeline {
    context: Arc<Context>,
    state: Padded<Mutex<PipelineState>>,
    /// The open window, the same as in `state`. Every write loads it.
    window: Padded<ArcSwapOption<Window>>,
    /// Stalled writers wait here, with the lock of `state`, until a tree has space again.
    space: Condvar,
    commits: CommitQueue,
    snapshots: Snapshots,
    snapshot_clock: SnapshotClock,
    /// Set while a covered table cannot be dropped until a snapshot is released.
    awaits_release: AtomicBool,
    /// The number of open transactions.
    transactions: AtomicUsize,
    log_sync: Arc<LogSync>,
    ingests: IngestGate,
    tasks: LogTasks,
}

/// The state that only the holder of the writer lock accesses.
#[derive(Debug)]
pub(crate) struct PipelineState {
    /// `None` if the database is read-only, not open yet, or closed.
    pub(crate) log: Option<LogWriter>,
    pub(crate) next_seq: SeqNo,
    window: WindowState,
    in_flight: InFlight,
    /// The sequence number that was promised to the last ingest; 0 if there was none.
    promised_seq: SeqNo,
    /// The number of checkpoints that need every write in the log.
    checkpoints: usize,
    /// Bytes written since memory was last measured.
    unmeasured_bytes: usize,
    /// How often memory is measured, in written bytes.
    measure_every_bytes: usize,
}

impl PipelineState {
    /// How often memory is measured, in written bytes.
    pub(crate) fn measure_every_bytes(&self) -> usize {
        self.measure_every_bytes
    }

    /// Notes the number of memtables that a measurement visited, and how often memory is measured if there are few.
    pub(crate) fn note_measured(&mut self, memtables: usize, every_bytes: usize) {
        self.measure_every_bytes = every_bytes + memtables * MEASURE_BYTES_PER_MEMTABLE;
    }

    /// Counts the bytes that a writer may write without the lock. Returns false if `limit` was
    /// reached, so that memory must be measured first.
    pub(crate) fn grant_bytes(&mut self, bytes: u64, limit: usize) -> bool {
        let is_granted = self.unmeasured_bytes < limit;
        if is_granted {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            self.unmeasured_bytes = self.unmeasured_bytes.saturating_add(bytes);
        }
        is_granted
    }

    /// Counts the bytes of a write. Once memory must be measured, resets the count and returns true.
    #[inline]
    pub(crate) fn count_bytes(&mut self, bytes: usize) -> bool {
        self.unmeasured_bytes = self.unmeasured_bytes.saturating_add(bytes);
        let is_reached = self.unmeasured_bytes >= self.measure_every_bytes;
        if is_reached {
            self.unmeasured_bytes = 0;
        }
        is_reached
    }
}

/// A position in the order of writes, held until the write is inserted. A panic before that, or a lost
/// log, drops the position unfinished: then no further write is accepted, no later write becomes visible, and
/// no writer waits for this write. If the write is in the log, the next opening replays it. Must be
/// dropped without the lock of [`PipelineState`], because the failure is reported to the listener.
pub(crate) struct PendingWrite<'a> {
    pipeline: &'a Pipeline,
    /// `None` once the write is inserted.
    span: Option<Span>,
}

impl PendingWrite<'_> {
    /// Marks the write as inserted. Returns once it is visible.
    #[inline]
    pub(crate) fn finish(mut self) -> Result<()> {
        let is_visible = self.span.take().is_some_and(|span| self.pipeline.commits.finish(span));
        if is_visible { Ok(()) } else { Err(broken(&self.pipeline.context)) }
    }

    /// Marks the write as inserted, and calls `sync`, which makes its record durable. Returns once the
    /// write is visible.
    ///
    /// # Errors
    /// The sync failed, so that neither this write nor a later one becomes visible.
    pub(crate) fn finish_synced(mut self, sync: impl FnOnce() -> Result<()>) -> Result<()> {
        let Pipeline { commits, context, .. } = self.pipeline;
        let Some(span) = self.span else { return Err(broken(context)) };
        // A sync that panics drops the pending write.
        let finished = commits.finish_after(span, sync).inspect_err(|error| {
            context.health.note_failure(error.clone());
            commits.break_off(span.first);
            context.health.report_failure();
        });
        self.span = None;
        if finished? { Ok(()) } else { Err(broken(context)) }
    }

    /// The first and the last sequence number.
    pub(crate) fn seqs(&self) -> (SeqNo, SeqNo) {
        self.span.map_or((0, 0), |span| (span.first, span.last))
    }
}

impl Drop for PendingWrite<'_> {
    fn drop(&mut self) {
        if let Some(span) = self.span {
            // The listener runs last, because it may use the database, and then waits for writes
            // that end only once the queue is broken. The failure is noted first, because a writer
            // that finds the queue broken must also find the database failed.
            self.pipeline.context.health.note_failure(write_panicked());
            self.pipeline.commits.break_off(span.first);
            self.pipeline.context.health.report_failure();
        }
    }
}

impl Pipeline {
    /// Creates a pipeline without a log, in which every write up to `last_seq` is visible.
    pub(crate) fn new(context: &Arc<Context>, last_seq: SeqNo) -> Self {
        Self {
            log_sync: Arc::new(LogSync::new(Arc::clone(&context.counters))),
            context: Arc::clone(context),
            state: Padded(Mutex::new(PipelineState {
                log: None,
                next_seq: last_seq + 1,
                window: WindowState::default(),
                in_flight: InFlight::default(),
                promised_seq: 0,
                checkpoints: 0,
                unmeasured_bytes: 0,
                measure_every_bytes: MEASURE_EVERY_BYTES,
            })),
            window: Padded(ArcSwapOption::empty()),
            space: Condvar::new(),
            commits: CommitQueue::new(last_seq),
            snapshots: Snapshots::default(),
            snapshot_clock: SnapshotClock::new(&context.clock),
            awaits_release: AtomicBool::new(false),
            transactions: AtomicUsize::new(0),
            ingests: IngestGate::default(),
            tasks: LogTasks::default(),
        }
    }

    /// Takes the writer lock, which is the first in the lock order, and closes the window. All
    /// writes that did not take the lock are visible afterwards.
    pub(crate) fn lock(&self) -> MutexGuard<'_, PipelineState> {
        let mut state = self.lock_keeping_window();
        self.close_window(&mut state);
        state
    }

    /// Takes the writer lock, but does not close the window: writers continue in it.
    pub(crate) fn lock_keeping_window(&self) -> MutexGuard<'_, PipelineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the writer lock, unless a window has been opened meanwhile.
    pub(crate) fn lock_if_no_window(&self) -> Option<MutexGuard<'_, PipelineState>> {
        let state = self.lock_keeping_window();
        (!state.window.is_open()).then_some(state)
    }

    /// Takes the writer lock and closes the window, unless a window other than `full` has been
    /// opened meanwhile: only the first writer that finds a window full closes it.
    pub(crate) fn lock_unless_replaced(
        &self,
        full: &Arc<Window>,
    ) -> Option<MutexGuard<'_, PipelineState>> {
        let mut state = self.lock_keeping_window();
        if state.window.is_replaced(full) {
            return None;
        }
        self.close_window(&mut state);
        Some(state)
    }

    /// Returns true if a write panicked or its sync failed. The log may then have a gap, so nothing
    /// more is appended to it.
    pub(crate) fn is_broken(&self) -> bool {
        self.commits.is_broken()
    }

    /// Returns the newest sequence number that readers may see.
    #[inline]
    pub(crate) fn visible(&self) -> SeqNo {
        self.commits.visible()
    }

    /// Makes everything up to `seq` visible. Must be called only while no writers exist, as in
    /// recovery.
    pub(crate) fn set_visible(&self, seq: SeqNo) {
        self.commits.set_visible(seq);
    }

    /// Waits until `seq` is visible. Returns false if it will never become visible, because an
    /// earlier write panicked or its sync failed.
    #[must_use = "a write may never become visible"]
    pub(crate) fn wait_visible(&self, seq: SeqNo) -> bool {
        self.commits.wait_visible(seq)
    }

    /// Returns the readers whose versions memtables keep. Lookups that have already begun are not
    /// counted; they retry if a version was overwritten.
    #[inline]
    pub(crate) fn readers(&self) -> HeldSeqs<'_> {
        self.snapshots.readers(&self.commits)
    }

    /// Assigns the next sequence numbers to `operations` operations, which are logged up to `end`.
    pub(crate) fn enter(
        &self,
        state: &mut PipelineState,
        operations: u64,
        end: Option<Lsn>,
    ) -> PendingWrite<'_> {
        let first = state.next_seq;
        state.next_seq += operations;
        let log_end = end.map_or(0, |end| end.0);
        PendingWrite {
            pipeline: self,
            span: Some(Span { first, last: state.next_seq - 1, log_end }),
        }
    }

    /// Notes that the last write that entered waits for a sync before becoming visible.
    pub(crate) fn await_sync(state: &mut PipelineState) {
        let last = state.next_seq - 1;
        state.window.await_sync(last);
    }

    /// Holds the newest visible sequence number, to be released with [`Self::release_snapshot`].
    pub(crate) fn hold_snapshot(&self) -> SeqNo {
        self.snapshots.hold(&self.commits)
    }

    /// The clock by which reads decide which values have expired. It tracks the times of snapshots.
    pub(crate) fn snapshot_clock(&self) -> &SnapshotClock {
        &self.snapshot_clock
    }

    /// Holds a sequence number once more. Returns false unless it is already held.
    pub(crate) fn hold_again(&self, seq: SeqNo) -> bool {
        self.snapshots.hold_again(seq)
    }

    /// Holds a sequence number for a tree, in place of the previous one. Returns false unless the
    /// number is already held. With `None`, only releases the previous one.
    pub(crate) fn keep_snapshot(&self, tree: &Tree, seq: Option<SeqNo>) -> bool {
        let kept = seq.filter(|seq| self.hold_again(*seq));
        if let Some(before) = self.snapshots.replace_kept(tree.id, kept) {
            self.release_snapshot(before);
        }
        // A dropped tree was marked before it released its number, and never releases one again.
        if kept.is_some() && tree.is_dropped() {
            if let Some(kept) = self.snapshots.replace_kept(tree.id, None) {
                self.release_snapshot(kept);
            }
            return false;
        }
        kept.is_some()
    }

    /// Returns the sequence numbers that are held, in ascending order.
    pub(crate) fn snapshots(&self) -> Vec<SeqNo> {
        self.snapshots.list()
    }

    /// Returns the snapshots, and makes the next release of a snapshot wake the workers.
    pub(crate) fn snapshots_awaiting_release(&self) -> Vec<SeqNo> {
        // Set before the snapshots are listed: a release that the list misses takes the lock of the
        // list later, and therefore finds the flag.
        self.awaits_release.store(true, Ordering::Release);
        self.snapshots.list()
    }

    /// Releases a snapshot. Wakes the workers if a covered table waits for a release.
    pub(crate) fn release_snapshot(&self, seq: SeqNo) {
        self.snapshots.release(seq);
        // Acquire and release pair with the store in `snapshots_awaiting_release`.
        if self.awaits_release.swap(false, Ordering::AcqRel) {
            self.context.signals.wake();
        }
    }

    /// Waits until a tree may have space again, but at most for `timeout`.
    pub(crate) fn wait_for_space<'a>(
        &self,
        state: MutexGuard<'a, PipelineState>,
        timeout: Duration,
    ) -> MutexGuard<'a, PipelineState> {
        let waited = self.space.wait_timeout(state, timeout);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        self.close_window(&mut state);
        state
    }

    /// Makes stalled writers check again whether they may continue.
    pub(crate) fn notify_space(&self) {
        // Taking the lock ensures that no writer is between its check and its wait.
        drop(self.lock_keeping_window());
        self.space.notify_all();
    }

    /// Wakes the log thread and stalled writers after [`Signals::stop`].
    ///
    /// [`Signals::stop`]: crate::engine::context::Signals::stop
    pub(crate) fn stop(&self) {
        self.tasks.wake();
        self.space.notify_all();
        self.commits.wake_all();
    }
}
