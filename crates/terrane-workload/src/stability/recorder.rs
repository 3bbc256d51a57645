//! The measurements of one client.

use super::timeline::Timeline;
use crate::latency::Latency;

/// Latencies and counts of one client, later merged over all clients.
#[derive(Debug, Clone)]
pub(super) struct Recorder {
    /// The end of the warm-up; operations that end before it only count on the timeline.
    warm_up_nanos: u64,
    pub(super) timeline: Timeline,
    /// The number of operations that ended after the warm-up.
    pub(super) completed: u64,
    /// The time at which the last operation ended.
    pub(super) last_end: u64,
    /// Latencies from the due time of an operation to its end.
    pub(super) whole: Latency,
    /// Latencies from the start of an operation to its end.
    pub(super) processing: Latency,
    /// The delays between the due time of an operation and its start by an idle client: the
    /// driver's error.
    pub(super) late: Latency,
    /// The number of arrivals that this client took but did not start before the end of the run.
    pub(super) unfinished: u64,
    /// The longest waiting time of these arrivals.
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

    /// Records an operation with its due time, start and end, all relative to the start of the phase.
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

    /// Records the delay with which an idle client started an operation.
    #[inline]
    pub(super) fn late(&mut self, nanos: u64) {
        self.late.record_nanos(nanos);
    }

    /// Records an operation that was never started. It counts with its waiting time, a lower bound of
    /// its latency.
    pub(super) fn unfinished(&mut self, waited_nanos: u64) {
        self.many_unfinished(waited_nanos, 1);
    }

    /// Records `count` operations that were never started, with about the same waiting time.
    pub(super) fn many_unfinished(&mut self, waited_nanos: u64, count: u64) {
        self.unfinished += count;
        self.longest_wait = self.longest_wait.max(waited_nanos);
        self.whole.record_many(waited_nanos, count);
    }

    /// Adds the measurements of another client.
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
