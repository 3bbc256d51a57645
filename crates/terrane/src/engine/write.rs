//! Writing: admission, log, memtables, visibility.
//!
//! | module | one line |
//! |---|---|
//! | `target` | the memtables that a write goes to |
//! | `insert` | inserts operations into memtables |
//! | `delays` | the sleep that delayed writers owe |
//! | `queue` | writers one after the other, as in LevelDB |
//! | `slow_down` | delays writers to trees that fall behind |
//! | `stall` | stops writers until a tree has space; replaces full memtables |

mod delays;
mod insert;
mod queue;
mod slow_down;
mod stall;
mod target;

use std::sync::Arc;

use terrane_memtable::{InsertOutcome, Memtable};

use crate::batch::{Op, Ops};
use crate::durability::Durability;
use crate::engine::catalog::Catalog;
use crate::engine::context::Context;
use crate::engine::jobs::Jobs;
use crate::engine::pipeline::{PendingWrite, Pipeline, PipelineState};
use crate::engine::tree::Tree;
use crate::error::{Error, Result};
use crate::options::WritePath;
use crate::stats::Counter;
use crate::types::{Lsn, MAX_SEQ, SeqNo};
use crate::wal::{LogWriter, SegmentRequests, WantedSpare};
use delays::Delays;
use insert::{InsertGroup, record_put};
use queue::WriteQueue;
use target::WriteTarget;

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
}

/// A write that has sequence numbers and is in the log.
struct LoggedWrite<'a> {
    pending: PendingWrite<'a>,
    first: SeqNo,
    /// The end of the record of the write; `None` if the write is not logged.
    end: Option<Lsn>,
    requests: LogRequests,
}

/// Work on the log that a write found due and leaves to background threads.
#[derive(Default)]
struct LogRequests {
    ahead: Option<SegmentRequests>,
    spare: Option<WantedSpare>,
}

impl LogRequests {
    #[inline]
    fn of(log: Option<&mut LogWriter>, durability: Durability) -> Self {
        let Some(log) = log else { return Self::default() };
        let spare = log.wanted_spare();
        // A synced write goes to the file by a system call and needs no prepared pages; its sync
        // covers the header as well.
        let ahead = match durability {
            Durability::Process | Durability::Interval(_) => log.wanted_ahead(),
            Durability::None | Durability::Sync => None,
        };
        Self { ahead, spare }
    }
}

impl Writer {
    pub(crate) fn new(
        context: &Arc<Context>,
        pipeline: &Arc<Pipeline>,
        catalog: &Arc<Catalog>,
        jobs: &Arc<Jobs>,
    ) -> Self {
        Self {
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
        match self.context.settings.write_path {
            WritePath::Concurrent => self.write_concurrently(write, durability),
            WritePath::Queue => self.write_queued(write, durability),
        }
    }

    fn write_queued(&self, write: Write<'_>, durability: Durability) -> Result<()> {
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
        self.context.health.check_writable()?;
        let (operations, user_bytes) = write.check()?;
        if operations == 0 {
            return if durability == Durability::Sync { self.pipeline.sync_log() } else { Ok(()) };
        }
        let mut target = WriteTarget::new(write);
        // 1. Wait for memtable space.
        let mut state = self.wait_for_space(&mut target, user_bytes)?;
        // 2. Take sequence numbers, and append to the log.
        let logged = self.log(&mut state, &write, &mut target, operations, durability);
        drop(state);
        let logged = logged.inspect_err(|_| self.context.health.report_failure())?;
        let LoggedWrite { pending, first, end, requests: LogRequests { ahead, spare } } = logged;
        if let Some(ahead) = ahead {
            self.pipeline.prepare(ahead);
        }
        // 3. Sync, before any reader can see the write.
        let synced = self.sync(end, durability);
        // 4. Insert into the memtables.
        if synced.is_ok() {
            self.insert(&target, first);
        }
        // 5. Become visible. A write whose sync failed was not inserted, but must finish too,
        //    because later writes wait for its sequence numbers.
        pending.finish()?;
        self.finish(operations, user_bytes, durability, spare);
        synced.inspect_err(|error| self.context.health.fail(error.clone()))?;
        // A sync that failed since `check_writable` may have lost this write.
        if durability == Durability::None { Ok(()) } else { self.context.health.check_synced() }
    }

    /// Assigns sequence numbers to a write, appends it to the log and enters it into the commit queue.
    #[inline]
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
        target.take_memtables(&self.catalog, last)?;
        self.record_age(state, write, durability);
        let end = match durability {
            Durability::None => None,
            _ => {
                let is_synced = durability == Durability::Sync;
                let appended = append(state.log.as_mut(), write, first, is_synced);
                let end = appended.inspect_err(|error| self.pipeline.check_log(error))?;
                // The memory that was prefetched before the append has arrived by now. Using it any
                // earlier would wait for it with the lock held.
                target.prefetch_version();
                Some(end)
            }
        };
        state.next_seq = last + 1;
        let pending = self.pipeline.enter(state, last)?;
        let log = state.log.as_mut().filter(|_| end.is_some());
        let requests = LogRequests::of(log, durability);
        Ok(LoggedWrite { pending, first, end, requests })
    }

