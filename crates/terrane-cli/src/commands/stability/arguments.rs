//! The flags of `terrane stability`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use terrane::IoBudget;
use terrane_lab::stability::StabilityOptions;
use terrane_workload::stability::{Arrival, Query, TwoPhaseOptions};
use terrane_workload::{Distribution, Indexes, OperationMix, RunOptions, ValueSize};

use crate::engine_flags::EngineFlags;
use terrane_lab::input::quantity::{
    KEY_BYTES_MAX, bytes_in, count, count_in, number_in, phase_time, some_time, time, value_size,
};

const EXAMPLES: &str = "\
Examples:
  terrane stability
  terrane stability --design tiering --design leveling --testing 2m --running 2m
  terrane stability --utilization 0.8 --calibrate --out report
  terrane stability --budget 100MB/s --design 'leveling; limit=global(2x)'
  terrane stability --arrival 'burst(50%,25,200%,5)' --readers 1 --read short
  terrane stability --index 'eager(2)' --readers 1 --read index
  terrane stability --mix 'update=60,get=30,scan:100=5,insert=5' --writers 4
  terrane stability --records 10M --distribution zipf:0.99 --json

docs/stability.md explains the report.";

/// Find the rate of writes that a design sustains, and their latency at that rate
///
/// In the testing phase, clients write as fast as the engine lets them, which gives the maximum.
/// In the running phase, writes arrive at 95 % of the maximum by a schedule that does not wait for
/// the engine, and latency counts from arrival. If latencies are long or the engine stalls, the
/// maximum is not sustainable, and the report says why.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StabilityArgs {
    /// A design: a name such as `tiering`, or with settings `tiering T=4; filter=5`; repeat to
    /// compare several [default: balanced]
    #[arg(long, value_name = "SPEC")]
    pub(super) design: Vec<String>,

    /// The bytes per second that flushes and merges may write together, such as `100MB/s`; loading
    /// is not limited
    #[arg(long, value_name = "RATE", value_parser = budget, conflicts_with = "io_budget")]
    pub(super) budget: Option<IoBudget>,

    /// The share of the maximum at which writes arrive in the running phase
    #[arg(long, value_name = "SHARE", default_value_t = 0.95, value_parser = number_in(0.01..=2.0))]
    pub(super) utilization: f64,

    /// The duration of the testing phase: seconds, or with a unit such as 20m
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = phase_time)]
    pub(super) testing: Duration,

    /// The duration of the running phase
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = phase_time)]
    pub(super) running: Duration,

    /// The warm-up excluded from the testing phase, because a freshly loaded tree has few runs
    /// [default: a sixth of the phase]
    #[arg(long, value_name = "SECONDS", value_parser = time)]
    pub(super) warm_up: Option<Duration>,

    /// The arrival of writes in the running phase: `constant`, or
    /// `burst(LOW,SECONDS,HIGH,SECONDS)` with rates in writes per second or percent of the maximum
    #[arg(long, value_name = "HOW", default_value = "constant")]
    pub(super) arrival: Arrival,

    /// Operations that arrive instead of updates, and their proportions, as for `bench --mix`; rates
    /// and latencies are those of all operations, and the report has the latencies of each
    #[arg(long, value_name = "SHARES", conflicts_with = "index")]
    pub(super) mix: Option<OperationMix>,

    /// Clients that write, in the order of arrival
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count_in::<u32>(1..=1024))]
    pub(super) writers: u32,

    /// Clients that read as fast as they can, in both phases
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count_in::<u32>(0..=1024))]
    pub(super) readers: u32,

    /// The queries of readers: `point`, `short` (100 entries), `long` (a million) or
    /// `scan:ENTRIES`; with --index also `index` (100 records by the first index) or
    /// `index:RECORDS`
    #[arg(long, value_name = "QUERY", default_value = "point")]
    pub(super) read: Query,

    /// Secondary indexes of the records: `eager(K)` or `lazy(K)`. Eager writes read the old record and
    /// remove its entries; lazy writes only add entries, which queries then check
    #[arg(long, value_name = "HOW")]
    pub(super) index: Option<Indexes>,

    /// Records to load first, in random order; all writes update them
    #[arg(long, value_name = "N", default_value = "1M", value_parser = count_in::<u64>(1..=u64::MAX))]
    pub(super) records: u64,

    /// Bytes of a key
    #[arg(long, value_name = "B", default_value_t = 16, value_parser = bytes_in::<usize>(1..=KEY_BYTES_MAX))]
    pub(super) key_size: usize,

    /// Bytes of a value, or a range such as 100..400
    #[arg(long, value_name = "B", default_value = "1000", value_parser = value_size)]
    pub(super) value_size: ValueSize,

    /// The compressible share of a value, 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, value_parser = number_in(0.0..=1.0))]
    pub(super) compressibility: f64,

    /// The distribution of updated records: uniform, zipf:THETA, ycsb-zipf:THETA, latest:THETA or
    /// sequential
    #[arg(long, value_name = "D", default_value = "uniform")]
    pub(super) distribution: Distribution,

    /// The highest p99 write latency of a sustainable rate, such as 10ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = some_time)]
    pub(super) p99: Duration,

    /// Run the same phases on a map in memory, without files and background work, to measure the
    /// latency that the machine causes
    #[arg(long)]
    pub(super) calibrate: bool,

    /// The seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count)]
    pub(super) seed: u64,

    /// An empty directory for the databases, which are removed afterwards [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    pub(super) db: Option<PathBuf>,

    /// Write report.html, its plots and report.jsonl to a directory
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,

    /// Print a JSON object per design
    #[arg(long)]
    pub(super) json: bool,

    #[command(flatten)]
    pub(super) engine: EngineFlags,
}

