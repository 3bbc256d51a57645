//! The flags of `terrane advise`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use terrane::Design;
use terrane_policy::advice::{Limits, Objective};
use terrane_sim::MachineModel;
use terrane_workload::OperationMix;

use terrane_lab::advice::question::{OperationProfile, RecordProfile};
use terrane_lab::advice::{AdviceCase, filter_bits_of};
use terrane_lab::input::quantity::{
    RECORD_BYTES_MAX, RECORDS_MAX, bytes, bytes_in, check_data, count, count_in, number_in, time,
};
use terrane_lab::input::spec;
use terrane_lab::simulation::constants;

use crate::open::DEFAULT_KEYSPACE;

const EXAMPLES: &str = "\
Examples:
  terrane advise --mix 'update=80,get=20' --records 100M --record-size 1KiB
  terrane advise --mix 'insert=50,missing=50' --objective write=2 --max-space 1.3
  terrane advise ./db                  (for the operations that it recorded)
  terrane advise ./db --mix 'update=5,get=90,scan:16=5'
  terrane advise ./db --rate 20K --apply --gain 15 --within 10min
  terrane shell ./db -c '…' -c advise  (for the operations of this shell)

The mix is that of `terrane bench`. A database records its operations across
openings; the counts decay over time.";

/// Rank designs for a workload: gains, costs, and designs to avoid
///
/// The simulator runs every design of the catalogue and designs near the best of them, with the
/// buffer, tables and filter memory of the present design.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AdviseArgs {
    /// A database, whose design is the present one and whose tables give the number of records
    pub(super) db: Option<PathBuf>,

    /// The keyspace
    #[arg(long, value_name = "NAME", default_value = DEFAULT_KEYSPACE)]
    pub(super) keyspace: String,

    /// Operations and their proportions, as for `terrane bench` [default: the operations that the
    /// database recorded; without a database, half writes and half reads of all kinds]
    #[arg(long, value_name = "SHARES")]
    pub(super) mix: Option<OperationMix>,

    /// The number of records [default: from the tables; 10M without a database]
    #[arg(long, value_name = "N", value_parser = count_in::<u64>(1..=RECORDS_MAX))]
    records: Option<u64>,

    /// Bytes of a key and its value [default: from the tables; 128 without a database]
    #[arg(long, value_name = "BYTES", value_parser = bytes_in::<u64>(1..=RECORD_BYTES_MAX))]
    record_size: Option<u64>,

    /// The present design, without a database; its buffer, tables and blocks are kept
    /// [default: balanced]
    #[arg(long, value_name = "SPEC", conflicts_with = "db")]
    design: Option<String>,

    /// Filter bits per key, on average [default: those of the present design]
    #[arg(long, value_name = "BITS", value_parser = number_in(0.0..=64.0))]
    bits: Option<f64>,

    /// Bytes of data cached by the engine or the operating system
    #[arg(long, value_name = "BYTES", default_value = "512MiB", value_parser = bytes)]
    memory: u64,

    /// A file of constants that `terrane simulate calibrate` wrote
    #[arg(long, value_name = "FILE")]
    constants: Option<PathBuf>,

    /// Operations per second, for predicting stalls and the payback of a change [default: the rate
    /// that the database recorded; else four fifths of the writes that the present design sustains]
    #[arg(long, value_name = "N", value_parser = count_in::<u64>(1..=u64::MAX))]
    rate: Option<u64>,

    /// Threads that write concurrently, for the ranking of memtables
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count_in::<u32>(1..=1024))]
    writers: u32,

    /// Weights of the times of writes, lookups and ranges, and penalties for space and stalls
    #[arg(long, value_name = "WEIGHTS", default_value_t)]
    objective: Objective,

    /// The most bytes written to tables per user byte
    #[arg(long, value_name = "N", value_parser = number_in(0.0..=f64::INFINITY))]
    max_written: Option<f64>,

    /// The most data blocks per lookup
    #[arg(long, value_name = "N", value_parser = number_in(0.0..=f64::INFINITY))]
    max_lookup: Option<f64>,

    /// The most sorted runs, on average
    #[arg(long, value_name = "N", value_parser = number_in(0.0..=f64::INFINITY))]
    max_runs: Option<f64>,

    /// The most bytes of tables per byte of live data
    #[arg(long, value_name = "N", value_parser = number_in(0.0..=f64::INFINITY))]
    max_space: Option<f64>,

    /// The largest share of time for which writers may stall, 0 to 1
    #[arg(long, value_name = "PART", value_parser = number_in(0.0..=1.0))]
    max_stalled: Option<f64>,

    /// The longest that 99 % of writes may take
    #[arg(long, value_name = "TIME", value_parser = time)]
    max_p99: Option<Duration>,

    /// The most designs to simulate
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = count_in::<u32>(1..=10_000))]
    effort: u32,

    /// The number of designs to report
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = count_in::<usize>(1..=u64::MAX))]
    pub(super) top: usize,

    /// The seed of the simulator
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count)]
    seed: u64,

    /// Change to the best design if it gains enough and pays for itself in time
    #[arg(long, requires = "db")]
    pub(super) apply: bool,

    /// The required gain of a change, in percent of the time of an operation
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0, value_parser = number_in(0.0..=100.0))]
    pub(super) gain: f64,

    /// The time in which a change must pay for itself
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = time)]
    pub(super) within: Duration,

    /// Print a JSON object
    #[arg(long)]
    pub(super) json: bool,
}

/// The assumed data without a database.
const RECORDS: f64 = 10e6;
const RECORD_BYTES: f64 = 128.0;

impl AdviseArgs {
    pub(super) fn design(&self) -> Result<Design> {
        spec::parse(self.design.as_deref().unwrap_or(terrane_policy::catalogue::DEFAULT))
    }

    pub(super) fn machine(&self) -> Result<MachineModel> {
        self.constants.as_deref().map_or_else(|| Ok(MachineModel::default()), constants::read)
    }

    /// Returns the question. `held` describes the data of the database; `counted` holds its
    /// operations, if the user gave no mix.
    pub(super) fn case(
        &self,
        now: Design,
        held: Option<RecordProfile>,
        counted: Option<OperationProfile>,
    ) -> Result<AdviceCase> {
        let of = |given: Option<u64>, held: Option<f64>, usual: f64| {
            given.map_or(held.unwrap_or(usual), |given| given as f64)
        };
        let records = RecordProfile {
            count: of(self.records, held.map(|held| held.count), RECORDS),
            bytes: of(self.record_size, held.map(|held| held.bytes), RECORD_BYTES),
        };
        check_data(records.count, records.bytes)?;
        let filter_bits = self.bits.unwrap_or_else(|| filter_bits_of(&now));
        let operations = match counted {
            Some(counted) => counted,
            None => OperationProfile::of_mix(&self.mix.clone().unwrap_or_default(), records.count)?,
        };
        let rate = self.rate.map(|rate| rate as f64).or(operations.rate);
        Ok(AdviceCase {
            operations: OperationProfile { rate, ..operations },
            records,
            filter_bits,
            memory: self.memory,
            machine: self.machine()?,
            objective: self.objective,
            limits: Limits {
                written: self.max_written,
                lookup_blocks: self.max_lookup,
                runs: self.max_runs,
                space: self.max_space,
                stalled: self.max_stalled,
                p99_seconds: self.max_p99.map(|time| time.as_secs_f64()),
            },
            writers: self.writers,
            prefixes: None,
            effort: self.effort as usize,
            seed: self.seed,
            now,
        })
    }
}
