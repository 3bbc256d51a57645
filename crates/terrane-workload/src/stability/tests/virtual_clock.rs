//! Virtual time, which advances at once when all threads wait.
//!
//! One registered thread runs at a time: the one with the earliest deadline, and among equal ones the
//! first to wait.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard};

use crate::stability::Clock;

pub(super) struct VirtualClock {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    now: u64,
    /// The number of threads that must wait before time advances, including those not registered yet.
    running: usize,
    /// The waiting threads, by deadline and ticket.
    waiting: BTreeSet<(u64, u64)>,
    next_ticket: u64,
    /// The ticket of the thread that may run.
    granted: Option<u64>,
}

impl VirtualClock {
    /// Returns a clock for this many threads.
    pub(super) fn new(threads: usize) -> Self {
        let state = State {
            now: 0,
            running: threads,
            waiting: BTreeSet::new(),
            next_ticket: 0,
            granted: None,
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn one_less(&self, state: &mut MutexGuard<'_, State>) {
        state.running -= 1;
        if state.running == 0
            && let Some((moment, ticket)) = state.waiting.pop_first()
        {
            state.now = state.now.max(moment);
            state.granted = Some(ticket);
            state.running = 1;
            self.changed.notify_all();
        }
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> u64 {
        self.state.lock().unwrap().now
    }

    fn wait_until(&self, nanos: u64) -> u64 {
        let mut state = self.state.lock().unwrap();
        if nanos <= state.now {
            return state.now;
        }
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.waiting.insert((nanos, ticket));
        self.one_less(&mut state);
        while state.granted != Some(ticket) {
            state = self.changed.wait(state).unwrap();
        }
        state.granted = None;
        state.now
    }

    fn leave(&self) {
        self.one_less(&mut self.state.lock().unwrap());
    }
}
