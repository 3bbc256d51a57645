//! Decides when a sync begins that several writers share.
//!
//! A writer that is released by a sync usually writes again at once. If the next sync began without
//! it, the writer would wait for two syncs, and half of the writers would alternate with the other
//! half: each sync would serve only half of them. So a sync waits for the writers that took part in
//! the previous sync or arrived while it was running, for at most half of a sync's duration. Where
//! that does not pay, because writers pause between their writes, it is tried more and more rarely.

use std::time::{Duration, Instant};

/// Shorter syncs begin at once: waking a thread would take as long as what sharing saves.
const SHORTEST_SYNC: Duration = Duration::from_micros(40);

/// After as many failures in a row, the number of syncs that begin at once is two to this power.
const FAILURES_MAX: u32 = 6;

/// The writers that wait for a sync, and what the last syncs say about them.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    /// The number of writers that wait for the next sync.
    arrived: usize,
    /// The number of writers that the current sync serves, or the last one.
    served: usize,
    /// How many writers the next sync expects.
    expected: usize,
    last_end: Option<Instant>,
    /// The moving average of the duration of a sync.
    duration: Duration,
    waits: Option<Wait>,
    /// How often in a row waiting did not pay.
    failures: u32,
    /// The number of syncs that will begin without waiting.
    skipped: u32,
}

/// The wait of the next sync for more writers.
#[derive(Debug, Clone, Copy)]
struct Wait {
    until: Instant,
    /// The number of writers at its beginning.
    arrived: usize,
}

impl Gathering {
    /// Counts a writer that waits for the next sync.
    pub(super) fn arrive(&mut self) {
        self.arrived += 1;
    }

    /// Returns until when the next sync waits for more writers, or `None` if it must begin now.
    pub(super) fn waits_until(&mut self, now: impl FnOnce() -> Instant) -> Option<Instant> {
        if self.arrived >= self.expected {
            return None;
        }
        let now = now();
        let longest = self.duration / 2;
        let wait = match self.waits {
            Some(wait) => wait,
            None => {
                let is_recent = self.last_end.is_some_and(|end| now - end < longest);
                if self.skipped > 0 || self.duration < SHORTEST_SYNC || !is_recent {
                    return None;
                }
                *self.waits.insert(Wait { until: now + longest, arrived: self.arrived })
            }
        };
        (now < wait.until).then_some(wait.until)
    }

    /// Notes that a sync begins, which serves all writers that have arrived.
    pub(super) fn begin(&mut self) {
        self.served = std::mem::take(&mut self.arrived);
        self.skipped = self.skipped.saturating_sub(1);
        let Some(wait) = self.waits.take() else { return };
        let missing = self.expected.saturating_sub(wait.arrived);
        if (self.served - wait.arrived) * 2 >= missing {
            self.failures = 0;
        } else {
            self.failures = (self.failures + 1).min(FAILURES_MAX);
            self.skipped = 1 << self.failures;
        }
    }

    /// Notes that the sync that began last is over.
    pub(super) fn end(&mut self, began: Instant, now: Instant) {
        self.expected = self.served + self.arrived;
        let took = now - began;
        self.duration = match self.last_end.replace(now) {
            Some(_) => (self.duration * 7 + took) / 8,
            None => took,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNC: Duration = Duration::from_micros(200);

    /// Lets a sync with `writers` writers begin and end. Returns when it ended.
    fn sync(gathering: &mut Gathering, writers: usize, now: Instant) -> Instant {
        (0..writers).for_each(|_| gathering.arrive());
        gathering.begin();
        gathering.end(now, now + SYNC);
        now + SYNC
    }

    #[test]
    fn one_writer_never_waits() {
        let mut gathering = Gathering::default();
        let mut now = Instant::now();
        for _ in 0..10 {
            gathering.arrive();
            assert_eq!(gathering.waits_until(|| now), None);
            now = sync(&mut gathering, 0, now);
        }
    }

    #[test]
    fn a_sync_waits_for_the_writers_of_the_last_one() {
        let mut gathering = Gathering::default();
        let now = Instant::now();
        gathering.arrive();
        gathering.begin();
        // Two writers arrive during the sync of the first.
        gathering.arrive();
        gathering.arrive();
        let now = {
            gathering.end(now, now + SYNC);
            now + SYNC
        };
        assert_eq!(gathering.waits_until(|| now), Some(now + SYNC / 2));
        // The wait does not become longer.
        assert_eq!(gathering.waits_until(|| now + SYNC / 4), Some(now + SYNC / 2));
        gathering.arrive();
        assert_eq!(gathering.waits_until(|| now + SYNC / 4), None);
    }

    #[test]
    fn a_sync_waits_for_half_of_its_duration_at_most() {
        let mut gathering = Gathering::default();
        let now = sync(&mut gathering, 3, Instant::now());
        gathering.arrive();
        assert!(gathering.waits_until(|| now).is_some());
        assert_eq!(gathering.waits_until(|| now + SYNC / 2), None);
    }

    #[test]
    fn writers_that_left_are_not_expected() {
        let mut gathering = Gathering::default();
        let now = sync(&mut gathering, 8, Instant::now());
        gathering.arrive();
        assert_eq!(gathering.waits_until(|| now + SYNC), None);
    }

    #[test]
    fn waiting_in_vain_becomes_rare() {
        let mut gathering = Gathering::default();
        let mut now = Instant::now();
        let mut waits = 0;
        for _ in 0..1000 {
            // Always four writers, of which one comes early.
            gathering.arrive();
            if let Some(until) = gathering.waits_until(|| now) {
                waits += 1;
                assert_eq!(gathering.waits_until(|| until), None);
            }
            gathering.begin();
            (0..3).for_each(|_| gathering.arrive());
            gathering.end(now, now + SYNC);
            now = sync(&mut gathering, 0, now + SYNC);
        }
        assert!((5..40).contains(&waits), "{waits}");
    }

    #[test]
    fn short_syncs_begin_at_once() {
        let mut gathering = Gathering::default();
        let mut now = Instant::now();
        for _ in 0..10 {
            (0..3).for_each(|_| gathering.arrive());
            gathering.begin();
            now += Duration::from_micros(20);
            gathering.end(now - Duration::from_micros(20), now);
            gathering.arrive();
            assert_eq!(gathering.waits_until(|| now), None);
        }
    }
}