    #[inline]
    fn sync(&self, end: Option<Lsn>, durability: Durability) -> Result<()> {
        match (durability, end) {
            (Durability::Sync, Some(end)) => self.pipeline.sync_to(end),
            // Without a log thread, the sync cannot be deferred.
            (Durability::Interval(_), Some(end)) if self.context.is_inline() => {
                self.pipeline.sync_to(end)
            }
            _ => Ok(()),
        }
    }

    /// Counts a visible write, and requests the background work that is due after it.
    #[inline]
    fn finish(
        &self,
        operations: u64,
        user_bytes: usize,
        durability: Durability,
        spare: Option<WantedSpare>,
    ) {
        self.context.counters.add(Counter::Writes, operations);
        self.context.counters.add(Counter::UserBytesWritten, user_bytes as u64);
        if let Durability::Interval(interval) = durability {
            self.pipeline.sync_within(interval);
        }
        if let Some(spare) = spare {
            self.pipeline.request_spare(spare);
        }
    }

    /// Records the time of the first entry of a memtable and of a log segment, if deletes have a
    /// deadline. Called with the writer lock.
    #[inline]
    fn record_age(&self, state: &mut PipelineState, write: &Write<'_>, durability: Durability) {
        if self.context.settings.delete_persistence_micros().is_none() {
            return;
        }
        let now = || self.context.clock.now_micros();
        let record = |tree: &Arc<Tree>| {
            if tree.state().active.record_entry(now) {
                // The flush thread may be asleep without a deadline.
                self.context.signals.wake();
            }
        };
        match write {
            Write::One(tree, _) => record(tree),
            Write::Batch(batch) => {
                let trees = self.catalog.trees();
                batch.keyspaces().iter().filter_map(|id| trees.get(id)).for_each(record);
            }
        }
        if let (Some(log), true) = (&mut state.log, durability != Durability::None) {
            log.note_record(now);
        }
    }

    /// Inserts the operations into their memtables.
    fn insert(&self, target: &WriteTarget<'_>, first: SeqNo) {
        match target {
            WriteTarget::One { op, tree, state } => {
                self.context.counters.add_some(Counter::Deletes, u64::from(op.is_delete()));
                record_put(tree, op);
                self.insert_one(&state.active.memtable, op, first, first);
            }
            WriteTarget::Batch { batch, memtables } => {
                // The encoding is valid: `Write::check` has checked it.
                let ops = batch.checked().map(Ops::new).into_iter().flatten().flatten();
                let mut deletes = 0;
                let mut group = InsertGroup::default();
                for (seq, (keyspace, op)) in (first..).zip(ops) {
                    deletes += u64::from(op.is_delete());
                    let found = memtables.iter().find(|(tree, _)| tree.id == keyspace);
                    if let Some((tree, memtable)) = found {
                        record_put(tree, &op);
                        if !group.take(memtable, &op, seq) {
                            self.insert_one(memtable, &op, seq, first);
                        }
                    }
                }
                group.insert();
                self.context.counters.add_some(Counter::Deletes, deletes);
            }
        }
    }

    /// Inserts one operation, of a batch that began at `first`, into a memtable, which may reclaim
    /// versions that no reader needs.
    #[inline]
    pub(crate) fn insert_one(&self, memtable: &Memtable, op: &Op<'_>, seq: SeqNo, first: SeqNo) {
        let inserted = insert_one(memtable, op, seq, first, || self.pipeline.horizon());
        if memtable.front_level().is_some() {
            self.count_inserted(inserted);
        }
    }

    /// Counts an insertion into a FloDB memtable, and wakes a drain thread if the memtable needs to
    /// be drained.
    fn count_inserted(&self, inserted: InsertOutcome) {
        if inserted.is_in_membuffer {
            self.context.counters.add(Counter::MembufferWrites, 1);
        }
        if inserted.reclaimed > 0 {
            self.context.counters.add(Counter::UpdatesInPlace, inserted.reclaimed as u64);
        }
        if inserted.wants_drain {
            self.context.signals.drains.wake();
        }
    }
}

fn append(
    log: Option<&mut LogWriter>,
    write: &Write<'_>,
    first: SeqNo,
    is_synced: bool,
) -> Result<Lsn> {
    let Some(log) = log else { return Err(Error::ReadOnly) };
    match write {
        Write::One(tree, op) => log.append_one(first, tree.id, op, is_synced),
        Write::Batch(batch) => log.append(first, &[batch.checked()?], is_synced),
    }
}
