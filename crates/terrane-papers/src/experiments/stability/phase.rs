//! The measurements of a phase, their metrics, and their row in a table.

use terrane_lab::output::human;
use terrane_lab::output::sparkline::{sparkline, squeezed};

use crate::results::{Metric, Results};

/// The number of characters in a curve.
const COLUMNS: usize = 40;

/// The measurements of a phase; times are in seconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct PhaseMeasurement {
    /// Writes a second, after the warm-up.
    pub(super) rate: f64,
    /// Latencies of writes from their arrival.
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) p99_9: f64,
    pub(super) longest: f64,
    /// The 99th percentile without the time in the queue.
    pub(super) processing_p99: f64,
    /// The time for which the engine stopped or delayed a writer.
    pub(super) stopped: f64,
    /// The time for which the engine stopped a writer, without delays.
    pub(super) stopped_by_runs: f64,
    pub(super) longest_stall: f64,
    /// The start of the first stall of more than a second.
    pub(super) first_stall: Option<f64>,
    /// The mean and the maximum number of runs.
    pub(super) runs: f64,
    pub(super) most_runs: u64,
    /// The maximum of the counted runs divided by the number at which writers stop.
    pub(super) limit_share: f64,
    /// Writes per second in windows of equal length.
    pub(super) curve: Vec<f64>,
    pub(super) window_seconds: f64,
    /// The standard deviation of the windows after the warm-up, over their mean.
    pub(super) variation: f64,
    /// Mean bytes of each level in the second half.
    pub(super) level_bytes: Vec<f64>,
    /// Mean bytes of the tree.
    pub(super) tree_bytes: f64,
    /// The number of writes in the slowest second, divided by the mean number of writes per second.
    pub(super) slowest_second: f64,
    pub(super) write_amplification: f64,
    pub(super) flushes: u64,
    /// Merges by source level; empty if they were not counted.
    pub(super) merges: Vec<u64>,
    /// The longest stall cause, for a subject whose claims name it.
    pub(super) main_cause: String,
    /// Queries per second, and the median and the 99th percentile of their latencies.
    pub(super) query_rate: Option<f64>,
    pub(super) query_p50: Option<f64>,
    pub(super) query_p99: Option<f64>,
}

/// The metrics of every phase, by subject and phase.
pub(super) const METRICS: [Metric; 20] = [
    Metric { name: "rate", about: "writes a second after the warm-up" },
    Metric { name: "p50", about: "latency of writes from their arrival, median, seconds" },
    Metric { name: "p99", about: "the same, 99th percentile" },
    Metric { name: "p99_9", about: "the same, 99.9th percentile" },
    Metric { name: "longest", about: "the longest of them" },
    Metric { name: "processing_p99", about: "the 99th percentile without the time in the queue" },
    Metric { name: "stopped", about: "seconds for which the engine stopped a writer" },
    Metric { name: "stopped_by_runs", about: "the same, without delays" },
    Metric { name: "longest_stall", about: "the longest stall, seconds" },
    Metric { name: "first_stall", about: "when the first stall of more than a second began" },
    Metric { name: "runs", about: "mean number of runs" },
    Metric { name: "most_runs", about: "greatest number of runs" },
    Metric { name: "limit_share", about: "greatest number of runs over the limit on them" },
    Metric {
        name: "variation",
        about: "standard deviation of the rates of windows over their mean",
    },
    Metric { name: "level_1_bytes", about: "mean bytes of level 1 in the second half" },
    Metric {
        name: "upper_share",
        about: "mean bytes of the levels above the last over those of the last",
    },
    Metric { name: "tree_bytes", about: "mean bytes of the tree" },
    Metric { name: "query_rate", about: "queries a second of a reader" },
    Metric { name: "query_p99", about: "latency of queries, 99th percentile, seconds" },
    Metric { name: "merged_into_last", about: "merges out of the last level but one" },
];

/// Headers of [`row`].
pub(super) const HEADERS: [&str; 8] =
    ["", "writes/s", "over time", "stopped", "longest stall", "runs", "p50", "p99"];

