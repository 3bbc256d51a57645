//! Options, statistics, events and trees for `serde`.
//!
//! Option values and designs serialize as text that parses again, and [`Times`] as cells that can be
//! merged after a round trip. [`Stats`] serialize as the JSON that the command prints: each metric by
//! its name, with summaries of durations. Like [`TreeView`] and events, they do not deserialize.

#[cfg(test)]
mod tests;
mod tree;

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::base::durability::Durability;
use crate::base::io_budget::IoBudget;
use crate::base::stats::{Latencies, LevelStats, Stats, Times};
use crate::files::table::CacheWarming;
use crate::options::{KeepChanges, ReadMode, WriteMode, WritePath};

/// Implements both traits by `Display` and `FromStr`.
macro_rules! as_text {
    ($($type:ty, $name:literal;)*) => {
        $(
            impl Serialize for $type {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    serializer.collect_str(self)
                }
            }

            impl<'de> Deserialize<'de> for $type {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    let text = String::deserialize(deserializer)?;
                    let unknown = |_| D::Error::custom(format_args!("unknown {} '{text}'", $name));
                    text.parse().map_err(unknown)
                }
            }
        )*
    };
}

as_text! {
    CacheWarming, "cache warming";
    Durability, "durability";
    IoBudget, "I/O budget";
    KeepChanges, "changes to keep";
    ReadMode, "read mode";
    WriteMode, "write mode";
    WritePath, "write path";
}

impl Serialize for Stats {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let metrics = self.metrics();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("durability", &self.durability)?;
        for metric in metrics {
            map.serialize_entry(metric.name, &metric.value)?;
        }
        map.serialize_entry("write_amplification", &self.write_amplification())?;
        map.serialize_entry("read_amplification", &self.read_amplification())?;
        map.serialize_entry("rewrite_amplification", &self.rewrite_amplification())?;
        map.serialize_entry("latency_micros", &Summaries(&self.latencies))?;
        let levels: Vec<Level<'_>> = self.by_level.iter().map(Level).collect();
        map.serialize_entry("levels_read", &levels)?;
        let stalls: Vec<String> = self.stalls.now.iter().map(ToString::to_string).collect();
        map.serialize_entry("stalls_now", &stalls)?;
        map.serialize_entry("error", &self.error.as_ref().map(ToString::to_string))?;
        map.end()
    }
}

/// The numbers of a level by their names.
struct Level<'a>(&'a LevelStats);

impl Serialize for Level<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.numbers().map(|(name, _, value)| (name, value)))
    }
}

/// The summary of each distribution by its name.
struct Summaries<'a>(&'a Latencies);

impl Serialize for Summaries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let all = self.0.all();
        serializer.collect_map(all.iter().map(|latency| (latency.name, Summary::of(latency.times))))
    }
}

/// A distribution in microseconds; all but the count are null without durations.
#[derive(serde::Serialize)]
struct Summary {
    count: u64,
    p50: Option<f64>,
    p90: Option<f64>,
    p99: Option<f64>,
    p999: Option<f64>,
    max: Option<f64>,
    mean: Option<f64>,
}

impl Summary {
    fn of(times: &Times) -> Self {
        // Whole nanoseconds.
        let rounded = |micros: Option<f64>| micros.map(|micros| (micros * 1e3).round() / 1e3);
        let at = |percent| rounded(times.percentile_micros(percent));
        Self {
            count: times.count(),
            p50: at(50.0),
            p90: at(90.0),
            p99: at(99.0),
            p999: at(99.9),
            max: rounded(times.max_micros()),
            mean: rounded(times.mean_micros()),
        }
    }
}
