//! FloDB: the figures of *FloDB: Unlocking Memory in Persistent Key-Value Stores* (`EuroSys` 2017).
//!
//! Every figure is measured with the paper's two levels, whose lower level is a skip-list, and with
//! ours, whose lower level is the B-link tree. The skip-list alone, which keeps several versions as
//! in LevelDB and `RocksDB`, represents other systems: it runs on the same engine, so that only the
//! memtable differs.
//!
//! | module | one line |
//! |---|---|
//! | [`sizes`] | sizes, and the memtables |
//! | [`structures`] | latency by size, alone and with readers; hash table against skip-list (Fig. 3 to 5, 7) |
//! | [`draining`] | multi-insert (Fig. 8) |
//! | [`workloads`] | by threads, on a tree (Fig. 9 to 12) |
//! | [`scans`] | scans among writes, and their restarts (Fig. 13, 14, §5.2) |
//! | [`memory`] | by the size of memory, and the ablation (Fig. 15 to 17) |
//! | [`alone`], [`database`] | threads on a memtable alone, and on a database |

mod alone;
mod database;
mod draining;
mod memory;
mod scans;
mod sizes;
mod structures;
mod workloads;

use anyhow::Result;
use sizes::{DEFAULT_SCALE, FloDbSizes, MEMORY_KEYS, VALUE_BYTES, cores, mib};
use terrane_lab::host::scratch::Scratch;

use crate::experiment::{Experiment, ExperimentCost, ExperimentOptions};
use crate::results::{Metric, Results};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "flodb",
    paper: "FloDB: Unlocking Memory in Persistent Key-Value Stores (EuroSys 2017)",
    about: "a memtable of two levels: hash table and sorted list",
    cost: ExperimentCost { minutes: 25, disk_mib: 300 },
    default_scale: DEFAULT_SCALE,
    scale_of: "the paper's smallest memory, 128 MiB; its data, 300 GB, are a share of 1/1100 of that share",
    figures: &["Fig. 3 to 5", "Fig. 7 to 17"],
    metrics: &[METRICS],
    timed: &[
        "structure_insert",
        "structure_walk",
        "structure_mops",
        "structure_most",
        "reader_write_p50",
        "reader_write_p99",
        "reader_get_p50",
        "reader_get_p99",
        "drain_nanos",
        "tree_rate",
        "single_rate",
        "tree_persisted",
        "tree_write_p50",
        "tree_write_p99",
        "tree_get_p50",
        "tree_get_p99",
        "scan_keys",
        "scan_operations",
        "burst_rate",
        "burst_single",
        "skew_rate",
        "bound_rate",
        "tree_next",
        "single_next",
        "scan_next",
        "burst_next",
        "burst_single_next",
        "skew_next",
        "bound_next",
        "alone_mops",
        "single_mops",
    ],
    claims: include_str!("../../claims/flodb.toml"),
    run,
};

