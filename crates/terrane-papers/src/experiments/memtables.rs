//! Memtables: the figures of *Anatomy of the LSM Memory Buffer*, measured on memtables alone and in
//! trees.
//!
//! Most figures are measured in two modes: with memtables that work like the paper's
//! implementation, and with ours.
//!
//! | module | one line |
//! |---|---|
//! | [`sizes`] | sizes, and the memtables of both modes |
//! | [`insertion`] | inserts (Fig. 1b, §3.4) |
//! | [`lookup`] | lookups between inserts (Fig. 1a, 2b, 4) |
//! | [`footprint`] | memory of many entries (Fig. 3) |
//! | [`range`] | ranges, and mixes of operations (Fig. 2a, 5) |
//! | [`flushing`] | flushes and compactions (Fig. 6) |
//! | [`flush_choices`] | flushes to a new run of level 0, or merged into it (§3.5) |
//! | [`logged`] | with the log and without it (§3.1) |
//! | [`nine`] | the nine buffers of the authors' later program, with those of [`others`] |
//! | [`sweeps`] | threads, sizes, common prefixes, selectivities |
//! | [`phases`] | `memtable=auto` on a workload that changes |

mod flush_choices;
mod flushing;
mod footprint;
mod insertion;
mod logged;
mod lookup;
mod nine;
mod others;
mod phases;
mod range;
mod sizes;
mod sweeps;

use anyhow::Result;

use crate::experiment::{Experiment, ExperimentCost, ExperimentOptions};
use crate::results::{Metric, Results};
use sizes::BufferSizes;
pub(super) use sizes::{BufferMode, NamedMemtable, hash_linked_list};
use terrane_lab::host::scratch::Scratch;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "memtables",
    paper: "Anatomy of the LSM Memory Buffer (DBTest 2024)",
    about: "memtables: inserts, lookups, ranges, memory, flushes",
    cost: ExperimentCost { minutes: 7, disk_mib: 400 },
    default_scale: 1.0,
    scale_of: "entries of the paper's memtables and trees",
    figures: &["Fig. 1 to 6"],
    metrics: &[METRICS],
    timed: &[
        "insert_nanos",
        "longest_insert",
        "mixed_nanos",
        "lookup_nanos",
        "vector_growth",
        "grid_nanos",
        "bucket_nanos",
        "range_nanos",
        "mix_nanos",
        "nine",
    ],
    claims: include_str!("../../claims/memtables.toml"),
    run,
};

