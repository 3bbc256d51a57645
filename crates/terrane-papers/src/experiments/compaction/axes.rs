//! The axes of the paper's figures: the varied parameter and its values.

use terrane_workload::Distribution;

use super::setting::Setting;
use super::sizes::{ALL, CompactionSizes, OF_EACH_KIND, WITH_DELETES, WITHOUT_DELETES};
use crate::experiment::ExperimentOptions;

pub(super) const ZIPF: Distribution = Distribution::Zipf { theta: 1.0 };
pub(super) const NORMAL: Distribution = Distribution::Normal { deviation: 0.34, mean: 0.5 };

/// The lookups of a mixed workload: a tenth of the writes (§5.1.3), all in their second half.
pub(super) const LOOKUPS_PERCENT: usize = 20;

/// An axis: its name, and the setting at each value.
pub(super) struct Axis {
    pub(super) name: &'static str,
    /// The name of the varied parameter, for headings.
    pub(super) about: &'static str,
    /// The figures of the paper with this axis.
    pub(super) figures: &'static str,
    pub(super) strategies: &'static [&'static str],
    pub(super) settings: Vec<(String, Setting)>,
}

impl Axis {
    /// Returns the axis with the values at which a figure needs one of `metrics`.
    pub(super) fn needed(mut self, options: &ExperimentOptions, metrics: &[&str]) -> Self {
        let is_needed =
            |value: &str| metrics.iter().any(|metric| options.needs(metric, &[self.name, value]));
        self.settings.retain(|(value, _)| is_needed(value));
        self
    }

    /// Returns the axis with two values; a trial also runs fewer of the usual strategies.
    fn thinned(mut self, sizes: &CompactionSizes) -> Self {
        self.settings.truncate(2);
        if self.strategies == WITHOUT_DELETES {
            self.strategies = sizes.strategies(WITHOUT_DELETES);
        }
        self
    }
}

fn axis<Value: ToString>(
    (name, figures): (&'static str, &'static str),
    about: &'static str,
    values: impl IntoIterator<Item = Value>,
    setting: impl Fn(&Value) -> Setting,
) -> Axis {
    let settings = values.into_iter().map(|value| (value.to_string(), setting(&value)));
    Axis { name, about, figures, strategies: WITHOUT_DELETES, settings: settings.collect() }
}

/// Returns the axes of the counted loads.
pub(super) fn counted(sizes: &CompactionSizes) -> Vec<Axis> {
    let base = || Setting::base(sizes);
    let loads = [("inserts", 0), ("interleaved", LOOKUPS_PERCENT)];
    let load = axis(("load", "Fig. 4a to 4d, 5a to 5d"), "", loads.map(|(name, _)| name), |name| {
        let lookups_percent = loads.iter().find(|(one, _)| one == name).map_or(0, |one| one.1);
        Setting { lookups_percent, ..base() }
    });
    let deletes =
        axis(("deletes", "Fig. 8d to 8f"), "percent of deletes", [2, 5, 10, 15, 20], |&percent| {
            Setting { deletes_percent: percent, ..base() }
        });
    let axes = vec![
        Axis { strategies: ALL, ..load },
        distribution(sizes),
        updates(sizes, &[0, 8]),
        updates_of_all(sizes, &[0, 1, 2, 4, 8]),
        Axis { strategies: WITH_DELETES, ..deletes },
        entries(sizes, &[21, 22, 23, 24, 25, 26]),
        entry(sizes, &[8, 16, 32, 64, 128, 258]),
        buffer(sizes, &[1, 2, 4, 8, 16, 32, 64]),
        page(sizes, &[512, 1024, 2048, 4096, 8192, 16384]),
        ratio(sizes, &[2, 4, 6, 8, 10]),
        bits(sizes, &[2, 5, 10, 15, 20]),
        cache(sizes, &[8, 16, 32, 64, 128, 256], LOOKUPS_PERCENT),
    ];
    if sizes.is_trial() { axes.into_iter().map(|axis| axis.thinned(sizes)).collect() } else { axes }
}

/// Returns the axes of the timed loads: fewer values of each, and one strategy of each kind, because
/// creating a table takes time whatever its size.
pub(super) fn timed(sizes: &CompactionSizes) -> Vec<Axis> {
    let mixed = cache(sizes, &[8, 256], LOOKUPS_PERCENT);
    let axes = [
        distribution(sizes),
        updates_of_all(sizes, &[0, 8]),
        entries(sizes, &[21, 23]),
        entry(sizes, &[8, 128]),
        buffer(sizes, &[8, 32, 64]),
        page(sizes, &[512, 4096, 16384]),
        ratio(sizes, &[4, 6, 10]),
        bits(sizes, &[5, 20]),
        cache(sizes, &[8, 256], 0),
        Axis { name: "cache-mixed", ..mixed },
    ];
    let axes = axes.map(|axis| Axis { strategies: OF_EACH_KIND, ..axis });
    let count = if sizes.is_trial() { 1 } else { axes.len() };
    axes.into_iter().take(count).collect()
}