const METRICS: &[Metric] = &[
    Metric { name: "scale", about: "sizes as a share of the paper's" },
    Metric { name: "rounds", about: "rounds, of which the best one counts" },
    Metric { name: "seed", about: "the seed of all random choices" },
    Metric { name: "threads_list", about: "numbers of threads, as text" },
    Metric { name: "memory_list", about: "sizes of memory in MiB, as text" },
    Metric { name: "keys", about: "keys of a tree" },
    Metric { name: "value_bytes", about: "bytes of a value" },
    Metric { name: "threads", about: "the greatest number of threads; one more drains" },
    Metric { name: "cores", about: "processors" },
    Metric { name: "memory_mib", about: "sizes of memory in MiB, by size of memory" },
    Metric { name: "structure_entries", about: "entries of a structure, by the paper's number" },
    Metric {
        name: "structure_insert",
        about: "median time of an insert, by mode, size of memory and structure",
    },
    Metric {
        name: "structure_walk",
        about: "time of an entry of a walk, by mode, size of memory and structure",
    },
    Metric {
        name: "structure_mops",
        about: "million operations a second, by the paper's number of entries, threads and structure",
    },
    Metric {
        name: "structure_most",
        about: "the same with the most threads, by the paper's number of entries, and structure",
    },
    Metric {
        name: "reader_write_p50",
        about: "median latency of the writer next to eight readers of a database in microseconds, by memtable and size of memory",
    },
    Metric { name: "reader_write_p99", about: "its 99th percentile, likewise" },
    Metric { name: "reader_get_p50", about: "the median latency of the readers, likewise" },
    Metric { name: "reader_get_p99", about: "its 99th percentile, likewise" },
    Metric {
        name: "reader_stalled",
        about: "percent of its time that the writer stalls, likewise",
    },
    Metric {
        name: "drain_nanos",
        about: "time to drain a key in batches of five, by mode, neighbourhood and insert",
    },
    Metric {
        name: "tree_rate",
        about: "thousand operations a second with the most threads, by memtable and workload",
    },
    Metric {
        name: "tree_background",
        about: "percent of a processor of flushes and merges, by memtable and workload",
    },
    Metric {
        name: "tree_in_membuffer",
        about: "percent of writes that complete in the Membuffer, by memtable and workload",
    },
    Metric { name: "single_rate", about: "thousand operations a second with one thread, likewise" },
    Metric {
        name: "tree_stalled",
        about: "percent of the time of all threads in stalls, by memtable and workload",
    },
    Metric {
        name: "tree_persisted",
        about: "thousand entries a second that flushes write while they run, by memtable and workload",
    },
    Metric { name: "tree_write_p50", about: "median latency of writes in microseconds, likewise" },
    Metric { name: "tree_write_p99", about: "its 99th percentile, likewise" },
    Metric { name: "tree_get_p50", about: "median latency of lookups in microseconds, likewise" },
    Metric { name: "tree_get_p99", about: "its 99th percentile, likewise" },
    Metric {
        name: "scan_keys",
        about: "thousand keys a second, by memtable, scan and percent of scans",
    },
    Metric { name: "scan_operations", about: "thousand operations a second, likewise" },
    Metric { name: "scan_restarts", about: "restarts of 1000 scans, likewise" },
    Metric { name: "scan_fallbacks", about: "fallbacks of 1000 scans, likewise" },
    Metric {
        name: "scan_shared",
        about: "scans of 1000 that share the snapshot of another, likewise",
    },
    Metric {
        name: "scan_in_membuffer",
        about: "percent of writes that complete in the Membuffer, likewise",
    },
    Metric {
        name: "fallbacks",
        about: "fallbacks of 1000 of the paper's scans, by width, size of memory and threads",
    },
    Metric { name: "fallback_restarts", about: "their restarts, likewise" },
    Metric {
        name: "burst_rate",
        about: "thousand operations a second of a burst, by memtable and size of memory",
    },
    Metric { name: "burst_single", about: "the same with one writer, likewise" },
    Metric {
        name: "burst_background",
        about: "percent of a processor of flushes and merges, likewise",
    },
    Metric { name: "burst_draining", about: "percent of a processor of draining, likewise" },
    Metric {
        name: "burst_stalled",
        about: "percent of the time of all threads in stalls, likewise",
    },
    Metric {
        name: "burst_in_membuffer",
        about: "percent of writes that complete in the Membuffer, likewise",
    },
    Metric {
        name: "skew_rate",
        about: "thousand operations a second under skew, by memtable and size of memory",
    },
    Metric {
        name: "skew_background",
        about: "percent of a processor of flushes and merges, likewise",
    },
    Metric { name: "skew_draining", about: "percent of a processor of draining, likewise" },
    Metric {
        name: "skew_stalled",
        about: "percent of the time of all threads in stalls, likewise",
    },
    Metric {
        name: "skew_in_membuffer",
        about: "percent of writes that complete in the Membuffer, likewise",
    },
    Metric {
        name: "bound_rate",
        about: "thousand operations a second under skew if flushes and merges write 2 MB/s, likewise",
    },
    Metric {
        name: "bound_background",
        about: "percent of a processor of flushes and merges, likewise",
    },
    Metric { name: "bound_draining", about: "percent of a processor of draining, likewise" },
    Metric {
        name: "bound_stalled",
        about: "percent of the time of all threads in stalls, likewise",
    },
    Metric {
        name: "bound_in_membuffer",
        about: "percent of writes that complete in the Membuffer, likewise",
    },
    Metric {
        name: "tree_next",
        about: "tree_rate of the next best system of a mode: the skip-list for published, the better of skip-list and B-link tree for ours; by mode and workload",
    },
    Metric { name: "single_next", about: "single_rate of the next best system, likewise" },
    Metric {
        name: "scan_next",
        about: "scan_keys of the next best system, by mode and percent of scans",
    },
    Metric {
        name: "burst_next",
        about: "burst_rate of the next best system, by mode and size of memory",
    },
    Metric { name: "burst_single_next", about: "burst_single of the next best system, likewise" },
    Metric { name: "skew_next", about: "skew_rate of the next best system, likewise" },
    Metric { name: "bound_next", about: "bound_rate of the next best system, likewise" },
    Metric {
        name: "alone_mops",
        about: "million writes a second without a database, by mode, ablation and size of memory",
    },
    Metric {
        name: "alone_in_membuffer",
        about: "share of them that complete in the Membuffer, likewise",
    },
    Metric { name: "single_mops", about: "the million writes a second of one writer, likewise" },
    Metric {
        name: "single_in_membuffer",
        about: "the share of them that completes in the Membuffer, likewise",
    },
];

