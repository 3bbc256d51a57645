//! A histogram of durations, as in HdrHistogram: log-linear cells of fixed memory.
//!
//! A duration of less than 64 ns has a cell of its own. Above, each power of two has 64 cells, so a
//! cell is at most 1/64 of its durations wide, and its middle is within 1 % of each of them. Adding up
//! the cells of two histograms gives the histogram of both.
//!
//! Threads add to [`GROUPS`] copies, so that they rarely share a cache line. A copy takes 21 KiB,
//! and exists once a thread of its group has added something.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::stripe::stripe_of_thread;

/// The binary logarithm of the cells per power of two.
const CELL_BITS: u32 = 6;
const CELLS_PER_OCTAVE: usize = 1 << CELL_BITS;
/// Durations up to 2^46 nanoseconds (19 hours); longer durations count as this long.
const NANOS_BITS: usize = 46;
const CELLS: usize = (NANOS_BITS - CELL_BITS as usize + 1) * CELLS_PER_OCTAVE;
/// The number of copies of a histogram. Counters have more, because a copy of a histogram is large,
/// and most operations are not measured.
const GROUPS: usize = 4;

const _: () = assert!(Times::PRECISION * 2.0 * CELLS_PER_OCTAVE as f64 >= 1.0);

/// A histogram that any number of threads add to.
#[derive(Debug, Default)]
pub(crate) struct TimesCounter {
    groups: [OnceLock<Box<Cells>>; GROUPS],
}

#[derive(Debug)]
struct Cells {
    cells: [AtomicU64; CELLS],
    sum_nanos: AtomicU64,
    max_nanos: AtomicU64,
}

impl Cells {
    fn new() -> Box<Self> {
        Box::new(Self {
            cells: [const { AtomicU64::new(0) }; CELLS],
            sum_nanos: AtomicU64::new(0),
            max_nanos: AtomicU64::new(0),
        })
    }
}

impl TimesCounter {
    /// Records a duration.
    #[inline]
    pub(crate) fn add(&self, nanos: u64) {
        let Some(group) = self.groups.get(stripe_of_thread() % GROUPS) else { return };
        let group = group.get_or_init(Cells::new);
        // Relaxed: no other memory access depends on a histogram.
        if let Some(cell) = group.cells.get(cell_of(nanos)) {
            cell.fetch_add(1, Ordering::Relaxed);
        }
        group.sum_nanos.fetch_add(nanos, Ordering::Relaxed);
        if nanos > group.max_nanos.load(Ordering::Relaxed) {
            group.max_nanos.fetch_max(nanos, Ordering::Relaxed);
        }
    }

    /// Returns what all threads added.
    pub(crate) fn times(&self) -> Times {
        let mut times = Times::default();
        for group in self.groups.iter().filter_map(OnceLock::get) {
            let cells: Vec<u64> =
                group.cells.iter().map(|cell| cell.load(Ordering::Relaxed)).collect();
            times.merge(&Times {
                cells: trimmed(&cells),
                sum_nanos: group.sum_nanos.load(Ordering::Relaxed),
                max_nanos: group.max_nanos.load(Ordering::Relaxed),
            });
        }
        times
    }
}

/// Returns the cells up to the last nonzero one.
fn trimmed(cells: &[u64]) -> Box<[u64]> {
    let used = cells.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
    cells.iter().take(used).copied().collect()
}

/// A distribution of durations: count, mean, percentiles and maximum.
#[derive(Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "StoredTimes", try_from = "StoredTimes"))]
pub struct Times {
    /// Ends with the last nonzero cell.
    cells: Box<[u64]>,
    sum_nanos: u64,
    max_nanos: u64,
}

impl Times {
    /// The largest relative error of a percentile.
    pub const PRECISION: f64 = 0.01;

    /// Returns the number of durations.
    pub fn count(&self) -> u64 {
        self.cells.iter().sum()
    }

    /// Returns the sum of all durations, in microseconds.
    pub fn sum_micros(&self) -> u64 {
        self.sum_nanos / 1000
    }

