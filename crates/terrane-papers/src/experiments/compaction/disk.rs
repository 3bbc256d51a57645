//! The same strategies as the paper ran them (§5): files on a device, direct I/O, one background
//! thread, compactions before writes, and times instead of counts: O4 to O7, O9 to O16, O19 to O22.
//!
//! | module | one line |
//! |---|---|
//! | [`run`] | one load in a database of its own, timed |
//! | [`base`] | loads, lookups and ranges with the default set-up |
//! | [`recorded`] | records the rounds of a metric |

mod base;
mod recorded;
mod run;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use indicatif::ProgressBar;
use terrane_lab::host::progress;

use super::axes::{self, Axis};
use super::recording::headers;
use super::sizes::{CompactionSizes, KeySet};
use crate::experiment::ExperimentOptions;
use crate::results::{Metric, Results};
use recorded::Rounds;
use run::{DiskLoad, Timed};

/// The trees of the axes have this share of the entries of the default set-up.
const AXES_SHARE: f64 = 0.25;

/// A metric of a timed load: name, meaning, and the function that computes it.
type OfTimed = (&'static str, &'static str, fn(&Timed) -> f64);

const OF_TIMED: [OfTimed; 12] = [
    ("disk_compaction", "mean time of a compaction on disk in µs", |timed| {
        timed.compactions.mean_micros().unwrap_or(f64::NAN)
    }),
    ("disk_p50", "its median", |timed| {
        timed.compactions.percentile_micros(50.0).unwrap_or(f64::NAN)
    }),
    ("disk_p90", "its 90th percentile", |timed| {
        timed.compactions.percentile_micros(90.0).unwrap_or(f64::NAN)
    }),
    ("disk_p99", "its 99th percentile", |timed| {
        timed.compactions.percentile_micros(99.0).unwrap_or(f64::NAN)
    }),
    ("disk_longest", "its maximum", |timed| timed.compactions.max_micros().unwrap_or(f64::NAN)),
    ("disk_cpu", "processor time in percent of the time of compactions on disk", |timed| {
        100.0 * timed.cpu_micros / timed.compactions.sum_micros() as f64
    }),
    ("disk_nanos", "time of compactions on disk in ns per byte moved", |timed| {
        1000.0 * timed.compactions.sum_micros() as f64 / timed.moved_bytes
    }),
    ("disk_cpu_nanos", "processor time of compactions on disk in ns per byte moved", |timed| {
        1000.0 * timed.cpu_micros / timed.moved_bytes
    }),
    ("disk_longest_write", "the longest write on disk in µs", |timed| timed.writes.max_micros()),
    ("disk_write", "mean time of a write on disk in µs", |timed| timed.writes.mean_micros()),
    ("disk_stalled", "seconds that writes waited for compactions on disk", |timed| timed.stalled),
    ("disk_seconds", "seconds of a load on disk", |timed| timed.seconds),
];

/// The metrics of timed loads, each by axis, value and strategy.
pub(super) const METRICS: &[Metric] = &{
    let mut metrics = [Metric { name: "", about: "" }; OF_TIMED.len()];
    let mut at = 0;
    while at < metrics.len() {
        metrics[at] = Metric { name: OF_TIMED[at].0, about: OF_TIMED[at].1 };
        at += 1;
    }
    metrics
};
pub(super) use base::METRICS as BASE_METRICS;

/// A panel of a figure: its number, its axis, its metric and its title.
type Panel = (&'static str, &'static str, &'static str, &'static str);

