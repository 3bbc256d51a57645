//! The flags of `terrane simulate`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};
use terrane::Design;
use terrane_sim::{Arrival, InitialTree, MachineModel, ReadLoad, Skew, WriteLoad, WriteMix};
use terrane_workload::OperationMix;

use super::calibrate::CalibrateArgs;
use super::map::MapArgs;
use super::validate::ValidateArgs;
use terrane_lab::error::usage;
use terrane_lab::input::quantity::{
    RECORD_BYTES_MAX, RECORDS_MAX, bytes_in, count, count_in, number_in, rate, some_time,
};
use terrane_lab::input::spec;
use terrane_lab::simulation::constants;
use terrane_lab::simulation::mix::MixLoad;

const EXAMPLES: &str = "\
Examples:
  terrane simulate --design leveling --records 1e11 --budget 100MB/s --hours 2
  terrane simulate --two-phase --design 'tiering T=3; scheduler=greedy'
  terrane simulate --arrival 'burst(2000,1500s,8000,300s)' --budget 100MB/s
  terrane simulate --tree 'orders: leveling @ 80%' --tree 'log: tiering T=3 @ 20%' --budget 100MB/s
  terrane simulate --mix insert=1 --ttl 1h --start empty --design 'tiering T=4' --design balanced
  terrane simulate calibrate --output here.toml
  terrane simulate --constants here.toml
  terrane simulate validate --output docs/simulator.md";

/// Run a design in virtual time: throughput, amplification, stalls and latencies at any size
///
/// The engine's policy makes all decisions; the costs of flushes, merges and writes come from
/// constants that `terrane simulate calibrate` measures.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct SimulateArgs {
    #[command(subcommand)]
    pub(super) command: Option<SimulateCommand>,

    /// A design: a name such as `tiering`, or with settings; repeat to compare several
    /// [default: balanced]
    #[arg(long, value_name = "SPEC")]
    pub(super) design: Vec<String>,

    /// One of several trees that share writers, merges and the budget: `NAME: DESIGN @ SHARE`, where
    /// SHARE of the writes is a number or a percentage; repeat for each tree
    #[arg(long, value_name = "TREE", conflicts_with_all = ["design", "two_phase"])]
    pub(super) tree: Vec<String>,

    /// The number of records, of each tree if there are several, such as 100M or 1e11
    #[arg(long, value_name = "N", default_value = "100M", value_parser = count_in::<u64>(1..=RECORDS_MAX))]
    pub(super) records: u64,

    /// Bytes of a key and its value
    #[arg(long, value_name = "BYTES", default_value = "1KiB", value_parser = bytes_in::<u64>(1..=RECORD_BYTES_MAX))]
    pub(super) record_size: u64,

    /// Bytes of a key
    #[arg(long, value_name = "BYTES", default_value = "16", value_parser = bytes_in::<u64>(1..=RECORD_BYTES_MAX))]
    pub(super) key_size: u64,

    /// The distribution of updated keys: uniform, or zipf(0.99)
    #[arg(long, value_name = "HOW", default_value = "uniform")]
    pub(super) keys: Skew,

    /// The bytes per second that flushes and merges may write together, such as 100MB/s
    /// [default: the bandwidth of the device]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(super) budget: Option<u64>,

    /// The duration in hours of virtual time [default: 2]
    #[arg(long, value_name = "HOURS", value_parser = number_in(0.001..=1e5))]
    pub(super) hours: Option<f64>,

    /// The arrival of writes: `closed` for a closed loop, `constant(WRITES)` per second, or
    /// `burst(WRITES,SECONDS,WRITES,SECONDS)`
    #[arg(long, value_name = "HOW", default_value = "closed", conflicts_with = "two_phase")]
    pub(super) arrival: Arrival,

    /// Concurrent writers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count_in::<u32>(1..=4096))]
    pub(super) writers: u32,

    /// The operations, such as `update=40,insert=10,delete=10,get=40`; reads come in proportion to
    /// the writes and share the device with merges [default: updates]
    #[arg(long, value_name = "MIX")]
    pub(super) mix: Option<OperationMix>,

    /// Updates also write deleted records again; by default, they choose existing ones
    #[arg(long, requires = "mix")]
    pub(super) deleted_return: bool,

    /// The share of writes that deletes a range of keys
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = number_in(0.0..=1.0))]
    pub(super) range_deletes: f64,

    /// The share of the key space that a range delete covers
    #[arg(long, value_name = "SHARE", default_value_t = 0.0001, value_parser = number_in(0.0..=1.0))]
    pub(super) range_width: f64,

    /// Values of updates and inserts expire this long after their writes, such as 1h; records of the
    /// initial tree never expire (see `--start empty`)
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub(super) ttl: Option<Duration>,

    /// The share of updates and inserts whose values expire
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, requires = "ttl", value_parser = number_in(0.0..=1.0))]
    pub(super) ttl_share: f64,

    /// The share of blocks that reads take from the device, not from memory
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, requires = "mix", value_parser = number_in(0.0..=1.0))]
    pub(super) cold: f64,

    /// Find the maximum rate, with the fair scheduler and exact intake, then run the design at a
    /// share of it
    #[arg(long)]
    pub(super) two_phase: bool,

    /// The share of the maximum rate
    #[arg(long, value_name = "PART", default_value_t = 0.95, requires = "two_phase", value_parser = number_in(0.001..=2.0))]
    pub(super) utilization: f64,

    /// The warm-up excluded from the maximum rate, in minutes [default: a sixth]
    #[arg(long, value_name = "MINUTES", value_parser = number_in(0.001..=1e5))]
    pub(super) warm_up: Option<f64>,

    /// The initial tree: `empty`, `loaded` with all records once and merged, `settled` as after a
    /// long time, or `auto`: loaded, or settled if loading would take long
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub(super) start: InitialTree,

    /// The seed of the fill of a settled tree's levels
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count)]
    pub(super) seed: u64,

    /// A file of constants that `terrane simulate calibrate` wrote
    #[arg(long, value_name = "FILE")]
    pub(super) constants: Option<PathBuf>,

    /// Concurrent merges; a scheduler starts more if a new merge has priority
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = count_in::<u32>(1..=64))]
    pub(super) threads: u32,

    /// The most tables to simulate; a larger tree is simulated with larger tables if its design
    /// moves single tables
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = count_in::<usize>(1..=u64::MAX))]
    pub(super) tables_max: usize,

    /// Write report.html to a directory, with plots of rates, runs and latencies, the lines of --json,
    /// CSV and environment.json
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,

    /// Print a JSON object per design
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Clone, Subcommand)]
pub(super) enum SimulateCommand {
    Calibrate(CalibrateArgs),
    Validate(ValidateArgs),
    Map(MapArgs),
}

