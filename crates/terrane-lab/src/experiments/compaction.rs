//! Compaction strategies: the observations of *Constructing and Analyzing the LSM Compaction Design
//! Space* (§5), measured on this engine.
//!
//! | module | one line |
//! |---|---|
//! | [`sizes`] | sizes, strategies, keys |
//! | [`tree`] | loads a tree serially and reads it; the metrics of §4.2 |
//! | [`recording`] | records the metrics of a load, and shows them in a table |
//! | [`loading`] | inserts, lookups, ranges, and all interleaved: O1 to O11 |
//! | [`proportions`] | lookups and ranges of trees with the paper's tables and cache: O6 to O9, O13 |
//! | [`warming`] | what flushes and compactions insert into the cache: O11 |
//! | [`workloads`] | distributions, updates, deletes: O12 to O18 |
//! | [`tuning`] | sizes and settings: O19 to O23 |
//! | [`appendix`] | footnotes and appendix: filters, indexes, pages, caches, bits |
//! | [`defaults`] | the default design against others |

mod appendix;
mod defaults;
mod loading;
mod proportions;
mod recording;
mod sizes;
mod tree;
mod tuning;
mod warming;
mod workloads;

use anyhow::Result;
use terrane_workload::Distribution;

use crate::experiment::{Experiment, ExperimentCost, ExperimentOptions};
use crate::machine::Machine;
use crate::progress;
use crate::results::{Metric, Results};
use crate::scratch::Scratch;
use sizes::{CompactionSizes, KeySet};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "compaction",
    paper: "Constructing and Analyzing the LSM Compaction Design Space (VLDB 2021)",
    about: "compaction strategies: bytes moved, pages read, tombstones, by counts",
    cost: ExperimentCost { minutes: 10, disk_mib: 100 },
    default_scale: DEFAULT_SCALE,
    scale_of: "the paper's entries, 10 million, and its buffer of 8 MiB",
    figures: &["Fig. 4", "Fig. 5", "Fig. 6", "Fig. 7", "Fig. 8", "Fig. 9 to 14"],
    metrics: &[METRICS],
    timed: &["nanos_per_byte", "lookup_micros", "interleaved_micros", "range_micros"],
    claims: include_str!("../../claims/compaction.toml"),
    run,
};

/// The sizes of the constants in [`sizes`].
const DEFAULT_SCALE: f64 = 1.0 / 64.0;

const METRICS: &[Metric] = &[
    Metric { name: "machine", about: "the machine, as text" },
    Metric { name: "scale", about: "sizes as a share of the paper's" },
    Metric { name: "rounds", about: "rounds of timed operations" },
    Metric { name: "seed", about: "the seed of all random choices" },
    Metric { name: "entries", about: "entries that are loaded" },
    Metric { name: "buffer_bytes", about: "bytes of a write buffer" },
    Metric {
        name: "moved",
        about: "bytes that compactions read and wrote per byte written by the user, by workload and strategy",
    },
    Metric {
        name: "written",
        about: "bytes that compactions wrote per byte written by the user, by workload and strategy",
    },
    Metric { name: "user_bytes", about: "bytes written by the user, by workload and strategy" },
    Metric { name: "flushes", about: "flushes, by workload and strategy" },
    Metric {
        name: "compactions",
        about: "compactions that rewrote tables or moved them, by workload and strategy",
    },
    Metric {
        name: "mean_job",
        about: "mean bytes moved by a compaction, by workload and strategy",
    },
    Metric {
        name: "largest_job",
        about: "bytes moved by the largest compaction, by workload and strategy",
    },
    Metric {
        name: "before_write",
        about: "most bytes moved before one write, by workload and strategy",
    },
    Metric {
        name: "nanos_per_byte",
        about: "median time of compactions per byte, by workload and strategy",
    },
    Metric { name: "tombstones", about: "tombstones at the end, by workload and strategy" },
    Metric {
        name: "lookup_micros",
        about: "median time of a lookup after the load, by percent of missing keys and strategy",
    },
    Metric {
        name: "lookup_pages",
        about: "pages read per lookup after the load, by percent of missing keys and strategy",
    },
    Metric {
        name: "interleaved_micros",
        about: "median time of a lookup between writes, by strategy",
    },
    Metric {
        name: "range_micros",
        about: "median time of a range, by its percent of all keys and strategy",
    },
    Metric {
        name: "tree_lookup_pages",
        about: "pages read per lookup in a tree of the paper's proportions, by percent of missing keys and strategy",
    },
    Metric { name: "tree_lookup_pages_p90", about: "the same, 90th percentile" },
    Metric {
        name: "tree_zipf_pages",
        about: "pages read per lookup after Zipf inserts, 80 % of missing keys, by strategy",
    },
    Metric { name: "tree_range_pages", about: "pages read by a range, by its pages and strategy" },
    Metric {
        name: "tree_levels",
        about: "levels with tables in a tree of the paper's proportions, by strategy",
    },
    Metric {
        name: "warm_pages",
        about: "pages read per lookup between writes, by cache warming and strategy",
    },
    Metric {
        name: "warm_meta_misses",
        about: "cache misses of index blocks and filters, by cache warming and strategy",
    },
    Metric { name: "drawn_pages", about: "pages read per lookup, by distribution and strategy" },
    Metric { name: "filter_bytes", about: "bytes of the filters of a table, by KiB of a page" },
    Metric { name: "index_bytes", about: "bytes of the index of a table, by KiB of a page" },
    Metric { name: "cache_moved", about: "moved, by MiB of memory and strategy" },
    Metric {
        name: "cache_pages",
        about: "pages read per lookup after the load, by MiB of memory and strategy",
    },
    Metric { name: "bits_moved", about: "moved, by filter bits per key and strategy" },
    Metric {
        name: "bits_empty_blocks",
        about: "blocks searched per lookup of a missing key, by filter bits per key and strategy",
    },
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
    let sizes = CompactionSizes { scale: scale / DEFAULT_SCALE, rounds, seed };
    results.record_text("machine", Machine::here(scratch.path()).to_string());
    results.record("scale", &[], scale);
    results.record("rounds", &[], rounds as f64);
    results.record("seed", &[], seed as f64);
    results.record("entries", &[], sizes.entries() as f64);
    results.record("buffer_bytes", &[], sizes.buffer_bytes() as f64);
    let keys = KeySet::new(&sizes, Distribution::Uniform, sizes.entries());
    let dir = scratch.path().join("tree");
    let spinner = progress::spinner("compaction claims");
    spinner.set_message("loading and reading (O1 to O11)");
    loading::measure(&sizes, &keys, &dir, results)?;
    spinner.set_message("the paper's proportions (O6 to O9, O13)");
    proportions::measure(&sizes, &dir, results)?;
    spinner.set_message("cache warming by flushes and compactions (O11)");
    warming::measure(&sizes, &keys, &dir, results)?;
    spinner.set_message("distributions (O12 to O14)");
    workloads::distributions(&sizes, &keys, &dir, results)?;
    spinner.set_message("updates and deletes (O15 to O18)");
    workloads::updates(&sizes, &keys, &dir, results)?;
    workloads::deletes(&sizes, &keys, &dir, results)?;
    spinner.set_message("sizes and settings (O19 to O23)");
    tuning::measure(&sizes, &keys, &dir, results)?;
    spinner.set_message("footnotes and appendix");
    appendix::measure(&sizes, &keys, &dir, results)?;
    spinner.set_message("the default design");
    defaults::measure(&sizes, &dir, results)?;
    spinner.finish_and_clear();
    Ok(())
}
