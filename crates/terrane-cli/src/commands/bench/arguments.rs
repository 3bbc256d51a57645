//! The flags of `terrane bench`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use terrane_lab::bench::BenchOptions;
use terrane_lab::input::workload_spec;
use terrane_policy::MemtableKind;
use terrane_workload::{Distribution, OperationMix, RunOptions, ValueSize};

use crate::engine_flags::EngineFlags;
use crate::events;
use terrane_lab::input::quantity::{
    KEY_BYTES_MAX, bytes_in, count, count_in, number_in, value_size,
};

const EXAMPLES: &str = "\
Workloads:
  fillseq fillrandom fillbatch[:N] fillsync overwrite deleterandom
  readrandom readmissing readseq readreverse seekrandom[:N] multireadrandom[:N]
  readwhilewriting ycsb-load ycsb-a ycsb-b ycsb-c ycsb-d ycsb-e ycsb-f
  mix

A mix names kinds of operation and their proportions, KIND=SHARE[@DISTRIBUTION]:
  insert   a new key, placed by @uniform, @normal[:DEVIATION] or @zipf[:THETA]
  update   an existing key, chosen by @D as with --distribution
  get      an existing key
  missing  a key that never existed or was deleted
  scan:N   N entries from a key
  scan:P%  P percent of the loaded keys from a key
  delete   an existing key
Shares need not add up to 100. The mix loads --num keys, then does --reads
operations.

Examples:
  terrane bench
  terrane bench --design leveling --design tiering --design lazy-leveling
  terrane bench --workload ycsb-a,ycsb-f --num 5M --threads 2 --durability sync
  terrane bench --design 'balanced; compression=lz4' --workload fillrandom --json
  terrane bench --workload fillrandom --num 50M --db /data/b --keep
  terrane bench --workload readrandom --num 50M --db /data/b --read-mode cached
  terrane bench --mix 'insert=50,update=10,get=30,missing=5,scan:16=4,scan:1%=1'
  terrane bench --mix 'insert=80@normal,get=20@zipf:0.99' --serial --repeat 3 \\
                --design leveling --design tiering
  terrane bench --memtable btree --memtable vector --num 140K";

