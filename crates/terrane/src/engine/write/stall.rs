//! What holds writers up, and the change to a new memtable.
//!
//! A writer waits if a tree has fallen too far behind; why, is counted by cause. A memtable that is
//! full is replaced by the writer that finds it so.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use terrane_memtable::Memtable;
use terrane_policy::{Admission, Pressure, StallCause};

use crate::batch::Op;
use crate::engine::context::health::Trouble;
use crate::engine::tree::{Buffer, FullBuffer, Tree, TreeState};
use crate::engine::write::Goal;
use crate::engine::{Engine, JobKind, Writer};
use crate::error::{Error, Result};
use crate::event::{FlushReason, StallEffect};
use crate::stats::Counter;

/// Memory is counted anew after so many bytes were written.
const COUNT_EVERY_BYTES: usize = 256 << 10;

/// A stopped writer looks again at least this often, in case it missed to be told.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// A memtable with more room than this left is not measured at every write: that takes as long as
/// a good part of a write.
const MEASURED_BELOW: u64 = 64 << 10;

/// What an entry is taken to need beside its key and value, at most, until it is measured again.
const ENTRY_BYTES: u64 = 128;

/// A tree that writers must wait for, and why.
struct Stop {
    tree: Arc<Tree>,
    pressure: Pressure,
}