impl StabilityArgs {
    /// Returns the options of the evaluation.
    pub(super) fn options(&self) -> Result<StabilityOptions> {
        let run = RunOptions {
            num: self.records,
            key_size_bytes: self.key_size,
            value_size: self.value_size,
            compressibility: self.compressibility,
            distribution: Some(self.distribution),
            seed: self.seed,
            ..RunOptions::default()
        };
        let phases = TwoPhaseOptions {
            testing: self.testing,
            running: self.running,
            utilization: self.utilization,
            arrival: self.arrival,
            mix: self.mix.clone(),
            writers: self.writers,
            readers: self.readers,
            query: self.read,
            run,
            ..TwoPhaseOptions::default()
        };
        Ok(StabilityOptions {
            designs: self.design.clone(),
            phases,
            warm_up: self.warm_up,
            indexes: self.index,
            p99: self.p99,
            budget: self.budget,
            calibrates: self.calibrate,
            engine: self.engine.options()?,
            merge_threads: self.merge_threads(),
        })
    }
}

impl StabilityArgs {
    /// Returns the number of threads that merge: the flag, or the engine's default.
    fn merge_threads(&self) -> usize {
        let table = terrane::Options::table();
        let default = table.iter().find(|info| info.name == "compaction_threads");
        let given = self.engine.given("compaction_threads");
        let text = given.or(default.map(|info| info.default.as_ref()));
        text.and_then(|text| text.parse().ok()).unwrap_or(1)
    }
}

/// Parses a budget and checks it as the engine does.
fn budget(text: &str) -> Result<IoBudget, String> {
    let budget = text.parse::<IoBudget>().map_err(|error| error.to_string())?;
    budget.is_valid().then_some(budget).ok_or_else(|| "expected at least 64 KiB/s".to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser;
    use terrane_lab::stability::StabilityPlan;

    use super::*;
    use terrane_policy::Scheduler;
    use terrane_policy::strategy::Intake;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        stability: StabilityArgs,
    }

    fn plan(arguments: &[&str]) -> Result<StabilityPlan> {
        let arguments = std::iter::once(&"stability").chain(arguments);
        StabilityPlan::new(Command::try_parse_from(arguments)?.stability.options()?)
    }

    #[test]
    fn the_default_is_the_paper_s_setting_in_two_minutes() {
        let plan = plan(&[]).unwrap();
        assert_eq!(plan.phases.testing, Duration::from_secs(60));
        assert_eq!(plan.phases.warm_up, Duration::from_secs(10));
        assert_eq!(plan.phases.utilization, 0.95);
        assert_eq!(plan.data_bytes(), 1_016_000_000);
        // Capacities that suit 1 GB.
        let mut balanced = "balanced".parse().unwrap();
        assert_eq!(terrane_lab::input::fit::fit(&mut balanced, plan.data_bytes()), 2);
        assert_eq!(plan.designs[0].design, balanced);
        assert!(!plan.calibrates);
    }

    #[test]
    fn the_maximum_is_measured_with_fair_shares_and_exact_merges() {
        let design = "1-leveling T=4; scheduler=greedy; filter=5".parse().unwrap();
        let testing = terrane_workload::testing_design(&design);
        assert_eq!(testing.scheduler, Scheduler::Fair);
        assert_eq!(testing.strategy.intake, Intake::Exact);
        assert_eq!(testing.filter_bits, design.filter_bits);
    }

    #[test]
    fn times_have_units_or_are_seconds() {
        let plan = plan(&["--testing", "2h", "--running", "0.5", "--p99", "10ms"]).unwrap();
        assert_eq!(plan.phases.warm_up, Duration::from_secs(1200));
        assert_eq!(plan.phases.running, Duration::from_millis(500));
        assert_eq!(plan.criteria.p99, Duration::from_millis(10));
    }

    #[test]
    fn any_mix_can_arrive_in_bursts() {
        let mix = "insert=80@normal,get=15,scan:10=5";
        let plan = plan(&["--mix", mix, "--arrival", "burst(50%,1,120%,1)"]).unwrap();
        assert_eq!(plan.phases.mix.as_ref().unwrap().parts().len(), 3);
        assert_eq!(plan.phases.run.key_order, plan.phases.mix.unwrap().placement());
    }

    #[test]
    fn invalid_evaluations_are_rejected() {
        for arguments in [
            &["--design", "round"][..],
            &["--utilization", "0"],
            &["--utilization", "95"],
            &["--utilization", "NaN"],
            &["--testing", "0"],
            &["--testing", "-1"],
            &["--testing", "inf"],
            &["--testing", "1e300"],
            &["--running", "soon"],
            &["--running", "2d"],
            &["--testing", "10", "--warm-up", "10"],
            &["--arrival", "burst(1,2,3)"],
            &["--read", "backwards"],
            &["--readers", "-1"],
            &["--writers", "0"],
            &["--records", "0"],
            &["--key-size", "1"],
            &["--budget", "fast"],
            &["--budget", "1B"],
            &["--budget", "100MB/s", "--io-budget", "100MB/s"],
            &["--p99", "0s"],
            &["--p99", "soon"],
            &["--compressibility", "2"],
            &["--index", "eager(0)"],
            &["--index", "keen"],
            &["--readers", "1", "--read", "index"],
            &["--index", "lazy(2)", "--calibrate"],
            &["--mix", "update"],
            &["--mix", "get=1"],
            &["--mix", "insert=1;get=1"],
            &["--mix", "update=1", "--index", "lazy(2)"],
            &["--mix", "delete-range:5=1,insert=5", "--writers", "2"],
            &["--mix", "delete=1,insert=1", "--readers", "1"],
        ] {
            assert!(plan(arguments).is_err(), "{arguments:?}");
        }
    }
}
