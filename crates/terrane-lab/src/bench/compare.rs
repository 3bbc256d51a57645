//! Designs side by side: each metric of a workload, relative to the best design.
//!
//! With several repetitions each metric is the median of its own values.

use serde::Serialize;

use super::row::WorkloadRow;
use super::runner::DesignRun;
use crate::output::json::{SCHEMA, rounded};

/// Which values are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Higher values.
    Higher,
    /// Lower values.
    Lower,
}

/// A metric to compare.
struct Metric {
    name: &'static str,
    better: Better,
    of: fn(&WorkloadRow) -> Option<f64>,
}

const fn metric(name: &'static str, better: Better, of: fn(&WorkloadRow) -> Option<f64>) -> Metric {
    Metric { name, better, of }
}

/// Returns `value`, a metric of compactions, or `None` if the workload wrote nothing.
fn if_written(row: &WorkloadRow, value: f64) -> Option<f64> {
    row.write_amplification.map(|_| value)
}

fn compaction_percentile_millis(row: &WorkloadRow, percent: f64) -> Option<f64> {
    row.work.compaction_times.percentile_micros(percent).map(|micros| micros / 1e3)
}

const METRICS: [Metric; 26] = [
    metric("ops/s", Better::Higher, |row| Some(row.operations_per_second)),
    metric("latency mean µs", Better::Lower, |row| row.latency.map(|latency| latency.mean)),
    metric("latency p50 µs", Better::Lower, |row| row.latency.map(|latency| latency.p50)),
    metric("latency p90 µs", Better::Lower, |row| row.latency.map(|latency| latency.p90)),
    metric("latency p99 µs", Better::Lower, |row| row.latency.map(|latency| latency.p99)),
    metric("latency max µs", Better::Lower, |row| row.latency.map(|latency| latency.max)),
    metric("write amp", Better::Lower, |row| row.write_amplification),
    metric("rewrite amp", Better::Lower, |row| row.work.rewrite_amplification),
    metric("read amp", Better::Lower, |row| row.read_amplification),
    metric("pages read", Better::Lower, |row| row.pages_read),
    metric("space amp", Better::Lower, |row| row.space_amplification),
    metric("compactions", Better::Lower, |row| if_written(row, row.compactions as f64)),
    metric("moved only", Better::Higher, |row| if_written(row, row.work.move_compactions as f64)),
    metric("read by compactions MiB", Better::Lower, |row| {
        if_written(row, mebibytes(row.work.compaction_bytes_read))
    }),
    metric("written by compactions MiB", Better::Lower, |row| {
        if_written(row, mebibytes(row.work.compaction_bytes_written))
    }),
    metric("compaction mean ms", Better::Lower, |row| {
        row.work.compaction_times.mean_micros().map(|micros| micros / 1e3)
    }),
    metric("compaction p50 ms", Better::Lower, |row| compaction_percentile_millis(row, 50.0)),
    metric("compaction p90 ms", Better::Lower, |row| compaction_percentile_millis(row, 90.0)),
    metric("compaction p99 ms", Better::Lower, |row| compaction_percentile_millis(row, 99.0)),
    metric("compaction max ms", Better::Lower, |row| {
        row.work.compaction_times.max_micros().map(|micros| micros / 1e3)
    }),
    metric("stalled ms", Better::Lower, |row| if_written(row, row.stall_micros as f64 / 1e3)),
    metric("cache misses", Better::Lower, |row| {
        let misses = row.work.cache_misses;
        let count = misses.data + misses.index + misses.filter;
        (count > 0).then_some(count as f64)
    }),
    metric("tombstones left", Better::Lower, |row| if_written(row, row.work.tombstones as f64)),
    metric("oldest tombstone s", Better::Lower, |row| {
        row.work.oldest_tombstone_micros.map(|micros| micros as f64 / 1e6)
    }),
    metric("sorted runs", Better::Lower, |row| Some(row.work.sorted_runs as f64)),
    metric("tables", Better::Lower, |row| Some(row.work.tables as f64)),
];

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// A metric of a workload for each design.
#[derive(Debug, Serialize)]
pub struct ComparedMetric {
    /// The name of the metric, with its unit.
    pub metric: &'static str,
    /// Which values are better.
    pub better: Better,
    /// The value of each design.
    pub values: Vec<MetricValue>,
}

