//! Queues writers, one of which writes for all (LevelDB; FloDB paper, §2.2).
//!
//! This is the baseline with which FloDB is compared, and has no other use: by default writers
//! insert concurrently. A writer that finds the queue empty becomes the leader. It takes the
//! waiting writers with the same durability, writes their operations as one batch and notifies
//! them; then the next waiting writer leads. So only one thread at a time writes to the log and to
//! the memtables, and the operations of a group are inserted together.
//!
//! The writes of an event listener do not enter the queue, because they and the leader might wait
//! for each other there.
//!
//! Each writer copies its operations into the queue. The writes of a group that fails are repeated
//! one by one, so that each writer gets its own result.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::base::durability::Durability;
use crate::base::error::Result;
use crate::engine::pipeline::write_panicked;
use crate::files::batch::Batch;

/// The maximum size of a group with more than one writer, in user bytes.
const GROUP_BYTES: usize = 1 << 20;

/// The waiting writers, the leader first.
#[derive(Debug, Default)]
pub(super) struct WriteQueue {
    waiting: Mutex<VecDeque<Arc<QueuedWrite>>>,
}

/// A write in the queue.
#[derive(Debug)]
struct QueuedWrite {
    batch: Batch,
    durability: Durability,
    turn: Mutex<Turn>,
    changed: Condvar,
}

#[derive(Debug)]
enum Turn {
    Waits,
    Leads,
    Done(Result<()>),
}

impl QueuedWrite {
    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notify(&self, turn: Turn) {
        *self.turn() = turn;
        self.changed.notify_one();
    }

    /// Waits for the result. Returns `None` if this writer must lead.
    fn wait(&self) -> Option<Result<()>> {
        let mut turn = self.turn();
        loop {
            match &*turn {
                Turn::Waits => {}
                Turn::Leads => return None,
                Turn::Done(result) => return Some(result.clone()),
            }
            turn = self.changed.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl WriteQueue {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<QueuedWrite>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enqueues a valid batch. `write` writes a batch, in the thread of the writer that leads.
    pub(super) fn write(
        &self,
        batch: Batch,
        durability: Durability,
        write: impl Fn(&Batch) -> Result<()>,
    ) -> Result<()> {
        let turn = Mutex::new(Turn::Waits);
        let own = Arc::new(QueuedWrite { batch, durability, turn, changed: Condvar::new() });
        let is_first = {
            let mut waiting = self.lock();
            waiting.push_back(Arc::clone(&own));
            waiting.len() == 1
        };
        if !is_first && let Some(result) = own.wait() {
            return result;
        }
        let mut group = LedGroup { queue: self, writes: self.group(), results: Vec::new() };
        group.results = write_group(&group.writes, write);
        let own_result = group.results.first().cloned();
        drop(group);
        own_result.unwrap_or_else(|| Err(write_panicked()))
    }

    /// Returns the writes at the front that are written together. They stay in the queue until they
    /// are finished.
    fn group(&self) -> Vec<Arc<QueuedWrite>> {
        let waiting = self.lock();
        let durability = waiting.front().map(|first| first.durability);
        let mut bytes = 0;
        let alike = waiting.iter().take_while(|one| Some(one.durability) == durability);
        let group = alike.take_while(|one| {
            let fits = bytes == 0 || bytes + one.batch.user_bytes() <= GROUP_BYTES;
            bytes += one.batch.user_bytes().max(1);
            fits
        });
        group.cloned().collect()
    }
}

fn write_group(
    group: &[Arc<QueuedWrite>],
    write: impl Fn(&Batch) -> Result<()>,
) -> Vec<Result<()>> {
    let alone = |one: &Arc<QueuedWrite>| write(&one.batch);
    if let [_] = group {
        return group.iter().map(alone).collect();
    }
    let mut together = Batch::default();
    group.iter().for_each(|one| together.append(&one.batch));
    match write(&together) {
        Ok(()) => vec![Ok(()); group.len()],
        Err(_) => group.iter().map(alone).collect(),
    }
}

/// A group that is being written. When it is dropped, even by a panic, its writers get their results
/// and the next writer leads.
struct LedGroup<'a> {
    queue: &'a WriteQueue,
    writes: Vec<Arc<QueuedWrite>>,
    /// The results, in the order of the writes. A write without a result was abandoned by a panic.
    results: Vec<Result<()>>,
}

impl Drop for LedGroup<'_> {
    fn drop(&mut self) {
        let mut waiting = self.queue.lock();
        waiting.drain(..self.writes.len());
        let next = waiting.front().cloned();
        drop(waiting);
        if let Some(next) = next {
            next.notify(Turn::Leads);
        }
        let mut results = std::mem::take(&mut self.results).into_iter();
        for one in &self.writes {
            one.notify(Turn::Done(results.next().unwrap_or_else(|| Err(write_panicked()))));
        }
    }
}