fn distribution(sizes: &CompactionSizes) -> Axis {
    let all = [("uniform", Distribution::Uniform), ("zipf", ZIPF), ("normal", NORMAL)];
    axis(
        ("distribution", "Fig. 6a, 6b, 6e, 6f"),
        "distribution of inserts",
        all.map(|(name, _)| name),
        |name| {
            let found = all.iter().find(|(one, _)| one == name);
            let distribution = found.map_or(Distribution::Uniform, |one| one.1);
            Setting { distribution, ..Setting::base(sizes) }
        },
    )
}

fn updates(sizes: &CompactionSizes, values: &[usize]) -> Axis {
    axis(("updates", "Fig. 8a to 8c"), "updates for each insert", values, |&&updates| Setting {
        updates,
        ..Setting::base(sizes)
    })
}

/// The same axis, but with as many operations in total as without updates. The paper does not say
/// which of the two it measured.
fn updates_of_all(sizes: &CompactionSizes, values: &[usize]) -> Axis {
    let about = "updates for each insert, with equally many operations";
    axis(("updates-all", "Fig. 8a to 8c"), about, values, |&&updates| {
        let base = Setting::base(sizes);
        Setting { entries: base.entries / (1 + updates), updates, ..base }
    })
}

/// The numbers of inserts in the paper are powers of two.
fn entries(sizes: &CompactionSizes, powers: &[u32]) -> Axis {
    let inserts = |power: u32| f64::from(power).exp2();
    let possible = powers.iter().copied().filter(|power| sizes.can_hold(inserts(*power)));
    axis(
        ("entries", "Fig. 8g to 8i"),
        "binary logarithm of the paper's number of inserts",
        possible,
        |&power| Setting { entries: sizes.share_of(inserts(power)), ..Setting::base(sizes) },
    )
}

fn entry(sizes: &CompactionSizes, values: &[usize]) -> Axis {
    axis(("entry", "Fig. 8j, 8k"), "bytes of an entry", values, |&&bytes| Setting {
        value_bytes: bytes - 4,
        ..Setting::base(sizes)
    })
}

/// Buffers in MiB at the paper's size.
fn buffer(sizes: &CompactionSizes, values: &[u64]) -> Axis {
    axis(("buffer", "Fig. 8l to 8n"), "the paper's buffer in MiB", values, |&&mib| Setting {
        buffer_bytes: (sizes.buffer_bytes() * mib / 8).max(4 << 10),
        ..Setting::base(sizes)
    })
}

fn page(sizes: &CompactionSizes, values: &[u32]) -> Axis {
    axis(("page", "Fig. 8o, 12"), "bytes of a page", values, |&&page_bytes| Setting {
        page_bytes,
        ..Setting::base(sizes)
    })
}

fn ratio(sizes: &CompactionSizes, values: &[u32]) -> Axis {
    axis(("ratio", "Fig. 13"), "size ratio T", values, |&&size_ratio| Setting {
        size_ratio,
        ..Setting::base(sizes)
    })
}

fn bits(sizes: &CompactionSizes, values: &[u32]) -> Axis {
    axis(("bits", "Fig. 14"), "filter bits per key", values, |&&bits| Setting {
        filter_bits: f64::from(bits),
        ..Setting::base(sizes)
    })
}

/// Block caches in MiB at the paper's size.
fn cache(sizes: &CompactionSizes, values: &[u64], lookups_percent: usize) -> Axis {
    axis(("cache", "Fig. 10, 11"), "the paper's cache in MiB", values, |&&mib| Setting {
        cache_bytes: sizes.cache_bytes() * mib / 8,
        lookups_percent,
        ..Setting::base(sizes)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_distinct_values_within_the_limits() {
        for scale in [0.001, 0.02, 1.0] {
            let sizes = CompactionSizes { scale, rounds: 1, seed: 1 };
            for axis in counted(&sizes).into_iter().chain(timed(&sizes)) {
                assert!(!axis.settings.is_empty(), "{}", axis.name);
                for (at, (value, setting)) in axis.settings.iter().enumerate() {
                    assert!(axis.settings[..at].iter().all(|(other, _)| other != value));
                    assert!(setting.entries <= 10_000_000, "{} {value}", axis.name);
                    for strategy in axis.strategies {
                        setting.design(strategy).unwrap();
                    }
                }
            }
        }
    }
}
