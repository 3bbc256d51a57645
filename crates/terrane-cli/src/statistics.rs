//! The JSON of statistics: every metric by its name, and the reports that are not plain numbers.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use terrane::{Latencies, LevelStats, Metric, OperationCounts, Stats};

use terrane_lab::json::{JsonTimes, JsonWorkTimes, SCHEMA};

/// Counters since the database was opened, and current sizes.
#[derive(Debug, Serialize)]
pub(crate) struct JsonStats<'a> {
    schema: u32,
    durability: String,
    #[serde(flatten)]
    metrics: JsonMetrics,
    write_amplification: f64,
    read_amplification: f64,
    rewrite_amplification: f64,
    compaction_millis: JsonTimes,
    latency_micros: JsonLatencies<'a>,
    levels_read: Vec<JsonLevel<'a>>,
    stalls_now: Vec<String>,
    error: Option<String>,
}

/// Metrics by name.
#[derive(Debug)]
pub(crate) struct JsonMetrics(Vec<Metric>);

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

/// Every distribution of [`Stats::latencies`].
#[derive(Debug)]
struct JsonLatencies<'a>(&'a Latencies);

impl Serialize for JsonLatencies<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let all = self.0.all();
        serializer
            .collect_map(all.iter().map(|latency| (latency.name, JsonWorkTimes::of(latency.times))))
    }
}

/// The numbers of a level.
#[derive(Debug)]
struct JsonLevel<'a>(&'a LevelStats);

impl Serialize for JsonLevel<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.numbers().map(|(name, _, value)| (name, value)))
    }
}

impl<'a> JsonStats<'a> {
    /// The report of a database.
    pub(crate) fn of(stats: &'a Stats) -> Self {
        Self {
            schema: SCHEMA,
            durability: stats.durability.to_string(),
            metrics: JsonMetrics(stats.metrics()),
            write_amplification: stats.write_amplification(),
            read_amplification: stats.read_amplification(),
            rewrite_amplification: stats.rewrite_amplification(),
            compaction_millis: JsonTimes::of(&stats.latencies.compaction),
            latency_micros: JsonLatencies(&stats.latencies),
            levels_read: stats.by_level.iter().map(JsonLevel).collect(),
            stalls_now: stats.stalls.now.iter().map(ToString::to_string).collect(),
            error: stats.error.as_ref().map(ToString::to_string),
        }
    }
}

/// What the files of a database say.
#[derive(Debug, Serialize)]
pub(crate) struct JsonStoredStats {
    schema: u32,
    /// Where the numbers are from.
    source: &'static str,
    #[serde(flatten)]
    metrics: JsonMetrics,
    writes_in_log: u64,
    remembered_operations: JsonOperations,
    stalls_now: Vec<String>,
    error: Option<String>,
}

/// Operations by kind.
#[derive(Debug, Serialize)]
struct JsonOperations {
    writes: u64,
    deletes: u64,
    gets: u64,
    gets_found: u64,
    scans: u64,
    open_micros: u64,
}

impl JsonStoredStats {
    /// The report of a read-only opening. `stalls` describes the keyspaces that stall writers.
    pub(crate) fn of(stats: &Stats, operations: &OperationCounts, stalls: &[String]) -> Self {
        let &OperationCounts { writes, deletes, gets, gets_found, scans, open_micros, .. } =
            operations;
        Self {
            schema: SCHEMA,
            source: "files",
            metrics: JsonMetrics(stats.stored_metrics()),
            writes_in_log: stats.replayed_writes,
            remembered_operations: JsonOperations {
                writes,
                deletes,
                gets,
                gets_found,
                scans,
                open_micros,
            },
            stalls_now: stalls.to_vec(),
            error: stats.error.as_ref().map(ToString::to_string),
        }
    }
}
