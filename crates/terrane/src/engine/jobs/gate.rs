//! Distributes bandwidth to flushes and merges, a chunk at a time.
//!
//! When a thread is free, the gate decides which tree may begin a merge first ([`Gate::order`]). A
//! merge that has begun calls the gate after each chunk; the call returns when the merge may
//! continue. Policy assigns a share to each merge ([`terrane_policy::scheduler`]), and decides
//! again when a merge begins, ends or has progressed. A merge without a share pauses in the middle
//! of a table until it gets a share again. Meanwhile it keeps its thread and its buffers, but
//! nothing that readers or flushes need.
//!
//! Shares are enforced by virtual time: of the waiting merges, the merge that was served least
//! relative to its share goes first. At most `slots` merges run at once, and all jobs together
//! write at most as much as the [budget](IoBudget) allows. Flushes take from the budget before any
//! merge or ingest does.

mod budget;
#[cfg(test)]
mod tests;
mod time;
mod view;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use terrane_policy::{ScheduledMerge, Turns};

use crate::base::clock::Clock;
use crate::base::io_budget::IoBudget;
use crate::base::stats::{Counter, Counters};
use crate::engine::tree::JobId;
use budget::Bucket;
use time::GateTime;

/// How far a merge may be ahead of a waiting merge: this number of bytes, or the bytes that the
/// budget grants in `AHEAD_SECONDS` if they are fewer.
const AHEAD_BYTES: f64 = (1 << 20) as f64;
const AHEAD_SECONDS: f64 = 0.02;

/// How often shares are decided again: after this number of bytes, or after the bytes that the
/// budget grants in `DECIDE_EVERY_SECONDS` if they are fewer.
const DECIDE_EVERY_BYTES: f64 = (4 << 20) as f64;
const DECIDE_EVERY_SECONDS: f64 = 0.08;

/// How often, at least, a waiting job checks whether the database is closed.
const WAIT_MAX: Duration = Duration::from_millis(50);

/// Decides which jobs run and which wait.
#[derive(Debug)]
pub(super) struct Gate {
    state: Mutex<State>,
    time: GateTime,
    /// The number of merges that run concurrently.
    slots: usize,
    counters: Arc<Counters>,
}

#[derive(Debug)]
struct State {
    bucket: Bucket,
    merges: Vec<Entry>,
    turns: Turns,
    next_id: u64,
    /// The number of flushes that wait for the budget.
    flushes_waiting: usize,
    /// Bytes merged since shares were last decided.
    undecided_bytes: u64,
}

/// A merge that has begun.
#[derive(Debug, Clone, Copy)]
struct Entry {
    merge: ScheduledMerge,
    level: usize,
    share: f64,
    /// Bytes served, divided by the share at that time: virtual time.
    served: f64,
    turn: Turn,
    /// For reports on the job.
    begun: view::Begun,
}

/// Whether a merge runs or waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// It occupies a slot.
    Running,
    /// It waits for a slot, or for its turn.
    Waiting,
}

/// The progress of a merge since it last called the gate.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Progress {
    /// The remaining input, in bytes.
    pub(super) remaining_bytes: u64,
    /// The fraction of the input level that has been refilled.
    pub(super) refilled: f64,
    /// Bytes written since the last call.
    pub(super) written_bytes: u64,
}

/// The job was stopped while it waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stopped;

