//! What one client measured.

use super::timeline::Timeline;
use crate::latency::Latency;

/// Times and counts of one client, then of all of them together.
#[derive(Debug, Clone)]
pub(super) struct Recorder {
    /// What ends before this is warm-up: on the timeline, and nowhere else.
    warm_up_nanos: u64,
    pub(super) timeline: Timeline,
    /// Operations that ended after the warm-up.
    pub(super) completed: u64,
    /// The last end of an operation.
    pub(super) last_end: u64,
    /// From the moment an operation was due to its end.
    pub(super) whole: Latency,
    /// From the moment it began to its end.
    pub(super) processing: Latency,
    /// From the moment an idle client should have begun to when it did: the driver's own error.
    pub(super) late: Latency,
    /// Arrivals that this client took and the end of the run kept from being done.
    pub(super) unfinished: u64,
    /// How long the oldest of those had waited.
    pub(super) longest_wait: u64,
}

impl Recorder {
    pub(super) fn new(duration_nanos: u64, warm_up_nanos: u64) -> Self {
        Self {
            warm_up_nanos,
            timeline: Timeline::new(duration_nanos),
            completed: 0,
            last_end: 0,
            whole: Latency::new(),
            processing: Latency::new(),
            late: Latency::new(),
            unfinished: 0,
            longest_wait: 0,
        }
    }

    /// An operation that was due at `due` began at `start` and ended at `end`, all since the
    /// beginning of the phase.
    #[inline]
    pub(super) fn record(&mut self, due: u64, start: u64, end: u64) {
        self.timeline.record(end, end - due);
        self.last_end = end;
        if end >= self.warm_up_nanos {
            self.completed += 1;
            self.whole.record_nanos(end - due);
            self.processing.record_nanos(end - start);
        }
    }

    /// A client that had nothing to do began this much later than it should have.
    #[inline]
    pub(super) fn late(&mut self, nanos: u64) {
        self.late.record_nanos(nanos);
    }

    /// An operation that had waited this long was not begun. It counts with that, as it would
    /// have taken longer still.
    pub(super) fn unfinished(&mut self, waited_nanos: u64) {
        self.many_unfinished(waited_nanos, 1);
    }

    /// The same of `count` operations that had all waited about as long.
    pub(super) fn many_unfinished(&mut self, waited_nanos: u64, count: u64) {
        self.unfinished += count;
        self.longest_wait = self.longest_wait.max(waited_nanos);
        self.whole.record_many(waited_nanos, count);
    }

    /// Adds what another client measured.
    pub(super) fn add(&mut self, other: &Self) {
        self.timeline.add(&other.timeline);
        self.completed += other.completed;
        self.last_end = self.last_end.max(other.last_end);
        self.whole.add(&other.whole);
        self.processing.add(&other.processing);
        self.late.add(&other.late);
        self.unfinished += other.unfinished;
        self.longest_wait = self.longest_wait.max(other.longest_wait);
    }
}
