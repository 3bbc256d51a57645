//! Every metric reaches every report.
#![allow(clippy::disallowed_methods, reason = "the page of metrics is a file")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrane_policy::{Pressure, StallCause};

use super::*;

/// A report in which every counter has a distinct value, and no part is empty.
fn report() -> Stats {
    let counters = Counters::default();
    for (number, counter) in Counter::ALL.into_iter().enumerate() {
        counters.add(counter, 1_000 + number as u64);
    }
    counters.add_get_block(2);
    for timed in Timed::ALL {
        counters.durations.note(timed, Duration::from_micros(2_500_000));
    }
    let pressure = Pressure::new(StallCause::Level0Runs, Some(0), 4, 4, 8);
    let keyspace = Arc::from("odd \"name\"");
    let now =
        vec![CurrentStall { keyspace, stops: true, pressure, since: Duration::from_millis(1500) }];
    Stats {
        cache: CacheStats::counted(&counters),
        membuffer: MembufferStats::counted(&counters),
        stalls: StallStats { now, ..StallStats::counted(&counters) },
        by_level: vec![LevelStats { get_blocks: 7, ..LevelStats::default() }; 3],
        latencies: Latencies::counted(&counters.durations),
        ..Stats::counted(&counters)
    }
}

#[test]
fn every_counter_is_a_metric_and_a_line_of_text() {
    let stats = report();
    let metrics = stats.metrics();
    let names: BTreeSet<_> = metrics.iter().map(|metric| metric.name).collect();
    assert_eq!(names.len(), metrics.len(), "names are unique");
    let text = stats.to_string();
    for number in 0..Counter::COUNT as u64 {
        let counted = |metric: &&Metric| metric.value == Some(1_000 + number);
        let metric = metrics.iter().find(counted).unwrap_or_else(|| panic!("counter {number}"));
        assert_eq!(metric.kind, MetricKind::Counter, "{}", metric.name);
        let line = text.lines().find(|line| line.split(' ').next() == Some(metric.name));
        assert!(line.unwrap().contains(&(1_000 + number).to_string()), "{}", metric.name);
    }
    for metric in metrics {
        assert!(metric.help.ends_with('.') && !metric.help.contains('\n'), "{}", metric.name);
        let has = |unit: &str| metric.name.split('_').any(|word| word == unit);
        assert_eq!(metric.unit == MetricUnit::Bytes, has("bytes"), "{}", metric.name);
        assert_eq!(metric.unit == MetricUnit::Micros, has("micros"), "{}", metric.name);
    }
}

#[test]
fn a_difference_has_the_growth_of_counters_and_gauges_as_they_are() {
    let now = report();
    let mut earlier = Stats { writes: 1, tables: 2, ..Stats::default() };
    earlier.stalls.writes = 3;
    earlier.by_level = vec![LevelStats { get_blocks: 5, ..LevelStats::default() }];
    let now = Stats { tables: 9, ..now };
    let since = now.since(&earlier);
    assert_eq!((since.writes, since.tables), (now.writes - 1, 9));
    assert_eq!(since.stalls.writes, now.stalls.writes - 3);
    assert_eq!(since.cache.warmed_bytes, now.cache.warmed_bytes);
    assert_eq!(since.by_level.iter().map(|level| level.get_blocks).collect::<Vec<_>>(), [2, 7, 7]);
    assert_eq!((since.latencies.get.count(), now.since(&now).latencies.get.count()), (1, 0));
    let none = now.since(&now).metrics();
    let counters = none.iter().filter(|metric| metric.kind == MetricKind::Counter);
    assert!(counters.into_iter().all(|metric| metric.value == Some(0)));
}

/// A family of OpenMetrics: its type, its unit, and its samples.
#[derive(Debug, Default)]
struct Family {
    kind: String,
    unit: String,
    help: String,
    samples: Vec<(String, String)>,
}

