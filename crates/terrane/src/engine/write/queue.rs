//! Writers in a queue, one of whom writes for all that wait, as in LevelDB (FloDB paper, §2.2).
//!
//! The way that FloDB is held against, and no other reason to have it: writers that run at the same
//! time insert at the same time otherwise. Who finds the queue empty leads: it takes what waits behind
//! it with the same durability, writes all of that as one batch, and tells the others; then the first
//! that came meanwhile leads. So there is one thread at a time in the log and in the memtables, and what
//! it inserts is inserted together.
//!
//! Who listens to events may write, also from within the write that an event is about: what the thread
//! that leads writes meanwhile does not wait for itself.
//!
//! Each writer's operations are copied once for it. A group that is refused is written again one by one,
//! for each to have its own answer.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::batch::Batch;
use crate::durability::Durability;
use crate::engine::Engine;
use crate::engine::write::{Write, given_up};
use crate::error::Result;

/// A group is written when it has so many bytes, at the latest.
const GROUP_BYTES: usize = 1 << 20;

/// The writers that wait, the one that leads first.
#[derive(Debug, Default)]
pub(crate) struct WriteQueue {
    waiting: Mutex<VecDeque<Arc<Waiting>>>,
    /// The thread that leads.
    leader: Mutex<Option<ThreadId>>,
}

/// A writer in the queue.
#[derive(Debug)]
struct Waiting {
    batch: Batch,
    durability: Durability,
    turn: Mutex<Turn>,
    told: Condvar,
}

#[derive(Debug)]
enum Turn {
    Waits,
    Leads,
    Done(Result<()>),
}

impl Waiting {
    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, turn: Turn) {
        *self.turn() = turn;
        self.told.notify_one();
    }

    /// Waits for its turn: what became of it, or nothing if it is to lead.
    fn wait(&self) -> Option<Result<()>> {
        let mut turn = self.turn();
        loop {
            match &*turn {
                Turn::Waits => {}
                Turn::Leads => return None,
                Turn::Done(result) => return Some(result.clone()),
            }
            turn = self.told.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl WriteQueue {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Waiting>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leader(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.leader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those at the front that are written together; they stay there until they are told.
    fn group(&self) -> Vec<Arc<Waiting>> {
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

/// A group that is being written. However that ends, the others are told and the next one leads.
struct Leading<'a> {
    queue: &'a WriteQueue,
    group: Vec<Arc<Waiting>>,
    /// What becomes of each; those of which nothing is known by the end were given up.
    results: Vec<Result<()>>,
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        *self.queue.leader() = None;
        let mut waiting = self.queue.lock();
        waiting.drain(..self.group.len());
        let next = waiting.front().cloned();
        drop(waiting);
        if let Some(next) = next {
            next.tell(Turn::Leads);
        }
        let mut results = std::mem::take(&mut self.results).into_iter();
        for one in &self.group {
            one.tell(Turn::Done(results.next().unwrap_or_else(|| Err(given_up()))));
        }
    }
}

impl Engine {
    /// Writes in turn with all others; see [`Engine::write`].
    pub(crate) fn write_in_turn(&self, write: Write<'_>, durability: Durability) -> Result<()> {
        if *self.write_queue.leader() == Some(thread::current().id()) {
            return self.write_at_once(write, durability);
        }
        let batch = match write {
            Write::One(tree, op) => {
                let mut batch = Batch::default();
                batch.add(tree.id, op);
                batch
            }
            Write::Batch(batch) => batch.clone(),
        };
        // What is wrong with it is its own matter, and not that of a group.
        batch.checked()?;
        let turn = Mutex::new(Turn::Waits);
        let own = Arc::new(Waiting { batch, durability, turn, told: Condvar::new() });
        let is_first = {
            let mut waiting = self.write_queue.lock();
            waiting.push_back(Arc::clone(&own));
            waiting.len() == 1
        };
        if !is_first && let Some(result) = own.wait() {
            return result;
        }
        *self.write_queue.leader() = Some(thread::current().id());
        let group = self.write_queue.group();
        let mut leading = Leading { queue: &self.write_queue, group, results: Vec::new() };
        leading.results = self.write_group(&leading.group, durability);
        let own_result = leading.results.first().cloned();
        drop(leading);
        own_result.unwrap_or_else(|| Err(given_up()))
    }

    fn write_group(&self, group: &[Arc<Waiting>], durability: Durability) -> Vec<Result<()>> {
        let alone = |one: &Arc<Waiting>| self.write_at_once(Write::Batch(&one.batch), durability);
        if let [_] = group {
            return group.iter().map(alone).collect();
        }
        let mut together = Batch::default();
        group.iter().for_each(|one| together.append(&one.batch));
        match self.write_at_once(Write::Batch(&together), durability) {
            Ok(()) => vec![Ok(()); group.len()],
            Err(_) => group.iter().map(alone).collect(),
        }
    }
}
