//! Hands out bandwidth to flushes and merges, a piece at a time.
//!
//! A merge asks after each piece whether it may go on. Policy says which share each merge has
//! ([`terrane_policy::scheduler`]), and is asked again when a merge comes, goes, or has come some
//! way. A merge without a share rests where it is, in the middle of a table, until it has one
//! again; it holds its thread and its buffers then, and nothing that readers or flushes need.
//!
//! Shares are kept by virtual time: of those that want to go on, the merge that was served least
//! for its share goes first. No more merges go on at once than there are places, and no more is
//! written than the [budget](IoBudget), of which flushes take what they need before any merge.

mod budget;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use terrane_policy::{Merge, allocate};

use crate::io_budget::IoBudget;
use crate::stats::{Counter, Counters};
use budget::Bucket;

/// A merge is served so much more than another one before it has to let that go first: at most so
/// many bytes, and where the budget is small, what it gives in this time.
const AHEAD_BYTES: f64 = (1 << 20) as f64;
const AHEAD_SECONDS: f64 = 0.02;

/// Shares are decided anew after so many bytes of any merge, by the same rule.
const DECIDE_EVERY_BYTES: f64 = (4 << 20) as f64;
const DECIDE_EVERY_SECONDS: f64 = 0.08;

/// Who waits looks again after this time, in case the database is closed meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Who waits and who goes on.
#[derive(Debug)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
    /// Merges that go on at the same time.
    places: usize,
    counters: Arc<Counters>,
}

#[derive(Debug)]
struct State {
    bucket: Bucket,
    merges: Vec<Entry>,
    next_id: u64,
    /// Flushes that wait for the budget.
    flushes_waiting: usize,
    undecided_bytes: u64,
}

/// A merge that has begun.
#[derive(Debug, Clone, Copy)]
struct Entry {
    merge: Merge,
    level: usize,
    share: f64,
    /// Bytes served over the share that it had: virtual time.
    served: f64,
    turn: Turn,
}

/// What a merge is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// It has a place, and is at work.
    Working,
    /// It waits to go on.
    Waiting,
}

/// How far a merge has come since it asked last.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Progress {
    /// Input that is left, in bytes.
    pub(crate) remaining_bytes: u64,
    /// How far its level is full again.
    pub(crate) refilled: f64,
    /// What it wrote since, in bytes.
    pub(crate) written_bytes: u64,
}

/// Told to stop while waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stopped;

impl Gate {
    pub(crate) fn new(places: usize, budget: IoBudget, counters: Arc<Counters>) -> Self {
        let users = user_bytes(&counters);
        let state = State {
            bucket: Bucket::new(budget, users, Instant::now()),
            merges: Vec::new(),
            next_id: 1,
            flushes_waiting: 0,
            undecided_bytes: 0,
        };
        Self { state: Mutex::new(state), changed: Condvar::new(), places, counters }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn budget(&self) -> IoBudget {
        self.lock().bucket.budget()
    }

    pub(crate) fn set_budget(&self, budget: IoBudget) {
        self.lock().bucket.set_budget(budget, Instant::now());
        self.changed.notify_all();
    }

    /// Has all who wait look whether they should stop.
    pub(crate) fn wake(&self) {
        drop(self.lock());
        self.changed.notify_all();
    }

    /// Whether a merge out of `level` that begins now would go on at once. Beyond the merges that
    /// there are places for, only one of each level may begin: it would be picked early, and what
    /// it takes is kept from others.
    pub(crate) fn takes(&self, merge: &Merge, level: usize) -> bool {
        let state = self.lock();
        let mut merges: Vec<Merge> = state.merges.iter().map(|entry| entry.merge).collect();
        let same_level = |entry: &Entry| entry.merge.tree == merge.tree && entry.level == level;
        if merges.len() >= self.places && state.merges.iter().any(same_level) {
            return false;
        }
        merges.push(Merge { id: state.next_id, is_running: false, ..*merge });
        allocate(&merges, self.places).last().is_some_and(|share| *share > 0.0)
    }

    /// A merge begins; it is to be gone through by the answer.
    pub(crate) fn enter(&self, merge: Merge, level: usize) -> Pass<'_> {
        let mut state = self.lock();
        let id = state.next_id;
        state.next_id += 1;
        let merge = Merge { id, ..merge };
        let (share, served, turn) = (0.0, 0.0, Turn::Waiting);
        state.merges.push(Entry { merge, level, share, served, turn });
        state.decide(self.places);
        drop(state);
        self.changed.notify_all();
        Pass { gate: self, id }
    }