    /// Returns the sum of all durations.
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum_nanos)
    }

    /// Returns the mean in microseconds; `None` without durations.
    pub fn mean_micros(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| micros(self.sum_nanos) / count as f64)
    }

    /// Returns the longest duration in microseconds; `None` without durations.
    pub fn max_micros(&self) -> Option<f64> {
        (!self.cells.is_empty()).then(|| micros(self.max_nanos))
    }

    /// Returns the duration that `percent` of all durations do not exceed, in microseconds, exact to
    /// [`Times::PRECISION`]; `None` without durations.
    pub fn percentile_micros(&self, percent: f64) -> Option<f64> {
        let wanted = (percent / 100.0 * self.count() as f64).ceil() as u64;
        let mut seen = 0;
        for (cell, count) in self.cells.iter().enumerate() {
            seen += count;
            if seen >= wanted.max(1) {
                return Some(micros(middle_of(cell).min(self.max_nanos)));
            }
        }
        self.max_micros()
    }

    /// Returns the number of durations of less than `nanos` nanoseconds, a power of two.
    pub(super) fn count_below(&self, nanos: u64) -> u64 {
        self.cells.iter().take(cell_of(nanos)).sum()
    }

    /// Adds the durations of `other`.
    pub fn merge(&mut self, other: &Self) {
        let (longer, shorter) = match self.cells.len() >= other.cells.len() {
            true => (self.cells.clone(), &other.cells),
            false => (other.cells.clone(), &self.cells),
        };
        let mut cells = longer;
        cells.iter_mut().zip(shorter).for_each(|(sum, count)| *sum += count);
        self.cells = cells;
        self.sum_nanos = self.sum_nanos.saturating_add(other.sum_nanos);
        self.max_nanos = self.max_nanos.max(other.max_nanos);
    }

    /// Returns the durations added after `earlier` was taken. Their maximum is exact only if it
    /// is the maximum of all durations; otherwise it is exact to [`Times::PRECISION`].
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let before = |cell: usize| earlier.cells.get(cell).copied().unwrap_or(0);
        let cells: Vec<u64> = (self.cells.iter().enumerate())
            .map(|(cell, count)| count.saturating_sub(before(cell)))
            .collect();
        let cells = trimmed(&cells);
        let max = if cells.len() == self.cells.len() && self.max_nanos > earlier.max_nanos {
            self.max_nanos
        } else {
            cells.len().checked_sub(1).map_or(0, |cell| middle_of(cell).min(self.max_nanos))
        };
        Self { sum_nanos: self.sum_nanos.saturating_sub(earlier.sum_nanos), max_nanos: max, cells }
    }
}

/// The nonzero cells of a distribution, with their numbers.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
struct StoredTimes {
    sum_nanos: u64,
    max_nanos: u64,
    cells: Vec<(usize, u64)>,
}

#[cfg(feature = "serde")]
impl From<Times> for StoredTimes {
    fn from(times: Times) -> Self {
        let cells = times.cells.iter().copied().enumerate().filter(|(_, count)| *count > 0);
        Self { sum_nanos: times.sum_nanos, max_nanos: times.max_nanos, cells: cells.collect() }
    }
}

#[cfg(feature = "serde")]
impl TryFrom<StoredTimes> for Times {
    type Error = &'static str;

    fn try_from(stored: StoredTimes) -> Result<Self, Self::Error> {
        let (mut cells, mut all) = (vec![0_u64; CELLS], 0_u64);
        for (cell, count) in stored.cells {
            let known = cells.get_mut(cell).ok_or("a cell is beyond the longest duration")?;
            all = all.checked_add(count).ok_or("the cells count too many durations")?;
            *known += count;
        }
        let StoredTimes { sum_nanos, max_nanos, .. } = stored;
        Ok(Self { cells: trimmed(&cells), sum_nanos, max_nanos })
    }
}

impl fmt::Debug for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(mean), Some(p99), Some(max)) =
            (self.mean_micros(), self.percentile_micros(99.0), self.max_micros())
        else {
            return f.write_str("Times(0)");
        };
        write!(f, "Times({}, mean {mean:.1} µs, p99 {p99:.1}, max {max:.1})", self.count())
    }
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

