//! Loads, lookups and ranges on disk with the default set-up: Fig. 4 and 5, O4 to O14.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use terrane::CacheWarming;
use terrane_lab::host::progress;
use terrane_workload::Distribution;

use super::super::axes::{LOOKUPS_PERCENT, NORMAL, ZIPF};
use super::super::reads::{EMPTY_PERCENTS, SELECTIVITIES};
use super::super::recording::{headers, table_with_cells};
use super::super::setting::Setting;
use super::super::sizes::{CompactionSizes, KeySet, OF_EACH_KIND, WITHOUT_DELETES};
use super::super::tree::{ReadCost, Reader};
use super::recorded::{Rounds, shown};
use super::run::{DiskLoad, Timed};
use super::{OF_TIMED, record};
use crate::experiment::ExperimentOptions;
use crate::results::{Metric, Results};

/// Reads during the second half of a load.
const MOMENTS: usize = 4;
/// Lookups at each moment and for each share of missing keys, after a third as many to warm the
/// cache.
const LOOKUPS: usize = 1200;
const RANGES: usize = 40;
const DRAWN: [(&str, Distribution); 3] =
    [("uniform", Distribution::Uniform), ("zipf", ZIPF), ("normal", NORMAL)];
const INGESTED: [(&str, Distribution); 2] = [("zipf", ZIPF), ("normal", NORMAL)];

pub(in super::super) const METRICS: &[Metric] = &[
    Metric { name: "disk_axes_scale", about: "the scale of the loads on disk along the axes" },
    Metric { name: "disk_refused", about: "tables that could not be read or written directly" },
    Metric {
        name: "disk_lookup",
        about: "mean time of a lookup on disk in µs, by percent of missing keys and strategy",
    },
    Metric { name: "disk_lookup_p90", about: "its 90th percentile" },
    Metric {
        name: "disk_range",
        about: "mean time of a range on disk in µs, by its parts of 100,000 of all entries and strategy",
    },
    Metric {
        name: "disk_drawn",
        about: "mean time of a lookup on disk in µs, by distribution of lookups, percent of missing keys and strategy",
    },
    Metric { name: "disk_ingested", about: "the same, by distribution of inserts" },
    Metric {
        name: "disk_between",
        about: "mean time in µs of a lookup between writes, by existing or missing keys and strategy",
    },
    Metric { name: "disk_between_cold", about: "the same when compactions do not warm the cache" },
    Metric {
        name: "disk_after",
        about: "the same after all writes, with a cache of the same size",
    },
    Metric { name: "disk_cache", about: "mean bytes of the cache between writes, by strategy" },
    Metric {
        name: "disk_total",
        about: "seconds of a load and its lookups, by serial or mixed and strategy",
    },
];

