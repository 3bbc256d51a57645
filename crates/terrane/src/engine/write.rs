//! Writing: admission, log, memtables, visibility.
//!
//! | module | one line |
//! |---|---|
//! | `target` | the memtables that a write goes to |
//! | `commit` | writes that succeed only if their condition still holds |
//! | `in_place` | reclaims the versions that writes hide in memtables |
//! | `in_window` | writes that take no lock |
//! | `insert` | inserts operations into memtables |
//! | `pointers` | inserts large values as pointers into the log |
//! | `deferred` | delays for which a writer's thread waits by itself |
//! | `delays` | the sleep that delayed writers owe |
//! | `full_disk` | admits only deletes on a full disk |
//! | `memory` | keeps memtables within their share of the memory budget, and the log within its limit |
//! | `queue` | serializes writers in a queue, as in LevelDB |
//! | `reclaim` | makes room in an almost full memtable that overwrites in place |
//! | `slow_down` | delays writers to lagging trees |
//! | `with_lock` | writes that take the writer lock |
//! | `space` | reserves memtable space without the writer lock |
//! | `spread` | spreads the room before a stop over the time until a job makes more |
//! | `stall` | stops writers until a tree has space; replaces full memtables |

mod commit;
mod deferred;
mod delays;
mod full_disk;
mod in_place;
mod in_window;
mod insert;
mod memory;
mod pointers;
mod queue;
mod reclaim;
mod slow_down;
mod space;
mod spread;
mod stall;
mod target;
mod with_lock;

use std::sync::Arc;

use terrane_memtable::Memtable;

use crate::base::durability::Durability;
use crate::base::error::Result;
use crate::base::stats::{Counter, Sample, Timed};
use crate::base::types::{Lsn, SeqNo};
use crate::engine::catalog::Catalog;
use crate::engine::context::Context;
use crate::engine::jobs::Jobs;
use crate::engine::pipeline::{PendingWrite, Pipeline};
use crate::files::batch::Op;
use crate::files::wal::{LogWriter, SegmentCreation, SegmentRequests};
use crate::options::WritePath;
use delays::Delays;
use in_window::WindowOutcome;
use pointers::Pointers;
use queue::WriteQueue;
use target::WriteTarget;

pub(crate) use commit::{Commit, CommitCondition};
pub(crate) use deferred::collect_delays;
pub(crate) use insert::insert_one;
pub(crate) use stall::note_stalled;
pub(crate) use target::Write;

/// Writes to trees.
#[derive(Debug)]
pub(crate) struct Writer {
    context: Arc<Context>,
    pipeline: Arc<Pipeline>,
    catalog: Arc<Catalog>,
    jobs: Arc<Jobs>,
    queue: WriteQueue,
    delays: Delays,
    pointers: Pointers,
}

/// A write that has sequence numbers and is in the log.
struct LoggedWrite<'a> {
    pending: PendingWrite<'a>,
    /// Where its record begins; `None` if the write is not logged.
    begin: Option<Lsn>,
    /// The end of the record of the write; `None` if the write is not logged.
    end: Option<Lsn>,
    /// `None` if there are none, as in most cases.
    requests: Option<Box<LogRequests>>,
}

/// The size of a write.
#[derive(Debug, Clone, Copy)]
struct WriteSize {
    operations: u64,
    user_bytes: usize,
}

/// Log work that a write finds due and leaves to background threads.
struct LogRequests {
    segment: Option<SegmentRequests>,
    creation: Option<SegmentCreation>,
}

impl LogRequests {
    fn of(log: &mut LogWriter, durability: Durability) -> Option<Box<Self>> {
        let creation = log.due_creation();
        // A synced write reaches the file by a system call and needs no prepared pages; its sync
        // also covers the header.
        let segment = match durability {
            Durability::Process | Durability::Interval(_) => log.due_requests(),
            Durability::None | Durability::Sync => None,
        };
        let is_due = segment.is_some() || creation.is_some();
        is_due.then(|| Box::new(Self { segment, creation }))
    }

    /// Requests the work that precedes the insertion. Returns the rest.
    #[cold]
    fn begin(self, pipeline: &Pipeline) -> Option<SegmentCreation> {
        if let Some(segment) = self.segment {
            pipeline.prepare(segment);
        }
        self.creation
    }
}

impl Writer {
    pub(crate) fn new(
        context: &Arc<Context>,
        pipeline: &Arc<Pipeline>,
        catalog: &Arc<Catalog>,
        jobs: &Arc<Jobs>,
    ) -> Self {
        let pointers = Pointers::new(context, catalog);
        Self {
            pointers,
            context: Arc::clone(context),
            pipeline: Arc::clone(pipeline),
            catalog: Arc::clone(catalog),
            jobs: Arc::clone(jobs),
            queue: WriteQueue::default(),
            delays: Delays::default(),
        }
    }

    /// Performs a write. Returns once the write is visible and has the requested durability.
    #[inline]
    pub(crate) fn write(&self, write: Write<'_>, durability: Durability) -> Result<()> {
        let sample = Sample::begin();
        match self.context.settings.write_path {
            WritePath::Concurrent => self.write_concurrently(write, durability)?,
            WritePath::Queue => self.write_queued(write, durability)?,
        }
        sample.end(&self.context.counters.durations, Timed::Write);
        Ok(())
    }

