//! The flags of `terrane bench`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use terrane::policy::MemtableKind;
use terrane_workload::{Distribution, ValueSize};

use super::claims::ClaimsArgs;
use crate::engine_flags::EngineFlags;
use crate::human::parse_count;

const EXAMPLES: &str = "\
Workloads:
  fillseq fillrandom fillbatch[:N] fillsync overwrite deleterandom
  readrandom readmissing readseq readreverse seekrandom[:N] multireadrandom[:N] readwhilewriting
  ycsb-load ycsb-a ycsb-b ycsb-c ycsb-d ycsb-e ycsb-f

Examples:
  terrane bench
  terrane bench --design leveling --design tiering --design lazy-leveling
  terrane bench --workload ycsb-a,ycsb-f --num 5M --threads 2 --durability sync
  terrane bench --design 'balanced; compression=lz4' --workload fillrandom,readrandom --json
  terrane bench --workload fillrandom --num 50M --db /data/b --keep
  terrane bench --workload readrandom --num 50M --db /data/b --read-mode cached
  terrane bench --memtable btree --memtable vector --num 140K
  terrane bench claims memtables";

/// Run workloads on one or more designs, and compare them.
///
/// Without arguments: a million random writes and then random reads, seeks and a scan go through
/// an LSM tree in a temporary directory, which is removed in the end.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(super) command: Option<BenchCommand>,

    /// Measure memtables alone, without log and files: such as `vector` or
    /// `hash-skiplist(prefix=6,buckets=100000)`; give several to compare them. Keys are numbers in
    /// decimal; of --num entries, --reads lookups [default: 200] come during the last quarter
    #[arg(long, value_name = "KIND", conflicts_with_all = ["design", "workload", "db", "threads"])]
    pub(super) memtable: Vec<MemtableKind>,

    /// Write the latency of every operation of --memtable to a file: kind, operation, number,
    /// nanoseconds
    #[arg(long, value_name = "FILE", requires = "memtable")]
    pub(super) series: Option<PathBuf>,

    /// Workloads to run, in order, separated by commas [default:
    /// fillrandom,readrandom,readmissing,seekrandom,readseq]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(super) workload: Vec<String>,

    /// Keys to load
    #[arg(long, value_name = "N", default_value = "1M", value_parser = parse_count)]
    pub(super) num: u64,

    /// Operations of workloads that read [default: as many as --num; seekrandom a tenth]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub(super) reads: Option<u64>,

    /// Bytes of a key
    #[arg(long, value_name = "B", default_value_t = 16)]
    pub(super) key_size: usize,

    /// Bytes of a value, or a range such as 100..400
    #[arg(long, value_name = "B", default_value = "100")]
    pub(super) value_size: ValueSize,

    /// The share of a value that repeats itself, 0 to 1; what a compressor can save
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    pub(super) compressibility: f64,

    /// Client threads, which share the operations
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) threads: u32,

    /// Entries of a batch of fillbatch
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) batch: Option<u32>,

    /// A design: a name such as `tiering`, or with settings `tiering T=4; filter=5`; give several
    /// to compare them [default: balanced, its sizes made to fit the data]
    #[arg(long, value_name = "SPEC")]
    pub(super) design: Vec<String>,

    /// How keys are chosen: uniform, zipf:THETA, ycsb-zipf:THETA, latest:THETA or sequential
    /// [default: what the workload is known for]
    #[arg(long, value_name = "D")]
    pub(super) distribution: Option<Distribution>,

    /// Where all choices come from; the same seed makes the same choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,

    /// The directory of the databases, instead of a temporary one; removed in the end unless
    /// --keep is given or a database was there before
    #[arg(long, value_name = "DIR")]
    pub(super) db: Option<PathBuf>,

    /// Keep the databases of --db
    #[arg(long, requires = "db")]
    pub(super) keep: bool,

    /// Print an object a line for programs
    #[arg(long)]
    pub(super) json: bool,

    /// Tell of every flush and compaction, with its reason, on standard error as it happens
    #[arg(long)]
    pub(super) events: bool,

    #[command(flatten)]
    pub(super) engine: EngineFlags,
}

/// What is measured as a whole.
#[derive(Debug, Clone, Subcommand)]
pub(super) enum BenchCommand {
    /// Measure what a paper says, and tell whether it holds here
    Claims(ClaimsArgs),
}
