//! Time that goes by only when everyone waits for it, and then at once.
//!
//! Of the threads that have entered, one runs at a time: the one that waits for the earliest
//! moment, and of several for the same the one that came first.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard};

use crate::stability::Clock;

pub(super) struct VirtualClock {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    now: u64,
    /// Threads that time waits for, those that are still to enter included.
    running: usize,
    /// Who waits, by moment and ticket.
    waiting: BTreeSet<(u64, u64)>,
    next_ticket: u64,
    /// The ticket of who may go on.
    granted: Option<u64>,
}

impl VirtualClock {
    /// A clock for this many threads.
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
