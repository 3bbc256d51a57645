//! Compaction strategies: the observations of *Constructing and Analyzing the LSM Compaction Design
//! Space* (§5), measured on this engine: by counts, in one thread, and by time, on disk.
//!
//! | module | one line |
//! |---|---|
//! | [`sizes`] | a share of the paper's sizes, strategies, keys |
//! | [`setting`] | a workload and the tuning of a tree, as values |
//! | [`axes`] | the axes of the figures |
//! | [`tree`] | loads a tree in one thread and reads it; the metrics of §4.2 |
//! | [`recording`] | the metrics of a counted load, and tables of them |
//! | [`counted`] | every strategy along every axis, by counts: O1 to O3, O10, O12, O15 to O23 |
//! | [`reads`] | lookups and ranges of trees with the paper's tables and cache: O6 to O9, O13, O14 |
//! | [`warming`] | what flushes and compactions insert into the cache: O11 |
//! | [`disk`] | the same strategies on disk, timed: O4 to O7, O9 to O16, O19 to O22 |
//! | [`appendix`] | footnote 1: filters and indexes |
//! | [`defaults`] | the default design against others |

mod appendix;
mod axes;
mod counted;
mod defaults;
mod disk;
mod reads;
mod recording;
mod setting;
mod sizes;
mod tree;
mod warming;

use anyhow::Result;
use sizes::CompactionSizes;
use terrane_lab::host::progress;
use terrane_lab::host::scratch::Scratch;

use crate::experiment::{Experiment, ExperimentCost, ExperimentOptions};
use crate::results::{Metric, Results};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "compaction",
    paper: "Constructing and Analyzing the LSM Compaction Design Space (VLDB 2021)",
    about: "compaction strategies: bytes moved, pages read, tombstones, and times on disk",
    cost: ExperimentCost { minutes: 60, disk_mib: 500 },
    default_scale: 0.04,
    scale_of: "the paper's entries, 10 million, its buffer and its cache of 8 MiB",
    figures: &["Fig. 4", "Fig. 5", "Fig. 6", "Fig. 7", "Fig. 8", "Fig. 9 to 14"],
    metrics: &[
        METRICS,
        recording::METRICS,
        reads::METRICS,
        warming::METRICS,
        disk::METRICS,
        disk::BASE_METRICS,
    ],
    timed: TIMED,
    claims: include_str!("../../claims/compaction.toml"),
    run,
};

const TIMED: &[&str] = &[
    "disk_compaction",
    "disk_p50",
    "disk_p90",
    "disk_p99",
    "disk_longest",
    "disk_cpu",
    "disk_nanos",
    "disk_cpu_nanos",
    "disk_longest_write",
    "disk_write",
    "disk_stalled",
    "disk_seconds",
    "disk_lookup",
    "disk_lookup_p90",
    "disk_range",
    "disk_drawn",
    "disk_ingested",
    "disk_between",
    "disk_between_cold",
    "disk_after",
    "disk_total",
];

const METRICS: &[Metric] = &[
    Metric { name: "scale", about: "sizes as a share of the paper's" },
    Metric { name: "rounds", about: "rounds of timed operations" },
    Metric { name: "seed", about: "the seed of all random choices" },
    Metric { name: "entries", about: "entries that are loaded" },
    Metric { name: "buffer_bytes", about: "bytes of a write buffer" },
    Metric { name: "page_bytes", about: "bytes of a page" },
    Metric { name: "filter_bytes", about: "bytes of the filters of a table, by KiB of a page" },
    Metric { name: "index_bytes", about: "bytes of the index of a table, by KiB of a page" },
    Metric { name: "default_entries", about: "entries of the trees that compare designs" },
    Metric { name: "winners", about: "designs that beat the default design" },
    Metric {
        name: "winners_beyond_files",
        about: "of those, designs that beat it in more than the number of files at the end",
    },
    Metric { name: "winner_names", about: "the designs that beat the default design, as text" },
];

fn run(options: &ExperimentOptions, results: &mut Results) -> Result<()> {
    let ExperimentOptions { scale, rounds, seed, .. } = *options;
    let scratch = Scratch::temporary("terrane-claims-")?;
    // Nothing is larger than the paper's.
    let sizes = CompactionSizes { scale: scale.min(1.0), rounds, seed };
    results.record("scale", &[], sizes.scale);
    results.record("rounds", &[], rounds as f64);
    results.record("seed", &[], seed as f64);
    results.record("entries", &[], sizes.entries() as f64);
    results.record("buffer_bytes", &[], sizes.buffer_bytes() as f64);
    results.record("page_bytes", &[], f64::from(sizes.page_bytes()));
    let dir = scratch.path();
    let spinner = progress::spinner("compaction");
    spinner.set_message("loads by counts");
    counted::measure(&sizes, dir, options, results)?;
    spinner.set_message("lookups by pages");
    let figures = "Fig. 4e to 4h, 6c, 6d, 6g, 6h, 7, 9c, 9d";
    options.part(results, "lookups by pages", figures, |results| {
        reads::measure(&sizes, dir, options, results)
    })?;
    spinner.set_message("cache warming by flushes and compactions");
    options.part(results, "cache warming", "Fig. 5e, 9c, 9d", |results| {
        warming::measure(&sizes, dir, results)
    })?;
    spinner.set_message("filters and indexes");
    options.part(results, "filters and indexes", "", |results| {
        appendix::measure(&dir.join("table"), results)
    })?;
    spinner.set_message("the default design");
    options.part(results, "the default design", "", |results| {
        defaults::measure(&sizes, dir, results)
    })?;
    // Last, because only times need a quiet machine: an interrupted run keeps its counts.
    disk::measure(&sizes, dir, &spinner, options, results)?;
    spinner.finish_and_clear();
    Ok(())
}
