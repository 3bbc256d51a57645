//! Records the metrics of §4.2 after a load, and shows them in a table.

use terrane_workload::Latency;

use super::tree::LoadStats;
use crate::results::Results;

/// The statistics of a load by each of several strategies.
pub(super) type StatsByStrategy = Vec<(&'static str, LoadStats)>;

/// Records the loads of a workload by strategy, and adds their table.
pub(super) fn record<'a>(
    results: &mut Results,
    workload: &str,
    title: &str,
    loads: impl IntoIterator<Item = (&'a str, &'a LoadStats)>,
) {
    let mut rows = Vec::new();
    for (strategy, stats) in loads {
        let compactions = (stats.compactions + stats.move_compactions) as f64;
        for (metric, value) in [
            ("moved", stats.moved()),
            ("written", stats.write_amplification()),
            ("user_bytes", stats.user_bytes as f64),
            ("flushes", stats.flushes as f64),
            ("compactions", compactions),
            ("mean_job", stats.mean_job()),
            ("largest_job", stats.largest_job()),
            ("before_write", stats.most_before_a_write as f64),
            ("nanos_per_byte", stats.nanos_per_byte()),
            ("tombstones", stats.tombstones as f64),
        ] {
            results.record(metric, &[workload, strategy], value);
        }
        rows.push(row(strategy, stats));
    }
    results.table(title, &HEADERS, rows);
}

const HEADERS: [&str; 14] = [
    "strategy",
    "read ×",
    "written × (WA)",
    "SA",
    "compactions",
    "those that only moved tables",
    "KiB moved by a compaction: mean / most, before a write: most",
    "compaction µs: mean / P50 / P90 / P99 / P100",
    "write µs: the same",
    "stalled s",
    "levels",
    "files",
    "tombstones",
    "oldest s",
];

fn row(strategy: &str, stats: &LoadStats) -> Vec<String> {
    let per_byte = |bytes: u64| format!("{:.2}", bytes as f64 / stats.user_bytes as f64);
    let jobs = [stats.mean_job(), stats.largest_job(), stats.most_before_a_write as f64];
    vec![
        strategy.to_owned(),
        per_byte(stats.bytes_read),
        per_byte(stats.bytes_written),
        format!("{:.2}", stats.space_amplification),
        stats.compactions.to_string(),
        stats.move_compactions.to_string(),
        jobs.map(kib).join(" / "),
        micros(&stats.jobs),
        micros(&stats.writes),
        format!("{:.2}", stats.stall.as_secs_f64()),
        stats.levels.to_string(),
        stats.files.to_string(),
        stats.tombstones.to_string(),
        format!("{:.0}", stats.oldest_tombstone.as_secs_f64()),
    ]
}

fn micros(latency: &Latency) -> String {
    let summary = latency.summary();
    [summary.mean, summary.p50, summary.p90, summary.p99, summary.max]
        .map(|micros| format!("{micros:.0}"))
        .join(" / ")
}

/// Formats bytes in KiB, without digits after the point.
pub(super) fn kib(bytes: f64) -> String {
    format!("{:.0}", bytes / 1024.0)
}

/// The headers of a table of which all but the first are computed.
pub(super) fn headers<'a>(first: &'a str, rest: &'a [String]) -> Vec<&'a str> {
    std::iter::once(first).chain(rest.iter().map(String::as_str)).collect()
}

/// Returns a recorded measurement; NaN if it was not recorded.
pub(super) fn recorded(results: &Results, metric: &str, keys: &[&str]) -> f64 {
    let found = results.measurements(metric).iter().find(|one| one.keys == keys);
    found.map_or(f64::NAN, |one| one.value)
}
