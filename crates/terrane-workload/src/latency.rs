//! Latencies of operations.

use std::time::Duration;

use hdrhistogram::Histogram;

const LOWEST_NANOS: u64 = 1;
/// A day, because a write may wait for hours in a growing queue; a longer latency is recorded as a
/// day.
const HIGHEST_NANOS: u64 = 86_400_000_000_000;
/// Percentiles are accurate to one part in a thousand.
const SIGNIFICANT_DIGITS: u8 = 3;
const NANOS_PER_MICRO: f64 = 1000.0;

/// A histogram of latencies with three significant digits.
#[derive(Debug, Clone)]
pub struct Latency {
    histogram: Histogram<u64>,
}

impl Latency {
    /// Returns an empty histogram.
    pub fn new() -> Self {
        let histogram = Histogram::new_with_bounds(LOWEST_NANOS, HIGHEST_NANOS, SIGNIFICANT_DIGITS)
            // This is never reached, because the constant bounds are valid.
            .unwrap_or_else(|_| unreachable!());
        Self { histogram }
    }

    /// Adds one latency.
    #[inline]
    pub fn record(&mut self, time: Duration) {
        self.record_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    #[inline]
    pub(crate) fn record_nanos(&mut self, nanos: u64) {
        self.histogram.saturating_record(nanos);
    }

    /// Adds a latency `count` times.
    pub(crate) fn record_many(&mut self, nanos: u64, count: u64) {
        self.histogram.saturating_record_n(nanos, count);
    }

    /// Adds all latencies of `other`.
    pub fn add(&mut self, other: &Self) {
        // This cannot fail, because both histograms have the same bounds.
        let fitted = self.histogram.add(&other.histogram);
        debug_assert!(fitted.is_ok());
    }

    /// Returns the number of recorded latencies.
    pub fn samples(&self) -> u64 {
        self.histogram.len()
    }

    /// Returns the latency that `percent` of the operations did not exceed, in microseconds.
    pub fn percentile_micros(&self, percent: f64) -> f64 {
        self.histogram.value_at_percentile(percent) as f64 / NANOS_PER_MICRO
    }

    /// Returns the mean in microseconds.
    pub fn mean_micros(&self) -> f64 {
        self.histogram.mean() / NANOS_PER_MICRO
    }

    /// Returns the maximum in microseconds.
    pub fn max_micros(&self) -> f64 {
        self.histogram.max() as f64 / NANOS_PER_MICRO
    }

    /// Returns the mean, common percentiles and the maximum.
    pub fn summary(&self) -> LatencyMicros {
        LatencyMicros {
            mean: self.mean_micros(),
            p50: self.percentile_micros(50.0),
            p90: self.percentile_micros(90.0),
            p99: self.percentile_micros(99.0),
            p99_9: self.percentile_micros(99.9),
            max: self.max_micros(),
        }
    }
}

impl Default for Latency {
    fn default() -> Self {
        Self::new()
    }
}

/// Mean, percentiles and maximum, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LatencyMicros {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The 99.9th percentile.
    pub p99_9: f64,
    /// The maximum.
    pub max: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latency(micros: impl IntoIterator<Item = u64>) -> Latency {
        let mut latency = Latency::new();
        for micros in micros {
            latency.record(Duration::from_micros(micros));
        }
        latency
    }

    fn is_near(actual: f64, expected: f64) -> bool {
        (actual - expected).abs() <= expected / 500.0
    }

    #[test]
    fn percentiles_are_accurate_to_three_digits() {
        let summary = latency(1..=1000).summary();
        assert!(is_near(summary.mean, 500.5), "{summary:?}");
        assert!(is_near(summary.p50, 500.0), "{summary:?}");
        assert!(is_near(summary.p99, 990.0), "{summary:?}");
        assert!(is_near(summary.p99_9, 999.0), "{summary:?}");
        assert!(is_near(summary.max, 1000.0), "{summary:?}");
    }

    #[test]
    fn merged_latencies_are_those_of_all_threads() {
        let mut merged = latency(1..=500);
        merged.add(&latency(501..=1000));
        assert_eq!(merged.summary(), latency(1..=1000).summary());
        assert_eq!(merged.samples(), 1000);
    }

    #[test]
    fn latencies_beyond_the_bounds_are_recorded_as_the_bound() {
        let latency = latency([0, u64::MAX / 1_000]);
        assert_eq!(latency.samples(), 2);
        assert!(is_near(latency.max_micros(), 86_400e6), "{}", latency.max_micros());
    }
}
