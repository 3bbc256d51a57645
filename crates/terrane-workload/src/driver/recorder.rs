//! Counts and times the operations of one client.

use std::sync::atomic::{AtomicU64, Ordering};

use quanta::{Clock, Instant};

use crate::latency::Latency;

const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// Memory is preallocated for runs of up to this many seconds (18 hours). Longer runs reallocate.
const SECONDS_EXPECTED_MAX: usize = 1 << 16;

/// The number of operations that a client has completed. Aligned to two cache lines, because
/// processors fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Done(AtomicU64);

impl Done {
    pub(super) fn get(&self) -> u64 {
        // Relaxed: the progress count orders no other memory access.
        self.0.load(Ordering::Relaxed)
    }
}

/// The measurements of a finished client.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) operations: u64,
    pub(super) begin: Instant,
    pub(super) end: Instant,
    pub(super) latency: Latency,
    /// The number of operations that ended in each second of the run.
    pub(super) per_second: Vec<u64>,
}

/// Times each operation with one reading of the clock: the end of an operation is the start of the
/// next.
#[derive(Debug)]
pub(super) struct Recorder<'a> {
    clock: Clock,
    done: &'a Done,
    operations: u64,
    begin: u64,
    last: u64,
    /// The end of the current second, in clock ticks like `begin` and `last`.
    second_end: u64,
    ticks_per_second: u64,
    latency: Latency,
    /// The number of operations in each completed second.
    per_second: Vec<u64>,
    /// The number of operations completed before the current second.
    before_second: u64,
}

impl<'a> Recorder<'a> {
    pub(super) fn new(done: &'a Done) -> Self {
        let clock = Clock::new();
        let mut recorder = Self {
            done,
            operations: 0,
            begin: 0,
            last: 0,
            second_end: 0,
            ticks_per_second: ticks_per_second(&clock),
            clock,
            latency: Latency::new(),
            per_second: Vec::with_capacity(SECONDS_EXPECTED_MAX),
            before_second: 0,
        };
        recorder.begin();
        recorder
    }

    /// Starts the first operation.
    pub(super) fn begin(&mut self) {
        self.begin = self.clock.raw();
        self.last = self.begin;
        self.second_end = self.begin + self.ticks_per_second;
    }

    /// Records that `operations` have ended as one sample, and returns the sample's time in
    /// nanoseconds.
    #[inline]
    pub(super) fn sample(&mut self, operations: u64) -> u64 {
        let now = self.clock.raw();
        let nanos = self.clock.delta_as_nanos(self.last, now);
        self.latency.record_nanos(nanos);
        self.count(operations, now);
        nanos
    }

    /// Counts operations that are too few to make up a sample.
    pub(super) fn rest(&mut self, operations: u64) {
        self.count(operations, self.clock.raw());
    }

    #[inline]
    fn count(&mut self, operations: u64, now: u64) {
        while now >= self.second_end {
            self.end_second();
        }
        self.last = now;
        self.operations += operations;
        // Relaxed, and a store instead of an addition, because only this thread writes the count.
        self.done.0.store(self.operations, Ordering::Relaxed);
    }

    /// Closes the current second. An operation counts in the second in which it ends.
    #[cold]
    fn end_second(&mut self) {
        self.per_second.push(self.operations - self.before_second);
        self.before_second = self.operations;
        self.second_end += self.ticks_per_second;
    }

    pub(super) fn finish(mut self) -> Recording {
        self.end_second();
        Recording {
            operations: self.operations,
            begin: self.clock.scaled(self.begin),
            end: self.clock.scaled(self.last),
            latency: self.latency,
            per_second: self.per_second,
        }
    }
}

/// The number of clock ticks per second.
fn ticks_per_second(clock: &Clock) -> u64 {
    const TICKS: u64 = 1 << 40;
    let nanos = u128::from(clock.delta_as_nanos(0, TICKS).max(1));
    (u128::from(TICKS) * u128::from(NANOS_PER_SECOND) / nanos) as u64
}

