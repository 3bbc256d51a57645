//! Designs side by side: each metric of a workload, relative to the best.
//!
//! With several repetitions the figures are medians, each metric's own. A bar is as long as a
//! design is good: the best has a full one, one that is half as good half of it.

use std::io::{self, Write};

use serde::Serialize;

use super::row::Row;
use super::runner::Finished;
use crate::human;
use crate::json::SCHEMA;
use crate::table::{Align, lines, table};
use crate::terminal::Paint;

/// How many characters a bar is wide.
const BAR_WIDTH: usize = 12;

/// Which values are the better ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Better {
    Higher,
    Lower,
}

/// What is compared.
struct Metric {
    name: &'static str,
    better: Better,
    of: fn(&Row) -> Option<f64>,
}

const fn metric(name: &'static str, better: Better, of: fn(&Row) -> Option<f64>) -> Metric {
    Metric { name, better, of }
}

/// A count where it says something: of compactions only if there may have been any.
fn if_written(row: &Row, value: f64) -> Option<f64> {
    row.write_amplification.map(|_| value)
}

fn compaction_millis(row: &Row, micros: f64) -> Option<f64> {
    (row.work.compaction_times.count() > 0).then_some(micros / 1e3)
}

const METRICS: [Metric; 26] = [
    metric("ops/s", Better::Higher, |row| Some(row.operations_per_second)),
    metric("latency mean µs", Better::Lower, |row| Some(row.latency.mean)),
    metric("latency p50 µs", Better::Lower, |row| Some(row.latency.p50)),
    metric("latency p90 µs", Better::Lower, |row| Some(row.latency.p90)),
    metric("latency p99 µs", Better::Lower, |row| Some(row.latency.p99)),
    metric("latency max µs", Better::Lower, |row| Some(row.latency.max)),
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
        compaction_millis(row, row.work.compaction_times.mean_micros())
    }),
    metric("compaction p50 ms", Better::Lower, |row| {
        compaction_millis(row, row.work.compaction_times.percentile_micros(50.0) as f64)
    }),
    metric("compaction p90 ms", Better::Lower, |row| {
        compaction_millis(row, row.work.compaction_times.percentile_micros(90.0) as f64)
    }),
    metric("compaction p99 ms", Better::Lower, |row| {
        compaction_millis(row, row.work.compaction_times.percentile_micros(99.0) as f64)
    }),
    metric("compaction max ms", Better::Lower, |row| {
        compaction_millis(row, row.work.compaction_times.max_micros() as f64)
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
struct Compared {
    metric: &'static str,
    better: Better,
    values: Vec<Value>,
}

#[derive(Debug, Serialize)]
struct Value {
    design: String,
    /// The median of the repetitions; `None` where the metric has no meaning.
    value: Option<f64>,
    /// How good it is beside the best, 0 to 1.
    of_best: Option<f64>,
}

/// All metrics of a workload; `designs` holds the repetitions of each.
fn compared(designs: &[Vec<Finished>], workload: usize) -> Vec<Compared> {
    let metric = |metric: &Metric| {
        let values: Vec<Option<f64>> = designs
            .iter()
            .map(|repetitions| {
                let rows = repetitions.iter().filter_map(|finished| finished.rows.get(workload));
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
        let values = designs.iter().zip(values).map(|(repetitions, value)| Value {
            design: repetitions.first().map(|one| one.name.clone()).unwrap_or_default(),
            value: value.map(rounded),
            of_best: value.zip(best).map(|(value, best)| of_best(metric.better, value, best)),
        });
        Compared { metric: metric.name, better: metric.better, values: values.collect() }
    };
    let all = METRICS.iter().map(metric);
    all.filter(|compared| compared.values.iter().any(|value| value.value.is_some())).collect()
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

fn of_best(better: Better, value: f64, best: f64) -> f64 {
    let (part, whole) = match better {
        Better::Higher => (value, best),
        Better::Lower => (best, value),
    };
    // Nothing of what nothing is best of is as good as the best.
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

/// A workload's comparison as programs get it.
#[derive(Debug, Serialize)]
pub(super) struct JsonComparison {
    schema: u32,
    comparison: String,
    repetitions: usize,
    metrics: Vec<Compared>,
}

impl JsonComparison {
    /// The comparisons of all workloads.
    pub(super) fn of(designs: &[Vec<Finished>]) -> Vec<Self> {
        let first = designs.first().and_then(|repetitions| repetitions.first());
        let workloads = first.map(|first| &first.rows[..]).unwrap_or_default();
        let one = |(number, row): (usize, &Row)| Self {
            schema: SCHEMA,
            comparison: row.workload.to_string(),
            repetitions: designs.first().map_or(0, Vec::len),
            metrics: compared(designs, number),
        };
        workloads.iter().enumerate().map(one).collect()
    }
}

/// The designs side by side, a table a workload.
pub(super) fn write(out: &mut impl Write, designs: &[Vec<Finished>]) -> io::Result<()> {
    let paint = Paint::stdout();
    for comparison in JsonComparison::of(designs) {
        let medians = match comparison.repetitions {
            1 => String::new(),
            count => format!(", medians of {count}"),
        };
        let title = format!("{} side by side{medians}", comparison.comparison);
        writeln!(out, "\n{}", paint.bold(&title))?;
        let mut headers = vec![("", Align::Left)];
        let names: Vec<&str> = designs.iter().flat_map(|all| all.first()).map(name_of).collect();
        headers.extend(names.iter().map(|name| (*name, Align::Right)));
        let mut table = table(&headers);
        for compared in &comparison.metrics {
            let cells = compared.values.iter().map(cell);
            table.add_row(std::iter::once(compared.metric.to_owned()).chain(cells));
        }
        for line in lines(&table) {
            writeln!(out, "{line}")?;
        }
    }
    writeln!(
        out,
        "{}",
        paint.dim(
            "a full bar is the best of a line, half a bar is half as good; rewrite amp: \
                   bytes written by compactions for each byte of the user"
        )
    )
}

fn name_of(finished: &Finished) -> &str {
    &finished.name
}

fn cell(value: &Value) -> String {
    match (value.value, value.of_best) {
        (Some(value), Some(of_best)) => format!("{} {:>9}", bar(of_best), human::number(value)),
        _ => "-".to_owned(),
    }
}

fn bar(share: f64) -> String {
    let filled = (share * BAR_WIDTH as f64).round() as usize;
    let filled = filled.min(BAR_WIDTH);
    format!("{}{}", "█".repeat(filled), "·".repeat(BAR_WIDTH - filled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_has_the_full_bar_whichever_way_is_better() {
        assert_eq!(of_best(Better::Higher, 50.0, 100.0), 0.5);
        assert_eq!(of_best(Better::Lower, 100.0, 50.0), 0.5);
        assert_eq!(of_best(Better::Lower, 0.0, 0.0), 1.0);
        assert_eq!(of_best(Better::Lower, 3.0, 0.0), 0.0);
        assert_eq!(bar(1.0), "█".repeat(12));
        assert_eq!(bar(0.5), format!("{}{}", "█".repeat(6), "·".repeat(6)));
    }

    #[test]
    fn medians_of_few_and_of_none() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }
}