/// Reads OpenMetrics text, and panics where it is not valid.
fn parse(text: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let body = text.strip_suffix("# EOF\n").expect("the text ends with # EOF");
    let mut current = String::new();
    for line in body.lines() {
        let words: Vec<_> = line.splitn(4, ' ').collect();
        if let ["#", what, name, rest] = words[..] {
            if name != current {
                assert!(!families.contains_key(name), "the lines of {name} are not adjacent");
                let bytes = name.bytes();
                assert!(bytes.into_iter().all(|byte| byte.is_ascii_lowercase()
                    || byte.is_ascii_digit()
                    || byte == b'_'));
                current = name.to_owned();
            }
            let family = families.entry(current.clone()).or_default();
            assert!(family.samples.is_empty(), "{line}: metadata comes before samples");
            let field = match what {
                "TYPE" => &mut family.kind,
                "UNIT" => &mut family.unit,
                "HELP" => &mut family.help,
                _ => panic!("{line}"),
            };
            assert!(field.is_empty() && !rest.is_empty(), "{line}");
            rest.clone_into(field);
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
        let bare = name.split('{').next().unwrap();
        let family = families.get_mut(&current).unwrap();
        let suffixes: &[&str] = match family.kind.as_str() {
            "counter" => &["_total"],
            "gauge" => &[""],
            "histogram" => &["_bucket", "_count", "_sum"],
            kind => panic!("{kind}"),
        };
        let suffix = bare.strip_prefix(current.as_str()).unwrap_or_else(|| panic!("{line}"));
        assert!(suffixes.contains(&suffix), "{line}");
        assert!(family.samples.iter().all(|(other, _)| other != name), "{line} is a duplicate");
        family.samples.push((name.to_owned(), value.to_owned()));
    }
    for (name, family) in &families {
        assert!(!family.kind.is_empty() && !family.help.is_empty(), "{name}");
        assert!(family.unit.is_empty() || name.ends_with(&format!("_{}", family.unit)), "{name}");
    }
    families
}

#[test]
fn the_open_metrics_text_is_valid_and_has_every_metric() {
    let stats = report();
    let families = parse(&stats.open_metrics());
    for metric in stats.metrics() {
        let family = &families[&metric.open_metrics_name()];
        assert_eq!(family.samples.len(), usize::from(metric.value.is_some()), "{}", metric.name);
    }
    let samples = |name: &str| families[name].samples.clone();
    let sample = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(samples("terrane_writes"), [sample("terrane_writes_total", "1000")]);
    assert_eq!(
        samples("terrane_level_get_blocks")[2].0,
        "terrane_level_get_blocks_total{level=\"2\"}"
    );
    for latency in stats.latencies.all() {
        let name = latency.open_metrics_name();
        let samples = samples(&name);
        for (suffix, value) in [
            ("_sum", "2.5"),
            ("_count", "1"),
            ("_bucket{le=\"2.56e-7\"}", "0"),
            ("_bucket{le=\"2.147483648\"}", "0"),
            ("_bucket{le=\"4.294967296\"}", "1"),
            ("_bucket{le=\"+Inf\"}", "1"),
        ] {
            assert!(samples.contains(&sample(&(name.clone() + suffix), value)), "{samples:?}");
        }
    }
    let stall = "terrane_current_stall_seconds{keyspace=\"odd \\\"name\\\"\",cause=\"level-0-runs\",\
                 effect=\"stop\"}";
    assert_eq!(samples("terrane_current_stall_seconds"), [sample(stall, "1.500000")]);
    parse(&Stats::default().open_metrics());
    let stored = parse(&stats.open_metrics_stored());
    assert_eq!(stored.len(), stats.stored_metrics().len());
    assert!(stored.contains_key("terrane_table_bytes") && !stored.contains_key("terrane_gets"));
}

/// The page `docs/metrics.md`.
fn page() -> String {
    let mut page = String::from(
        "# Metrics\n\n\
         Made by a test from the declarations in `crates/terrane/src/base/stats/metrics.rs`; \
         `TERRANE_REWRITE=1 cargo test -p terrane --lib stats` rewrites it.\n\n\
         `Db::stats` returns all of them. `Stats::metrics` iterates over them, `Stats::since` gives \
         the growth of counters between two reports, `stats --json` of the shell prints them by \
         name, and `Stats::open_metrics` writes them for monitoring. Counters start at 0 when the \
         database is opened.\n\n\
         Stored gauges are those of the files: `terrane stats DB` shows them while another process has \
         the database open, whose other metrics only that process knows.\n\n\
         | name | OpenMetrics | kind | unit | meaning |\n|---|---|---|---|---|\n",
    );
    for metric in Stats::default().metrics() {
        let Metric { name, help, .. } = metric;
        let (kind, suffix) = match metric.kind {
            MetricKind::Counter => ("counter", "_total"),
            MetricKind::Gauge if metric.is_stored => ("stored gauge", ""),
            MetricKind::Gauge => ("gauge", ""),
        };
        let unit = match metric.unit {
            MetricUnit::Count => "",
            MetricUnit::Bytes => "bytes",
            MetricUnit::Micros => "µs",
        };
        let family = metric.open_metrics_name();
        writeln!(page, "| `{name}` | `{family}{suffix}` | {kind} | {unit} | {help} |").unwrap();
    }
    page.push_str(
        "\n## By level\n\n\
         Reported as `levels_read` in JSON, and with the label `level` in OpenMetrics. Level 7 counts for all \
         deeper levels as well.\n\n| name | OpenMetrics | meaning |\n|---|---|---|\n",
    );
    for (name, help, _) in LevelStats::default().numbers() {
        writeln!(page, "| `{name}` | `terrane_level_{name}_total` | {help} |").unwrap();
    }
    page.push_str(
        "\n## Durations\n\n\
         In `latency_micros` of JSON, with count, mean, percentiles and maximum, which are `null` without \
         durations, and as histograms in OpenMetrics. Percentiles are exact to 1 %. Those of operations of callers \
         are measured for one of 32 operations, at random; all others always.\n\n\
         | name | OpenMetrics | measured | meaning |\n|---|---|---|---|\n",
    );
    for latency in Stats::default().latencies.all() {
        let LatencyMetric { name, help, is_sampled, .. } = latency;
        let measured = if is_sampled { "1 of 32" } else { "all" };
        let family = latency.open_metrics_name();
        writeln!(page, "| `{name}` | `{family}` | {measured} | {help} |").unwrap();
    }
    page.push_str(
        "\n## Others\n\n\
         | JSON | OpenMetrics | meaning |\n|---|---|---|\n\
         | `compaction_millis` | | `latency_micros.compaction` in milliseconds. |\n\
         | `stalls_now` | `terrane_current_stall_seconds{keyspace, cause, effect}` | Current stalls. |\n\
         | `error` | | The error that stops writes or background work. |\n\
         | `failures` | `terrane_failed{cause}` | The failures that last, by cause: `writes-refused`, \
         `disk-full`, `failed-work` or `damage`. |\n\
         | `write_amplification`, `rewrite_amplification`, `read_amplification` | | Ratios of \
         metrics above, or `null` without user bytes or lookups; see `Stats`. |\n",
    );
    page
}

#[test]
fn the_page_of_metrics_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    if std::env::var_os("TERRANE_REWRITE").is_some() {
        std::fs::write(&path, page()).unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == page(), "docs/metrics.md is stale; TERRANE_REWRITE=1 rewrites it");
}