const PANELS: [Panel; 18] = [
    ("Fig. 6b, 6f", "distribution", "disk_compaction", "µs of a compaction, mean"),
    ("Fig. 6b, 6f", "distribution", "disk_p99", "µs of a compaction, P99"),
    ("Fig. 8a", "updates-all", "disk_compaction", "µs of a compaction, mean"),
    ("Fig. 8c", "updates-all", "disk_longest", "µs of the longest compaction"),
    ("Fig. 8g", "entries", "disk_compaction", "µs of a compaction, mean"),
    ("Fig. 8i", "entries", "disk_longest", "µs of the longest compaction"),
    ("Fig. 8j", "entry", "disk_compaction", "µs of a compaction, mean"),
    ("Fig. 8j", "entry", "disk_cpu_nanos", "ns of processor time of a compaction per byte"),
    ("Fig. 8l", "buffer", "disk_compaction", "µs of a compaction, mean"),
    ("Fig. 8m", "buffer", "disk_longest", "µs of the longest compaction"),
    ("Fig. 8o, 12a", "page", "disk_compaction", "µs of a compaction, mean"),
    ("Fig. 12b", "page", "disk_longest", "µs of the longest compaction"),
    ("Fig. 13a", "ratio", "disk_compaction", "µs of a compaction, mean"),
    ("Fig. 13b", "ratio", "disk_longest", "µs of the longest compaction"),
    ("Fig. 14a", "bits", "disk_compaction", "µs of a compaction, mean"),
    ("Fig. 14b", "bits", "disk_longest", "µs of the longest compaction"),
    ("Fig. 10a", "cache", "disk_compaction", "µs of a compaction, mean, inserts only"),
    ("Fig. 11a", "cache-mixed", "disk_compaction", "µs of a compaction, mean, with 10 % lookups"),
];

pub(super) fn measure(
    sizes: &CompactionSizes,
    dir: &Path,
    spinner: &ProgressBar,
    options: &ExperimentOptions,
    results: &mut Results,
) -> Result<()> {
    spinner.set_message("on disk");
    let figures = "Fig. 4c to 4e, 4g, 4h, 5, 6c, 6g, 7a, 7c, 9a, 9b";
    options
        .part(results, "on disk", figures, |results| base::measure(sizes, dir, options, results))?;
    let smaller = sizes.at_most(AXES_SHARE * sizes.scale);
    results.record("disk_axes_scale", &[], smaller.scale);
    for axis in axes::timed(&smaller) {
        let axis = axis.needed(options, &OF_TIMED.map(|(name, ..)| name));
        if axis.settings.is_empty() {
            continue;
        }
        spinner.set_message(format!("on disk, by {}", axis.about));
        let name = format!("on disk, {}", axis.name);
        options.part(results, &name, axis.figures, |results| {
            measure_axis(&smaller, &axis, dir, results)
        })?;
    }
    Ok(())
}

fn measure_axis(
    sizes: &CompactionSizes,
    axis: &Axis,
    dir: &Path,
    results: &mut Results,
) -> Result<()> {
    let mut rounds: BTreeMap<(usize, usize), Vec<Timed>> = BTreeMap::new();
    for _ in 0..sizes.rounds {
        for (at, (value, setting)) in axis.settings.iter().enumerate() {
            let keys = KeySet::new(sizes, setting.distribution, setting.entries);
            for (of, strategy) in axis.strategies.iter().enumerate() {
                let load = DiskLoad::new(sizes, &keys, setting, strategy, dir)?;
                rounds.entry((at, of)).or_default().push(load.run()?.close()?);
                progress::step(&format!("{}={value}, {strategy}, on disk", axis.name));
            }
        }
    }
    for ((at, of), timed) in &rounds {
        record(results, (axis.name, &axis.settings[*at].0, axis.strategies[*of]), timed);
    }
    let values: Vec<String> = axis.settings.iter().map(|(value, _)| value.clone()).collect();
    for (figure, _, metric, what) in PANELS.iter().filter(|panel| panel.1 == axis.name) {
        let Some((_, _, compute)) = OF_TIMED.iter().find(|(name, ..)| name == metric) else {
            continue;
        };
        let rows = axis.strategies.iter().enumerate().map(|(of, strategy)| {
            let cells = (0..values.len()).map(|at| {
                let all: Vec<f64> = rounds[&(at, of)].iter().map(compute).collect();
                recorded::shown(&all)
            });
            std::iter::once((*strategy).to_owned()).chain(cells).collect()
        });
        let title = format!("{figure}: {what}, on disk, by {}", axis.about);
        results.table(title, &headers("strategy", &values), rows.collect());
    }
    Ok(())
}

/// Records every metric of the rounds of a load.
fn record(results: &mut Results, (axis, value, strategy): (&str, &str, &str), timed: &[Timed]) {
    for (metric, _, compute) in OF_TIMED {
        let all: Rounds = timed.iter().map(compute).collect();
        all.record(results, metric, &[axis, value, strategy]);
    }
}