impl SimulateArgs {
    pub(super) fn designs(&self) -> Result<Vec<Design>> {
        let given = self.design.iter().map(String::as_str);
        let default = terrane_policy::catalogue::DEFAULT;
        let texts: Vec<&str> = if self.design.is_empty() { vec![default] } else { given.collect() };
        texts.into_iter().map(spec::parse).collect()
    }

    pub(super) fn workload(&self) -> Result<WriteLoad> {
        let (mut mix, mut reads) = (WriteMix::default(), ReadLoad::default());
        if let Some(given) = &self.mix {
            let load = MixLoad::of(given, self.records, self.cold)?;
            (mix, reads) = (load.writes, load.reads);
            mix.deleted_return = self.deleted_return;
        }
        (mix.range_deletes, mix.range_width) = (self.range_deletes, self.range_width);
        if let Some(ttl) = self.ttl {
            (mix.expiring, mix.ttl_seconds) = (self.ttl_share, ttl.as_secs_f64());
        }
        // Shares are quotients, whose sum may exceed 1 by rounding.
        if mix.inserts + mix.deletes + mix.range_deletes > 1.0 + 1e-9 {
            return Err(usage("inserts, deletes and --range-deletes exceed all writes"));
        }
        Ok(WriteLoad {
            records: self.records as f64,
            key_bytes: self.key_size.min(self.record_size) as f64,
            record_bytes: self.record_size as f64,
            skew: self.keys,
            arrival: self.arrival,
            writers: self.writers,
            mix,
            reads,
        })
    }

    pub(super) fn machine(&self) -> Result<MachineModel> {
        let mut machine = match &self.constants {
            Some(path) => constants::read(path)?,
            None => MachineModel::default(),
        };
        machine.budget = self.budget.map(|budget| budget as f64).or(machine.budget);
        machine.slots = self.threads as usize;
        Ok(machine)
    }
}
