//! What a stability evaluation measures, checked.

use std::time::Duration;

use anyhow::Result;
use terrane::{IoBudget, Options};
use terrane_policy::catalogue;
use terrane_workload::stability::{Criteria, Query, TwoPhaseOptions};
use terrane_workload::{Indexes, Workload};

use crate::error::usage;
use crate::named_design::NamedDesign;

/// The part of the testing phase that is left out unless another is given: 20 minutes of 2 hours
/// in the paper.
const WARM_UP_SHARE: u32 = 6;

/// The options of an evaluation, as a user gives them.
#[derive(Debug, Clone)]
pub struct StabilityOptions {
    /// Specs of designs; empty for the default design.
    pub designs: Vec<String>,
    /// The phases; their warm-up is taken from `warm_up`.
    pub phases: TwoPhaseOptions,
    /// The part of the testing phase that is left out; `None` for a sixth of it.
    pub warm_up: Option<Duration>,
    /// The secondary indexes of the records.
    pub indexes: Option<Indexes>,
    /// The longest that 99 % of writes may take.
    pub p99: Duration,
    /// What flushes and compactions may write per second, in both phases.
    pub budget: Option<IoBudget>,
    /// Evaluates a map in memory too.
    pub calibrates: bool,
    /// Options of the engine, except the design.
    pub engine: Options,
}

/// A checked evaluation.
#[derive(Debug, Clone)]
pub struct StabilityPlan {
    /// The designs.
    pub designs: Vec<NamedDesign>,
    /// How each design is evaluated.
    pub phases: TwoPhaseOptions,
    /// The secondary indexes of the records.
    pub indexes: Option<Indexes>,
    /// The criteria of a sustainable rate.
    pub criteria: Criteria,
    /// Options of the engine, except the design.
    pub engine: Options,
    /// What flushes and compactions may write per second, in both phases.
    pub budget: Option<IoBudget>,
    /// Whether a map in memory is evaluated too.
    pub calibrates: bool,
}

impl StabilityPlan {
    /// Checks the options of an evaluation.
    ///
    /// # Errors
    ///
    /// If a design is unknown, or the options contradict each other.
    pub fn new(options: StabilityOptions) -> Result<Self> {
        let default_warm_up = options.phases.testing / WARM_UP_SHARE;
        let warm_up = options.warm_up.unwrap_or(default_warm_up);
        let phases = TwoPhaseOptions { warm_up, ..options.phases };
        if options.indexes.is_none() && matches!(phases.query, Query::Index { .. }) {
            return Err(usage(format!("--read {} needs --index", phases.query)));
        }
        if options.indexes.is_some() && options.calibrates {
            return Err(usage(
                "--calibrate cannot be combined with --index; the map in memory has no indexes",
            ));
        }
        phases.check().map_err(|error| usage(error.to_string()))?;
        Workload::Overwrite.check(&phases.run).map_err(|error| usage(error.to_string()))?;
        let default = [catalogue::DEFAULT.to_owned()];
        let specs = if options.designs.is_empty() { &default[..] } else { &options.designs };
        Ok(Self {
            designs: NamedDesign::parse_all(specs)?,
            phases,
            indexes: options.indexes,
            criteria: Criteria { p99: options.p99, ..Criteria::default() },
            engine: options.engine,
            budget: options.budget,
            calibrates: options.calibrates,
        })
    }

    /// Returns the bytes of all keys and values that are loaded.
    pub fn data_bytes(&self) -> u64 {
        (self.phases.run.num as f64 * self.bytes_per_write()) as u64
    }

    /// Returns the bytes of a key and a value, on average.
    pub fn bytes_per_write(&self) -> f64 {
        let run = &self.phases.run;
        let value_bytes = usize::midpoint(run.value_size.min_bytes(), run.value_size.max_bytes());
        (run.key_size_bytes + value_bytes) as f64
    }
}