impl PhaseMeasurement {
    /// Returns the standard deviation of the rates of windows after `from` seconds, divided by
    /// their mean.
    pub(super) fn variation_of(curve: &[f64], window_seconds: f64, from: f64) -> f64 {
        let is_measured = |at: usize| at as f64 * window_seconds >= from;
        let rates = curve.iter().enumerate().filter(|(at, _)| is_measured(*at));
        let rates: Vec<f64> = rates.map(|(_, rate)| *rate).collect();
        let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
        let square = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>();
        (square / rates.len().max(1) as f64).sqrt() / mean.max(1e-9)
    }

    /// Returns the bytes of the levels above the last, divided by the bytes of the last level.
    fn upper_share(&self) -> f64 {
        let levels = &self.level_bytes;
        let last = levels.iter().rev().find(|bytes| **bytes > 0.0).copied().unwrap_or(1.0);
        levels.iter().sum::<f64>() / last - 1.0
    }

    /// Returns the mean bytes of a level in the second half.
    pub(super) fn level(&self, level: usize) -> f64 {
        self.level_bytes.get(level).copied().unwrap_or(0.0)
    }

    /// Returns the mean rate until `until` seconds, the share of the windows after it with less than
    /// half of that rate, and the number of times that the rate falls below half of it.
    pub(super) fn collapse(&self, until: f64) -> (f64, f64, usize) {
        let is_early = |at: usize| (at as f64) * self.window_seconds < until;
        let count = (0..self.curve.len()).take_while(|at| is_early(*at)).count();
        let (early, late) = self.curve.split_at(count);
        let first = early.iter().sum::<f64>() / early.len().max(1) as f64;
        let is_slow = |rate: &f64| *rate < 0.5 * first;
        let slow = late.iter().filter(|rate| is_slow(rate)).count();
        let before = std::iter::once(&first).chain(late);
        let falls = before.zip(late).filter(|(before, rate)| !is_slow(before) && is_slow(rate));
        (first, slow as f64 / late.len().max(1) as f64, falls.count())
    }

    /// Records the metrics of the phase.
    pub(super) fn record(&self, subject: &str, phase: &str, results: &mut Results) {
        let merged = self.merges.iter().rev().find(|merges| **merges > 0);
        for (metric, value) in [
            ("rate", self.rate),
            ("p50", self.p50),
            ("p99", self.p99),
            ("p99_9", self.p99_9),
            ("longest", self.longest),
            ("processing_p99", self.processing_p99),
            ("stopped", self.stopped),
            ("stopped_by_runs", self.stopped_by_runs),
            ("longest_stall", self.longest_stall),
            ("first_stall", self.first_stall.unwrap_or(f64::NAN)),
            ("runs", self.runs),
            ("most_runs", self.most_runs as f64),
            ("limit_share", self.limit_share),
            ("variation", self.variation),
            ("level_1_bytes", self.level(1)),
            ("upper_share", self.upper_share()),
            ("tree_bytes", self.tree_bytes),
            ("query_rate", self.query_rate.unwrap_or(f64::NAN)),
            ("query_p99", self.query_p99.unwrap_or(f64::NAN)),
            ("merged_into_last", merged.map_or(f64::NAN, |merges| *merges as f64)),
        ] {
            results.record(metric, &[subject, phase], value);
        }
    }

    /// Returns the phase as a row of a table with [`HEADERS`].
    pub(super) fn row(&self, name: impl Into<String>) -> Vec<String> {
        let highest = self.curve.iter().copied().fold(0.0, f64::max);
        vec![
            name.into(),
            human::number(self.rate),
            format!("`{}`", sparkline(&squeezed(&self.curve, COLUMNS), highest)),
            human::seconds(self.stopped),
            human::seconds(self.longest_stall),
            format!("{:.1}", self.runs),
            human::seconds(self.p50),
            human::seconds(self.p99),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_that_collapse_are_found() {
        let mut phase = PhaseMeasurement {
            curve: vec![10.0, 14.0, 5.0, 12.0, 2.0, 13.0],
            window_seconds: 10.0,
            ..PhaseMeasurement::default()
        };
        assert_eq!(phase.collapse(15.0), (12.0, 0.5, 2));
        assert_eq!(PhaseMeasurement::variation_of(&[9.0, 1.0, 3.0], 10.0, 10.0), 0.5);
        phase.level_bytes = vec![1.0, 2.0, 10.0, 0.0];
        assert!((phase.upper_share() - 0.3).abs() < 1e-9);
        assert_eq!(phase.level(1), 2.0);
        assert_eq!(phase.level(7), 0.0);
    }
}