    /// A flush has written so much, and waits for the budget.
    pub(crate) fn flush(
        &self,
        written_bytes: u64,
        should_stop: &dyn Fn() -> bool,
    ) -> Result<(), Stopped> {
        let mut state = self.lock();
        state.bucket.take(written_bytes);
        state.flushes_waiting += 1;
        let answer = loop {
            if should_stop() {
                break Err(Stopped);
            }
            match state.bucket.wait(user_bytes(&self.counters), Instant::now()) {
                None => break Ok(()),
                Some(wait) => state = self.wait(state, wait),
            }
        };
        state.flushes_waiting -= 1;
        if state.flushes_waiting == 0 {
            self.changed.notify_all();
        }
        answer
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, most: Duration) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout(state, most.min(LOOK_AGAIN));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// What users read and write by themselves: the log, and tables for reads.
fn user_bytes(counters: &Counters) -> u64 {
    counters.get(Counter::LogBytesWritten) + counters.get(Counter::TableBytesRead)
}

/// A merge on its way. It ends with the value.
#[derive(Debug)]
pub(crate) struct Pass<'a> {
    gate: &'a Gate,
    id: u64,
}

impl Pass<'_> {
    /// Returns when the merge may go on.
    pub(crate) fn go_on(
        &self,
        progress: Progress,
        should_stop: &dyn Fn() -> bool,
    ) -> Result<(), Stopped> {
        let gate = self.gate;
        let mut state = gate.lock();
        if state.note(self.id, progress) {
            state.decide(gate.places);
            gate.changed.notify_all();
        }
        loop {
            if should_stop() {
                return Err(Stopped);
            }
            let owed = state.bucket.wait(user_bytes(&gate.counters), Instant::now());
            let is_held = owed.is_some() || state.flushes_waiting > 0;
            if !is_held && state.may_go_on(self.id, gate.places) {
                if state.set_turn(self.id, Turn::Working) {
                    // Who is next may go on beside it.
                    gate.changed.notify_all();
                }
                return Ok(());
            }
            if state.set_turn(self.id, Turn::Waiting) {
                gate.changed.notify_all();
            }
            state = gate.wait(state, owed.unwrap_or(LOOK_AGAIN));
        }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        state.merges.retain(|entry| entry.merge.id != self.id);
        state.decide(self.gate.places);
        drop(state);
        self.gate.changed.notify_all();
    }
}

impl State {
    /// Shares by what policy says now.
    fn decide(&mut self, places: usize) {
        self.undecided_bytes = 0;
        let merges: Vec<Merge> = self.merges.iter().map(|entry| entry.merge).collect();
        let shares = allocate(&merges, places);
        // Who comes in begins where the others are: it has no claim on the time before.
        let now = self.virtual_time();
        for (entry, share) in self.merges.iter_mut().zip(shares) {
            if share > 0.0 && entry.share <= 0.0 {
                entry.served = entry.served.max(now);
            }
            entry.share = share;
            entry.merge.is_running = share > 0.0;
        }
    }

    /// That of the merge with a share that was served least.
    fn virtual_time(&self) -> f64 {
        let sharing = self.merges.iter().filter(|entry| entry.share > 0.0);
        let least = sharing.map(|entry| entry.served).fold(f64::INFINITY, f64::min);
        if least.is_finite() { least } else { 0.0 }
    }

    /// Answers whether shares should be decided anew.
    fn note(&mut self, id: u64, progress: Progress) -> bool {
        let Some(entry) = self.merges.iter_mut().find(|entry| entry.merge.id == id) else {
            return false;
        };
        let done = entry.merge.remaining_bytes.saturating_sub(progress.remaining_bytes);
        entry.merge.remaining_bytes = progress.remaining_bytes;
        entry.merge.refilled = progress.refilled;
        if entry.share > 0.0 {
            entry.served += done as f64 / entry.share;
        }
        self.bucket.take(progress.written_bytes);
        self.undecided_bytes += done;
        self.undecided_bytes as f64 >= self.at_most(DECIDE_EVERY_BYTES, DECIDE_EVERY_SECONDS)
    }

    /// `bytes`, or what the budget gives in `seconds`, if that is less.
    fn at_most(&self, bytes: f64, seconds: f64) -> f64 {
        self.bucket.rate().map_or(bytes, |rate| bytes.min(rate * seconds))
    }

    /// Whether there is a place for a merge, and it is its turn.
    fn may_go_on(&self, id: u64, places: usize) -> bool {
        let Some(own) = self.merges.iter().find(|entry| entry.merge.id == id) else {
            return true;
        };
        let others = self.merges.iter().filter(|entry| entry.merge.id != id && entry.share > 0.0);
        let (mut working, mut least) = (0, f64::INFINITY);
        for other in others {
            match other.turn {
                Turn::Working => working += 1,
                Turn::Waiting => least = least.min(other.served),
            }
        }
        if own.share <= 0.0 || working >= places {
            return false;
        }
        match own.turn {
            // Who is at work goes on for a while, unless there is room for all.
            Turn::Working if self.bucket.is_limited() || working + 1 == places => {
                own.served <= least + self.at_most(AHEAD_BYTES, AHEAD_SECONDS)
            }
            Turn::Working => true,
            Turn::Waiting => own.served <= least,
        }
    }

    /// Answers whether that is a change.
    fn set_turn(&mut self, id: u64, turn: Turn) -> bool {
        let entry = self.merges.iter_mut().find(|entry| entry.merge.id == id);
        entry.is_some_and(|entry| std::mem::replace(&mut entry.turn, turn) != turn)
    }
}
