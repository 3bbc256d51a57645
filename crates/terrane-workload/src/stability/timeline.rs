//! The number of operations that ended, and their maximum latency, in ticks of equal length.
//!
//! Ticks are allocated before the run, so recording allocates nothing. The number of ticks is
//! bounded, so a long run has longer ticks. Operations that end after the last tick count in the
//! last tick.

/// The shortest tick: the length of a noticeable stall.
const TICK_NANOS_MIN: u64 = 100_000_000;
/// The maximum number of ticks: a run of a day has ticks of a second.
const TICKS_MAX: u64 = 86_400;

/// The operations that ended in one tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tick {
    /// The number of these operations.
    pub completed: u64,
    /// The longest latency of these operations, measured from the due time.
    pub longest_nanos: u64,
}

/// Operations over the time of a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline {
    tick_nanos: u64,
    ticks: Vec<Tick>,
    /// The index of the current tick, and the end of this tick.
    current: usize,
    current_end: u64,
}

impl Timeline {
    /// Returns an empty timeline of `duration_nanos`.
    pub(super) fn new(duration_nanos: u64) -> Self {
        // The tick is a multiple of a tenth of a second.
        let least = duration_nanos.div_ceil(TICKS_MAX).max(TICK_NANOS_MIN);
        let tick_nanos = least.next_multiple_of(TICK_NANOS_MIN);
        let count = duration_nanos.div_ceil(tick_nanos).max(1) as usize;
        Self {
            tick_nanos,
            ticks: vec![Tick::default(); count],
            current: 0,
            current_end: tick_nanos,
        }
    }

    /// Records an operation that ended at `nanos` since the start with a latency of `longest_nanos`.
    #[inline]
    pub(super) fn record(&mut self, nanos: u64, longest_nanos: u64) {
        if nanos >= self.current_end {
            self.advance(nanos);
        }
        if let Some(tick) = self.ticks.get_mut(self.current) {
            tick.completed += 1;
            tick.longest_nanos = tick.longest_nanos.max(longest_nanos);
        }
    }

    #[cold]
    fn advance(&mut self, nanos: u64) {
        let last = self.ticks.len() - 1;
        self.current = ((nanos / self.tick_nanos) as usize).min(last);
        let end = (self.current as u64 + 1) * self.tick_nanos;
        self.current_end = if self.current == last { u64::MAX } else { end };
    }

    /// Adds the timeline of another client, of the same length.
    pub(super) fn add(&mut self, other: &Self) {
        for (tick, other) in self.ticks.iter_mut().zip(&other.ticks) {
            tick.completed += other.completed;
            tick.longest_nanos = tick.longest_nanos.max(other.longest_nanos);
        }
    }

    /// Returns the length of a tick, in nanoseconds.
    pub fn tick_nanos(&self) -> u64 {
        self.tick_nanos
    }

    /// Returns the ticks in order; the last tick may be shorter than the others.
    pub fn ticks(&self) -> &[Tick] {
        &self.ticks
    }

    /// Combines ticks into windows of at least `seconds`. An incomplete last window is omitted unless
    /// it is the only one.
    pub fn windows(&self, seconds: f64) -> Vec<Window> {
        let tick_seconds = self.tick_nanos as f64 / 1e9;
        let each = ((seconds / tick_seconds).round() as usize).clamp(1, self.ticks.len());
        let window = |(number, ticks): (usize, &[Tick])| Window {
            begin_seconds: (number * each) as f64 * tick_seconds,
            seconds: ticks.len() as f64 * tick_seconds,
            completed: ticks.iter().map(|tick| tick.completed).sum(),
            longest_nanos: ticks.iter().map(|tick| tick.longest_nanos).max().unwrap_or(0),
        };
        self.ticks.chunks_exact(each).enumerate().map(window).collect()
    }
}

/// Several successive ticks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// When the window starts, relative to the start of the run.
    pub begin_seconds: f64,
    /// The length of the window.
    pub seconds: f64,
    /// The number of operations that ended in the window.
    pub completed: u64,
    /// The longest latency of these operations.
    pub longest_nanos: u64,
}

impl Window {
    /// Returns the operations per second.
    pub fn per_second(&self) -> f64 {
        self.completed as f64 / self.seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn operations_count_where_they_end_and_windows_add_up() {
        let mut timeline = Timeline::new(3 * SECOND + SECOND / 2);
        assert_eq!((timeline.tick_nanos(), timeline.ticks().len()), (SECOND / 10, 35));
        timeline.record(0, 7);
        timeline.record(SECOND / 10 - 1, 9);
        timeline.record(SECOND / 10, 1);
        timeline.record(2 * SECOND, 5);
        timeline.record(99 * SECOND, 4);
        let mut other = Timeline::new(3 * SECOND + SECOND / 2);
        other.record(SECOND / 20, 11);
        timeline.add(&other);
        assert_eq!(timeline.ticks()[0], Tick { completed: 3, longest_nanos: 11 });
        assert_eq!(timeline.ticks()[1].completed, 1);
        assert_eq!(timeline.ticks()[34], Tick { completed: 1, longest_nanos: 4 });
        let windows = timeline.windows(1.0);
        let counts: Vec<_> = windows.iter().map(|window| window.completed).collect();
        assert_eq!(counts, [4, 0, 1], "the last half second forms no window");
        assert_eq!(windows[2].begin_seconds, 2.0);
        assert_eq!(timeline.windows(100.0).len(), 1);
    }

    #[test]
    fn long_runs_have_longer_ticks_and_no_more_of_them() {
        let day = Timeline::new(86_400 * SECOND);
        assert_eq!((day.tick_nanos(), day.ticks().len()), (SECOND, 86_400));
        let two_hours = Timeline::new(7200 * SECOND);
        assert_eq!((two_hours.tick_nanos(), two_hours.ticks().len()), (SECOND / 10, 72_000));
        assert_eq!(Timeline::new(0).ticks().len(), 1);
    }
}
