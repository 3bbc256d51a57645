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
use crate::base::types::{EntryKind, Lsn, SeqNo};
use crate::engine::catalog::Catalog;
use crate::engine::context::Context;
use crate::engine::jobs::Jobs;
use crate::engine::pipeline::{PendingWrite, Pipeline};
use crate::engine::tree::{ActiveMemtable, Tree, TreeState};
use crate::files::batch::Op;
use crate::files::wal::{LogWriter, SegmentCreation, SegmentRequests, payload_at};
use crate::options::WritePath;
use delays::Delays;
use in_window::WindowOutcome;
use insert::{InsertGroup, note_put, note_value};
use pointers::Pointers;
use queue::WriteQueue;
use target::{WriteTarget, batch_operations};

pub(crate) use commit::{Commit, CommitCondition};
pub(crate) use deferred::collect_delays;
pub(crate) use insert::insert_one;
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
    first: SeqNo,
    /// Where its record begins; `None` if the write is not logged.
    begin: Option<Lsn>,
    /// The end of the record of the write; `None` if the write is not logged.
    end: Option<Lsn>,
    requests: LogRequests,
}

/// The size of a write.
#[derive(Debug, Clone, Copy)]
struct WriteSize {
    operations: u64,
    user_bytes: usize,
}

/// Log work that a write finds due and leaves to background threads.
#[derive(Default)]
struct LogRequests {
    segment: Option<SegmentRequests>,
    creation: Option<SegmentCreation>,
}