/// A metric of one design.
#[derive(Debug, Serialize)]
pub struct MetricValue {
    /// The name of the design.
    pub design: String,
    /// The median of the repetitions; `None` where the metric has no meaning.
    pub value: Option<f64>,
    /// The value relative to the best design, from 0 to 1; 1 is the best.
    pub of_best: Option<f64>,
}

/// Compares all metrics of a workload; `designs` holds the repetitions of each design.
fn compared(designs: &[Vec<DesignRun>], workload: usize) -> Vec<ComparedMetric> {
    let metric = |metric: &Metric| {
        let values: Vec<Option<f64>> = designs
            .iter()
            .map(|repetitions| {
                let rows = repetitions.iter().filter_map(|run| run.rows.get(workload));
                median(rows.filter_map(metric.of).collect())
            })
            .collect();
        let known = values.iter().flatten().copied();
        let best = match metric.better {
            Better::Higher => known.fold(None, |best: Option<f64>, value| {
                Some(best.map_or(value, |best| best.max(value)))
            }),
            Better::Lower => known.fold(None, |best: Option<f64>, value| {
                Some(best.map_or(value, |best| best.min(value)))
            }),
        };
        let values = designs.iter().zip(values).map(|(repetitions, value)| MetricValue {
            design: repetitions.first().map(|one| one.name.clone()).unwrap_or_default(),
            value: value.map(rounded),
            of_best: value.zip(best).map(|(value, best)| of_best(metric.better, value, best)),
        });
        ComparedMetric { metric: metric.name, better: metric.better, values: values.collect() }
    };
    let all = METRICS.iter().map(metric);
    all.filter(|compared| compared.values.iter().any(|value| value.value.is_some())).collect()
}

fn of_best(better: Better, value: f64, best: f64) -> f64 {
    let (part, whole) = match better {
        Better::Higher => (value, best),
        Better::Lower => (best, value),
    };
    // The best value is zero or less, and every design has that value.
    if whole <= 0.0 { 1.0 } else { rounded(part / whole).clamp(0.0, 1.0) }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    match values.len().is_multiple_of(2) {
        true => Some(f64::midpoint(*values.get(middle - 1)?, upper)),
        false => Some(upper),
    }
}

/// The comparison of the designs on one workload; serialises to a line of `--json`.
#[derive(Debug, Serialize)]
pub struct BenchComparison {
    schema: u32,
    /// The workload.
    pub comparison: String,
    /// Repetitions of the workload on each design.
    pub repetitions: usize,
    /// The metrics that have a value for some design.
    pub metrics: Vec<ComparedMetric>,
}

impl BenchComparison {
    /// Returns the comparison of designs on a workload.
    pub(super) fn new(
        comparison: String,
        repetitions: usize,
        metrics: Vec<ComparedMetric>,
    ) -> Self {
        Self { schema: SCHEMA, comparison, repetitions, metrics }
    }

    /// Compares the designs on all workloads; `designs` holds the repetitions of each design.
    pub fn of(designs: &[Vec<DesignRun>]) -> Vec<Self> {
        let first = designs.first().and_then(|repetitions| repetitions.first());
        let workloads = first.map(|first| &first.rows[..]).unwrap_or_default();
        let repetitions = designs.first().map_or(0, Vec::len);
        let one = |(number, row): (usize, &WorkloadRow)| {
            Self::new(row.workload.to_string(), repetitions, compared(designs, number))
        };
        workloads.iter().enumerate().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_one_whichever_way_is_better() {
        assert_eq!(of_best(Better::Higher, 50.0, 100.0), 0.5);
        assert_eq!(of_best(Better::Lower, 100.0, 50.0), 0.5);
        assert_eq!(of_best(Better::Lower, 0.0, 0.0), 1.0);
        assert_eq!(of_best(Better::Lower, 3.0, 0.0), 0.0);
    }

    #[test]
    fn medians_of_few_and_of_none() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }
}
