//! Time that advances only when every thread of a run waits.
//!
//! The threads of a run are a writer and the threads that run jobs of the engine. They take turns: a
//! thread runs until it waits, then the next thread whose wait is over runs. When no such thread is
//! left, time advances to the earliest deadline. A run with the same writes therefore always makes the
//! same decisions at the same times, on any machine and under any load.
//!
//! Jobs wait at the engine's gate, which calls [`JobTime`]; the writer waits for the next arrival, or,
//! in a listener of the engine, for the end of a stall. No thread holds a lock of the engine while it
//! waits.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use terrane::{Clock, JobTime};

thread_local! {
    /// The number of the calling thread within its run.
    static THREAD: Cell<Option<usize>> = const { Cell::new(None) };
}

/// What a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// Nothing: it runs, waits for its turn, or has ended.
    Nothing,
    /// A time in nanoseconds.
    Time(u64),
    /// A change at the gate, or a time in nanoseconds.
    Change(u64),
    /// A job.
    Work,
    /// The end of a stall.
    Resume,
}

/// The time of a run, and whose turn it is.
#[derive(Debug)]
pub(super) struct VirtualTime {
    state: Mutex<State>,
    /// Wakes each thread when its turn comes.
    turns: Box<[Condvar]>,
}

#[derive(Debug)]
struct State {
    nanos: u64,
    changes: u64,
    waits: Vec<Wait>,
    /// The threads whose wait is over, in that order.
    ready: VecDeque<usize>,
    running: Option<usize>,
    /// Whether job threads should end.
    is_over: bool,
}

impl State {
    fn end_waits(&mut self, is_over: impl Fn(Wait) -> bool) {
        for (thread, wait) in self.waits.iter_mut().enumerate() {
            if *wait != Wait::Nothing && is_over(*wait) {
                *wait = Wait::Nothing;
                self.ready.push_back(thread);
            }
        }
    }

    /// Returns the thread with the earliest deadline.
    fn first_due(&self) -> Option<(u64, usize)> {
        let due = |(thread, wait): (usize, &Wait)| match wait {
            Wait::Time(nanos) | Wait::Change(nanos) => Some((*nanos, thread)),
            _ => None,
        };
        self.waits.iter().enumerate().filter_map(due).min()
    }

    /// Chooses the thread that runs next.
    fn choose(&mut self) {
        if self.ready.is_empty() && self.first_due().is_none() {
            // Nothing can end a stall or bring work: the run ends.
            self.is_over = true;
            self.end_waits(|_| true);
        }
        self.running = self.ready.pop_front().or_else(|| {
            let (nanos, thread) = self.first_due()?;
            self.nanos = self.nanos.max(nanos);
            self.waits[thread] = Wait::Nothing;
            Some(thread)
        });
    }
}

/// The turns of a thread, which end on drop.
pub(super) struct Turns<'a> {
    time: &'a VirtualTime,
    /// Whether the job threads end with this thread.
    is_writer: bool,
}

impl VirtualTime {
    /// Returns the time of a run of this many threads. Each of them must call [`Self::enter`].
    pub(super) fn new(threads: usize) -> Self {
        let state = State {
            nanos: 0,
            changes: 0,
            waits: vec![Wait::Nothing; threads],
            ready: (1..threads).collect(),
            running: Some(0),
            is_over: false,
        };
        let turns = (0..threads).map(|_| Condvar::new()).collect();
        Self { state: Mutex::new(state), turns }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the first turn of a thread. Thread 0 is the writer; the run ends when it does.
    pub(super) fn enter(&self, thread: usize) -> Turns<'_> {
        THREAD.set(Some(thread));
        self.wait_for_turn(self.lock(), thread);
        Turns { time: self, is_writer: thread == 0 }
    }

    fn wait_for_turn(&self, mut state: MutexGuard<'_, State>, thread: usize) {
        while state.running != Some(thread) {
            let waited = self.turns[thread].wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn pass_on(&self, state: &mut State) {
        state.choose();
        if let Some(next) = state.running {
            self.turns[next].notify_one();
        }
    }

    fn pause(&self, mut state: MutexGuard<'_, State>, thread: usize, wait: Wait) {
        state.waits[thread] = wait;
        self.pass_on(&mut state);
        self.wait_for_turn(state, thread);
    }

    /// Returns nanoseconds since the beginning of the run.
    pub(super) fn nanos(&self) -> u64 {
        self.lock().nanos
    }

    /// Waits until a time in nanoseconds.
    pub(super) fn sleep_until(&self, nanos: u64) {
        let mut state = self.lock();
        let is_first = state.ready.is_empty()
            && state.first_due().is_none_or(|(first_due, _)| first_due > nanos);
        match THREAD.get().filter(|_| !is_first && nanos > state.nanos) {
            Some(thread) => self.pause(state, thread, Wait::Time(nanos)),
            // No other thread is due earlier.
            None => state.nanos = state.nanos.max(nanos),
        }
    }

    /// Returns true once the writer has ended.
    pub(super) fn is_over(&self) -> bool {
        self.lock().is_over
    }

    /// Waits until there may be a job, or until the run is over.
    pub(super) fn wait_for_work(&self) {
        let state = self.lock();
        if let Some(thread) = THREAD.get().filter(|_| !state.is_over) {
            self.pause(state, thread, Wait::Work);
        }
    }

    /// Makes threads look for jobs.
    pub(super) fn note_work(&self) {
        self.lock().end_waits(|wait| wait == Wait::Work);
    }

    /// If the calling thread belongs to the run, waits until [`Self::resume`] is called.
    pub(super) fn wait_for_resume(&self) {
        let state = self.lock();
        if let Some(thread) = THREAD.get().filter(|_| !state.is_over) {
            self.pause(state, thread, Wait::Resume);
        }
    }

    /// Ends the stall of the writer.
    pub(super) fn resume(&self) {
        self.lock().end_waits(|wait| wait == Wait::Resume);
    }
}

impl Drop for Turns<'_> {
    fn drop(&mut self) {
        THREAD.set(None);
        let mut state = self.time.lock();
        if self.is_writer {
            state.is_over = true;
            state.end_waits(|wait| wait == Wait::Work);
        }
        self.time.pass_on(&mut state);
    }
}

impl Clock for VirtualTime {
    fn now_micros(&self) -> u64 {
        self.nanos() / 1000
    }