impl Gate {
    pub(super) fn new(
        slots: usize,
        budget: IoBudget,
        counters: Arc<Counters>,
        clock: &Arc<dyn Clock>,
    ) -> Self {
        let users = user_bytes(&counters);
        let time = GateTime::new(clock);
        let state = State {
            bucket: Bucket::new(budget, users, time.elapsed()),
            merges: Vec::new(),
            turns: Turns::default(),
            next_id: 1,
            flushes_waiting: 0,
            undecided_bytes: 0,
        };
        Self { state: Mutex::new(state), time, slots, counters }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn budget(&self) -> IoBudget {
        self.lock().bucket.budget()
    }

    pub(super) fn set_budget(&self, budget: IoBudget) {
        self.lock().bucket.set_budget(budget, self.time.elapsed());
        self.time.note_change();
    }

    /// Makes all waiting jobs check whether they should stop.
    pub(super) fn wake(&self) {
        drop(self.lock());
        self.time.note_change();
    }

    /// Returns the order in which to try to begin the candidates, as indexes. A tree with neither a
    /// candidate nor a begun merge needs no merge.
    pub(super) fn order(&self, candidates: &[ScheduledMerge]) -> Vec<usize> {
        let mut state = self.lock();
        let begun: Vec<ScheduledMerge> = state.merges.iter().map(|entry| entry.merge).collect();
        let waiting = candidates.iter().chain(&begun).map(|merge| merge.tree);
        state.turns.note_waiting(waiting);
        state.turns.order(candidates, &begun)
    }

    /// Returns true if a merge out of `level` would run at once if it began now. Beyond the number
    /// of slots, only one merge per level may begin, because a merge claims its tables when it
    /// begins, even if it has to wait.
    pub(super) fn takes(&self, merge: &ScheduledMerge, level: usize) -> bool {
        let state = self.lock();
        let mut merges: Vec<ScheduledMerge> =
            state.merges.iter().map(|entry| entry.merge).collect();
        let same_level = |entry: &Entry| entry.merge.tree == merge.tree && entry.level == level;
        if merges.len() >= self.slots && state.merges.iter().any(same_level) {
            return false;
        }
        merges.push(ScheduledMerge { id: state.next_id, is_running: false, ..*merge });
        state.turns.shares(&merges, self.slots).last().is_some_and(|share| *share > 0.0)
    }

    /// Assigns the id of a new job.
    pub(super) fn next_job(&self) -> JobId {
        let mut state = self.lock();
        let id = state.next_id;
        state.next_id += 1;
        JobId(id)
    }

    /// Enters a merge, which then calls the gate through the returned pass.
    pub(super) fn enter(&self, JobId(id): JobId, merge: ScheduledMerge, level: usize) -> Pass<'_> {
        let mut state = self.lock();
        let merge = ScheduledMerge { id, ..merge };
        let (share, served, turn) = (0.0, 0.0, Turn::Waiting);
        let begun = view::Begun::now(&merge);
        state.merges.push(Entry { merge, level, share, served, turn, begun });
        state.decide(self.slots);
        drop(state);
        self.time.note_change();
        Pass { gate: self, id }
    }

    /// Charges a flush for the bytes it has written, without waiting. Later flushes wait longer.
    pub(super) fn charge(&self, written_bytes: u64) {
        self.lock().bucket.take(written_bytes);
    }

    /// Charges a flush for the bytes it has written. Returns when the budget allows more.
    pub(super) fn flush(
        &self,
        written_bytes: u64,
        should_stop: &dyn Fn() -> bool,
    ) -> Result<(), Stopped> {
        let mut state = self.lock();
        state.bucket.take(written_bytes);
        state.flushes_waiting += 1;
        let result = loop {
            if should_stop() {
                break Err(Stopped);
            }
            match state.bucket.wait(user_bytes(&self.counters), self.time.elapsed()) {
                None => break Ok(()),
                Some(wait) => state = self.wait(state, wait),
            }
        };
        state.flushes_waiting -= 1;
        if state.flushes_waiting == 0 {
            self.time.note_change();
        }
        result
    }

    /// Charges an ingest for the bytes it has written. Returns when the budget allows more and no
    /// flush waits for the budget. An ingest does not precede merges, because it may take long and
    /// writers wait for merges.
    pub(super) fn ingest(
        &self,
        written_bytes: u64,
        should_stop: &dyn Fn() -> bool,
    ) -> Result<(), Stopped> {
        let mut state = self.lock();
        state.bucket.take(written_bytes);
        loop {
            if should_stop() {
                return Err(Stopped);
            }
            let owed = state.bucket.wait(user_bytes(&self.counters), self.time.elapsed());
            if owed.is_none() && state.flushes_waiting == 0 {
                return Ok(());
            }
            state = self.wait(state, owed.unwrap_or(WAIT_MAX));
        }
    }

    /// Waits until something changes, but at most for `most`.
    fn wait<'a>(&'a self, state: MutexGuard<'a, State>, most: Duration) -> MutexGuard<'a, State> {
        // A state change that this job has not seen is counted after this point, so it ends the
        // wait.
        let seen = self.time.changes();
        drop(state);
        self.time.wait(seen, most.min(WAIT_MAX));
        self.lock()
    }
}

/// Returns the bytes of I/O outside of jobs: the bytes written to the log, and the bytes that
/// readers read from tables.
fn user_bytes(counters: &Counters) -> u64 {
    counters.get(Counter::LogBytesWritten) + counters.get(Counter::TableBytesRead)
}

/// A merge that has entered the gate; it leaves on drop.
#[derive(Debug)]
pub(super) struct Pass<'a> {
    gate: &'a Gate,
    id: u64,
}