    fn write_queued(&self, write: Write<'_>, durability: Durability) -> Result<()> {
        self.context.health.check_process()?;
        if self.context.events.is_in_listener() {
            // The leader of the queue may be waiting for the job that called the listener, or may
            // be this thread.
            return self.write_concurrently(write, durability);
        }
        let batch = write.into_batch();
        // An invalid batch fails alone; it must not make its group fail.
        batch.checked()?;
        self.queue.write(batch, durability, |batch| {
            self.write_concurrently(Write::Batch(batch), durability)
        })
    }

    /// Writes concurrently with other writers, in the steps that docs/ARCHITECTURE.md describes.
    fn write_concurrently(&self, write: Write<'_>, durability: Durability) -> Result<()> {
        self.check_admitted(&write)?;
        let (operations, user_bytes) = write.check()?;
        if operations == 0 {
            return if durability == Durability::Sync { self.pipeline.sync_log() } else { Ok(()) };
        }
        let mut target = WriteTarget::new(write);
        let memory_bytes = self.pointers.memory_bytes(&target, user_bytes, durability);
        let size = WriteSize { operations, user_bytes };
        self.pointers.provide_names(&target, user_bytes);
        let _large = self.context.memtables.begin_large_write(memory_bytes);
        self.slow_down(&mut target, user_bytes)?;
        // 1. Assign sequence numbers, and place the record in the log.
        loop {
            let lock = match self.write_in_window(&write, &mut target, size, durability)? {
                WindowOutcome::Done => break,
                WindowOutcome::Closed => self.pipeline.lock_if_no_window(),
                WindowOutcome::Full(window) => self.pipeline.lock_unless_replaced(&window),
                WindowOutcome::NeedsLock => Some(self.pipeline.lock()),
            };
            // If the lock was not taken, another writer has opened a window.
            if let Some(state) = lock {
                let logged = self.log_with_lock(state, &write, &mut target, size, durability)?;
                self.complete(logged, &target, size, durability)?;
                break;
            }
        }
        if !self.context.health.is_sound() {
            self.free_space(&write);
        }
        Ok(())
    }

    /// Inserts a write that is in the log. Returns once it is visible, which it becomes after its sync
    /// if it requests one.
    fn complete(
        &self,
        logged: LoggedWrite<'_>,
        target: &WriteTarget<'_>,
        size: WriteSize,
        durability: Durability,
    ) -> Result<()> {
        let LoggedWrite { pending, begin, end, requests } = logged;
        let creation = requests.and_then(|requests| requests.begin(&self.pipeline));
        self.insert_logged(pending, begin, target, |pending| match end {
            // A write that waits for a sync is inserted before it, so that the thread that syncs can make all
            // writes of the sync visible.
            Some(end) if self.syncs_itself(durability) => {
                pending.finish_synced(|| self.pipeline.sync_to(end))
            }
            _ => pending.finish(),
        })?;
        self.finish(size, durability, creation)
    }

    /// Inserts a write into the memtables, and calls `finish`, which makes it visible.
    #[inline(always)]
    fn insert_logged<'a>(
        &self,
        pending: PendingWrite<'a>,
        begin: Option<Lsn>,
        target: &WriteTarget<'_>,
        finish: impl FnOnce(PendingWrite<'a>) -> Result<()>,
    ) -> Result<()> {
        let (first, _) = pending.seqs();
        // 2. Insert into the memtables.
        let needs_reclaim = self.insert(target, first, begin);
        // 3. Become visible.
        finish(pending)?;
        if needs_reclaim {
            self.reclaim_hidden(target, first);
        }
        Ok(())
    }

    /// Returns true if a write with this durability waits for a sync before becoming visible.
    #[inline]
    fn syncs_itself(&self, durability: Durability) -> bool {
        match durability {
            Durability::Sync => true,
            // Without a log thread, the sync cannot be deferred.
            Durability::Interval(_) => self.context.is_inline(),
            Durability::None | Durability::Process => false,
        }
    }

    /// Counts a visible write, and requests the background work that is due after it.
    ///
    /// # Errors
    /// A sync that failed meanwhile may have lost the write.
    #[inline(always)]
    fn finish(
        &self,
        WriteSize { operations, user_bytes }: WriteSize,
        durability: Durability,
        creation: Option<SegmentCreation>,
    ) -> Result<()> {
        self.context.counters.add(Counter::Writes, operations);
        self.context.counters.add(Counter::UserBytesWritten, user_bytes as u64);
        if let Durability::Interval(interval) = durability {
            self.pipeline.sync_within(interval);
        }
        if let Some(creation) = creation {
            self.pipeline.request_creation(creation);
        }
        if durability == Durability::None { Ok(()) } else { self.context.health.check_synced() }
    }

    /// Notes the time of the first entry of a memtable, if deletes have a deadline.
    #[inline]
    fn note_age(&self, target: &WriteTarget<'_>) {
        if self.context.settings.delete_persistence_micros().is_none() {
            return;
        }
        target.states().for_each(|state| {
            if state.active.note_entry(|| self.context.clock.now_micros()) {
                // The flush thread may be asleep without a deadline.
                self.context.signals.wake();
            }
        });
    }

    /// Inserts one operation of a batch that began at `first`, while no readers exist.
    pub(crate) fn replay_one(&self, memtable: &Memtable, op: &Op<'_>, seq: SeqNo, first: SeqNo) {
        // Every reader will read at or above the last replayed number. This remains true after the
        // replay, when a drain may still use the bounds that this write leaves behind.
        let later_readers = || seq;
        let inserted = insert_one(memtable, op, seq, first, later_readers);
        if let (true, Some(key)) = (inserted.needs_reclaim, op.point_key()) {
            memtable.reclaim_hidden(key, seq, later_readers);
        }
        if inserted.needs_drain {
            self.context.signals.drains.wake();
        }
    }
}
