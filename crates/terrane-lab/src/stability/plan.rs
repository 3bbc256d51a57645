//! The options of a stability evaluation, checked.

use std::time::Duration;

use anyhow::Result;
use terrane::{IoBudget, Options};
use terrane_workload::stability::{Criteria, Query, TwoPhaseOptions};
use terrane_workload::{Indexes, Workload};

use crate::error::usage;
use crate::input::fit;
use crate::input::named_design::NamedDesign;

/// The default warm-up as a share of the testing phase: 20 minutes of 2 hours in the paper.
const WARM_UP_SHARE: u32 = 6;

/// The unchecked options of an evaluation.
#[derive(Debug, Clone)]
pub struct StabilityOptions {
    /// Specs of designs; empty for the default design. A design's sizes are scaled to the data
    /// unless its spec gives sizes.
    pub designs: Vec<String>,
    /// The phases; their warm-up is taken from `warm_up`.
    pub phases: TwoPhaseOptions,
    /// The warm-up of the testing phase, which is not measured; `None` for a sixth of the phase.
    pub warm_up: Option<Duration>,
    /// The secondary indexes of the records.
    pub indexes: Option<Indexes>,
    /// The limit on the 99th percentile of the write latency.
    pub p99: Duration,
    /// The write rate limit of flushes and compactions in both phases.
    pub budget: Option<IoBudget>,
    /// True if an in-memory map is also evaluated.
    pub calibrates: bool,
    /// Options of the engine, except the design.
    pub engine: Options,
    /// The number of threads that merge.
    pub merge_threads: usize,
}

/// A checked evaluation.
#[derive(Debug, Clone)]
pub struct StabilityPlan {
    /// The designs to evaluate.
    pub designs: Vec<NamedDesign>,
    /// The phases of each design.
    pub phases: TwoPhaseOptions,
    /// The secondary indexes of the records.
    pub indexes: Option<Indexes>,
    /// The criteria of a sustainable rate.
    pub criteria: Criteria,
    /// Options of the engine, except the design.
    pub engine: Options,
    /// The write rate limit of flushes and compactions in both phases.
    pub budget: Option<IoBudget>,
    /// True if an in-memory map is also evaluated.
    pub calibrates: bool,
    /// The number of threads that merge.
    pub merge_threads: usize,
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
        let mut phases = TwoPhaseOptions { warm_up, ..options.phases };
        if options.indexes.is_none() && matches!(phases.query, Query::Index { .. }) {
            return Err(usage(format!("--read {} needs --index", phases.query)));
        }
        if options.indexes.is_some() && options.calibrates {
            return Err(usage(
                "--calibrate cannot be combined with --index; the map in memory has no indexes",
            ));
        }
        if options.indexes.is_some() && phases.mix.is_some() {
            return Err(usage("--mix cannot be combined with --index"));
        }
        if let Some(mix) = &phases.mix {
            // Inserted keys have the placement of the loaded ones.
            phases.run.key_order = mix.placement();
        }
        phases.check().map_err(|error| usage(error.to_string()))?;
        Workload::Overwrite.check(&phases.run).map_err(|error| usage(error.to_string()))?;
        let designs = NamedDesign::parse_fitted(&options.designs, fit::data_bytes(&phases.run))?;
        Ok(Self {
            designs,
            phases,
            indexes: options.indexes,
            criteria: Criteria { p99: options.p99, ..Criteria::default() },
            engine: options.engine,
            budget: options.budget,
            calibrates: options.calibrates,
            merge_threads: options.merge_threads,
        })
    }

    /// Returns the bytes of all loaded keys and values.
    pub fn data_bytes(&self) -> u64 {
        fit::data_bytes(&self.phases.run)
    }

    /// Returns the mean bytes of a key and its value.
    pub fn bytes_per_write(&self) -> f64 {
        let run = &self.phases.run;
        let value_bytes = usize::midpoint(run.value_size.min_bytes(), run.value_size.max_bytes());
        (run.key_size_bytes + value_bytes) as f64
    }
}