    fn job_time(&self) -> Option<&dyn JobTime> {
        Some(self)
    }
}

impl JobTime for VirtualTime {
    fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.nanos())
    }

    fn changes(&self) -> u64 {
        self.lock().changes
    }

    fn note_change(&self) {
        let mut state = self.lock();
        state.changes += 1;
        state.end_waits(|wait| matches!(wait, Wait::Change(_)));
    }

    fn wait(&self, seen: u64, at_most: Duration) {
        let mut state = self.lock();
        if state.changes > seen {
            return;
        }
        // Time must advance even if the wait is rounded to zero.
        let nanos = u64::try_from(at_most.as_nanos()).unwrap_or(u64::MAX).max(1);
        let until = state.nanos.saturating_add(nanos);
        match THREAD.get() {
            Some(thread) => self.pause(state, thread, Wait::Change(until)),
            // Only the thread that sets up the run is not part of it.
            None => state.nanos = until,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread of jobs, with the function that records what it does.
    type Job<'a> = &'a (dyn Fn(&VirtualTime, &dyn Fn(&'static str)) + Sync);

    /// Runs a writer and job threads, and returns what they record, in order.
    fn recorded(
        writer: impl Fn(&VirtualTime, &dyn Fn(&'static str)) + Sync,
        jobs: &[Job<'_>],
    ) -> Vec<(&'static str, u64)> {
        let time = VirtualTime::new(1 + jobs.len());
        let list = Mutex::new(Vec::new());
        let note = |what: &'static str| list.lock().unwrap().push((what, time.nanos()));
        std::thread::scope(|scope| {
            for (number, job) in (1..).zip(jobs) {
                let (time, note) = (&time, &note);
                scope.spawn(move || {
                    let _turns = time.enter(number);
                    job(time, note);
                });
            }
            let _turns = time.enter(0);
            writer(&time, &note);
        });
        list.into_inner().unwrap()
    }

    #[test]
    fn threads_run_in_the_order_of_their_deadlines_and_time_jumps() {
        let list = recorded(
            |time, note| {
                for _ in 0..3 {
                    time.sleep_until(time.nanos() + 1_000_000_000);
                    note("writer");
                }
            },
            &[&|time, note| {
                time.wait(time.changes(), Duration::from_millis(1500));
                note("job");
                time.wait_for_work();
                note("over");
            }],
        );
        let seconds = |tenths: u64| tenths * 100_000_000;
        let expected = [
            ("writer", seconds(10)),
            ("job", seconds(15)),
            ("writer", seconds(20)),
            ("writer", seconds(30)),
            ("over", seconds(30)),
        ];
        assert_eq!(list, expected);
    }

    #[test]
    fn a_change_ends_waits_at_once_and_a_change_before_the_wait_is_not_missed() {
        let list = recorded(
            |time, note| {
                time.sleep_until(5);
                time.note_change();
                note("change");
                time.sleep_until(9);
            },
            &[&|time, note| {
                let seen = time.changes();
                time.wait(seen, Duration::from_secs(1));
                note("first");
                time.wait(seen, Duration::from_secs(1));
                note("second");
            }],
        );
        assert_eq!(list, [("change", 5), ("first", 5), ("second", 5)]);
    }

    #[test]
    fn a_stall_that_no_job_can_end_ends_the_run_instead_of_hanging() {
        let list = recorded(
            |time, note| {
                time.wait_for_resume();
                note(if time.is_over() { "stuck" } else { "resumed" });
            },
            &[&|time, _| time.wait_for_work()],
        );
        assert_eq!(list, [("stuck", 0)]);
        let list = recorded(
            |time, note| {
                time.wait_for_resume();
                note(if time.is_over() { "stuck" } else { "resumed" });
            },
            &[&|time, _| {
                time.wait(time.changes(), Duration::from_nanos(7));
                time.resume();
            }],
        );
        assert_eq!(list, [("resumed", 7)]);
    }
}