impl LogRequests {
    #[inline]
    fn of(log: Option<&mut LogWriter>, durability: Durability) -> Self {
        let Some(log) = log else { return Self::default() };
        let creation = log.due_creation();
        // A synced write reaches the file by a system call and needs no prepared pages; its sync
        // also covers the header.
        let segment = match durability {
            Durability::Process | Durability::Interval(_) => log.due_requests(),
            Durability::None | Durability::Sync => None,
        };
        Self { segment, creation }
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
        // 1. Assign sequence numbers, and place the record in the log.
        self.slow_down(&mut target, user_bytes)?;
        let logged = loop {
            let lock = match self.log_in_window(&write, &mut target, size, durability)? {
                WindowOutcome::Logged(logged) => break logged,
                WindowOutcome::Closed => self.pipeline.lock_if_no_window(),
                WindowOutcome::Full(window) => self.pipeline.lock_unless_replaced(&window),
                WindowOutcome::NeedsLock => Some(self.pipeline.lock()),
            };
            // If the lock was not taken, another writer has opened a window.
            if let Some(state) = lock {
                break self.log_with_lock(state, &write, &mut target, size, durability)?;
            }
        };
        self.complete(logged, &target, size, durability)?;
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
        let LoggedWrite { pending, first, begin, end, requests } = logged;
        let LogRequests { segment, creation } = requests;
        if let Some(segment) = segment {
            self.pipeline.prepare(segment);
        }
        // 2. Insert into the memtables.
        let needs_reclaim = self.insert(target, first, begin);
        // 3. Become visible. A write that waits for a sync is inserted before it, so that the thread
        //    that syncs can make all writes of the sync visible.
        match end {
            Some(end) if self.syncs_itself(durability) => {
                pending.finish_synced(|| self.pipeline.sync_to(end))?;
            }
            _ => pending.finish()?,
        }
        if needs_reclaim {
            self.reclaim_hidden(target, first);
        }
        self.finish(size.operations, size.user_bytes, durability, creation);
        // A sync that failed since `check_writable` may have lost this write.
        if durability == Durability::None { Ok(()) } else { self.context.health.check_synced() }
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
    #[inline]
    fn finish(
        &self,
        operations: u64,
        user_bytes: usize,
        durability: Durability,
        creation: Option<SegmentCreation>,
    ) {
        self.context.counters.add(Counter::Writes, operations);
        self.context.counters.add(Counter::UserBytesWritten, user_bytes as u64);
        if let Durability::Interval(interval) = durability {
            self.pipeline.sync_within(interval);
        }
        if let Some(creation) = creation {
            self.pipeline.request_creation(creation);
        }
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

    /// Inserts the operations into their memtables. `begin` is where their record begins in the log.
    /// Returns true if [`Self::reclaim_hidden`] has something to do once the write is visible.
    fn insert(&self, target: &WriteTarget<'_>, first: SeqNo, begin: Option<Lsn>) -> bool {
        debug_assert!(target.states().all(|state| !state.active.is_unwritten()));
        match target {
            WriteTarget::One { op, tree, state } => {
                self.context.counters.add_some(Counter::Deletes, u64::from(op.is_delete()));
                note_put(tree, op);
                if let Some(begin) = begin.filter(|_| state.active.notes_values()) {
                    let at =
                        |value: &[u8]| payload_at(begin, op.encoded_len(tree.id) - value.len());
                    if self.insert_noted((tree, state), op, first, at) {
                        return false;
                    }
                }
                self.insert_one(&state.active, op, (first, first), begin.is_some())
            }
            WriteTarget::Batch { batch, trees } => {
                // The encoding is valid: `Write::check` has checked it.
                let encoded = batch.checked().unwrap_or_default();
                let mut deletes = 0;
                let mut needs_reclaim = false;
                let mut group = InsertGroup::default();
                for (seq, op, (tree, state)) in batch_operations(encoded, trees, first) {
                    let memtable = &state.active.memtable;
                    deletes += u64::from(op.is_delete());
                    note_put(tree, &op);
                    let begin_noted = begin.filter(|_| state.active.notes_values());
                    let is_inserted = begin_noted.is_some_and(|begin| {
                        // The value is part of the encoded batch.
                        let within = |value: &[u8]| value.as_ptr().addr() - encoded.as_ptr().addr();
                        let at = |value: &[u8]| payload_at(begin, within(value));
                        self.insert_noted((tree, state), &op, seq, at)
                    });
                    if !is_inserted && !group.take(memtable, &op, seq) {
                        let is_logged = begin.is_some();
                        needs_reclaim |=
                            self.insert_one(&state.active, &op, (seq, first), is_logged);
                    }
                }
                group.insert();
                self.context.counters.add_some(Counter::Deletes, deletes);
                needs_reclaim
            }
        }
    }

    /// Inserts one operation of a batch that began at `first` into a memtable, which may reclaim
    /// versions that no reader needs. Returns true if the key has hidden versions to reclaim once
    /// the batch is visible.
    #[inline]
    fn insert_one(
        &self,
        active: &ActiveMemtable,
        op: &Op<'_>,
        (seq, first): (SeqNo, SeqNo),
        is_logged: bool,
    ) -> bool {
        if !is_logged && matches!(op, Op::DeleteRange { .. }) {
            active.note_unlogged_range();
        }
        let memtable = &*active.memtable;
        let inserted = insert_one(memtable, op, seq, first, self.pipeline.readers());
        if memtable.front_level().is_some() {
            self.count_inserted(inserted);
        }
        inserted.needs_reclaim
    }

    /// Notes the place in the log of a put's value, which `at` returns, and inserts a pointer to it. Returns
    /// false if the value must be inserted instead.
    #[inline(never)]
    fn insert_noted(
        &self,
        (tree, state): (&Tree, &TreeState),
        op: &Op<'_>,
        seq: SeqNo,
        at: impl Fn(&[u8]) -> Lsn,
    ) -> bool {
        note_value(&state.active, op, seq, &at);
        match (op.point_key(), self.pointers.pointer_to((tree, state), op, at)) {
            (Some(key), Some(pointer)) => {
                // A memtable with pointers reclaims no versions.
                state.active.memtable.insert(key, seq, EntryKind::Separated, &pointer);
                true
            }
            _ => false,
        }
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