/// The rounds of each metric, by its keys.
type All = BTreeMap<(&'static str, Vec<String>), Vec<f64>>;

fn add(all: &mut All, metric: &'static str, keys: &[&str], value: f64) {
    let keys = keys.iter().map(|&key| key.to_owned()).collect();
    all.entry((metric, keys)).or_default().push(value);
}

/// The measurements that are needed.
#[derive(Clone, Copy)]
struct NeededReads {
    /// Loads with lookups among the writes, and those that are compared with them.
    mixed: bool,
    /// The same loads without cache warming.
    cold: bool,
    /// Loads without lookups among the writes.
    serial: bool,
    lookups: bool,
    ranges: bool,
    drawn: bool,
    ingested: [bool; INGESTED.len()],
}

impl NeededReads {
    fn of(options: &ExperimentOptions) -> Self {
        let of_load =
            |value| OF_TIMED.iter().any(|(metric, ..)| options.needs(metric, &["load", value]));
        let of_mixed = ["disk_between", "disk_cache", "disk_after", "disk_total"];
        let mixed = of_load("interleaved") || options.needs_any(&of_mixed);
        let lookups = options.needs_any(&["disk_lookup", "disk_lookup_p90"]);
        let ranges = options.needs("disk_range", &[]);
        let drawn = options.needs("disk_drawn", &[]);
        Self {
            mixed,
            cold: options.needs("disk_between_cold", &[]),
            serial: of_load("inserts") || mixed || lookups || ranges || drawn,
            lookups,
            ranges,
            drawn,
            ingested: INGESTED.map(|(name, _)| options.needs("disk_ingested", &[name])),
        }
    }
}

pub(super) fn measure(
    sizes: &CompactionSizes,
    dir: &Path,
    options: &ExperimentOptions,
    results: &mut Results,
) -> Result<()> {
    let needed = NeededReads::of(options);
    let setting = Setting::base(sizes);
    let keys = KeySet::new(sizes, Distribution::Uniform, setting.entries);
    let mut all = All::new();
    let mut loads: BTreeMap<(&str, &str), Vec<Timed>> = BTreeMap::new();
    for round in 1..=sizes.rounds {
        for &strategy in sizes.strategies(WITHOUT_DELETES) {
            let interleaved = Setting { lookups_percent: LOOKUPS_PERCENT, ..setting.clone() };
            let mut mixed = None;
            if needed.mixed {
                let load =
                    DiskLoad::new(sizes, &keys, &interleaved, strategy, dir)?.run()?.close()?;
                between("disk_between", strategy, &load, &mut all);
                add(&mut all, "disk_cache", &[strategy], load.cache_bytes);
                mixed = Some(load);
            }
            if needed.serial {
                let of = (strategy, mixed.as_ref());
                let serial = serial(sizes, (&setting, &keys), of, needed, dir, &mut all)?;
                let refused = mixed.as_ref().map_or(0.0, |mixed| mixed.refused);
                add(&mut all, "disk_refused", &[], refused + serial.refused);
                loads.entry(("inserts", strategy)).or_default().push(serial);
            }
            if let Some(mixed) = mixed {
                loads.entry(("interleaved", strategy)).or_default().push(mixed);
            }
            if needed.cold && OF_EACH_KIND.contains(&strategy) {
                let cold = (strategy, CacheWarming::None);
                let cold = DiskLoad::with_warming(sizes, &keys, &interleaved, cold, dir)?
                    .run()?
                    .close()?;
                between("disk_between_cold", strategy, &cold, &mut all);
            }
            progress::step(&format!("round {round} of {}, {strategy}, on disk", sizes.rounds));
        }
    }
    ingested(sizes, &setting, needed, dir, &mut all)?;
    for ((value, strategy), timed) in &loads {
        record(results, ("load", value, strategy), timed);
    }
    for ((metric, keys), rounds) in &all {
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        rounds.iter().copied().collect::<Rounds>().record(results, metric, &keys);
    }
    load_tables(&loads, results);
    tables(sizes.strategies(WITHOUT_DELETES), &all, results);
    Ok(())
}

fn between(metric: &'static str, strategy: &str, mixed: &Timed, all: &mut All) {
    add(all, metric, &["existing", strategy], mixed.existing.mean_micros());
    add(all, metric, &["missing", strategy], mixed.missing.mean_micros());
}

/// Loads a tree without lookups between the writes, and reads it at several moments of its second
/// half and at its end. The lookups at the end have the same cache size as the lookups of the mixed
/// load.
fn serial(
    sizes: &CompactionSizes,
    (setting, keys): (&Setting, &KeySet),
    (strategy, mixed): (&str, Option<&Timed>),
    needed: NeededReads,
    dir: &Path,
    all: &mut All,
) -> Result<Timed> {
    let mut load = DiskLoad::new(sizes, keys, setting, strategy, dir)?;
    let mut moments: Vec<Vec<ReadCost>> = Vec::new();
    for moment in 1..=MOMENTS {
        let written = setting.entries / 2 + setting.entries / 2 * moment / MOMENTS;
        load.write(written)?;
        load.settle()?;
        if !needed.lookups {
            continue;
        }
        // The cache is the same share of the data at every moment, if the engine allows so small a
        // cache.
        let mut reader =
            load.reader(setting.cache_bytes * written as u64 / setting.entries as u64)?;
        let look_up = |empty: &usize| warm(sizes, &mut reader, *empty, Distribution::Uniform);
        moments.push(EMPTY_PERCENTS.iter().map(look_up).collect::<Result<Vec<_>>>()?);
    }
    for (at, empty) in EMPTY_PERCENTS.iter().enumerate().filter(|_| needed.lookups) {
        let costs: Vec<ReadCost> = moments.iter().map(|moment| moment[at].clone()).collect();
        let latency = ReadCost::mean(&costs).latency;
        let empty = empty.to_string();
        add(all, "disk_lookup", &[&empty, strategy], latency.mean_micros());
        add(all, "disk_lookup_p90", &[&empty, strategy], latency.percentile_micros(90.0));
    }
    load.write(usize::MAX)?;
    load.settle()?;
    let mut reader = load.reader(setting.cache_bytes)?;
    for parts in SELECTIVITIES.into_iter().filter(|_| needed.ranges) {
        let cost = reader.scan(setting.entries * parts / 100_000, sizes.reads(RANGES))?;
        add(all, "disk_range", &[&parts.to_string(), strategy], cost.latency.mean_micros());
    }
    for (name, distribution) in DRAWN.into_iter().filter(|_| needed.drawn) {
        for empty in [0, 80] {
            let cost = warm(sizes, &mut reader, empty, distribution)?;
            let keys = [name, &empty.to_string(), strategy];
            add(all, "disk_drawn", &keys, cost.latency.mean_micros());
        }
    }
    drop(reader);
    let Some(mixed) = mixed else { return load.close() };
    let mut reader = load.reader(mixed.cache_bytes as u64)?;
    let existing = warm(sizes, &mut reader, 0, Distribution::Uniform)?.latency.mean_micros();
    let missing = warm(sizes, &mut reader, 100, Distribution::Uniform)?.latency.mean_micros();
    add(all, "disk_after", &["existing", strategy], existing);
    add(all, "disk_after", &["missing", strategy], missing);
    drop(reader);
    let timed = load.close()?;
    let micros =
        mixed.existing.samples() as f64 * existing + mixed.missing.samples() as f64 * missing;
    add(all, "disk_total", &["serial", strategy], timed.seconds + micros / 1e6);
    add(all, "disk_total", &["mixed", strategy], mixed.seconds);
    Ok(timed)
}

/// Looks keys up, after a third as many lookups that warm the cache.
fn warm(
    sizes: &CompactionSizes,
    reader: &mut Reader<'_>,
    empty: usize,
    distribution: Distribution,
) -> Result<ReadCost> {
    let count = sizes.reads(LOOKUPS);
    reader.look_up(empty, distribution, count / 3)?;
    reader.look_up(empty, distribution, count)
}

/// Lookups after inserts by other distributions (Fig. 6c, 6g).
fn ingested(
    sizes: &CompactionSizes,
    setting: &Setting,
    needed: NeededReads,
    dir: &Path,
    all: &mut All,
) -> Result<()> {
    let wanted = INGESTED.into_iter().zip(needed.ingested).filter(|(_, is_needed)| *is_needed);
    for ((name, distribution), _) in wanted {
        let keys = KeySet::new(sizes, distribution, setting.entries);
        for _ in 0..sizes.rounds {
            for strategy in sizes.strategies(WITHOUT_DELETES) {
                let load = DiskLoad::new(sizes, &keys, setting, strategy, dir)?.run()?;
                let mut reader = load.reader(setting.cache_bytes)?;
                for empty in EMPTY_PERCENTS {
                    let cost = warm(sizes, &mut reader, empty, Distribution::Uniform)?;
                    let keys = [name, &empty.to_string(), strategy];
                    add(all, "disk_ingested", &keys, cost.latency.mean_micros());
                }
                drop(reader);
                load.close()?;
                progress::step(&format!("{strategy} on disk after {name} inserts"));
            }
        }
    }
    Ok(())
}

fn load_tables(loads: &BTreeMap<(&str, &str), Vec<Timed>>, results: &mut Results) {
    let columns = [
        "s",
        "compaction µs: mean / P50 / P90 / P99 / P100",
        "processor time of it",
        "write µs: mean / P99 / P100",
        "stalled s",
    ];
    for (value, title) in [
        ("inserts", "Unique inserts, uniform, on disk (Fig. 4c, 4d, 9a, 9b)"),
        ("interleaved", "The same with lookups among the inserts, on disk (Fig. 5)"),
    ] {
        let rows = WITHOUT_DELETES.iter().filter_map(|strategy| {
            let timed = loads.get(&(value, *strategy))?;
            let of = |compute: &dyn Fn(&Timed) -> f64| {
                shown(&timed.iter().map(compute).collect::<Vec<_>>())
            };
            let job = |percent: f64| {
                let at = |timed: &Timed| timed.compactions.percentile_micros(percent);
                of(&|timed| at(timed).unwrap_or(f64::NAN))
            };
            let mean = of(&|timed| timed.compactions.mean_micros().unwrap_or(f64::NAN));
            let jobs = [mean, job(50.0), job(90.0)];
            let jobs = jobs.into_iter().chain([job(99.0), job(100.0)]).collect::<Vec<_>>();
            let writes = [
                of(&|timed| timed.writes.mean_micros()),
                of(&|timed| timed.writes.percentile_micros(99.0)),
                of(&|timed| timed.writes.max_micros()),
            ];
            let share = |timed: &Timed| {
                100.0 * timed.cpu_micros / (timed.compactions.sum_micros() as f64).max(1.0)
            };
            Some(vec![
                (*strategy).to_owned(),
                of(&|timed| timed.seconds),
                jobs.join(" / "),
                format!("{} %", of(&share)),
                writes.join(" / "),
                of(&|timed| timed.stalled),
            ])
        });
        let headers: Vec<&str> = std::iter::once("strategy").chain(columns).collect();
        table_with_cells(title, &headers, rows.collect(), results);
    }
}

fn tables(strategies: &[&str], all: &All, results: &mut Results) {
    let cell = |metric: &'static str, keys: &[&str]| {
        let keys = keys.iter().map(|&key| key.to_owned()).collect();
        all.get(&(metric, keys)).map_or_else(String::new, |rounds| shown(rounds))
    };
    let shares = EMPTY_PERCENTS.map(|empty| format!("α={:.1}", empty as f64 / 100.0));
    let rows = strategies.iter().map(|strategy| {
        let cells = EMPTY_PERCENTS.map(|empty| {
            let empty = empty.to_string();
            let of = |metric| cell(metric, &[&empty, strategy]);
            format!("{}, {}", of("disk_lookup"), of("disk_lookup_p90"))
        });
        std::iter::once((*strategy).to_owned()).chain(cells).collect()
    });
    let title = "µs of a lookup on disk, mean and P90 (Fig. 4e, 4h)";
    table_with_cells(title, &headers("strategy", &shares), rows.collect(), results);
    let parts = SELECTIVITIES.map(|parts| format!("{} %", parts as f64 / 1000.0));
    let rows = strategies.iter().map(|strategy| {
        let cells = SELECTIVITIES.map(|parts| cell("disk_range", &[&parts.to_string(), strategy]));
        std::iter::once((*strategy).to_owned()).chain(cells).collect()
    });
    let title = "µs of a range on disk, by its share of all entries (Fig. 4g)";
    table_with_cells(title, &headers("strategy", &parts), rows.collect(), results);
    let rows = strategies.iter().map(|strategy| {
        let pair = |metric| {
            let of = |kind| cell(metric, &[kind, strategy]);
            format!("{}, {}", of("existing"), of("missing"))
        };
        let total = |kind| cell("disk_total", &[kind, strategy]);
        let cells = [pair("disk_between"), pair("disk_between_cold"), pair("disk_after")];
        let cells = cells.into_iter().chain([total("mixed"), total("serial")]);
        std::iter::once((*strategy).to_owned()).chain(cells).collect()
    });
    let columns = [
        "strategy",
        "between writes, existing and missing keys: µs",
        "the same without warming",
        "after all writes",
        "all: s",
        "one after the other: s",
    ];
    let title = "Lookups between writes and after them, on disk (Fig. 5e, 5f)";
    table_with_cells(title, &columns, rows.collect(), results);
    for (name, _) in INGESTED {
        let rows = strategies.iter().map(|strategy| {
            let cells = EMPTY_PERCENTS
                .map(|empty| cell("disk_ingested", &[name, &empty.to_string(), strategy]));
            std::iter::once((*strategy).to_owned()).chain(cells).collect()
        });
        let title = format!("µs of a lookup on disk after {name} inserts (Fig. 6c, 6g)");
        table_with_cells(title, &headers("strategy", &shares), rows.collect(), results);
    }
}
