//! Statistics as JSON: the library's, with the version of the schema.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use terrane::{Metric, OperationCounts, Stats};

use terrane_lab::output::json::{JsonTimes, SCHEMA};

/// Counters since the database was opened, and current sizes.
#[derive(Debug, Serialize)]
pub(crate) struct JsonStats<'a> {
    schema: u32,
    #[serde(flatten)]
    stats: &'a Stats,
    compaction_millis: JsonTimes,
}

impl<'a> JsonStats<'a> {
    /// The report of a database.
    pub(crate) fn of(stats: &'a Stats) -> Self {
        let compaction_millis = JsonTimes::of(&stats.latencies.compaction);
        Self { schema: SCHEMA, stats, compaction_millis }
    }
}

/// Statistics from the files of a database.
#[derive(Debug, Serialize)]
pub(crate) struct JsonStoredStats<'a> {
    schema: u32,
    /// The source of the numbers.
    source: &'static str,
    #[serde(flatten)]
    metrics: JsonMetrics,
    writes_in_log: u64,
    remembered_operations: &'a OperationCounts,
    stalls_now: &'a [String],
    error: Option<String>,
}

/// Metrics by name.
#[derive(Debug)]
struct JsonMetrics(Vec<Metric>);

impl Serialize for JsonMetrics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(metrics) = self;
        let mut map = serializer.serialize_map(Some(metrics.len()))?;
        for metric in metrics {
            map.serialize_entry(metric.name, &metric.value)?;
        }
        map.end()
    }
}

impl<'a> JsonStoredStats<'a> {
    /// Reports on a database opened read-only. `stalls` describes the keyspaces that stall writers.
    pub(crate) fn of(stats: &Stats, operations: &'a OperationCounts, stalls: &'a [String]) -> Self {
        Self {
            schema: SCHEMA,
            source: "files",
            metrics: JsonMetrics(stats.stored_metrics()),
            writes_in_log: stats.replayed_writes,
            remembered_operations: operations,
            stalls_now: stalls,
            error: stats.error.as_ref().map(ToString::to_string),
        }
    }
}
