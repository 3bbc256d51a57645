//! The events of one opening of a database.
//!
//! 1. Events in the ring are in the order of their numbers, without gaps, because numbers are
//!    assigned under the lock of the ring.
//! 2. The listener runs without this lock, in the thread that emits the event. Two threads may call
//!    it concurrently and out of order. A listener that panics is not called again.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::trace::report;
use super::{Event, LoggedEvent};
use crate::base::clock::{Clock, SystemClock};

/// The number of events that are kept. Each event takes less than a kilobyte, except for very wide
/// compactions.
const KEPT: usize = 1000;

thread_local! {
    /// The addresses of the logs whose listeners this thread is running, the innermost last.
    static LISTENING: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    /// The address of the log whose events this thread holds back from the listener, and these events.
    static HELD_BACK: RefCell<Option<(usize, Vec<LoggedEvent>)>> = const { RefCell::new(None) };
}

/// The user's callback for events.
#[derive(Clone)]
pub(crate) struct Listener(Arc<dyn Fn(&LoggedEvent) + Send + Sync>);

impl Listener {
    pub(crate) fn new(tell: impl Fn(&LoggedEvent) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}

/// The last events, and the listener.
#[derive(Debug)]
pub(crate) struct EventLog {
    clock: Arc<dyn Clock>,
    listener: Option<Listener>,
    has_panicked: AtomicBool,
    ring: Mutex<Ring>,
}

#[derive(Debug, Default)]
struct Ring {
    count: u64,
    last: VecDeque<LoggedEvent>,
}

impl Default for EventLog {
    fn default() -> Self {
        Self::new(Arc::new(SystemClock), None)
    }
}

impl EventLog {
    pub(crate) fn new(clock: Arc<dyn Clock>, listener: Option<Listener>) -> Self {
        Self { clock, listener, has_panicked: AtomicBool::new(false), ring: Mutex::default() }
    }

    /// Records an event, calls the listener, and returns the event's number. Must not be called with a
    /// lock held, because the listener is user code.
    pub(crate) fn emit(&self, event: Event) -> u64 {
        let logged = self.keep(event);
        let number = logged.number;
        let is_held = HELD_BACK.with_borrow_mut(|held| match held {
            Some((log, events)) if *log == self.address() => {
                events.push(logged.clone());
                true
            }
            _ => false,
        });
        if !is_held {
            self.tell(&logged);
        }
        number
    }

    /// Holds the events of this thread back from the listener until the guard is dropped. A listener may
    /// write, so it must not run while other writers wait for this thread.
    pub(crate) fn hold_back(&self) -> HeldEvents<'_> {
        HELD_BACK.with_borrow_mut(|held| *held = Some((self.address(), Vec::new())));
        HeldEvents(self)
    }

    fn tell(&self, logged: &LoggedEvent) {
        self.call(|| report(logged));
        // Relaxed: the flag guards no other memory; a late read only repeats the call.
        if let Some(Listener(tell)) = &self.listener
            && !self.has_panicked.load(Ordering::Relaxed)
            && !self.call(|| tell(logged))
        {
            self.has_panicked.store(true, Ordering::Relaxed);
        }
    }

    /// Calls code of the user. Returns false if it panics.
    fn call(&self, code: impl FnOnce()) -> bool {
        LISTENING.with_borrow_mut(|logs| logs.push(self.address()));
        let called = catch_unwind(AssertUnwindSafe(code));
        LISTENING.with_borrow_mut(Vec::pop);
        called.is_ok()
    }

    /// Returns true if the listener called the current function. The work that emitted the event
    /// waits for the listener, so the listener must not wait for that work.
    pub(crate) fn is_in_listener(&self) -> bool {
        LISTENING.with_borrow(|logs| logs.contains(&self.address()))
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn keep(&self, event: Event) -> LoggedEvent {
        // A panicking thread emits its failure while unwinding, where a second panic, for example in
        // a user's clock, would abort the process.
        let now = (!std::thread::panicking()).then(|| self.clock.now_micros());
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        ring.count += 1;
        let at_micros = now.or_else(|| Some(ring.last.back()?.at_micros)).unwrap_or(0);
        let logged = LoggedEvent { number: ring.count, at_micros, event };
        if ring.last.len() == KEPT {
            ring.last.pop_front();
        }
        ring.last.push_back(logged.clone());
        logged
    }

    /// Returns the kept events whose number is greater than `number`, oldest first.
    pub(crate) fn after(&self, number: u64) -> Vec<LoggedEvent> {
        let ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let new = ring.last.iter().rev().take_while(|event| event.number > number).count();
        ring.last.range(ring.last.len() - new..).cloned().collect()
    }
}

/// Calls the listener with the events that were held back, when it is dropped.
#[derive(Debug)]
pub(crate) struct HeldEvents<'a>(&'a EventLog);

impl Drop for HeldEvents<'_> {
    fn drop(&mut self) {
        let held = HELD_BACK.with_borrow_mut(Option::take);
        held.into_iter().flat_map(|(_, events)| events).for_each(|event| self.0.tell(&event));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    fn dropped(tables: u64) -> Event {
        Event::TablesDropped { keyspace: "default".into(), tables }
    }

    #[test]
    fn the_last_events_are_kept_in_order_and_numbered() {
        let log = EventLog::default();
        for number in 1..=KEPT as u64 + 10 {
            assert_eq!(log.emit(dropped(number)), number);
        }
        let last = log.after(0);
        assert_eq!(last.len(), KEPT);
        assert!(last.iter().zip(11..).all(|(event, number)| event.number == number));
    }

    #[test]
    fn events_that_are_held_back_reach_the_listener_in_order() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&told);
        let listener = Listener::new(move |event| heard.lock().unwrap().push(event.number));
        let log = EventLog::new(Arc::new(SystemClock), Some(listener));
        let held = log.hold_back();
        log.emit(dropped(1));
        log.emit(dropped(2));
        assert_eq!((told.lock().unwrap().len(), log.after(0).len()), (0, 2));
        drop(held);
        log.emit(dropped(3));
        assert_eq!(*told.lock().unwrap(), [1, 2, 3]);
    }

    #[test]
    fn a_listener_that_panics_is_not_called_again_and_harms_nothing() {
        let calls = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&calls);
        let listener = Listener::new(move |event| {
            counted.fetch_add(1, Ordering::Relaxed);
            assert!(event.number < 3, "enough");
        });
        let log = EventLog::new(Arc::new(SystemClock), Some(listener));
        for number in 1..=5 {
            log.emit(dropped(number));
        }
        assert_eq!(calls.load(Ordering::Relaxed), 3);
        assert_eq!(log.after(0).len(), 5);
    }
}
