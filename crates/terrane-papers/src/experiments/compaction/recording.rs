//! Records the metrics of §4.2 after a load, and shows them in tables.

use super::axes::Axis;
use super::tree::{LoadStats, ReadCost};
use crate::results::{Metric, Results};

/// A load, and lookups after it.
pub(super) struct Counted {
    /// The position on the axis.
    pub(super) value: String,
    pub(super) strategy: &'static str,
    pub(super) stats: LoadStats,
    pub(super) existing: ReadCost,
    pub(super) missing: ReadCost,
}

impl Counted {
    /// Returns the compactions, including those that only moved tables.
    fn compactions(&self) -> f64 {
        (self.stats.compactions + self.stats.move_compactions) as f64
    }

    fn nanos_per_byte(&self) -> f64 {
        let moved: u64 = self.stats.moved_by_jobs.iter().sum();
        self.stats.compacting.as_nanos() as f64 / moved as f64
    }
}

/// A metric of a load: name, meaning, unit in tables, and the function that computes it.
pub(super) type OfLoad = (&'static str, &'static str, fn(&Counted) -> f64);

pub(super) const OF_LOAD: [OfLoad; 23] = [
    ("moved", "bytes read and written by compactions per byte written by the user", |load| {
        load.stats.moved()
    }),
    ("written", "bytes written by compactions per byte written by the user", |load| {
        load.stats.write_amplification()
    }),
    ("space", "invalid entries per valid entry at the end", |load| load.stats.space_overhead),
    ("user_bytes", "bytes written by the user", |load| load.stats.user_bytes as f64),
    ("flushes", "flushes", |load| load.stats.flushes as f64),
    ("compactions", "compactions, including those that only moved tables", Counted::compactions),
    ("pseudo", "compactions that only moved tables", |load| load.stats.move_compactions as f64),
    ("mean_job", "mean bytes moved by a compaction that rewrote tables", |load| {
        load.stats.mean_job()
    }),
    ("job_p50", "the median of these bytes", |load| load.stats.job_percentile(50)),
    ("job_p90", "their 90th percentile", |load| load.stats.job_percentile(90)),
    ("job_p99", "their 99th percentile", |load| load.stats.job_percentile(99)),
    ("largest_job", "their maximum", |load| load.stats.job_percentile(100)),
    ("before_write", "the most bytes moved before one write", |load| {
        load.stats.most_before_a_write as f64
    }),
    ("nanos_per_byte", "time of compactions in memory, in nanoseconds per byte moved", |load| {
        load.nanos_per_byte()
    }),
    ("tombstones", "tombstones at the end", |load| load.stats.tombstones as f64),
    ("oldest_tombstone", "the age of the oldest tombstone at the end, in seconds", |load| {
        load.stats.oldest_tombstone.as_secs_f64()
    }),
    ("levels", "levels with tables at the end", |load| load.stats.levels as f64),
    ("runs", "sorted runs, on average over the second half of the load", |load| {
        load.stats.mean_runs
    }),
    (
        "fill",
        "the share of its capacity that level 1 contains, on average over the second half",
        |load| load.stats.mean_fill,
    ),
    ("pages", "pages read per lookup of an existing key after the load", |load| {
        load.existing.pages
    }),
    ("missing_pages", "pages read per lookup of a missing key after the load", |load| {
        load.missing.pages
    }),
    ("missing_blocks", "data blocks searched per lookup of a missing key after the load", |load| {
        load.missing.blocks
    }),
    ("false_positives", "percent of filters without the key that did not exclude it", |load| {
        100.0 * load.missing.false_positives
    }),
];

/// The metrics of loads, each by axis, value and strategy.
pub(super) const METRICS: &[Metric] = &{
    let mut metrics = [Metric { name: "", about: "" }; OF_LOAD.len()];
    let mut at = 0;
    while at < metrics.len() {
        metrics[at] = Metric { name: OF_LOAD[at].0, about: OF_LOAD[at].1 };
        at += 1;
    }
    metrics
};

pub(super) fn record(axis: &str, load: &Counted, results: &mut Results) {
    for (name, _, compute) in OF_LOAD {
        results.record(name, &[axis, &load.value, load.strategy], compute(load));
    }
}

/// How a table shows a number.
type Cell = fn(f64) -> String;

fn decimal(number: f64) -> String {
    format!("{number:.2}")
}

fn whole(number: f64) -> String {
    format!("{number:.0}")
}

/// Formats bytes in KiB, without digits after the point.
fn kib(bytes: f64) -> String {
    format!("{:.0}", bytes / 1024.0)
}

/// A panel of a figure: its number, its axis, its metric, a title and the unit of its cells.
type Panel = (&'static str, &'static str, &'static str, &'static str, Cell);