/// Run workloads on one or more designs, and compare them
///
/// Without arguments, this runs a million random writes, then random reads, seeks and a scan on an
/// LSM tree in a temporary directory, which it removes afterwards.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    /// Measure a memtable alone, without log and files, such as `vector` or
    /// `hash-skiplist(prefix=6,buckets=100000)`; repeat to compare several. Keys are decimal
    /// numbers; --reads lookups [default: 200] run during the last quarter of --num inserts
    #[arg(long, value_name = "KIND", conflicts_with_all = ["design", "workload", "db", "threads"])]
    pub(super) memtable: Vec<MemtableKind>,

    /// Write the latency of every --memtable operation to a file: kind, operation, number,
    /// nanoseconds at the fastest of three rounds
    #[arg(long, value_name = "FILE", requires = "memtable")]
    pub(super) series: Option<PathBuf>,

    /// Range scans of a --memtable during the last quarter of its inserts
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count_in::<u64>(0..=u64::MAX),
          requires = "memtable")]
    pub(super) ranges: u64,

    /// The share of all keys that a range scan of a --memtable covers
    #[arg(long, value_name = "SHARE", default_value_t = 0.02, value_parser = number_in(0.0..=1.0),
          requires = "memtable")]
    pub(super) selectivity: f64,

    /// Workloads to run, in order, separated by commas [default:
    /// fillrandom,readrandom,readmissing,seekrandom,readseq]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(super) workload: Vec<String>,

    /// The operations of the workload `mix` and their proportions, see below
    /// [default: insert=25,update=20,delete=5,get=30,missing=10,scan:16=10]
    #[arg(long, value_name = "SHARES", conflicts_with = "memtable")]
    pub(super) mix: Option<OperationMix>,

    /// Run the workload of a TOML file, see `terrane workload`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["memtable", "mix", "workload", "num",
          "reads", "key_size", "value_size", "compressibility", "distribution", "threads", "seed"])]
    pub(super) spec: Option<PathBuf>,

    /// Run the kinds of a mix one after the other instead of interleaved
    #[arg(long, conflicts_with = "memtable")]
    pub(super) serial: bool,

    /// Repeat N times, alternating designs, and compare medians
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "memtable",
          value_parser = count_in::<u32>(1..=100))]
    pub(super) repeat: u32,

    /// Keys to load
    #[arg(long, value_name = "N", default_value = "1M", value_parser = count_in::<u64>(1..=u64::MAX))]
    pub(super) num: u64,

    /// Operations of reading workloads and mixes [default: the value of --num; a tenth of it for
    /// seekrandom]
    #[arg(long, value_name = "N", value_parser = count_in::<u64>(1..=u64::MAX), visible_alias = "operations")]
    pub(super) reads: Option<u64>,

    /// Bytes of a key
    #[arg(long, value_name = "B", default_value_t = 16, value_parser = bytes_in::<usize>(1..=KEY_BYTES_MAX))]
    pub(super) key_size: usize,

    /// Bytes of a value, or a range such as 100..400
    #[arg(long, value_name = "B", default_value = "100", value_parser = value_size)]
    pub(super) value_size: ValueSize,

    /// The compressible share of a value, 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, value_parser = number_in(0.0..=1.0))]
    pub(super) compressibility: f64,

    /// Client threads; they share the operations
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count_in::<u32>(1..=1024))]
    pub(super) threads: u32,

    /// Entries per batch of fillbatch
    #[arg(long, value_name = "N", value_parser = count_in::<u32>(1..=1_000_000))]
    pub(super) batch: Option<u32>,

    /// A design: a name such as `tiering`, or with settings `tiering T=4; filter=5`; repeat to
    /// compare several. Its sizes are scaled down to the data unless it gives buffer, table or base
    /// [default: balanced]
    #[arg(long, value_name = "SPEC")]
    pub(super) design: Vec<String>,

    /// The distribution of keys: uniform, normal:DEVIATION, zipf:THETA, ycsb-zipf:THETA,
    /// latest:THETA or sequential [default: the workload's own]
    #[arg(long, value_name = "D")]
    pub(super) distribution: Option<Distribution>,

    /// The seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count)]
    pub(super) seed: u64,

    /// The directory of the databases [default: a temporary one]; removed afterwards unless --keep
    /// is given or it already held a database
    #[arg(long, value_name = "DIR")]
    pub(super) db: Option<PathBuf>,

    /// Keep the databases of --db
    #[arg(long, requires = "db")]
    pub(super) keep: bool,

    /// Write report.html to a directory, with an SVG for each metric, the lines of --json, CSV and
    /// environment.json
    #[arg(long, value_name = "DIR", conflicts_with = "memtable")]
    pub(super) out: Option<PathBuf>,

    /// Print a JSON object per line
    #[arg(long)]
    pub(super) json: bool,

    /// Report every flush and compaction, with its reason, on standard error
    #[arg(long)]
    pub(super) events: bool,

    #[command(flatten)]
    pub(super) engine: EngineFlags,
}

impl BenchArgs {
    /// Returns the options of the benchmark.
    pub(super) fn options(&self) -> Result<BenchOptions> {
        let engine = self.engine.options()?;
        let engine = if self.events { engine.on_event(events::report) } else { engine };
        let run = match &self.spec {
            Some(path) => workload_spec::read(path)?,
            None => self.run_options(),
        };
        Ok(BenchOptions {
            workloads: self.workload.clone(),
            mix: self.mix.clone().or(self.spec.as_ref().map(|_| run.mix.clone())),
            is_serial: self.serial,
            batch_entries: self.batch,
            designs: self.design.clone(),
            repeat: self.repeat,
            run,
            engine,
        })
    }