/// Returns the throughput of all clients in the slowest full second, relative to the mean of the
/// run; `None` for a run of less than two seconds.
pub(super) fn slowest_second_share<'a>(
    clients: impl Iterator<Item = &'a [u64]>,
    seconds: f64,
) -> Option<f64> {
    // The last second is incomplete.
    let full_seconds = seconds.floor() as usize;
    if full_seconds < 2 {
        return None;
    }
    let mut sums = vec![0u64; full_seconds];
    let mut total = 0;
    for per_second in clients {
        total += per_second.iter().sum::<u64>();
        for (sum, operations) in sums.iter_mut().zip(per_second) {
            *sum += operations;
        }
    }
    let slowest = sums.into_iter().min()?;
    Some(slowest as f64 / (total as f64 / seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_end_of_a_sample_begins_the_next() {
        let done = Done::default();
        let (clock, time) = Clock::mock();
        let mut recorder = Recorder::new(&done);
        (recorder.ticks_per_second, recorder.clock) = (ticks_per_second(&clock), clock);
        recorder.begin();
        time.increment(Duration::from_millis(20));
        recorder.sample(1);
        time.increment(Duration::from_millis(3));
        recorder.sample(10);
        time.increment(Duration::from_millis(1));
        recorder.rest(5);
        assert_eq!(done.get(), 16);
        let recording = recorder.finish();
        assert_eq!(recording.operations, 16);
        assert_eq!(recording.per_second.iter().sum::<u64>(), 16);
        assert_eq!(recording.latency.samples(), 2);
        let is_near = |micros: f64, expected: f64| (micros / expected - 1.0).abs() < 0.01;
        assert!(is_near(recording.latency.max_micros(), 20_000.0));
        assert!(is_near(recording.latency.percentile_micros(10.0), 3000.0));
        let elapsed = recording.end.duration_since(recording.begin);
        assert_eq!(elapsed, Duration::from_millis(24));
    }

    #[test]
    fn seconds_count_the_operations_that_ended_in_them() {
        let done = Done::default();
        let mut recorder = Recorder::new(&done);
        let second = recorder.ticks_per_second;
        let begin = recorder.begin;
        recorder.count(3, begin + second / 2);
        recorder.count(4, begin + second - 1);
        recorder.count(5, begin + second);
        // A stall of three seconds leaves two full seconds without operations.
        recorder.count(6, begin + 4 * second + 1);
        assert_eq!(recorder.finish().per_second, [7, 5, 0, 0, 6]);
    }

    #[test]
    fn ticks_are_those_of_wall_clock_seconds() {
        let clock = Clock::new();
        let wall = std::time::Instant::now;
        // Read the wall clock before and after each reading of the ticks, because the scheduler may
        // suspend this thread in between.
        let (outer_begin, begin, inner_begin) = (wall(), clock.raw(), wall());
        std::thread::sleep(Duration::from_millis(100));
        let (inner_end, end, outer_end) = (wall(), clock.raw(), wall());
        let ticks = (end - begin) as f64;
        let expected = |time: Duration| time.as_secs_f64() * ticks_per_second(&clock) as f64;
        let (least, most) = (expected(inner_end - inner_begin), expected(outer_end - outer_begin));
        assert!(least * 0.8 < ticks && ticks < most * 1.2, "{least}, {ticks}, {most}");
    }

    #[test]
    fn the_slowest_second_sums_over_all_clients() {
        let share =
            |clients: &[&[u64]], seconds| slowest_second_share(clients.iter().copied(), seconds);
        assert_eq!(share(&[&[100, 50, 100, 10]], 3.2), Some(50.0 / (260.0 / 3.2)));
        // When one client has a slow second, the other has a fast one.
        assert_eq!(share(&[&[10, 30], &[30, 10]], 2.0), Some(1.0));
        // A second counts as zero if a client completes no operation in it or has already ended.
        assert_eq!(share(&[&[10, 0, 10]], 3.0), Some(0.0));
        assert_eq!(share(&[&[20]], 2.0), Some(0.0));
        assert_eq!(share(&[&[100, 7]], 1.9), None);
    }
}
