//! What is evaluated, from the flags.

use anyhow::Result;
use terrane::policy::catalogue;
use terrane::{Design, IoBudget, Options};
use terrane_workload::stability::{Criteria, Query, TwoPhaseOptions};
use terrane_workload::{Indexes, RunOptions, Workload};

use super::StabilityArgs;
use crate::commands::design::spec;
use crate::exit::usage;

/// The part of the testing phase that is left out unless another is given: 20 minutes of 2 hours
/// in the paper.
const WARM_UP_SHARE: u32 = 6;

/// Everything that is to be evaluated.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// The designs.
    pub(super) candidates: Vec<Candidate>,
    /// How each is evaluated.
    pub(super) phases: TwoPhaseOptions,
    /// The secondary indexes of the records.
    pub(super) indexes: Option<Indexes>,
    /// What each is held to.
    pub(super) criteria: Criteria,
    /// Options of the engine, but for the design.
    pub(super) options: Options,
    /// What flushes and merges may write in a second, in both phases.
    pub(super) budget: Option<IoBudget>,
    /// Whether a map in memory is evaluated too.
    pub(super) calibrates: bool,
}

/// A design to be evaluated.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// What it is called in the results.
    pub(super) name: String,
    /// A name for its directory and its files.
    pub(super) slug: String,
    /// The design of the running phase.
    pub(super) design: Design,
}

impl Plan {
    /// The plan of these flags.
    pub(super) fn of(args: &StabilityArgs) -> Result<Self> {
        let run = RunOptions {
            num: args.records,
            key_size_bytes: args.key_size,
            value_size: args.value_size,
            compressibility: args.compressibility,
            distribution: Some(args.distribution),
            seed: args.seed,
            ..RunOptions::default()
        };
        let phases = TwoPhaseOptions {
            testing: args.testing,
            running: args.running,
            warm_up: args.warm_up.unwrap_or(args.testing / WARM_UP_SHARE),
            utilization: args.utilization,
            arrival: args.arrival,
            writers: args.writers,
            readers: args.readers,
            query: args.read,
            run,
        };
        if args.index.is_none() && matches!(phases.query, Query::Index { .. }) {
            return Err(usage(format!("--read {} needs --index", phases.query)));
        }
        if args.index.is_some() && args.calibrate {
            return Err(usage("--calibrate has no secondary indexes to hold against --index"));
        }
        phases.check().map_err(|error| usage(error.to_string()))?;
        Workload::Overwrite.check(&phases.run).map_err(|error| usage(error.to_string()))?;
        Ok(Self {
            candidates: candidates(&args.design)?,
            phases,
            indexes: args.index,
            criteria: Criteria { p99: args.p99, ..Criteria::default() },
            options: args.engine.options()?,
            budget: args.budget,
            calibrates: args.calibrate,
        })
    }

    /// Bytes of all keys and values that are loaded.
    pub(super) fn data_bytes(&self) -> u64 {
        (self.phases.run.num as f64 * self.bytes_per_write()) as u64
    }

    /// Bytes of a key and a value, on average.
    pub(super) fn bytes_per_write(&self) -> f64 {
        let run = &self.phases.run;
        let value_bytes = usize::midpoint(run.value_size.min_bytes(), run.value_size.max_bytes());
        (run.key_size_bytes + value_bytes) as f64
    }
}

fn candidates(specs: &[String]) -> Result<Vec<Candidate>> {
    let default = [catalogue::DEFAULT.to_owned()];
    let specs = if specs.is_empty() { &default[..] } else { specs };
    let parse = |(index, spec): (usize, &String)| {
        let design = spec::parse(spec)?;
        let is_of_name = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
        let word: String = spec.trim().chars().take_while(is_of_name).collect();
        Ok(Candidate {
            name: spec.trim().to_owned(),
            slug: format!("{}-{word}", index + 1),
            design,
        })
    };
    specs.iter().enumerate().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser;

    use super::*;
    use terrane::policy::Scheduler;
    use terrane::policy::strategy::Intake;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        stability: StabilityArgs,
    }

    fn plan(arguments: &[&str]) -> Result<Plan> {
        let arguments = std::iter::once(&"stability").chain(arguments);
        Plan::of(&Command::try_parse_from(arguments)?.stability)
    }

    #[test]
    fn the_default_is_the_paper_s_setting_in_two_minutes() {
        let plan = plan(&[]).unwrap();
        assert_eq!(plan.phases.testing, Duration::from_secs(60));
        assert_eq!(plan.phases.warm_up, Duration::from_secs(10));
        assert_eq!(plan.phases.utilization, 0.95);
        assert_eq!(plan.candidates[0].design, "balanced".parse().unwrap());
        assert_eq!(plan.data_bytes(), 1_016_000_000);
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
    fn what_makes_no_sense_is_refused() {
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
        ] {
            assert!(plan(arguments).is_err(), "{arguments:?}");
        }
    }
}