    fn run_options(&self) -> RunOptions {
        RunOptions {
            num: self.num,
            reads: self.reads,
            key_size_bytes: self.key_size,
            value_size: self.value_size,
            compressibility: self.compressibility,
            distribution: self.distribution,
            threads: self.threads,
            seed: self.seed,
            ..RunOptions::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use terrane_lab::bench::BenchPlan;
    use terrane_workload::{MixOrder, Workload};

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        bench: BenchArgs,
    }

    fn plan(arguments: &[&str]) -> Result<BenchPlan> {
        let arguments = std::iter::once(&"bench").chain(arguments);
        BenchPlan::new(Command::try_parse_from(arguments)?.bench.options()?)
    }

    #[test]
    fn the_default_is_a_million_writes_and_reads_on_a_tree_of_several_levels() {
        let plan = plan(&[]).unwrap();
        assert_eq!(plan.run.num, 1_000_000);
        assert_eq!(plan.workloads[0], Workload::FillRandom);
        assert_eq!(plan.workloads[1], Workload::ReadRandom);
        assert_eq!(plan.designs[0].design.buffer_bytes, 4 << 20);
        assert_eq!((plan.designs[0].name.as_str(), plan.designs[0].divided_by), ("balanced", 16));
        assert_eq!(plan.run_of(plan.workloads[3]).reads, Some(100_000));
    }

    #[test]
    fn large_data_is_run_on_the_default_design_itself() {
        let plan = plan(&["--num", "50M"]).unwrap();
        assert_eq!(plan.designs[0].design, "balanced".parse().unwrap());
        assert_eq!(plan.designs[0].name, "balanced");
    }

    #[test]
    fn named_designs_are_scaled_to_the_data_unless_they_give_sizes() {
        let specs = ["leveling", "tiering; buffer=64MiB", "lazy-leveling T=4"];
        let designs = specs.iter().flat_map(|spec| ["--design", *spec]).collect::<Vec<_>>();
        let plan = plan(&designs).unwrap();
        let buffers: Vec<u64> =
            plan.designs.iter().map(|one| one.design.buffer_bytes >> 20).collect();
        assert_eq!(buffers, [4, 64, 4]);
        let tables: Vec<u64> =
            plan.designs.iter().map(|one| one.design.table_bytes >> 20).collect();
        assert_eq!(tables, [2, 32, 2]);
        assert_eq!(plan.designs[0].name, "leveling");
    }

    #[test]
    fn batches_have_the_size_of_the_flag_unless_the_name_has_one() {
        let plan = plan(&["--workload", "fillbatch,fillbatch:7", "--batch", "50"]).unwrap();
        let sizes = [Workload::FillBatch { entries: 50 }, Workload::FillBatch { entries: 7 }];
        assert_eq!(plan.workloads, sizes);
    }

    #[test]
    fn a_mix_is_what_is_run_unless_more_is_asked_for() {
        let plan =
            plan(&["--mix", "insert=1@zipf,get=1", "--serial", "--operations", "5"]).unwrap();
        assert_eq!(plan.workloads, [Workload::Mix]);
        assert_eq!((plan.run.mix.order, plan.run.reads), (MixOrder::Serial, Some(5)));
        assert_eq!(plan.run.key_order, plan.run.mix.placement());
        let plan = self::plan(&["--workload", "fillseq,mix", "--mix", "get=1"]).unwrap();
        assert_eq!(plan.workloads, [Workload::FillSeq, Workload::Mix]);
    }

    #[test]
    fn invalid_benchmarks_are_rejected() {
        for arguments in [
            &["--workload", "fillrandomly"][..],
            &["--workload", "settle"],
            &["--design", "round"],
            &["--num", "0"],
            &["--num", "many"],
            &["--threads", "0"],
            &["--key-size", "1"],
            &["--mix", "get"],
            &["--mix", "insert=1@latest"],
            &["--workload", "readrandom", "--mix", "get=1"],
            &["--serial"],
            &["--repeat", "0"],
            &["--keep"],
            &["--read-mode", "psychic"],
        ] {
            assert!(plan(arguments).is_err(), "{arguments:?}");
        }
    }
}