impl Engine {
    /// Takes the writer's lock once all trees of the write have room. The state of the goal is the
    /// current one then.
    pub(crate) fn make_room(
        &self,
        goal: &mut Goal<'_>,
        user_bytes: usize,
    ) -> Result<MutexGuard<'_, Writer>> {
        self.slow_down(goal, user_bytes)?;
        let mut writer = self.lock_writer();
        // Closing says so before it takes this lock: a write that is past here is before the end.
        self.health.check_writable()?;
        loop {
            match self.check_room(&mut writer, goal, user_bytes)? {
                None => break,
                Some(stop) => {
                    writer = self.wait_for_room(writer, &stop)?;
                    self.health.check_writable()?;
                }
            }
        }
        writer.uncounted_bytes += user_bytes;
        if writer.uncounted_bytes >= COUNT_EVERY_BYTES {
            writer.uncounted_bytes = 0;
            self.keep_to_budget(&mut writer);
        }
        Ok(writer)
    }

    /// Replaces full memtables. Answers what the write must wait for, if anything.
    fn check_room(
        &self,
        writer: &mut Writer,
        goal: &mut Goal<'_>,
        user_bytes: usize,
    ) -> Result<Option<Stop>> {
        let needed = |operations: u64| user_bytes as u64 + operations * ENTRY_BYTES;
        match goal {
            Goal::One { op, tree, state } => {
                tree.refresh(state);
                let needed = match op {
                    Op::DeleteRange { .. } => needed(1) + deleted_range_bytes(state),
                    _ => needed(1),
                };
                let stop = self.check_room_of(writer, tree, state, needed);
                tree.refresh(state);
                Ok(stop)
            }
            Goal::Batch { batch, .. } => {
                let trees = self.trees();
                let needed = needed(batch.len() as u64);
                for id in batch.keyspaces() {
                    let Some(tree) = trees.get(id) else { continue };
                    let state = tree.state();
                    let needed = match batch.deletes_ranges() {
                        true => needed + deleted_range_bytes(&state),
                        false => needed,
                    };
                    if let Some(stop) = self.check_room_of(writer, tree, &state, needed) {
                        return Ok(Some(stop));
                    }
                }
                Ok(None)
            }
        }
    }

    #[inline]
    fn check_room_of(
        &self,
        writer: &mut Writer,
        tree: &Arc<Tree>,
        state: &TreeState,
        needed: u64,
    ) -> Option<Stop> {
        let stop = |pressure| Some(Stop { tree: Arc::clone(tree), pressure });
        // As long as the active memtable has room writers go on, as a rule.
        if let Admission::Stop(pressure) = state.admission
            && pressure.stops_at_once()
        {
            return stop(pressure);
        }
        if state.active.take_room(needed) {
            return None;
        }
        let filled = state.active.memtable.filled_bytes() as u64;
        let limit = self.buffer_bytes(tree);
        if filled < limit {
            if state.active.memtable.wants_to_learn() {
                self.have_learn(writer, &state.active.memtable);
            }
            state.active.set_room(room_known(limit - filled, limit));
            return None;
        }
        if let Admission::Stop(pressure) = state.admission {
            return stop(pressure);
        }
        self.rotate(writer, tree, FlushReason::Full);
        None
    }

    /// Has a memtable begin to use what it waited with, once the writes are in it that have left the
    /// writer's lock. Happens once, to a memtable that had none
    /// of its kind before it.
    #[cold]
    fn have_learn(&self, writer: &Writer, memtable: &Memtable) {
        if self.commits.wait_visible(writer.next_seq - 1) {
            memtable.learn();
        }
    }

    /// The size at which a memtable is full: that of the design, but no more than a quarter of the
    /// memory budget, so that one can be filled while others are flushed.
    pub(crate) fn buffer_bytes(&self, tree: &Tree) -> u64 {
        let quarter = self.settings.memory_budget_bytes() / 4;
        tree.buffer_bytes().min(quarter)
    }

    /// Puts an empty memtable in the place of the active one, which then waits to be flushed.
    pub(crate) fn rotate(&self, writer: &mut Writer, tree: &Arc<Tree>, reason: FlushReason) {
        let position = writer.log.as_ref().map_or(crate::types::Lsn(0), crate::wal::LogWriter::end);
        let memtable = tree.next_memtable(&self.pool);
        let last_seq = writer.next_seq - 1;
        tree.replace(|mut state| {
            let buffer = Arc::new(Buffer::new(memtable, position));
            let before = std::mem::replace(&mut state.active, buffer);
            let memtable = Arc::clone(&before.memtable);
            let since_micros = before.since_micros();
            let full = FullBuffer { memtable, ends: position, last_seq, since_micros, reason };
            state.full.insert(0, Arc::new(full));
            state
        });
        self.work.wake();
    }

    /// Waits until background work has made room, or does it itself where that is inline.
    #[cold]
    fn wait_for_room<'a>(
        &'a self,
        writer: MutexGuard<'a, Writer>,
        stop: &Stop,
    ) -> Result<MutexGuard<'a, Writer>> {
        let Stop { tree, pressure } = stop;
        if !tree.was_told(StallEffect::Stopped, pressure) {
            // Without the lock: who listens may write. What is to be waited for is looked for again.
            drop(writer);
            self.tell_stalled(tree, StallEffect::Stopped, pressure);
            return Ok(self.lock_writer());
        }
        let kind = match pressure.cause {
            StallCause::ImmutableMemtables => JobKind::Flush,
            _ => JobKind::Compaction,
        };
        // Waiting would not help as long as work cannot be done.
        if let Some(Trouble { error: error @ Error::DiskFull(_), .. }) = self.health.trouble(kind) {
            return Err(error);
        }
        let start = Instant::now();
        let has_damage = !tree.jobs().unreadable.is_empty();
        let writer = if has_damage || self.is_inline() {
            drop(writer);
            // What cannot be read will not be merged, however long one waits. Looked at without
            // the lock, as it may read range tombstones.
            if let Some(error) = self.stuck_by(tree) {
                return Err(error);
            }
            None
        } else {
            Some(writer)
        };
        let writer = if self.is_inline() {
            if !self.run_one_job()? {
                if !self.is_working() {
                    return Err(Error::internal(format!("nothing to do about {pressure}")));
                }
                self.work.rest();
            }
            self.lock_writer()
        } else {
            // Who is told in between looks again after a while.
            let writer = writer.unwrap_or_else(|| self.lock_writer());
            let waited = self.room.wait_timeout(writer, LOOK_AGAIN);
            waited.unwrap_or_else(PoisonError::into_inner).0
        };
        let micros = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
        let cause = match pressure.cause {
            StallCause::Level0Runs => Counter::StallRunsMicros,
            StallCause::LevelRuns => Counter::StallLevelRunsMicros,
            StallCause::TotalRuns => Counter::StallTotalRunsMicros,
            StallCause::ImmutableMemtables => Counter::StallMemtablesMicros,
            StallCause::CompactionsDue => Counter::StallShapeMicros,
        };
        self.counters.add(cause, micros);
        self.counters.add(Counter::StalledWrites, 1);
        Ok(writer)
    }

    /// Keeps memtables and cache within the budget, and the log within its length.
    fn keep_to_budget(&self, writer: &mut Writer) {
        let total = self.size_cache();
        let trees = self.trees();
        let mut largest: Option<(usize, &Arc<Tree>)> = None;
        for tree in trees.values() {
            let state = tree.state();
            let active = state.active.memtable.filled_bytes();
            let can_rotate = !matches!(state.admission, Admission::Stop(_));
            if can_rotate && largest.is_none_or(|(bytes, _)| bytes < active) {
                largest = Some((active, tree));
            }
        }
        // Many small trees: flush the largest, before each of them is full.
        if total as u64 > self.settings.memory_budget_bytes() / 2
            && trees.len() > 1
            && let Some((_, tree)) = largest.filter(|(bytes, _)| *bytes > COUNT_EVERY_BYTES)
        {
            self.rotate(writer, tree, FlushReason::Memory);
        }
        self.shorten_log(writer, &trees);
    }

    /// Gives the cache what memtables and jobs leave of the budget. Returns what memtables take.
    pub(crate) fn size_cache(&self) -> usize {
        let trees = self.trees();
        let memtables: usize = trees.values().map(|tree| tree.state().memtable_bytes()).sum();
        let total = memtables + self.pool.free_bytes();
        self.ledger.memtables.store(total, Ordering::Relaxed);
        let budget = self.settings.memory_budget_bytes();
        let jobs = self.ledger.jobs.load(Ordering::Relaxed) as u64;
        let blocks = self.ledger.blocks.load(Ordering::Relaxed) as u64;
        let cached = self.tables.cache.used_bytes();
        // Blocks that are pinned and not cached take their room from the cache.
        let pinned = blocks.saturating_sub(cached);
        let others = (total as u64).saturating_add(jobs).saturating_add(pinned);
        let room = budget.saturating_sub(others).max(budget / 16);
        let capacity = self.tables.cache.capacity();
        // What is needed elsewhere is needed now; what is left over can wait until it is worth it.
        if room < capacity || room - capacity > budget / 64 {
            self.tables.cache.set_capacity(room);
        }
        total
    }

    /// Flushes the trees that keep the oldest part of a log that has become too long.
    fn shorten_log(&self, writer: &mut Writer, trees: &crate::engine::Trees) {
        let Some(log) = &writer.log else { return };
        let end = log.end();
        let limit = self.settings.log_bytes_max();
        for tree in trees.values() {
            let is_behind =
                tree.state().log_begins().is_some_and(|begins| end.0 - begins.0 > limit);
            if is_behind {
                self.rotate(writer, tree, FlushReason::LogLength);
            }
        }
    }

    /// Has writers that wait look again, and the cache take what a job has given back.
    pub(crate) fn tell_room(&self) {
        self.size_cache();
        self.tell_resumed();
        // Taken so that no writer is between looking and waiting.
        drop(self.lock_writer());
        self.room.notify_all();
    }
}

/// What a deleted range can take beside its ends: a number for each fragment that it covers, and as
/// much again for room to grow. All ranges of a batch together take no more.
fn deleted_range_bytes(state: &TreeState) -> u64 {
    state.active.memtable.range_tombstones().len() as u64 * 2 * size_of::<u64>() as u64
}

/// How much of what is left can be written before the memtable is measured again. What is written
/// may take more than it is thought to; and the design may ask for a smaller memtable by then.
fn room_known(left: u64, limit: u64) -> u64 {
    if left < MEASURED_BELOW { 0 } else { (left / 8).min(limit / 64) }
}