const METRICS: &[Metric] = &[
    Metric { name: "scale", about: "sizes as a share of the paper's" },
    Metric { name: "rounds", about: "rounds, of which operations count at their best" },
    Metric { name: "seed", about: "the seed of all random choices" },
    Metric { name: "entries", about: "entries of a memtable" },
    Metric { name: "footprint_entries", about: "entries of which the memory is measured" },
    Metric { name: "flushed_entries", about: "entries that are written to a tree" },
    Metric { name: "buckets", about: "the paper's number of buckets, scaled" },
    Metric { name: "insert_nanos", about: "time of an insert, by mode and memtable" },
    Metric {
        name: "longest_insert",
        about: "the longest insert of a round, nanoseconds, by mode and memtable",
    },
    Metric {
        name: "mixed_nanos",
        about: "time of an operation on a preallocated vector, by mode and percent of lookups",
    },
    Metric {
        name: "lookup_nanos",
        about: "mean time of a lookup between inserts, by mode and memtable",
    },
    Metric {
        name: "vector_growth",
        about: "lookups in a vector: mean time of the last fifth over the first, by mode",
    },
    Metric {
        name: "grid_nanos",
        about: "median time of a lookup in a hash skip-list, by mode, prefix and buckets",
    },
    Metric {
        name: "bucket_nanos",
        about: "mean time of a lookup with X=10, by mode, memtable and buckets",
    },
    Metric { name: "footprint", about: "bytes for an entry, by mode and memtable" },
    Metric {
        name: "footprint_by_prefix",
        about: "bytes for an entry, by mode, memtable and prefix",
    },
    Metric {
        name: "footprint_by_buckets",
        about: "bytes for an entry, by mode, memtable and buckets",
    },
    Metric {
        name: "range_nanos",
        about: "mean time of a range, by mode, selectivity and memtable",
    },
    Metric {
        name: "mix_nanos",
        about: "time of all inserts and queries, by mode, mix and memtable",
    },
    Metric { name: "tree_flushes", about: "flushes of a tree, by mode and memtable" },
    Metric { name: "tree_compactions", about: "compactions of a tree, by mode and memtable" },
    Metric {
        name: "tree_written",
        about: "bytes written by flushes and compactions, by mode and memtable",
    },
    Metric { name: "level0_tables", about: "mean tables of level 0, by flush mode and memtable" },
    Metric { name: "level0_runs", about: "mean runs of level 0, by flush mode and memtable" },
    Metric { name: "flush_written", about: "write amplification, by flush mode and memtable" },
    Metric {
        name: "flush_read",
        about: "bytes read by flushes and compactions per byte written by the user, by flush mode and memtable",
    },
    Metric {
        name: "flush_blocks",
        about: "blocks searched per lookup, by flush mode and memtable",
    },
    Metric {
        name: "pairs_apart",
        about: "pairs of memtables that differ in every round without the log, by mode",
    },
    Metric {
        name: "pairs_kept",
        about: "of those, pairs that differ in the same direction with it, by mode",
    },
    Metric {
        name: "pairs_closer",
        about: "of those, pairs that do not differ in every round with it, by mode",
    },
    Metric {
        name: "pairs_turned",
        about: "of those, pairs that differ in the other direction with it, by mode",
    },
    Metric {
        name: "turned_by_stalls",
        about: "of those, pairs of which the overtaken memtable stalls less, by mode",
    },
    Metric {
        name: "flushes_differ",
        about: "memtables with another number of flushes with the log, by mode",
    },
    Metric {
        name: "turned_names",
        about: "the pairs that differ in the other direction, as text, by mode",
    },
    Metric {
        name: "nine",
        about: "time of an operation, by operation and buffer of the authors' later program",
    },
    Metric { name: "auto_steps", about: "operations of a phase of memtable=auto" },
    Metric { name: "auto_range", about: "entries of a range of memtable=auto" },
    Metric {
        name: "auto_worst",
        about: "time of a phase over that of the best fixed kind, at most",
    },
    Metric { name: "auto_changes", about: "changes of kind by memtable=auto, as text" },
    Metric {
        name: "auto_kinds",
        about: "kinds chosen by memtable=auto at the end of each phase, as text",
    },
];

fn run(options: &ExperimentOptions, results: &mut Results) -> Result<()> {
    let scratch = Scratch::temporary("terrane-claims-")?;
    let sizes = BufferSizes::new(options.scale, options.rounds, options.seed);
    for (metric, value) in [
        ("scale", sizes.scale),
        ("rounds", sizes.rounds as f64),
        ("seed", sizes.seed as f64),
        ("entries", sizes.load.len() as f64),
        ("footprint_entries", sizes.entries_footprint() as f64),
        ("flushed_entries", sizes.entries_flushed() as f64),
        ("buckets", f64::from(sizes.buckets())),
    ] {
        results.record(metric, &[], value);
    }
    let dir = scratch.path();
    options.part(results, "inserts and lookups", "§3.4 Fig. 1, 2b, 4", |results| {
        let insertion = insertion::measure(&sizes, results);
        lookup::measure(&sizes, &insertion, results);
        Ok(())
    })?;
    options.part(results, "memory", "Fig. 3", |results| {
        footprint::measure(&sizes, results);
        Ok(())
    })?;
    options.part(results, "ranges", "Fig. 2a, 5", |results| {
        range::measure(&sizes, results);
        Ok(())
    })?;
    options
        .part(results, "flushes", "Fig. 6", |results| flushing::measure(&sizes, dir, results))?;
    options.part(results, "flushes that merge", "§3.5", |results| {
        flush_choices::measure(&sizes, dir, results)
    })?;
    options.part(results, "log", "§3.1", |results| logged::measure(&sizes, dir, results))?;
    options.part(results, "nine buffers", "", |results| {
        nine::measure(&sizes, results);
        Ok(())
    })?;
    options.part(results, "sweeps", "", |results| {
        sweeps::measure(&sizes, &options.threads, results);
        Ok(())
    })?;
    options.part(results, "auto", "", |results| phases::measure(&sizes, results))
}