#[inline]
fn cell_of(nanos: u64) -> usize {
    if nanos < CELLS_PER_OCTAVE as u64 {
        return nanos as usize;
    }
    let octave = nanos.ilog2() - CELL_BITS;
    let within = (nanos >> octave) as usize - CELLS_PER_OCTAVE;
    ((octave as usize + 1) * CELLS_PER_OCTAVE + within).min(CELLS - 1)
}

/// Returns the duration in the middle of a cell.
fn middle_of(cell: usize) -> u64 {
    if cell < CELLS_PER_OCTAVE {
        return cell as u64;
    }
    let octave = cell / CELLS_PER_OCTAVE - 1;
    let first = ((cell % CELLS_PER_OCTAVE + CELLS_PER_OCTAVE) as u64) << octave;
    first + ((1 << octave) - 1) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times_of(nanos: impl IntoIterator<Item = u64>) -> Times {
        let counter = TimesCounter::default();
        nanos.into_iter().for_each(|nanos| counter.add(nanos));
        counter.times()
    }

    #[test]
    fn every_time_lies_in_its_cell() {
        let large = [65_535, 65_536, 999_999_999, 1 << 30, (1 << NANOS_BITS) - 1];
        for nanos in (0..50_000).chain(large) {
            let middle = middle_of(cell_of(nanos)) as f64;
            assert!((middle - nanos as f64).abs() <= nanos as f64 * Times::PRECISION, "{nanos}");
            assert!(cell_of(nanos + 1) - cell_of(nanos) <= 1, "{nanos}");
        }
        assert_eq!(cell_of(u64::MAX), CELLS - 1);
    }

    #[test]
    fn percentiles_are_those_of_what_was_counted() {
        let times = times_of((1..=1000).map(|micros| micros * 1000));
        assert_eq!((times.count(), times.max_micros()), (1000, Some(1000.0)));
        assert_eq!((times.mean_micros(), times.sum_micros()), (Some(500.5), 500_500));
        for (percent, exact) in [(50.0, 500.0), (90.0, 900.0), (99.0, 990.0), (100.0, 1000.0)] {
            let found = times.percentile_micros(percent).unwrap();
            assert!((found - exact).abs() <= exact * Times::PRECISION, "{percent}: {found}");
        }
        assert_eq!(times_of([300; 3]).percentile_micros(50.0), Some(0.3));
        assert_eq!(times_of([0]).percentile_micros(50.0), Some(0.0));
    }

    #[test]
    fn without_durations_there_is_no_mean_percentile_or_maximum() {
        let times = times_of([5_000]);
        for none in [Times::default(), times.since(&times)] {
            assert_eq!((none.mean_micros(), none.max_micros()), (None, None));
            assert_eq!((none.percentile_micros(0.0), none.percentile_micros(100.0)), (None, None));
            assert_eq!(format!("{none:?}"), "Times(0)");
        }
    }

    #[test]
    fn what_came_later_is_told_apart() {
        let counter = TimesCounter::default();
        counter.add(5_000_000);
        let earlier = counter.times();
        (0..10).for_each(|_| counter.add(100_000));
        let since = counter.times().since(&earlier);
        assert_eq!((since.count(), since.sum_micros()), (10, 1000));
        assert!((99.0..101.0).contains(&since.max_micros().unwrap()));
        assert_eq!(earlier.since(&earlier), Times::default());
        counter.add(7_000_001);
        assert_eq!(counter.times().since(&earlier).max_micros(), Some(7000.001));
    }

    #[test]
    fn merged_times_are_those_of_both() {
        for (left, right) in [(1..500, 500..1000), (500..1000, 1..500)] {
            let mut merged = times_of(left.map(|nanos| nanos * 777));
            merged.merge(&times_of(right.map(|nanos| nanos * 777)));
            assert_eq!(merged, times_of((1..1000).map(|nanos| nanos * 777)));
        }
    }

    #[test]
    fn times_of_all_threads_are_counted() {
        let counter = TimesCounter::default();
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| (0..100).for_each(|nanos| counter.add(nanos)));
            }
        });
        let times = counter.times();
        assert_eq!((times.count(), times.sum()), (2000, Duration::from_nanos(99_000)));
        assert_eq!((times.count_below(32), times.count_below(128)), (640, 2000));
    }
}