impl Pass<'_> {
    /// Reports progress. Returns when the merge may continue.
    pub(super) fn proceed(
        &self,
        progress: Progress,
        should_stop: &dyn Fn() -> bool,
    ) -> Result<(), Stopped> {
        let gate = self.gate;
        let mut state = gate.lock();
        if state.note_progress(self.id, progress) {
            state.decide(gate.slots);
            gate.time.note_change();
        }
        loop {
            if should_stop() {
                return Err(Stopped);
            }
            let owed = state.bucket.wait(user_bytes(&gate.counters), gate.time.elapsed());
            let must_wait = owed.is_some() || state.flushes_waiting > 0;
            if !must_wait && state.may_run(self.id, gate.slots) {
                if state.set_turn(self.id, Turn::Running) {
                    // If a slot is still free, the next merge may run as well.
                    gate.time.note_change();
                }
                return Ok(());
            }
            if state.set_turn(self.id, Turn::Waiting) {
                gate.time.note_change();
            }
            state = gate.wait(state, owed.unwrap_or(WAIT_MAX));
        }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        state.remove(self.id);
        state.decide(self.gate.slots);
        drop(state);
        self.gate.time.note_change();
    }
}

impl State {
    /// Removes a merge that has ended. Its tree loses its slot: the tree's other merges continue
    /// only if policy assigns them a slot again.
    fn remove(&mut self, id: u64) {
        let Some(at) = self.merges.iter().position(|entry| entry.merge.id == id) else { return };
        let tree = self.merges.remove(at).merge.tree;
        self.turns.note_end(tree);
        let own = self.merges.iter_mut().filter(|entry| entry.merge.tree == tree);
        own.for_each(|entry| entry.merge.is_running = false);
    }

    /// Assigns the shares that policy decides now.
    fn decide(&mut self, slots: usize) {
        self.undecided_bytes = 0;
        let merges: Vec<ScheduledMerge> = self.merges.iter().map(|entry| entry.merge).collect();
        let shares = self.turns.shares(&merges, slots);
        // A merge that gains a share starts at the virtual time of the other merges, because it has
        // no claim on past bandwidth.
        let now = self.virtual_time();
        for (entry, share) in self.merges.iter_mut().zip(shares) {
            if share > 0.0 && entry.share <= 0.0 {
                entry.served = entry.served.max(now);
            }
            entry.share = share;
            entry.merge.is_running = share > 0.0;
        }
    }

    /// The smallest virtual time of the merges with a share.
    fn virtual_time(&self) -> f64 {
        let sharing = self.merges.iter().filter(|entry| entry.share > 0.0);
        let least = sharing.map(|entry| entry.served).fold(f64::INFINITY, f64::min);
        if least.is_finite() { least } else { 0.0 }
    }

    /// Notes progress. Returns true if shares should be decided again.
    fn note_progress(&mut self, id: u64, progress: Progress) -> bool {
        let Some(entry) = self.merges.iter_mut().find(|entry| entry.merge.id == id) else {
            return false;
        };
        let done = entry.merge.remaining_bytes.saturating_sub(progress.remaining_bytes);
        entry.merge.remaining_bytes = progress.remaining_bytes;
        entry.merge.refilled = progress.refilled;
        if entry.share > 0.0 {
            entry.served += done as f64 / entry.share;
        }
        entry.begun.written_bytes += progress.written_bytes;
        self.bucket.take(progress.written_bytes);
        self.undecided_bytes += done;
        self.undecided_bytes as f64 >= self.at_most(DECIDE_EVERY_BYTES, DECIDE_EVERY_SECONDS)
    }

    /// Returns `bytes`, or the bytes that the budget grants in `seconds` if they are fewer.
    fn at_most(&self, bytes: f64, seconds: f64) -> f64 {
        self.bucket.rate().map_or(bytes, |rate| bytes.min(rate * seconds))
    }

    /// Returns true if there is a slot for a merge and it is this merge's turn.
    fn may_run(&self, id: u64, slots: usize) -> bool {
        let Some(own) = self.merges.iter().find(|entry| entry.merge.id == id) else {
            return true;
        };
        let others = self.merges.iter().filter(|entry| entry.merge.id != id && entry.share > 0.0);
        let (mut running, mut least) = (0, f64::INFINITY);
        for other in others {
            match other.turn {
                Turn::Running => running += 1,
                Turn::Waiting => least = least.min(other.served),
            }
        }
        if own.share <= 0.0 || running >= slots {
            return false;
        }
        match own.turn {
            // If slots or the budget are scarce, a running merge may be ahead of the waiting ones
            // only by a limited amount.
            Turn::Running if self.bucket.is_limited() || running + 1 == slots => {
                own.served <= least + self.at_most(AHEAD_BYTES, AHEAD_SECONDS)
            }
            Turn::Running => true,
            Turn::Waiting => own.served <= least,
        }
    }

    /// Sets the turn of a merge. Returns true if the turn has changed.
    fn set_turn(&mut self, id: u64, turn: Turn) -> bool {
        let entry = self.merges.iter_mut().find(|entry| entry.merge.id == id);
        entry.is_some_and(|entry| std::mem::replace(&mut entry.turn, turn) != turn)
    }
}