fn run(options: &ExperimentOptions, results: &mut Results) -> Result<()> {
    let scratch = Scratch::temporary("terrane-claims-")?;
    let ExperimentOptions { scale, rounds, seed, ref threads, .. } = *options;
    let sizes = FloDbSizes::new(scale, rounds, seed, threads.clone());
    let joined = |numbers: Vec<String>| numbers.join(", ");
    results.record_text("threads_list", joined(threads.iter().map(u32::to_string).collect()));
    let memory = sizes.memory_bytes().into_iter().map(mib).collect();
    results.record_text("memory_list", joined(memory));
    for (key, bytes) in MEMORY_KEYS.iter().zip(sizes.memory_bytes()) {
        results.record("memory_mib", &[key], (bytes >> 20) as f64);
    }
    for (metric, value) in [
        ("scale", scale),
        ("rounds", rounds as f64),
        ("seed", seed as f64),
        ("keys", sizes.keys() as f64),
        ("value_bytes", VALUE_BYTES as f64),
        ("threads", f64::from(sizes.threads_max())),
        ("cores", cores() as f64),
    ] {
        results.record(metric, &[], value);
    }
    let dir = scratch.path();
    options.part(results, "structures", "Fig. 3 to 5, 7", |results| {
        structures::measure(&sizes, results);
        Ok(())
    })?;
    options.part(results, "readers and a writer", "Fig. 3, 4", |results| {
        structures::read_while_writing(&sizes, dir, results)
    })?;
    options.part(results, "draining", "Fig. 8", |results| {
        draining::measure(&sizes, results);
        Ok(())
    })?;
    options.part(results, "operations", "Fig. 9 to 12", |results| {
        workloads::measure(&sizes, dir, results)
    })?;
    options
        .part(results, "scans", "Fig. 13, 14", |results| scans::measure(&sizes, dir, results))?;
    options
        .part(results, "fallbacks", "§5.2", |results| scans::fallbacks(&sizes, dir, results))?;
    options.part(results, "bursts", "Fig. 15", |results| memory::burst(&sizes, dir, results))?;
    options.part(results, "skew", "Fig. 16", |results| memory::skew(&sizes, dir, results))?;
    options.part(results, "ablation", "Fig. 17", |results| {
        memory::ablation(&sizes, results);
        Ok(())
    })
}
