//! An experiment: its options, its metrics, and the claims that it checks.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::judge::ClaimFile;
use crate::results::{Metric, Results};

/// Sizes and repetitions of an experiment.
#[derive(Debug, Clone)]
pub struct ExperimentOptions {
    /// The factor by which sizes are scaled.
    pub scale: f64,
    /// Rounds: operations count at the best of them, whole runs at their median.
    pub rounds: usize,
    /// Numbers of threads, for the experiments on memtables.
    pub threads: Vec<u32>,
    /// The seed of all random choices.
    pub seed: u64,
    /// The path of the program of Dent's report, which runs in turns with ours.
    pub dent_program: Option<PathBuf>,
    /// The length of a simulated phase in hours of virtual time.
    pub phase_hours: f64,
    /// The number of simulated records.
    pub records: u64,
}

impl Default for ExperimentOptions {
    fn default() -> Self {
        Self {
            scale: 1.0,
            rounds: 3,
            threads: vec![1, 2],
            seed: 1,
            dent_program: None,
            phase_hours: 2.0,
            records: 100_000_000,
        }
    }
}

/// What a run of an experiment needs at the default options, approximately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExperimentCost {
    /// The duration in minutes on two cores.
    pub minutes: u32,
    /// The peak disk usage of temporary databases in MiB; 0 if there are none.
    pub disk_mib: u32,
}

/// An experiment: its measurements, and the claims that it checks.
pub struct Experiment {
    /// The name on the command line.
    pub name: &'static str,
    /// The paper whose claims the experiment checks.
    pub paper: &'static str,
    /// A line for lists.
    pub about: &'static str,
    /// The time and the disk space that the experiment needs.
    pub cost: ExperimentCost,
    /// The figures and tables of the paper that the experiment reproduces.
    pub figures: &'static [&'static str],
    /// The metrics that the experiment records.
    pub metrics: &'static [&'static [Metric]],
    pub(crate) claims: &'static str,
    pub(crate) run: fn(&ExperimentOptions, &mut Results) -> Result<()>,
}

impl Experiment {
    /// Runs the experiment.
    ///
    /// # Errors
    /// If a database or a program fails.
    pub fn run(&self, options: &ExperimentOptions) -> Result<Results> {
        let mut results = Results::new(self.name, self.metrics);
        (self.run)(options, &mut results)?;
        Ok(results)
    }

    /// Returns the claims that the experiment checks.
    ///
    /// # Errors
    /// If the file of claims is malformed.
    pub fn claims(&self) -> Result<ClaimFile> {
        ClaimFile::parse(self.claims).with_context(|| format!("in the claims of {}", self.name))
    }
}
