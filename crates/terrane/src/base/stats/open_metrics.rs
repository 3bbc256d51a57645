//! A report in the OpenMetrics text format, which Prometheus and compatible tools scrape.
//!
//! Names follow that format: a prefix, base units (bytes, seconds) as suffix, and `_total` for
//! counters. <https://prometheus.io/docs/specs/om/open_metrics_spec/>

use std::fmt::{self, Write};

use super::{FailureCause, LatencyMetric, LevelStats, Metric, MetricKind, MetricUnit, Stats};

const PREFIX: &str = "terrane";
/// The bounds of the buckets of a histogram, as exponents of 2 nanoseconds: 256 ns to 69 s, each twice
/// the previous one. They are bounds of cells, so the counts are exact.
const BUCKETS: std::ops::RangeInclusive<u32> = 8..=36;

impl Stats {
    /// Returns the report in the OpenMetrics text format, to be served with the content type
    /// `application/openmetrics-text; version=1.0.0; charset=utf-8`.
    ///
    /// It has every metric of [`Stats::metrics`], numbers by level, a histogram for each
    /// distribution of durations, current stalls, and whether there is an error.
    pub fn open_metrics(&self) -> String {
        let mut text = String::new();
        // Writing into a string does not fail.
        let _ = self.write_open_metrics(&mut text);
        text
    }

    /// Returns [`Stats::stored_metrics`] in the OpenMetrics text format, for a program that reads the files
    /// of a database that another process has open.
    pub fn open_metrics_stored(&self) -> String {
        let mut text = String::new();
        // Writing into a string does not fail.
        let _ = self.stored_metrics().iter().try_for_each(|metric| write_metric(&mut text, metric));
        text + "# EOF\n"
    }

    fn write_open_metrics(&self, out: &mut String) -> fmt::Result {
        for metric in self.metrics() {
            write_metric(out, &metric)?;
        }
        self.write_levels(out)?;
        self.write_latencies(out)?;
        self.write_current_stalls(out)?;
        let name = format!("{PREFIX}_failed");
        let help = "1 for the causes of failures that last: writes refused until the database is opened \
                    again, a full disk, background work that fails, and damage.";
        write_head(out, &name, "gauge", "", help)?;
        for cause in FailureCause::ALL {
            let fails = self.failures.iter().any(|failure| failure.cause == cause);
            writeln!(out, "{name}{{cause=\"{}\"}} {}", cause.name(), u8::from(fails))?;
        }
        writeln!(out, "# EOF")
    }

    fn write_levels(&self, out: &mut String) -> fmt::Result {
        for (number, (name, help, _)) in LevelStats::default().numbers().into_iter().enumerate() {
            let name = format!("{PREFIX}_level_{name}");
            write_head(out, &name, "counter", "", help)?;
            for (level, stats) in self.by_level.iter().enumerate() {
                let value = stats.numbers().get(number).map_or(0, |(_, _, value)| *value);
                writeln!(out, "{name}_total{{level=\"{level}\"}} {value}")?;
            }
        }
        Ok(())
    }

    fn write_latencies(&self, out: &mut String) -> fmt::Result {
        for latency in self.latencies.all() {
            let (name, times) = (latency.open_metrics_name(), latency.times);
            write_head(out, &name, "histogram", "seconds", latency.help)?;
            for bits in BUCKETS {
                let nanos = 1_u64 << bits;
                let (bound, count) = (nanos as f64 / 1e9, times.count_below(nanos));
                writeln!(out, "{name}_bucket{{le=\"{bound:?}\"}} {count}")?;
            }
            writeln!(out, "{name}_bucket{{le=\"+Inf\"}} {}", times.count())?;
            writeln!(out, "{name}_count {}", times.count())?;
            writeln!(out, "{name}_sum {:?}", times.sum().as_secs_f64())?;
        }
        Ok(())
    }

    fn write_current_stalls(&self, out: &mut String) -> fmt::Result {
        let name = format!("{PREFIX}_current_stall_seconds");
        write_head(out, &name, "gauge", "seconds", "Age of the current stall of a keyspace.")?;
        for stall in &self.stalls.now {
            let effect = if stall.stops { "stop" } else { "delay" };
            let (keyspace, cause) = (escaped(&stall.keyspace), stall.pressure.cause);
            let labels = format!("keyspace=\"{keyspace}\",cause=\"{cause}\",effect=\"{effect}\"");
            let micros = u64::try_from(stall.since.as_micros()).unwrap_or(u64::MAX);
            writeln!(out, "{name}{{{labels}}} {}", Seconds(micros))?;
        }
        Ok(())
    }
}

impl Metric {
    /// Returns the name of the metric's family in OpenMetrics; the sample of a counter has the
    /// suffix `_total` as well.
    pub fn open_metrics_name(&self) -> String {
        let words = self.name.split('_').filter(|word| !matches!(*word, "bytes" | "micros"));
        let words =
            words.chain(Some(self.unit.open_metrics_name()).filter(|unit| !unit.is_empty()));
        words.fold(PREFIX.to_owned(), |name, word| name + "_" + word)
    }
}

impl LatencyMetric<'_> {
    /// Returns the name of the histogram in OpenMetrics; its samples have the suffixes `_bucket`,
    /// `_count` and `_sum`.
    pub fn open_metrics_name(&self) -> String {
        format!("{PREFIX}_{}_duration_seconds", self.name)
    }
}

impl MetricUnit {
    /// The base unit, or nothing for plain counts.
    fn open_metrics_name(self) -> &'static str {
        match self {
            Self::Count => "",
            Self::Bytes => "bytes",
            Self::Micros => "seconds",
        }
    }
}

/// Microseconds printed as seconds, exactly.
struct Seconds(u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

fn write_metric(out: &mut String, metric: &Metric) -> fmt::Result {
    let name = metric.open_metrics_name();
    let (kind, suffix) = match metric.kind {
        MetricKind::Counter => ("counter", "_total"),
        MetricKind::Gauge => ("gauge", ""),
    };
    write_head(out, &name, kind, metric.unit.open_metrics_name(), metric.help)?;
    match (metric.value, metric.unit) {
        (None, _) => Ok(()),
        (Some(micros), MetricUnit::Micros) => writeln!(out, "{name}{suffix} {}", Seconds(micros)),
        (Some(value), _) => writeln!(out, "{name}{suffix} {value}"),
    }
}

fn write_head(out: &mut String, name: &str, kind: &str, unit: &str, help: &str) -> fmt::Result {
    writeln!(out, "# TYPE {name} {kind}")?;
    if !unit.is_empty() {
        writeln!(out, "# UNIT {name} {unit}")?;
    }
    writeln!(out, "# HELP {name} {}", escaped(help))
}

/// Escapes help text and label values.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\"")
}