const PANELS: [Panel; 33] = [
    ("Fig. 6a, 6e", "distribution", "moved", "bytes moved × those written", decimal),
    ("Fig. 6b, 6f", "distribution", "mean_job", "KiB moved by a compaction, mean", kib),
    ("Fig. 6b, 6f", "distribution", "job_p99", "KiB moved by a compaction, P99", kib),
    ("Fig. 8a", "updates", "mean_job", "KiB moved by a compaction, mean", kib),
    ("Fig. 8b", "updates", "written", "write amplification", decimal),
    ("Fig. 8c", "updates", "largest_job", "KiB moved by the largest compaction", kib),
    ("Fig. 8a", "updates-all", "mean_job", "KiB moved by a compaction, mean", kib),
    ("Fig. 8b", "updates-all", "written", "write amplification", decimal),
    ("Fig. 8c", "updates-all", "largest_job", "KiB moved by the largest compaction", kib),
    ("§5.2.3", "updates-all", "pages", "pages of a lookup of an existing key", decimal),
    ("Fig. 8d", "deletes", "tombstones", "tombstones at the end", whole),
    ("Fig. 8e", "deletes", "space", "space overhead", decimal),
    ("Fig. 8f", "deletes", "moved", "bytes moved × those written", decimal),
    ("§5.2.4", "deletes", "oldest_tombstone", "age of the oldest tombstone in seconds", whole),
    ("Fig. 8g", "entries", "mean_job", "KiB moved by a compaction, mean", kib),
    ("Fig. 8h", "entries", "written", "write amplification", decimal),
    ("Fig. 8i", "entries", "largest_job", "KiB moved by the largest compaction", kib),
    ("Fig. 8j", "entry", "nanos_per_byte", "ns of a compaction per byte, in memory", decimal),
    ("Fig. 8k", "entry", "written", "write amplification", decimal),
    ("§5.2.6", "entry", "pages", "pages of a lookup of an existing key", decimal),
    ("Fig. 8l", "buffer", "mean_job", "KiB moved by a compaction, mean", kib),
    ("Fig. 8m", "buffer", "largest_job", "KiB moved by the largest compaction", kib),
    ("Fig. 8n", "buffer", "written", "write amplification", decimal),
    ("Fig. 8o, 12", "page", "moved", "bytes moved × those written", decimal),
    ("Fig. 12", "page", "pages", "pages of a lookup of an existing key", decimal),
    ("Fig. 13a", "ratio", "mean_job", "KiB moved by a compaction, mean", kib),
    ("Fig. 13b", "ratio", "largest_job", "KiB moved by the largest compaction", kib),
    ("Fig. 13", "ratio", "written", "write amplification", decimal),
    ("Fig. 14c", "bits", "missing_pages", "pages of a lookup of a missing key", decimal),
    ("Fig. 14d", "bits", "pages", "pages of a lookup of an existing key", decimal),
    ("Fig. 14", "bits", "missing_blocks", "blocks searched for a missing key", decimal),
    ("Fig. 11", "cache", "pages", "pages of a lookup of an existing key", decimal),
    ("Fig. 11", "cache", "missing_pages", "pages of a lookup of a missing key", decimal),
];

/// Adds the tables of an axis.
pub(super) fn tables(axis: &Axis, loads: &[Counted], results: &mut Results) {
    if axis.name == "load" {
        let all = [
            ("inserts", "Unique inserts, uniform (Fig. 4a to 4d)"),
            ("interleaved", "The same with lookups among the inserts (Fig. 5)"),
        ];
        for (value, title) in all {
            let rows = loads.iter().filter(|load| load.value == value).map(row).collect();
            results.table(title, &HEADERS, rows);
        }
    }
    let of_axis = PANELS.iter().filter(|panel| panel.1 == axis.name);
    for (figure, _, metric, what, cell) in of_axis {
        let Some((_, _, compute)) = OF_LOAD.iter().find(|(name, ..)| name == metric) else {
            continue;
        };
        let values: Vec<String> = axis.settings.iter().map(|(value, _)| value.clone()).collect();
        let rows = axis.strategies.iter().map(|strategy| {
            let of_strategy = loads.iter().filter(|load| load.strategy == *strategy);
            let cells = of_strategy.map(|load| cell(compute(load)));
            std::iter::once((*strategy).to_owned()).chain(cells).collect()
        });
        let title = format!("{figure}: {what}, by {}", axis.about);
        results.table(title, &headers("strategy", &values), rows.collect());
    }
}

const HEADERS: [&str; 11] = [
    "strategy",
    "read ×",
    "written × (WA)",
    "compactions",
    "those that only moved tables",
    "KiB moved by a compaction: mean / P50 / P90 / P99 / P100",
    "most KiB before a write",
    "runs",
    "level 1 filled",
    "levels",
    "files",
];

fn row(load: &Counted) -> Vec<String> {
    let stats = &load.stats;
    let per_byte = |bytes: u64| format!("{:.2}", bytes as f64 / stats.user_bytes as f64);
    let percentiles = [50, 90, 99, 100].map(|percent| stats.job_percentile(percent));
    let jobs: Vec<String> = [stats.mean_job()].into_iter().chain(percentiles).map(kib).collect();
    vec![
        load.strategy.to_owned(),
        per_byte(stats.bytes_read),
        per_byte(stats.bytes_written),
        load.compactions().to_string(),
        stats.move_compactions.to_string(),
        jobs.join(" / "),
        kib(stats.most_before_a_write as f64),
        decimal(stats.mean_runs),
        format!("{:.0} %", 100.0 * stats.mean_fill),
        stats.levels.to_string(),
        stats.files.to_string(),
    ]
}

/// Returns the headers of a table: `first`, then `rest`.
pub(super) fn headers<'a>(first: &'a str, rest: &'a [String]) -> Vec<&'a str> {
    std::iter::once(first).chain(rest.iter().map(String::as_str)).collect()
}

/// Adds a table, unless its figure was not measured: then the rows have no numbers.
pub(super) fn table_with_cells(
    title: impl Into<String>,
    headers: &[&str],
    rows: Vec<Vec<String>>,
    results: &mut Results,
) {
    let has_number = |row: &Vec<String>| {
        row.iter().skip(1).any(|cell| cell.contains(|c: char| c.is_ascii_digit()))
    };
    if rows.iter().any(has_number) {
        results.table(title, headers, rows);
    }
}
