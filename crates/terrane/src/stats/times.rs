//! A histogram of durations.
//!
//! It has sixteen cells per power of two, so percentiles are exact to 6 %. Recording a duration
//! takes three relaxed atomic operations, much less than the operations measured.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// The binary logarithm of the cells per power of two.
const CELL_BITS: u32 = 4;
const CELLS_PER_OCTAVE: usize = 1 << CELL_BITS;
/// Durations up to 2^40 microseconds (twelve days); longer durations count as this long.
const CELLS: usize = (40 - CELL_BITS as usize + 1) * CELLS_PER_OCTAVE;

/// A histogram that any number of threads record into.
#[derive(Debug)]
pub(crate) struct TimesCounter {
    cells: Box<[AtomicU64]>,
    sum_micros: AtomicU64,
    max_micros: AtomicU64,
}

impl Default for TimesCounter {
    fn default() -> Self {
        Self {
            cells: (0..CELLS).map(|_| AtomicU64::new(0)).collect(),
            sum_micros: AtomicU64::new(0),
            max_micros: AtomicU64::new(0),
        }
    }
}

impl TimesCounter {
    pub(crate) fn add(&self, micros: u64) {
        if let Some(cell) = self.cells.get(cell_of(micros)) {
            cell.fetch_add(1, Ordering::Relaxed);
        }
        self.sum_micros.fetch_add(micros, Ordering::Relaxed);
        self.max_micros.fetch_max(micros, Ordering::Relaxed);
    }

    pub(crate) fn times(&self) -> Times {
        Times {
            cells: self.cells.iter().map(|cell| cell.load(Ordering::Relaxed)).collect(),
            sum_micros: self.sum_micros.load(Ordering::Relaxed),
            max_micros: self.max_micros.load(Ordering::Relaxed),
        }
    }
}

/// A distribution of durations: count, mean, percentiles and maximum.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Times {
    cells: Box<[u64]>,
    sum_micros: u64,
    max_micros: u64,
}

impl Times {
    /// Returns the number of durations.
    pub fn count(&self) -> u64 {
        self.cells.iter().sum()
    }

    /// Returns the sum of all durations, in microseconds.
    pub fn sum_micros(&self) -> u64 {
        self.sum_micros
    }

    /// Returns the mean in microseconds; 0 without durations.
    pub fn mean_micros(&self) -> f64 {
        let count = self.count();
        if count == 0 { 0.0 } else { self.sum_micros as f64 / count as f64 }
    }

    /// Returns the longest duration in microseconds.
    pub fn max_micros(&self) -> u64 {
        self.max_micros
    }

    /// Returns the given percentile in microseconds, exact to 6 %.
    pub fn percentile_micros(&self, percent: f64) -> u64 {
        let wanted = (percent / 100.0 * self.count() as f64).ceil() as u64;
        let mut seen = 0;
        for (cell, count) in self.cells.iter().enumerate() {
            seen += count;
            if seen >= wanted.max(1) {
                return last_of(cell).min(self.max_micros);
            }
        }
        self.max_micros
    }

    /// Returns the durations recorded after `earlier` was taken. Their maximum is exact only if it
    /// is the maximum of all durations; otherwise it is exact to 6 %.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let before = |cell: usize| earlier.cells.get(cell).copied().unwrap_or(0);
        let cells: Box<[u64]> = (self.cells.iter().enumerate())
            .map(|(cell, count)| count.saturating_sub(before(cell)))
            .collect();
        let last = cells.iter().rposition(|count| *count > 0);
        Self {
            sum_micros: self.sum_micros.saturating_sub(earlier.sum_micros),
            max_micros: last.map_or(0, |cell| last_of(cell).min(self.max_micros)),
            cells,
        }
    }
}

impl fmt::Debug for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mean, p99) = (self.mean_micros(), self.percentile_micros(99.0));
        write!(f, "Times({}, mean {mean:.0} µs, p99 {p99}, max {})", self.count(), self.max_micros)
    }
}

fn cell_of(micros: u64) -> usize {
    if micros < CELLS_PER_OCTAVE as u64 {
        return micros as usize;
    }
    let octave = micros.ilog2() - CELL_BITS;
    let within = (micros >> octave) as usize - CELLS_PER_OCTAVE;
    ((octave as usize + 1) * CELLS_PER_OCTAVE + within).min(CELLS - 1)
}

/// Returns the longest duration of a cell.
fn last_of(cell: usize) -> u64 {
    if cell < CELLS_PER_OCTAVE {
        return cell as u64;
    }
    let octave = cell / CELLS_PER_OCTAVE - 1;
    let within = (cell % CELLS_PER_OCTAVE + CELLS_PER_OCTAVE) as u64;
    ((within + 1) << octave) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_lies_in_its_cell() {
        for micros in (0..5000).chain([65_535, 65_536, 1 << 30, (1 << 40) - 1]) {
            let cell = cell_of(micros);
            assert!(micros <= last_of(cell), "{micros}");
            assert!(cell == 0 || micros > last_of(cell - 1), "{micros}");
            assert!(last_of(cell) as f64 <= micros as f64 * 1.07, "{micros}");
        }
        assert_eq!(cell_of(u64::MAX), CELLS - 1);
    }

    #[test]
    fn percentiles_are_those_of_what_was_counted() {
        let counter = TimesCounter::default();
        (1..=1000).for_each(|micros| counter.add(micros));
        let times = counter.times();
        assert_eq!((times.count(), times.max_micros()), (1000, 1000));
        assert_eq!(times.mean_micros(), 500.5);
        for (percent, exact) in [(50.0, 500), (90.0, 900), (99.0, 990), (100.0, 1000)] {
            let found = times.percentile_micros(percent);
            assert!((exact..=exact + exact / 15).contains(&found), "{percent}: {found}");
        }
        assert_eq!(Times::default().percentile_micros(99.0), 0);
    }

    #[test]
    fn what_came_later_is_told_apart() {
        let counter = TimesCounter::default();
        counter.add(5_000);
        let earlier = counter.times();
        (0..10).for_each(|_| counter.add(100));
        let since = counter.times().since(&earlier);
        assert_eq!((since.count(), since.sum_micros()), (10, 1000));
        assert!((100..107).contains(&since.max_micros()));
        assert_eq!(earlier.since(&earlier).count(), 0);
    }
}
